//! The single writer: the state, the log before it, and the merges that are under way.

use std::collections::HashSet;
use std::io;
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
    /// Reason why nothing more is taken.
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
    /// Error of the last record that was to be logged.
    pub(crate) write_error: Option<String>,
    pub(crate) merge_error: Option<String>,
    pub(crate) checkpoint_error: Option<String>,
    /// Updates since the last checkpoint.
    pub(crate) updates_logged: u64,
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

    /// Fails unless updates can be taken.
    pub(crate) fn check_sound(&self) -> Result<(), LiveError> {
        match self.poisoned.clone() {
            _ if self.is_closed => Err(Kind::Closed { path: self.state.dir.clone() }.into()),
            Some(problem) => Err(Kind::Poisoned { path: self.state.dir.clone(), problem }.into()),
            None => Ok(()),
        }
    }

    /// Logs what makes the next generation. After an error the log is as it was, and the next is
    /// tried again.
    pub(crate) fn log(&mut self, entry: &[u8]) -> Result<(), LiveError> {
        let generation = self.state.generation + 1;
        if self.wal.is_empty() && !self.wal.begins_with(generation) {
            // A checkpoint that was to make a generation failed after the log had begun anew.
            self.wal = Wal::create(&self.state.dir, generation, self.is_forced())?;
        }
        let appended = self.wal.append(generation, entry, self.is_forced());
        self.counts.write_error = appended.as_ref().err().map(io::Error::to_string);
        appended.map_err(|error| Kind::NotLogged { path: self.state.dir.clone(), error })?;
        self.state.generation = generation;
        Ok(())
    }

    /// True if each record is forced to the disk.
    pub(crate) fn is_forced(&self) -> bool {
        self.state.options.sync == SyncPolicy::EveryBatch
    }

    /// Tries whether the log can be written again, where it could not be.
    pub(crate) fn try_to_write(&mut self) {
        if self.counts.write_error.is_some() {
            self.counts.write_error = self.wal.try_to_write().err().map(|error| error.to_string());
        }
    }

    /// Indexes the memory segment; after an error nothing more is taken.
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
            write_error: counts.write_error.clone().or_else(|| self.poisoned.clone()),
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

    /// Place of these neighbouring segments now; `None` where they are gone.
    pub(crate) fn place_of(&self, keys: &[u64]) -> Option<Range<usize>> {
        let key = |view: &SegmentView| view.segment().key();
        let sealed = &self.state.sealed;
        let first = sealed.iter().position(|view| Some(&key(view)) == keys.first())?;
        let range = first..first + keys.len();
        let found = sealed.get(range.clone())?;
        found.iter().map(key).eq(keys.iter().copied()).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use palmette_catalog::Item;

    use crate::faults::{FAULTS, Faults, NO_FAULTS, open_faulty};
    use crate::{LiveCatalog, LiveOptions, LiveReader, ReaderOptions, Update};

    fn batch(id: &str) -> [Update; 1] {
        let (id, codes) = (id.to_owned(), vec![1, 2]);
        [Update::Upsert(Item { id, codes, attributes: Default::default() })]
    }

    /// A batch that cannot be logged is refused whole, and neither the next one nor a reader knows
    /// of it; that nothing can be written is shown until it is found that it can.
    #[test]
    fn a_catalog_goes_on_after_a_fault_of_its_disk() {
        let dir = tempfile::tempdir().expect("a folder");
        let open = || LiveCatalog::open_with(dir.path(), LiveOptions::default()).expect("sound");
        let live = LiveCatalog::create_with(dir.path(), None, None, LiveOptions::default());
        let live = live.expect("new");
        live.apply(&batch("a")).expect("room");
        let reader =
            LiveReader::open_with(dir.path(), ReaderOptions { poll: None, ..Default::default() });
        let reader = reader.expect("sound");
        for fault in [
            Faults { room: 200, ..NO_FAULTS },
            Faults { room: 200, lens: 1, ..NO_FAULTS },
            Faults { forces: 1, ..NO_FAULTS },
            Faults { forces: 1, opens: 1, ..NO_FAULTS },
        ] {
            live.shared.lock().wal.write_by(open_faulty);
            FAULTS.set(fault);
            let before = live.snapshot().generation();
            let long = format!("{}{}", "x".repeat(200), before);
            let error = live.apply(&batch(&long)).expect_err("a fault");
            assert!(error.is_passing() && error.to_string().contains("cannot write"), "{error}");
            assert_eq!(live.snapshot().generation(), before);
            assert_eq!(reader.refresh().expect("sound"), before);
            FAULTS.set(NO_FAULTS);
            // The thread of the checkpoints finds out, without a change.
            while live.status().write_error.is_some() {
                std::thread::sleep(Duration::from_millis(20));
            }
            let after = live.apply(&batch(&format!("b{before}"))).expect("room").generation;
            assert_eq!((after, reader.refresh().expect("sound")), (before + 1, after));
            assert!(live.snapshot().find(&long).is_none());
            assert!(reader.snapshot().find(&long).is_none());
        }
        live.apply(&batch("c")).expect("room");
        let (generation, num_items) = (live.snapshot().generation(), live.status().num_items);
        drop(live);
        let again = open();
        assert_eq!(
            (again.snapshot().generation(), again.status().num_items),
            (generation, num_items)
        );
        assert_eq!(num_items, 6);
    }
}
