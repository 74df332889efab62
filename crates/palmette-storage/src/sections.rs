//! A file of numbered sections, opened without parsing.
//!
//! Little-endian throughout. A header of 64 bytes: magic (8 bytes), format version (u32), number of
//! sections (u32), length of the file (u64), CRC-32 of header (with 0 in this field) and table
//! (u32), zeros. The table, 32 bytes a section: where it begins (u64), its length in bytes (u64),
//! its CRC-32 (u32), zeros. Then the sections in order, each at the next multiple of 64 bytes, zeros
//! between.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use rayon::prelude::*;

use crate::array::{Array, Pod};
use crate::file::write_atomically;
use crate::map::map;

const ALIGNMENT: usize = 64;
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 32;
/// Where the header keeps its checksum.
const CHECKSUM_AT: usize = 24;
/// Far more than any file here has; it bounds the table that a header may ask for.
const MAX_SECTIONS: usize = 1 << 20;

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The first bytes of the file.
    pub magic: [u8; 8],
    /// The version that this program writes and reads.
    pub version: u32,
}

/// How much of a file is checked when it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Header, table and lengths: a few microseconds whatever the size. For files that were checked
    /// whole before, by whoever wrote or received them.
    Frame,
    /// All of [`Frame`](Self::Frame), then the checksum of every section; callers add what they
    /// know of the contents.
    #[default]
    Whole,
}

/// Bytes that are no such file, or a damaged one; the message says what is wrong with them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct FormatError {
    kind: FormatErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum FormatErrorKind {
    #[error("is of another kind: it does not begin with {}", .0.escape_ascii())]
    Magic([u8; 8]),
    #[error("has format version {found}; this program reads version {version}")]
    Version { found: u32, version: u32 },
    #[error("is cut short or has grown: it should have {said} bytes and has {found}")]
    Length { said: u64, found: u64 },
    #[error("is damaged: the checksum of its {what} is {found:08x}, not {said:08x}")]
    Checksum { what: String, said: u32, found: u32 },
    #[error("is damaged: {0}")]
    Table(String),
}

impl FormatError {
    /// Whether this is another kind of file, rather than a damaged one.
    pub fn is_other_kind(&self) -> bool {
        matches!(self.kind, FormatErrorKind::Magic(_))
    }
}

/// A file that cannot be opened, or is no such file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The contents are wrong.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Sections to be written; they share the memory of what they were made from.
#[derive(Debug, Default)]
pub struct SectionsOut {
    sections: Vec<Bytes>,
}

impl SectionsOut {
    /// Adds a section and returns its number.
    ///
    /// # Panics
    /// On more than a million sections.
    pub fn add(&mut self, bytes: Bytes) -> u32 {
        assert!(self.sections.len() < MAX_SECTIONS, "a file has at most {MAX_SECTIONS} sections");
        self.sections.push(bytes);
        self.sections.len() as u32 - 1
    }

    /// Adds an array as a section and returns its number.
    pub fn add_array<T: Pod>(&mut self, array: &Array<T>) -> u32 {
        self.add(array.as_bytes().clone())
    }

    /// Writes a file, replacing it whole or not at all: see [`write_atomically`].
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn write(&self, path: &Path, format: Format) -> io::Result<()> {
        write_atomically(path, |file| self.write_to(file, format))
    }

    /// The bytes of a file.
    pub fn to_bytes(&self, format: Format) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes, format).expect("a Vec takes all");
        bytes
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.places().last().map_or(self.first_place(), |&(start, len)| start + len)
    }

    fn first_place(&self) -> u64 {
        (HEADER_BYTES + ENTRY_BYTES * self.sections.len()) as u64
    }

    /// Where each section begins, and its length.
    fn places(&self) -> Vec<(u64, u64)> {
        let mut end = self.first_place();
        let place = |section: &Bytes| {
            let start = end.next_multiple_of(ALIGNMENT as u64);
            end = start + section.len() as u64;
            (start, section.len() as u64)
        };
        self.sections.iter().map(place).collect()
    }

    fn write_to(&self, out: &mut impl Write, format: Format) -> io::Result<()> {
        let checksums: Vec<u32> =
            self.sections.par_iter().map(|section| crc32fast::hash(section)).collect();
        let places = self.places();
        let mut head = Vec::with_capacity(self.first_place() as usize);
        head.extend_from_slice(&format.magic);
        head.extend_from_slice(&format.version.to_le_bytes());
        head.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head.extend_from_slice(&self.file_bytes().to_le_bytes());
        head.resize(HEADER_BYTES, 0);
        for (&(start, len), checksum) in places.iter().zip(checksums) {
            head.extend_from_slice(&start.to_le_bytes());
            head.extend_from_slice(&len.to_le_bytes());
            head.extend_from_slice(&checksum.to_le_bytes());
            head.extend_from_slice(&[0; ENTRY_BYTES - 20]);
        }
        let checksum = crc32fast::hash(&head);
        head[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        out.write_all(&head)?;

        let mut written = head.len() as u64;
        for (&(start, len), section) in places.iter().zip(&self.sections) {
            out.write_all(&[0; ALIGNMENT][..(start - written) as usize])?;
            out.write_all(section)?;
            written = start + len;
        }
        Ok(())
    }
}

/// The sections of a file. Cheap to clone; the memory goes with the last array that uses it.
#[derive(Clone, Debug, Default)]
pub struct SectionsIn {
    sections: Vec<Bytes>,
}

impl SectionsIn {
    /// Maps a file into memory and checks it.
    ///
    /// # Errors
    /// When it cannot be read, is of another kind or version, or is damaged.
    pub fn open(path: &Path, format: Format, check: Check) -> Result<Self, OpenError> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file").into());
        }
        Ok(Self::from_bytes(map(&file)?, format, check)?)
    }

    /// Checks the bytes of a file, in this order: magic, header, version, length, number of sections,
    /// checksum of header and table, place of every section; and with [`Check::Whole`] the zeros
    /// between sections, then the checksum of every section.
    ///
    /// # Errors
    /// Names the first check that fails.
    pub fn from_bytes(bytes: Bytes, format: Format, check: Check) -> Result<Self, FormatError> {
        parse(bytes, format, check).map_err(|kind| FormatError { kind })
    }

    /// The section with this number.
    ///
    /// # Errors
    /// When there is none.
    pub fn section(&self, number: u32) -> Result<Bytes, String> {
        let section = self.sections.get(number as usize).cloned();
        section.ok_or_else(|| format!("it has {} sections, no {number}", self.sections.len()))
    }

    /// The last section.
    pub fn last(&self) -> Option<Bytes> {
        self.sections.last().cloned()
    }

    /// The section with this number, as `len` numbers.
    ///
    /// # Errors
    /// When there is no such section or it has another length.
    pub fn array<T: Pod>(&self, number: u32, len: u64) -> Result<Array<T>, String> {
        let section = self.section(number)?;
        let found = section.len();
        let said = len.checked_mul(size_of::<T>() as u64);
        if said != Some(found as u64) {
            let each = size_of::<T>();
            return Err(format!("section {number} has {found} bytes, not {len} times {each}"));
        }
        Ok(Array::from_bytes(section).expect("a whole number of them"))
    }
}

fn parse(bytes: Bytes, format: Format, check: Check) -> Result<SectionsIn, FormatErrorKind> {
    let found = bytes.len() as u64;
    if bytes.get(..8) != Some(&format.magic) {
        return Err(FormatErrorKind::Magic(format.magic));
    }
    let cut = |said: u64| FormatErrorKind::Length { said, found };
    let header = bytes.get(..HEADER_BYTES).ok_or(cut(HEADER_BYTES as u64))?;
    let version = u32_at(header, 8);
    if version != format.version {
        return Err(FormatErrorKind::Version { found: version, version: format.version });
    }
    let (num_sections, said) = (u32_at(header, 12) as usize, u64_at(header, 16));
    if said != found {
        return Err(cut(said));
    }
    if num_sections > MAX_SECTIONS {
        let problem = format!("it says {num_sections} sections, over the limit of {MAX_SECTIONS}");
        return Err(FormatErrorKind::Table(problem));
    }
    let table_end = HEADER_BYTES + ENTRY_BYTES * num_sections;
    let table = bytes.get(HEADER_BYTES..table_end).ok_or(cut(table_end as u64))?;
    let said = u32_at(header, CHECKSUM_AT);
    let mut blank = [0; HEADER_BYTES];
    blank.copy_from_slice(header);
    blank[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&blank);
    hasher.update(table);
    let sum = hasher.finalize();
    if sum != said {
        return Err(FormatErrorKind::Checksum { what: "header".to_owned(), said, found: sum });
    }

    let mut end = table_end as u64;
    let mut sections = Vec::with_capacity(num_sections);
    for (number, entry) in table.chunks_exact(ENTRY_BYTES).enumerate() {
        let (start, len) = (u64_at(entry, 0), u64_at(entry, 8));
        let next = end.next_multiple_of(ALIGNMENT as u64);
        let section_end = start.checked_add(len).filter(|&e| start == next && e <= found);
        let Some(section_end) = section_end else {
            let problem = format!("section {number} lies at {start}, {len} bytes long");
            return Err(FormatErrorKind::Table(problem));
        };
        if check == Check::Whole && bytes[end as usize..start as usize].iter().any(|&b| b != 0) {
            let problem = format!("there is something between sections before {number}");
            return Err(FormatErrorKind::Table(problem));
        }
        sections.push(bytes.slice(start as usize..section_end as usize));
        end = section_end;
    }
    if end != found {
        return Err(FormatErrorKind::Table(format!("its sections end at {end} of {found}")));
    }
    if check == Check::Whole {
        check_sums(&sections, table)?;
    }
    Ok(SectionsIn { sections })
}

/// Names the first section that differs from its checksum.
fn check_sums(sections: &[Bytes], table: &[u8]) -> Result<(), FormatErrorKind> {
    let sums: Vec<u32> = sections.par_iter().map(|section| checksum(section)).collect();
    let said = table.chunks_exact(ENTRY_BYTES).map(|entry| u32_at(entry, 16));
    let wrong = sums.into_iter().zip(said).enumerate().find(|(_, (found, said))| found != said);
    match wrong {
        None => Ok(()),
        Some((number, (found, said))) => {
            let what = format!("section {number}");
            Err(FormatErrorKind::Checksum { what, said, found })
        }
    }
}

/// The CRC-32 of a section, computed in pieces side by side.
fn checksum(section: &[u8]) -> u32 {
    const PIECE_BYTES: usize = 4 << 20;
    let hashed = |piece: &[u8]| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(piece);
        hasher
    };
    let hashers: Vec<crc32fast::Hasher> = section.par_chunks(PIECE_BYTES).map(hashed).collect();
    let mut whole = crc32fast::Hasher::new();
    hashers.iter().for_each(|hasher| whole.combine(hasher));
    whole.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORMAT: Format = Format { magic: *b"TESTING\0", version: 3 };

    fn sections() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..5)
    }

    fn file(sections: &[Vec<u8>]) -> Vec<u8> {
        let mut out = SectionsOut::default();
        for (number, section) in sections.iter().enumerate() {
            assert_eq!(out.add(section.clone().into()), number as u32);
        }
        let bytes = out.to_bytes(FORMAT);
        assert_eq!(bytes.len() as u64, out.file_bytes());
        bytes
    }

    proptest! {
        #[test]
        fn gives_back_what_went_in(sections in sections()) {
            for check in [Check::Frame, Check::Whole] {
                let back = SectionsIn::from_bytes(file(&sections).into(), FORMAT, check)?;
                prop_assert_eq!(&back.sections, &sections);
                prop_assert!(back.section(sections.len() as u32).is_err());
            }
        }

        #[test]
        fn one_changed_byte_is_found(sections in sections(), at: prop::sample::Index, by in 1_u8..) {
            let mut bytes = file(&sections);
            let at = at.index(bytes.len());
            bytes[at] = bytes[at].wrapping_add(by);
            prop_assert!(SectionsIn::from_bytes(bytes.into(), FORMAT, Check::Whole).is_err());
        }

        #[test]
        fn a_cut_file_is_found(sections in sections(), at: prop::sample::Index) {
            let mut bytes = file(&sections);
            bytes.truncate(at.index(bytes.len()));
            prop_assert!(SectionsIn::from_bytes(bytes.into(), FORMAT, Check::Frame).is_err());
        }

        /// Headers and tables whose checksums are right, but nothing else.
        #[test]
        fn a_hostile_table_is_an_error_or_within_bounds(
            words in prop::collection::vec(prop_oneof![0_u64..600, any::<u64>()], 0..40),
            num_sections in prop_oneof![0_u32..6, any::<u32>()],
        ) {
            let mut bytes = FORMAT.magic.to_vec();
            bytes.extend_from_slice(&FORMAT.version.to_le_bytes());
            bytes.extend_from_slice(&num_sections.to_le_bytes());
            bytes.extend_from_slice(&((HEADER_BYTES + words.len() * 8) as u64).to_le_bytes());
            bytes.resize(HEADER_BYTES, 0);
            bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            let end = HEADER_BYTES + ENTRY_BYTES * num_sections as usize;
            let sum = crc32fast::hash(&bytes[..end.min(bytes.len())]);
            bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
            if let Ok(sections) = SectionsIn::from_bytes(bytes.into(), FORMAT, Check::Frame) {
                prop_assert!(sections.section(num_sections).is_err());
            }
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let check = |bytes: Vec<u8>, message: &str| {
            let error = SectionsIn::from_bytes(bytes.into(), FORMAT, Check::Whole).unwrap_err();
            assert_eq!(error.to_string(), message);
        };
        check(b"other".to_vec(), "is of another kind: it does not begin with TESTING\\x00");
        let good = file(&[vec![1, 2, 3]]);
        let cut = "is cut short or has grown: it should have 131 bytes and has 130";
        check(good[..130].to_vec(), cut);
        let mut newer = good.clone();
        newer[8] = 4;
        check(newer, "has format version 4; this program reads version 3");
        let mut damaged = good.clone();
        damaged[130] = 4;
        check(damaged, "is damaged: the checksum of its section 0 is cbd815be, not 55bc801d");
    }
}
