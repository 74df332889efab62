//! Free text around the item: reasoning before it, and an explanation after it.

use std::ops::ControlFlow;

use palmette_core::{TokenId, TokenMask};
use palmette_decode::{
    Control, DecodeError, LogitsSource, SampleError, Sampler, SamplerOptions, Stage,
};
use palmette_model::Reading;

use crate::bounds::{MAX_FREE_TOKENS, checked};
use crate::error::RecommendError;

/// Reasoning before the item: free text that the model writes first, and that the search then
/// follows.
///
/// Nothing of it is constrained. It ends with the token that the template names, or is ended by it
/// after `max_tokens`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Think {
    /// Limit on the tokens of the reasoning.
    pub max_tokens: usize,
    /// 0 for the most likely token at each place; above it tokens are drawn.
    pub temperature: f32,
    /// Share of the probability that tokens are drawn from; 1 for all.
    pub top_p: f32,
    /// Seed of what is drawn.
    pub seed: u64,
}

impl Think {
    /// Writes the most likely text of at most `max_tokens` tokens.
    pub fn new(max_tokens: usize) -> Self {
        Self { max_tokens, temperature: 0.0, top_p: 1.0, seed: 0 }
    }

    fn sampler(&self) -> Result<Sampler, RecommendError> {
        let Self { temperature, top_p, seed, .. } = *self;
        let options = SamplerOptions { temperature, top_p, seed, ..SamplerOptions::default() };
        Sampler::new(options).map_err(RecommendError::Sampler)
    }

    /// # Errors
    /// When an option is out of its range.
    pub(crate) fn check(&self) -> Result<(), RecommendError> {
        checked("think", self.max_tokens, MAX_FREE_TOKENS)?;
        self.sampler().map(|_| ())
    }
}

/// Text after items: what the model says about each of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explain {
    /// Items, the best first, that it is written for.
    pub items: usize,
    /// Limit on the tokens of each text.
    pub max_tokens: usize,
}

/// Writes free text after the prompt until one of `ends` comes, which is not written, or
/// `max_tokens` have.
pub(crate) fn write_text(
    reading: &mut dyn Reading,
    sampler: &mut Sampler,
    ends: &[TokenId],
    max_tokens: usize,
    control: &mut Control<'_>,
) -> Result<Vec<TokenId>, RecommendError> {
    let mut all = TokenMask::new(reading.num_tokens());
    (0..reading.num_tokens() as u32).for_each(|token| all.insert(TokenId(token)));
    let mut tokens = Vec::new();
    let mut report = |stage, step| match control(stage) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(RecommendError::from(DecodeError::Cancelled { step })),
    };
    let mut logits = reading.prompt_logits()?;
    report(Stage::Prefill, 0)?;
    while tokens.len() < max_tokens {
        let step = tokens.len();
        let drawn = sampler.sample(logits, all.as_words(), &tokens);
        let failed = |error: SampleError| DecodeError::Sample { step, error };
        let token = drawn.map_err(failed)?;
        if ends.contains(&token) {
            break;
        }
        tokens.push(token);
        logits = reading.append(&[token])?;
        report(Stage::Decode, step + 1)?;
    }
    Ok(tokens)
}

/// Writes the model's reasoning after the prompt, then its end and what follows it;
/// returns the reasoning.
pub(crate) fn think(
    reading: &mut dyn Reading,
    think: &Think,
    ends: &[TokenId],
    (end, then): (TokenId, &[TokenId]),
    control: &mut Control<'_>,
) -> Result<Vec<TokenId>, RecommendError> {
    let thought = write_text(reading, &mut think.sampler()?, ends, think.max_tokens, control)?;
    let rest: Vec<TokenId> = [&[end], then].concat();
    reading.append(&rest)?;
    Ok(thought)
}
