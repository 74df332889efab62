//! The live catalog: one writer, many readers.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use crate::background;
use crate::checkpoint::{Keeping, checkpoint};
use crate::error::{Kind, LiveError};
use crate::log_entry;
use crate::manifest::Kept;
use crate::merge::Merge;
use crate::open;
use crate::options::MergePolicy;
use crate::segment::SegmentView;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::status::{KeptGeneration, LiveStatus, SegmentStatus};
use crate::update::{Applied, Update};
use crate::writer::Writer;

/// How many times its size the memory segment may grow to before batches wait for room.
const MEMORY_SLACK: usize = 4;

/// A catalog that changes while it is read. See the crate's documentation.
///
/// Its methods may be called from any thread; those that change something wait for one another. Dropping
/// it ends the merges in the background, which may take as long as indexing a large segment, and makes no
/// checkpoint: the log has everything.
#[derive(Debug)]
pub struct LiveCatalog {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl LiveCatalog {
    pub(crate) fn start(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        let threads = background::start(&shared);
        Self { shared, threads }
    }

    /// The newest generation. It stays as it is for as long as the `Arc` is held. Never waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.current.load_full()
    }

    /// Applies updates, in their order, as one: readers see all of them or none. When it returns they are
    /// on disk (unless [`SyncPolicy::Never`](crate::SyncPolicy::Never)) and seen by every
    /// [`snapshot`](Self::snapshot) from then on.
    ///
    /// Cost: one forced write, some microseconds an update, and indexing the memory segment. Waits where
    /// merges must make room first, and counts that in [`LiveStatus::waits`].
    ///
    /// # Errors
    /// For the first update that breaks a rule: an empty id, codes that no item may have, an attribute of
    /// another kind than the items before have. Nothing is applied then. When the log cannot be written:
    /// no updates are taken then until the catalog is opened again, and that may find this batch applied.
    pub fn apply(&self, updates: &[Update]) -> Result<Applied, LiveError> {
        let mut writer = self.shared.lock();
        writer.check_sound()?;
        let most = writer.options.memory_items.max(1) * MEMORY_SLACK;
        let must_wait = |writer: &Writer| {
            let can_wait =
                writer.options.merging != MergePolicy::Never && writer.counts.merge_error.is_none();
            !writer.has_room() && writer.memory.len() >= most && can_wait
        };
        if must_wait(&writer) {
            writer.counts.waits += 1;
            while must_wait(&writer) {
                writer = self.shared.wait(writer);
            }
        }
        let added_columns = writer.schema.check_batch(updates)?;
        let mut entry = Vec::new();
        log_entry::write_batch(updates, &mut entry);
        writer.log(&entry)?;
        let applied = writer.apply(updates, &added_columns);
        writer.index_memory()?;
        self.shared.publish(&writer);
        Ok(applied)
    }

    /// Puts everything in files, so that opening replays nothing. In the background it happens by itself
    /// ([`checkpoint_bytes`](crate::LiveOptions::checkpoint_bytes)). Returns the generation in the files.
    ///
    /// # Errors
    /// When a file cannot be written; the checkpoint before it then stands.
    pub fn checkpoint(&self) -> Result<u64, LiveError> {
        checkpoint(&self.shared, Keeping::AsItIs)
    }

    /// Keeps the newest generation until it is forgotten, so that it can be gone back to; returns its
    /// number. The name is for people and need not be new. Cost: a checkpoint, and the room of what is
    /// kept.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn keep(&self, name: Option<&str>) -> Result<u64, LiveError> {
        checkpoint(&self.shared, Keeping::Keep { name: name.map(str::to_owned) })
    }

    /// Lets go of a kept generation.
    ///
    /// # Errors
    /// When it is not kept, and as [`checkpoint`](Self::checkpoint).
    pub fn forget(&self, generation: u64) -> Result<(), LiveError> {
        checkpoint(&self.shared, Keeping::Forget { generation }).map(|_| ())
    }

    /// The generations that are kept, in the order in which they were.
    pub fn generations(&self) -> Vec<KeptGeneration> {
        kept_generations(&self.shared.lock().kept)
    }

    /// Publishes, as a new generation, the contents that a kept one had; returns the new one's number.
    /// Snapshots of what was before stay as they are.
    ///
    /// # Errors
    /// When the generation is not kept; the message names those that are. When its files cannot be
    /// opened, or the log cannot be written.
    pub fn rollback(&self, generation: u64) -> Result<u64, LiveError> {
        // No checkpoint may take the files away meanwhile.
        let mut checkpoints =
            self.shared.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = self.shared.lock();
        writer.check_sound()?;
        let place = kept_place(&writer.kept, generation)?;
        let contents = writer.kept[place].contents.clone();
        let opened = open::open_contents(&writer, &contents)?;
        let mut entry = Vec::new();
        log_entry::write_rollback(generation, &mut entry);
        writer.log(&entry)?;
        opened.install(&mut writer, &mut checkpoints);
        writer.index_memory()?;
        self.shared.publish(&writer);
        Ok(writer.generation)
    }

    /// Begins to merge neighbouring immutable segments, given by their places, the oldest being 0. `None`
    /// when there are no such segments or one is being merged already. For callers that merge by
    /// themselves, see [`MergePolicy::Never`].
    pub fn begin_merge(&self, segments: Range<usize>) -> Option<Merge> {
        Merge::begin(&self.shared, &mut self.shared.lock(), segments)
    }

    /// Makes one segment, without tombstones, of all that was there when it was called. Updates go on
    /// meanwhile.
    ///
    /// # Errors
    /// As [`Merge::build`].
    pub fn merge_all(&self) -> Result<(), LiveError> {
        loop {
            let mut writer = self.shared.lock();
            while writer.counts.merges_running > 0 {
                writer = self.shared.wait(writer);
            }
            let was_sealed = writer.seal_memory();
            let all = 0..writer.sealed.len();
            let is_clean = match &writer.sealed[..] {
                [] => true,
                [only] => only.num_tombstones() == 0,
                _ => false,
            };
            if !is_clean && let Some(mut merge) = Merge::begin(&self.shared, &mut writer, all) {
                drop(writer);
                merge.build()?;
                merge.commit();
            }
            if was_sealed {
                return Ok(());
            }
        }
    }

    /// Waits until nothing is being merged and nothing is due to be. With updates going on that may never
    /// be. Returns at once where merging fails; [`status`](Self::status) then says why.
    pub fn wait_for_merges(&self) {
        let mut writer = self.shared.lock();
        while writer.counts.merge_error.is_none()
            && (writer.counts.merges_running > 0 || background::any_due(&writer))
        {
            writer = self.shared.wait(writer);
        }
    }

    /// Numbers for people and metrics.
    pub fn status(&self) -> LiveStatus {
        let writer = self.shared.lock();
        let views: Vec<&SegmentView> = writer.sealed.iter().chain(&writer.memory_view).collect();
        let segment = |view: &&SegmentView| SegmentStatus {
            num_items: view.segment().catalog().num_items(),
            num_live: view.num_live(),
            bytes: view.segment().catalog().file_bytes(),
            is_written: view.segment().is_written(),
            is_merging: writer.merging.contains(&view.segment().key()),
        };
        let counts = writer.counts.clone();
        LiveStatus {
            generation: writer.generation,
            num_items: views.iter().map(|view| view.num_live()).sum(),
            num_tombstones: views.iter().map(|view| view.num_tombstones()).sum(),
            segments: views.iter().map(segment).collect(),
            memory_items: writer.memory.len() as u64,
            kept: kept_generations(&writer.kept),
            wal_bytes: writer.wal.bytes(),
            torn_bytes: counts.torn_bytes,
            merges_running: counts.merges_running,
            merges_done: counts.merges_done,
            items_merged: counts.items_merged,
            checkpoints_done: counts.checkpoints_done,
            waits: counts.waits,
            background_error: counts.merge_error.or(counts.checkpoint_error),
        }
    }
}

impl Drop for LiveCatalog {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::Relaxed);
        // Under the lock, so that no thread is between looking and waiting.
        drop(self.shared.lock());
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to end.
            _ = thread.join();
        }
    }
}

fn kept_generations(kept: &[Kept]) -> Vec<KeptGeneration> {
    let generation = |kept: &Kept| KeptGeneration {
        generation: kept.contents.generation,
        name: kept.name.clone(),
        num_items: kept.contents.num_items(),
    };
    kept.iter().map(generation).collect()
}

/// Where a generation is among those that are kept.
pub(crate) fn kept_place(kept: &[Kept], generation: u64) -> Result<usize, LiveError> {
    let place = kept.iter().position(|kept| kept.contents.generation == generation);
    place.ok_or_else(|| {
        let numbers: Vec<String> = kept
            .iter()
            .map(|kept| match &kept.name {
                Some(name) => format!("{} ({name})", kept.contents.generation),
                None => kept.contents.generation.to_string(),
            })
            .collect();
        let kept = match numbers.is_empty() {
            true => "none is; keep one before it is needed".to_owned(),
            false => format!("kept are {}", numbers.join(", ")),
        };
        Kind::NotKept { generation, kept }.into()
    })
}
