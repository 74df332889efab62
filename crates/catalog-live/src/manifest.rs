//! The manifest: what the directory holds, in one small file that is replaced whole.
//!
//! `manifest-<number>.json` is `{"checksum": …, "manifest": …}`; the checksum is the CRC-32 of the
//! manifest as this program writes it. The file with the highest number counts; a new one is on
//! disk before older ones are deleted.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use palmette_mapped::write_atomically;
use serde::{Deserialize, Serialize};

use crate::error::{Kind, LiveError};
use crate::schema::Schema;
use crate::segment::MAX_SEGMENTS;

const VERSION: u32 = 1;

/// Contents of the directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    version: u32,
    pub(crate) number: u64,
    pub(crate) schema: Schema,
    /// The state to which the records of later generations are applied.
    pub(crate) contents: Contents,
    pub(crate) kept: Vec<KeptEntry>,
    /// No segment file has this number or a higher one.
    pub(crate) next_file_number: u64,
    /// The generation in the name of the file with the keys of batches; none where no batch had
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keys_generation: Option<u64>,
    /// Identity of the shared log that this directory follows; none where it has the only log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shared_log: Option<String>,
}

/// The segments of one generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contents {
    pub(crate) generation: u64,
    /// The oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
}

/// A segment in files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SegmentEntry {
    pub(crate) file_number: u64,
    pub(crate) num_items: u64,
    pub(crate) num_live: u64,
    /// The generation in the name of the file that says which items are there; none where all are.
    pub(crate) live_generation: Option<u64>,
    /// True for the memory segment, which keeps growing.
    pub(crate) is_memory: bool,
    /// Departed items in the file of their ids and codes; none where it is not there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) num_departed: u64,
}

/// A generation that can be gone back to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptEntry {
    pub(crate) name: Option<String>,
    pub(crate) contents: Contents,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChecksummedManifest {
    checksum: u32,
    manifest: Manifest,
}

impl Manifest {
    pub(crate) fn new(
        number: u64,
        schema: Schema,
        contents: Contents,
        kept: Vec<KeptEntry>,
        next_file_number: u64,
    ) -> Self {
        let (version, keys_generation, shared_log) = (VERSION, None, None);
        Self {
            version,
            number,
            schema,
            contents,
            kept,
            next_file_number,
            keys_generation,
            shared_log,
        }
    }

    /// Writes the file of this number.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), LiveError> {
        let path = dir.join(file_name(self.number));
        let checked = ChecksummedManifest { checksum: self.checksum(), manifest: self.clone() };
        let json = serde_json::to_vec_pretty(&checked).expect("it is plain data");
        write_atomically(&path, |file| file.write_all(&json)).map_err(|e| LiveError::io(&path, e))
    }

    /// The manifest that counts.
    pub(crate) fn newest(dir: &Path) -> Result<Self, LiveError> {
        let number = numbers(dir)?.into_iter().max();
        let number = number.ok_or_else(|| Kind::Missing { path: dir.to_owned() })?;
        let path = dir.join(file_name(number));
        let json = std::fs::read(&path).map_err(|e| LiveError::io(&path, e))?;
        let damaged = |problem: String| {
            LiveError::damaged(&path, format!("is damaged: {problem}; restore it from a copy"))
        };
        let checked: ChecksummedManifest =
            serde_json::from_slice(&json).map_err(|e| damaged(e.to_string()))?;
        let ChecksummedManifest { checksum, manifest } = checked;
        if manifest.checksum() != checksum {
            return Err(damaged("it does not have the checksum it says".into()));
        }
        if manifest.version != VERSION {
            let found = manifest.version;
            let problem = format!("has version {found}; this program reads version {VERSION}");
            return Err(LiveError::damaged(&path, problem));
        }
        manifest.check(number).map_err(damaged)?;
        Ok(manifest)
    }

    /// Names of all files that it counts on, except logs.
    pub(crate) fn files(&self) -> HashSet<String> {
        let contents = self.kept.iter().map(|kept| &kept.contents).chain([&self.contents]);
        let entries = contents.flat_map(|contents| &contents.segments);
        entries
            .flat_map(|entry| {
                let departed = (entry.num_departed > 0).then(|| departed_file(entry.file_number));
                [Some(segment_file(entry.file_number)), entry.live_file(), departed]
            })
            .flatten()
            .chain(self.keys_generation.map(keys_file))
            .collect()
    }

    fn check(&self, number: u64) -> Result<(), String> {
        if self.number != number {
            return Err(format!("it says that it is manifest {}", self.number));
        }
        let kept = self.kept.iter().map(|kept| &kept.contents);
        for Contents { generation, segments } in kept.chain([&self.contents]) {
            if segments.len() > MAX_SEGMENTS {
                let found = segments.len();
                return Err(format!("generation {generation} has {found} segments"));
            }
            let sealed = &segments[..segments.len().saturating_sub(1)];
            if sealed.iter().any(|entry| entry.is_memory) {
                return Err(format!("in generation {generation} a memory segment is not the last"));
            }
            if *generation > self.contents.generation {
                return Err(format!("generation {generation} is kept before it was made"));
            }
            if segments.iter().any(|entry| entry.file_number >= self.next_file_number) {
                return Err(format!("generation {generation} has a segment of a later number"));
            }
        }
        Ok(())
    }

    fn checksum(&self) -> u32 {
        crc32fast::hash(&serde_json::to_vec(self).expect("it is plain data"))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl SegmentEntry {
    /// The name of the file that says which items are there.
    pub(crate) fn live_file(&self) -> Option<String> {
        Some(live_file(self.file_number, self.live_generation?))
    }
}

impl Contents {
    pub(crate) fn num_items(&self) -> u64 {
        self.segments.iter().map(|entry| entry.num_live).sum()
    }
}

/// The place of a kept generation.
pub(crate) fn kept_place(kept: &[KeptEntry], generation: u64) -> Result<usize, LiveError> {
    let place = kept.iter().position(|kept| kept.contents.generation == generation);
    place.ok_or_else(|| not_kept(kept, generation.to_string()))
}

fn not_kept(kept: &[KeptEntry], generation: String) -> LiveError {
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
}

/// The place of a kept generation, by its number or else by the name that was given last.
pub(crate) fn named_place(kept: &[KeptEntry], name: &str) -> Result<usize, LiveError> {
    let by_number = name
        .parse::<u64>()
        .ok()
        .and_then(|generation| kept.iter().position(|kept| kept.contents.generation == generation));
    let by_name = || kept.iter().rposition(|kept| kept.name.as_deref() == Some(name));
    by_number.or_else(by_name).ok_or_else(|| not_kept(kept, name.to_owned()))
}

/// The numbers of the manifests in a directory.
pub(crate) fn numbers(dir: &Path) -> Result<Vec<u64>, LiveError> {
    let number =
        |name: &String| name.strip_prefix("manifest-")?.strip_suffix(".json")?.parse().ok();
    Ok(file_names(dir)?.iter().filter_map(number).collect())
}

/// The number of the manifest that counts.
pub(crate) fn newest_number(dir: &Path) -> Result<Option<u64>, LiveError> {
    Ok(numbers(dir)?.into_iter().max())
}

/// The names in a directory that are UTF-8; all of ours are.
pub(crate) fn file_names(dir: &Path) -> Result<Vec<String>, LiveError> {
    let names = || -> std::io::Result<Vec<String>> {
        let names = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        Ok(names.collect::<std::io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    };
    names().map_err(|e| LiveError::io(dir, e))
}

pub(crate) fn file_name(number: u64) -> String {
    format!("manifest-{number:010}.json")
}

/// The name of a segment's file.
pub(crate) fn segment_file(number: u64) -> String {
    format!("segment-{number:010}.palmcat")
}

/// The name of the file with the keys of the latest batches as of a generation.
pub(crate) fn keys_file(generation: u64) -> String {
    format!("keys-{generation}.palmkeys")
}

/// The name of the file with the departed items of a segment.
pub(crate) fn departed_file(number: u64) -> String {
    format!("departed-{number:010}.palmcat")
}

/// The name of the file that says which items of a segment are there as of a generation.
pub(crate) fn live_file(number: u64, generation: u64) -> String {
    format!("live-{number:010}-{generation}.palmlive")
}

/// Deletes files of which `is_wanted` says no, by name. Only files with names like ours are looked
/// at.
pub(crate) fn delete_unwanted(
    dir: &Path,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), LiveError> {
    let ours = |name: &String| {
        ["segment-", "departed-", "live-", "keys-", "manifest-", "wal-"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    for name in file_names(dir)?.into_iter().filter(ours).filter(|name| !is_wanted(name)) {
        let path: PathBuf = dir.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(LiveError::io(&path, e));
            }
            _ => {}
        }
    }
    Ok(())
}
