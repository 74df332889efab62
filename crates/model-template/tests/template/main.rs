//! Templates as files, and what transformers makes of the same.

mod chats;
mod directories;
