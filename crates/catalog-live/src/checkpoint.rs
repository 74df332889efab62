//! Checkpoints: all segments in files, and a manifest of them. After one, the log can begin again.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use palmette_catalog::Catalog;

use crate::batch_keys;
use crate::contents::GenerationSegments;
use crate::error::LiveError;
use crate::live_file;
use crate::manifest::{
    Contents, KeptEntry, Manifest, SegmentEntry, delete_unwanted, departed_file, file_name,
    kept_place, keys_file, segment_file,
};
use crate::segment::SegmentView;
use crate::shared::Shared;
use crate::wal::{self, Wal};

/// State of the files, for whoever writes the next manifest.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    /// Number of the last manifest.
    pub(crate) number: u64,
    /// For segments by key: which file says what is there, and how many ranks were cleared then.
    pub(crate) live_files: HashMap<u64, LiveFile>,
    pub(crate) keys: KeysFile,
}

/// The file with the keys of batches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeysFile {
    /// In its name; `None` where there is none.
    pub(crate) generation: Option<u64>,
    /// Keys that had come since the catalog was opened, which it has.
    pub(crate) num_added: u64,
}

impl Checkpoints {
    /// Notes the files of segments that were opened.
    pub(crate) fn opened(&mut self, opened: &GenerationSegments) {
        for (view, live_generation) in &opened.sealed {
            if let Some(generation) = *live_generation {
                let file = LiveFile { num_cleared: 0, generation };
                self.live_files.insert(view.segment.key(), file);
            }
        }
    }
}

/// The file that says which items of a segment are there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveFile {
    pub(crate) num_cleared: usize,
    pub(crate) generation: u64,
}

/// Change that a checkpoint makes to the generations that are kept.
#[derive(Debug)]
pub(crate) enum Keeping {
    AsItIs,
    Keep { name: Option<String> },
    Forget { generation: u64 },
}

/// Purpose of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// To shorten the log, or at the caller's wish.
    Wish,
    /// An entry of a shared log, which makes the next generation. It is in the manifest and not in
    /// the directory's own log.
    Entry,
}

/// Writes what is not in files yet, then the manifest, then deletes what no manifest needs. Updates
/// go on but for the moment in which the log begins anew. Returns the generation that the files
/// hold.
pub(crate) fn checkpoint(
    shared: &Arc<Shared>,
    keeping: Keeping,
    cause: Cause,
) -> Result<u64, LiveError> {
    let before = shared.lock().state.generation;
    let made = try_checkpoint(shared, keeping, cause);
    if made.is_err() && cause == Cause::Entry {
        // The generation was counted already, and is in no file: the entry is applied again.
        shared.lock().state.generation = before;
    }
    made
}

fn try_checkpoint(shared: &Arc<Shared>, keeping: Keeping, cause: Cause) -> Result<u64, LiveError> {
    let mut checkpoints = shared.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
    let (generation, views, is_memory_last, schema, mut kept, next_file_number, keys) = {
        let mut writer = shared.lock();
        writer.check_sound()?;
        if let Keeping::Forget { generation } = keeping {
            kept_place(&writer.state.kept, generation)?;
        }
        if cause == Cause::Entry {
            writer.state.generation += 1;
        }
        let generation = writer.state.generation;
        if !writer.wal.begins_with(generation + 1) {
            // Until there is the manifest, only the last file of the log may be torn.
            writer.wal.sync()?;
            writer.wal = Wal::create(&shared.dir, generation + 1, writer.is_forced())?;
        }
        writer.counts.updates_logged = 0;
        let state = &writer.state;
        let views: Vec<SegmentView> = state.views().cloned().collect();
        let is_memory_last = state.memory_view.is_some();
        let (schema, kept) = (state.schema.clone(), state.kept.clone());
        let has_new_keys = state.keys.num_added() != checkpoints.keys.num_added;
        let keys = has_new_keys.then(|| state.keys.clone());
        (generation, views, is_memory_last, schema, kept, state.next_file_number, keys)
    };

    let mut segments = Vec::with_capacity(views.len());
    for (at, view) in views.iter().enumerate() {
        let is_memory = is_memory_last && at + 1 == views.len();
        segments.push(write_segment(shared, &mut checkpoints, view, generation, is_memory)?);
    }
    if let Some(keys) = keys {
        batch_keys::write(&shared.dir.join(keys_file(generation)), &keys)?;
        checkpoints.keys = KeysFile { generation: Some(generation), num_added: keys.num_added() };
    }
    let contents = Contents { generation, segments };
    match keeping {
        Keeping::AsItIs => {}
        Keeping::Keep { name } => {
            kept.retain(|kept| kept.contents.generation != generation);
            kept.push(KeptEntry { name, contents: contents.clone() });
        }
        Keeping::Forget { generation } => {
            kept.retain(|kept| kept.contents.generation != generation);
        }
    }
    let number = checkpoints.number + 1;
    let schema = schema.as_ref().clone();
    let mut manifest = Manifest::new(number, schema, contents, kept.clone(), next_file_number);
    manifest.keys_generation = checkpoints.keys.generation;
    manifest.shared_log.clone_from(&shared.shared_log);
    manifest.write(&shared.dir)?;
    checkpoints.number = number;
    {
        let mut writer = shared.lock();
        writer.state.kept = kept;
        writer.counts.checkpoints_done += 1;
        if cause == Cause::Entry {
            shared.publish(&writer);
        }
    }
    let deleted = delete_others(shared, &mut checkpoints, &manifest);
    match cause {
        Cause::Wish => deleted.map(|()| generation),
        // It stands in the manifest; the next checkpoint deletes what is left.
        Cause::Entry => Ok(generation),
    }
}

/// Deletes the files that neither a manifest, the newest, nor anybody who works needs.
pub(crate) fn delete_others(
    shared: &Shared,
    checkpoints: &mut Checkpoints,
    manifest: &Manifest,
) -> Result<(), LiveError> {
    let generation = manifest.contents.generation;
    let mut wanted = manifest.files();
    wanted.insert(file_name(manifest.number));
    {
        let writer = shared.lock();
        let in_use = writer.state.views().map(|view| view.segment.file_number());
        let in_use = in_use.chain(writer.pending_files.iter().copied());
        wanted.extend(in_use.flat_map(|number| [segment_file(number), departed_file(number)]));
        let keys: Vec<u64> = writer.state.sealed.iter().map(|view| view.segment.key()).collect();
        checkpoints.live_files.retain(|key, _| keys.contains(key));
    }
    delete_unwanted(&shared.dir, |name| match wal::first_generation(name) {
        Some(first) => first > generation,
        None => wanted.contains(name),
    })
}

/// Writes what is not in files yet of one segment.
fn write_segment(
    shared: &Shared,
    checkpoints: &mut Checkpoints,
    view: &SegmentView,
    generation: u64,
    is_memory: bool,
) -> Result<SegmentEntry, LiveError> {
    let segment = &view.segment;
    if !segment.is_written() {
        segment.catalog().save(shared.dir.join(segment_file(segment.file_number())))?;
        if let Some(departed) = segment.departed() {
            departed.save(shared.dir.join(departed_file(segment.file_number())))?;
        }
        segment.set_written();
    }
    let written = checkpoints.live_files.get(&segment.key());
    let live_generation = match (&view.live, written) {
        (None, _) => None,
        (Some(_), Some(file)) if file.num_cleared == view.num_cleared => Some(file.generation),
        (Some(live), _) => {
            let name = crate::manifest::live_file(segment.file_number(), generation);
            live_file::write(&shared.dir.join(name), live.ranks())?;
            let file = LiveFile { num_cleared: view.num_cleared, generation };
            checkpoints.live_files.insert(segment.key(), file);
            Some(generation)
        }
    };
    Ok(SegmentEntry {
        file_number: segment.file_number(),
        num_items: segment.catalog().num_items(),
        num_live: view.num_live(),
        live_generation,
        is_memory,
        num_departed: segment.departed().map_or(0, Catalog::num_items),
    })
}
