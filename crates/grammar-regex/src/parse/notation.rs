//! Notation of a regular expression, and the question asked of it.

use super::error::RegexError;

/// Notation of a regular expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Module `re` of Python 3.
    Python,
    /// ECMAScript with the flag `u`, and where that would refuse punctuation (`\-`, a lone `{`),
    /// without.
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
    /// `\d` is 0 to 9 in dialects where it is every digit of Unicode: for texts that programs read
    /// as numbers.
    pub ascii_digits: bool,
}

/// Question asked of a regular expression; see the [module](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The lexemes of a terminal: [`parse`](super::parse).
    Lexeme,
    /// The texts that match from beginning to end: [`parse_text`](super::parse_text).
    Text,
    /// The texts that contain a match: [`parse_search`](super::parse_search).
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

    pub(super) fn set(&mut self, letter: char, to: bool, offset: usize) -> Result<(), RegexError> {
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
