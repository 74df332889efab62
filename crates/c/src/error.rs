//! Statuses and errors: the answer of a call that failed, with its place.

use std::ffi::{CString, c_char};

use palmette_core::{CommitError, RollbackError};
use palmette_grammar::{
    CacheError, CommitBytesError, CompileError, EndingError, Interrupted, OptionsError,
    RecognizerError, ReopenError, RowErrorKind, SaveError, SourceError, Span, TableError,
};

use crate::border;

/// Outcome of a call.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Success: what the call promises is done.
    Ok = 0,
    /// An argument that no call takes: a null pointer, a length, a name, text that is no UTF-8.
    InvalidArgument = 1,
    /// A vocabulary that cannot be loaded or used, or a token that is not in it.
    Vocabulary = 2,
    /// A grammar that its language refuses, or that has no text.
    Grammar = 3,
    /// A JSON Schema that asks for what no grammar can express.
    Unsupported = 4,
    /// A limit of work or memory that is exceeded, which the message names.
    LimitExceeded = 5,
    /// Work that was called off.
    Cancelled = 6,
    /// A token or byte that the grammar does not allow at its place; nothing was changed.
    NotAllowed = 7,
    /// Tokens that are too few for the text to end within them.
    TooFewTokens = 8,
    /// Tokens that are more than a text is known to take.
    TooManyTokens = 9,
    /// A file that the system does not read or write.
    Io = 10,
    /// A file or bytes that are no compiled grammar of this vocabulary.
    SavedGrammar = 11,
    /// A fault of this library.
    Panic = 12,
}

/// A failure: its status, message and place.
#[derive(Debug)]
pub struct Error {
    status: Status,
    message: CString,
    pointer: Option<CString>,
    span: Option<Span>,
    row: Option<usize>,
}

/// The text up to its first NUL, which C ends texts with.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        let message = c_text(&message.into());
        Self { status, message, pointer: None, span: None, row: None }
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    pub(crate) fn at_row(self, row: usize) -> Self {
        let message = c_text(&format!("row {row}: {}", self.message()));
        Self { row: Some(row), message, ..self }
    }

    pub(crate) fn message(&self) -> &str {
        self.message.to_str().unwrap_or_default()
    }

    /// The error of a source that its front end refuses; `text` is the source.
    pub(crate) fn of_source(error: &SourceError, text: &str) -> Self {
        let status = error.interrupted().map_or(Status::Grammar, interrupted);
        let status = match error {
            SourceError::JsonSchema(error) if error.is_limit_exceeded() => Status::LimitExceeded,
            SourceError::JsonSchema(error) if error.is_unsupported() => Status::Unsupported,
            _ => status,
        };
        let (pointer, span) = (error.pointer().map(c_text), error.span(text));
        Self { pointer, span, ..Self::new(status, error.to_string()) }
    }

    /// The error of a grammar that was not compiled; `text` is its source.
    pub(crate) fn of_compilation(error: &CacheError, text: &str) -> Self {
        let status = match error {
            CacheError::Source(error) => return Self::of_source(error, text),
            CacheError::Compile(error) => of_compile(error),
            CacheError::Cancelled => Status::Cancelled,
            CacheError::Token(_) | CacheError::NoText | CacheError::Unbound { .. } => {
                Status::Grammar
            }
        };
        Self::new(status, error.to_string())
    }

    /// The error of a compiled grammar that was not read: `what` names it.
    pub(crate) fn of_reopen(error: &ReopenError, what: &str) -> Self {
        let status = match error {
            ReopenError::Compile(error) => of_compile(error),
            ReopenError::Vocabulary { .. } => Status::Vocabulary,
            _ => Status::SavedGrammar,
        };
        Self::new(status, format!("{what} {error}"))
    }

    /// The error of a compiled grammar that was not written: `what` names it.
    pub(crate) fn of_save(error: &SaveError, what: &str) -> Self {
        let status = match error {
            SaveError::Io(_) => Status::Io,
            SaveError::Source => Status::SavedGrammar,
        };
        Self::new(status, format!("{what}: {error}"))
    }
}

fn interrupted(why: Interrupted) -> Status {
    match why {
        Interrupted::Cancelled => Status::Cancelled,
        _ => Status::LimitExceeded,
    }
}

fn of_compile(error: &CompileError) -> Status {
    match error {
        CompileError::Interrupted(why)
        | CompileError::Parser(TableError::Interrupted(why))
        | CompileError::Start(RecognizerError::Interrupted(why)) => interrupted(*why),
        CompileError::Lexer(error) if error.is_limit_exceeded() => Status::LimitExceeded,
        CompileError::Parser(_) | CompileError::Start(_) => Status::LimitExceeded,
        _ => Status::Grammar,
    }
}

fn of_recognizer(error: &RecognizerError) -> Status {
    match error {
        RecognizerError::Interrupted(why) => interrupted(*why),
        RecognizerError::Unbound { .. } => Status::Grammar,
        RecognizerError::Lexer(_) | RecognizerError::Parser(_) => Status::LimitExceeded,
    }
}

impl From<RecognizerError> for Error {
    fn from(error: RecognizerError) -> Self {
        Self::new(of_recognizer(&error), error.to_string())
    }
}

impl From<CommitError<RecognizerError>> for Error {
    fn from(error: CommitError<RecognizerError>) -> Self {
        let status = match &error {
            CommitError::NotAllowed { .. } => Status::NotAllowed,
            CommitError::Failed { error, .. } => of_recognizer(error),
            CommitError::UnknownToken { .. } => Status::Vocabulary,
        };
        Self::new(status, error.to_string())
    }
}

impl From<CommitBytesError> for Error {
    fn from(error: CommitBytesError) -> Self {
        let status = match &error {
            CommitBytesError::NotAllowed { .. } => Status::NotAllowed,
            CommitBytesError::Limit(error) => of_recognizer(error),
        };
        Self::new(status, error.to_string())
    }
}

impl From<RollbackError> for Error {
    fn from(error: RollbackError) -> Self {
        Self::new(Status::InvalidArgument, error.to_string())
    }
}

impl From<OptionsError> for Error {
    fn from(error: OptionsError) -> Self {
        Self::new(Status::InvalidArgument, error.to_string())
    }
}

impl From<EndingError> for Error {
    fn from(error: EndingError) -> Self {
        let status = match &error {
            EndingError::TooMany { .. } => Status::TooManyTokens,
            EndingError::TooFew { .. } | EndingError::Unknown => Status::TooFewTokens,
            EndingError::Limit(error) => of_recognizer(error),
        };
        Self::new(status, error.to_string())
    }
}

impl From<RowErrorKind> for Error {
    fn from(error: RowErrorKind) -> Self {
        match error {
            RowErrorKind::Limit(error) => error.into(),
            RowErrorKind::Ending(error) => error.into(),
            RowErrorKind::Narrow { .. } => Self::new(Status::InvalidArgument, error.to_string()),
        }
    }
}

/// The status of an error; PALMETTE_STATUS_OK for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_error_status(error: Option<&Error>) -> Status {
    error.map_or(Status::Ok, Error::status)
}

/// The message, as UTF-8 that ends with NUL: the value, the rule that it breaks and the way out.
/// NULL for NULL. It is the error's and lives as long.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_error_message(error: Option<&Error>) -> *const c_char {
    error.map_or(std::ptr::null(), |error| error.message.as_ptr())
}

/// The part of a JSON Schema, structural tag or request that it is about, as a JSON pointer (RFC
/// 6901); empty for the whole, NULL where there is none. It is the error's and lives as long.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_error_pointer(error: Option<&Error>) -> *const c_char {
    let pointer = error.and_then(|error| error.pointer.as_ref());
    pointer.map_or(std::ptr::null(), |pointer| pointer.as_ptr())
}

/// The line of a grammar's text that it is about, from 1; 0 where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_error_line(error: Option<&Error>) -> u32 {
    error.and_then(|error| error.span).map_or(0, |span| span.line)
}

/// The column in that line, in characters from 1; 0 where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_error_column(error: Option<&Error>) -> u32 {
    error.and_then(|error| error.span).map_or(0, |span| span.column)
}

/// The row of a batch that it is about; SIZE_MAX where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_error_row(error: Option<&Error>) -> usize {
    error.and_then(|error| error.row).unwrap_or(usize::MAX)
}

/// Frees an error. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_error_free(error: Option<Box<Error>>) {
    border::ask((), || drop(error));
}
