//! Functions of C as C calls them: beside the engine below them, with wrong arguments, in C itself.

mod errors;
mod handles;
mod header;
mod masks;
mod programs;
mod threads;
