//! The single writer: the state, the log before it, and the merges that are under way.

use std::collections::HashSet;
use std::ops::Range;

use crate::error::{Kind, LiveError};
use crate::options::SyncPolicy;
use crate::policy::Candidate;
use crate::segment::SegmentView;
use crate::state::State;
use crate::status::LiveStatus;
use crate::wal::Wal;

/// The newest state, under the writer's lock.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) state: State,
    pub(crate) wal: Wal,
    /// Keys of the segments that are being merged.
    pub(crate) merging: HashSet<u64>,
    /// Numbers of files that merges are writing.
    pub(crate) pending_files: HashSet<u64>,
    /// Reason why nothing more can be logged.
    pub(crate) poisoned: Option<String>,
    /// True once no more is taken since the caller wants it so.
    pub(crate) is_closed: bool,
    pub(crate) counts: Counts,
}

/// Events since the catalog was opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) torn_bytes: u64,
    pub(crate) merges_running: usize,
    pub(crate) merges_done: u64,
    pub(crate) items_merged: u64,
    pub(crate) checkpoints_done: u64,
    pub(crate) waits: u64,
    pub(crate) merge_error: Option<String>,
    pub(crate) checkpoint_error: Option<String>,
    /// Updates since the last checkpoint.
    pub(crate) updates_logged: u64,
    /// Bytes of the log when a checkpoint in the background was tried and failed.
    pub(crate) failed_at_bytes: u64,
}

impl Writer {
    pub(crate) fn new(state: State, wal: Wal) -> Self {
        Self {
            state,
            wal,
            merging: HashSet::new(),
            pending_files: HashSet::new(),
            poisoned: None,
            is_closed: false,
            counts: Counts::default(),
        }
    }

    /// Whether updates can be taken.
    pub(crate) fn check_sound(&self) -> Result<(), LiveError> {
        match self.poisoned.clone() {
            _ if self.is_closed => Err(Kind::Closed { path: self.state.dir.clone() }.into()),
            Some(problem) => Err(Kind::Poisoned { path: self.state.dir.clone(), problem }.into()),
            None => Ok(()),
        }
    }

    /// Logs what makes the next generation. After an error nothing more is taken: what the log ends in is
    /// then not known.
    pub(crate) fn log(&mut self, entry: &[u8]) -> Result<(), LiveError> {
        let sync = self.state.options.sync == SyncPolicy::EveryBatch;
        if let Err(e) = self.wal.append(self.state.generation + 1, entry, sync) {
            self.poisoned = Some(e.to_string());
            self.check_sound()?;
        }
        self.state.generation += 1;
        Ok(())
    }

    /// Indexes the memory segment anew; after an error nothing more is taken.
    pub(crate) fn index_memory(&mut self) -> Result<(), LiveError> {
        let indexed = self.state.index_memory();
        if let Err(e) = &indexed {
            self.poisoned = Some(e.to_string());
        }
        indexed
    }

    /// Numbers for people and metrics. Cost: a look at each segment and each kept generation.
    pub(crate) fn status(&self) -> LiveStatus {
        let mut status = LiveStatus::of(&self.state);
        for (segment, view) in status.segments.iter_mut().zip(self.state.views()) {
            segment.is_merging = self.merging.contains(&view.segment().key());
        }
        let counts = &self.counts;
        LiveStatus {
            wal_bytes: self.wal.bytes(),
            torn_bytes: counts.torn_bytes,
            merges_running: counts.merges_running,
            merges_done: counts.merges_done,
            items_merged: counts.items_merged,
            checkpoints_done: counts.checkpoints_done,
            waits: counts.waits,
            background_error: counts.merge_error.clone().or(counts.checkpoint_error.clone()),
            ..status
        }
    }

    /// The immutable segments as merging sees them.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let candidate = |view: &SegmentView| Candidate {
            num_live: view.num_live(),
            num_tombstones: view.num_tombstones(),
            is_busy: self.merging.contains(&view.segment().key()),
        };
        self.state.sealed.iter().map(candidate).collect()
    }

    /// Where these segments, which are neighbours, are now; `None` where they are gone.
    pub(crate) fn place_of(&self, keys: &[u64]) -> Option<Range<usize>> {
        let key = |view: &SegmentView| view.segment().key();
        let sealed = &self.state.sealed;
        let first = sealed.iter().position(|view| Some(&key(view)) == keys.first())?;
        let range = first..first + keys.len();
        let found = sealed.get(range.clone())?;
        found.iter().map(key).eq(keys.iter().copied()).then_some(range)
    }
}
