//! Reading a text byte by byte: lexer and parser together, without tokens.
//!
//! A [`Recognizer`] is a grammar made ready. A [`Position`] is what a text so far may be: *branches*, each a way to
//! cut it into lexemes with all ways to parse these. [`Recognizer::advance`] reads a byte: in each branch the
//! lexeme in progress goes on, or it ended before the byte and the parser shifts what it was. Branches
//! that nothing can complete are dropped at once, so a position is live by its existence.

mod error;
mod position;

use std::sync::Arc;

pub use error::{CompileError, RecognizerError};
pub use position::{Branch, Position};

use crate::lexer::{Lexer, LexerLimits, LexerState};
use crate::{
    Budget, Grammar, Parser, ParserLimits, ParserScratch, Stacks, TerminalId, TerminalSet,
};

/// A grammar made ready to read texts: its lexer and its parser.
///
/// Frozen, but that the lexer grows as it is used; threads share it.
#[derive(Debug)]
pub struct Recognizer {
    grammar: Arc<Grammar>,
    lexer: Lexer,
    parser: Parser,
    ignored: TerminalSet,
    start: Option<Position>,
}

/// What bounds a [`Recognizer`]. Exceeding one is an error that names it.
#[derive(Clone, Debug, Default)]
pub struct RecognizerLimits {
    /// The lexer.
    pub lexer: LexerLimits,
    /// The parser.
    pub parser: ParserLimits,
}

/// Memory that a thread lends to a recognizer; what is in it between two calls does not matter.
#[derive(Debug, Default)]
pub struct RecognizerScratch {
    parser: ParserScratch,
    branches: Vec<Branch>,
}

impl Recognizer {
    /// Makes a grammar ready.
    ///
    /// # Errors
    /// When a terminal cannot be honoured, a limit is exceeded, the budget is used up or the compilation is cancelled.
    pub fn new(
        grammar: Arc<Grammar>,
        limits: &RecognizerLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Self, CompileError> {
        let lexer = Lexer::new(&grammar, &limits.lexer)?;
        let parser = Parser::with_budget(&grammar, &limits.parser, budget)?;
        let mut ignored = TerminalSet::new(grammar.terminals().len());
        for &terminal in grammar.ignored() {
            ignored.insert(terminal);
        }
        let mut recognizer = Self { grammar, lexer, parser, ignored, start: None };
        recognizer.start = recognizer.find_start()?;
        Ok(recognizer)
    }

    /// The grammar.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// Its lexer.
    pub fn lexer(&self) -> &Lexer {
        &self.lexer
    }

    /// Its parser.
    pub fn parser(&self) -> &Parser {
        &self.parser
    }

    /// The terminals that the parser does not see.
    pub fn ignored(&self) -> &TerminalSet {
        &self.ignored
    }

    /// About how much memory its lexer, as built so far, and its tables take; without the grammar.
    pub fn bytes(&self) -> usize {
        self.lexer.statistics().bytes + self.parser.tables().bytes()
    }

    /// Before the first byte; `None` when no text is in the language.
    pub fn start(&self) -> Option<&Position> {
        self.start.as_ref()
    }

    /// The position after `byte`; `None` when no text of the language goes on so.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn advance(
        &self,
        position: &Position,
        byte: u8,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        let mut next = std::mem::take(&mut scratch.branches);
        next.clear();
        let result = self.advance_branches(position, byte, &mut next, scratch);
        let position = (!next.is_empty()).then(|| Position::new(next.clone()));
        next.clear();
        scratch.branches = next;
        result.map(|()| position)
    }

    /// The position after all of `bytes`; `None` when no text of the language goes on so.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn advance_all(
        &self,
        position: &Position,
        bytes: &[u8],
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Position>, RecognizerError> {
        let mut at = position.clone();
        for &byte in bytes {
            match self.advance(&at, byte, scratch)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Whether the text so far is in the language.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn is_accepting(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        for branch in position.branches() {
            if self.lexer.may_end(branch.lexer)
                && self.parser.accepts_end(&branch.stacks, &mut scratch.parser)?
            {
                return Ok(true);
            }
            for end in self.lexer.ends(branch.lexer)? {
                if !self.lexer.may_end(end.next) {
                    continue;
                }
                for terminal in end.terminals.iter() {
                    let after = self.shift(&branch.stacks, terminal, scratch)?;
                    if let Some(stacks) = after
                        && self.parser.accepts_end(&stacks, &mut scratch.parser)?
                    {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn find_start(&self) -> Result<Option<Position>, RecognizerError> {
        let scratch = &mut RecognizerScratch::default();
        let branch = Branch { lexer: self.lexer.start(), stacks: self.parser.start() };
        let empty = self.parser.accepts_end(&branch.stacks, &mut scratch.parser)?;
        let live = empty || self.is_live(branch.lexer, &branch.stacks, scratch)?;
        Ok(live.then(|| Position::new(vec![branch])))
    }

    fn advance_branches(
        &self,
        position: &Position,
        byte: u8,
        next: &mut Vec<Branch>,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        for branch in position.branches() {
            if let Some(lexer) = self.lexer.advance(branch.lexer, byte)? {
                self.add(lexer, branch.stacks.clone(), next, scratch)?;
            }
            for end in self.lexer.ends(branch.lexer)? {
                let Some(lexer) = self.lexer.advance(end.next, byte)? else { continue };
                for terminal in end.terminals.iter() {
                    if let Some(stacks) = self.shift(&branch.stacks, terminal, scratch)? {
                        self.add(lexer, stacks, next, scratch)?;
                    }
                }
            }
        }
        next.sort_by_key(|branch| branch.lexer);
        Ok(())
    }

    /// Adds a branch if something can complete it; branches with the same lexer state become one.
    fn add(
        &self,
        lexer: LexerState,
        stacks: Stacks,
        next: &mut Vec<Branch>,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        if !self.is_live(lexer, &stacks, scratch)? {
            return Ok(());
        }
        match next.iter_mut().find(|branch| branch.lexer == lexer) {
            Some(known) => known.stacks = self.parser.merge(&known.stacks, &stacks),
            None => next.push(Branch { lexer, stacks }),
        }
        Ok(())
    }

    /// Whether the lexeme in progress can become something that the parser takes.
    fn is_live(
        &self,
        lexer: LexerState,
        stacks: &Stacks,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        for terminal in self.lexer.possible(lexer).iter() {
            if self.ignored.contains(terminal)
                || self.parser.accepts(stacks, terminal, &mut scratch.parser)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The stacks after a lexeme.
    fn shift(
        &self,
        stacks: &Stacks,
        terminal: TerminalId,
        scratch: &mut RecognizerScratch,
    ) -> Result<Option<Stacks>, RecognizerError> {
        if self.ignored.contains(terminal) {
            return Ok(Some(stacks.clone()));
        }
        Ok(self.parser.shift(stacks, terminal, &mut scratch.parser)?)
    }
}
