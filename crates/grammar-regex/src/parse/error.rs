//! Errors of regular expressions, and notes on their notation.

use crate::Interrupted;

/// Error of a text that is no regular expression that can be used here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the regular expression: {message}")]
pub struct RegexError {
    /// The place in the text, in bytes.
    pub offset: usize,
    /// The construct, the rule and the way out.
    pub message: String,
    /// True when the text was understood and asks for what no finite automaton does: another
    /// dialect is of no use then.
    pub is_irregular: bool,
    /// The reason for which the work stopped, if the budget ran out or it was called off: then
    /// nothing need be wrong with the text.
    pub interrupted: Option<Interrupted>,
}

/// A note on something that dialects read differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The place in the text, in bytes.
    pub offset: usize,
    /// The construct, its reading here, and how to write what is not meant.
    pub message: String,
}

impl RegexError {
    /// An error at a place of the source.
    pub fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), is_irregular: false, interrupted: None }
    }
}

impl From<Interrupted> for RegexError {
    fn from(why: Interrupted) -> Self {
        let message = why.to_string();
        Self { offset: 0, message, is_irregular: false, interrupted: Some(why) }
    }
}
