//! Tables of every format that is read.

mod answers;
mod damaged;
mod read;
mod written;
