//! The live catalog: one writer, many readers.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use palmette_catalog::ColumnKind;
use palmette_catalog_filter::{Filter, Moment, nearest};

use crate::background;
use crate::batch_keys::{BatchKey, KeyedApplied};
use crate::checkpoint::{Cause, Keeping, checkpoint};
use crate::error::{Kind, LiveError};
use crate::log_entry;
use crate::manifest::{kept_place, named_place};
use crate::merge::Merge;
use crate::options::MergePolicy;
use crate::shared::{Shared, WriterGuard};
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::status::{KeptGeneration, LiveStatus};
use crate::update::{Applied, RefusedUpdate, Update};
use crate::writer::Writer;

/// Number of times its size the memory segment may grow to before batches wait for room.
const MEMORY_SLACK: usize = 4;

/// A catalog that changes while it is read. See the crate's documentation.
///
/// Its methods may be called from any thread; those that change something wait for one another.
/// Dropping it ends the merges in the background, which may take as long as indexing a large
/// segment, and makes no checkpoint: the log has everything.
#[derive(Debug)]
pub struct LiveCatalog {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl LiveCatalog {
    pub(crate) fn start(shared: Shared) -> Self {
        let shared = Arc::new(shared);
        let threads = Mutex::new(background::start(&shared));
        Self { shared, threads }
    }

    /// The newest generation. It stays as it is for as long as the `Arc` is held. Never waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared.current.load_full()
    }

    /// Applies updates, in their order, as one: readers see all of them or none. When it returns
    /// they are on disk (unless [`SyncPolicy::Never`](crate::SyncPolicy::Never)) and seen by every
    /// [`snapshot`](Self::snapshot) from then on.
    ///
    /// Cost: one forced write, some microseconds an update, and indexing the memory segment. Waits
    /// where merges must make room first, and counts that in [`LiveStatus::waits`].
    ///
    /// # Errors
    /// For the first update that breaks a rule: an empty id, codes that no item may have, an
    /// attribute of another kind than the items before have. When the log cannot be written: the
    /// next batch is tried again. Nothing is applied then; only where the process ends before what
    /// was written can be cut off, the next that opens the catalog may find it applied.
    pub fn apply(&self, updates: &[Update]) -> Result<Applied, LiveError> {
        self.check_own()?;
        let mut writer = self.shared.lock();
        writer.check_sound()?;
        writer = self.wait_for_room(writer);
        let added_columns = writer.state.check(updates)?;
        self.apply_checked(&mut writer, updates, &added_columns, None)
    }

    /// Applies updates once, however often they come by the same key: a repetition changes nothing
    /// and is told what the first batch did. The key is on disk with its batch, so that this holds
    /// after a crash too; of a catalog the latest [`MAX_BATCH_KEYS`] are remembered, whatever
    /// generation it is rolled back to.
    ///
    /// # Errors
    /// When the key came with another fingerprint, or is none, and as [`apply`](Self::apply).
    ///
    /// [`MAX_BATCH_KEYS`]: crate::MAX_BATCH_KEYS
    pub fn apply_keyed(
        &self,
        updates: &[Update],
        key: &BatchKey,
    ) -> Result<KeyedApplied, LiveError> {
        key.check()?;
        self.check_own()?;
        let mut writer = self.shared.lock();
        writer.check_sound()?;
        writer = self.wait_for_room(writer);
        if let Some(applied) = writer.state.keys.first(key)? {
            return Ok(KeyedApplied { applied, is_repeated: true });
        }
        let added_columns = writer.state.check(updates)?;
        let applied = self.apply_checked(&mut writer, updates, &added_columns, Some(key))?;
        Ok(KeyedApplied { applied, is_repeated: false })
    }

    /// Outcome of the first batch of a key; `None` where none is remembered.
    ///
    /// # Errors
    /// When that batch had another fingerprint.
    pub fn first_applied(&self, key: &BatchKey) -> Result<Option<Applied>, LiveError> {
        self.shared.lock().state.keys.first(key)
    }

    /// Applies the updates that keep to the rules, as one, and hands back the others with the rule
    /// that each breaks. An update is judged after those before it that are applied. Nothing is
    /// published where all are refused.
    ///
    /// # Errors
    /// When the log cannot be written, as for [`apply`](Self::apply).
    pub fn apply_valid(
        &self,
        updates: &[Update],
    ) -> Result<(Applied, Vec<RefusedUpdate>), LiveError> {
        self.check_own()?;
        let mut writer = self.shared.lock();
        writer.check_sound()?;
        writer = self.wait_for_room(writer);
        let Judged { valid, added_columns, refused } = judge(&writer.state, updates)?;
        if valid.is_empty() {
            let generation = writer.state.generation;
            return Ok((Applied { generation, ..Applied::default() }, refused));
        }
        Ok((self.apply_checked(&mut writer, &valid, &added_columns, None)?, refused))
    }

    /// The updates that [`apply_valid`](Self::apply_valid) would hand back, for callers that put
    /// them aside before the others are acknowledged.
    ///
    /// # Errors
    /// When a limit of a batch is exceeded.
    pub fn refused(&self, updates: &[Update]) -> Result<Vec<RefusedUpdate>, LiveError> {
        Ok(judge(&self.shared.lock().state, updates)?.refused)
    }

    /// Deletes the items that match a filter, as one batch; an item that is updated meanwhile is
    /// judged as it is then.
    ///
    /// # Errors
    /// When the filter names an attribute that no item ever had, or asks of one what its kind
    /// cannot answer, and as [`apply`](Self::apply).
    pub fn delete_where(&self, filter: &Filter) -> Result<Applied, LiveError> {
        self.check_own()?;
        let mut writer = self.shared.lock();
        writer.check_sound()?;
        let now = writer.state.snapshot();
        let found =
            now.filter(filter).map_err(|e| LiveError::from(Kind::Options(e.to_string())))?;
        let found = now.items().filter(|&at| found.contains(at));
        let updates: Vec<Update> = found.map(|at| Update::Delete(now.id(at).to_owned())).collect();
        if updates.is_empty() {
            return Ok(Applied { generation: writer.state.generation, ..Applied::default() });
        }
        self.apply_checked(&mut writer, &updates, &[], None)
    }

    /// Deletes the items that are over at a moment, by an attribute that is a timestamp, as one
    /// batch.
    ///
    /// # Errors
    /// As [`check_expiry`](Self::check_expiry) and [`apply`](Self::apply).
    pub fn expire(&self, attribute: &str, now: &Moment) -> Result<Applied, LiveError> {
        self.check_expiry(attribute)?;
        let over = Filter::over_at(attribute, now);
        self.delete_where(&over.map_err(|e| LiveError::from(Kind::Options(e.to_string())))?)
    }

    /// Checks that items can expire by an attribute. What can be compared is not yet a time: every
    /// price lies below the seconds since 1970.
    ///
    /// # Errors
    /// When the attribute is none, or no timestamp.
    pub fn check_expiry(&self, attribute: &str) -> Result<(), LiveError> {
        let schema = self.shared.lock().state.schema.clone();
        let what = match schema.kind_of(attribute) {
            Some(ColumnKind::Timestamp) => return Ok(()),
            Some(kind) => format!("is {kind}"),
            None => {
                let names = schema.columns.iter().map(|(name, _)| name.as_str());
                let near = nearest(attribute, names);
                let near = near.map_or_else(String::new, |n| format!(" (did you mean {n:?}?)"));
                format!("is one that no item has{near}")
            }
        };
        Err(Kind::Options(format!(
            "items expire by a timestamp, and the attribute {attribute:?} {what}; declare it when the catalog is made, \
             --column {attribute}=timestamp"
        ))
        .into())
    }

    /// Widens the codebooks, so that later items may have larger codes or more levels; returns the
    /// new generation. A model that has not the codes cannot spell these items.
    ///
    /// # Errors
    /// When a size is smaller than before, a level is left out, or the catalog has no sizes that
    /// bind; when the log cannot be written.
    pub fn widen(&self, codes_per_level: &[u32]) -> Result<u64, LiveError> {
        self.check_own()?;
        let mut writer = self.shared.lock();
        writer.check_sound()?;
        writer.state.schema.check_wider(codes_per_level)?;
        let mut entry = Vec::new();
        log_entry::write_widen(codes_per_level, &mut entry);
        writer.log(&entry)?;
        writer.state.widen(codes_per_level.to_vec());
        writer.index_memory()?;
        self.shared.publish(&writer);
        Ok(writer.state.generation)
    }

    /// Refuses where changes come from a shared log alone.
    fn check_own(&self) -> Result<(), LiveError> {
        match &self.shared.shared_log {
            None => Ok(()),
            Some(log) => {
                Err(Kind::Replica { path: self.shared.dir.clone(), log: log.clone() }.into())
            }
        }
    }

    /// Waits, where the memory segment is far too large, for merges to make room.
    pub(crate) fn wait_for_room<'a>(&'a self, mut writer: WriterGuard<'a>) -> WriterGuard<'a> {
        let most = writer.state.options.memory_items.max(1) * MEMORY_SLACK;
        let must_wait = |writer: &Writer| {
            let can_wait = writer.state.options.merging != MergePolicy::Never
                && writer.counts.merge_error.is_none()
                && !writer.is_closed;
            !writer.state.has_room() && writer.state.memory.len() >= most && can_wait
        };
        if must_wait(&writer) {
            writer.counts.waits += 1;
            while must_wait(&writer) {
                writer = self.shared.wait(writer);
            }
        }
        writer
    }

    /// Logs, applies and publishes a batch.
    fn apply_checked(
        &self,
        writer: &mut Writer,
        updates: &[Update],
        added_columns: &[(String, ColumnKind)],
        key: Option<&BatchKey>,
    ) -> Result<Applied, LiveError> {
        let mut entry = Vec::new();
        log_entry::write_batch(updates, key, &mut entry);
        writer.log(&entry)?;
        writer.counts.updates_logged += updates.len() as u64;
        let applied = writer.state.apply(updates, added_columns);
        if let Some(key) = key {
            writer.state.keys.add(key.clone(), applied);
        }
        writer.index_memory()?;
        self.shared.publish(writer);
        Ok(applied)
    }

    /// Puts everything in files, so that opening replays nothing. In the background it happens by
    /// itself ([`checkpoint_bytes`](crate::LiveOptions::checkpoint_bytes)). Returns the generation
    /// in the files.
    ///
    /// # Errors
    /// When a file cannot be written; the checkpoint before it then stands.
    pub fn checkpoint(&self) -> Result<u64, LiveError> {
        checkpoint(&self.shared, Keeping::AsItIs, Cause::Wish)
    }

    /// Refuses a name that could be the number of a generation, by which they are named too.
    ///
    /// # Errors
    /// When it has nothing but digits.
    pub fn check_generation_name(name: &str) -> Result<(), LiveError> {
        match name.bytes().all(|byte| byte.is_ascii_digit()) {
            true => Err(Kind::GenerationName { name: name.to_owned() }.into()),
            false => Ok(()),
        }
    }

    /// Keeps the newest generation until it is forgotten, so that it can be gone back to; returns
    /// its number. The name is for people and need not be new. Cost: a checkpoint, and the room of
    /// what is kept.
    ///
    /// # Errors
    /// When the name is empty or a number ([`check_generation_name`](Self::check_generation_name)),
    /// and as [`checkpoint`](Self::checkpoint).
    pub fn keep(&self, name: Option<&str>) -> Result<u64, LiveError> {
        name.map_or(Ok(()), Self::check_generation_name)?;
        self.check_own()?;
        checkpoint(&self.shared, Keeping::Keep { name: name.map(str::to_owned) }, Cause::Wish)
    }

    /// Lets go of a kept generation.
    ///
    /// # Errors
    /// When it is not kept, and as [`checkpoint`](Self::checkpoint).
    pub fn forget(&self, generation: u64) -> Result<(), LiveError> {
        self.check_own()?;
        checkpoint(&self.shared, Keeping::Forget { generation }, Cause::Wish).map(|_| ())
    }

    /// The generations that are kept, in the order in which they were. Never waits.
    pub fn generations(&self) -> Vec<KeptGeneration> {
        self.shared.status.load().kept.clone()
    }

    /// The number of a kept generation that is named by its number or name; of equal names the
    /// latest.
    ///
    /// # Errors
    /// When it is not kept; the message names those that are.
    pub fn kept_generation(&self, name: &str) -> Result<u64, LiveError> {
        let writer = self.shared.lock();
        let kept = &writer.state.kept;
        Ok(kept[named_place(kept, name)?].contents.generation)
    }

    /// Publishes, as a new generation, the contents that a kept one had; returns the new one's
    /// number. Snapshots of what was before stay as they are.
    ///
    /// # Errors
    /// When the generation is not kept; the message names those that are. When its files cannot be
    /// opened, or the log cannot be written.
    pub fn rollback(&self, generation: u64) -> Result<u64, LiveError> {
        self.check_own()?;
        let mut entry = Vec::new();
        log_entry::write_rollback(generation, &mut entry);
        self.roll_back(generation, &entry)
    }

    /// Goes back to a kept generation, by an entry that is written as it is.
    pub(crate) fn roll_back(&self, generation: u64, entry: &[u8]) -> Result<u64, LiveError> {
        // No checkpoint may take the files away meanwhile.
        let mut checkpoints =
            self.shared.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let mut writer = self.shared.lock();
        writer.check_sound()?;
        let place = kept_place(&writer.state.kept, generation)?;
        let contents = writer.state.kept[place].contents.clone();
        let opened = writer.state.open(&contents)?;
        writer.log(entry)?;
        checkpoints.opened(&opened);
        writer.state.install(opened);
        writer.index_memory()?;
        self.shared.publish(&writer);
        Ok(writer.state.generation)
    }

    /// Begins to merge neighbouring immutable segments, given by their places, the oldest being 0.
    /// `None` when there are no such segments, one is being merged already, or the catalog is
    /// closed. For callers that merge by themselves, see [`MergePolicy::Never`].
    pub fn begin_merge(&self, segments: Range<usize>) -> Option<Merge> {
        let mut writer = self.shared.lock();
        if writer.is_closed {
            return None;
        }
        Merge::begin(&self.shared, &mut writer, segments)
    }

    /// Makes one segment, without tombstones, of all that was there when it was called. Updates go
    /// on meanwhile.
    ///
    /// # Errors
    /// As [`Merge::build`].
    pub fn merge_all(&self) -> Result<(), LiveError> {
        loop {
            let mut writer = self.shared.lock();
            while writer.counts.merges_running > 0 {
                writer = self.shared.wait(writer);
            }
            if writer.is_closed {
                writer.check_sound()?;
            }
            let was_sealed = writer.state.seal_memory();
            let all = 0..writer.state.sealed.len();
            let is_clean = match &writer.state.sealed[..] {
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

    /// Waits until nothing is being merged and nothing is due to be. With updates going on that may
    /// never be. Returns at once where merging fails; [`status`](Self::status) then says why.
    pub fn wait_for_merges(&self) {
        let mut writer = self.shared.lock();
        while writer.counts.merge_error.is_none()
            && !writer.is_closed
            && (writer.counts.merges_running > 0 || background::any_due(&writer))
        {
            writer = self.shared.wait(writer);
        }
    }

    /// Ends the work in the background, and takes no more updates: nothing is written to the
    /// directory from then on, so that it may be moved or removed while others still hold this
    /// catalog. Snapshots go on. Takes as long as dropping it.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::Relaxed);
        // Under the lock, so that no thread is between looking and waiting.
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A thread that panicked has nothing left to end.
            _ = thread.join();
        }
    }

    /// Numbers for people and metrics, as of the last change that was finished. Never waits for one
    /// that is going on.
    pub fn status(&self) -> LiveStatus {
        LiveStatus::clone(&self.shared.status.load())
    }

    /// Runs a function while no change can go on: for tests of what must not wait for one.
    #[doc(hidden)]
    pub fn while_held<T>(&self, run: impl FnOnce() -> T) -> T {
        let _held = self.shared.lock();
        run()
    }
}

impl Drop for LiveCatalog {
    fn drop(&mut self) {
        self.close();
    }
}

/// A batch, parted into the updates that keep to the rules and the others.
struct Judged {
    valid: Vec<Update>,
    /// Attributes that the valid updates bring.
    added_columns: Vec<(String, ColumnKind)>,
    refused: Vec<RefusedUpdate>,
}

/// Parts a batch. What a refused update brings, an attribute's kind for one, may decide about a
/// later one, so that the rest is judged anew until none is refused.
fn judge(state: &State, updates: &[Update]) -> Result<Judged, LiveError> {
    let mut places: Vec<usize> = (0..updates.len()).collect();
    let (mut valid, mut refused) = (updates.to_vec(), Vec::<RefusedUpdate>::new());
    loop {
        let checked = state.schema.check_batch(&valid, &|id| state.codes(id))?;
        if checked.refused.is_empty() {
            refused.sort_by_key(|refused| refused.index);
            return Ok(Judged { valid, added_columns: checked.added_columns, refused });
        }
        for found in checked.refused.into_iter().rev() {
            let index = places.remove(found.index);
            valid.remove(found.index);
            refused.push(RefusedUpdate { index, ..found });
        }
    }
}
