//! Best texts after a prompt: a beam search in the place of drawing tokens one by one.
//!
//! The likeliest token is not the beginning of the likeliest text. A search keeps several
//! beginnings side by side and gives the texts of the best scores, each of which fits the
//! constraint.

use palmette_decode::LengthPenalty;

/// Beam search of whole texts.
///
/// At each step the best extensions of all beams survive, as many as the width, by the sum of their
/// tokens' log-probabilities among all tokens; those that end are texts, the others go on. The
/// texts are ranked by that sum over a power of their length, of equals the one that was found
/// first. A text that several sequences of tokens spell is one, by its best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextBeams {
    /// Beginnings of texts that are kept side by side: at least 1, at most
    /// [`MAX_WIDTH`](Self::MAX_WIDTH).
    pub width: usize,
    /// Texts wanted: at least 1, at most the width. There are fewer where fewer are found.
    pub texts: usize,
    /// Power of a text's length by which its sum is divided: 0 for the sum, 1 for the mean.
    pub length_penalty: f32,
}

/// A beam search that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TextBeamsError {
    /// No beams, or too many.
    #[error("best_of is {width}, the beams of a search; there is at least 1 and at most {max}")]
    Width {
        /// The width.
        width: usize,
        /// The limit.
        max: usize,
    },
    /// More texts than the search has.
    #[error(
        "best_of is {width}, and n is {texts}: a search keeps as many beams as it has answers, or more"
    )]
    Texts {
        /// Texts wanted.
        texts: usize,
        /// The width.
        width: usize,
    },
    /// A power that is no number, or beyond measure.
    #[error("length_penalty is {penalty}; it must be from -{max} to {max}", max = LengthPenalty::MOST)]
    Penalty {
        /// The power.
        penalty: f32,
    },
    /// A member of the request that is about tokens which are drawn.
    #[error(
        "{member} is {value}, and a beam search {}: leave {member} out, or draw the text instead",
        neutral.map_or_else(|| "takes none".to_owned(), |neutral| format!("takes only {neutral}"))
    )]
    Beside {
        /// The member.
        member: &'static str,
        /// Value of it.
        value: String,
        /// Values that it may have; `None` where it may not be there.
        neutral: Option<&'static str>,
    },
}

impl TextBeamsError {
    /// The member of a question that breaks the rule.
    pub fn member(&self) -> &'static str {
        match self {
            Self::Width { .. } | Self::Texts { .. } => "best_of",
            Self::Penalty { .. } => "length_penalty",
            Self::Beside { member, .. } => member,
        }
    }
}

impl TextBeams {
    /// Limit on the width.
    pub const MAX_WIDTH: usize = 64;

    /// A search for so many texts, as wide as that, with the mean of log-probabilities.
    pub fn of_texts(texts: usize) -> Self {
        Self { width: texts, texts, length_penalty: 1.0 }
    }
}
