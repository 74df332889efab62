//! Numbers about a live catalog, for people and for metrics.

use palmette_catalog::Catalog;
use serde::Serialize;

use crate::manifest::KeptEntry;
use crate::segment::SegmentView;
use crate::snapshot::DamagedSegment;
use crate::state::State;

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
    /// Segments that are left out because their files are damaged; a writer has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedSegment>,
    /// Generations that can be gone back to.
    pub kept: Vec<KeptGeneration>,
    /// Bytes of the log since the last checkpoint: what a reopening has to replay.
    pub wal_bytes: u64,
    /// Bytes at the end of the log that were cut off when it was opened: a batch that was being
    /// written, and not acknowledged, when the process before ended.
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
    /// Reason why the last change could not be written. It is empty again once one could, or it was
    /// found that there is room.
    pub write_error: Option<String>,
    /// Failure of the last merge or checkpoint in the background. It is empty again after one that
    /// succeeded.
    pub background_error: Option<String>,
}

impl LiveStatus {
    /// Items and files of a state, without the work in the background.
    pub(crate) fn of(state: &State) -> Self {
        let segment = |view: &SegmentView| SegmentStatus {
            num_items: view.segment().catalog().num_items(),
            num_live: view.num_live(),
            num_departed: view.segment().departed().map_or(0, Catalog::num_items),
            bytes: view.segment().bytes(),
            is_written: view.segment().is_written(),
            is_merging: false,
        };
        Self {
            generation: state.generation,
            num_items: state.views().map(SegmentView::num_live).sum(),
            num_tombstones: state.views().map(SegmentView::num_tombstones).sum(),
            segments: state.views().map(segment).collect(),
            memory_items: state.memory.num_items() as u64,
            kept: kept_generations(&state.kept),
            damaged: state.damaged.clone(),
            wal_bytes: 0,
            torn_bytes: 0,
            merges_running: 0,
            merges_done: 0,
            items_merged: 0,
            checkpoints_done: 0,
            waits: 0,
            write_error: None,
            background_error: None,
        }
    }
}

/// The generations that are kept, in the order in which they were.
fn kept_generations(kept: &[KeptEntry]) -> Vec<KeptGeneration> {
    let generation = |kept: &KeptEntry| KeptGeneration {
        generation: kept.contents.generation,
        name: kept.name.clone(),
        num_items: kept.contents.num_items(),
    };
    kept.iter().map(generation).collect()
}

/// A segment at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SegmentStatus {
    /// Items of the segment.
    pub num_items: u64,
    /// Items that are there.
    pub num_live: u64,
    /// Items that were deleted and dropped by a merge, of which ids and codes are kept.
    pub num_departed: u64,
    /// Bytes of index, ids and attributes.
    pub bytes: u64,
    /// True if it is in a file.
    pub is_written: bool,
    /// True if it is being merged.
    pub is_merging: bool,
}

/// A generation that can be gone back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptGeneration {
    /// Number of the generation.
    pub generation: u64,
    /// Name given when it was kept.
    pub name: Option<String>,
    /// Items it has.
    pub num_items: u64,
}
