//! Errors of a recognizer's construction and of its steps.

use crate::lexer::LexerError;
use crate::lr::TableError;
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
