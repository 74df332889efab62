//! Fingerprints of files and catalogs, by which a resumed run knows its inputs.
//!
//! XXH3 of 128 bits, which `xxh128sum` prints too. It tells files apart that differ by accident;
//! whoever wants to can make two of one fingerprint.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use palmette_catalog_live::CatalogView;
use serde_json::{Value, json};
use xxhash_rust::xxh3::Xxh3;

use super::error::OfflineError;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The number of a file's bytes and their fingerprint: `{"bytes": 7, "xxh3": "…"}`.
///
/// # Errors
/// When the file cannot be read.
pub fn file(path: &Path) -> Result<Value, OfflineError> {
    File::open(path).and_then(open_file).map_err(OfflineError::reading(path))
}

/// Fingerprint of a file that is open, from its first byte on.
pub(super) fn open_file(mut file: File) -> io::Result<Value> {
    file.seek(SeekFrom::Start(0))?;
    let mut hash = Xxh3::new();
    let bytes = add(&mut file, u64::MAX, &mut hash)?;
    Ok(json!({"bytes": bytes, "xxh3": hex(&hash)}))
}

/// Some runs of a file's bytes, as one.
///
/// # Errors
/// When the file cannot be read.
pub fn byte_ranges(path: &Path, ranges: &[Range<u64>]) -> Result<String, OfflineError> {
    let read = || {
        let mut file = File::open(path)?;
        let mut hash = Xxh3::new();
        for range in ranges {
            file.seek(SeekFrom::Start(range.start))?;
            add(&mut file, range.end.saturating_sub(range.start), &mut hash)?;
        }
        io::Result::Ok(hex(&hash))
    };
    read().map_err(OfflineError::reading(path))
}

/// All files of a folder, with their names, as one; folders in it are passed over.
///
/// # Errors
/// When the folder or a file cannot be read.
pub fn folder(dir: &Path) -> Result<Value, OfflineError> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .map_err(OfflineError::reading(dir))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let mut hash = Xxh3::new();
    for path in &files {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        // An end that no name has: names and contents cannot run into each other.
        hash.update(name);
        hash.update(b"/");
        hash.update(file(path)?.to_string().as_bytes());
    }
    Ok(json!({"files": files.len(), "xxh3": hex(&hash)}))
}

/// Items of a live catalog that are looked at, and again as many of the newest.
const LOOKED_AT: u64 = 1 << 16;

/// A live catalog's items at one moment: ids, semantic IDs and attributes.
///
/// Of more items than are looked at, some of the older ones, evenly spread, and all of the newest,
/// which is where two directories of one origin differ first: a generation's number is not its
/// contents.
pub fn view(view: &CatalogView) -> Value {
    let old = view.num_items().saturating_sub(LOOKED_AT);
    let step = (old / LOOKED_AT).max(1);
    let mut hash = Xxh3::new();
    for (at, number) in (0_u64..).zip(view.numbers()) {
        if at < old && at % step > 0 {
            continue;
        }
        let (catalog, rank) = view.place(number);
        // Lengths before the parts: none runs into the next.
        let (id, codes) = (catalog.id(rank), catalog.codes(rank));
        let attributes = serde_json::to_vec(&catalog.attributes(rank)).unwrap_or_default();
        for part in [id.len(), codes.len(), attributes.len()] {
            hash.update(&(part as u64).to_le_bytes());
        }
        hash.update(id.as_bytes());
        codes.iter().for_each(|code| hash.update(&code.to_le_bytes()));
        hash.update(&attributes);
    }
    json!({"items": view.num_items(), "xxh3": hex(&hash)})
}

/// Adds at most `most` bytes from where the file stands; how many there were.
fn add(file: &mut File, most: u64, hash: &mut Xxh3) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = most;
    while left > 0 {
        let wanted = CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES));
        let count = file.read(&mut chunk[..wanted])?;
        if count == 0 {
            break;
        }
        hash.update(&chunk[..count]);
        left -= count as u64;
    }
    Ok(most - left)
}

fn hex(hash: &Xxh3) -> String {
    format!("{:032x}", hash.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_ranges_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let text = vec![b'x'; CHUNK_BYTES + 5];
        std::fs::write(path("a"), &text).unwrap();
        let whole = file(&path("a")).unwrap();
        let expected = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&text));
        assert_eq!(whole, json!({"bytes": text.len(), "xxh3": expected}));
        let len = text.len() as u64;
        assert_eq!(byte_ranges(&path("a"), &[0..7, 7..len + 9]).unwrap(), expected);
        assert_ne!(byte_ranges(&path("a"), &[0..7, 8..len]).unwrap(), expected);

        let before = folder(dir.path()).unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        assert_eq!(folder(dir.path()).unwrap(), before);
        std::fs::rename(path("a"), path("b")).unwrap();
        let renamed = folder(dir.path()).unwrap();
        assert_ne!(renamed, before);
        std::fs::write(path("b"), b"y").unwrap();
        assert_ne!(folder(dir.path()).unwrap(), renamed);
        assert!(file(&path("none")).unwrap_err().to_string().contains("none"));
    }
}
