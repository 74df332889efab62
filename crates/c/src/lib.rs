//! C library of grammars: vocabularies, compiled grammars, matchers and batches behind handles.
//!
//! Engines in C, C++, Go or Swift link it for exact token masks. The functions are thin: what they
//! do is in `palmette-grammar` and `palmette-vocabulary`, under the words of Rust and Python.
//!
//! # Handles
//! A function that makes something writes a handle through its last pointer but one, and each
//! handle has a function that frees it. Handles keep what they are made of: a vocabulary may be
//! freed before its grammars.
//!
//! # Errors
//! A call that can fail returns a [`Status`] and, where the caller wants it, an [`Error`] with the
//! message, the place and the JSON pointer. A null pointer where a handle is needed is an error,
//! and a panic of ours becomes [`Status::Panic`]: nothing unwinds into the caller.
//!
//! # Threads
//! Vocabularies, grammars, errors and cancellations are shared by threads as they are; a matcher
//! and a batch are used by one thread at a time, and may move between threads.
//!
//! # Memory of the caller
//! Pointers that are not null point at as much memory as the argument after them says, which was
//! written once (as `calloc` gives it) and nobody else writes during the call. That is what every
//! `unsafe` function here asks of its caller, and all that it asks.
//!
//! # Invariants
//! - `include/palmette.h` has the declarations of these functions, and a test compares them.
//! - Nothing here decides anything: languages, options, limits and their defaults have their names
//!   in `palmette-grammar`.
#![deny(unsafe_op_in_unsafe_fn)]
#![allow(clippy::missing_safety_doc, reason = "one rule for all, in the crate's documentation")]

mod arguments;
mod batch;
mod border;
mod cancellation;
mod error;
mod grammar;
mod lengths;
/// cbindgen:ignore
#[cfg(feature = "llguidance")]
mod llg;
mod matcher;
mod matcher_ahead;
mod saved;
mod version;
mod vocabulary;

pub use batch::*;
pub use cancellation::*;
pub use error::*;
pub use grammar::*;
pub use lengths::*;
#[cfg(feature = "llguidance")]
pub use llg::*;
pub use matcher::*;
pub use matcher_ahead::*;
pub use saved::*;
pub use version::*;
pub use vocabulary::*;
