//! Members of a completion: prompts, and what is answered of them.

use serde::Deserialize;

use super::OwnMembers;

/// Members of a completion that are not a chat's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CompletionMembers {
    /// Text to go on with, its tokens, or several of either.
    pub prompt: Prompts,
    /// Tokens that begin a text before the prompt's: `true` unless it is said.
    pub add_special_tokens: Option<bool>,
    /// Answer with the prompt before the text; with `logprobs` its tokens have theirs, too, and
    /// with `max_tokens: 0` it is all.
    pub echo: Option<bool>,
    /// Log-probabilities of the text's tokens, and of a number of the likeliest at each place.
    #[cfg_attr(feature = "schema", schema(maximum = 20))]
    pub logprobs: Option<usize>,
}

impl OwnMembers for CompletionMembers {
    const BODY: &'static str = "CompletionBody";
    const ABOUT: &'static str = "A text to go on with.";
}

impl CompletionMembers {
    /// A prompt, with the defaults of all else.
    pub fn new(prompt: impl Into<String>) -> Self {
        let prompt = Prompts::Text(prompt.into());
        Self { prompt, add_special_tokens: None, echo: None, logprobs: None }
    }
}

/// One prompt or several, as text or as tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(
    untagged,
    expecting = "prompt must be a text, a list of texts, a list of tokens, or a list of such lists"
)]
pub enum Prompts {
    /// A text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// The tokens of one.
    Tokens(Vec<u32>),
    /// Token lists of several prompts.
    ManyTokens(Vec<Vec<u32>>),
}

impl Prompts {
    /// Number of the prompts.
    pub fn count(&self) -> usize {
        match self {
            Self::Text(_) | Self::Tokens(_) => 1,
            Self::Texts(texts) => texts.len(),
            Self::ManyTokens(lists) => lists.len(),
        }
    }
}
