//! The catalog file: written whole, checked whole.
//!
//! Little-endian throughout. A header of 32 bytes: the magic `PALMCAT\0`, format version (u32), 4
//! zero bytes, length of the body (u64), CRC-32 of the body (u32), 4 zero bytes. The body, section
//! after section: items (u64), levels (u64), the codebook sizes (u32 each), how many level prefixes
//! follow (u64, 0 = none) and those as texts; IDs in rank order as code counts (u8 each) and codes
//! (u32 each); then the columns of item ids and of attributes, each as starts (u64, items + 1) and
//! text. A text is its byte length (u64) and its UTF-8 bytes.
//!
//! The levels are not stored: indexing sorted IDs costs one pass.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::catalog::Catalog;
use crate::items::{ItemTable, TextColumn};
use crate::levels::{Levels, MAX_CODE, MAX_ITEMS, MAX_LEVELS};

const MAGIC: &[u8; 8] = b"PALMCAT\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;

/// A catalog file that cannot be read or written; the message says what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {kind}", path = path.display())]
pub struct FileError {
    path: PathBuf,
    kind: FileErrorKind,
}

#[derive(Debug, thiserror::Error)]
enum FileErrorKind {
    #[error("{0}")]
    Io(io::Error),
    #[error("{0}; make a catalog with `palmette catalog build`")]
    Missing(io::Error),
    #[error(
        "is not a catalog file: it does not begin with PALMCAT; build one with `palmette catalog build`"
    )]
    NotACatalog,
    #[error(
        "has format version {found}; this program reads version {VERSION}: build the catalog again"
    )]
    Version { found: u32 },
    #[error("is cut short or has grown: the header says {said} bytes, there are {found}")]
    Length { said: u64, found: u64 },
    #[error("is damaged: its checksum is {found:08x}, not {said:08x}; build the catalog again")]
    Checksum { said: u32, found: u32 },
    #[error("is damaged: {0}; build the catalog again")]
    Body(String),
}

impl Catalog {
    /// Writes the catalog to `path`: to a temporary file beside it, synced, then renamed, so that
    /// at every moment there is the old file or the new one. Where `path` is a symbolic link, the
    /// file it leads to is replaced and the link stays. On Unix the file may be read and written by
    /// everyone whom the umask lets.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let error = |e| FileError { path: path.to_owned(), kind: FileErrorKind::Io(e) };
        let target = without_links(path).map_err(error)?;
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut file = temporary_file(folder).map_err(error)?;
        file.write_all(&self.to_bytes()).map_err(error)?;
        file.as_file().sync_all().map_err(error)?;
        file.persist(&target).map_err(|e| error(e.error))?;
        Ok(())
    }

    /// Opens a catalog file and checks all of it.
    ///
    /// # Errors
    /// When it cannot be read, is no catalog file, is of another version, or is damaged.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let error = |kind| FileError { path: path.to_owned(), kind };
        let bytes = std::fs::read(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => error(FileErrorKind::Missing(e)),
            _ => error(FileErrorKind::Io(e)),
        })?;
        parse(&bytes).map_err(error)
    }

    /// The bytes of a catalog file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let number = |body: &mut Vec<u8>, n: u64| body.extend_from_slice(&n.to_le_bytes());
        number(&mut body, u64::from(self.num_items()));
        number(&mut body, self.codes_per_level().len() as u64);
        for size in self.codes_per_level() {
            body.extend_from_slice(&size.to_le_bytes());
        }
        let prefixes = self.level_prefixes().unwrap_or_default();
        number(&mut body, prefixes.len() as u64);
        for prefix in prefixes {
            number(&mut body, prefix.len() as u64);
            body.extend_from_slice(prefix.as_bytes());
        }
        let ids: Vec<Vec<u32>> = (0..self.num_items()).map(|rank| self.codes(rank)).collect();
        body.extend(ids.iter().map(|id| id.len() as u8));
        body.extend(ids.iter().flatten().flat_map(|code| code.to_le_bytes()));
        let (ids, attributes) = self.item_table().columns();
        for column in [ids, attributes] {
            let (text, starts) = column.parts();
            body.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
            number(&mut body, text.len() as u64);
            body.extend_from_slice(text.as_bytes());
        }

        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Reads the bytes of a catalog file; `name` stands for the path in errors.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, FileError> {
        parse(bytes).map_err(|kind| FileError { path: name.into(), kind })
    }
}

/// The path that `path` leads to over symbolic links; it need not exist.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        // An error means that this is no link: a file, or nothing yet.
        let Ok(target) = std::fs::read_link(&path) else { return Ok(path) };
        // A relative target starts from the folder of the link.
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// A new file with the permissions of any new file, where temporary files are only their owner's.
fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Checks in this order: magic, version, length, checksum, then the body section by section.
fn parse(bytes: &[u8]) -> Result<Catalog, FileErrorKind> {
    let header = |at: usize, len: usize| bytes.get(at..at + len);
    if header(0, 8) != Some(MAGIC) {
        return Err(FileErrorKind::NotACatalog);
    }
    let found = bytes.len().saturating_sub(HEADER_BYTES) as u64;
    let short = FileErrorKind::Length { said: HEADER_BYTES as u64, found: bytes.len() as u64 };
    let Some(fields) = header(8, HEADER_BYTES - 8) else { return Err(short) };
    let word = |at: usize| u32::from_le_bytes(fields[at..at + 4].try_into().expect("4 bytes"));
    if word(0) != VERSION {
        return Err(FileErrorKind::Version { found: word(0) });
    }
    let said = u64::from(word(8)) | u64::from(word(12)) << 32;
    if said != found {
        return Err(FileErrorKind::Length { said, found });
    }
    let body = &bytes[HEADER_BYTES..];
    let (said, found) = (word(16), crc32fast::hash(body));
    if said != found {
        return Err(FileErrorKind::Checksum { said, found });
    }
    parse_body(body).map_err(FileErrorKind::Body)
}

fn parse_body(body: &[u8]) -> Result<Catalog, String> {
    let mut rest = Cursor(body);
    let num_items = rest.size("item count", MAX_ITEMS)?;
    let num_levels = rest.size("level count", MAX_LEVELS)?;
    let codes_per_level = rest.words("codebook sizes", num_levels)?;
    let level_prefixes = match rest.size("level prefix count", MAX_LEVELS)? {
        0 => None,
        count => Some((0..count).map(|_| rest.text("level prefix")).collect::<Result<_, _>>()?),
    };

    let lengths = rest.take("semantic ID lengths", num_items)?;
    let num_codes = lengths.iter().map(|&n| usize::from(n)).sum();
    let codes = rest.words("codes", num_codes)?;
    let mut ids: Vec<&[u32]> = Vec::with_capacity(num_items);
    let mut unread = codes.as_slice();
    for (rank, &length) in lengths.iter().enumerate() {
        let length = usize::from(length);
        if length == 0 || length > num_levels {
            return Err(format!("rank {rank} has {length} codes, with {num_levels} levels"));
        }
        let (id, after) = unread.split_at(length);
        if let Some(level) = (0..length).find(|&l| id[l] > MAX_CODE || id[l] >= codes_per_level[l])
        {
            return Err(format!("rank {rank} has code {} at level {level}", id[level]));
        }
        if ids.last().is_some_and(|&before| before > id) {
            return Err(format!("rank {rank} is out of order"));
        }
        ids.push(id);
        unread = after;
    }

    let item_ids = rest.text_column("item ids", num_items)?;
    let attributes = rest.text_column("attributes", num_items)?;
    for rank in 0..num_items as u32 {
        serde_json::from_str::<Map<String, Value>>(attributes.get(rank))
            .map_err(|e| format!("attributes of rank {rank} are no JSON object: {e}"))?;
    }
    if !rest.0.is_empty() {
        return Err(format!("{} bytes follow the last section", rest.0.len()));
    }
    let table = ItemTable::new(item_ids, attributes)
        .map_err(|twice| format!("item {twice:?} stands twice"))?;
    Ok(Catalog::from_parts(
        Levels::of_sorted(ids.into_iter()),
        table,
        codes_per_level,
        level_prefixes,
    ))
}

/// The unread part of a body.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, what: &str, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) =
            self.0.split_at_checked(len).ok_or_else(|| format!("it ends within its {what}"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn size(&mut self, what: &str, most: usize) -> Result<usize, String> {
        let bytes = self.take(what, 8)?;
        let size = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        if size > most as u64 {
            return Err(format!("its {what} is {size}, over the limit of {most}"));
        }
        Ok(size as usize)
    }

    fn words(&mut self, what: &str, count: usize) -> Result<Vec<u32>, String> {
        let bytes = self.take(what, count.checked_mul(4).ok_or("a size overflows")?)?;
        let word = |b: &[u8]| u32::from_le_bytes(b.try_into().expect("4 bytes"));
        Ok(bytes.chunks_exact(4).map(word).collect())
    }

    fn text(&mut self, what: &str) -> Result<String, String> {
        let len = self.size(what, self.0.len())?;
        let bytes = self.take(what, len)?;
        let text = std::str::from_utf8(bytes).map_err(|_| format!("its {what} is not UTF-8"))?;
        Ok(text.to_owned())
    }

    fn text_column(&mut self, what: &str, count: usize) -> Result<TextColumn, String> {
        let bytes = self.take(what, (count + 1) * 8)?;
        let number = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("8 bytes"));
        let starts = bytes.chunks_exact(8).map(number).collect();
        let text = self.text(what)?;
        TextColumn::from_parts(text, starts).ok_or_else(|| format!("its {what} have bad starts"))
    }
}
