//! Failure of a search: a limit, or an interruption.

use crate::{Interrupted, LexerError};

/// Cause of a search that came to no end.
#[derive(Debug)]
pub(super) enum SearchFailure {
    /// A limit was exceeded.
    TooLarge,
    Interrupted(Interrupted),
}

impl From<LexerError> for SearchFailure {
    fn from(error: LexerError) -> Self {
        error.interrupted().map_or(Self::TooLarge, Self::Interrupted)
    }
}

impl From<Interrupted> for SearchFailure {
    fn from(why: Interrupted) -> Self {
        Self::Interrupted(why)
    }
}
