//! The formats and how to tell them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// File format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Apache Parquet, with any of its usual compressions.
    Parquet,
    /// Apache Arrow's IPC format, as a file (also called Feather version 2) or as a stream.
    Arrow,
}

impl TableFormat {
    /// Every format.
    pub const ALL: [TableFormat; 2] = [TableFormat::Parquet, TableFormat::Arrow];

    /// The format a file name's extension stands for, in either case: `.parquet`; `.arrow`,
    /// `.arrows`, `.feather` or `.ipc`.
    pub fn from_path(path: &Path) -> Option<TableFormat> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "parquet" => Some(TableFormat::Parquet),
            "arrow" | "arrows" | "feather" | "ipc" => Some(TableFormat::Arrow),
            _ => None,
        }
    }

    /// The format that a file's first bytes show, whatever its name; `None` for a file of neither
    /// format. Eight bytes are enough. The caller has them and reads on after them, so that inputs
    /// which cannot be opened twice, such as pipes, lose none.
    pub fn detect(head: &[u8]) -> Option<TableFormat> {
        Content::of(head).and_then(|content| match content {
            Content::Parquet => Some(TableFormat::Parquet),
            Content::ArrowFile | Content::ArrowStream => Some(TableFormat::Arrow),
            Content::FeatherV1 | Content::EncryptedParquet => None,
        })
    }
}

impl fmt::Display for TableFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TableFormat::Parquet => "parquet",
            TableFormat::Arrow => "arrow",
        })
    }
}

impl FromStr for TableFormat {
    type Err = UnknownTableFormat;

    fn from_str(name: &str) -> Result<TableFormat, UnknownTableFormat> {
        let found = TableFormat::ALL.into_iter().find(|format| format.to_string() == name);
        found.ok_or_else(|| UnknownTableFormat { name: name.to_owned() })
    }
}

/// A name that no [`TableFormat`] has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown table format {name:?}; the formats are parquet and arrow")]
pub struct UnknownTableFormat {
    name: String,
}

/// Content of a file as its first eight bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Parquet,
    EncryptedParquet,
    ArrowFile,
    ArrowStream,
    FeatherV1,
}

impl Content {
    pub(crate) fn of(head: &[u8]) -> Option<Content> {
        match head {
            [b'P', b'A', b'R', b'1', ..] => Some(Content::Parquet),
            [b'P', b'A', b'R', b'E', ..] => Some(Content::EncryptedParquet),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Content::ArrowFile),
            [b'F', b'E', b'A', b'1', ..] => Some(Content::FeatherV1),
            // A continuation mark, then the length of the schema.
            [0xff, 0xff, 0xff, 0xff, ..] => Some(Content::ArrowStream),
            _ => None,
        }
    }
}
