//! Regular expressions from their text, in the dialects of Python, ECMAScript and the `regex`
//! crate.
//!
//! Three questions can be asked of the same text:
//!
//! - [`parse`]: the lexemes of a terminal. What precedes and what follows a lexeme is seen by
//!   lookarounds, which stay in the tree as [`Regex::Look`]. `^` and `$` at its ends say nothing.
//! - [`parse_text`]: the texts that match from their beginning to their end.
//! - [`parse_search`]: the texts that contain a match.
//!
//! The latter two know the whole text. Anchors, word boundaries and lookaheads are worked into the
//! tree there, exactly, and no `Look` is left; where they cannot be, the tree is a
//! [`Regex::Whole`].
//!
//! Steps: `reader` (or `rust`, by crate `regex-syntax`) makes a syntax tree of characters,
//! repetitions and conditions on places; `places` resolves the conditions.

mod class_sets;
mod classes;
mod conditions;
mod equations;
mod error;
mod escapes;
mod java;
mod notation;
mod places;
mod reader;
pub mod restrict;
mod rust;
mod syntax;

pub use error::{Note, RegexError};
pub use notation::{Dialect, Flags, Reading};

use crate::{Budget, Regex};
use places::resolve;

/// True for `/^…$/flags`, which as it stands matches nothing.
fn is_between_slashes(source: &str) -> bool {
    let Some((inner, flags)) = source.strip_prefix("/^").and_then(|rest| rest.rsplit_once('/'))
    else {
        return false;
    };
    let ends = inner.ends_with('$') && !inner.ends_with("\\$");
    ends && flags.chars().all(|flag| "dgimsuvy".contains(flag))
}

/// The lexemes of a terminal: what `source` matches from beginning to end.
///
/// Conditions on what follows the lexeme, and lookarounds within it, stay as [`Regex::Look`]; other
/// conditions on places are resolved. `$` as the last thing, and `^` as the first, say nothing.
///
/// # Errors
/// The place and what is wrong there: no regular expression of the dialect, something that no
/// finite automaton does (backreferences, atomic groups), or a limit passed.
pub fn parse(source: &str, dialect: Dialect, flags: Flags) -> Result<Regex, RegexError> {
    parse_with_budget(source, dialect, flags, Reading::Lexeme, &mut Budget::unlimited())
}

/// The texts that `source` matches from beginning to end, without [`Regex::Look`] but in a
/// [`Regex::Whole`].
///
/// # Errors
/// As [`parse`].
pub fn parse_text(source: &str, dialect: Dialect, flags: Flags) -> Result<Regex, RegexError> {
    parse_with_budget(source, dialect, flags, Reading::Text, &mut Budget::unlimited())
}

/// The texts that contain a match of `source`, without [`Regex::Look`] but in a [`Regex::Whole`]:
/// what `pattern` means in a JSON schema.
///
/// # Errors
/// As [`parse_text`].
pub fn parse_search(source: &str, dialect: Dialect, flags: Flags) -> Result<Regex, RegexError> {
    parse_with_budget(source, dialect, flags, Reading::Search, &mut Budget::unlimited())
}

/// [`parse`], [`parse_text`] or [`parse_search`], as `reading` says, as long as the budget lasts
/// and nobody calls it off.
///
/// # Errors
/// As these, and when the work is [`interrupted`](RegexError::interrupted).
pub fn parse_with_budget(
    source: &str,
    dialect: Dialect,
    flags: Flags,
    reading: Reading,
    budget: &mut Budget<'_>,
) -> Result<Regex, RegexError> {
    parse_noting(source, dialect, flags, reading, (budget, &mut Vec::new()))
}

/// [`parse_with_budget`], adding notes on what dialects read differently.
///
/// # Errors
/// As [`parse_with_budget`].
pub fn parse_noting(
    source: &str,
    dialect: Dialect,
    flags: Flags,
    reading: Reading,
    (budget, notes): (&mut Budget<'_>, &mut Vec<Note>),
) -> Result<Regex, RegexError> {
    if reading != Reading::Lexeme && is_between_slashes(source) {
        let message = "this is an expression between slashes, as JavaScript writes them, and nothing precedes its `^`: leave the slashes out, \
                       and write flags as `(?i)`";
        return Err(RegexError { is_irregular: true, ..RegexError::new(0, message) });
    }
    let tree = match dialect {
        Dialect::Rust => rust::read(source, flags, budget),
        Dialect::Python | Dialect::Ecma => {
            reader::read(source, dialect, flags, (budget, &mut *notes))
        }
    };
    resolve(tree?, reading, budget)
}
