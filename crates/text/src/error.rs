//! Errors: a folder that is no model of text, a request that cannot be answered, a text that breaks
//! off.

use std::fmt;
use std::path::PathBuf;

use palmette_core::TokenId;
use palmette_decode::{DecodeError, SampleError, SamplerOptionError};
use palmette_grammar::RecognizerError;
use palmette_model::{LoadError, SequencesError, SessionError};
use palmette_vocabulary::{TokenizeError, VocabularyLoadError};

use crate::item_search::ItemSearchError;
use crate::text_beams::TextBeamsError;

/// A folder that cannot be used as a model of text; the message names the file, the value and the
/// rule.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct OpenError(#[from] OpenErrorKind);

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenErrorKind {
    #[error("{path}: not a folder; a model is a folder with config.json, model.safetensors and a tokenizer", path = .0.display())]
    NoFolder(PathBuf),
    #[error(transparent)]
    Model(#[from] LoadError),
    #[error("{0}")]
    Device(String),
    #[error(transparent)]
    Vocabulary(#[from] VocabularyLoadError),
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),
    #[error(
        "{path}: no model of text, which has its tokenizer beside config.json: tokenizer.json, tekken.json or tokenizer.model; put it there, \
         or give the folder of another model",
        path = .0.display()
    )]
    BareFolder(PathBuf),
    #[error("{path}: {reason}", path = .path.display())]
    File { path: PathBuf, reason: String },
    #[error(
        "{name}: this vocabulary says what tokens spell, not how text is cut into them: put a tokenizer.json into the folder"
    )]
    NoTokenizer { name: String },
}

/// A request that a model cannot answer, known before anything is computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// A prompt without tokens gives no logits.
    #[error("the prompt is empty; it needs at least one token")]
    EmptyPrompt,
    /// No room is left after the prompt.
    #[error(
        "the prompt has {tokens} tokens and the model reads {context_length}, so that nothing can follow: shorten the prompt"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Positions of the model.
        context_length: usize,
    },
    /// Prompt and text together are too long.
    #[error(
        "the prompt has {tokens} tokens and max_tokens is {max_tokens}, together more than the {context_length} that the model \
         reads: ask for at most {room}, or shorten the prompt",
        room = context_length - tokens
    )]
    TooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens asked for.
        max_tokens: usize,
        /// Positions of the model.
        context_length: usize,
    },
    /// No token may be generated.
    #[error("max_tokens is 0; it must be at least 1")]
    NoTokens,
    /// No text of the grammar is whole within so few tokens.
    #[error(
        "max_tokens is {max_tokens}, and the shortest text of the grammar takes {needed} tokens: give it {needed} or more, or have the text \
         cut off (finish: \"cut\")"
    )]
    TooFewTokens {
        /// Tokens of the shortest text that is known.
        needed: usize,
        /// Tokens that it may have.
        max_tokens: usize,
    },
    /// A text that is to be whole is to have more tokens than are known to be possible.
    #[error(
        "min_tokens is {min_tokens}, and no text of the grammar is known that takes so many and no more than the {max_tokens} of max_tokens; \
         one of {known} or more is: lower min_tokens to {known}, raise max_tokens, or have the number be a wish (finish: \"cut\")"
    )]
    TooManyTokens {
        /// Tokens that it must have.
        min_tokens: usize,
        /// Tokens that it may have.
        max_tokens: usize,
        /// The most that it can be made to have.
        known: usize,
    },
    /// More tokens must be generated than may be.
    #[error("min_tokens is {min_tokens}, more than the {max_tokens} of max_tokens")]
    MinAboveMax {
        /// The least.
        min_tokens: usize,
        /// The most.
        max_tokens: usize,
    },
    /// A stop string that stands everywhere.
    #[error("stop string {place} is empty, and would end every text at once; leave it out")]
    EmptyStop {
        /// The number of the string, from 0.
        place: usize,
    },
    /// A token that the vocabulary does not have.
    #[error("{what} names token {token}; the vocabulary has {num_tokens} tokens")]
    UnknownToken {
        /// The part of the request.
        what: TokenList,
        /// The token.
        token: TokenId,
        /// Tokens of the vocabulary.
        num_tokens: usize,
    },
    /// A constraint of another model.
    #[error(
        "the grammar is over {constraint} tokens, the model's vocabulary has {num_tokens}: compile it for this model"
    )]
    OtherVocabulary {
        /// Tokens that the constraint knows.
        constraint: usize,
        /// Tokens of the vocabulary.
        num_tokens: usize,
    },
    /// Likelihoods of a prompt are asked of a session, which keeps the last logits alone.
    #[error("log-probabilities of a prompt come from an engine; leave prompt_logprobs out")]
    PromptLogprobs,
    /// A search for items that cannot be.
    #[error(transparent)]
    ItemSearch(#[from] ItemSearchError),
    /// A search for whole texts that cannot be.
    #[error(transparent)]
    TextBeams(#[from] TextBeamsError),
    /// A sampler's option outside its range.
    #[error(transparent)]
    Sampler(#[from] SamplerOptionError),
}

/// A part of a request that names tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenList {
    /// The prompt.
    Prompt,
    /// Tokens that end the text.
    StopTokens,
    /// Tokens that have a bias.
    LogitBias,
}

impl fmt::Display for TokenList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prompt => "the prompt",
            Self::StopTokens => "stop_tokens",
            Self::LogitBias => "logit_bias",
        })
    }
}

/// A part of a request that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestMember {
    /// The prompt.
    Prompt,
    /// The most tokens of the text.
    MaxTokens,
    /// The least.
    MinTokens,
    /// A stop string, by its number from 0.
    Stop(usize),
    /// Tokens that end the text.
    StopTokens,
    /// Numbers that are added to logits.
    LogitBias,
    /// An option of the sampler, by its name.
    Sampler(&'static str),
    /// The constraint, which is another vocabulary's.
    Constraint,
    /// Likelihoods of the prompt.
    PromptLogprobs,
    /// The search for items.
    ItemSearch,
    /// The search for whole texts, or what stands beside it, by the name of the member.
    TextBeams(&'static str),
}

impl RequestError {
    /// The part of the request that breaks the rule.
    pub fn member(&self) -> RequestMember {
        match self {
            Self::EmptyPrompt | Self::PromptTooLong { .. } => RequestMember::Prompt,
            Self::TooLong { .. } | Self::NoTokens | Self::TooFewTokens { .. } => {
                RequestMember::MaxTokens
            }
            Self::MinAboveMax { .. } | Self::TooManyTokens { .. } => RequestMember::MinTokens,
            Self::EmptyStop { place } => RequestMember::Stop(*place),
            Self::UnknownToken { what: TokenList::Prompt, .. } => RequestMember::Prompt,
            Self::UnknownToken { what: TokenList::StopTokens, .. } => RequestMember::StopTokens,
            Self::UnknownToken { what: TokenList::LogitBias, .. } => RequestMember::LogitBias,
            Self::OtherVocabulary { .. } => RequestMember::Constraint,
            Self::PromptLogprobs => RequestMember::PromptLogprobs,
            Self::ItemSearch(_) => RequestMember::ItemSearch,
            Self::TextBeams(error) => RequestMember::TextBeams(error.member()),
            Self::Sampler(error) => match error.name() {
                "logit_bias" => RequestMember::LogitBias,
                name => RequestMember::Sampler(name),
            },
        }
    }

    /// True where prompt and text are longer than the model reads.
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::PromptTooLong { .. } | Self::TooLong { .. })
    }
}

/// A text that could not be begun or broke off.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TextError(#[from] TextErrorKind);

#[derive(Debug, thiserror::Error)]
pub(crate) enum TextErrorKind {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Sequences(#[from] SequencesError),
    #[error("the members of the text cannot be told: {0}")]
    Members(#[from] RecognizerError),
    #[error(
        "no token of the model goes on with the text, and it is not whole: the vocabulary spells no text of the grammar that begins so"
    )]
    Stuck,
}

/// Side that the error of a text is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextCause {
    /// The request: a limit of its grammar was exceeded, or it leaves nothing to draw.
    Request,
    /// The engine or the model.
    Engine,
    /// The device that computes the model, which failed.
    Device,
}

impl TextError {
    /// The error of a text that cannot go on.
    pub(crate) fn stuck() -> Self {
        TextErrorKind::Stuck.into()
    }

    /// The side that the error is of.
    pub fn cause(&self) -> TextCause {
        match &self.0 {
            TextErrorKind::Request(_) | TextErrorKind::Stuck | TextErrorKind::Members(_) => {
                TextCause::Request
            }
            TextErrorKind::Sequences(SequencesError::Engine(_)) => TextCause::Device,
            TextErrorKind::Session(_) | TextErrorKind::Sequences(_) => TextCause::Engine,
            TextErrorKind::Decode(
                DecodeError::Constraint { .. }
                | DecodeError::TooFewTokens { .. }
                | DecodeError::TooManyTokens { .. },
            ) => TextCause::Request,
            TextErrorKind::Decode(DecodeError::Sample {
                error: SampleError::NothingAllowed | SampleError::NoProbability,
                ..
            }) => TextCause::Request,
            // All others, those to come too, are about what model, sampler and constraint have
            // promised one another.
            TextErrorKind::Decode(_) => TextCause::Engine,
        }
    }

    /// The fault of the request, where it is one: nothing was computed then.
    pub fn request(&self) -> Option<&RequestError> {
        match &self.0 {
            TextErrorKind::Request(error) => Some(error),
            _ => None,
        }
    }
}

macro_rules! from_kinds {
    ($($of:ty => $kind:ident, $into:ty;)*) => {$(
        impl From<$of> for $into {
            fn from(error: $of) -> Self {
                Self($kind::from(error))
            }
        }
    )*};
}

from_kinds! {
    LoadError => OpenErrorKind, OpenError;
    VocabularyLoadError => OpenErrorKind, OpenError;
    RequestError => TextErrorKind, TextError;
    DecodeError => TextErrorKind, TextError;
    SessionError => TextErrorKind, TextError;
    SequencesError => TextErrorKind, TextError;
    RecognizerError => TextErrorKind, TextError;
}
