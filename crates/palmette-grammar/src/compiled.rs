//! A grammar ready to read texts: its lexer, its parser and the layer between them.

use crate::blocks::Layer;
use crate::constraint::{Branch, StepError};
use crate::lexer::{Lexer, LexerError, LexerLimits};
use crate::lr::TableError;
use crate::store::{Letter, Line};
use crate::{Grammar, Parser, ParserLimits, ParserScratch, TerminalId, TerminalSet};

/// A grammar's lexer and parser. Frozen but for the lexer's tables, which grow as they are used; threads share it.
#[derive(Debug)]
pub struct CompiledGrammar {
    pub(crate) grammar: Grammar,
    pub(crate) lexer: Lexer,
    pub(crate) parser: Parser,
    pub(crate) layer: Layer,
}

/// How large lexer and parser may become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrammarLimits {
    /// The lexer.
    pub lexer: LexerLimits,
    /// The parser.
    pub parser: ParserLimits,
}

/// Why a grammar cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A terminal cannot be lexed, or a limit of the lexer is exceeded.
    #[error(transparent)]
    Lexer(#[from] LexerError),
    /// The parser's tables exceed a limit.
    #[error(transparent)]
    Parser(#[from] TableError),
}

impl CompiledGrammar {
    /// Builds the parser's tables and the lexer's beginning.
    ///
    /// # Errors
    /// When a terminal cannot be lexed, or a limit is exceeded.
    pub fn new(grammar: &Grammar, limits: &GrammarLimits) -> Result<Self, CompileError> {
        Ok(Self {
            lexer: Lexer::new(grammar, &limits.lexer)?,
            parser: Parser::new(grammar, &limits.parser)?,
            layer: Layer::new(grammar),
            grammar: grammar.clone(),
        })
    }

    /// What was compiled.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// The lexer.
    pub fn lexer(&self) -> &Lexer {
        &self.lexer
    }

    /// The parser.
    pub fn parser(&self) -> &Parser {
        &self.parser
    }

    /// Before the first byte; `None` when the language is empty.
    pub(crate) fn start(&self, scratch: &mut ParserScratch) -> Result<Option<Branch>, StepError> {
        let position = self.layer.start(&self.parser);
        let mut first = TerminalSet::new(self.grammar.terminals().len());
        self.parser.allowed(&position.stacks, &mut first, scratch)?;
        let live = !first.is_empty() || self.parser.accepts_end(&position.stacks, scratch)?;
        Ok(live.then(|| Branch { lexer: self.lexer.start(), position, line: Line::OTHER }))
    }

    /// All branches after one more byte; none when it cannot follow. Some may be dead ends: see [`live`](Self::live).
    pub(crate) fn read(
        &self,
        branches: &[Branch],
        byte: u8,
        scratch: &mut ParserScratch,
    ) -> Result<Vec<Branch>, StepError> {
        let mut after = Vec::new();
        for branch in branches {
            if let Some(lexer) = self.lexer.advance(branch.lexer, byte)? {
                let line = self.layer.line_after(branch.line, byte);
                after.push(self.branch(lexer, branch.position.clone(), line));
            }
            for end in self.lexer.ends(branch.lexer)? {
                let Some(lexer) = self.lexer.advance(end.next, byte)? else { continue };
                for terminal in end.terminals.iter() {
                    let letter = self.ended(branch, terminal);
                    let next = self.layer.step(&self.parser, &branch.position, letter, scratch)?;
                    if let Some(position) = next {
                        let line = self.layer.line_after(Line::OTHER, byte);
                        after.push(self.branch(lexer, position, line));
                    }
                }
            }
        }
        Ok(self.merged(after))
    }

    /// The branches that a text of the language can go on from.
    pub(crate) fn live(
        &self,
        mut branches: Vec<Branch>,
        scratch: &mut ParserScratch,
    ) -> Result<Vec<Branch>, StepError> {
        let mut failed = None;
        branches.retain(|branch| {
            self.lexer.possible(branch.lexer).iter().any(|terminal| {
                let accepts =
                    self.layer.accepts(&self.parser, &branch.position, terminal, scratch);
                accepts.unwrap_or_else(|error| {
                    failed = Some(error);
                    true
                })
            }) || self.lexer.may_end(branch.lexer)
        });
        failed.map_or(Ok(branches), |error| Err(error.into()))
    }

    /// Whether what was read is a text of the language.
    pub(crate) fn may_end(
        &self,
        branches: &[Branch],
        scratch: &mut ParserScratch,
    ) -> Result<bool, StepError> {
        for branch in branches {
            if self.lexer.may_end(branch.lexer)
                && self.layer.accepts_end(&self.parser, &branch.position, scratch)?
            {
                return Ok(true);
            }
            for end in self.lexer.ends(branch.lexer)? {
                if !self.lexer.may_end(end.next) {
                    continue;
                }
                for terminal in end.terminals.iter() {
                    let letter = self.ended(branch, terminal);
                    let next = self.layer.step(&self.parser, &branch.position, letter, scratch)?;
                    if let Some(position) = next
                        && self.layer.accepts_end(&self.parser, &position, scratch)?
                    {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn branch(&self, lexer: crate::lexer::LexerState, position: crate::blocks::Position, line: Line) -> Branch {
        let newline = self.layer.indentation.as_ref().map(|blocks| blocks.newline);
        // Lines matter to line's ends only.
        let matters = newline.is_some_and(|newline| self.lexer.possible(lexer).contains(newline));
        Branch { lexer, position, line: if matters { line } else { Line::OTHER } }
    }

    /// The lexeme in progress, which ends here as `terminal`.
    fn ended(&self, branch: &Branch, terminal: TerminalId) -> Letter {
        let newline = self.layer.indentation.as_ref().map(|blocks| blocks.newline);
        let line = if newline == Some(terminal) { branch.line.ended() } else { Line::OTHER };
        Letter { terminal, line }
    }

    /// Branches that differ in their stacks only become one.
    fn merged(&self, mut branches: Vec<Branch>) -> Vec<Branch> {
        if branches.len() < 2 {
            return branches;
        }
        let key = |branch: &Branch| (branch.lexer, branch.line, branch.position.blocks.clone());
        branches.sort_by_key(key);
        let mut merged: Vec<Branch> = Vec::with_capacity(branches.len());
        for branch in branches {
            match merged.last_mut() {
                Some(last) if key(last) == key(&branch) => {
                    let (one, other) = (&last.position.stacks, &branch.position.stacks);
                    last.position.stacks = self.parser.merge(one, other);
                }
                _ => merged.push(branch),
            }
        }
        merged
    }
}
