//! Errors between a history and its recommendations.

use std::path::PathBuf;

use palmette_catalog::{KeysError, TokensError};
use palmette_catalog_filter::FilterError;
use palmette_decode::SamplerOptionError;
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

/// A prompt that a template does not make.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("prompt_template.json: {reason}")]
pub struct TemplateFault {
    reason: String,
}

impl TemplateFault {
    pub(crate) fn new(reason: String) -> Self {
        Self { reason }
    }
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
        /// Limit on the items of a history.
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
    /// A prompt without any history is longer than prompts may be.
    #[error(
        "the prompt has {tokens} tokens without any item of the history, more than the {max} that prompts may have: shorten the \
         request's fields; where the model has more positions, max_prompt_tokens in prompt_template.json may be raised"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// The limit.
        max: usize,
    },
    /// The longest prompt and what follows it do not fit into the model's positions.
    #[error(
        "a prompt of {prompt} tokens with {after} tokens after it passes the model's {max} positions: lower max_prompt_tokens in \
         prompt_template.json"
    )]
    NoPositions {
        /// Tokens of the longest prompt.
        prompt: usize,
        /// Tokens that may follow it.
        after: usize,
        /// The model's positions.
        max: usize,
    },
    /// The template cannot be rendered or cut into tokens.
    #[error(transparent)]
    Template(#[from] TemplateFault),
    /// The request gives a field that the template has no place for.
    #[error(
        "the model's prompts have no place for {field:?}; {}",
        if known.is_empty() { "they take no fields".to_owned() } else { format!("they take {}", known.join(", ")) }
    )]
    UnknownField {
        /// The field: `query`, or `user.age`.
        field: String,
        /// Fields that there are places for.
        known: Vec<String>,
    },
    /// The template prints fields that the request does not give.
    #[error("the model's prompts need {}, which the request does not give ({reason})", missing.join(", "))]
    MissingFields {
        /// Fields that the template reads and the request lacks.
        missing: Vec<String>,
        /// The template's own error.
        reason: String,
    },
    /// A field holds the name of a special token, which the model would read as that token.
    #[error(
        "{field} holds {token:?}, a special token of the model; fields are plain text: leave it out"
    )]
    TokenInField {
        /// The field.
        field: String,
        /// The token's name.
        token: String,
    },
    /// The model is to think, and its template does not say how.
    #[error(
        "the model's prompt_template.json has no `think`: it does not say where reasoning begins and ends"
    )]
    NoThink,
    /// The model is to explain, and its template does not say how.
    #[error(
        "the model's prompt_template.json has no `explain`: it does not say where text after an item begins and ends"
    )]
    NoExplain,
    /// A draft head was asked for after reasoning.
    #[error(
        "a draft head reads the prompt in one pass and drafts at once; to think before the item take mode beam or probed"
    )]
    NoDraftAfterText,
    /// An option of drawn text is out of its range.
    #[error(transparent)]
    Sampler(SamplerOptionError),
    /// The tokens of a level have gaps, where scores are shares of it.
    #[error(
        "between the tokens of level {level} are others; scores as shares of a level need levels whose codes have consecutive \
         tokens, in any order"
    )]
    NoRun {
        /// The level.
        level: usize,
    },
    /// The tokens of a level lie too far apart for a draft head.
    #[error(
        "the {codes} codes of level {level} have tokens among {tokens}; a draft head has a row for each of those, and up to \
         {most} a code: search without a head (`--mode beam`), or give the codes tokens that lie together"
    )]
    ScatteredLevel {
        /// The level.
        level: usize,
        /// Tokens from its first to its last.
        tokens: usize,
        /// Number of them that spell a code.
        codes: usize,
        /// Limit on rows a code.
        most: usize,
    },
    /// Scores as shares of a level, with tokens after the item.
    #[error(
        "the model writes tokens after an item, which scores as shares of a level do not know; take the end out of \
         prompt_template.json or semantic_ids.json"
    )]
    NoEnd,
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
        /// Codes of the item by the model.
        model: Vec<u32>,
        /// Codes of the item in the catalog.
        catalog: Vec<u32>,
    },
    /// The catalog has none of the items that the model was trained on.
    #[error(
        "the catalog has none of the {witnesses} items that the model names of its own, such as {id:?}: the model was trained on another shop, whose semantic IDs mean other things; serve it with that shop's catalog, or train one on this"
    )]
    OtherShop {
        /// Items that the model names.
        witnesses: usize,
        /// The first of them.
        id: String,
    },
    /// An item's semantic ID ends before the model's do.
    #[error(
        "item {id:?} has {codes} codes, the model's semantic IDs have {levels}: its score would have fewer terms than others', so that it outranked all that begin with its codes; give it {levels} codes, take it out of the catalog, or say by which token the model ends an item (`end_tokens`)"
    )]
    ShorterItem {
        /// An item of the catalog.
        id: String,
        /// Number of its codes.
        codes: usize,
        /// The model's levels.
        levels: usize,
    },
    /// An item's semantic ID ends before a draft head's do.
    #[error(
        "item {id:?} has {codes} codes, and a draft head says {levels} of each item: its score would have fewer terms than others'; search without the head (`--mode beam`), give it {levels} codes, or take it out of the catalog"
    )]
    ShorterDraft {
        /// An item of the catalog.
        id: String,
        /// Number of its codes.
        codes: usize,
        /// Levels that the head says.
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
        /// Value that was asked for.
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

/// Side that an error is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The question, at a place in it: a JSON pointer.
    Question(String),
    /// An item of the catalog that the model cannot spell: it came by an update, and goes by one.
    Catalog,
    /// Whoever asked ended it.
    Cancelled,
    /// Other requests, which leave no room, or a device that failed: another time or server may do.
    Unavailable,
    /// Model, files or engine.
    Engine,
}

impl RecommendError {
    /// The side that it is of. Failures of ours are never the question's.
    pub fn cause(&self) -> Cause {
        let at = |pointer: &str| Cause::Question(pointer.to_owned());
        match self {
            Self::UnknownField { field, .. } | Self::TokenInField { field, .. } => {
                Cause::Question(format!("/{}", field.replace('.', "/")))
            }
            Self::MissingFields { .. }
            | Self::PromptTooLong { .. }
            | Self::Zero { .. }
            | Self::TooLarge { .. } => at(""),
            Self::NoThink | Self::NoDraftAfterText => at("/think_tokens"),
            Self::Sampler(_) => at("/think_temperature"),
            Self::NoExplain => at("/explain_items"),
            Self::OtherWidths { .. } => at("/widths"),
            Self::NoDraftHead => at("/mode"),
            Self::Keys(_) => at("/verify"),
            Self::Filter(_) => at("/filter"),
            Self::Rules(_) => at("/rules"),
            Self::Tokens(_) | Self::ShorterItem { .. } | Self::ShorterDraft { .. } => {
                Cause::Catalog
            }
            Self::Cancelled => Cause::Cancelled,
            Self::Session(SessionError::NoRoom(_) | SessionError::Engine(_)) => Cause::Unavailable,
            Self::HistoryTooLong { .. }
            | Self::SmallVocabulary { .. }
            | Self::NoPositions { .. }
            | Self::Template(_)
            | Self::NoRun { .. }
            | Self::ScatteredLevel { .. }
            | Self::NoEnd
            | Self::OtherLevels { .. }
            | Self::OtherIds { .. }
            | Self::OtherShop { .. }
            | Self::OtherDraftHead { .. }
            | Self::Session(_) => Cause::Engine,
        }
    }
}

// Not `#[from]`, which would make it a source too: printed chains would say it twice.
impl From<TokensError> for RecommendError {
    fn from(error: TokensError) -> Self {
        Self::Tokens(error)
    }
}
