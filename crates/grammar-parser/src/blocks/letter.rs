//! Letters: lexemes as the parser is told of them, a line's end with the depth of the next line.

use crate::{Indentation, TerminalId};

/// A lexeme as the parser is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Letter {
    /// The lexeme's terminal.
    pub terminal: TerminalId,
    /// Line of a line's end that ends inside the token; else [`Line::OTHER`].
    pub line: Line,
}

/// The blanks at the beginning of the line that a line's end leads to, as far as they are read.
///
/// Read byte by byte: a line break begins a line, blanks (a tab counts for several) make it deeper,
/// and whatever comes then, such as a comment that belongs to the line's end, stops the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    depth: Depth,
    /// True when a blank would still count.
    counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Depth {
    /// No line break was read in this lexeme.
    None,
    /// Number of blanks since the last line break.
    Is(u32),
    /// Number of blanks since the token began, in which no line break was read.
    Grows(u32),
}

impl Default for Line {
    fn default() -> Self {
        Self::OTHER
    }
}

impl Line {
    /// Line at the beginning of a lexeme, and of anything that is no line's end.
    pub const OTHER: Self = Self { depth: Depth::None, counts: false };

    /// Line at the beginning of a token.
    pub const UNKNOWN: Self = Self { depth: Depth::Grows(0), counts: true };

    /// The line after one more byte.
    pub fn after(self, byte: u8, blocks: &Indentation) -> Self {
        let width = match byte {
            b'\n' => return Self { depth: Depth::Is(0), counts: true },
            b' ' => 1,
            b'\t' => blocks.tab_width,
            _ => return Self { counts: false, ..self },
        };
        let depth = match self.depth {
            _ if !self.counts => self.depth,
            Depth::None => Depth::None,
            Depth::Is(blanks) => Depth::Is(blanks.saturating_add(width)),
            Depth::Grows(blanks) => Depth::Grows(blanks.saturating_add(width)),
        };
        Self { depth, ..self }
    }

    /// The line after a token, where `self` is what was known before it and `token` what the
    /// token's own bytes tell.
    pub fn then(self, token: Self) -> Self {
        match token.depth {
            Depth::Grows(more) => {
                let depth = match self.depth {
                    _ if !self.counts => self.depth,
                    Depth::None => Depth::None,
                    Depth::Is(blanks) => Depth::Is(blanks.saturating_add(more)),
                    Depth::Grows(blanks) => Depth::Grows(blanks.saturating_add(more)),
                };
                Self { depth, counts: self.counts && token.counts }
            }
            Depth::None | Depth::Is(_) => token,
        }
    }

    /// The line of a row whose line's end is over: further blanks no longer matter.
    pub fn ended(self) -> Self {
        Self { counts: false, ..self }
    }

    /// True when it tells of a token's bytes alone, whatever was before them.
    pub(super) fn is_of_token(self) -> bool {
        matches!(self.depth, Depth::Grows(_))
    }

    /// A line that begins with so many blanks so far.
    pub fn begun(depth: u32) -> Self {
        Self { depth: Depth::Is(depth), counts: true }
    }

    /// The line begun at another depth.
    pub(super) fn at(self, depth: u32) -> Self {
        Self { depth: Depth::Is(depth), ..self }
    }

    /// Depth of the next line; `None` when no line break was read.
    pub fn depth(self) -> Option<u32> {
        match self.depth {
            Depth::None => None,
            Depth::Is(blanks) | Depth::Grows(blanks) => Some(blanks),
        }
    }
}

impl Letter {
    /// The letter of a terminal that is no line's end, or of one in progress.
    pub fn of(terminal: TerminalId) -> Self {
        Self { terminal, line: Line::OTHER }
    }
}
