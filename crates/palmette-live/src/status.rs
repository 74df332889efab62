//! Numbers about a live catalog, for people and for metrics.

use serde::Serialize;

/// A live catalog at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveStatus {
    /// The newest generation.
    pub generation: u64,
    /// Items that are there.
    pub num_items: u64,
    /// Items that are not there any more and still take room in a segment.
    pub num_tombstones: u64,
    /// The segments, the oldest first.
    pub segments: Vec<SegmentStatus>,
    /// Items of the memory segment, which is the last one where it has any.
    pub memory_items: u64,
    /// Generations that can be gone back to.
    pub kept: Vec<KeptGeneration>,
    /// Bytes of the log since the last checkpoint: what a reopening has to replay.
    pub wal_bytes: u64,
    /// Bytes at the end of the log that were cut off when it was opened: a batch that was being written,
    /// and not acknowledged, when the process before ended.
    pub torn_bytes: u64,
    /// Merges that are running.
    pub merges_running: usize,
    /// Merges since the catalog was opened.
    pub merges_done: u64,
    /// Items that these merges wrote.
    pub items_merged: u64,
    /// Checkpoints since the catalog was opened.
    pub checkpoints_done: u64,
    /// Batches that had to wait since it was opened, for merges to make room.
    pub waits: u64,
    /// Why the last merge or checkpoint in the background failed; empty again after one that did not.
    pub background_error: Option<String>,
}

/// A segment at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentStatus {
    /// Items of the segment.
    pub num_items: u64,
    /// Those that are there.
    pub num_live: u64,
    /// Bytes of index, ids and attributes.
    pub bytes: u64,
    /// Whether it is in a file.
    pub is_written: bool,
    /// Whether it is being merged.
    pub is_merging: bool,
}

/// A generation that can be gone back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptGeneration {
    /// Its number.
    pub generation: u64,
    /// What it was called when it was kept.
    pub name: Option<String>,
    /// Items it has.
    pub num_items: u64,
}
