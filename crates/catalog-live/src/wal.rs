//! The write-ahead log: every batch, in order, before it is seen.
//!
//! A file begins with 64 bytes: magic, version (u32), zeros (u32), the generation of its first
//! record (u64), CRC-32 of these (u32), zeros; then, from byte 32, the **mark**: the last
//! generation that was acknowledged as forced to the disk (u64), its CRC-32 (u32); from byte 44
//! where the mark bounds what readers may read 1 (u32) and the identity of the running system (16
//! bytes), else zeros. Records follow without gaps: length of the entry (u32), CRC-32 of what comes
//! after it (u32), the generation that the entry makes (u64), the entry. Little-endian.
//!
//! A file is named after its first generation. Generations follow one another without gaps, from
//! record to record and from file to file.
//!
//! A record that is not whole at the end of the last file was being written when the process ended,
//! unless the mark says that it was acknowledged: then it is damaged. The mark is not forced to the
//! disk, so it may lag, never lead.
//!
//! # Faults of the disk
//! A record that could not be written, or forced to the disk, was not acknowledged and is cut off,
//! so that the next one is tried as if it had never been. Readers have not seen it: they read no
//! further than the mark, unless the system was started since, when the mark may lag behind the
//! records and nobody is writing one. What a file system keeps after it failed to force a file says
//! nothing about the disk, so that the file is then closed, opened again, checked, and written and
//! forced once more.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use palmette_mapped::write_atomically;

use crate::error::LiveError;
use crate::log_entry::{self, LogEntry};

const MAGIC: [u8; 8] = *b"PALMWAL\0";
const VERSION: u32 = 2;
const HEADER_BYTES: usize = 64;
/// Bytes of the header before the mark.
const MARK_AT: usize = 32;
const MARK_BYTES: usize = 12;
/// Place of what says whether the mark bounds readers.
const BOUND_AT: usize = MARK_AT + MARK_BYTES;
const BOUND_BYTES: usize = HEADER_BYTES - BOUND_AT;
/// Looks at a mark that may be being written.
const MARK_LOOKS: usize = 3;
/// Bytes that are written to see whether there is room.
const TRIAL_BYTES: usize = 64 << 10;
const RECORD_BYTES: usize = 16;

/// The file that records are appended to.
#[derive(Debug)]
pub(crate) struct Wal {
    path: PathBuf,
    file: Box<dyn LogFile>,
    open: FileOpener,
    /// Offset at which the next record begins.
    end: u64,
    /// Fault to be mended before anything is appended.
    fault: Option<Fault>,
}

/// State of a file after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Bytes may follow the last record.
    Tail,
    /// The file could not be forced to the disk, so that what it seems to hold may not be there.
    Unforced,
}

/// A file that is written to; tests have one that fails.
pub(crate) trait LogFile: fmt::Debug + Send + Sync {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Forces what was written to the disk.
    fn force(&mut self) -> io::Result<()>;
}

impl LogFile for File {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(offset))?;
        self.write_all(bytes)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }

    fn force(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Opens a file to be written to.
pub(crate) type FileOpener = fn(&Path) -> io::Result<Box<dyn LogFile>>;

fn open_file(path: &Path) -> io::Result<Box<dyn LogFile>> {
    Ok(Box::new(OpenOptions::new().write(true).open(path)?))
}

/// Contents of a file that was read again.
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
    /// Begins a file whose first record will make `generation`; with `is_forced` each record will
    /// be forced to the disk.
    pub(crate) fn create(dir: &Path, generation: u64, is_forced: bool) -> Result<Self, LiveError> {
        let path = dir.join(file_name(generation));
        let error = |e| LiveError::io(&path, e);
        write_atomically(&path, |file| file.write_all(&header(generation))).map_err(error)?;
        Self::open_at(&path, HEADER_BYTES as u64, generation - 1, is_forced)
    }

    /// Goes on after the first `end` bytes of a file, the last record of which made `generation`;
    /// what comes after them is cut off.
    pub(crate) fn open_at(
        path: &Path,
        end: u64,
        generation: u64,
        is_forced: bool,
    ) -> Result<Self, LiveError> {
        let open = || {
            let mut bytes = Vec::new();
            let mut found = File::open(path)?;
            Read::by_ref(&mut found).take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
            let len = found.metadata()?.len();
            let mut file = open_file(path)?;
            if len != end {
                file.set_len(end)?;
            }
            // The process before may have ended before it had forced its last record, which counts
            // from now on.
            if is_forced || len != end {
                file.force()?;
            }
            if is_forced && end > HEADER_BYTES as u64 && marked(&bytes) < generation {
                file.write_at(MARK_AT as u64, &mark(generation))?;
            }
            // A file that is as it is to be is not written to: the disk may be full.
            let bound = is_forced.then(bound).flatten().unwrap_or_default();
            if bytes.get(BOUND_AT..) != Some(&bound[..]) {
                file.write_at(BOUND_AT as u64, &bound)?;
            }
            Ok(file)
        };
        let file = open().map_err(|e| LiveError::io(path, e))?;
        Ok(Self { path: path.to_owned(), file, open: open_file, end, fault: None })
    }

    /// Appends the record that makes `generation`, and forces it to the disk if asked to.
    ///
    /// After an error the record is not in the file, or is cut off before anything is appended.
    pub(crate) fn append(&mut self, generation: u64, entry: &[u8], sync: bool) -> io::Result<()> {
        self.repair()?;
        let len = u32::try_from(entry.len())
            .map_err(|_| io::Error::other("a batch takes more than 4 GiB; apply it in parts"))?;
        let mut record = Vec::with_capacity(RECORD_BYTES + entry.len());
        record.extend_from_slice(&len.to_le_bytes());
        record.extend_from_slice(&checksum(generation, entry).to_le_bytes());
        record.extend_from_slice(&generation.to_le_bytes());
        record.extend_from_slice(entry);
        self.write(&record, sync)?;
        self.end += record.len() as u64;
        if sync {
            // It may lag.
            _ = self.file.write_at(MARK_AT as u64, &mark(generation));
        }
        Ok(())
    }

    /// Writes bytes after the last record; after an error they are cut off, or will be.
    fn write(&mut self, bytes: &[u8], sync: bool) -> io::Result<()> {
        self.fault = Some(Fault::Tail);
        let mut written = self.file.write_at(self.end, bytes);
        if written.is_ok() && sync {
            self.fault = Some(Fault::Unforced);
            written = self.file.force();
        }
        match written {
            Ok(()) => self.fault = None,
            // Where it fails it is tried again before the next record.
            Err(_) => _ = self.repair(),
        }
        written
    }

    /// Puts the file right after an error, so that it ends with the last record.
    pub(crate) fn repair(&mut self) -> io::Result<()> {
        match self.fault {
            None => return Ok(()),
            Some(Fault::Tail) => self.file.set_len(self.end)?,
            Some(Fault::Unforced) => {
                let mut file = (self.open)(&self.path)?;
                file.set_len(self.end)?;
                let bytes = std::fs::read(&self.path)?;
                let is_whole = bytes.len() as u64 == self.end && self.is_whole(&bytes);
                if !is_whole {
                    return Err(io::Error::other(
                        "the log lost records when it could not be forced to the disk; export the catalog while it is served, and restore \
                         it from that",
                    ));
                }
                // The same bytes, as new ones: those before count as written and may not be.
                file.write_at(0, &bytes)?;
                file.force()?;
                self.file = file;
            }
        }
        self.fault = None;
        Ok(())
    }

    /// Writes by another kind of file.
    #[cfg(test)]
    pub(crate) fn write_by(&mut self, open: FileOpener) {
        (self.open, self.file) = (open, open(&self.path).expect("no fault yet"));
    }

    /// True if bytes are those of a log that ends with a whole record.
    fn is_whole(&self, bytes: &[u8]) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str());
        let first = name.and_then(first_generation).unwrap_or_default();
        let records =
            Records { path: &self.path, bytes, first_byte: 0, acknowledged: 0, newest: u64::MAX };
        check_header(&self.path, bytes, first).is_ok()
            && records.from(HEADER_BYTES, first, false).is_ok()
    }

    /// Tries whether the file can be written and forced, by bytes that are no record and are cut
    /// off.
    pub(crate) fn try_to_write(&mut self) -> io::Result<()> {
        self.repair()?;
        self.write(&[0; TRIAL_BYTES], true)?;
        self.fault = Some(Fault::Tail);
        self.repair()
    }

    /// Forces everything to the disk.
    pub(crate) fn sync(&mut self) -> Result<(), LiveError> {
        let forced = self
            .repair()
            .and_then(|()| self.file.force().inspect_err(|_| self.fault = Some(Fault::Unforced)));
        forced.map_err(|e| LiveError::io(&self.path, e))
    }

    /// Bytes of the file's records.
    pub(crate) fn bytes(&self) -> u64 {
        self.end - HEADER_BYTES as u64
    }

    /// True if the file is without records, and the first must make a generation.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == HEADER_BYTES as u64
    }

    /// True if the file is without records and the first will make `generation`.
    pub(crate) fn begins_with(&self, generation: u64) -> bool {
        self.is_empty() && self.path.ends_with(file_name(generation))
    }
}

/// Reads a file whose first record makes `first`. With `may_be_torn` it may end in a part of a
/// record: the end of the process came before the record was acknowledged.
///
/// # Errors
/// When it cannot be read; when its header is wrong; when a record is damaged and whole ones follow
/// it, or the file may not be torn.
pub(crate) fn replay(path: &Path, first: u64, may_be_torn: bool) -> Result<Replayed, LiveError> {
    let bytes = std::fs::read(path).map_err(|e| LiveError::io(path, e))?;
    check_header(path, &bytes, first)?;
    let acknowledged = marked(&bytes);
    let read = Records { path, bytes: &bytes, first_byte: 0, acknowledged, newest: u64::MAX };
    read.from(HEADER_BYTES, first, may_be_torn)
}

fn check_header(path: &Path, bytes: &[u8], first: u64) -> Result<(), LiveError> {
    if bytes.len() >= HEADER_BYTES && bytes.starts_with(&header(first)[..MARK_AT]) {
        return Ok(());
    }
    let problem = format!(
        "is no log of version {VERSION} that begins with generation {first}, or its first \
         {HEADER_BYTES} bytes are damaged; restore it from a copy"
    );
    Err(LiveError::damaged(path, problem))
}

/// The last generation that the mark of a file says to be on the disk; 0 where it says nothing.
fn marked(bytes: &[u8]) -> u64 {
    whole_mark(bytes).unwrap_or(0)
}

/// The generation of the mark of a file, 0 before the first; `None` where the mark is damaged.
fn whole_mark(bytes: &[u8]) -> Option<u64> {
    let found = bytes.get(MARK_AT..MARK_AT + MARK_BYTES)?;
    let generation = u64::from_le_bytes(found[..8].try_into().ok()?);
    let is_whole = found == mark(generation) || found == [0; MARK_BYTES];
    is_whole.then_some(generation)
}

/// Bytes that bound readers by the mark while this system runs; `None` where it does not tell when
/// it was started.
fn bound() -> Option<[u8; BOUND_BYTES]> {
    static STARTED: OnceLock<Option<u128>> = OnceLock::new();
    let started = STARTED.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
    });
    let mut bytes = [0; BOUND_BYTES];
    bytes[..4].copy_from_slice(&1_u32.to_le_bytes());
    bytes[4..].copy_from_slice(&(*started)?.to_le_bytes());
    Some(bytes)
}

/// True if readers read no further than the mark of a file.
fn is_bound(bytes: &[u8]) -> bool {
    bound().is_some_and(|bound| bytes.get(BOUND_AT..HEADER_BYTES) == Some(&bound[..]))
}

fn mark(generation: u64) -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    mark[..8].copy_from_slice(&generation.to_le_bytes());
    let sum = crc32fast::hash(&mark[..8]);
    mark[8..].copy_from_slice(&sum.to_le_bytes());
    mark
}

/// A part of a file, with records.
struct Records<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    /// Bytes of the file before them.
    first_byte: u64,
    /// Records up to this generation must be whole.
    acknowledged: u64,
    /// Records after this generation are not read.
    newest: u64,
}

impl Records<'_> {
    /// Reads records from a place on, the first of which makes `generation`.
    fn from(
        &self,
        mut at: usize,
        mut generation: u64,
        may_be_torn: bool,
    ) -> Result<Replayed, LiveError> {
        let &Self { path, bytes, first_byte, acknowledged, newest } = self;
        let mut entries = Vec::new();
        while generation <= newest && (at < bytes.len() || generation <= acknowledged) {
            let Some(entry) = record_at(bytes, at, |found| found == generation) else {
                let is_torn = may_be_torn
                    && generation > acknowledged
                    && !any_record_after(bytes, at, generation);
                if is_torn {
                    break;
                }
                let place = first_byte + at as u64;
                let problem = format!(
                    "is damaged: at byte {place} there is no whole record of generation {generation}, but it \
                     is not the end of the log; restore the file from a copy"
                );
                return Err(LiveError::damaged(path, problem));
            };
            let len = RECORD_BYTES + entry.len();
            let Some(entry) = log_entry::read(entry) else {
                let place = first_byte + at as u64;
                let problem = format!(
                    "the record at byte {place} is whole, but this program does not understand it; was it \
                     written by a newer one?"
                );
                return Err(LiveError::damaged(path, problem));
            };
            entries.push((generation, entry));
            at += len;
            generation += 1;
        }
        let end = first_byte + at as u64;
        Ok(Replayed { entries, end, torn_bytes: first_byte + bytes.len() as u64 - end })
    }
}

/// File of the log that another process is writing.
#[derive(Debug)]
pub(crate) struct WalTail {
    path: PathBuf,
    file: File,
    /// Bytes up to the end of the last record that was read.
    at: u64,
    /// The generation that the next record makes.
    generation: u64,
}

impl WalTail {
    /// Opens the file whose first record makes `first`, at its beginning.
    pub(crate) fn open(dir: &Path, first: u64) -> Result<Self, LiveError> {
        let path = dir.join(file_name(first));
        let open = || {
            let mut file = File::open(&path)?;
            let mut header = Vec::new();
            Read::by_ref(&mut file).take(HEADER_BYTES as u64).read_to_end(&mut header)?;
            Ok((file, header))
        };
        let (file, header) = open().map_err(|e| LiveError::io(&path, e))?;
        check_header(&path, &header, first)?;
        Ok(Self { path, file, at: HEADER_BYTES as u64, generation: first })
    }

    /// The generation that the next record makes.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// True at the beginning of the file whose first record makes `generation`.
    pub(crate) fn begins_with(&self, generation: u64) -> bool {
        self.path.ends_with(file_name(generation))
    }

    /// Bytes of the records that were read.
    pub(crate) fn bytes(&self) -> u64 {
        self.at - HEADER_BYTES as u64
    }

    /// Reads the records that were added since, as far as they are whole: the last may be being
    /// written. Cost: a look at the file's length where there are none.
    pub(crate) fn read(&mut self) -> Result<Vec<(u64, LogEntry)>, LiveError> {
        let mut bytes = Vec::new();
        let mut header = Vec::new();
        let mut read = |file: &mut File| {
            for _ in 0..MARK_LOOKS {
                header.clear();
                file.seek(SeekFrom::Start(0))?;
                Read::by_ref(file).take(HEADER_BYTES as u64).read_to_end(&mut header)?;
                if whole_mark(&header).is_some() {
                    break;
                }
            }
            file.seek(SeekFrom::Start(self.at))?;
            file.read_to_end(&mut bytes)
        };
        let error = |e| LiveError::io(&self.path, e);
        if self.file.metadata().map_err(error)?.len() == self.at {
            return Ok(Vec::new());
        }
        read(&mut self.file).map_err(error)?;
        let acknowledged = marked(&header);
        // What is not acknowledged may be cut off again, and another record take its place. A mark
        // that is damaged bounds nothing.
        let newest = whole_mark(&header).filter(|_| is_bound(&header)).unwrap_or(u64::MAX);
        let (path, first_byte) = (&self.path, self.at);
        let records = Records { path, bytes: &bytes, first_byte, acknowledged, newest };
        let replayed = records.from(0, self.generation, true)?;
        self.at = replayed.end;
        self.generation += replayed.entries.len() as u64;
        Ok(replayed.entries)
    }
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

/// True if a whole record of a later generation begins anywhere after `at`.
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
    use crate::faults::{FAULTS, Faults, NO_FAULTS, open_faulty};
    use crate::update::Update;

    fn batch(n: u64) -> Vec<Update> {
        (0..3).map(|i| Update::Delete(format!("item {n} {i}"))).collect()
    }

    /// A log of generations 5, 6 and 7, and where each record begins.
    fn log(dir: &Path, is_synced: bool) -> (PathBuf, Vec<u8>, Vec<usize>) {
        let mut wal = Wal::create(dir, 5, is_synced).expect("a new folder");
        let mut starts = Vec::new();
        for generation in 5..8 {
            starts.push(wal.end as usize);
            let mut entry = Vec::new();
            log_entry::write_batch(&batch(generation), None, &mut entry);
            wal.append(generation, &entry, is_synced).expect("room");
        }
        let path = dir.join(file_name(5));
        let bytes = std::fs::read(&path).expect("it was written");
        (path, bytes, starts)
    }

    #[track_caller]
    fn check(path: &Path, bytes: &[u8], num_records: u64, end: usize) {
        std::fs::write(path, bytes).expect("room");
        let replayed = replay(path, 5, true).expect("only the end is torn");
        let expected =
            (5..5 + num_records).map(|n| (n, LogEntry::Batch { updates: batch(n), key: None }));
        assert_eq!(replayed.entries, expected.collect::<Vec<_>>());
        assert_eq!((replayed.end, replayed.torn_bytes), (end as u64, (bytes.len() - end) as u64));
        assert_eq!(replay(path, 5, false).is_err(), end < bytes.len());
    }

    #[test]
    fn a_log_cut_or_flipped_anywhere_in_its_last_record_has_those_before() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path(), false);
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
    fn a_record_that_was_acknowledged_is_never_taken_for_torn() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path(), true);
        check(&path, &bytes, 3, bytes.len());
        for at in starts[2]..bytes.len() {
            for flip in [0, 1, 0xff] {
                let mut bytes = bytes.clone();
                if flip == 0 {
                    bytes.truncate(at)
                } else {
                    bytes[at] ^= flip
                }
                std::fs::write(&path, &bytes).expect("room");
                let error = replay(&path, 5, true).expect_err("it was acknowledged").to_string();
                assert!(error.contains(&format!("at byte {} ", starts[2])), "{error}");
            }
        }
        // Damage to the mark alone loses nothing.
        for at in MARK_AT..HEADER_BYTES {
            let mut bytes = bytes.clone();
            bytes[at] ^= 4;
            check(&path, &bytes, 3, bytes.len());
        }
    }

    #[test]
    fn a_tail_reads_what_is_whole() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path(), false);
        std::fs::write(&path, &bytes[..starts[1]]).expect("room");
        let mut tail = WalTail::open(dir.path(), 5).expect("it is there");
        let generations = |tail: &mut WalTail| -> Vec<u64> {
            tail.read().expect("sound").into_iter().map(|(generation, _)| generation).collect()
        };
        assert_eq!(generations(&mut tail), [5]);
        for end in starts[1]..starts[2] {
            std::fs::write(&path, &bytes[..end]).expect("room");
            assert_eq!(generations(&mut tail), [0; 0]);
        }
        std::fs::write(&path, &bytes).expect("room");
        assert_eq!(generations(&mut tail), [6, 7]);
        assert_eq!((generations(&mut tail), tail.generation()), (vec![], 8));
    }

    #[test]
    fn a_tail_reads_what_was_acknowledged_while_it_is_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, mut bytes, _) = log(dir.path(), true);
        bytes[MARK_AT..BOUND_AT].copy_from_slice(&mark(6));
        std::fs::write(&path, &bytes).expect("room");
        let mut tail = WalTail::open(dir.path(), 5).expect("it is there");
        assert_eq!(tail.read().expect("sound").len(), 2);
        assert_eq!(tail.read().expect("sound").len(), 0);
        // After a start of the system nobody is writing the last, and its mark may have been lost.
        bytes[BOUND_AT + 4] ^= 1;
        std::fs::write(&path, &bytes).expect("room");
        assert_eq!(tail.read().expect("sound").len(), 1);
    }

    #[test]
    fn damage_before_a_whole_record_is_an_error_that_names_the_place() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path(), false);
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
        let (path, bytes, _) = log(dir.path(), false);
        assert!(replay(&path, 6, true).is_err());
        for at in 0..HEADER_BYTES {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).expect("room");
            assert_eq!(replay(&path, 5, true).is_err(), at < MARK_AT, "byte {at}");
            std::fs::write(&path, &bytes[..at]).expect("room");
            assert!(replay(&path, 5, true).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn goes_on_after_what_was_cut_off() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path(), false);
        std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("room");
        let end = replay(&path, 5, true).expect("torn").end;
        assert_eq!(end, starts[2] as u64);
        let mut wal = Wal::open_at(&path, end, 6, false).expect("it is there");
        let mut entry = Vec::new();
        log_entry::write_rollback(3, &mut entry);
        wal.append(7, &entry, false).expect("room");
        let entries = replay(&path, 5, false).expect("whole").entries;
        assert_eq!(entries[2], (7, LogEntry::Rollback { to: 3 }));
    }

    /// Faults of the disk lose no acknowledged record, whatever fails and for how long. None is
    /// there that was not acknowledged, and the next is taken as soon as nothing fails.
    #[test]
    fn faults_of_the_disk_pass() {
        let mut num_refused = 0;
        for is_synced in [true, false] {
            for (room, lens, forces, opens) in [
                (70, 0, 0, 0),
                (70, 1, 0, 0),
                (70, 3, 0, 0),
                (u64::MAX, 0, 1, 0),
                (u64::MAX, 0, 2, 0),
                (u64::MAX, 1, 1, 0),
                (u64::MAX, 2, 3, 0),
                (u64::MAX, 0, 1, 2),
                (150, 2, 2, 2),
            ] {
                let dir = tempfile::tempdir().expect("a folder");
                let (path, _, _) = log(dir.path(), is_synced);
                let end = replay(&path, 5, false).expect("whole").end;
                let mut wal = Wal::open_at(&path, end, 7, is_synced).expect("it is there");
                wal.write_by(open_faulty);
                let mut tail = WalTail::open(dir.path(), 5).expect("it is there");
                let mut seen = tail.read().expect("sound").len() as u64 + 4;
                let room = room.saturating_add(if room < u64::MAX { end } else { 0 });
                FAULTS.set(Faults { room, lens, forces, opens });
                let mut generation = 8;
                for round in 0..40 {
                    if round == 20 {
                        FAULTS.set(NO_FAULTS);
                    }
                    // Another batch each time: none takes the place of one that was refused.
                    let mut entry = Vec::new();
                    log_entry::write_batch(&batch(100 + round), None, &mut entry);
                    match wal.append(generation, &entry, is_synced) {
                        Ok(()) => generation += 1,
                        Err(_) => num_refused += 1,
                    }
                    let entries = tail.read().expect("sound");
                    seen += entries.len() as u64;
                    assert_eq!(seen, generation - 1, "a reader has what was acknowledged");
                    let replayed = replay(&path, 5, true).expect("its end may be torn");
                    let is_clean = wal.fault.is_none();
                    if is_clean {
                        assert_eq!((replayed.torn_bytes, replayed.end), (0, wal.end));
                        assert_eq!(replayed.entries.len() as u64, generation - 5);
                    }
                    assert!(round < 20 || is_clean, "round {round}");
                }
                assert!(generation >= 28, "{generation}");
            }
        }
        assert!(num_refused > 20, "{num_refused}");
    }

    /// A file that could not be forced is not believed: it is read again, and written again.
    #[test]
    fn what_was_lost_when_it_could_not_be_forced_is_said() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, starts) = log(dir.path(), true);
        let mut wal = Wal::open_at(&path, bytes.len() as u64, 7, true).expect("it is there");
        wal.write_by(open_faulty);
        FAULTS.set(Faults { forces: 1, opens: 1, ..NO_FAULTS });
        let mut entry = Vec::new();
        log_entry::write_rollback(3, &mut entry);
        wal.append(8, &entry, true).expect_err("a fault");
        // The system dropped what it could not write.
        let mut lost = bytes.clone();
        lost[starts[1]..].fill(0);
        std::fs::write(&path, &lost).expect("room");
        let error = wal.append(8, &entry, true).expect_err("records are gone").to_string();
        assert!(error.contains("lost records") && error.contains("export"), "{error}");
        std::fs::write(&path, &bytes).expect("room");
        wal.append(8, &entry, true).expect("it is there again");
        assert_eq!(replay(&path, 5, false).expect("whole").entries.len(), 4);
    }

    #[test]
    fn a_trial_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, bytes, _) = log(dir.path(), true);
        let mut wal = Wal::open_at(&path, bytes.len() as u64, 7, true).expect("it is there");
        wal.write_by(open_faulty);
        FAULTS.set(Faults { room: bytes.len() as u64 + 1000, ..NO_FAULTS });
        wal.try_to_write().expect_err("there is no room");
        assert_eq!(std::fs::read(&path).expect("it is there"), bytes);
        FAULTS.set(NO_FAULTS);
        wal.try_to_write().expect("there is room");
        assert_eq!(std::fs::read(&path).expect("it is there"), bytes);
    }
}
