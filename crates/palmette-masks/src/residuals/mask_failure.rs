//! Failure of a mask: a limit, or an interruption.

use palmette_regex::expressions::Exceeded;

use crate::{Interrupted, LexerError, LimitError};

/// Reason that a mask was not put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// A limit on residuals, or on the lexer or parser that they are found by, is exceeded.
    BeyondLimits,
    /// The budget is used up, or the work was called off.
    Interrupted(Interrupted),
}

impl From<Exceeded> for Unread {
    fn from(exceeded: Exceeded) -> Self {
        match exceeded {
            Exceeded::Interrupted(why) => Self::Interrupted(why),
            _ => Self::BeyondLimits,
        }
    }
}

impl From<LexerError> for Unread {
    fn from(error: LexerError) -> Self {
        error.interrupted().map_or(Self::BeyondLimits, Self::Interrupted)
    }
}

impl From<LimitError> for Unread {
    fn from(_: LimitError) -> Self {
        Self::BeyondLimits
    }
}

impl From<Interrupted> for Unread {
    fn from(why: Interrupted) -> Self {
        Self::Interrupted(why)
    }
}

impl From<Unread> for Interrupted {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::BeyondLimits => Self::TooManyResiduals,
            Unread::Interrupted(why) => why,
        }
    }
}
