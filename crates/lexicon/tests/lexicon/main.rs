//! Lexicons are held to sorted maps, their sets to the definition of member sets, damaged files to
//! errors.

mod file;
mod members;
mod nearest;
mod real;
mod strings;
mod substrings;
mod tables;
mod texts;
