//! Errors of sources, and the place of each.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::encoding::Encoding;
use super::format::Format;
use super::options::SourceOptions;
use super::utf8::NotUtf8;
use crate::build_error::BuildError;
use crate::index::MAX_CODE;

/// A source that could not be read.
///
/// The message names the source, the line, the value that is wrong and the rule it breaks.
#[derive(Debug)]
pub struct ReadError {
    path: PathBuf,
    problem: Problem,
}

impl ReadError {
    pub(super) fn new(path: &Path, problem: Problem) -> ReadError {
        ReadError { path: path.to_owned(), problem }
    }

    /// The file, or the name given to `parse_items`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line, from 1. `None` when the source could not be opened or read, or is of a format
    /// that holds no attributes.
    pub fn line(&self) -> Option<u64> {
        self.problem.line
    }

    /// The role for which no field was found, where that is the error.
    pub fn missing_role(&self) -> Option<Role> {
        self.problem.missing_role()
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.problem.line {
            write!(f, ", line {line}")?;
        }
        if let Some(column) = self.problem.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.problem.kind {
            Kind::Io(error) => error.source(),
            _ => None,
        }
    }
}

/// Role of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The item's ID.
    Id,
    /// Semantic ID of the item.
    Codes,
}

/// A fault of a source whose name is not known here.
///
/// The message does not say the line; [`line`](Problem::line) does.
#[derive(Debug)]
pub struct Problem {
    line: Option<u64>,
    /// In bytes, from 1.
    column: Option<u64>,
    kind: Box<Kind>,
}

impl Problem {
    /// The line, or row, from 1. `None` when no one place is at fault.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// The role for which no field was found, where that is the problem.
    pub fn missing_role(&self) -> Option<Role> {
        match *self.kind {
            Kind::MissingField { role, .. } => Some(role),
            Kind::CodeColumnGap { .. } => Some(Role::Codes),
            _ => None,
        }
    }

    pub(super) fn at(line: u64, kind: Kind) -> Problem {
        Problem { line: Some(line), column: None, kind: Box::new(kind) }
    }

    /// An item that the sink did not take.
    pub(super) fn refused(error: BuildError) -> Problem {
        Problem { line: error.line(), column: None, kind: Box::new(Kind::Refused(error)) }
    }

    /// Moves the problem to `line`.
    pub(super) fn on_line(self, line: u64) -> Problem {
        Problem { line: Some(line), ..self }
    }

    /// Fault of the whole source, whatever its lines hold.
    pub(super) fn whole(kind: Kind) -> Problem {
        Problem { line: None, column: None, kind: Box::new(kind) }
    }

    /// Fault of one line, whose `text` may show more than the parser says.
    pub(super) fn json_line(line: u64, text: &str, error: serde_json::Error) -> Problem {
        let at = error.column().saturating_sub(1);
        let number = ["NaN", "Infinity", "-Infinity"].into_iter().find(|number| {
            let around = text.get(at.saturating_sub(number.len())..).unwrap_or_default();
            around.find(number).is_some_and(|found| found <= number.len())
        });
        let mut problem = Problem::json(line, error);
        if let (Some(number), Kind::Json { message }) = (number, &mut *problem.kind) {
            message.push_str(&format!(": {number} is no JSON; write null where there is no value, or name it as a text that means none (--null {number})"));
        }
        problem
    }

    /// `first_line` is the line at which what was parsed starts.
    pub(super) fn json(first_line: u64, error: serde_json::Error) -> Problem {
        if error.is_io() {
            return io::Error::from(error).into();
        }
        let place = format!(" at line {} column {}", error.line(), error.column());
        let text = error.to_string();
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        let (line, column) = match (error.line() as u64, error.column() as u64) {
            // A line end is the last byte read: it belongs to the line it ends.
            (line @ 2.., 0) => (line - 1, None),
            (line, column) => (line, Some(column.max(1))),
        };
        let line = Some(first_line - 1 + line);
        Problem { line, column, kind: Box::new(Kind::Json { message }) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for Problem {}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        let not_utf8 = error.get_ref().and_then(|inner| inner.downcast_ref::<NotUtf8>());
        match not_utf8 {
            Some(NotUtf8 { line, found }) => Problem::at(*line, Kind::NotUtf8(found.clone())),
            None => Problem::whole(Kind::Io(error)),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Kind {
    #[error("cannot be read: {0}")]
    Io(io::Error),
    #[error(
        "attributes are read from JSON, {{\"item ID\": {{\"title\": …}}, …}}, from objects with item_id, a line each or in a list, \
         or from tables with that column; {format} holds none"
    )]
    NotAttributes { format: Format },
    #[error("{0}")]
    NotUtf8(Encoding),
    /// Not JSON, a key twice in one object, or JSON of another shape.
    #[error("{message}")]
    Json { message: String },
    #[error(
        "{found} tab-separated fields in {start}, expected 3: semantic ID, title, item ID{}",
        if is_history(.line_start) {
            "; lines of numbers, a user and items, are histories, which recommenders are evaluated on"
        } else {
            ""
        },
        start = shorten(.line_start)
    )]
    FieldCount { found: usize, line_start: String },
    #[error("no field {}; the fields are {}", alternatives(.names), list(.found))]
    MissingField { role: Role, names: Vec<String>, found: Vec<String> },
    #[error("{hint}")]
    OneColumn { hint: String },
    #[error("field {name:?} cannot be both the item ID and a semantic ID")]
    IdAndCodes { name: String },
    #[error("no field {name:?}, which is to be left out; the fields are {}", list(.found))]
    NotLeftOut { name: String, found: Vec<String> },
    #[error("field {name:?} is given for two levels of the semantic ID")]
    LevelTwice { name: String },
    #[error("both {first:?} and {second:?}, which mean the same; keep one of them")]
    BothFields { first: String, second: String },
    #[error("item ID {value}: expected text or a whole number that fits 64 bits")]
    BadId { value: String },
    #[error("the item ID is empty")]
    EmptyId,
    #[error("item ID {} appears twice, first at line {first_line}", shorten(.id))]
    DuplicateId { id: String, first_line: u64 },
    #[error("item {}: the semantic ID is empty; it needs at least one code", shorten(.item))]
    EmptyCodes { item: String },
    #[error(
        "item {}: semantic ID {value}: expected a list of codes, or text such as <a_1><b_2> or 1 2; \
         a map from semantic IDs to items is of format inverse-json",
        shorten(.item)
    )]
    NotCodes { item: String, value: String },
    #[error(
        "item {}: code {value} at level {level}: expected a whole number from 0 to {} \
         or <letter_number>",
        shorten(.item), MAX_CODE
    )]
    BadCode { item: String, value: String, level: usize },
    #[error(
        "item {}: code {value} at level {level}: a code has no leading zeros",
        shorten(.item)
    )]
    LeadingZero { item: String, value: String, level: usize },
    #[error(
        "item {}: code {value} at level {level}: the codes of this level are spelled \
         <{prefix}_number> since {since}",
        shorten(.item)
    )]
    OtherPrefix { item: String, value: String, level: usize, prefix: String, since: String },
    #[error(
        "item {}: code {value} at level {level}: the codes of this source are spelled {spelling} \
         since {since}",
        shorten(.item)
    )]
    OtherSpelling {
        item: String,
        value: String,
        level: usize,
        spelling: &'static str,
        since: String,
    },
    #[error("{found} cells, but the header has {expected}")]
    CellCount { found: usize, expected: usize },
    #[error("column {name:?} appears twice in the header")]
    DuplicateColumn { name: String },
    #[error(
        "semantic ID {codes}: expected an item ID, a list of them, or of objects with an ID, or an \
         object from IDs to counts"
    )]
    NotItems { codes: String },
    #[error(
        "item {}: semantic ID {value}: expected one whole number below {limit}, the product of the \
         codebook sizes that it is packed by",
        shorten(.item)
    )]
    NotPacked { item: String, value: String, limit: u128 },
    #[error("item {}: attribute {name:?} {problem}: {}", shorten(.item), shorten(.value))]
    Cell { item: String, name: String, value: String, problem: String },
    #[error(
        "the column name {name} is quoted; in tab-separated files quotes are characters as any other, unless \
         quoted cells are asked for (--quotes)"
    )]
    QuotedNames { name: String },
    #[error("{0}")]
    Npy(String),
    #[error("column code_{missing} is missing: code columns are numbered from 0 without gaps")]
    CodeColumnGap { missing: usize },
    #[error(
        "item {}: {empty} is empty but {later} is not; only trailing codes may be left out",
        shorten(.item)
    )]
    CodeCellGap { item: String, empty: String, later: String },
    #[error("text after a closing quote; write a quote inside a quoted cell twice (\"\")")]
    TextAfterQuote,
    #[error("the quote opened on this line is never closed")]
    UnclosedQuote,
    #[error("{}", refusal(.0))]
    Refused(BuildError),
}

impl Kind {
    /// No field is named as IDs are.
    pub(super) fn missing_id(options: &SourceOptions, found: &[String]) -> Kind {
        let names = options.id_names().into_iter().map(str::to_owned).collect();
        Kind::MissingField { role: Role::Id, names, found: found.to_vec() }
    }

    /// No field is named as semantic IDs are, or as the `first` of their codes.
    pub(super) fn missing_codes(
        options: &SourceOptions,
        first: Option<&str>,
        found: &[String],
    ) -> Kind {
        let names = options.codes_names().into_iter().chain(first).map(str::to_owned).collect();
        Kind::MissingField { role: Role::Codes, names, found: found.to_vec() }
    }

    /// No field has this name, which was given for codes.
    pub(super) fn missing_codes_of(name: &str, found: &[String]) -> Kind {
        let names = vec![name.to_owned()];
        Kind::MissingField { role: Role::Codes, names, found: found.to_vec() }
    }
}

/// `text` in quotes, cut after 60 characters: a message stays readable whatever the file holds.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The place is said elsewhere, so an item's refusal is told without its line.
fn refusal(error: &BuildError) -> String {
    match (error.id(), error.rule()) {
        (Some(id), Some(rule)) => format!("item {} {rule}", shorten(id)),
        _ => error.to_string(),
    }
}

/// True of lines that are several numbers, as those of sequential recommenders' histories are.
fn is_history(line: &str) -> bool {
    let mut numbers = line.split(' ').map(|number| number.bytes().all(|b| b.is_ascii_digit()));
    line.contains(' ') && numbers.all(|is_number| is_number)
}

fn alternatives(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(" or ")
}

fn list(names: &[String]) -> String {
    const MOST: usize = 8;
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut text: Vec<String> = names.iter().take(MOST).map(|name| shorten(name)).collect();
    if names.len() > MOST {
        text.push(format!("{} more", names.len() - MOST));
    }
    text.join(", ")
}
