//! Options of a live catalog.

use palmette_mapped::Check;

/// Options of opening and keeping a live catalog. These are of the process, not of the directory:
/// each may change from one opening to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// When a batch is forced to the disk.
    pub sync: SyncPolicy,
    /// Choice of the segments that are merged in the background.
    pub merging: MergePolicy,
    /// Items of the memory segment before it becomes an immutable one; at least 1. Every batch
    /// indexes the memory segment anew, which takes 1 to 2 microseconds an item.
    pub memory_items: usize,
    /// Bytes of the log after which a checkpoint is made in the background; what a reopening has to
    /// replay at most, give or take a batch.
    pub checkpoint_bytes: u64,
    /// Items of a merged segment from which on it is written to a file and mapped at once. A
    /// smaller one is kept in memory until the next opening.
    pub map_items: u64,
    /// Bytes of compiled filters kept for each segment.
    pub filter_bytes: usize,
    /// Part of the segment files that is checked when they are opened; [`Check::Sums`] finds every
    /// change of what was written before it is served.
    pub check: Check,
    /// Updates after which a checkpoint is made in the background, whatever the log's bytes: what
    /// readers in other processes have to index themselves is then little.
    pub checkpoint_items: u64,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            sync: SyncPolicy::default(),
            merging: MergePolicy::default(),
            memory_items: 1024,
            checkpoint_bytes: 16 << 20,
            map_items: 1 << 18,
            filter_bytes: 64 << 20,
            check: Check::Sums,
            checkpoint_items: 4096,
        }
    }
}

/// When a batch is forced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before it is acknowledged: it outlives a power failure.
    #[default]
    EveryBatch,
    /// When the system sees fit: it outlives the end of the process, however that comes, and not a
    /// power failure. Checkpoints are forced nevertheless.
    Never,
}

/// Choice of the segments that are merged in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergePolicy {
    /// Sizes in tiers, two of 32 times the size and then of eight times. A tier has at most one
    /// segment, except those that wait for a merge. An item is rewritten half as many times as its
    /// tier is wide.
    #[default]
    Tiered,
    /// None. When there are [`MAX_SEGMENTS`](crate::MAX_SEGMENTS), the memory segment grows
    /// instead. For tests, and for callers that merge by themselves.
    Never,
    /// All, whenever there are two or a tombstone. For tests.
    Always,
}
