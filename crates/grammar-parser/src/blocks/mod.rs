//! The layer between lexer and parser: leaves out ignored terminals, and marks blocks by
//! indentation.
//!
//! # Indentation
//! The rules see *marks* ([`Indentation::indent`], [`Indentation::dedent`]) that no text stands
//! for. With the depths of the open blocks on a stack, at first only 0, and counting open brackets,
//! each lexeme that ends is handed on as follows:
//!
//! - a line's end inside brackets is dropped;
//! - any other is handed on. If it holds a line break, the blanks after its last one are the next
//!   line's depth (a tab counts for [`Indentation::tab_width`], anything but a blank ends the
//!   count). A depth greater than that of the innermost block opens a block: one `indent`. A
//!   smaller one closes blocks, one `dedent` each, and must then be that of the innermost block
//!   left: otherwise the text is wrong;
//! - an opening or closing bracket is handed on and counted; any other lexeme is handed on.
//!
//! At the end of the text, all blocks are closed.
//!
//! While a line's end is in progress it is live wherever the parser takes a line's end, since a
//! line break may still follow it and begin a line of whatever depth. Grammars whose line's ends
//! cannot go on so, or whose rules mark blocks without need, may allow a token after which no depth
//! helps.

mod letter;
mod relative;

use std::num::NonZeroU32;
use std::sync::Arc;

pub use letter::{Letter, Line};
pub use relative::{Blanks, RelativeDepths};

use crate::glr::{Parser, ParserScratch, Stacks};
use crate::{Grammar, Indentation, LimitError, TerminalId, TerminalSet};

/// The layer of one grammar.
#[derive(Debug)]
pub struct Layer {
    /// Terminals that the parser does not see.
    pub ignored: TerminalSet,
    /// Blocks, if there are any.
    pub indentation: Option<Indentation>,
}

/// Open blocks and brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocks {
    /// The depths of the open blocks, rising; the outermost, 0, is left out. `None` is none.
    depths: Option<Arc<[u32]>>,
    brackets: u32,
}

/// Marks that follow a line's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Marks {
    /// None.
    #[default]
    None,
    /// Beginning of a block.
    Indent,
    /// Ends of so many blocks.
    Dedents(NonZeroU32),
}

impl Layer {
    /// Layer of a grammar.
    pub fn new(grammar: &Grammar) -> Self {
        Self {
            ignored: crate::grammar::ignored_terminals(grammar),
            indentation: grammar.indentation().cloned(),
        }
    }

    /// True when a lexeme of `terminal`, in progress or ended, can be next.
    pub fn accepts(
        &self,
        parser: &Parser,
        (stacks, blocks): (&Stacks, &Blocks),
        terminal: TerminalId,
        scratch: &mut ParserScratch,
    ) -> Result<bool, LimitError> {
        if self.is_dropped(blocks, terminal) {
            return Ok(true);
        }
        parser.accepts(stacks, terminal, scratch)
    }

    /// True when a lexeme of one of `terminals`, in progress or ended, can be next.
    pub(crate) fn accepts_any(
        &self,
        parser: &Parser,
        (stacks, blocks): (&Stacks, &Blocks),
        terminals: &TerminalSet,
        scratch: &mut ParserScratch,
    ) -> Result<bool, LimitError> {
        let dropped = self.ignored.intersects(terminals)
            || blocks.brackets > 0
                && self.indentation.as_ref().is_some_and(|marks| terminals.contains(marks.newline));
        Ok(dropped || parser.accepts_any(stacks, terminals, scratch)?)
    }

    /// Blocks and stacks after a lexeme.
    pub fn step(
        &self,
        parser: &Parser,
        parsed: (&Stacks, &Blocks),
        letter: Letter,
        scratch: &mut ParserScratch,
    ) -> Result<Option<(Stacks, Blocks)>, LimitError> {
        self.step_by(parsed, letter, |stacks, terminal| parser.shift(stacks, terminal, scratch))
    }

    /// [`step`](Self::step) of whatever stands for stacks, where `shift` moves them over a
    /// terminal.
    pub fn step_by<S: Clone>(
        &self,
        (stacks, blocks): (&S, &Blocks),
        letter: Letter,
        mut shift: impl FnMut(&S, TerminalId) -> Result<Option<S>, LimitError>,
    ) -> Result<Option<(S, Blocks)>, LimitError> {
        if self.is_dropped(blocks, letter.terminal) {
            return Ok(Some((stacks.clone(), blocks.clone())));
        }
        let Some((blocks, marks)) = self.after(blocks, letter) else { return Ok(None) };
        let (mut after, mut marks) = (shift(stacks, letter.terminal)?, marks);
        while let (Some(stacks), Some(mark)) = (&after, self.mark(marks)) {
            after = shift(stacks, mark)?;
            marks = marks.rest();
        }
        Ok(after.map(|stacks| (stacks, blocks)))
    }

    /// The blocks after a lexeme that is not [dropped](Self::is_dropped), and the marks that follow
    /// it; `None` where a line begins at a depth that no open block has.
    pub fn after(&self, blocks: &Blocks, letter: Letter) -> Option<(Blocks, Marks)> {
        let mut blocks = blocks.clone();
        let Some(marks) = &self.indentation else { return Some((blocks, Marks::None)) };
        if letter.terminal == marks.newline {
            return match letter.line.depth() {
                Some(depth) => blocks.begin_line(depth),
                None => Some((blocks, Marks::None)),
            };
        }
        if marks.open.contains(&letter.terminal) {
            blocks.brackets = blocks.brackets.saturating_add(1);
        } else if marks.close.contains(&letter.terminal) {
            blocks.brackets = blocks.brackets.saturating_sub(1);
        }
        Some((blocks, Marks::None))
    }

    /// Terminal of the first of some marks.
    pub fn mark(&self, marks: Marks) -> Option<TerminalId> {
        let of = self.indentation.as_ref()?;
        match marks {
            Marks::None => None,
            Marks::Indent => Some(of.indent),
            Marks::Dedents(_) => Some(of.dedent),
        }
    }

    /// True when the text may end here, where no lexeme is in progress.
    pub fn accepts_end(
        &self,
        parser: &Parser,
        (stacks, blocks): (&Stacks, &Blocks),
        scratch: &mut ParserScratch,
    ) -> Result<bool, LimitError> {
        let mut stacks = stacks.clone();
        if let Some(marks) = &self.indentation {
            for _ in blocks.depths() {
                match parser.shift(&stacks, marks.dedent, scratch)? {
                    Some(next) => stacks = next,
                    None => return Ok(false),
                }
            }
        }
        parser.accepts_end(&stacks, scratch)
    }

    /// Knowledge of the next line after one more byte of a lexeme.
    pub fn line_after(&self, line: Line, byte: u8) -> Line {
        self.indentation.as_ref().map_or(Line::OTHER, |blocks| line.after(byte, blocks))
    }

    /// True when the parser does not see a lexeme of this terminal.
    pub fn is_dropped(&self, blocks: &Blocks, terminal: TerminalId) -> bool {
        self.ignored.contains(terminal)
            || blocks.brackets > 0
                && self.indentation.as_ref().is_some_and(|marks| marks.newline == terminal)
    }

    /// Adds what the parser does not see here though it is not ignored.
    pub fn add_dropped(&self, blocks: &Blocks, terminals: &mut TerminalSet) {
        if let Some(marks) = &self.indentation
            && blocks.brackets > 0
        {
            terminals.insert(marks.newline);
        }
    }

    /// Line, as far as it is known and matters to this lexeme in progress.
    pub fn line_of(&self, possible: &TerminalSet, line: Line) -> Line {
        let newline = self.indentation.as_ref().map(|marks| marks.newline);
        if newline.is_some_and(|newline| possible.contains(newline)) { line } else { Line::OTHER }
    }

    /// A lexeme that ends as `terminal`, where `line` is what was known of it.
    pub fn ended(&self, terminal: TerminalId, line: Line) -> Letter {
        let newline = self.indentation.as_ref().map(|marks| marks.newline);
        let line = if newline == Some(terminal) { line.ended() } else { Line::OTHER };
        Letter { terminal, line }
    }
}

impl Blocks {
    /// Blocks of these depths, rising and without the outermost, and so many open brackets.
    pub fn new(depths: &[u32], brackets: u32) -> Self {
        Self { depths: (!depths.is_empty()).then(|| depths.into()), brackets }
    }

    /// Opens or closes blocks as the depth of a line asks; `None` when it is none that may be.
    fn begin_line(mut self, depth: u32) -> Option<(Self, Marks)> {
        let open = self.depths();
        let innermost = open.last().copied().unwrap_or(0);
        if depth > innermost {
            self.depths = Some(open.iter().copied().chain([depth]).collect());
            return Some((self, Marks::Indent));
        }
        let num_left = open.partition_point(|&open| open <= depth);
        let num_closed = (open.len() - num_left) as u32;
        let left = &open[..num_left];
        if depth != left.last().copied().unwrap_or(0) {
            return None;
        }
        let Some(num_closed) = NonZeroU32::new(num_closed) else {
            return Some((self, Marks::None));
        };
        self.depths = (!left.is_empty()).then(|| left.into());
        Some((self, Marks::Dedents(num_closed)))
    }

    fn depths(&self) -> &[u32] {
        self.depths.as_deref().unwrap_or(&[])
    }
}

impl Marks {
    /// All but the first.
    #[must_use]
    pub fn rest(self) -> Self {
        match self {
            Self::None | Self::Indent => Self::None,
            Self::Dedents(number) => {
                NonZeroU32::new(number.get() - 1).map_or(Self::None, Self::Dedents)
            }
        }
    }
}
