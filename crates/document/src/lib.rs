//! Typed JSON documents: one reader for bodies, files and keywords, and faults with their places.
//!
//! A question that is asked over HTTP, in a file or by keywords is one document, so it is read by
//! one rule: [`read`] takes text into a type, [`Members::split`] takes an object whose members
//! belong to several types, told apart by name. Members that are null are as if they were not
//! there, `3.0` is 3, and what breaks a rule comes back as [`Faults`], each with its JSON pointer
//! (RFC 6901).
#![forbid(unsafe_code)]

mod fault;
mod json;
mod members;
mod raw;
mod read;

pub use fault::{Fault, Faults, place, respelled};
pub use json::{Text, Wrong};
pub use members::{Members, member_names};
pub use raw::RawJson;
pub use read::{DocumentError, read, read_from};
