//! Catalogs that follow a shared log: many copies of one catalog, each in a directory of its own.
//!
//! A **shared log** is a numbered sequence of entries that has its home elsewhere
//! (`palmette-catalog-replica`). Its entry `g` makes generation `g` of the catalog, so that equal
//! generations mean equal items, in the same order, on every replica. What a directory holds is a
//! cache: its own log has the entries again, so that a restart need not fetch them, and whatever is
//! lost of it comes from the shared log or from a **base**, a catalog of all items at one
//! generation.
//!
//! [`Proposal`] makes entries: each is judged exactly as it will be when it is applied, by the
//! newest state and the entries before it in the proposal. An entry that was made so and cannot be
//! applied is a sign of damage, of another program, or of a foreign log:
//! [`LiveCatalog::apply_entries`] refuses it, and nothing after it is applied.
//!
//! Keeping and forgetting generations are entries too, and make a generation each.
//!
//! Whole numbers among attributes are written as whole numbers, however they were spelled (`3.0` as
//! `3`): a segment shows all of a column's numbers alike, and segments differ from replica to
//! replica.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, Catalog, CatalogBuilder, Item};
use palmette_catalog_filter::ColumnKind;
use serde_json::{Map, Value};

use crate::batch_keys::{self, BatchKey, BatchKeys, KeyedApplied};
use crate::checkpoint::{Cause, Keeping, KeysFile, checkpoint, delete_others};
use crate::error::{Kind, LiveError};
use crate::live::LiveCatalog;
use crate::log_entry::{self, LogEntry};
use crate::manifest::{
    Contents, KeptEntry, Manifest, SegmentEntry, departed_file, kept_place, keys_file, segment_file,
};
use crate::memory::departed_catalog;
use crate::open::{lock_new, open_as, open_locked};
use crate::options::{LiveOptions, SyncPolicy};
use crate::reader::{LiveReader, ReaderOptions};
use crate::schema::Schema;
use crate::segment::SegmentView;
use crate::shared::WriterGuard;
use crate::snapshot::Snapshot;
use crate::status::KeptGeneration;
use crate::update::{Applied, Update};
use crate::wal::Wal;

/// The file of a base with its items.
pub const BASE_CATALOG: &str = "catalog.palmcat";
/// The file of a base with the ids and codes of deleted items; there where any are known.
pub const BASE_DEPARTED: &str = "departed.palmcat";
/// The file of a base with the keys of the latest batches; there where any had one.
pub const BASE_KEYS: &str = "keys.palmkeys";

/// Everything that a catalog is at one generation, to be written as a [base](self).
#[derive(Debug)]
pub struct Base {
    generation: u64,
    snapshot: Arc<Snapshot>,
    keys: BatchKeys,
    /// Generations that are kept then; each needs a base of its own.
    pub kept: Vec<KeptGeneration>,
}

/// Files of a base in a directory, to begin a replica with.
#[derive(Clone, Debug)]
pub struct BaseFiles {
    /// The directory: [`BASE_CATALOG`], and the others where they are there. Files are moved out of
    /// it.
    pub dir: PathBuf,
    /// The generation of the items.
    pub generation: u64,
    /// Rules and kinds of attributes at that generation.
    pub schema: Schema,
    /// Generations that are kept, each with the directory of its base.
    pub kept: Vec<(u64, Option<String>, PathBuf)>,
}

/// Effect of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryDone {
    /// A batch, or the repetition of one.
    Batch(KeyedApplied),
    /// Anything else.
    Other,
}

/// An entry that was proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposed {
    /// An entry that will make this generation.
    Entry(u64),
    /// A batch that came before, by its key: nothing is to be added.
    Repeated(Applied),
    /// An entry that must be judged after those before it were applied.
    Later,
}

/// Entries that follow the newest generation of a replica, and are to be added to its log together.
#[derive(Debug)]
pub struct Proposal {
    /// The generation that the first entry follows.
    after: u64,
    entries: Vec<Vec<u8>>,
    /// Attributes that entries bring.
    added_columns: Vec<(String, ColumnKind)>,
    /// Codes of items that entries change; `None` where they are gone.
    changed: HashMap<String, Option<Vec<u32>>>,
    keys: HashSet<String>,
    /// True where nothing can be judged before these entries are applied.
    is_closed: bool,
}

impl Proposal {
    /// The generation that the first entry follows.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// The generation that the next entry would make.
    pub fn next(&self) -> u64 {
        self.after + self.entries.len() as u64 + 1
    }

    /// The entries, as they are to be applied.
    pub fn entries(&self) -> &[Vec<u8>] {
        &self.entries
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(Vec::len).sum()
    }

    fn add(&mut self, entry: Vec<u8>) -> Proposed {
        self.entries.push(entry);
        Proposed::Entry(self.next() - 1)
    }

    /// Adds an entry after which nothing can be judged.
    fn add_last(&mut self, entry: Vec<u8>) -> Proposed {
        self.is_closed = true;
        self.add(entry)
    }
}

impl LiveCatalog {
    /// Opens the directory of a replica, and replays what it has of the shared log of this
    /// identity.
    ///
    /// # Errors
    /// When it follows another log or none, and as [`open`](Self::open). A directory that is
    /// damaged may be removed: its contents are in the shared log.
    pub fn open_replica(
        dir: &Path,
        shared_log: &str,
        options: LiveOptions,
    ) -> Result<Self, LiveError> {
        open_as(dir, options, Some(shared_log))
    }

    /// Makes the directory of a replica from a base.
    ///
    /// # Errors
    /// When there is a live catalog in the directory, or the base is damaged or breaks its own
    /// rules.
    pub fn create_replica(
        dir: &Path,
        shared_log: &str,
        base: &BaseFiles,
        options: LiveOptions,
    ) -> Result<Self, LiveError> {
        let lock_file = lock_new(dir)?;
        let placed = place(dir, base, 0)?;
        Wal::create(dir, base.generation + 1, options.sync == SyncPolicy::EveryBatch)?;
        placed.manifest(1, shared_log).write(dir)?;
        open_locked(dir, options, Some(shared_log), lock_file)
    }

    /// Continues from a base in place of entries that are gone. Readers see its generation at once.
    ///
    /// # Errors
    /// As [`create_replica`](Self::create_replica), and when the catalog is past the base's
    /// generation.
    pub fn install_base(&self, base: &BaseFiles) -> Result<(), LiveError> {
        let shared = &self.shared;
        let shared_log = self.shared_log()?;
        let mut checkpoints = shared.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let manifest = {
            let mut writer = shared.lock();
            writer.check_sound()?;
            let (now, generation) = (writer.state.generation, base.generation);
            if generation <= now {
                return Err(Kind::Repeated { generation, now }.into());
            }
            let placed = place(&shared.dir, base, writer.state.next_file_number)?;
            let opened = writer.state.open(&placed.contents)?;
            let keys = match placed.keys_generation {
                Some(generation) => batch_keys::read(&shared.dir.join(keys_file(generation)))?,
                None => BatchKeys::default(),
            };
            writer.wal.sync()?;
            let wal = Wal::create(&shared.dir, generation + 1, writer.is_forced())?;
            let manifest = placed.manifest(checkpoints.number + 1, shared_log);
            // Before its number is used: after an error the newest manifest is the one before, and
            // its log goes on.
            manifest.write(&shared.dir)?;
            writer.wal = wal;
            checkpoints.number = manifest.number;
            checkpoints.live_files.clear();
            checkpoints.opened(&opened);
            checkpoints.keys =
                KeysFile { generation: placed.keys_generation, num_added: keys.num_added() };
            writer.counts.updates_logged = 0;
            let state = &mut writer.state;
            state.next_file_number = placed.next_file_number;
            state.kept = placed.kept;
            state.keys = keys;
            state.generation = generation;
            state.set_schema(placed.schema);
            state.install(opened);
            writer.index_memory()?;
            shared.publish(&writer);
            manifest
        };
        delete_others(shared, &mut checkpoints, &manifest)
    }

    /// Identity of the shared log that this catalog follows.
    ///
    /// # Errors
    /// When it follows none.
    pub fn shared_log(&self) -> Result<&str, LiveError> {
        let of = self.shared.shared_log.as_deref();
        of.ok_or_else(|| Kind::NoReplica { path: self.shared.dir.clone() }.into())
    }

    /// Applies entries of the shared log, the first of which makes `first`; readers see the last of
    /// them, or some of those before. What each did is told in their order.
    ///
    /// Cost: some microseconds an update, and indexing the memory segment, once for all entries
    /// while they fit. Waits where merges must make room first.
    ///
    /// # Errors
    /// For the first entry that was applied before, does not follow the newest generation, cannot
    /// be read, or breaks a rule: those before it are applied then.
    pub fn apply_entries(
        &self,
        first: u64,
        entries: &[&[u8]],
    ) -> Result<Vec<EntryDone>, LiveError> {
        self.shared_log()?;
        let mut done = Vec::with_capacity(entries.len());
        let mut run = self.shared.lock();
        for (generation, bytes) in (first..).zip(entries) {
            run = self.wait_for_room(run);
            let outcome = self.apply_in_run(run, generation, bytes);
            match outcome {
                Ok((guard, outcome)) => {
                    run = guard;
                    done.push(outcome);
                }
                Err(error) => {
                    // Those before it are seen.
                    let mut run = self.shared.lock();
                    if !done.is_empty() && run.check_sound().is_ok() {
                        run.index_memory()?;
                        self.shared.publish(&run);
                    }
                    return Err(error);
                }
            }
        }
        run.index_memory()?;
        self.shared.publish(&run);
        Ok(done)
    }

    /// Applies one entry; what readers see is for the caller to publish.
    fn apply_in_run<'a>(
        &'a self,
        mut run: WriterGuard<'a>,
        generation: u64,
        bytes: &[u8],
    ) -> Result<(WriterGuard<'a>, EntryDone), LiveError> {
        run.check_sound()?;
        let now = run.state.generation;
        if generation <= now {
            return Err(Kind::Repeated { generation, now }.into());
        }
        if generation != now + 1 {
            return Err(Kind::Gap { generation, now }.into());
        }
        let wrong = |problem: String| LiveError::from(Kind::Entry { generation, problem });
        let entry = log_entry::read(bytes).ok_or_else(|| {
            wrong("this program does not understand it; was it written by a newer one?".to_owned())
        })?;
        match entry {
            LogEntry::Batch { updates, key } => {
                let first = key.as_ref().map(|key| run.state.keys.first(key)).transpose();
                if let Some(applied) = first.map_err(|error| wrong(error.to_string()))?.flatten() {
                    // A generation of its own all the same: its number is that of the entry.
                    let mut nothing = Vec::new();
                    log_entry::write_batch(&[], None, &mut nothing);
                    run.log(&nothing)?;
                    return Ok((
                        run,
                        EntryDone::Batch(KeyedApplied { applied, is_repeated: true }),
                    ));
                }
                let added_columns =
                    run.state.check(&updates).map_err(|error| wrong(error.to_string()))?;
                run.log(bytes)?;
                run.counts.updates_logged += updates.len() as u64;
                let applied = run.state.apply(&updates, &added_columns);
                if let Some(key) = key {
                    run.state.keys.add(key, applied);
                }
                if run.state.is_memory_full() && run.state.has_room() {
                    run.index_memory()?;
                    self.shared.publish(&run);
                }
                Ok((run, EntryDone::Batch(KeyedApplied { applied, is_repeated: false })))
            }
            LogEntry::Widen { codes_per_level } => {
                let wider = run.state.schema.check_wider(&codes_per_level);
                wider.map_err(|error| wrong(error.to_string()))?;
                run.log(bytes)?;
                run.state.widen(codes_per_level);
                Ok((run, EntryDone::Other))
            }
            // These take the lock of checkpoints, which comes before the writer's.
            LogEntry::Rollback { to } => {
                kept_place(&run.state.kept, to).map_err(|error| wrong(error.to_string()))?;
                drop(run);
                self.roll_back(to, bytes)?;
                Ok((self.shared.lock(), EntryDone::Other))
            }
            LogEntry::Keep { name } => {
                run.index_memory()?;
                drop(run);
                checkpoint(&self.shared, Keeping::Keep { name }, Cause::Entry)?;
                Ok((self.shared.lock(), EntryDone::Other))
            }
            LogEntry::Forget { generation } => {
                kept_place(&run.state.kept, generation)
                    .map_err(|error| wrong(error.to_string()))?;
                run.index_memory()?;
                drop(run);
                checkpoint(&self.shared, Keeping::Forget { generation }, Cause::Entry)?;
                Ok((self.shared.lock(), EntryDone::Other))
            }
        }
    }

    /// Begins a proposal of entries that follow the newest generation.
    pub fn proposal(&self) -> Proposal {
        Proposal {
            after: self.shared.lock().state.generation,
            entries: Vec::new(),
            added_columns: Vec::new(),
            changed: HashMap::new(),
            keys: HashSet::new(),
            is_closed: false,
        }
    }

    /// Proposes a batch. Nothing is applied.
    ///
    /// # Errors
    /// As [`apply_keyed`](Self::apply_keyed): the batch is not in the proposal then.
    pub fn propose_batch(
        &self,
        proposal: &mut Proposal,
        updates: &[Update],
        key: Option<&BatchKey>,
    ) -> Result<Proposed, LiveError> {
        if let Some(key) = key {
            key.check()?;
        }
        let writer = self.shared.lock();
        if proposal.is_closed || writer.state.generation != proposal.after {
            return Ok(Proposed::Later);
        }
        if let Some(key) = key {
            if let Some(applied) = writer.state.keys.first(key)? {
                return Ok(Proposed::Repeated(applied));
            }
            if proposal.keys.contains(&key.name) {
                return Ok(Proposed::Later);
            }
        }
        let updates: Vec<Update> = updates.iter().map(whole_numbers).collect();
        let mut schema = Cow::Borrowed(&*writer.state.schema);
        if !proposal.added_columns.is_empty() {
            schema.to_mut().add_columns(&proposal.added_columns);
        }
        let codes = |id: &str| match proposal.changed.get(id) {
            Some(codes) => codes.clone(),
            None => writer.state.codes(id),
        };
        let checked = schema.check_batch(&updates, &codes)?;
        if let Some(refused) = checked.refused.into_iter().next() {
            return Err(refused.into());
        }
        proposal.added_columns.extend(checked.added_columns);
        for update in &updates {
            match update {
                Update::Upsert(item) => {
                    proposal.changed.insert(item.id.clone(), Some(item.codes.clone()));
                }
                Update::Delete(id) => _ = proposal.changed.insert(id.clone(), None),
                Update::Patch { .. } => {}
            }
        }
        proposal.keys.extend(key.map(|key| key.name.clone()));
        let mut entry = Vec::new();
        log_entry::write_batch(&updates, key, &mut entry);
        Ok(proposal.add(entry))
    }

    /// Proposes wider codebooks; see [`widen`](Self::widen).
    ///
    /// # Errors
    /// When they are not wider.
    pub fn propose_widen(
        &self,
        proposal: &mut Proposal,
        codes_per_level: &[u32],
    ) -> Result<Proposed, LiveError> {
        let mut entry = Vec::new();
        log_entry::write_widen(codes_per_level, &mut entry);
        self.propose_alone(proposal, entry, |writer| {
            writer.state.schema.check_wider(codes_per_level)
        })
    }

    /// Proposes to keep the generation that this entry makes, which has the newest items.
    ///
    /// # Errors
    /// None so far.
    pub fn propose_keep(
        &self,
        proposal: &mut Proposal,
        name: Option<&str>,
    ) -> Result<Proposed, LiveError> {
        let mut entry = Vec::new();
        log_entry::write_keep(name, &mut entry);
        self.propose_alone(proposal, entry, |_| Ok(()))
    }

    /// Proposes to let go of a kept generation.
    ///
    /// # Errors
    /// When it is not kept.
    pub fn propose_forget(
        &self,
        proposal: &mut Proposal,
        generation: u64,
    ) -> Result<Proposed, LiveError> {
        let mut entry = Vec::new();
        log_entry::write_forget(generation, &mut entry);
        self.propose_alone(proposal, entry, |writer| {
            kept_place(&writer.state.kept, generation).map(|_| ())
        })
    }

    /// Proposes to go back to a kept generation; see [`rollback`](Self::rollback).
    ///
    /// # Errors
    /// When it is not kept.
    pub fn propose_rollback(
        &self,
        proposal: &mut Proposal,
        generation: u64,
    ) -> Result<Proposed, LiveError> {
        let mut entry = Vec::new();
        log_entry::write_rollback(generation, &mut entry);
        self.propose_alone(proposal, entry, |writer| {
            kept_place(&writer.state.kept, generation).map(|_| ())
        })
    }

    /// Proposes an entry with which the proposal begins and ends.
    fn propose_alone(
        &self,
        proposal: &mut Proposal,
        entry: Vec<u8>,
        check: impl FnOnce(&WriterGuard<'_>) -> Result<(), LiveError>,
    ) -> Result<Proposed, LiveError> {
        let writer = self.shared.lock();
        if !proposal.entries.is_empty() || writer.state.generation != proposal.after {
            return Ok(Proposed::Later);
        }
        check(&writer)?;
        Ok(proposal.add_last(entry))
    }

    /// All that the catalog is now, for a base. Cost: a copy of the keys.
    pub fn base(&self) -> Base {
        let writer = self.shared.lock();
        let kept = writer.status().kept;
        let generation = writer.state.generation;
        Base {
            generation,
            snapshot: self.snapshot_of(&writer),
            keys: writer.state.keys.clone(),
            kept,
        }
    }

    fn snapshot_of(&self, writer: &WriterGuard<'_>) -> Arc<Snapshot> {
        let seen = self.snapshot();
        match seen.generation() == writer.state.generation {
            true => seen,
            false => Arc::new(writer.state.snapshot()),
        }
    }

    /// A generation that is kept, for a base: without keys of batches.
    ///
    /// # Errors
    /// When it is not kept any more, or its files cannot be opened.
    pub fn base_of_kept(&self, generation: u64) -> Result<Base, LiveError> {
        let options = ReaderOptions { poll: None, ..ReaderOptions::default() };
        let reader = LiveReader::open_with(&self.shared.dir, options)?;
        let snapshot = reader.generation(&generation.to_string())?;
        Ok(Base { generation, snapshot, keys: BatchKeys::default(), kept: Vec::new() })
    }
}

impl Base {
    /// The base of a new log: generation 0, with the items of a snapshot. Kept generations and keys
    /// of batches do not come along.
    pub fn initial(snapshot: Arc<Snapshot>) -> Self {
        Self { generation: 0, snapshot, keys: BatchKeys::default(), kept: Vec::new() }
    }

    /// Generation of the entry.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Items in it.
    pub fn num_items(&self) -> u64 {
        self.snapshot.num_items()
    }

    /// Rules and kinds of attributes.
    pub fn schema(&self) -> &Schema {
        self.snapshot.schema()
    }

    /// Writes its files into a directory; returns their names. Equal catalogs give equal bytes,
    /// whatever the segments.
    ///
    /// Cost: 2 to 4 microseconds an item; memory as for building a catalog.
    ///
    /// # Errors
    /// When a file cannot be written, or one of the catalog's is damaged by now.
    pub fn write(&self, dir: &Path) -> Result<Vec<&'static str>, LiveError> {
        let mut names = vec![BASE_CATALOG];
        catalog_of(&self.snapshot)?.save(dir.join(BASE_CATALOG))?;
        if let Some(departed) = departed_catalog(self.schema(), departed(&self.snapshot))? {
            departed.save(dir.join(BASE_DEPARTED))?;
            names.push(BASE_DEPARTED);
        }
        if !self.keys.is_empty() {
            batch_keys::write(&dir.join(BASE_KEYS), &self.keys)?;
            names.push(BASE_KEYS);
        }
        Ok(names)
    }
}

/// The catalog of a snapshot's items, with whole numbers as they stand in entries.
fn catalog_of(snapshot: &Snapshot) -> Result<Catalog, LiveError> {
    for view in snapshot.segments() {
        view.segment.verify()?;
    }
    let schema = snapshot.schema();
    let options = BuildOptions { dense_bytes: None, ..schema.build_options(snapshot.num_items()) };
    let mut builder = CatalogBuilder::new(options)?;
    for (number, at) in (1..).zip(snapshot.items()) {
        let Item { id, codes, attributes } = snapshot.item(at);
        builder.push(number, id, &codes, whole_numbers_of(&attributes))?;
    }
    Ok(builder.finish(schema.level_prefixes.clone(), |_| {})?)
}

/// Ids and codes of all departed items, by id.
fn departed(snapshot: &Snapshot) -> std::collections::BTreeMap<String, Vec<u32>> {
    let mut found = std::collections::BTreeMap::new();
    let newest_first = snapshot.segments().iter().rev();
    for (id, codes) in newest_first.flat_map(SegmentView::all_departed) {
        if snapshot.find(id).is_none() {
            found.entry(id.to_owned()).or_insert(codes);
        }
    }
    found
}

fn whole_numbers(update: &Update) -> Update {
    match update {
        Update::Upsert(item) => Update::Upsert(Item {
            id: item.id.clone(),
            codes: item.codes.clone(),
            attributes: whole_numbers_of(&item.attributes),
        }),
        Update::Patch { id, attributes } => {
            Update::Patch { id: id.clone(), attributes: whole_numbers_of(attributes) }
        }
        Update::Delete(id) => Update::Delete(id.clone()),
    }
}

fn whole_numbers_of(attributes: &Map<String, Value>) -> Map<String, Value> {
    let whole = |(name, value): (&String, &Value)| (name.clone(), whole_number(value));
    attributes.iter().map(whole).collect()
}

/// A number without a fraction as a whole number, as far as floats tell whole numbers apart; lists
/// by their members.
fn whole_number(value: &Value) -> Value {
    const MOST: f64 = (1_u64 << 53) as f64;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            match float.fract() == 0.0 && float.abs() <= MOST {
                true => Value::from(float as i64),
                false => value.clone(),
            }
        }
        Value::Array(values) => Value::Array(values.iter().map(whole_number).collect()),
        other => other.clone(),
    }
}

/// Files of a base in their places in a directory.
struct Placed {
    schema: Schema,
    contents: Contents,
    kept: Vec<KeptEntry>,
    keys_generation: Option<u64>,
    next_file_number: u64,
}

impl Placed {
    fn manifest(&self, number: u64, shared_log: &str) -> Manifest {
        let mut manifest = Manifest::new(
            number,
            self.schema.clone(),
            self.contents.clone(),
            self.kept.clone(),
            self.next_file_number,
        );
        manifest.keys_generation = self.keys_generation;
        manifest.shared_log = Some(shared_log.to_owned());
        manifest
    }
}

/// Checks the files of a base, and moves them into a directory under numbers from
/// `next_file_number` on.
fn place(dir: &Path, base: &BaseFiles, mut next_file_number: u64) -> Result<Placed, LiveError> {
    let mut place_one = |generation: u64, from: &Path| -> Result<Contents, LiveError> {
        let catalog = Catalog::open(from.join(BASE_CATALOG))
            .map_err(|error| LiveError::of_file(&from.join(BASE_CATALOG), &error))?;
        base.schema.check_catalog(&catalog)?;
        let departed = from.join(BASE_DEPARTED);
        let num_departed = match departed.exists() {
            true => Catalog::open(&departed)
                .map_err(|error| LiveError::of_file(&departed, &error))?
                .num_items(),
            false => 0,
        };
        let num_items = catalog.num_items();
        let mut segments = Vec::new();
        if num_items + num_departed > 0 {
            let file_number = next_file_number;
            next_file_number += 1;
            rename(&from.join(BASE_CATALOG), &dir.join(segment_file(file_number)))?;
            if num_departed > 0 {
                rename(&departed, &dir.join(departed_file(file_number)))?;
            }
            segments.push(SegmentEntry {
                file_number,
                num_items,
                num_live: num_items,
                live_generation: None,
                is_memory: false,
                num_departed,
            });
        }
        Ok(Contents { generation, segments })
    };
    let contents = place_one(base.generation, &base.dir)?;
    let mut kept = Vec::with_capacity(base.kept.len());
    for (generation, name, from) in &base.kept {
        kept.push(KeptEntry { name: name.clone(), contents: place_one(*generation, from)? });
    }
    let keys = base.dir.join(BASE_KEYS);
    let keys_generation = match keys.exists() {
        true => {
            batch_keys::read(&keys)?;
            rename(&keys, &dir.join(keys_file(base.generation)))?;
            Some(base.generation)
        }
        false => None,
    };
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|e| LiveError::io(dir, e))?;
    let schema = base.schema.clone();
    Ok(Placed { schema, contents, kept, keys_generation, next_file_number })
}

/// Moves a file, and forces it to the disk.
fn rename(from: &Path, to: &Path) -> Result<(), LiveError> {
    let moved =
        File::open(from).and_then(|file| file.sync_all()).and_then(|()| std::fs::rename(from, to));
    moved.map_err(|e| LiveError::io(from, e))
}
