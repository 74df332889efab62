//! Errors of tables, and the place of each.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use arrow_schema::DataType;
use palmette_catalog::readers::{Problem, Role};

use crate::TableFormat;
use crate::frames::MAX_UNPACKED_BYTES;

/// A table that could not be read.
///
/// The message names the file, the row and column where there is one, the value that is wrong and
/// the rule it breaks.
#[derive(Debug)]
pub struct TableError {
    path: PathBuf,
    fault: Fault,
}

impl TableError {
    pub(crate) fn new(path: &Path, fault: Fault) -> TableError {
        TableError { path: path.to_owned(), fault }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The row, from 1. `None` when no one row is at fault.
    pub fn row(&self) -> Option<u64> {
        self.fault.row
    }

    /// The role for which no column was found, where that is the error.
    pub fn missing_role(&self) -> Option<Role> {
        match &*self.fault.kind {
            Kind::Item(problem) => problem.missing_role(),
            _ => None,
        }
    }

    /// The column's name. `None` when no one column is at fault.
    pub fn column(&self) -> Option<&str> {
        self.fault.column.as_deref()
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(row) = self.fault.row {
            write!(f, ", row {row}")?;
        }
        if let Some(column) = &self.fault.column {
            write!(f, ", column {column:?}")?;
        }
        write!(f, ": {}", self.fault.kind)
    }
}

impl std::error::Error for TableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.fault.kind {
            Kind::Io(error) => error.source(),
            _ => None,
        }
    }
}

/// A [`TableError`] that does not know its file yet.
#[derive(Debug)]
pub(crate) struct Fault {
    row: Option<u64>,
    column: Option<String>,
    kind: Box<Kind>,
}

impl Fault {
    pub(crate) fn at(row: u64, column: &str, kind: Kind) -> Fault {
        Fault { row: Some(row), column: Some(column.to_owned()), kind: kind.into() }
    }

    pub(crate) fn of_column(column: &str, kind: Kind) -> Fault {
        Fault { row: None, column: Some(column.to_owned()), kind: kind.into() }
    }

    /// Wraps a fault that readers of all formats know; `column` holds it, if any does.
    pub(crate) fn of_item(problem: Problem, column: Option<&str>) -> Fault {
        let column = column.map(str::to_owned);
        Fault { row: problem.line(), column, kind: Kind::Item(problem).into() }
    }
}

impl From<Kind> for Fault {
    fn from(kind: Kind) -> Fault {
        Fault { row: None, column: None, kind: kind.into() }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("this is no {expected} file, by its first bytes {head:02x?}")]
    OtherContent { expected: TableFormat, head: Vec<u8> },
    #[error("this is a file of format {found}, not {expected}; say so")]
    OtherFormat { expected: TableFormat, found: TableFormat },
    #[error("this is Feather version 1, which has no lists; write it anew as version 2")]
    FeatherV1,
    #[cfg(not(feature = "parquet"))]
    #[error(
        "this is a Parquet file, which this build does not read; build with the feature `parquet`"
    )]
    NoParquet,
    #[error("this Parquet file is encrypted; write it without encryption")]
    Encrypted,
    #[error("damaged, or of a kind that is not understood: {0}")]
    Damaged(String),
    #[error(
        "one batch of rows unpacks to {bytes} bytes, more than {MAX_UNPACKED_BYTES}; write smaller batches"
    )]
    Unpacked { bytes: u64 },
    #[error(
        "numbers are stored with the highest byte first, which is not understood; write the file on a little-endian machine"
    )]
    BigEndian,
    #[error("there is no such column; the columns are {}", .found.join(", "))]
    NoSuchColumn { found: Vec<String> },
    #[error("this column is not an attribute; it holds the item's ID or codes")]
    NotAnAttribute,
    #[error("{0} cannot be an item ID; write text or integers")]
    IdType(DataType),
    #[error(
        "{0} cannot be a semantic ID; write a list of integers, or text such as 1-2 or <a_1><b_2>"
    )]
    CodesType(DataType),
    #[error(
        "{0}, one number, cannot be a semantic ID of several codes; write a list of integers, or, if \
         it packs all codes, say the codebook sizes that it is packed by"
    )]
    PackedCodes(DataType),
    #[error("{0} cannot be a code; write integers")]
    CodeType(DataType),
    #[error("{0} cannot be an attribute; write it as text or a number, or leave it out")]
    AttributeType(DataType),
    #[error(
        "no column holds lists of floats, one vector an item; the columns are {}", .found.join(", ")
    )]
    NoVectors { found: Vec<String> },
    #[error("several columns hold lists of floats; name one of {}", .found.join(", "))]
    SeveralVectors { found: Vec<String> },
    #[error("{0} cannot be a vector; write a list of floats")]
    VectorType(DataType),
    #[error("item {item:?}: the vector, or a number in it, is null; every item needs a whole one")]
    NullVector { item: String },
    #[error("the item ID is null; every item needs one")]
    NullId,
    #[error("item {item:?}: the code at level {level} is null; a semantic ID has no gaps")]
    NullCode { item: String, level: usize },
    #[error(
        "item {item:?}: the code of level {level} is null and a later one is not; only trailing codes may be left out"
    )]
    NullLevel { item: String, level: usize },
    #[error("item {item:?}: {value} is no JSON number; write null where there is no value")]
    NotFinite { item: String, value: f64 },
    #[error(
        "item {item:?}: the decimal {value} has more than 15 digits, which a JSON number may not \
         keep; write it as text, or as a float if it may be rounded"
    )]
    Decimal { item: String, value: String },
    #[error(
        "item {item:?}: {value} {unit} since 1970 is not within the years 0000 to 9999; write null \
         where there is no value"
    )]
    Instant { item: String, value: i64, unit: &'static str },
    /// Told to nobody.
    #[error("no more rows are wanted")]
    Ended,
    #[error("{0}")]
    Item(Problem),
}
