//! Failure of a search: a limit, or an interruption.

use crate::{Interrupted, LexerError};

/// Cause of a search that came to no end.
#[derive(Debug)]
pub(super) enum Failed {
    /// A limit was exceeded.
    TooLarge,
    Interrupted(Interrupted),
}

impl From<LexerError> for Failed {
    fn from(error: LexerError) -> Self {
        error.interrupted().map_or(Self::TooLarge, Self::Interrupted)
    }
}

impl From<Interrupted> for Failed {
    fn from(why: Interrupted) -> Self {
        Self::Interrupted(why)
    }
}
