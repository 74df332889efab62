//! A file of numbered sections, opened without parsing.
//!
//! Little-endian throughout. A header of 64 bytes: magic (8 bytes), format version (u32), number of
//! sections (u32), length of the file (u64), CRC-32 of header (with 0 in this field) and table
//! (u32), bytes of a block (u32), zeros. The table, 32 bytes a section: where it begins (u64), its
//! length in bytes (u64), its CRC-32 (u32), zeros; then the CRC-32 of every block (u32) of each
//! section that is longer than a block, so that damage has a place. Then the sections in order,
//! each at the next multiple of 64 bytes, zeros between. Files with 0 bytes a block have no sums of
//! blocks.

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
/// Offset of the checksum in the header.
const CHECKSUM_AT: usize = 24;
/// Place in the header of the bytes of a block.
const BLOCK_BYTES_AT: usize = 28;
/// Bytes that have a checksum of their own in the files that are written.
const BLOCK_BYTES: usize = 64 << 10;
/// Far more than any file here has; it bounds the table that a header may ask for.
const MAX_SECTIONS: usize = 1 << 20;

/// Kind of a file: its first bytes and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The first bytes of the file.
    pub magic: [u8; 8],
    /// The version that this program writes and reads.
    pub version: u32,
}

/// Extent of the checks when a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Header, table and lengths: a few microseconds whatever the size. For files that were checked
    /// whole before, by whoever wrote or received them.
    Frame,
    /// All of [`Frame`](Self::Frame), then every checksum: the bytes are those that were written.
    /// It reads the whole file, side by side on all threads.
    Sums,
    /// All of [`Sums`](Self::Sums), and callers add what they know of the contents: for files that
    /// may have been made by somebody else.
    #[default]
    Whole,
}

impl Check {
    /// True where checksums are verified.
    fn has_sums(self) -> bool {
        self != Self::Frame
    }
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
    #[error(
        "has format version {found}; this program reads version {version}: make it anew with this one"
    )]
    Version { found: u32, version: u32 },
    #[error("is cut short or has grown: it should have {said} bytes and has {found}")]
    Length { said: u64, found: u64 },
    #[error("is damaged: the checksum of its {what} is {found:08x}, not {said:08x}")]
    Checksum { what: String, said: u32, found: u32 },
    #[error(
        "is damaged: block {number}, bytes {start} to {end}, has the checksum {found:08x}, not {said:08x}"
    )]
    Block { number: u64, start: u64, end: u64, said: u32, found: u32 },
    #[error("is damaged: {0}")]
    Table(String),
}

impl FormatError {
    /// True if this is another kind of file, rather than a damaged one.
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
        let num_blocks: usize =
            self.sections.iter().map(|section| num_blocks(section.len(), BLOCK_BYTES)).sum();
        (HEADER_BYTES + ENTRY_BYTES * self.sections.len() + SUM_BYTES * num_blocks) as u64
    }

    /// Start and length of each section.
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
        let checksums: Vec<(u32, Vec<u32>)> =
            self.sections.par_iter().map(|section| checksums(section, BLOCK_BYTES)).collect();
        let places = self.places();
        let mut head = Vec::with_capacity(self.first_place() as usize);
        head.extend_from_slice(&format.magic);
        head.extend_from_slice(&format.version.to_le_bytes());
        head.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head.extend_from_slice(&self.file_bytes().to_le_bytes());
        head.resize(HEADER_BYTES, 0);
        head[BLOCK_BYTES_AT..BLOCK_BYTES_AT + 4]
            .copy_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
        for (&(start, len), (checksum, _)) in places.iter().zip(&checksums) {
            head.extend_from_slice(&start.to_le_bytes());
            head.extend_from_slice(&len.to_le_bytes());
            head.extend_from_slice(&checksum.to_le_bytes());
            head.extend_from_slice(&[0; ENTRY_BYTES - 20]);
        }
        let blocks = checksums.iter().flat_map(|(_, blocks)| blocks);
        blocks.for_each(|block| head.extend_from_slice(&block.to_le_bytes()));
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
#[derive(Clone, Debug)]
pub struct SectionsIn {
    sections: Vec<Bytes>,
    /// The whole file.
    file: Bytes,
    format: Format,
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

    /// Checks the bytes of a file, in this order: magic, header, version, length, number of
    /// sections, checksum of header and table, place of every section; and unless it is
    /// [`Check::Frame`] the zeros between sections, then every checksum.
    ///
    /// # Errors
    /// Names the first check that fails.
    pub fn from_bytes(bytes: Bytes, format: Format, check: Check) -> Result<Self, FormatError> {
        parse(bytes, format, check).map_err(|kind| FormatError { kind })
    }

    /// Verifies every checksum, now: of a mapped file the bytes may have changed since it was
    /// opened.
    ///
    /// # Errors
    /// Names the first block that is not what was written.
    pub fn verify(&self) -> Result<(), FormatError> {
        Self::from_bytes(self.file.clone(), self.format, Check::Sums).map(drop)
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
    let block_bytes = u32_at(header, BLOCK_BYTES_AT) as usize;
    let lens = table.chunks_exact(ENTRY_BYTES).map(|entry| u64_at(entry, 8));
    let blocks_end = lens.fold(table_end as u64, |end, len| {
        end.saturating_add(num_blocks(len as usize, block_bytes) as u64 * SUM_BYTES as u64)
    });
    let blocks = usize::try_from(blocks_end).ok().and_then(|end| bytes.get(table_end..end));
    let blocks = blocks.ok_or(cut(blocks_end))?;
    let said = u32_at(header, CHECKSUM_AT);
    let mut blank = [0; HEADER_BYTES];
    blank.copy_from_slice(header);
    blank[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&blank);
    hasher.update(table);
    hasher.update(blocks);
    let sum = hasher.finalize();
    if sum != said {
        return Err(FormatErrorKind::Checksum { what: "header".to_owned(), said, found: sum });
    }

    let mut end = blocks_end;
    let mut sections = Vec::with_capacity(num_sections);
    for (number, entry) in table.chunks_exact(ENTRY_BYTES).enumerate() {
        let (start, len) = (u64_at(entry, 0), u64_at(entry, 8));
        let next = end.next_multiple_of(ALIGNMENT as u64);
        let section_end = start.checked_add(len).filter(|&e| start == next && e <= found);
        let Some(section_end) = section_end else {
            let problem = format!("section {number} lies at {start}, {len} bytes long");
            return Err(FormatErrorKind::Table(problem));
        };
        if check.has_sums() && bytes[end as usize..start as usize].iter().any(|&b| b != 0) {
            let problem = format!("there is something between sections before {number}");
            return Err(FormatErrorKind::Table(problem));
        }
        sections.push(bytes.slice(start as usize..section_end as usize));
        end = section_end;
    }
    if end != found {
        return Err(FormatErrorKind::Table(format!("its sections end at {end} of {found}")));
    }
    if check.has_sums() {
        check_sums(&sections, table, blocks, block_bytes)?;
    }
    Ok(SectionsIn { sections, file: bytes, format })
}

/// Names the first block, or short section, that differs from its checksum.
fn check_sums(
    sections: &[Bytes],
    table: &[u8],
    blocks: &[u8],
    block_bytes: usize,
) -> Result<(), FormatErrorKind> {
    let found: Vec<(u32, Vec<u32>)> =
        sections.par_iter().map(|section| checksums(section, block_bytes)).collect();
    let mut said_blocks = blocks.chunks_exact(SUM_BYTES).map(|sum| u32_at(sum, 0));
    for (number, ((sum, of_blocks), entry)) in
        found.into_iter().zip(table.chunks_exact(ENTRY_BYTES)).enumerate()
    {
        for (block, found) in (0..).zip(of_blocks) {
            let said = said_blocks.next().expect("as many as were counted");
            if found != said {
                let section = u64_at(entry, 0);
                let start = section + block * block_bytes as u64;
                let end = (start + block_bytes as u64).min(section + u64_at(entry, 8));
                return Err(FormatErrorKind::Block {
                    number: start / block_bytes as u64,
                    start,
                    end,
                    said,
                    found,
                });
            }
        }
        let said = u32_at(entry, 16);
        if sum != said {
            let what = format!("section {number}");
            return Err(FormatErrorKind::Checksum { what, said, found: sum });
        }
    }
    Ok(())
}

/// Bytes of a checksum.
const SUM_BYTES: usize = 4;

/// Blocks of a section that have a checksum each: none where one of the whole section says as much.
fn num_blocks(section_bytes: usize, block_bytes: usize) -> usize {
    if block_bytes == 0 || section_bytes <= block_bytes {
        0
    } else {
        section_bytes.div_ceil(block_bytes)
    }
}

/// The CRC-32 of a section and of its blocks, computed in pieces side by side.
fn checksums(section: &[u8], block_bytes: usize) -> (u32, Vec<u32>) {
    let has_blocks = num_blocks(section.len(), block_bytes) > 0;
    let piece_bytes = if has_blocks { block_bytes } else { 4 << 20 };
    let hashed = |piece: &[u8]| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(piece);
        hasher
    };
    let pieces = section.par_chunks(piece_bytes).with_min_len((1 << 20) / piece_bytes.min(1 << 20));
    let hashers: Vec<crc32fast::Hasher> = pieces.map(hashed).collect();
    let mut whole = crc32fast::Hasher::new();
    hashers.iter().for_each(|hasher| whole.combine(hasher));
    let blocks = if has_blocks { hashers } else { Vec::new() };
    (whole.finalize(), blocks.into_iter().map(crc32fast::Hasher::finalize).collect())
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
        let long =
            (BLOCK_BYTES..3 * BLOCK_BYTES, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]);
        let section = prop_oneof![9 => prop::collection::vec(any::<u8>(), 0..200), 1 => long];
        prop::collection::vec(section, 0..5)
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
            for check in [Check::Frame, Check::Sums, Check::Whole] {
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
            prop_assert!(SectionsIn::from_bytes(bytes.into(), FORMAT, Check::Sums).is_err());
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
        let way_out = ": make it anew with this one";
        check(newer, &format!("has format version 4; this program reads version 3{way_out}"));
        let mut damaged = good.clone();
        damaged[130] = 4;
        check(damaged, "is damaged: the checksum of its section 0 is cbd815be, not 55bc801d");
        let mut large = file(&[vec![1], vec![7; 2 * BLOCK_BYTES + 5]]);
        let at = large.len() - 9;
        large[at] ^= 16;
        let block = "is damaged: block 1, bytes 65792 to 131328, has the checksum ";
        let error = SectionsIn::from_bytes(large.into(), FORMAT, Check::Sums).unwrap_err();
        assert!(error.to_string().starts_with(block), "{error}");
    }
}
