//! Offline runs: a question answered about each history of a file, with nobody waiting.
//!
//! An [`OfflineRun`] takes histories in their order, answers some of them side by side, and hands
//! [`AnswerRecord`]s in the same order to an [`AnswerSink`]. A `Vec` is one; a [`PartialFile`] is
//! one that outlives the process, so that an interrupted run continues where it ended. A
//! [`RunDescription`], made of [fingerprints](fingerprint), says which run that is, and a [`Shard`]
//! is the part of the histories that one process of several answers.
//!
//! Nothing here reads histories, knows a format of tables, a terminal or a clock: histories come
//! from `palmette-recommend-eval` or from wherever the caller has them, tables are written by a
//! function of the caller's, and each [`RunStep`] tells what was done.

mod counts;
mod description;
mod error;
pub mod fingerprint;
mod partial_file;
mod record;
mod run;
mod shard;
mod sink;

pub use counts::AnswerCounts;
pub use description::RunDescription;
pub use error::OfflineError;
pub use partial_file::{AnswerBatches, PartialFile};
pub use record::AnswerRecord;
pub use run::{NamedHistory, OfflineRun, RunStep};
pub use shard::{Shard, ShardError};
pub use sink::AnswerSink;
