//! Sampling: one allowed token of a row of logits.

use std::num::NonZeroUsize;

use palmette_core::{TokenId, mask};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::exp::exp;

/// Penalty, temperature and cuts of a [`Sampler`]. The default is greedy.
///
/// Steps are applied in the order of the fields, each to what the one before left, after the mask: probabilities are
/// those of the allowed tokens, as engines have it that mask logits before they sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerOptions {
    /// Logits of tokens that were generated before are divided by this where positive, multiplied where negative
    /// (CTRL, Keskar et al. 2019, §4.1). 1: no penalty.
    pub repetition_penalty: f32,
    /// Logits are divided by it. 0: greedy, the most likely token, and nothing below counts.
    pub temperature: f32,
    /// The most likely tokens that are kept. `None`: all.
    pub top_k: Option<NonZeroUsize>,
    /// The most likely tokens are kept until their probabilities sum to this (nucleus sampling, Holtzman et al. 2020).
    /// 1: all.
    pub top_p: f32,
    /// Tokens are kept that are at least this many times as likely as the most likely one. 0: all.
    pub min_p: f32,
    /// The random numbers: the same seed draws the same tokens from the same logits, on every machine.
    pub seed: u64,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            repetition_penalty: 1.0,
            temperature: 0.0,
            top_k: None,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
        }
    }
}

/// An option of a sampler outside its range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{name} is {value}; it must be {range}")]
pub struct SamplerOptionError {
    name: &'static str,
    value: f32,
    range: &'static str,
}

/// A row from which no token can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// A logit of an allowed token is no number, or infinite.
    #[error("the logit of token {token} is NaN or +infinity")]
    BadLogit {
        /// The token.
        token: TokenId,
    },
    /// The mask denies all.
    #[error("the mask allows no token: there is nothing to draw from")]
    NothingAllowed,
    /// All allowed tokens have probability 0.
    #[error("every allowed token has the logit -infinity: none can be drawn")]
    NoProbability,
    /// A token is allowed that has no logit.
    #[error(
        "the mask allows token {token}, the row has {logits} logits: they belong to different vocabularies"
    )]
    MissingLogit {
        /// The token.
        token: TokenId,
        /// Logits of the row.
        logits: usize,
    },
}

/// Draws tokens by its [`SamplerOptions`]: a stream of random numbers, and buffers made once.
///
/// Cost: a pass over the allowed tokens; `top_p` sorts as many as it keeps, and some more.
#[derive(Clone, Debug)]
pub struct Sampler {
    options: SamplerOptions,
    random: ChaCha8Rng,
    kept: Vec<Candidate>,
    /// Tokens generated before, as a mask; all zeros between calls.
    seen: Vec<u32>,
}

/// An allowed token; `weight` is its probability times a constant.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    token: TokenId,
    logit: f32,
    weight: f32,
}

impl Candidate {
    /// More likely first, then lower token: the tie rule of every cut.
    fn before(&self, other: &Self) -> std::cmp::Ordering {
        other.logit.total_cmp(&self.logit).then(self.token.cmp(&other.token))
    }
}

impl Sampler {
    /// A sampler at the beginning of its random numbers.
    ///
    /// # Errors
    /// When an option is out of its range.
    pub fn new(options: SamplerOptions) -> Result<Self, SamplerOptionError> {
        let check = |name, value, range, within| match within {
            true => Ok(()),
            false => Err(SamplerOptionError { name, value, range }),
        };
        let SamplerOptions { repetition_penalty, temperature, top_p, min_p, .. } = options;
        let positive = repetition_penalty > 0.0 && repetition_penalty.is_finite();
        check("repetition_penalty", repetition_penalty, "a number above 0; 1 for none", positive)?;
        let warm = (0.0..=f32::MAX).contains(&temperature);
        check("temperature", temperature, "a number of at least 0; 0 for greedy", warm)?;
        check("top_p", top_p, "above 0 and at most 1; 1 for all", top_p > 0.0 && top_p <= 1.0)?;
        check("min_p", min_p, "from 0 to 1; 0 for all", (0.0..=1.0).contains(&min_p))?;
        let random = ChaCha8Rng::seed_from_u64(options.seed);
        Ok(Self { options, random, kept: Vec::new(), seen: Vec::new() })
    }

    /// The most likely token, always; of equals, the lowest.
    pub fn greedy() -> Self {
        Self::new(SamplerOptions::default()).expect("the default is in range")
    }

    /// The options.
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// Draws one of the tokens that `allowed` allows. `logits`: `[V]`. `before` are the tokens that the repetition
    /// penalty counts.
    ///
    /// # Errors
    /// When no token can be drawn; no random number is used up then.
    pub fn sample(
        &mut self,
        logits: &[f32],
        allowed: &[u32],
        before: &[TokenId],
    ) -> Result<TokenId, SampleError> {
        self.gather(logits, allowed, before)?;
        let best =
            self.kept.iter().min_by(|a, b| a.before(b)).ok_or(SampleError::NothingAllowed)?;
        let (best, max) = (best.token, best.logit);
        if max == f32::NEG_INFINITY {
            return Err(SampleError::NoProbability);
        }
        if self.options.temperature == 0.0 {
            return Ok(best);
        }
        for candidate in &mut self.kept {
            candidate.weight = exp((candidate.logit - max) / self.options.temperature);
        }
        self.cut_top_k();
        self.cut_top_p();
        // The most likely token has weight 1.
        let least = self.options.min_p;
        self.kept.retain(|candidate| candidate.weight >= least && candidate.weight > 0.0);
        Ok(self.draw())
    }

    /// The allowed tokens with their penalised logits, ascending.
    fn gather(
        &mut self,
        logits: &[f32],
        allowed: &[u32],
        before: &[TokenId],
    ) -> Result<(), SampleError> {
        self.kept.clear();
        let penalty = self.options.repetition_penalty;
        let penalised = if penalty == 1.0 { &[][..] } else { before };
        self.seen.resize(allowed.len(), 0);
        let inside = |token: &TokenId| token.index() < allowed.len() * mask::WORD_TOKENS;
        penalised
            .iter()
            .filter(|token| inside(token))
            .for_each(|&t| mask::insert(&mut self.seen, t));
        let gathered = mask::iter(allowed).try_for_each(|token| {
            let missing = SampleError::MissingLogit { token, logits: logits.len() };
            let mut logit = *logits.get(token.index()).ok_or(missing)?;
            if logit.is_nan() || logit == f32::INFINITY {
                return Err(SampleError::BadLogit { token });
            }
            if mask::contains(&self.seen, token) {
                logit = if logit > 0.0 { logit / penalty } else { logit * penalty };
            }
            self.kept.push(Candidate { token, logit, weight: 0.0 });
            Ok(())
        });
        let seen = &mut self.seen;
        penalised
            .iter()
            .filter(|t| inside(t))
            .for_each(|t| seen[t.index() / mask::WORD_TOKENS] = 0);
        gathered
    }

    fn cut_top_k(&mut self) {
        if let Some(k) = self.options.top_k.filter(|k| k.get() < self.kept.len()) {
            self.kept.select_nth_unstable_by(k.get(), Candidate::before);
            self.kept.truncate(k.get());
        }
    }

    /// Keeps the most likely ones up to the one with which their sum reaches `top_p`.
    fn cut_top_p(&mut self) {
        if self.options.top_p >= 1.0 {
            return;
        }
        let total: f64 = self.kept.iter().map(|candidate| f64::from(candidate.weight)).sum();
        let wanted = total * f64::from(self.options.top_p);
        // Mostly a few have it: the most likely are put in order, eight times as many each time.
        let (mut ordered, mut sum) = (0, 0.0);
        while ordered < self.kept.len() {
            let rest = &mut self.kept[ordered..];
            let some = (ordered * 7).max(64).min(rest.len());
            if some < rest.len() {
                rest.select_nth_unstable_by(some, Candidate::before);
            }
            rest[..some].sort_unstable_by(Candidate::before);
            for place in ordered..ordered + some {
                sum += f64::from(self.kept[place].weight);
                if sum >= wanted {
                    self.kept.truncate(place + 1);
                    return;
                }
            }
            ordered += some;
        }
    }

    /// One of those kept, by weight, in ascending order of tokens.
    fn draw(&mut self) -> TokenId {
        if !self.kept.is_sorted_by_key(|candidate| candidate.token) {
            self.kept.sort_unstable_by_key(|candidate| candidate.token);
        }
        let total: f64 = self.kept.iter().map(|candidate| f64::from(candidate.weight)).sum();
        let unit = (self.random.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64);
        let mut left = unit * total;
        for candidate in &self.kept {
            left -= f64::from(candidate.weight);
            if left < 0.0 {
                return candidate.token;
            }
        }
        // Rounding may leave a little.
        self.kept.last().expect("the most likely one is kept").token
    }
}
