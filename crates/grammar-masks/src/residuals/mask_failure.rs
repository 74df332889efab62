//! Failure of a mask: a limit, or an interruption.

use palmette_grammar_regex::expressions::Exceeded;

use crate::{Interrupted, LexerError, LimitError};

/// Reason that a mask was not put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaskFailure {
    /// A limit on residuals, or on the lexer or parser that they are found by, is exceeded.
    BeyondLimits,
    /// The budget is used up, or the work was called off.
    Interrupted(Interrupted),
}

impl From<Exceeded> for MaskFailure {
    fn from(exceeded: Exceeded) -> Self {
        match exceeded {
            Exceeded::Interrupted(why) => Self::Interrupted(why),
            _ => Self::BeyondLimits,
        }
    }
}

impl From<LexerError> for MaskFailure {
    fn from(error: LexerError) -> Self {
        error.interrupted().map_or(Self::BeyondLimits, Self::Interrupted)
    }
}

impl From<LimitError> for MaskFailure {
    fn from(_: LimitError) -> Self {
        Self::BeyondLimits
    }
}

impl From<Interrupted> for MaskFailure {
    fn from(why: Interrupted) -> Self {
        Self::Interrupted(why)
    }
}

impl From<MaskFailure> for Interrupted {
    fn from(unread: MaskFailure) -> Self {
        match unread {
            MaskFailure::BeyondLimits => Self::TooManyResiduals,
            MaskFailure::Interrupted(why) => why,
        }
    }
}
