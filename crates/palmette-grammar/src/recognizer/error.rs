//! What can go wrong when a recognizer is made or used.

use crate::lexer::LexerError;
use crate::lr::TableError;
use crate::{Interrupted, LimitError};

/// Why a grammar cannot be made ready.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Its lexer cannot be made.
    #[error(transparent)]
    Lexer(#[from] LexerError),
    /// Its parser cannot be made.
    #[error(transparent)]
    Parser(#[from] TableError),
    /// It cannot begin: its stacks are too many before the first byte.
    #[error(transparent)]
    Start(#[from] RecognizerError),
    /// The budget is used up, or the compilation was cancelled.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Why a text cannot be read on, or its mask is not known: a limit is exceeded.
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
    /// Whether a flag called the work off, so that trying again may succeed.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Interrupted(Interrupted::Cancelled))
    }
}
