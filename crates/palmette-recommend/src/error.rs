//! What can go wrong between a history and its recommendations.

use std::path::PathBuf;

use palmette_catalog::TokensError;
use palmette_decode::DecodeError;
use palmette_model::SessionError;

/// A `semantic_ids.json` that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}", path = path.display())]
pub struct FormatError {
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
}

/// A recommendation that cannot be made as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecommendError {
    /// The model has no tokens for part of the catalog.
    #[error("model and catalog do not fit together: {0}")]
    Tokens(#[from] TokensError),
    /// The model's positions do not hold the longest prompt.
    #[error(
        "a history of {max_history_items} items and a recommendation take {needed} tokens, more than the model's {max} positions: lower max_history_items in semantic_ids.json"
    )]
    HistoryTooLong {
        /// Most items of a history.
        max_history_items: usize,
        /// Tokens they and one recommendation take.
        needed: usize,
        /// The model's positions.
        max: usize,
    },
    /// Zero recommendations or a beam without width were asked for.
    #[error("{what} is 0; at least 1 is needed")]
    Zero {
        /// `k` or `beam width`.
        what: &'static str,
    },
    /// The beam would need more memory than is sensible.
    #[error("{what} is {value}; at most {max} is possible")]
    TooLarge {
        /// `k` or `beam width`.
        what: &'static str,
        /// What was asked for.
        value: usize,
        /// The limit.
        max: usize,
    },
    /// The model failed.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl From<DecodeError> for RecommendError {
    fn from(error: DecodeError) -> Self {
        Self::Session(error.into())
    }
}
