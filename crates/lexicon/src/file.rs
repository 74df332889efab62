//! The lexicon file: arrays as they lie in memory, found by a description at the end.
//!
//! A file of sections (see `palmette-mapped`), the last of them a JSON document that says what the
//! others are. Opening maps the file; arrays are used where they lie. A catalog's file holds a
//! lexicon likewise, by [`Lexicon::save`] and [`Lexicon::load`].

use std::io;
use std::path::{Path, PathBuf};

use palmette_mapped::{Check, Format, FormatError, OpenError, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use crate::arrays::{Strings, StringsMeta};
use crate::build::MAX_TEXT_BYTES;
use crate::lexicon::Lexicon;

const FORMAT: Format = Format { magic: *b"PALMLEX\0", version: 1 };

/// Place of a lexicon in a file of sections.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LexiconMeta {
    strings: StringsMeta,
    text_bytes: u64,
    first_not_utf8: Option<u32>,
}

/// A lexicon file that cannot be read or written; the message says what is wrong with it.
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
    #[error("is not a lexicon file: it does not begin with PALMLEX; build one from texts")]
    NotALexicon,
    #[error("{0}; build the lexicon again")]
    Format(FormatError),
    #[error("is damaged: {0}; build the lexicon again")]
    Body(String),
}

impl FileError {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True where the system failed to read or write.
    pub fn is_io(&self) -> bool {
        matches!(&self.kind, FileErrorKind::Io(_))
    }
}

impl From<FormatError> for FileErrorKind {
    fn from(error: FormatError) -> Self {
        if error.is_other_kind() { Self::NotALexicon } else { Self::Format(error) }
    }
}

impl From<OpenError> for FileErrorKind {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io(error) => Self::Io(error),
            OpenError::Format(error) => error.into(),
        }
    }
}

impl Lexicon {
    /// True where these are the first bytes of a lexicon file, eight or more.
    pub fn has_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(&FORMAT.magic)
    }

    /// Writes the lexicon to `path`, replacing a file whole or not at all.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let written = self.sections().write(path, FORMAT);
        written.map_err(|e| FileError { path: path.to_owned(), kind: FileErrorKind::Io(e) })
    }

    /// Opens a lexicon file and checks all of it: [`open_with`](Self::open_with) and
    /// [`Check::Whole`].
    ///
    /// # Errors
    /// When it cannot be read, is no lexicon file, is of another version, or is damaged.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::open_with(path, Check::Whole)
    }

    /// Opens a lexicon file by mapping it into memory.
    ///
    /// With [`Check::Frame`] header, table and description are read, microseconds whatever its
    /// size; damage to the rest then shows as wrong answers, never as a panic or worse.
    /// [`Check::Sums`] finds every change since it was written. [`Check::Whole`] checks, besides,
    /// every array: lengths, minima, and that strings ascend, which no file made by somebody else
    /// can get around.
    ///
    /// The file must not be changed in place while it is open; [`write`](Self::write) replaces it.
    ///
    /// # Errors
    /// When it cannot be read, is no lexicon file, is of another version, or is damaged.
    pub fn open_with(path: &Path, check: Check) -> Result<Self, FileError> {
        let sections = SectionsIn::open(path, FORMAT, check).map_err(FileErrorKind::from);
        let lexicon = sections.and_then(|sections| from_sections(&sections, check));
        lexicon.map_err(|kind| FileError { path: path.to_owned(), kind })
    }

    /// The bytes of a lexicon file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.sections().to_bytes(FORMAT)
    }

    /// Reads the bytes of a lexicon file; `name` stands for the path in errors.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with).
    pub fn from_bytes(name: &str, bytes: Vec<u8>, check: Check) -> Result<Self, FileError> {
        let sections =
            SectionsIn::from_bytes(bytes.into(), FORMAT, check).map_err(FileErrorKind::from);
        let lexicon = sections.and_then(|sections| from_sections(&sections, check));
        lexicon.map_err(|kind| FileError { path: name.into(), kind })
    }

    /// Bytes of the file that [`write`](Self::write) makes.
    pub fn file_bytes(&self) -> u64 {
        self.sections().file_bytes()
    }

    fn sections(&self) -> SectionsOut {
        let mut out = SectionsOut::default();
        let description = serde_json::to_vec(&self.save(&mut out)).expect("it is plain data");
        out.add(description.into());
        out
    }

    /// Adds the arrays to a file of sections.
    pub fn save(&self, out: &mut SectionsOut) -> LexiconMeta {
        LexiconMeta {
            strings: self.strings().save(out),
            text_bytes: self.text_bytes(),
            first_not_utf8: self.first_not_utf8().map(|rank| rank as u32),
        }
    }

    /// Takes the arrays of a file of sections. Their contents are not looked at;
    /// [`check`](Self::check) does that.
    ///
    /// # Errors
    /// When sections are missing or of other lengths than the description says.
    pub fn load(meta: &LexiconMeta, sections: &SectionsIn) -> Result<Self, String> {
        let strings = Strings::load(&meta.strings, sections)?;
        let first_not_utf8 = meta.first_not_utf8.filter(|&rank| (rank as usize) < strings.len());
        Ok(Self::from_parts(strings, meta.text_bytes, first_not_utf8))
    }

    /// Checks that the arrays are those of ascending strings.
    ///
    /// Cost: reads all of it, and every string as UTF-8; about a second for a gigabyte of strings.
    ///
    /// # Errors
    /// Says what is damaged.
    pub fn check(&self) -> Result<(), String> {
        let (mut text_bytes, mut first_not_utf8) = (0, None);
        self.strings().check(MAX_TEXT_BYTES, |rank, text| {
            text_bytes += text.len() as u64;
            if first_not_utf8.is_none() && std::str::from_utf8(text).is_err() {
                first_not_utf8 = Some(rank);
            }
        })?;
        if (text_bytes, first_not_utf8) != (self.text_bytes(), self.first_not_utf8()) {
            return Err("a description that is not that of its strings".to_owned());
        }
        Ok(())
    }
}

fn from_sections(sections: &SectionsIn, check: Check) -> Result<Lexicon, FileErrorKind> {
    let damaged = |problem: String| FileErrorKind::Body(problem);
    let description = sections.last().ok_or_else(|| damaged("it has no sections".to_owned()))?;
    let meta: LexiconMeta = serde_json::from_slice(&description)
        .map_err(|e| damaged(format!("its description cannot be read: {e}")))?;
    let lexicon = Lexicon::load(&meta, sections).map_err(damaged)?;
    if check == Check::Whole {
        lexicon.check().map_err(damaged)?;
    }
    Ok(lexicon)
}
