//! Exceptions of the package, and Rust errors as Python raises them.
//!
//! All are `palmette.Error`, which is a `ValueError`. Facts that a program may act on are
//! attributes, `None` where an error does not know them: the stable interface of CPython 3.11 has
//! no subclasses of exceptions with fields.

use std::io;
use std::sync::Arc;

use palmette_core::{CommitError, TokenId};
use palmette_grammar::frontends::json_schema::JsonSchemaError;
use palmette_grammar::{
    CacheError, CommitBytesError, CompileError, EndingError, Interrupted, RecognizerError,
    ReopenError, RowErrorKind, SaveError, SourceError, Span, TableError,
};
use pyo3::exceptions::{PyDeprecationWarning, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{IntoPyObjectExt, create_exception};

create_exception!(
    palmette,
    Error,
    PyValueError,
    "Every error of the package that is not a wrong type or a refusal of the system."
);
create_exception!(
    palmette,
    GrammarError,
    Error,
    "A grammar that cannot be used: `line` and `column` from 1, and the `rule` in which the place is."
);
create_exception!(
    palmette,
    SchemaUnsupported,
    GrammarError,
    "A JSON Schema that asks for what no grammar can express: `keyword` at `path`, a JSON pointer."
);
create_exception!(
    palmette,
    LimitExceeded,
    Error,
    "Work or memory beyond a `limit`, which is named; it can be raised."
);
create_exception!(
    palmette,
    NotAllowed,
    Error,
    "A `token` (or a byte) that the grammar does not allow at `position`; nothing was changed."
);
create_exception!(
    palmette,
    DeviceError,
    Error,
    "A device that is not there, is too old, has not the memory, or has failed."
);
create_exception!(
    palmette,
    TooFewTokens,
    Error,
    "Tokens that are too few for a text to end within them: `needed` of them, of `left`; `needed` is None where no way is known. `row` of a batch."
);
create_exception!(
    palmette,
    TooManyTokens,
    Error,
    "Tokens that are more than a text is known to take: `needed` of them, of `left`. `row` of a batch."
);
create_exception!(
    palmette,
    VocabularyError,
    Error,
    "A vocabulary that cannot be loaded, or a token that is not in it."
);

/// Gives the exception classes their attributes, so that reading one that was not set gives `None`.
pub(crate) fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for (class, attributes) in [
        (py.get_type::<GrammarError>(), &["line", "column", "rule", "path", "keyword"][..]),
        (py.get_type::<LimitExceeded>(), &["limit"]),
        (py.get_type::<NotAllowed>(), &["token", "position"]),
        (py.get_type::<TooFewTokens>(), &["needed", "left", "row"]),
        (py.get_type::<TooManyTokens>(), &["needed", "left", "row"]),
    ] {
        none_unless_set(&class, attributes)?;
    }
    Ok(())
}

/// Class attributes that are `None`.
pub(crate) fn none_unless_set(class: &Bound<'_, PyType>, attributes: &[&str]) -> PyResult<()> {
    attributes.iter().try_for_each(|name| class.setattr(*name, class.py().None()))
}

/// Sets an attribute of an exception.
pub(crate) fn with<'py, T: IntoPyObjectExt<'py>>(
    error: PyErr,
    py: Python<'py>,
    name: &str,
    value: T,
) -> PyErr {
    match error.value(py).setattr(name, value) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// The exception of work that was called off: by Ctrl-C, unless a handler of the caller's raised
/// something else, which is then raised instead.
pub(crate) fn called_off() -> PyErr {
    PyKeyboardInterrupt::new_err("the work was called off")
}

/// A limit by its name in messages.
pub(crate) fn limit_exceeded(py: Python<'_>, limit: Option<&str>, message: String) -> PyErr {
    with(LimitExceeded::new_err(message), py, "limit", limit)
}

fn interrupted(py: Python<'_>, why: Interrupted) -> PyErr {
    let limit = match why {
        Interrupted::Cancelled => return called_off(),
        Interrupted::OutOfBudget { .. } => "steps",
        Interrupted::OutOfBytes { .. } => "bytes",
        Interrupted::TooManyWays { .. } => "ways",
        Interrupted::TooManyResiduals => "residuals",
    };
    limit_exceeded(py, Some(limit), why.to_string())
}

/// The name of a limit in a message, which all begin alike: `max_links`.
fn limit_named(message: &str) -> Option<&str> {
    let words = message.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    words.into_iter().find(|word| word.starts_with("max_"))
}

/// The exception of a limit of lexer, parser or mask.
pub(crate) fn of_recognizer(py: Python<'_>, error: &RecognizerError) -> PyErr {
    match error {
        RecognizerError::Interrupted(why) => interrupted(py, *why),
        RecognizerError::Unbound { .. } => GrammarError::new_err(error.to_string()),
        RecognizerError::Lexer(_) | RecognizerError::Parser(_) => of_limit(py, error),
    }
}

fn of_limit(py: Python<'_>, error: &dyn std::error::Error) -> PyErr {
    let message = error.to_string();
    let limit = limit_named(&message).map(str::to_owned);
    limit_exceeded(py, limit.as_deref(), message)
}

/// The exception of a row of a batch, whose number stands before the message.
pub(crate) fn of_row(py: Python<'_>, row: usize, error: &RowErrorKind) -> PyErr {
    match error {
        RowErrorKind::Limit(RecognizerError::Interrupted(Interrupted::Cancelled)) => called_off(),
        RowErrorKind::Limit(limit) => {
            let message = format!("row {row}: {limit}");
            let limit = limit_named(&message).map(str::to_owned);
            limit_exceeded(py, limit.as_deref(), message)
        }
        RowErrorKind::Ending(ending) => {
            with(of_ending(py, ending, &format!("row {row}: ")), py, "row", row)
        }
        RowErrorKind::Narrow { .. } => PyValueError::new_err(format!("row {row}: {error}")),
    }
}

/// The exception of a mask that is not known.
pub(crate) fn of_mask(py: Python<'_>, error: &RowErrorKind) -> PyErr {
    match error {
        RowErrorKind::Limit(limit) => of_recognizer(py, limit),
        RowErrorKind::Ending(ending) => of_ending(py, ending, ""),
        RowErrorKind::Narrow { .. } => PyValueError::new_err(error.to_string()),
    }
}

/// The exception of a text that cannot end with as many tokens as it may, or must, take.
pub(crate) fn of_ending(py: Python<'_>, error: &EndingError, place: &str) -> PyErr {
    let message = format!("{place}{error}");
    let raised = match error {
        EndingError::TooMany { .. } => TooManyTokens::new_err(message),
        _ => TooFewTokens::new_err(message),
    };
    match error {
        EndingError::Limit(limit) => of_recognizer(py, limit),
        EndingError::Unknown => raised,
        EndingError::TooFew { needed, left } => {
            with(with(raised, py, "needed", *needed), py, "left", *left)
        }
        EndingError::TooMany { least, most } => {
            let left = (*most != usize::MAX).then_some(*most);
            with(with(raised, py, "needed", *least), py, "left", left)
        }
    }
}

/// The exception of a token that was not committed.
pub(crate) fn of_commit(py: Python<'_>, error: &CommitError<RecognizerError>) -> PyErr {
    match error {
        CommitError::NotAllowed { token, position } => {
            not_allowed(py, error.to_string(), *token, *position)
        }
        CommitError::Failed { error: limit, .. } => match limit {
            RecognizerError::Interrupted(Interrupted::Cancelled) => called_off(),
            _ => of_limit(py, error),
        },
        CommitError::UnknownToken { token, num_tokens } => {
            unknown_token(i64::from(token.0), *num_tokens)
        }
    }
}

/// Exception of a token at a place where nothing continues with it.
pub(crate) fn not_allowed(
    py: Python<'_>,
    message: String,
    token: TokenId,
    position: usize,
) -> PyErr {
    let error = with(NotAllowed::new_err(message), py, "token", token.0);
    with(error, py, "position", position)
}

/// The exception of a number that no token has.
pub(crate) fn unknown_token(token: i64, num_tokens: usize) -> PyErr {
    VocabularyError::new_err(match num_tokens.checked_sub(1) {
        Some(last) => format!("token {token} is not in the vocabulary: tokens are 0 to {last}"),
        None => format!("token {token} is not in the vocabulary, which is empty"),
    })
}

/// The exception of bytes that do not fit.
pub(crate) fn of_bytes(py: Python<'_>, error: &CommitBytesError, position: usize) -> PyErr {
    match error {
        CommitBytesError::NotAllowed { .. } => {
            with(NotAllowed::new_err(error.to_string()), py, "position", position)
        }
        CommitBytesError::Limit(limit) => of_recognizer(py, limit),
    }
}

/// The exception of a grammar that was not compiled. `text` is its source.
pub(crate) fn of_compilation(py: Python<'_>, error: &CacheError, text: &str) -> PyErr {
    match error {
        CacheError::Source(error) => of_source(py, error, text),
        CacheError::Token(_) | CacheError::NoText | CacheError::Unbound { .. } => {
            GrammarError::new_err(error.to_string())
        }
        CacheError::Compile(error) => of_compile(py, error),
        CacheError::Cancelled => called_off(),
    }
}

fn of_compile(py: Python<'_>, error: &Arc<CompileError>) -> PyErr {
    match &**error {
        CompileError::Interrupted(why) => interrupted(py, *why),
        CompileError::Parser(TableError::Interrupted(why)) => interrupted(py, *why),
        CompileError::Start(error) => of_recognizer(py, error),
        CompileError::Lexer(error) if !error.is_limit_exceeded() => {
            GrammarError::new_err(error.to_string())
        }
        CompileError::ContextualBlocks
        | CompileError::LongestMembers { .. }
        | CompileError::ContextualMembers { .. }
        | CompileError::MembersAmongBlocks { .. }
        | CompileError::IgnoredMembers { .. }
        | CompileError::MemberAfterLookahead { .. }
        | CompileError::Scope(_) => GrammarError::new_err(error.to_string()),
        CompileError::Lexer(error) => of_limit(py, error),
        CompileError::Parser(error) => of_limit(py, error),
    }
}

/// The exception of a text that its front end refuses.
pub(crate) fn of_source(py: Python<'_>, error: &SourceError, text: &str) -> PyErr {
    if let Some(why) = error.interrupted() {
        return interrupted(py, why);
    }
    let (message, span) = (error.to_string(), error.span(text));
    let raised = |defines| with_place(py, GrammarError::new_err(message), span, text, defines);
    match error {
        SourceError::Lark(_) => raised(":"),
        SourceError::Gbnf(_) => raised("::="),
        SourceError::JsonSchema(error) => of_schema(py, error, text),
        SourceError::StructuralTag(error) => with(raised(""), py, "path", error.pointer.as_str()),
        SourceError::Regex(_) => raised(""),
    }
}

fn of_schema(py: Python<'_>, error: &JsonSchemaError, text: &str) -> PyErr {
    let message = error.to_string();
    if error.is_limit_exceeded() {
        return limit_exceeded(py, error.limit(), message);
    }
    let raised = match error.is_unsupported() {
        true => SchemaUnsupported::new_err(message),
        false => GrammarError::new_err(message),
    };
    let raised = with_place(py, raised, error.span(), text, "");
    let raised = with(raised, py, "path", error.pointer());
    with(raised, py, "keyword", error.keyword())
}

/// Sets the attributes of a place. `defines` is what stands between a rule's name and its body;
/// empty where there are no rules.
fn with_place(
    py: Python<'_>,
    error: PyErr,
    span: Option<Span>,
    text: &str,
    defines: &str,
) -> PyErr {
    let Some(span) = span else { return error };
    let error = with(error, py, "line", span.line);
    let error = with(error, py, "column", span.column);
    match rule_around(text, span, defines) {
        Some(rule) => with(error, py, "rule", rule),
        None => error,
    }
}

/// The rule in whose definition a place is: the last line from there backwards that begins one.
fn rule_around<'a>(text: &'a str, span: Span, defines: &str) -> Option<&'a str> {
    if defines.is_empty() {
        return None;
    }
    let lines: Vec<_> = text.lines().take(span.line as usize).collect();
    lines.iter().rev().find_map(|line| {
        let line = line.trim_start_matches(['?', '!']);
        let end = line.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
        let (name, rest) = line.split_at(end?);
        // Lark has priorities and parameters between a name and its colon.
        let rest = rest.trim_start();
        let begins = rest.starts_with(defines)
            || defines == ":" && rest.starts_with(['.', '{', '[']) && rest.contains(':');
        (begins && !name.is_empty()).then_some(name)
    })
}

/// The exception of a compiled grammar that was not written.
pub(crate) fn of_save(py: Python<'_>, error: &SaveError, path: Option<&std::path::Path>) -> PyErr {
    match error {
        SaveError::Io(error) => of_io(py, error, path),
        SaveError::Source => Error::new_err(error.to_string()),
    }
}

/// The exception of a compiled grammar that was not read: `what` names it.
pub(crate) fn of_reopen(py: Python<'_>, error: &ReopenError, what: &str) -> PyErr {
    match error {
        ReopenError::Compile(error) => match error {
            CompileError::Interrupted(why) => interrupted(py, *why),
            CompileError::Start(error) => of_recognizer(py, error),
            _ => Error::new_err(format!("{what} {error}")),
        },
        ReopenError::Vocabulary { .. } => VocabularyError::new_err(format!("{what} {error}")),
        ReopenError::Source(source) => match source.interrupted() {
            Some(why) => interrupted(py, why),
            None => Error::new_err(format!("{what} {error}")),
        },
        _ => Error::new_err(format!("{what} {error}")),
    }
}

/// A refusal of the system as the `OSError` of its number, such as `FileNotFoundError`.
pub(crate) fn of_io(py: Python<'_>, error: &io::Error, path: Option<&std::path::Path>) -> PyErr {
    let Some(number) = error.raw_os_error() else {
        // Wrapped by a message that names the file.
        return io::Error::new(error.kind(), error.to_string()).into();
    };
    let text = py.import("os").and_then(|os| os.call_method1("strerror", (number,)));
    match text {
        Ok(text) => PyOSError::new_err((
            number,
            text.unbind(),
            path.map(|path| path.as_os_str().to_owned()),
        )),
        Err(other) => other,
    }
}

/// Tells the caller that a name has become another.
///
/// # Errors
/// `DeprecationWarning`, where warnings are errors.
pub(crate) fn warn_renamed(py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
    let text =
        std::ffi::CString::new(format!("{old} has become {new}")).expect("names have no zeros");
    PyErr::warn(py, &py.get_type::<PyDeprecationWarning>(), &text, 1)
}
