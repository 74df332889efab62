//! Error of cutting a text into tokens.

/// The longest run of white space that is tokenized, in characters: the patterns that split text
/// backtrack over it.
pub(crate) const MAX_SPACE_RUN: usize = 500_000;

/// Error of a text that cannot be cut into tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenizeError {
    /// The tokenizer does not keep the text.
    #[error(
        "the vocabulary's tokenizer changes this text at byte {at} or after: it normalises it, or has no token for it"
    )]
    Changed {
        /// Place where the tokens stop spelling the text, in bytes from its beginning.
        at: usize,
    },
    /// No token of a list fits.
    #[error("no token of the vocabulary fits at byte {at} of the text")]
    NoToken {
        /// The place, in bytes from the beginning of the text.
        at: usize,
    },
    /// Too much white space at a stretch.
    #[error(
        "at byte {at}, a run of white space is longer than the limit of {MAX_SPACE_RUN} characters"
    )]
    SpaceRun {
        /// Place where the run is longer than the limit, in bytes from the beginning of the text.
        at: usize,
    },
    /// Only the bytes of tokens are read of such a source in this build.
    #[error("this build cuts no text into tokens by {by}; build with `--features {feature}`")]
    LeftOut {
        /// Name of the source, such as `a tokenizer.json`.
        by: &'static str,
        /// The feature that cuts text by it.
        feature: &'static str,
    },
    /// Only the bytes of tokens are read of such a source.
    #[error("text is not cut into tokens by {by}; a tokenizer.json of the same model can do it")]
    Unsupported {
        /// The kind of source, such as `a SentencePiece unigram model`.
        by: &'static str,
    },
    /// The tokenizer gave up.
    #[error("the vocabulary's tokenizer failed: {reason}")]
    Failed {
        /// Message of the tokenizer.
        reason: String,
    },
}
