//! Verification of all files that a live catalog counts on, kept generations included.

use std::collections::BTreeMap;
use std::path::Path;

use palmette_catalog::Catalog;
use palmette_mapped::Check;
use serde::Serialize;

use crate::batch_keys;
use crate::error::LiveError;
use crate::live_file;
use crate::manifest::{
    Manifest, SegmentEntry, departed_file, file_name, keys_file, newest_number, segment_file,
};
use crate::open::logs;
use crate::wal;

/// Times that another process may make a checkpoint meanwhile.
const MAX_RETRIES: usize = 20;

/// A file that was read whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifiedFile {
    /// Name in the directory.
    pub file: String,
    /// Length in bytes; 0 where it is missing.
    pub bytes: u64,
    /// The damage, with its place; `None` where it is sound.
    pub problem: Option<String>,
}

/// Reads every file that the newest manifest counts on and checks all of it: checksums, orders,
/// numbers. Another process may be writing. Sorted by name.
///
/// # Errors
/// When there is no live catalog, or the directory cannot be read. Damage is no error, but reported
/// with its file.
pub fn verify(dir: &Path) -> Result<Vec<VerifiedFile>, LiveError> {
    let mut tries = 0;
    loop {
        let number = newest_number(dir)?;
        let (files, is_missing) = verify_once(dir, number)?;
        // A file may be gone because a newer manifest does not need it.
        if !is_missing || tries == MAX_RETRIES || newest_number(dir)? == number {
            return Ok(files);
        }
        tries += 1;
    }
}

/// The files, and whether any was missing.
fn verify_once(dir: &Path, number: Option<u64>) -> Result<(Vec<VerifiedFile>, bool), LiveError> {
    let mut found = FileInventory { dir, files: BTreeMap::new(), is_missing: false };
    let manifest = match Manifest::newest(dir) {
        Ok(manifest) => manifest,
        Err(e) => {
            let Some(number) = number else { return Err(e) };
            found.add(file_name(number), Err(e));
            return Ok(found.finish());
        }
    };
    found.add(file_name(manifest.number), Ok(()));
    let kept = manifest.kept.iter().map(|kept| &kept.contents);
    for entry in kept.chain([&manifest.contents]).flat_map(|contents| &contents.segments) {
        found.add_segment(entry);
    }
    if let Some(name) = manifest.keys_generation.map(keys_file) {
        let read = batch_keys::read(&dir.join(&name));
        found.add(name, read.map(drop));
    }
    match logs(dir, manifest.contents.generation + 1) {
        Ok(logs) => {
            for (at, &first) in logs.iter().enumerate() {
                let (name, is_last) = (wal::file_name(first), at + 1 == logs.len());
                let replayed = wal::replay(&dir.join(&name), first, is_last);
                found.add(name, replayed.map(drop));
            }
        }
        Err(e) => found.add(wal::file_name(manifest.contents.generation + 1), Err(e)),
    }
    Ok(found.finish())
}

struct FileInventory<'a> {
    dir: &'a Path,
    files: BTreeMap<String, VerifiedFile>,
    is_missing: bool,
}

impl FileInventory<'_> {
    fn add_segment(&mut self, entry: &SegmentEntry) {
        let departed = (entry.num_departed > 0).then(|| departed_file(entry.file_number));
        for name in [segment_file(entry.file_number)].into_iter().chain(departed) {
            if self.files.contains_key(&name) {
                continue;
            }
            let path = self.dir.join(&name);
            let opened = Catalog::open_with(&path, Check::Whole);
            self.add(name, opened.map(drop).map_err(|e| LiveError::of_file(&path, &e)));
        }
        if let Some(name) = entry.live_file() {
            let read = live_file::read(&self.dir.join(&name), entry.num_items, entry.num_live);
            self.add(name, read.map(drop));
        }
    }

    fn add(&mut self, file: String, verified: Result<(), LiveError>) {
        let bytes = std::fs::metadata(self.dir.join(&file)).map_or(0, |meta| meta.len());
        let problem = verified.err().map(|e| {
            self.is_missing |= e.is_missing_file();
            e.to_string()
        });
        self.files.insert(file.clone(), VerifiedFile { file, bytes, problem });
    }

    fn finish(self) -> (Vec<VerifiedFile>, bool) {
        (self.files.into_values().collect(), self.is_missing)
    }
}
