//! Errors: a folder that is no model of text, a request that cannot be answered, a text that breaks off.

use std::path::PathBuf;

use palmette_core::TokenId;
use palmette_decode::{DecodeError, SamplerOptionError};
use palmette_model::{LoadError, SessionError};
use palmette_vocabulary::{TokenizeError, VocabularyLoadError};

/// A folder that cannot be used as a model of text; the message names the file, the value and the rule.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct OpenError(#[from] OpenErrorKind);

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenErrorKind {
    #[error("{path}: not a folder; a model is a folder with config.json, model.safetensors and a tokenizer", path = .0.display())]
    NoFolder(PathBuf),
    #[error(transparent)]
    Model(#[from] LoadError),
    #[error(transparent)]
    Vocabulary(#[from] VocabularyLoadError),
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),
    #[error("{path}: {reason}", path = .path.display())]
    File { path: PathBuf, reason: String },
    #[error(
        "{name}: this vocabulary says what tokens spell, not how text is cut into them: put a tokenizer.json into the folder"
    )]
    NoTokenizer { name: String },
}

/// A request that a model cannot answer, known before anything is computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
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
        /// The part of the request, such as `the prompt`.
        what: &'static str,
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
    /// A sampler's option outside its range.
    #[error(transparent)]
    Sampler(#[from] SamplerOptionError),
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
    #[error(
        "no token of the model goes on with the text, and it is not whole: the vocabulary spells no text of the grammar that begins so"
    )]
    Stuck,
}

impl TextError {
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
}
