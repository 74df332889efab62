//! Tables of every format that is read.

mod damaged;
mod read;
mod written;
