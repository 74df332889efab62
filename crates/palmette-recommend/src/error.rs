//! What can go wrong between a history and its recommendations.

use std::path::PathBuf;

use palmette_attributes::FilterError;
use palmette_catalog::{KeysError, TokensError};
use palmette_model::SessionError;

use crate::rules::RulesError;

/// A `semantic_ids.json` that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}", path = path.display())]
pub struct FormatError {
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
}

/// A catalog whose codes need more tokens than there are numbers for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the catalog's codebooks need {tokens} tokens; a vocabulary has at most {max}: give its codes smaller numbers",
    max = u32::MAX
)]
pub struct TooManyTokens {
    pub(crate) tokens: u64,
}

/// A recommendation that cannot be made as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecommendError {
    /// The model has no tokens for part of the catalog.
    #[error("model and catalog do not fit together: {0}")]
    Tokens(TokensError),
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
    /// The model's vocabulary lacks a token that prompts need.
    #[error(
        "semantic_ids.json needs {needed} tokens, the model's vocabulary has {vocab_size}: they are not of one model"
    )]
    SmallVocabulary {
        /// Tokens that the format names.
        needed: usize,
        /// The model's vocabulary.
        vocab_size: usize,
    },
    /// The catalog spells its levels by other letters than the model.
    #[error(
        "the catalog spells codes of level {level} as <{catalog}_…>, the model as <{model}_…>: their semantic IDs are not the same"
    )]
    OtherLevels {
        /// The first level that differs.
        level: usize,
        /// The catalog's letters.
        catalog: String,
        /// The model's letters.
        model: String,
    },
    /// The catalog's semantic IDs are not those that the model was trained on.
    #[error(
        "the catalog's semantic IDs are not the model's: of {found} items that both know, {other} have other codes, {id:?} {catalog:?} instead of {model:?}; serve the model with the IDs it was trained on, or train it anew"
    )]
    OtherIds {
        /// Witnesses with other codes.
        other: usize,
        /// Witnesses that the catalog has.
        found: usize,
        /// One of them.
        id: String,
        /// Its codes by the model.
        model: Vec<u32>,
        /// Its codes in the catalog.
        catalog: Vec<u32>,
    },
    /// An item's semantic ID ends before the model's do.
    #[error(
        "item {id:?} has {codes} codes, the model's semantic IDs have {levels}: its score would have fewer terms than others', so that it outranked all that begin with its codes; give it {levels} codes, or take it out of the catalog"
    )]
    ShorterItem {
        /// An item of the catalog.
        id: String,
        /// Its codes.
        codes: usize,
        /// The model's levels.
        levels: usize,
    },
    /// Zero recommendations or a beam without width were asked for.
    #[error("{what} is 0; at least 1 is needed")]
    Zero {
        /// `k` or `beam width`.
        what: &'static str,
    },
    /// A width schedule of other levels than the model's.
    #[error(
        "{given} beam widths were given for {levels} levels of semantic IDs: give one width a level"
    )]
    OtherWidths {
        /// Widths given.
        given: usize,
        /// The model's levels.
        levels: usize,
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
    /// A draft head was asked for and there is none.
    #[error(
        "this recommender has no draft head; `palmette-train draft` trains one and puts it beside the model, as draft.safetensors"
    )]
    NoDraftHead,
    /// The draft head spells other codes than the model's prompts.
    #[error(
        "the draft head spells levels {head:?} (first token, codes), the model's semantic_ids.json has {format:?}: they are not of one model"
    )]
    OtherDraftHead {
        /// The head's levels.
        head: Vec<(u32, u32)>,
        /// The format's.
        format: Vec<(u32, u32)>,
    },
    /// The catalog's semantic IDs cannot be verified by key.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The filter asks for what the catalog does not have.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The rules cannot be kept.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The request's control ended it.
    #[error("the request was cancelled")]
    Cancelled,
    /// The model failed.
    #[error(transparent)]
    Session(#[from] SessionError),
}

// Not `#[from]`, which would make it a source too: printed chains would say it twice.
impl From<TokensError> for RecommendError {
    fn from(error: TokensError) -> Self {
        Self::Tokens(error)
    }
}
