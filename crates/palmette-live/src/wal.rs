//! The write-ahead log: every batch, in order, before it is seen.
//!
//! A file begins with 32 bytes: magic, version (u32), zeros (u32), the generation of its first record
//! (u64), CRC-32 of these (u32), zeros. Records follow without gaps: length of the entry (u32), CRC-32 of
//! what comes after it (u32), the generation that the entry makes (u64), the entry. Little-endian.
//!
//! A file is named after its first generation. Generations follow one another without gaps, from record to
//! record and from file to file.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use palmette_storage::write_atomically;

use crate::error::LiveError;
use crate::log_entry::{self, LogEntry};

const MAGIC: [u8; 8] = *b"PALMWAL\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;
const RECORD_BYTES: usize = 16;

/// The file that records are appended to.
#[derive(Debug)]
pub(crate) struct Wal {
    path: PathBuf,
    file: File,
    /// Where the next record begins.
    end: u64,
}

/// What a file had.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The records with their generations.
    pub(crate) entries: Vec<(u64, LogEntry)>,
    /// Bytes up to the end of the last whole record.
    pub(crate) end: u64,
    /// Bytes after that: a record that was being written when the process ended.
    pub(crate) torn_bytes: u64,
}

/// The name of the file whose first record makes `generation`.
pub(crate) fn file_name(generation: u64) -> String {
    format!("wal-{generation:020}.log")
}

/// The first generation of a file of that name.
pub(crate) fn first_generation(name: &str) -> Option<u64> {
    let number = name.strip_prefix("wal-")?.strip_suffix(".log")?;
    if number.len() == 20 { number.parse().ok() } else { None }
}

impl Wal {
    /// Begins a file whose first record will make `generation`.
    pub(crate) fn create(dir: &Path, generation: u64) -> Result<Self, LiveError> {
        let path = dir.join(file_name(generation));
        let error = |e| LiveError::io(&path, e);
        write_atomically(&path, |file| file.write_all(&header(generation))).map_err(error)?;
        Self::open_at(&path, HEADER_BYTES as u64)
    }

    /// Goes on after the first `end` bytes of a file; what comes after them is cut off.
    pub(crate) fn open_at(path: &Path, end: u64) -> Result<Self, LiveError> {
        let open = || {
            let mut file = OpenOptions::new().write(true).open(path)?;
            if file.metadata()?.len() != end {
                file.set_len(end)?;
                file.sync_all()?;
            }
            file.seek(SeekFrom::Start(end))?;
            Ok(file)
        };
        let file = open().map_err(|e| LiveError::io(path, e))?;
        Ok(Self { path: path.to_owned(), file, end })
    }

    /// Appends the record that makes `generation`, and forces it to the disk if asked to.
    ///
    /// After an error the file may end in a part of the record; nothing may be appended then.
    pub(crate) fn append(&mut self, generation: u64, entry: &[u8], sync: bool) -> io::Result<()> {
        let len = u32::try_from(entry.len())
            .map_err(|_| io::Error::other("a batch takes more than 4 GiB; apply it in parts"))?;
        let mut record = Vec::with_capacity(RECORD_BYTES + entry.len());
        record.extend_from_slice(&len.to_le_bytes());
        record.extend_from_slice(&checksum(generation, entry).to_le_bytes());
        record.extend_from_slice(&generation.to_le_bytes());
        record.extend_from_slice(entry);
        self.file.write_all(&record)?;
        if sync {
            self.file.sync_data()?;
        }
        self.end += record.len() as u64;
        Ok(())
    }

    /// Forces everything to the disk.
    pub(crate) fn sync(&self) -> Result<(), LiveError> {
        self.file.sync_data().map_err(|e| LiveError::io(&self.path, e))
    }

    /// Bytes of the file's records.
    pub(crate) fn bytes(&self) -> u64 {
        self.end - HEADER_BYTES as u64
    }

    /// Whether the file is without records and the first will make `generation`.
    pub(crate) fn begins_with(&self, generation: u64) -> bool {
        self.end == HEADER_BYTES as u64 && self.path.ends_with(file_name(generation))
    }
}

/// Reads a file whose first record makes `first`. With `may_be_torn` it may end in a part of a record:
/// the end of the process came before the record was acknowledged.
///
/// # Errors
/// When it cannot be read; when its header is wrong; when a record is damaged and whole ones follow it, or
/// the file may not be torn.
pub(crate) fn replay(path: &Path, first: u64, may_be_torn: bool) -> Result<Replayed, LiveError> {
    let bytes = std::fs::read(path).map_err(|e| LiveError::io(path, e))?;
    if bytes.get(..HEADER_BYTES) != Some(&header(first)) {
        let problem = format!(
            "is no log of version {VERSION} that begins with generation {first}, or its first \
             {HEADER_BYTES} bytes are damaged; restore it from a copy"
        );
        return Err(LiveError::damaged(path, problem));
    }
    let (mut entries, mut at, mut generation) = (Vec::new(), HEADER_BYTES, first);
    while at < bytes.len() {
        let Some(entry) = record_at(&bytes, at, |found| found == generation) else {
            if may_be_torn && !any_record_after(&bytes, at, generation) {
                break;
            }
            let problem = format!(
                "is damaged: at byte {at} there is no whole record of generation {generation}, but it \
                 is not the end of the log; restore the file from a copy"
            );
            return Err(LiveError::damaged(path, problem));
        };
        let len = RECORD_BYTES + entry.len();
        let Some(entry) = log_entry::read(entry) else {
            let problem = format!(
                "the record at byte {at} is whole, but this program does not understand it; was it \
                 written by a newer one?"
            );
            return Err(LiveError::damaged(path, problem));
        };
        entries.push((generation, entry));
        at += len;
        generation += 1;
    }
    Ok(Replayed { entries, end: at as u64, torn_bytes: (bytes.len() - at) as u64 })
}

/// The entry of a whole record with an acceptable generation.
fn record_at(bytes: &[u8], at: usize, accepts: impl Fn(u64) -> bool) -> Option<&[u8]> {
    let head = bytes.get(at..at.checked_add(RECORD_BYTES)?)?;
    let len = u32::from_le_bytes(head[..4].try_into().ok()?) as usize;
    let said = u32::from_le_bytes(head[4..8].try_into().ok()?);
    let generation = u64::from_le_bytes(head[8..].try_into().ok()?);
    if !accepts(generation) {
        return None;
    }
    let entry = bytes.get(at + RECORD_BYTES..)?.get(..len)?;
    (checksum(generation, entry) == said).then_some(entry)
}

/// Whether a whole record of a later generation begins anywhere after `at`.
fn any_record_after(bytes: &[u8], at: usize, generation: u64) -> bool {
    // No more records can follow than there is room for; few places pass, so few are summed up.
    let last = generation + ((bytes.len() - at) / RECORD_BYTES) as u64;
    let accepts = |found: u64| (generation + 1..=last).contains(&found);
    (at + 1..bytes.len()).any(|place| record_at(bytes, place, accepts).is_some())
}

fn checksum(generation: u64, entry: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&generation.to_le_bytes());
    hasher.update(entry);
    hasher.finalize()
}

fn header(generation: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&generation.to_le_bytes());
    let sum = crc32fast::hash(&header[..24]);
    header[24..28].copy_from_slice(&sum.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Update;

    fn batch(n: u64) -> Vec<Update> {
        (0..3).map(|i| Update::Delete(format!("item {n} {i}"))).collect()
    }

    /// A log of generations 5, 6 and 7, and where each record begins.
    fn log(dir: &Path) -> (PathBuf, Vec<u8>, Vec<usize>) {
        let mut wal = Wal::create(dir, 5).expect("a new folder");
        let mut starts = Vec::new();
        for generation in 5..8 {
            starts.push(wal.end as usize);
            let mut entry = Vec::new();
            log_entry::write_batch(&batch(generation), &mut entry);
            wal.append(generation, &entry, true).expect("room");
        }
        let path = dir.join(file_name(5));
        let bytes = std::fs::read(&path).expect("it was written");
        (path, bytes, starts)
    }

    #[track_caller]
    fn check(path: &Path, bytes: &[u8], num_records: u64, end: usize) {
        std::fs::write(path, bytes).expect("room");
        let replayed = replay(path, 5, true).expect("only the end is torn");
        let expected = (5..5 + num_records).map(|n| (n, LogEntry::Batch(batch(n))));
        assert_eq!(replayed.entries, expected.collect::<Vec<_>>());
        assert_eq!((replayed.end, replayed.torn_bytes), (end as u64, (bytes.len() - end) as u64));
        assert_eq!(replay(path, 5, false).is_err(), end < bytes.len());
    }

    #[test]
    fn a_log_cut_or_flipped_anywhere_in_its_last_record_has_those_before() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path());
        check(&path, &bytes, 3, bytes.len());
        for at in starts[2]..bytes.len() {
            check(&path, &bytes[..at], 2, starts[2]);
            for flip in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                check(&path, &bytes, 2, starts[2]);
            }
        }
        let mut longer = bytes.clone();
        longer.extend([0; 100]);
        check(&path, &longer, 3, bytes.len());
    }

    #[test]
    fn damage_before_a_whole_record_is_an_error_that_names_the_place() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path());
        for at in starts[0]..starts[2] {
            let start = if at < starts[1] { starts[0] } else { starts[1] };
            for flip in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                std::fs::write(&path, &bytes).expect("room");
                let error = replay(&path, 5, true).expect_err("a record is damaged").to_string();
                assert!(error.contains(&format!("at byte {start} ")), "{error}");
                assert!(error.contains(path.to_str().expect("UTF-8")), "{error}");
            }
        }
    }

    #[test]
    fn a_header_of_something_else_is_an_error() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, _) = log(dir.path());
        assert!(replay(&path, 6, true).is_err());
        for at in 0..HEADER_BYTES {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).expect("room");
            assert!(replay(&path, 5, true).is_err(), "byte {at}");
            std::fs::write(&path, &bytes[..at]).expect("room");
            assert!(replay(&path, 5, true).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn goes_on_after_what_was_cut_off() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path());
        std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("room");
        let end = replay(&path, 5, true).expect("torn").end;
        assert_eq!(end, starts[2] as u64);
        let mut wal = Wal::open_at(&path, end).expect("it is there");
        let mut entry = Vec::new();
        log_entry::write_rollback(3, &mut entry);
        wal.append(7, &entry, false).expect("room");
        let entries = replay(&path, 5, false).expect("whole").entries;
        assert_eq!(entries[2], (7, LogEntry::Rollback { to: 3 }));
    }
}
