//! A catalog that changes while it is read: a write-ahead log, immutable segments, generations.
//!
//! A live catalog is a directory. What it holds at a **generation** is a list of items: an upsert
//! removes the item with its id, if there is one, and appends the new one; a patch changes
//! attributes of an item in its place; a delete removes. Decoding over a [`Snapshot`] equals
//! decoding over a [`Catalog`](palmette_catalog::Catalog) built from that list: masks, results,
//! their order and their scores. Items that share a semantic ID come in the order of the list.
//!
//! ```
//! use std::sync::Arc;
//! use palmette_catalog::{CodeTokens, Item, LevelTokens};
//! use palmette_core::{Constraint, TokenId};
//! use palmette_catalog_live::{LiveCatalog, LiveOptions, SnapshotConstraint, Update};
//!
//! let dir = tempfile::tempdir()?;
//! let live = LiveCatalog::create_with(dir.path(), None, None, LiveOptions::default())?;
//! let item = |id: &str, codes: [u32; 2]| {
//!     Update::Upsert(Item { id: id.into(), codes: codes.into(), attributes: Default::default() })
//! };
//! live.apply(&[item("lamp", [3, 1]), item("tent", [0, 7])])?;
//! let pinned = live.snapshot();
//! let applied = live.apply(&[Update::Delete("lamp".into()), item("mat", [0, 2])])?;
//! assert_eq!((applied.generation, applied.deleted), (2, 1));
//!
//! let level = |l: u32| LevelTokens { first_token: 8 * l, num_codes: 8 };
//! let tokens = Arc::new(CodeTokens::new((0..2).map(level).collect(), 16)?);
//! let first_tokens = |snapshot| -> Result<Vec<u32>, palmette_catalog::TokensError> {
//!     let constraint = SnapshotConstraint::new(snapshot, tokens.clone())?;
//!     let mut first = Vec::new();
//!     let visit = |t: TokenId, _| first.push(t.0);
//!     let Ok(()) = constraint.successors(&constraint.start(), &mut Default::default(), visit);
//!     Ok(first)
//! };
//! assert_eq!(first_tokens(pinned)?, [0, 3]);
//! assert_eq!(first_tokens(live.snapshot())?, [0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How a batch goes in
//! [`LiveCatalog::apply`] checks the whole batch, appends one checksummed record to the log and
//! forces it to the disk: from then on it is acknowledged, whatever happens. Then deletes clear
//! bits in the sets of items that are there, one for each segment; upserted items go to the **memory
//! segment**, which is indexed anew; and one atomic swap puts the new snapshot in the place of the
//! old. Readers never wait: they hold an `Arc` of a snapshot for as long as they like.
//!
//! # Segments and merges
//! A snapshot has at most [`MAX_SEGMENTS`] segments, the oldest first, each a frozen catalog with
//! the set of those of its items that are there. An item is there in one segment at most. When the
//! memory segment is full it becomes an immutable one. Threads in the background merge segments in
//! tiers, always neighbours in age, so that the order of collisions holds. What is cleared while a
//! merge runs is cleared in what it made before that is shown. Merges of very different sizes run
//! side by side, so that a large one does not keep small ones waiting. Where they cannot keep up,
//! the memory segment grows to four times its size; then batches wait.
//!
//! A position in a snapshot ([`SnapshotState`]) is a position in each segment; what may follow it
//! is what may follow any of them. A filter is compiled for each segment once, and brought up to
//! date with what was cleared since.
//!
//! # Files
//! - `lock`: locked by the process that writes.
//! - `wal-<generation>.log`: records from that generation on. On opening, a record at the end that
//!   is not whole is cut off: it was being written when the process ended, and was not
//!   acknowledged. A damaged record with whole ones after it is an error.
//! - `segment-<number>.palmcat`: a catalog file; `live-<number>-<generation>.palmlive`: which of
//!   its items are there.
//! - `departed-<number>.palmcat`: ids and codes of items that were deleted and dropped by the merge
//!   that made the segment; histories still have them ([`Snapshot::departed`]).
//! - `keys-<generation>.palmkeys`: the keys of the latest batches that have one
//!   ([`LiveCatalog::apply_keyed`]).
//! - `manifest-<number>.json`: what a checkpoint found; the log goes on from there. A checkpoint
//!   writes what is not in files yet, then the manifest, then deletes what neither it nor a kept
//!   generation needs.
//!
//! A generation that is kept ([`LiveCatalog::keep`]) stays in files until it is forgotten. Going
//! back to it ([`LiveCatalog::rollback`]) makes a new generation with the same contents and is a
//! record in the log like any other.
//!
//! # Replicas
//! A catalog may follow a log that is shared by many processes on many machines ([`replica`]): it
//! then changes by that log's entries alone.
//!
//! # Damage
//! Every file has checksums. Those of a segment are verified when it is opened
//! ([`Check::Sums`](palmette_mapped::Check::Sums)), and again before it is merged or exported,
//! since a mapped file may change. The log marks the last generation that was acknowledged: damage
//! to the last record is an error, and not taken for a record that was being written. [`verify`]
//! reads everything.
//!
//! # Limits
//! - One process at a time writes. Others read ([`LiveReader`]): they map the files and follow the
//!   log, on the same machine. Mapped files may be deleted while snapshots use them, as Unix
//!   allows.
//! - An attribute keeps the kind of its first value ([`Schema`]). Where a catalog of all items
//!   would show whole numbers as `3.0` because some are spelled so, a live one does so segment by
//!   segment.
//!
//! # Invariants
//! - Checksums of a segment are verified before it is served, merged or exported; the log marks
//!   what was acknowledged, so that no acknowledged batch is taken for a torn write.
//! - A deleted item's codes stay known through merges, in catalogs of departed items beside the
//!   segments.
//! - A batch of updates is in the log before it is seen, and is seen whole or not at all; readers
//!   never wait for a writer, nor does who asks for numbers about it. A batch's key is in the same
//!   record: a repetition is known whenever the batch is there.
//! - An update that was acknowledged is on disk; a process that is killed loses none. One that
//!   could not be logged is cut off and was seen by nobody, readers in other processes included;
//!   the next is tried, without a restart.
#![forbid(unsafe_code)]

mod background;
mod batch_keys;
mod checkpoint;
mod constraint;
mod contents;
mod error;
#[cfg(test)]
mod faults;
mod gathered;
mod in_order;
mod live;
mod live_file;
mod log_entry;
mod manifest;
mod memory;
mod merge;
mod open;
mod options;
mod policy;
mod pool;
mod prefixes;
mod reader;
pub mod replica;
mod schema;
mod segment;
mod segment_filters;
mod shared;
mod snapshot;
mod state;
mod status;
mod update;
mod update_line;
mod verify;
mod view;
mod wal;
mod writer;

pub use batch_keys::{BatchKey, KeyedApplied, MAX_BATCH_KEY_BYTES, MAX_BATCH_KEYS};
pub use constraint::{SnapshotConstraint, SnapshotScratch, SnapshotState};
pub use error::LiveError;
pub use in_order::InOrder;
pub use live::LiveCatalog;
pub use merge::Merge;
pub use options::{LiveOptions, MergePolicy, SyncPolicy};
pub use prefixes::{Child, Prefix};
pub use reader::{LiveReader, ReaderOptions};
pub use schema::Schema;
pub use segment::{MAX_SEGMENTS, Segment, SegmentView};
pub use snapshot::{DamagedSegment, ItemRef, Snapshot, SnapshotItems};
pub use status::{KeptGeneration, LiveStatus, SegmentStatus};
pub use update::{Applied, RefusedUpdate, Update};
pub use update_line::LineError;
pub use verify::{VerifiedFile, verify};
pub use view::{CatalogSource, CatalogView, FILTER_BYTES, ViewItems};
