//! Replicas of catalogs that follow one log.
//!
//! A catalog at generation `g` is a function of the entries `1..=g` of its log. Where the log has a
//! home that several processes reach, a [`SharedLog`], each of them has the whole catalog, answers
//! by it, and takes changes: a change is added to the log first, and answered when it was applied
//! here.
//!
//! - [`SharedLog`]: a directory ([`DirectoryLog`]), PostgreSQL, and what a program
//!   [adds](add_home), such as the object stores of clouds. It knows nothing of catalogs.
//! - [`CatalogLog`]: order, bases and trimming of one catalog's log, the same on each of these.
//! - [`Replica`]: one catalog of this process, with a thread that follows its log.
//! - [`RegistryLog`]: the table of models, catalogs and targets, of which each version is one
//!   object.
//!
//! # Promises
//! - An acknowledged change is in the log, once, and on every replica at the same generation.
//! - A replica applies the entries of its log in their order, each once. One that is missing,
//!   damaged, of another log or against the rules stops it: it says which, and serves what it had.
//! - What a replica has in its directory is a cache. It may be removed while the replica is not
//!   running.
//!
//! # Invariants
//! - A replica applies the entries of its log in their order, each once; one that is missing,
//!   damaged, foreign or against the rules stops it by name, and nothing after it is applied. An
//!   entry is judged, before it is added, by exactly the state that it will meet.
//! - Nothing is added to a place of a log that was trimmed: who made a frame finds the one before
//!   it there afterwards, or takes it back.
#![forbid(unsafe_code)]

mod catalog_log;
mod directory;
mod document;
mod error;
mod frame;
mod identity;
mod memory;
mod open;
mod pieces;
#[cfg(feature = "postgres")]
mod postgres;
mod registry;
mod replica;
mod shared_log;

pub use catalog_log::{CatalogLog, StoredFile};
pub use directory::DirectoryLog;
pub use error::LogError;
pub use identity::Identity;
pub use memory::MemoryLog;
pub use open::{OpenHome, add_home, open};
pub use pieces::Pieces;
#[cfg(feature = "postgres")]
pub use postgres::PostgresLog;
pub use registry::{ModelFiles, Registry, RegistryLog};
pub use replica::{Change, ChangeError, Changed, Replica, ReplicaOptions, ReplicaStatus};
pub use shared_log::SharedLog;

/// Reads a frame and writes it again: the seam at which frames are tried with bytes from anywhere.
///
/// # Errors
/// With what is wrong where the bytes are no frame.
#[doc(hidden)]
pub fn frame_again(bytes: bytes::Bytes) -> Result<bytes::Bytes, String> {
    frame::Frame::read(&bytes).map(|frame| frame.write())
}
