//! What stands between lexer and parser: ignored terminals are left out, and blocks by indentation are marked.
//!
//! # Indentation
//! The rules see *marks* ([`Indentation::indent`], [`Indentation::dedent`]) that no text stands for. With the depths of the
//! open blocks on a stack, at first only 0, and counting open brackets, each lexeme that ends is handed on as follows:
//!
//! - a line's end inside brackets is dropped;
//! - any other is handed on. If it holds a line break, the blanks after its last one are the next line's depth (a tab
//!   counts for [`Indentation::tab_width`], anything but a blank ends the count). A depth greater than that of the innermost block opens
//!   a block: one `indent`. A smaller one closes blocks, one `dedent` each, and must then be that of the innermost block
//!   left: otherwise the text is wrong;
//! - an opening or closing bracket is handed on and counted; any other lexeme is handed on.
//!
//! At the end of the text, all blocks are closed.
//!
//! While a line's end is in progress it is live wherever the parser takes a line's end, since a line break may still follow
//! it and begin a line of whatever depth. Grammars whose line's ends cannot go on so, or whose rules mark blocks
//! without need, may allow a token after which no depth helps.

use std::sync::Arc;

use crate::store::{Letter, Line};
use crate::{
    Grammar, Indentation, LimitError, Parser, ParserScratch, Stacks, TerminalId, TerminalSet,
};

/// The layer of one grammar.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) ignored: TerminalSet,
    pub(crate) indentation: Option<Indentation>,
}

/// What the lexemes so far come to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Position {
    pub(crate) stacks: Stacks,
    pub(crate) blocks: Blocks,
}

/// Open blocks and brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Blocks {
    /// The depths of the open blocks, rising; the outermost, 0, is left out. `None` is none.
    depths: Option<Arc<[u32]>>,
    brackets: u32,
}

impl Layer {
    pub(crate) fn new(grammar: &Grammar) -> Self {
        Self {
            ignored: crate::store::ignored_terminals(grammar),
            indentation: grammar.indentation().cloned(),
        }
    }

    /// Before the first lexeme.
    pub(crate) fn start(&self, parser: &Parser) -> Position {
        Position { stacks: parser.start(), blocks: Blocks::default() }
    }

    /// Whether a lexeme of `terminal`, in progress or ended, can be next.
    pub(crate) fn accepts(
        &self,
        parser: &Parser,
        position: &Position,
        terminal: TerminalId,
        scratch: &mut ParserScratch,
    ) -> Result<bool, LimitError> {
        if self.is_dropped(position, terminal) {
            return Ok(true);
        }
        parser.accepts(&position.stacks, terminal, scratch)
    }

    /// After a lexeme.
    pub(crate) fn step(
        &self,
        parser: &Parser,
        position: &Position,
        letter: Letter,
        scratch: &mut ParserScratch,
    ) -> Result<Option<Position>, LimitError> {
        if self.is_dropped(position, letter.terminal) {
            return Ok(Some(position.clone()));
        }
        let Some(stacks) = parser.shift(&position.stacks, letter.terminal, scratch)? else {
            return Ok(None);
        };
        let mut next = Position { stacks, blocks: position.blocks.clone() };
        let Some(blocks) = &self.indentation else { return Ok(Some(next)) };
        if letter.terminal == blocks.newline {
            return match letter.line.depth() {
                Some(depth) => self.begin_line(parser, next, blocks, depth, scratch),
                None => Ok(Some(next)),
            };
        }
        if blocks.open.contains(&letter.terminal) {
            next.blocks.brackets = next.blocks.brackets.saturating_add(1);
        } else if blocks.close.contains(&letter.terminal) {
            next.blocks.brackets = next.blocks.brackets.saturating_sub(1);
        }
        Ok(Some(next))
    }

    /// Whether the text may end here, where no lexeme is in progress.
    pub(crate) fn accepts_end(
        &self,
        parser: &Parser,
        position: &Position,
        scratch: &mut ParserScratch,
    ) -> Result<bool, LimitError> {
        let mut stacks = position.stacks.clone();
        if let Some(blocks) = &self.indentation {
            for _ in position.blocks.depths() {
                match parser.shift(&stacks, blocks.dedent, scratch)? {
                    Some(next) => stacks = next,
                    None => return Ok(false),
                }
            }
        }
        parser.accepts_end(&stacks, scratch)
    }

    /// What is known of the next line after one more byte of a lexeme.
    pub(crate) fn line_after(&self, line: Line, byte: u8) -> Line {
        self.indentation.as_ref().map_or(Line::OTHER, |blocks| line.after(byte, blocks))
    }

    fn is_dropped(&self, position: &Position, terminal: TerminalId) -> bool {
        self.ignored.contains(terminal)
            || position.blocks.brackets > 0
                && self.indentation.as_ref().is_some_and(|blocks| blocks.newline == terminal)
    }

    fn begin_line(
        &self,
        parser: &Parser,
        mut position: Position,
        blocks: &Indentation,
        depth: u32,
        scratch: &mut ParserScratch,
    ) -> Result<Option<Position>, LimitError> {
        let mut open = position.blocks.depths();
        if depth > open.last().copied().unwrap_or(0) {
            let Some(stacks) = parser.shift(&position.stacks, blocks.indent, scratch)? else {
                return Ok(None);
            };
            let depths = open.iter().copied().chain([depth]).collect();
            return Ok(Some(Position {
                stacks,
                blocks: Blocks { depths: Some(depths), ..position.blocks },
            }));
        }
        while let Some((&innermost, outer)) = open.split_last()
            && depth < innermost
        {
            let Some(stacks) = parser.shift(&position.stacks, blocks.dedent, scratch)? else {
                return Ok(None);
            };
            position.stacks = stacks;
            open = outer;
        }
        if depth != open.last().copied().unwrap_or(0) {
            return Ok(None);
        }
        if open.len() < position.blocks.depths().len() {
            let depths = (!open.is_empty()).then(|| open.into());
            position.blocks.depths = depths;
        }
        Ok(Some(position))
    }
}

impl Blocks {
    fn depths(&self) -> &[u32] {
        self.depths.as_deref().unwrap_or(&[])
    }
}
