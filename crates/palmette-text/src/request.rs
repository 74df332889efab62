//! Requests: a prompt, what the text must fit, and how tokens are drawn.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use palmette_core::{AnyConstraint, Constraint, TokenId};
use palmette_decode::{Sampler, SamplerOptions};
use palmette_grammar::{CompiledGrammar, GrammarConstraint};

use crate::error::RequestError;
use crate::model::TextModel;
use crate::tool_calls::names_in;

/// A text to be written.
#[derive(Clone, Debug)]
pub struct TextRequest {
    /// The prompt's tokens.
    pub prompt: Vec<TokenId>,
    /// The set that the text must be in.
    pub constraint: Constrained,
    /// Rules by which tokens are drawn. Its repetition penalty counts the prompt, too; the other penalties do not.
    pub sampler: SamplerOptions,
    /// Added to the logits of some tokens.
    pub logit_bias: Vec<(TokenId, f32)>,
    /// The most tokens of the text.
    pub max_tokens: usize,
    /// Tokens before which no end token is allowed, as long as the constraint allows another.
    pub min_tokens: usize,
    /// Strings before which the text ends. They are no part of it.
    pub stop: Vec<String>,
    /// Tokens after which the text ends, besides the model's end tokens. They have no text.
    pub stop_tokens: Vec<TokenId>,
    /// Log-probabilities for each token, and how many of the most likely ones beside it.
    pub logprobs: Option<usize>,
    /// The same for the tokens of the prompt, each after those before it, without constraint; an [`Engine`](crate::engine::Engine) tells them
    /// before the text. Then there may be no text at all.
    pub prompt_logprobs: Option<usize>,
    /// Special tokens that are text.
    pub special: SpecialText,
}

impl TextRequest {
    /// At most so many tokens after a prompt: the most likely ones, without constraint and stop strings.
    pub fn new(prompt: Vec<TokenId>, max_tokens: usize) -> Self {
        Self {
            prompt,
            constraint: Constrained::Nothing,
            sampler: SamplerOptions::default(),
            logit_bias: Vec::new(),
            max_tokens,
            min_tokens: 0,
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            logprobs: None,
            prompt_logprobs: None,
            special: SpecialText::Hidden,
        }
    }

    /// Checks all that can be known before anything is computed.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self, model: &TextModel) -> Result<(), RequestError> {
        self.sampler_checked()?;
        let num_tokens = model.vocabulary().vocabulary().num_tokens();
        let (tokens, context_length) = (self.prompt.len(), model.context_length());
        let max_tokens = self.max_tokens;
        let bias = self.logit_bias.iter().map(|(token, _)| token);
        let parts: [(&'static str, Vec<&TokenId>); 3] = [
            ("the prompt", self.prompt.iter().collect()),
            ("logit_bias", bias.collect()),
            ("stop_tokens", self.stop_tokens.iter().collect()),
        ];
        for (what, named) in parts {
            if let Some(&&token) = named.iter().find(|token| token.index() >= num_tokens) {
                return Err(RequestError::UnknownToken { what, token, num_tokens });
            }
        }
        if let Some(place) = self.stop.iter().position(String::is_empty) {
            return Err(RequestError::EmptyStop { place });
        }
        if let Some(constraint) = self.constraint.num_tokens().filter(|&other| other != num_tokens)
        {
            return Err(RequestError::OtherVocabulary { constraint, num_tokens });
        }
        match () {
            () if tokens == 0 => Err(RequestError::EmptyPrompt),
            () if max_tokens == 0 && self.prompt_logprobs.is_none() => Err(RequestError::NoTokens),
            () if tokens + max_tokens.min(1) > context_length => {
                Err(RequestError::PromptTooLong { tokens, context_length })
            }
            () if max_tokens > context_length - tokens => {
                Err(RequestError::TooLong { tokens, max_tokens, context_length })
            }
            () if self.min_tokens > max_tokens => {
                Err(RequestError::MinAboveMax { min_tokens: self.min_tokens, max_tokens })
            }
            () => Ok(()),
        }
    }

    /// A sampler at the beginning of its random numbers.
    pub(crate) fn sampler_checked(&self) -> Result<Sampler, RequestError> {
        Ok(Sampler::new(self.sampler)?.with_bias(self.logit_bias.iter().copied())?)
    }
}

/// The set that a text must be in.
#[derive(Clone, Default)]
pub enum Constrained {
    /// Any text: an end token is allowed everywhere.
    #[default]
    Nothing,
    /// A grammar's texts. Its masks have the model's budget ([`mask_steps`](crate::TextModelOptions::mask_steps)).
    Grammar(GrammarConstraint),
    /// The sequences of any other constraint over the model's vocabulary.
    By(Arc<dyn AnyConstraint>),
}

impl Constrained {
    /// The texts of a grammar.
    pub fn by(grammar: &CompiledGrammar) -> Self {
        Self::Grammar(grammar.constraint.clone())
    }

    /// Tokens that the constraint knows; `None` where there is none.
    fn num_tokens(&self) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Grammar(grammar) => Some(grammar.num_tokens()),
            Self::By(constraint) => Some(constraint.num_tokens()),
        }
    }
}

impl fmt::Debug for Constrained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Grammar(_) => "Grammar(…)",
            Self::By(_) => "By(…)",
        })
    }
}

/// Special tokens that are a part of the text, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpecialText {
    /// None: special tokens have no text.
    #[default]
    Hidden,
    /// All but those that end the text.
    All,
    /// Those whose names stand in these texts, such as the marks around a call: see
    /// [`ToolCallReader`](crate::ToolCallReader).
    Within(Vec<String>),
}

impl SpecialText {
    /// Reading of tokens that are shown.
    pub(crate) fn shown(&self, model: &TextModel) -> BTreeMap<TokenId, String> {
        let ends = model.end_tokens();
        let named = || {
            let all = model.special_names().iter().map(|(&token, name)| (token, name.clone()));
            all.filter(|(token, _)| !ends.contains(token))
        };
        match self {
            Self::Hidden => BTreeMap::new(),
            Self::All => named().collect(),
            Self::Within(texts) => named().filter(|(_, name)| names_in(texts, name)).collect(),
        }
    }
}
