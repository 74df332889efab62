//! A place in a source text, for messages.

use std::fmt;

/// A place in a source text: line and column, both from 1, the column counted in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Byte offset of the first byte.
    pub start: usize,
    /// Byte offset past the last byte.
    pub end: usize,
    /// Line of `start`, from 1.
    pub line: u32,
    /// Column of `start` in characters, from 1.
    pub column: u32,
}

impl Span {
    /// The bytes `start..end` of `source`.
    ///
    /// # Panics
    /// When `start` is not a character boundary of `source`.
    pub fn locate(source: &str, start: usize, end: usize) -> Self {
        let before = &source[..start];
        let line = before.bytes().filter(|&byte| byte == b'\n').count() as u32 + 1;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self { start, end, line, column: before[line_start..].chars().count() as u32 + 1 }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}
