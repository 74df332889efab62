//! The files of a generation, opened: segments with their items that are there, and the memory
//! segment.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use palmette_catalog::Catalog;
use palmette_mapped::Check;

use crate::error::LiveError;
use crate::live_file;
use crate::manifest::{Contents, SegmentEntry, departed_file, segment_file};
use crate::memory::Memory;
use crate::options::LiveOptions;
use crate::segment::{Segment, SegmentView};
use crate::snapshot::DamagedSegment;

/// The segments of one generation.
#[derive(Debug, Default)]
pub(crate) struct GenerationSegments {
    /// Immutable segments, each with the generation in the name of the file that says what is
    /// there.
    pub(crate) sealed: Vec<(SegmentView, Option<u64>)>,
    pub(crate) memory: Memory,
    pub(crate) damaged: Vec<DamagedSegment>,
}

/// Opens the files of a generation; segments of `known`, by file number, are not read again. A
/// degraded catalog goes on without those that are damaged.
pub(crate) fn open(
    dir: &Path,
    options: &LiveOptions,
    contents: &Contents,
    known: &HashMap<u64, &Segment>,
    is_degraded: bool,
) -> Result<GenerationSegments, LiveError> {
    let mut opened = GenerationSegments::default();
    for entry in &contents.segments {
        match open_entry(dir, options, entry, known, &mut opened) {
            Err(error) if is_degraded && !error.is_missing_file() => {
                let (file, num_items) = (segment_file(entry.file_number), entry.num_live);
                opened.damaged.push(DamagedSegment { file, num_items, problem: error.to_string() });
            }
            other => other?,
        }
    }
    Ok(opened)
}

fn open_entry(
    dir: &Path,
    options: &LiveOptions,
    entry: &SegmentEntry,
    known: &HashMap<u64, &Segment>,
    opened: &mut GenerationSegments,
) -> Result<(), LiveError> {
    let known = known.get(&entry.file_number).filter(|_| !entry.is_memory);
    let segment = match known {
        Some(segment) => segment.again(),
        None => open_segment(dir, options, entry)?,
    };
    check_numbers(dir, entry, segment.catalog())?;
    if entry.is_memory {
        opened.memory = Memory::of_segment(&segment);
        return Ok(());
    }
    let live = match entry.live_file() {
        Some(name) => Some(live_file::read(&dir.join(name), entry.num_items, entry.num_live)?),
        None => None,
    };
    let view = SegmentView::of_live(Arc::new(segment), live);
    let live_generation = view.live.as_ref().and(entry.live_generation);
    opened.sealed.push((view, live_generation));
    Ok(())
}

fn open_segment(
    dir: &Path,
    options: &LiveOptions,
    entry: &SegmentEntry,
) -> Result<Segment, LiveError> {
    // The memory segment is read whole anyway.
    let check = if entry.is_memory { Check::Whole } else { options.check };
    let open = |name: String| {
        let path = dir.join(name);
        Catalog::open_with(&path, check).map_err(|error| LiveError::of_file(&path, &error))
    };
    let catalog = open(segment_file(entry.file_number))?;
    let departed = match entry.num_departed {
        0 => None,
        _ => Some(open(departed_file(entry.file_number))?),
    };
    Ok(Segment::new(catalog, departed, entry.file_number, true, options.filter_bytes))
}

fn check_numbers(dir: &Path, entry: &SegmentEntry, catalog: &Catalog) -> Result<(), LiveError> {
    let (found, said) = (catalog.num_items(), entry.num_items);
    let all_live = entry.live_generation.is_some() && !entry.is_memory;
    if found == said && (all_live || entry.num_live == said) {
        return Ok(());
    }
    let live = entry.num_live;
    let problem = format!(
        "has {found} items; the manifest says {said}, {live} of them there; restore it from a copy"
    );
    Err(LiveError::damaged(&dir.join(segment_file(entry.file_number)), problem))
}
