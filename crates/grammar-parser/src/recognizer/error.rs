//! Errors of a recognizer's construction and of its steps.

use crate::lexer::LexerError;
use crate::lr::TableError;
use crate::scopes::ScopeError;
use crate::{Interrupted, LimitError};

/// Error of a grammar that cannot be made ready.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The lexer cannot be made.
    #[error(transparent)]
    Lexer(LexerError),
    /// A grammar with blocks by indentation whose lexing is contextual.
    #[error(
        "blocks by indentation need a line's end to be one wherever it stands, so lexing cannot be contextual; use the longest lexemes, or any"
    )]
    ContextualBlocks,
    /// The parser cannot be made.
    #[error(transparent)]
    Parser(TableError),
    /// A terminal for members of a set, in a grammar whose lexemes are the longest.
    #[error(
        "{terminal} stands for members of a set, and lexemes of this grammar are the longest of all terminals, which a set takes no part in; \
         read the grammar with any lexing"
    )]
    LongestMembers {
        /// The terminal.
        terminal: String,
    },
    /// A terminal for members of a set, where terminals compete in the parser's context.
    #[error(
        "{terminal} stands for members of a set, and here a lexeme beside it could be longer or shorter by what the set holds; put a \
         delimiter around it that the terminals beside it cannot hold, or read the grammar with any lexing"
    )]
    ContextualMembers {
        /// The terminal.
        terminal: String,
    },
    /// A terminal for members of a set, in a grammar with blocks by indentation.
    #[error(
        "{terminal} stands for members of a set, which cannot stand among blocks by indentation"
    )]
    MembersAmongBlocks {
        /// The terminal.
        terminal: String,
    },
    /// A terminal for members of a set that is ignored.
    #[error(
        "{terminal} stands for members of a set, so it cannot be ignored; name it in the rules"
    )]
    IgnoredMembers {
        /// The terminal.
        terminal: String,
    },
    /// A terminal for members of a set, after one that asks something of what follows.
    #[error(
        "{terminal} stands for members of a set, and {before} before it looks ahead, into what a set is not asked; put another terminal \
         between them, or write {before} without a lookahead"
    )]
    MemberAfterLookahead {
        /// The terminal.
        terminal: String,
        /// The one before it.
        before: String,
    },
    /// A scope of members that cannot be honoured.
    #[error(transparent)]
    Scope(ScopeError),
    /// A grammar that cannot begin: its stacks are too many before the first byte.
    #[error(transparent)]
    Start(#[from] RecognizerError),
    /// The budget is used up, or the compilation was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl From<LexerError> for CompileError {
    fn from(error: LexerError) -> Self {
        error.interrupted().map_or(Self::Lexer(error), Self::Interrupted)
    }
}

impl From<ScopeError> for CompileError {
    fn from(error: ScopeError) -> Self {
        match error {
            ScopeError::Interrupted(interrupted) => Self::Interrupted(interrupted),
            error => Self::Scope(error),
        }
    }
}

impl From<TableError> for CompileError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Interrupted(interrupted) => Self::Interrupted(interrupted),
            error => Self::Parser(error),
        }
    }
}

/// Error of a text that cannot be read on, or of a mask: a limit is exceeded.
#[derive(Debug, thiserror::Error)]
pub enum RecognizerError {
    /// A limit of the lexer.
    #[error(transparent)]
    Lexer(#[from] LexerError),
    /// A limit of the parser.
    #[error(transparent)]
    Parser(#[from] LimitError),
    /// A grammar with slots that were not bound.
    #[error(
        "the set {slot} is not bound: bind the grammar's sets before a text is written under it"
    )]
    Unbound {
        /// The first slot.
        slot: String,
    },
    /// The work budget is used up, or the work was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl RecognizerError {
    /// True when a flag called the work off, so that trying again may succeed.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Interrupted(Interrupted::Cancelled))
    }
}
