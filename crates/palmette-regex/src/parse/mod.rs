//! Regular expressions from their text, in the dialects of Python, ECMAScript and the `regex` crate.
//!
//! Three questions can be asked of the same text:
//!
//! - [`parse`]: the lexemes of a terminal. What precedes and what follows a lexeme is seen by lookarounds, which stay in the tree as
//!   [`Regex::Look`]. `^` and `$` at its ends say nothing.
//! - [`parse_text`]: the texts that match from their beginning to their end.
//! - [`parse_search`]: the texts that contain a match.
//!
//! The latter two know the whole text. Anchors, word boundaries and lookaheads are worked into the tree there, exactly,
//! and no `Look` is left; where they cannot be, the tree is a [`Regex::Whole`].
//!
//! Steps: `reader` (or `rust`, by crate `regex-syntax`) makes a syntax tree of characters, repetitions and
//! conditions on places; `places` resolves the conditions.

mod class_sets;
mod classes;
mod conditions;
mod equations;
mod escapes;
mod java;
mod places;
mod reader;
pub mod restrict;
mod rust;
mod syntax;

use crate::{Budget, Interrupted, Regex};
use places::resolve;

/// Notation of a regular expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Module `re` of Python 3.
    Python,
    /// ECMAScript with the flag `u`, and where that would refuse punctuation (`\-`, a lone `{`), without.
    Ecma,
    /// The crate `regex`.
    Rust,
}

/// Switches for a whole regular expression. The default has none set.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(default, deny_unknown_fields)]
pub struct Flags {
    /// `i`: upper and lower case are the same, by Unicode's simple case folding.
    pub ignore_case: bool,
    /// `m`: `^` and `$` match at line breaks too.
    pub multi_line: bool,
    /// `s`: `.` matches line breaks too.
    pub dot_all: bool,
    /// `x`: blanks and comments are skipped (not in ECMAScript).
    pub verbose: bool,
    /// `a`: `\w`, `\d`, `\s`, `\b` and `i` know ASCII only (Python).
    pub ascii: bool,
    /// `\d` is 0 to 9 in dialects where it is every digit of Unicode: for texts that programs read as numbers.
    pub ascii_digits: bool,
}

/// Error of a text that is no regular expression that can be used here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the regular expression: {message}")]
pub struct RegexError {
    /// The place in the text, in bytes.
    pub offset: usize,
    /// The construct, the rule and the way out.
    pub message: String,
    /// True when the text was understood and asks for what no finite automaton does: another dialect is of no use then.
    pub is_irregular: bool,
    /// The reason for which the work stopped, if the budget ran out or it was called off: then nothing need be wrong
    /// with the text.
    pub interrupted: Option<Interrupted>,
}

/// A note on something that dialects read differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place in the text, in bytes.
    pub offset: usize,
    /// The construct, its reading here, and how to write what is not meant.
    pub message: String,
}

impl RegexError {
    /// An error at a place of the source.
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), is_irregular: false, interrupted: None }
    }
}

impl From<Interrupted> for RegexError {
    fn from(why: Interrupted) -> Self {
        let message = why.to_string();
        Self { offset: 0, message, is_irregular: false, interrupted: Some(why) }
    }
}

/// Question asked of a regular expression; see the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The lexemes of a terminal: [`parse`].
    Lexeme,
    /// The texts that match from beginning to end: [`parse_text`].
    Text,
    /// The texts that contain a match: [`parse_search`].
    Search,
}

impl Flags {
    /// The flags that these letters set: of `i`, `m`, `s`, `x`, `a` and `u` (which is the default).
    ///
    /// # Errors
    /// Names any other letter.
    pub fn from_letters(letters: &str) -> Result<Self, RegexError> {
        let mut flags = Self::default();
        for (offset, letter) in letters.char_indices() {
            flags.set(letter, true, offset)?;
        }
        Ok(flags)
    }

    fn set(&mut self, letter: char, to: bool, offset: usize) -> Result<(), RegexError> {
        match letter {
            'i' => self.ignore_case = to,
            'm' => self.multi_line = to,
            's' => self.dot_all = to,
            'x' => self.verbose = to,
            'a' => self.ascii = to,
            'u' => self.ascii = !to,
            'l' | 'L' => {
                let message = "flag L asks for the locale, which is not known here; leave it out";
                return Err(RegexError::new(offset, message));
            }
            _ => {
                let message = format!("unknown flag {letter:?}; there are i, m, s, x, a and u");
                return Err(RegexError::new(offset, message));
            }
        }
        Ok(())
    }
}

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
/// Conditions on what follows the lexeme, and lookarounds within it, stay as [`Regex::Look`]; other conditions on places
/// are resolved. `$` as the last thing, and `^` as the first, say nothing.
///
/// # Errors
/// The place and what is wrong there: no regular expression of the dialect, something that no finite automaton does
/// (backreferences, atomic groups), or a limit passed.
pub fn parse(source: &str, dialect: Dialect, flags: Flags) -> Result<Regex, RegexError> {
    parse_with_budget(source, dialect, flags, Reading::Lexeme, &mut Budget::unlimited())
}

/// The texts that `source` matches from beginning to end, without [`Regex::Look`] but in a [`Regex::Whole`].
///
/// # Errors
/// As [`parse`].
pub fn parse_text(source: &str, dialect: Dialect, flags: Flags) -> Result<Regex, RegexError> {
    parse_with_budget(source, dialect, flags, Reading::Text, &mut Budget::unlimited())
}

/// The texts that contain a match of `source`, without [`Regex::Look`] but in a [`Regex::Whole`]: what `pattern` means in a JSON
/// schema.
///
/// # Errors
/// As [`parse_text`].
pub fn parse_search(source: &str, dialect: Dialect, flags: Flags) -> Result<Regex, RegexError> {
    parse_with_budget(source, dialect, flags, Reading::Search, &mut Budget::unlimited())
}

/// [`parse`], [`parse_text`] or [`parse_search`], as `reading` says, as long as the budget lasts and nobody
/// calls it off.
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
