//! What the single writer changes: the log, the memory segment, and which items are there.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palmette_attributes::Columns;
use palmette_catalog::ColumnKind;

use crate::error::{Kind, LiveError};
use crate::manifest::Kept;
use crate::memory::Memory;
use crate::options::{LiveOptions, SyncPolicy};
use crate::policy::Candidate;
use crate::schema::Schema;
use crate::segment::{Segment, SegmentView};
use crate::snapshot::{MAX_SEGMENTS, Snapshot};
use crate::update::{Applied, Update};
use crate::wal::Wal;

/// The newest state, under the writer's lock.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) dir: PathBuf,
    pub(crate) options: LiveOptions,
    pub(crate) wal: Wal,
    pub(crate) generation: u64,
    /// Immutable segments, the oldest first.
    pub(crate) sealed: Vec<SegmentView>,
    pub(crate) memory: Memory,
    /// The memory segment as it was indexed last; `None` when it has no items.
    pub(crate) memory_view: Option<SegmentView>,
    pub(crate) schema: Arc<Schema>,
    columns: Arc<Columns>,
    pub(crate) next_file_number: u64,
    pub(crate) kept: Vec<Kept>,
    /// Keys of the segments that are being merged.
    pub(crate) merging: HashSet<u64>,
    /// Numbers of files that merges are writing.
    pub(crate) pending_files: HashSet<u64>,
    /// Why nothing more can be logged.
    poisoned: Option<String>,
    pub(crate) counts: Counts,
    /// Where the memory segment is indexed.
    pool: rayon::ThreadPool,
}

/// What has happened since the catalog was opened.
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
    /// Bytes of the log when a checkpoint in the background was tried and failed.
    pub(crate) failed_at_bytes: u64,
}

impl Writer {
    pub(crate) fn new(
        dir: &Path,
        options: LiveOptions,
        wal: Wal,
        schema: Schema,
        next_file_number: u64,
    ) -> Result<Self, LiveError> {
        Ok(Self {
            pool: crate::pool::one_thread("memory segment")?,
            dir: dir.to_owned(),
            options,
            wal,
            generation: 0,
            sealed: Vec::new(),
            memory: Memory::default(),
            memory_view: None,
            columns: Arc::new(schema.empty_columns()),
            schema: Arc::new(schema),
            next_file_number,
            kept: Vec::new(),
            merging: HashSet::new(),
            pending_files: HashSet::new(),
            poisoned: None,
            counts: Counts::default(),
        })
    }

    /// Whether updates can be taken.
    pub(crate) fn check_sound(&self) -> Result<(), LiveError> {
        match self.poisoned.clone() {
            Some(problem) => Err(Kind::Poisoned { path: self.dir.clone(), problem }.into()),
            None => Ok(()),
        }
    }

    /// Logs what makes the next generation. After an error nothing more is taken: what the log ends in is
    /// then not known.
    pub(crate) fn log(&mut self, entry: &[u8]) -> Result<(), LiveError> {
        let sync = self.options.sync == SyncPolicy::EveryBatch;
        if let Err(e) = self.wal.append(self.generation + 1, entry, sync) {
            self.poisoned = Some(e.to_string());
            self.check_sound()?;
        }
        self.generation += 1;
        Ok(())
    }

    /// Applies checked updates, of which [`log`](Self::log) knows; [`index_memory`](Self::index_memory)
    /// is due after it.
    pub(crate) fn apply(
        &mut self,
        updates: &[Update],
        added_columns: &[(String, ColumnKind)],
    ) -> Applied {
        if !added_columns.is_empty() {
            let mut schema = Schema::clone(&self.schema);
            schema.add_columns(added_columns);
            self.columns = Arc::new(schema.empty_columns());
            self.schema = Arc::new(schema);
        }
        let mut applied = Applied { generation: self.generation, ..Applied::default() };
        for update in updates {
            match update {
                Update::Upsert(item) => {
                    self.remove(&item.id);
                    self.memory.upsert(item);
                    applied.upserted += 1;
                }
                Update::Delete(id) if self.remove(id) => applied.deleted += 1,
                Update::Delete(_) => applied.unknown_deletes += 1,
            }
        }
        applied
    }

    /// Removes the item with this id from wherever it is; whether it was anywhere.
    fn remove(&mut self, id: &str) -> bool {
        self.memory.remove(id)
            || self.sealed.iter_mut().rev().any(|view| match view.find(id) {
                Some(rank) => {
                    view.clear(rank);
                    true
                }
                None => false,
            })
    }

    /// Indexes the memory segment anew, and makes it an immutable one where it is full and there is
    /// room.
    pub(crate) fn index_memory(&mut self) -> Result<(), LiveError> {
        self.memory_view = None;
        if !self.memory.is_empty() {
            let catalog = match self.pool.install(|| self.memory.build(&self.schema)) {
                Ok(catalog) => catalog,
                Err(e) => {
                    self.poisoned = Some(e.to_string());
                    return Err(e.into());
                }
            };
            let number = self.take_file_number();
            let segment = Segment::new(catalog, number, false, self.options.filter_bytes);
            self.memory_view = Some(SegmentView::whole(Arc::new(segment)));
        }
        if self.memory.len() >= self.options.memory_items.max(1) {
            self.seal_memory();
        }
        Ok(())
    }

    /// Makes the memory segment an immutable one if there is room; whether it is empty now.
    pub(crate) fn seal_memory(&mut self) -> bool {
        if self.has_room()
            && let Some(view) = self.memory_view.take()
        {
            self.sealed.push(view);
            self.memory = Memory::default();
        }
        self.memory.is_empty()
    }

    /// Whether there may be another immutable segment, and the memory segment after it.
    pub(crate) fn has_room(&self) -> bool {
        self.sealed.len() + 1 < MAX_SEGMENTS
    }

    /// What readers see from now on.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let segments = self.sealed.iter().chain(&self.memory_view).cloned().collect();
        Snapshot::new(self.generation, segments, self.schema.clone(), self.columns.clone())
    }

    pub(crate) fn take_file_number(&mut self) -> u64 {
        self.next_file_number += 1;
        self.next_file_number - 1
    }

    /// The immutable segments as merging sees them.
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let candidate = |view: &SegmentView| Candidate {
            num_live: view.num_live(),
            num_tombstones: view.num_tombstones(),
            is_busy: self.merging.contains(&view.segment().key()),
        };
        self.sealed.iter().map(candidate).collect()
    }

    /// Where these segments, which are neighbours, are now; `None` where they are gone.
    pub(crate) fn place_of(&self, keys: &[u64]) -> Option<Range<usize>> {
        let key = |view: &SegmentView| view.segment().key();
        let first = self.sealed.iter().position(|view| Some(&key(view)) == keys.first())?;
        let range = first..first + keys.len();
        let found = self.sealed.get(range.clone())?;
        found.iter().map(key).eq(keys.iter().copied()).then_some(range)
    }
}
