//! Making, opening and replaying.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use palmette_catalog::Catalog;

use crate::batch_keys;
use crate::checkpoint::{Checkpoints, KeysFile};
use crate::error::{Kind, LiveError};
use crate::live::LiveCatalog;
use crate::manifest::{
    self, Contents, Manifest, SegmentEntry, delete_unwanted, file_name, file_names, numbers,
    segment_file,
};
use crate::options::{LiveOptions, SyncPolicy};
use crate::schema::Schema;
use crate::shared::Shared;
use crate::state::State;
use crate::wal::{self, Wal};
use crate::writer::Writer;

impl LiveCatalog {
    /// Makes a live catalog in a directory, with the items of a catalog and the default options:
    /// [`create_with`](Self::create_with).
    ///
    /// # Errors
    /// When there is one already, or the directory cannot be written to.
    pub fn create(dir: impl AsRef<Path>, items: &Catalog) -> Result<Self, LiveError> {
        Self::create_with(dir.as_ref(), Some(items.clone()), None, LiveOptions::default())
    }

    /// Makes a live catalog in a directory, which is made where it is not there: with the items of
    /// a catalog, or with none. That is generation 0.
    ///
    /// Items must keep to `schema`; without one they must keep to the initial catalog's codebook
    /// sizes and kinds of attributes ([`Schema::of_catalog`]), and without that to nothing.
    ///
    /// # Errors
    /// When there is a live catalog in the directory, it cannot be written to, or the initial
    /// catalog does not keep to the schema.
    pub fn create_with(
        dir: &Path,
        initial: Option<Catalog>,
        schema: Option<Schema>,
        options: LiveOptions,
    ) -> Result<Self, LiveError> {
        let lock_file = lock_new(dir)?;
        let of_initial = initial.as_ref().map(Schema::of_catalog);
        let mut schema = schema.or_else(|| of_initial.clone()).unwrap_or_default();
        if let (Some(initial), Some(of_initial)) = (&initial, of_initial) {
            schema.check_catalog(initial)?;
            schema.add_columns(&of_initial.columns);
            schema.level_prefixes = schema.level_prefixes.or(of_initial.level_prefixes);
        }
        // A builder knows which sizes and columns cannot be.
        palmette_catalog::CatalogBuilder::new(schema.build_options(0))?;
        let mut segments = Vec::new();
        if let Some(initial) = initial.filter(|initial| initial.num_items() > 0) {
            initial.save(dir.join(segment_file(0)))?;
            let num_items = initial.num_items();
            segments.push(SegmentEntry {
                file_number: 0,
                num_items,
                num_live: num_items,
                live_generation: None,
                is_memory: false,
                num_departed: 0,
            });
        }
        Wal::create(dir, 1, options.sync == SyncPolicy::EveryBatch)?;
        let contents = Contents { generation: 0, segments };
        Manifest::new(1, schema, contents, Vec::new(), 1).write(dir)?;
        open_locked(dir, options, None, lock_file)
    }

    /// True for the directory of a live catalog, whose files are its own.
    pub fn is_in(dir: &Path) -> bool {
        manifest::newest_number(dir).is_ok_and(|number| number.is_some())
    }

    /// Opens a live catalog with the default options: [`open_with`](Self::open_with).
    ///
    /// # Errors
    /// When there is none, another process has it open, or a file is damaged.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, LiveError> {
        Self::open_with(dir.as_ref(), LiveOptions::default())
    }

    /// Opens a live catalog: maps its segments, and replays the log since the last checkpoint. A
    /// record at the end of the log that is not whole was never acknowledged, and is cut off.
    ///
    /// # Errors
    /// When there is no live catalog, another process has it open, it follows a shared log
    /// ([`open_replica`](Self::open_replica)), or a file is missing or damaged; the message names
    /// the file and, in a log, the place.
    pub fn open_with(dir: &Path, options: LiveOptions) -> Result<Self, LiveError> {
        open_as(dir, options, None)
    }
}

/// Opens a directory that follows this shared log, or none.
pub(crate) fn open_as(
    dir: &Path,
    options: LiveOptions,
    shared_log: Option<&str>,
) -> Result<LiveCatalog, LiveError> {
    if !dir.is_dir() || numbers(dir)?.is_empty() {
        return Err(Kind::Missing { path: dir.to_owned() }.into());
    }
    let lock_file = lock(dir)?;
    open_locked(dir, options, shared_log, lock_file)
}

pub(crate) fn open_locked(
    dir: &Path,
    options: LiveOptions,
    shared_log: Option<&str>,
    lock_file: File,
) -> Result<LiveCatalog, LiveError> {
    let manifest = Manifest::newest(dir)?;
    if manifest.shared_log.as_deref() != shared_log {
        let (path, found) = (dir.to_owned(), manifest.shared_log);
        return Err(Kind::OtherLog { path, found, wanted: shared_log.map(str::to_owned) }.into());
    }
    let Manifest { number, schema, contents, kept, next_file_number, keys_generation, .. } =
        manifest.clone();
    let mut logs = logs(dir, contents.generation + 1)?;
    let keys_file = KeysFile { generation: keys_generation, num_added: 0 };
    let mut checkpoints = Checkpoints { number, live_files: Default::default(), keys: keys_file };

    // Read before anything is changed, so that an error leaves the directory as it was.
    let keys = keys_generation
        .map(|generation| batch_keys::read(&dir.join(manifest::keys_file(generation))));
    let keys = keys.transpose()?.unwrap_or_default();
    let mut entries = Vec::new();
    let (mut end, mut torn_bytes, mut last_generation) = (0, 0, contents.generation);
    for at in 0..logs.len() {
        // Fewer, once a replica's were cut off.
        let Some(&first) = logs.get(at) else { break };
        let path = dir.join(wal::file_name(first));
        let is_last = at + 1 == logs.len();
        let replayed = wal::replay(&path, first, is_last)?;
        let next = first + replayed.entries.len() as u64;
        let following = logs.get(at + 1).copied().filter(|&following| following != next);
        if following.is_some() && shared_log.is_some() {
            // A checkpoint that keeps a generation ended before its manifest: the shared log has
            // the entry.
            logs.truncate(at + 1);
        } else if let Some(following) = following {
            let problem = format!(
                "ends before generation {next}, and the log after it begins with {following}; restore \
                 the missing file from a copy"
            );
            return Err(LiveError::damaged(&path, problem));
        }
        entries.extend(replayed.entries);
        (end, torn_bytes, last_generation) = (replayed.end, replayed.torn_bytes, next - 1);
    }
    entries.retain(|&(generation, _)| generation > contents.generation);
    let last = logs.last().map(|&first| dir.join(wal::file_name(first))).unwrap_or_default();

    let is_forced = options.sync == SyncPolicy::EveryBatch;
    let wal = Wal::open_at(&last, end, last_generation, is_forced)?;
    let mut state = State::new(dir, options, schema, kept, next_file_number)?;
    state.generation = contents.generation;
    state.keys = keys;
    let opened = state.open(&contents)?;
    checkpoints.opened(&opened);
    state.install(opened);
    for (generation, entry) in entries {
        state
            .replay(generation, entry, |opened| checkpoints.opened(opened))
            .map_err(|e| LiveError::damaged(&last, format!("generation {generation}: {e}")))?;
    }
    state.index_memory()?;
    let mut writer = Writer::new(state, wal);
    writer.counts.torn_bytes = torn_bytes;

    let mut wanted = manifest.files();
    wanted.insert(file_name(number));
    delete_unwanted(dir, |name| match wal::first_generation(name) {
        Some(first) => logs.contains(&first),
        None => wanted.contains(name),
    })?;
    // A process that was killed left what it was writing; nobody writes now.
    palmette_mapped::remove_temporary_files(dir).map_err(|e| LiveError::io(dir, e))?;
    let shared_log = shared_log.map(str::to_owned);
    Ok(LiveCatalog::start(Shared::new(writer, checkpoints, shared_log, lock_file)))
}

/// First generations of the files of the log that have records from `from` on, ascending.
pub(crate) fn logs(dir: &Path, from: u64) -> Result<Vec<u64>, LiveError> {
    let names = file_names(dir)?;
    let mut logs: Vec<u64> = names.iter().filter_map(|name| wal::first_generation(name)).collect();
    logs.sort_unstable();
    let Some(first) = logs.iter().rposition(|&first| first <= from) else {
        return Err(LiveError::missing_file(&dir.join(wal::file_name(from))));
    };
    Ok(logs.split_off(first))
}

/// Makes and locks a directory that has no live catalog yet.
pub(crate) fn lock_new(dir: &Path) -> Result<File, LiveError> {
    std::fs::create_dir_all(dir).map_err(|e| LiveError::io(dir, e))?;
    let lock_file = lock(dir)?;
    if !numbers(dir)?.is_empty() {
        return Err(Kind::Exists { path: dir.to_owned() }.into());
    }
    Ok(lock_file)
}

/// Locks the directory for this process.
pub(crate) fn lock(dir: &Path) -> Result<File, LiveError> {
    let path = dir.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|e| LiveError::io(&path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Kind::Locked { path }.into()),
        Err(TryLockError::Error(e)) => Err(LiveError::io(&path, e)),
    }
}
