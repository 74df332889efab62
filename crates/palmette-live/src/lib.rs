//! A catalog that changes while it is read: a write-ahead log, immutable segments, generations.
#![forbid(unsafe_code)]

mod background;
mod checkpoint;
mod constraint;
mod error;
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
mod schema;
mod segment;
mod segment_filters;
mod shared;
mod snapshot;
mod status;
mod update;
mod wal;
mod writer;

pub use constraint::{SnapshotConstraint, SnapshotScratch, SnapshotState};
pub use error::LiveError;
pub use live::LiveCatalog;
pub use merge::Merge;
pub use options::{LiveOptions, MergePolicy, SyncPolicy};
pub use schema::Schema;
pub use segment::{Segment, SegmentView};
pub use snapshot::{ItemRef, MAX_SEGMENTS, Snapshot, SnapshotItems};
pub use status::{KeptGeneration, LiveStatus, SegmentStatus};
pub use update::{Applied, Update};
