//! Generation of one sequence: mask, sample, commit, with forced tokens read along.

use std::fmt;
use std::ops::ControlFlow;

use palmette_core::{CommitError, Constraint, TokenId, mask};

use crate::error::DecodeError;
use crate::logits_source::LogitsSource;
use crate::sampler::Sampler;

/// Limits of a generation: a length and stop tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerateOptions {
    /// The most tokens that are generated.
    pub max_tokens: usize,
    /// Tokens after which generation ends, besides those that the constraint ends with.
    pub stop_tokens: Vec<TokenId>,
    /// Tokens before the first that the sampler's repetition penalty counts too: the prompt's, as a rule.
    pub context: Vec<TokenId>,
}

impl GenerateOptions {
    /// At most so many tokens, and no stop tokens.
    pub fn new(max_tokens: usize) -> Self {
        Self { max_tokens, stop_tokens: Vec::new(), context: Vec::new() }
    }
}

/// A token as it is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// The token.
    pub token: TokenId,
    /// True for the only allowed token, for which no logits were asked.
    pub is_forced: bool,
}

/// The reason why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The constraint allows nothing more: the sequence is whole.
    Complete,
    /// A stop token was generated.
    StopToken(TokenId),
    /// The limit of tokens is reached. The sequence may go on.
    MaxTokens,
    /// The caller broke off.
    Stopped,
}

/// A generated sequence, in numbers; its tokens are [`Generator::tokens`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Reason of its end.
    pub finish: Finish,
    /// Membership of the sequence in the constraint's set.
    pub is_accepting: bool,
    /// Tokens that were the only allowed ones.
    pub forced: usize,
    /// Passes of the model: the prompt's, and one for each stretch of tokens that a choice followed.
    pub passes: usize,
}

/// Writes one sequence of a constraint's set: the buffers of a generation, made once and reused.
///
/// At each step the constraint's mask is filled. Where it allows one token that token is committed without a pass of the
/// model; the source reads it with the next token that is chosen ([`LogitsSource::append`]).
pub struct Generator<C: Constraint + ?Sized> {
    options: GenerateOptions,
    scratch: C::Scratch,
    mask: Vec<u32>,
    /// Context, then what was generated.
    tokens: Vec<TokenId>,
    /// Number of last `tokens` that the source has not read.
    unread: usize,
}

impl<C: Constraint + ?Sized> fmt::Debug for Generator<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator")
            .field("options", &self.options)
            .field("tokens", &self.tokens())
            .finish_non_exhaustive()
    }
}

impl<C: Constraint + ?Sized> Generator<C> {
    /// Plans generations of this kind.
    pub fn new(options: GenerateOptions) -> Self {
        let tokens = options.context.clone();
        Self { options, scratch: C::Scratch::default(), mask: Vec::new(), tokens, unread: 0 }
    }

    /// The tokens of the latest generation.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens[self.options.context.len()..]
    }

    /// Generates one sequence from the constraint's start, after the source's prompt.
    ///
    /// `on_token` is called with each token at once, and breaks generation off by [`ControlFlow::Break`].
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded, a row has no distribution, or the source fails. [`tokens`](Self::tokens)
    /// are those before.
    pub fn run<L: LogitsSource>(
        &mut self,
        constraint: &C,
        source: &mut L,
        sampler: &mut Sampler,
        on_token: &mut dyn FnMut(NewToken) -> ControlFlow<()>,
    ) -> Result<Generated, L::Error>
    where
        L::Error: From<DecodeError>,
    {
        let (model, constrained) = (source.num_tokens(), constraint.num_tokens());
        if model != constrained {
            return Err(DecodeError::VocabularyMismatch { model, constraint: constrained }.into());
        }
        self.tokens.truncate(self.options.context.len());
        self.unread = 0;
        self.mask.resize(mask::num_words(constrained), 0);
        let mut state = constraint.start();
        let (mut forced, mut passes) = (0, 0);
        let finish = loop {
            let step = self.tokens().len();
            let failed = |why: String| DecodeError::Constraint { step, why };
            let filled = constraint.fill_mask(&state, &mut self.scratch, &mut self.mask);
            filled.map_err(|error| failed(error.to_string()))?;
            let mut allowed = mask::iter(&self.mask);
            let (first, second) = (allowed.next(), allowed.next());
            let Some(only) = first else { break Finish::Complete };
            if step >= self.options.max_tokens {
                break Finish::MaxTokens;
            }
            let is_forced = second.is_none();
            let token = match is_forced {
                true => only,
                false => {
                    let read = self.tokens.len() - self.unread;
                    if passes == 0 && self.unread > 0 {
                        source.prompt_logits()?;
                        passes = 1;
                    }
                    let logits = match self.unread {
                        0 => source.prompt_logits()?,
                        _ => source.append(&self.tokens[read..])?,
                    };
                    passes += 1;
                    self.unread = 0;
                    let drawn = sampler.sample(logits, &self.mask, &self.tokens);
                    drawn.map_err(|error| DecodeError::Sample { step, error })?
                }
            };
            constraint.commit(&mut state, token, &mut self.scratch).map_err(
                |error| match error {
                    CommitError::Failed { error, .. } => failed(error.to_string()),
                    _ => DecodeError::BrokenConstraint { token, step },
                },
            )?;
            self.tokens.push(token);
            self.unread += 1;
            forced += usize::from(is_forced);
            if on_token(NewToken { token, is_forced }).is_break() {
                break Finish::Stopped;
            }
            if self.options.stop_tokens.contains(&token) {
                break Finish::StopToken(token);
            }
        };
        let step = self.tokens().len();
        let accepting = constraint.is_accepting(&state, &mut self.scratch);
        let is_accepting =
            accepting.map_err(|error| DecodeError::Constraint { step, why: error.to_string() })?;
        Ok(Generated { finish, is_accepting, forced, passes })
    }
}
