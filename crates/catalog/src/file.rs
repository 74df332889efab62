//! The catalog file: arrays as they lie in memory, found by a description at the end.
//!
//! A file of sections (see `palmette-mapped`: header, table, checksums, 64-byte alignment). The
//! last section is a JSON document that says what the others are: numbers of items and levels, and
//! for each array its section, length and bits. Opening maps the file and reads that document;
//! arrays are used where they lie.

use std::io;
use std::path::{Path, PathBuf};

use palmette_catalog_filter::{Columns, ColumnsMeta};
use palmette_mapped::{Check, Format, FormatError, OpenError, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::ids::{Ids, IdsMeta};
use crate::index::{Index, IndexMeta, MAX_LEVELS};

const FORMAT: Format = Format { magic: *b"PALMCAT\0", version: 2 };

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
    #[error("{0}; build the catalog again")]
    Format(FormatError),
    #[error("is damaged: {0}; build the catalog again")]
    Body(String),
}

/// A file that a catalog was opened from.
#[derive(Clone, Debug)]
pub(crate) struct CatalogFile {
    path: PathBuf,
    sections: SectionsIn,
}

impl FileError {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The problem without the file's name, and without what to do about it.
    pub fn problem(&self) -> String {
        match &self.kind {
            FileErrorKind::Io(e) | FileErrorKind::Missing(e) => e.to_string(),
            FileErrorKind::NotACatalog => "does not begin with PALMCAT".to_owned(),
            FileErrorKind::Format(e) => e.to_string(),
            FileErrorKind::Body(problem) => format!("is damaged: {problem}"),
        }
    }

    /// True where the system failed to read or write.
    pub fn is_io(&self) -> bool {
        matches!(&self.kind, FileErrorKind::Io(_))
    }

    /// True where there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(&self.kind, FileErrorKind::Missing(_))
    }
}

/// The document at the end of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    index: IndexMeta,
    ids: IdsMeta,
    columns: ColumnsMeta,
    codes_per_level: Vec<u32>,
    level_prefixes: Option<Vec<String>>,
}

impl Catalog {
    /// True where these are the first bytes of a catalog file, eight or more.
    pub fn has_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(&FORMAT.magic)
    }

    /// Writes the catalog to `path`: to a temporary file beside it, synced, then renamed, so that
    /// at every moment there is the old file or the new one. Where `path` is a symbolic link, the
    /// file it leads to is replaced and the link stays. On Unix the file may be read and written by
    /// everyone whom the umask lets.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        let written = self.sections().write(path, FORMAT);
        written.map_err(|e| FileError { path: path.to_owned(), kind: FileErrorKind::Io(e) })
    }

    /// Opens a catalog file and checks all of it: [`open_with`](Self::open_with) and
    /// [`Check::Whole`].
    ///
    /// # Errors
    /// When it cannot be read, is no catalog file, is of another version, or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::open_with(path.as_ref(), Check::Whole)
    }

    /// Opens a catalog file by mapping it into memory.
    ///
    /// With [`Check::Frame`] only its header, its table and its description are read: milliseconds,
    /// whatever its size. Damage to the rest then shows as wrong answers, never as a panic or
    /// worse. [`Check::Sums`] reads all bytes, side by side, and finds every change since they were
    /// written. [`Check::Whole`] reads everything, in this order: header, table, checksums of all
    /// sections, description, sizes, then the order of ranks, codes, ids and values.
    ///
    /// The file must not be changed in place while it is open; [`save`](Self::save) does not, it
    /// replaces it.
    ///
    /// # Errors
    /// When it cannot be read, is no catalog file, is of another version, or is damaged.
    pub fn open_with(path: &Path, check: Check) -> Result<Self, FileError> {
        let error = |kind| FileError { path: path.to_owned(), kind };
        let sections = SectionsIn::open(path, FORMAT, check).map_err(|e| {
            error(match e {
                OpenError::Io(e) if e.kind() == io::ErrorKind::NotFound => {
                    FileErrorKind::Missing(e)
                }
                OpenError::Io(e) => FileErrorKind::Io(e),
                OpenError::Format(e) => FileErrorKind::from(e),
            })
        })?;
        let loaded = load(&sections, check);
        let mut catalog = loaded.map_err(|problem| error(FileErrorKind::Body(problem)))?;
        catalog.file = Some(CatalogFile { path: path.to_owned(), sections });
        Ok(catalog)
    }

    /// Verifies every checksum of the file that the catalog was opened from, as it is mapped now;
    /// nothing where it was built in memory. For callers that write on what they read.
    ///
    /// Cost: reads the whole file, side by side.
    ///
    /// # Errors
    /// When the bytes are not those that were written; the message names the block.
    pub fn verify(&self) -> Result<(), FileError> {
        let Some(CatalogFile { path, sections }) = &self.file else { return Ok(()) };
        let verified = sections.verify();
        verified.map_err(|e| FileError { path: path.clone(), kind: e.into() })
    }

    /// The bytes of a catalog file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sections().to_bytes(FORMAT)
    }

    /// Reads the bytes of a catalog file; `name` stands for the path in errors.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    pub fn from_bytes(name: &str, bytes: Vec<u8>, check: Check) -> Result<Self, FileError> {
        let error = |kind| FileError { path: name.into(), kind };
        let sections = SectionsIn::from_bytes(bytes.into(), FORMAT, check);
        let sections = sections.map_err(|e| error(FileErrorKind::from(e)))?;
        load(&sections, check).map_err(|problem| error(FileErrorKind::Body(problem)))
    }

    /// Bytes of the file that [`save`](Self::save) makes.
    pub fn file_bytes(&self) -> u64 {
        self.sections().file_bytes()
    }

    fn sections(&self) -> SectionsOut {
        let mut out = SectionsOut::default();
        let description = Description {
            index: self.index().save(&mut out),
            ids: self.ids().save(&mut out),
            columns: self.columns().save(&mut out),
            codes_per_level: self.codes_per_level().to_vec(),
            level_prefixes: self.level_prefixes().map(<[String]>::to_vec),
        };
        let description = serde_json::to_vec(&description).expect("it is plain data");
        out.add(description.into());
        out
    }
}

impl From<FormatError> for FileErrorKind {
    fn from(error: FormatError) -> Self {
        if error.is_other_kind() { Self::NotACatalog } else { Self::Format(error) }
    }
}

fn load(sections: &SectionsIn, check: Check) -> Result<Catalog, String> {
    let description = sections.last().ok_or("it has no sections")?;
    let description: Description = serde_json::from_slice(&description)
        .map_err(|e| format!("its description cannot be read: {e}"))?;
    let Description { index, ids, columns, codes_per_level, level_prefixes } = description;
    let index = Index::load(index, sections)?;
    let ids = Ids::load(ids, index.num_items(), sections)?;
    let columns = Columns::load(&columns, sections)?;
    if columns.num_ranks() != index.num_items() {
        return Err(format!("its columns are of {} items", columns.num_ranks()));
    }
    let sizes = codes_per_level.len();
    if sizes > MAX_LEVELS || !codes_per_level.starts_with(index.code_bounds()) {
        let bounds = index.code_bounds();
        return Err(format!("it has codebooks of {codes_per_level:?} and codes below {bounds:?}"));
    }
    if level_prefixes.as_ref().is_some_and(|prefixes| prefixes.len() != index.num_levels()) {
        return Err("it has letters for another number of levels".into());
    }
    if check == Check::Whole {
        // Side by side, since each takes seconds for tens of millions of items; what is said first
        // of several problems has an order all the same.
        let others = || rayon::join(|| ids.check(), || columns.check());
        let (index, (ids, columns)) = rayon::join(|| index.check(), others);
        index.and(ids).and(columns)?;
    }
    Ok(Catalog::from_parts(index, ids, columns, codes_per_level, level_prefixes))
}
