//! Sampling: one allowed token of a row of logits.

use std::num::NonZeroUsize;

use palmette_core::{TokenId, mask};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::exp::exp;

/// Penalties, temperature and cuts of a [`Sampler`]. The default is greedy.
///
/// Steps are applied in the order of the fields, each to what the one before left, after the mask:
/// probabilities are those of the allowed tokens, as engines have it that mask logits before they
/// sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerOptions {
    /// Logits of tokens that were generated before are divided by this where positive, multiplied
    /// where negative (CTRL, Keskar et al. 2019, §4.1). 1: no penalty.
    pub repetition_penalty: f32,
    /// Taken from the logits of tokens that were generated before, those of the context not
    /// counted. 0: no penalty; below, they become more likely.
    pub presence_penalty: f32,
    /// Frequency penalty: subtracted once for each time that a token was generated.
    pub frequency_penalty: f32,
    /// Logits are divided by it. 0: greedy, the most likely token, and nothing below counts.
    pub temperature: f32,
    /// The most likely tokens that are kept. `None`: all.
    pub top_k: Option<NonZeroUsize>,
    /// The most likely tokens are kept until their probabilities sum to this (nucleus sampling,
    /// Holtzman et al. 2020). 1: all.
    pub top_p: f32,
    /// Tokens are kept that are at least this many times as likely as the most likely one. 0: all.
    pub min_p: f32,
    /// The random numbers: the same seed draws the same tokens from the same logits, on every
    /// machine.
    pub seed: u64,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
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

impl SamplerOptionError {
    /// The option, by its field's name, or `logit_bias`.
    pub fn name(&self) -> &'static str {
        self.name
    }
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
    /// Added to logits before all else, by token, ascending.
    bias: Vec<(TokenId, f32)>,
    kept: Vec<Candidate>,
    /// Tokens that a penalty counts, ascending.
    seen: Vec<TokenId>,
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
        let SamplerOptions { presence_penalty, frequency_penalty, .. } = options;
        let positive = repetition_penalty > 0.0 && repetition_penalty.is_finite();
        check("repetition_penalty", repetition_penalty, "a number above 0; 1 for none", positive)?;
        for (name, penalty) in
            [("presence_penalty", presence_penalty), ("frequency_penalty", frequency_penalty)]
        {
            check(name, penalty, "a finite number; 0 for none", penalty.is_finite())?;
        }
        let warm = (0.0..=f32::MAX).contains(&temperature);
        check("temperature", temperature, "a number of at least 0; 0 for greedy", warm)?;
        check("top_p", top_p, "above 0 and at most 1; 1 for all", top_p > 0.0 && top_p <= 1.0)?;
        check("min_p", min_p, "from 0 to 1; 0 for all", (0.0..=1.0).contains(&min_p))?;
        let random = ChaCha8Rng::seed_from_u64(options.seed);
        Ok(Self { options, random, bias: Vec::new(), kept: Vec::new(), seen: Vec::new() })
    }

    /// A sampler with biases, numbers that are added to the logits of some tokens, before penalties
    /// and all else. Of a token that is there twice, the last counts.
    ///
    /// # Errors
    /// When one is not finite.
    pub fn with_bias(
        mut self,
        bias: impl IntoIterator<Item = (TokenId, f32)>,
    ) -> Result<Self, SamplerOptionError> {
        self.bias.clear();
        for (token, value) in bias {
            if !value.is_finite() {
                let range = "a finite number; -100 all but forbids a token";
                return Err(SamplerOptionError { name: "logit_bias", value, range });
            }
            match self.bias.binary_search_by_key(&token, |&(token, _)| token) {
                Ok(place) => self.bias[place].1 = value,
                Err(place) => self.bias.insert(place, (token, value)),
            }
        }
        Ok(self)
    }

    /// The most likely token, always; of equals, the lowest.
    pub fn greedy() -> Self {
        Self::new(SamplerOptions::default()).expect("the default is in range")
    }

    /// The options.
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// Draws one of the tokens that `allowed` allows. `logits`: `[V]`. `before` are the tokens that
    /// were generated, which penalties count.
    ///
    /// # Errors
    /// When no token can be drawn; no random number is used up then.
    pub fn sample(
        &mut self,
        logits: &[f32],
        allowed: &[u32],
        before: &[TokenId],
    ) -> Result<TokenId, SampleError> {
        self.sample_after(logits, allowed, &[], before)
    }

    /// [`sample`](Self::sample) after a context, such as a prompt, which the repetition penalty
    /// counts and the others do not.
    ///
    /// # Errors
    /// As [`sample`](Self::sample).
    pub fn sample_after(
        &mut self,
        logits: &[f32],
        allowed: &[u32],
        context: &[TokenId],
        generated: &[TokenId],
    ) -> Result<TokenId, SampleError> {
        self.gather(logits, allowed)?;
        self.add_bias();
        self.penalise(context, generated);
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

    /// The allowed tokens with their logits, ascending.
    fn gather(&mut self, logits: &[f32], allowed: &[u32]) -> Result<(), SampleError> {
        self.kept.clear();
        mask::iter(allowed).try_for_each(|token| {
            let missing = SampleError::MissingLogit { token, logits: logits.len() };
            let logit = *logits.get(token.index()).ok_or(missing)?;
            if logit.is_nan() || logit == f32::INFINITY {
                return Err(SampleError::BadLogit { token });
            }
            self.kept.push(Candidate { token, logit, weight: 0.0 });
            Ok(())
        })
    }

    fn add_bias(&mut self) {
        for &(token, value) in &self.bias {
            if let Some(candidate) = find(&mut self.kept, token) {
                candidate.logit += value;
            }
        }
    }

    /// Cost: the tokens before are sorted, where there is a penalty.
    fn penalise(&mut self, context: &[TokenId], generated: &[TokenId]) {
        let SamplerOptions { repetition_penalty, presence_penalty, frequency_penalty, .. } =
            self.options;
        if repetition_penalty != 1.0 {
            self.seen.clear();
            self.seen.extend(context.iter().chain(generated));
            self.seen.sort_unstable();
            self.seen.dedup();
            for &token in &self.seen {
                if let Some(Candidate { logit, .. }) = find(&mut self.kept, token) {
                    let positive = *logit > 0.0;
                    *logit = if positive {
                        *logit / repetition_penalty
                    } else {
                        *logit * repetition_penalty
                    };
                }
            }
        }
        if presence_penalty != 0.0 || frequency_penalty != 0.0 {
            self.seen.clear();
            self.seen.extend(generated);
            self.seen.sort_unstable();
            for same in self.seen.chunk_by(|a, b| a == b) {
                if let Some(candidate) = find(&mut self.kept, same[0]) {
                    candidate.logit -= presence_penalty + frequency_penalty * same.len() as f32;
                }
            }
        }
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

/// The candidate of a token, of those in ascending order.
fn find(kept: &mut [Candidate], token: TokenId) -> Option<&mut Candidate> {
    let place = kept.binary_search_by_key(&token, |candidate| candidate.token).ok()?;
    Some(&mut kept[place])
}
