//! Generation of one sequence: mask, sample, commit, with forced tokens read along.

use std::fmt;
use std::ops::ControlFlow;

use palmette_core::{CommitError, Constraint, Lengths, SequencePart, TokenId, mask};

use crate::error::DecodeError;
use crate::length::{LengthReport, LengthRule, Pace, greatest_least};
use crate::logits_source::LogitsSource;
use crate::sampler::Sampler;

/// Limits of a generation: lengths and stop tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerateOptions {
    /// The most tokens that are generated.
    pub max_tokens: usize,
    /// Tokens before which the sequence does not end: of one that is [promised](LengthRule) to be
    /// whole none has fewer. Of others no stop token is allowed before, as long as the constraint
    /// allows another token.
    pub min_tokens: usize,
    /// Allow no stop token, as long as the constraint allows another token.
    pub ignores_stops: bool,
    /// Tokens after which generation ends, besides those that the constraint ends with.
    pub stop_tokens: Vec<TokenId>,
    /// Tokens before the first that the sampler's repetition penalty counts too: the prompt's, as a
    /// rule.
    pub context: Vec<TokenId>,
    /// Stop before [parts](Constraint::next_part) that a search may write as a whole: not before
    /// `min_tokens` of a promised sequence, since a search takes any length.
    pub parts: bool,
    /// Rule for a sequence that would be longer.
    pub length: LengthRule,
}

impl GenerateOptions {
    /// Generates at most `max_tokens` tokens, without stop tokens.
    pub fn new(max_tokens: usize) -> Self {
        let (stop_tokens, context) = (Vec::new(), Vec::new());
        let length = LengthRule::default();
        Self {
            max_tokens,
            min_tokens: 0,
            ignores_stops: false,
            stop_tokens,
            context,
            parts: false,
            length,
        }
    }

    /// Tokens of the shortest sequence that is known from its start, where sequences are promised
    /// to be whole; `None` where they may be cut off.
    ///
    /// # Errors
    /// When none is known that is whole within the tokens, or has as many as it must.
    pub(crate) fn fewest_promised<C: Constraint + ?Sized>(
        &self,
        constraint: &C,
        start: &C::State,
        scratch: &mut C::Scratch,
    ) -> Result<Option<usize>, DecodeError> {
        let failed = |error: C::Error| DecodeError::Constraint { step: 0, why: error.to_string() };
        let fewest = match self.length {
            LengthRule::Cut => None,
            LengthRule::Promised | LengthRule::Gentle => {
                constraint.fewest_tokens(start, scratch).map_err(failed)?
            }
        };
        let Self { max_tokens, min_tokens, .. } = *self;
        if let Some(needed) = fewest.filter(|&needed| needed > max_tokens) {
            return Err(DecodeError::TooFewTokens { needed, max_tokens });
        }
        if fewest.is_some() && min_tokens > 0 {
            let mut has_way = |least| {
                let lengths = Lengths { least, most: max_tokens };
                constraint.has_way(start, lengths, scratch).map_err(failed)
            };
            if !has_way(min_tokens)? {
                let known = greatest_least(min_tokens, has_way)?;
                return Err(DecodeError::TooManyTokens { min_tokens, max_tokens, known });
            }
        }
        Ok(fewest)
    }

    /// Takes the stop tokens out of the mask of an early step, but where nothing else is in it.
    pub(crate) fn hold_back_stops(&self, step: usize, allowed: &mut [u32]) {
        let is_early = self.ignores_stops || step < self.min_tokens;
        if !is_early || self.allows_stops_only(allowed) {
            return;
        }
        let tokens = allowed.len() * mask::WORD_TOKENS;
        for &token in self.stop_tokens.iter().filter(|token| token.index() < tokens) {
            mask::remove(allowed, token);
        }
    }

    /// True of a mask that allows no token but those that stop.
    fn allows_stops_only(&self, allowed: &[u32]) -> bool {
        mask::iter(allowed).all(|token| self.stop_tokens.contains(&token))
    }
}

/// A token as it is generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewToken<'a> {
    /// The token.
    pub token: TokenId,
    /// True for a token that was no choice, for which no logits were asked.
    pub is_forced: bool,
    /// Logits that it was drawn from, as the source gave them; none of a token that was forced or
    /// found by a search. Shape: `[V]`.
    pub logits: &'a [f32],
    /// Tokens that were allowed, as a mask.
    pub allowed: &'a [u32],
}

/// The reason why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The constraint allows nothing more, or nothing that ends in time: the sequence is whole.
    Complete,
    /// A stop token was generated.
    StopToken(TokenId),
    /// The limit of tokens is reached, and the sequence may go on; one that is
    /// [promised](LengthRule) to be whole is whole.
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
    /// Passes of the model: the prompt's, and one for each stretch of tokens that a choice
    /// followed.
    pub passes: usize,
    /// The way in which the rule for its length held; `None` where it might be cut off.
    pub length: Option<LengthReport>,
}

/// Writes one sequence of a constraint's set: the buffers of a generation, made once and reused.
///
/// At each step the constraint's mask is filled. Where it allows one token, or one [way
/// on](Constraint::forced_stretch), this is committed without a pass of the model; the source reads
/// it with the next token that is chosen ([`LogitsSource::append`]).
///
/// [`run`](Self::run) drives a source to the end. [`start`](Self::start), [`settle`](Self::settle),
/// [`take_unread`](Self::take_unread) and [`choose`](Self::choose) are the same steps one by one,
/// for a caller whose model reads several sequences in one pass:
///
/// ```
/// # use std::ops::ControlFlow;
/// # use palmette_core::{TokenId, Unconstrained};
/// # use palmette_decode::{GenerateOptions, Generator, Sampler};
/// # let constraint = Unconstrained::new(4, 3);
/// # let (mut sampler, mut heard) = (Sampler::greedy(), |_: palmette_decode::NewToken<'_>| ControlFlow::Continue(()));
/// # let mut model = |_: &[TokenId]| [0.0, 2.0, 1.0, 0.5];
/// let mut generator = Generator::new(GenerateOptions::new(10));
/// generator.start(&constraint);
/// while generator.settle(&constraint, &mut heard)?.is_none() {
///     let logits = model(generator.take_unread()); // after the prompt, where there is nothing unread
///     generator.choose(&constraint, &logits, &mut sampler, &mut heard)?;
/// }
/// assert_eq!(generator.tokens(), [TokenId(1); 3]);
/// # Ok::<(), palmette_decode::DecodeError>(())
/// ```
pub struct Generator<C: Constraint + ?Sized> {
    options: GenerateOptions,
    scratch: C::Scratch,
    mask: Vec<u32>,
    /// Context, then what was generated.
    tokens: Vec<TokenId>,
    /// Number of last `tokens` that the source has not read.
    unread: usize,
    /// Position in the constraint; `None` before the start.
    state: Option<C::State>,
    forced: usize,
    /// The part that comes next, to be searched.
    part: Option<SequencePart>,
    /// True where the sequence will be whole within its tokens; `None` before that was asked.
    is_promised: Option<bool>,
    /// Tokens in the place of others that were drawn.
    steered: usize,
    /// The pace of a sequence that leans to its end.
    pace: Option<Pace>,
    /// Tokens that were drawn from `leaning_row`.
    leaning: usize,
    /// Logits that lean to the end. Shape: `[V]`.
    leaning_row: Vec<f32>,
    finish: Option<Finish>,
}

/// The way in which a token was found.
#[derive(Clone, Copy)]
enum TokenOrigin<'a> {
    Forced,
    Drawn(&'a [f32]),
    Searched,
}

impl<C: Constraint + ?Sized> fmt::Debug for Generator<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator")
            .field("options", &self.options)
            .field("tokens", &self.tokens())
            .field("finish", &self.finish)
            .finish_non_exhaustive()
    }
}

impl<C: Constraint + ?Sized> Generator<C> {
    /// Plans generations of this kind.
    pub fn new(options: GenerateOptions) -> Self {
        let tokens = options.context.clone();
        Self {
            options,
            scratch: C::Scratch::default(),
            mask: Vec::new(),
            tokens,
            unread: 0,
            state: None,
            forced: 0,
            part: None,
            is_promised: None,
            steered: 0,
            pace: None,
            leaning: 0,
            leaning_row: Vec::new(),
            finish: None,
        }
    }

    /// The kind of its generations.
    pub fn options(&self) -> &GenerateOptions {
        &self.options
    }

    /// The tokens of the latest generation.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens[self.options.context.len()..]
    }

    /// The position in the constraint after these tokens; `None` before the start.
    pub fn state(&self) -> Option<&C::State> {
        self.state.as_ref()
    }

    /// Tokens of the latest generation that were no choice.
    pub fn forced(&self) -> usize {
        self.forced
    }

    /// The way in which the [rule](LengthRule) for its length holds in the latest generation;
    /// `None` where it may be cut off.
    pub fn length(&self) -> Option<LengthReport> {
        let asked = self.options.length;
        let rule = if self.is_promised == Some(true) { asked } else { LengthRule::Cut };
        let Self { steered, leaning, .. } = *self;
        (asked != LengthRule::Cut).then_some(LengthReport { rule, steered, leaning })
    }

    /// Last tokens that the source has not read.
    pub fn unread(&self) -> &[TokenId] {
        &self.tokens[self.tokens.len() - self.unread..]
    }

    /// The unread tokens, which from now on count as read.
    pub fn take_unread(&mut self) -> &[TokenId] {
        let unread = std::mem::take(&mut self.unread);
        &self.tokens[self.tokens.len() - unread..]
    }

    /// Begins a generation at the constraint's start.
    pub fn start(&mut self, constraint: &C) {
        self.tokens.truncate(self.options.context.len());
        self.mask.resize(mask::num_words(constraint.num_tokens()), 0);
        self.state = Some(constraint.start());
        (self.unread, self.forced, self.part, self.finish) = (0, 0, None, None);
        (self.is_promised, self.pace) = (None, None);
        (self.steered, self.leaning) = (0, 0);
    }

    /// Fills masks and commits forced tokens, until there is a choice: `None`, and
    /// [`choose`](Self::choose) is next. Else the reason for which the generation has ended.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded, or the sequence is [promised](LengthRule) to be
    /// whole and cannot be within its tokens: before the first of them.
    ///
    /// # Panics
    /// When nothing was [started](Self::start).
    pub fn settle(
        &mut self,
        constraint: &C,
        on_token: &mut OnToken<'_>,
    ) -> Result<Option<Finish>, DecodeError> {
        while self.finish.is_none() {
            let step = self.tokens().len();
            let is_promised = self.promise(constraint)?;
            let state = self.state.as_ref().expect(NOT_STARTED);
            let filled = constraint.fill_mask(state, &mut self.scratch, &mut self.mask);
            filled.map_err(|error| DecodeError::Constraint { step, why: error.to_string() })?;
            if is_promised && step >= self.options.max_tokens {
                // It is whole. Words beside optional calls might go on for ever, and are cut off.
                let is_over = self.options.allows_stops_only(&self.mask);
                self.finish = Some(if is_over { Finish::Complete } else { Finish::MaxTokens });
                break;
            }
            self.options.hold_back_stops(step, &mut self.mask);
            let state = self.state.as_ref().expect(NOT_STARTED);
            if self.options.parts && step < self.options.max_tokens {
                let part = constraint.next_part(state, &mut self.scratch, &self.mask);
                let part =
                    part.map_err(|error| DecodeError::Constraint { step, why: error.to_string() })?;
                // One that may not fit is cut off wherever it is, so it is no use to search it.
                let mut left = self.options.max_tokens - step;
                if is_promised && part.is_some() {
                    // What comes after it is less than all that is to come.
                    left = left.saturating_sub(self.fewest(constraint)?.unwrap_or(left));
                }
                let is_early = is_promised && step < self.options.min_tokens;
                let is_sure = |most: Option<usize>| {
                    !is_early && most.map_or(!is_promised, |most| most <= left)
                };
                self.part = part.filter(|part| is_sure(part.max_tokens));
                if self.part.is_some() {
                    return Ok(None);
                }
            }
            let state = self.state.as_ref().expect(NOT_STARTED);
            let stretch = constraint.forced_stretch(state, &mut self.scratch, &mut self.mask);
            let stretch = stretch
                .map_err(|error| DecodeError::Constraint { step, why: error.to_string() })?;
            if !stretch.is_empty() && (!is_promised || self.leaves_a_way(constraint, &stretch)?) {
                self.commit_all(constraint, &stretch, TokenOrigin::Forced, on_token)?;
                continue;
            }
            // From a whole sequence that no token ends it only goes on where it can be whole again.
            if is_promised && !self.may_stop() && self.fewest(constraint)? == Some(0) {
                self.leave_a_way(constraint)?;
            }
            let first_two = {
                let mut allowed = mask::iter(&self.mask);
                (allowed.next(), allowed.next())
            };
            match first_two {
                (None, _) => self.finish = Some(Finish::Complete),
                _ if step >= self.options.max_tokens => self.finish = Some(Finish::MaxTokens),
                (Some(only), None) => {
                    self.commit(constraint, only, TokenOrigin::Forced, on_token)?;
                }
                _ => return Ok(None),
            }
        }
        Ok(self.finish)
    }

    /// Draws one of the tokens that the latest [`settle`](Self::settle) left to choose among, and
    /// commits it. `logits`: `[V]`, after all tokens so far.
    ///
    /// # Errors
    /// When the row has no distribution, or a limit of the constraint is exceeded.
    ///
    /// # Panics
    /// When nothing was [started](Self::start).
    pub fn choose(
        &mut self,
        constraint: &C,
        logits: &[f32],
        sampler: &mut Sampler,
        on_token: &mut OnToken<'_>,
    ) -> Result<(), DecodeError> {
        let step = self.tokens().len();
        let is_leaning = self.lean(constraint, logits)?;
        self.leaning += usize::from(is_leaning);
        let token = self.draw(logits, is_leaning, sampler)?;
        let token =
            match self.is_promised == Some(true) && !self.leaves_a_way(constraint, &[token])? {
                false => token,
                // Of the tokens that do, it is drawn as if there were no others.
                true => {
                    self.leave_a_way(constraint)?;
                    if mask::iter(&self.mask).next().is_none() {
                        return Err(DecodeError::LostWay { step });
                    }
                    self.steered += 1;
                    self.draw(logits, is_leaning, sampler)?
                }
            };
        self.unread = 0;
        self.commit(constraint, token, TokenOrigin::Drawn(logits), on_token)
    }

    /// Fills the row of logits that lean to the end, where the sequence is to lean here.
    fn lean(&mut self, constraint: &C, logits: &[f32]) -> Result<bool, DecodeError> {
        let Some(pace) = self.pace else { return Ok(false) };
        let (step, left) = (self.tokens().len(), self.tokens_left());
        let Some(needed) = self.fewest(constraint)? else { return Ok(false) };
        let Some(costs) = pace.costs(needed, left) else { return Ok(false) };
        let Self { leaning_row: row, state, scratch, .. } = self;
        row.clear();
        row.extend_from_slice(logits);
        let mut is_leaning = false;
        let visit = |token: TokenId, after: Option<usize>| {
            // One without a way takes all.
            let taken = after.map_or(left, |after| (after + 1).saturating_sub(needed));
            let nats = costs.nats(taken);
            let Some(logit) = row.get_mut(token.index()).filter(|_| nats > 0.0) else { return };
            *logit -= nats;
            is_leaning = true;
        };
        let visited = constraint.visit_ways(state.as_ref().expect(NOT_STARTED), scratch, visit);
        visited.map_err(|error| DecodeError::Constraint { step, why: error.to_string() })?;
        Ok(is_leaning)
    }

    /// A token drawn from the logits, or from those that lean.
    fn draw(
        &self,
        given: &[f32],
        is_leaning: bool,
        sampler: &mut Sampler,
    ) -> Result<TokenId, DecodeError> {
        let logits = if is_leaning { &self.leaning_row } else { given };
        let step = self.tokens().len();
        let (context, generated) = self.tokens.split_at(self.options.context.len());
        let drawn = sampler.sample_after(logits, &self.mask, context, generated);
        drawn.map_err(|error| DecodeError::Sample { step, error })
    }

    /// True where the sequence will be whole within its tokens.
    fn promise(&mut self, constraint: &C) -> Result<bool, DecodeError> {
        if let Some(known) = self.is_promised {
            return Ok(known);
        }
        let state = self.state.as_ref().expect(NOT_STARTED);
        let fewest = self.options.fewest_promised(constraint, state, &mut self.scratch)?;
        let max_tokens = self.options.max_tokens;
        if self.options.length == LengthRule::Gentle {
            self.pace = fewest.map(|needed| Pace::new(needed, max_tokens));
        }
        Ok(*self.is_promised.insert(fewest.is_some()))
    }

    /// Tokens to the end after those so far.
    fn fewest(&mut self, constraint: &C) -> Result<Option<usize>, DecodeError> {
        let step = self.tokens().len();
        let state = self.state.as_ref().expect(NOT_STARTED);
        let fewest = constraint.fewest_tokens(state, &mut self.scratch);
        fewest.map_err(|error| DecodeError::Constraint { step, why: error.to_string() })
    }

    /// True if the sequence can be whole in time after these tokens, which are allowed.
    fn leaves_a_way(&mut self, constraint: &C, tokens: &[TokenId]) -> Result<bool, DecodeError> {
        let step = self.tokens().len();
        let Some(lengths) = self.lengths().after(tokens.len()) else { return Ok(false) };
        let mut ahead = self.state.clone().expect(NOT_STARTED);
        for &token in tokens {
            if let Err(error) = constraint.commit(&mut ahead, token, &mut self.scratch) {
                return Err(self.refusal(token, error));
            }
        }
        let found = constraint.has_way(&ahead, lengths, &mut self.scratch);
        found.map_err(|error| DecodeError::Constraint { step, why: error.to_string() })
    }

    /// Tokens that may still follow, and that must.
    fn lengths(&self) -> Lengths {
        let least = self.options.min_tokens.saturating_sub(self.tokens().len());
        Lengths { least, most: self.tokens_left() }
    }

    /// The part that the latest [`settle`](Self::settle) stopped before: follow with
    /// [`choose_part`](Self::choose_part) instead of a token.
    pub fn part(&self) -> Option<&SequencePart> {
        self.part.as_ref()
    }

    /// Tokens that may still be generated.
    pub fn tokens_left(&self) -> usize {
        self.options.max_tokens - self.tokens().len().min(self.options.max_tokens)
    }

    /// Commits a sequence of the [part](Self::part) that comes next, which a search found after all
    /// tokens so far, or [one to the end](crate::EndingSearch); as much of it as there may be.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded, or it refuses a token.
    ///
    /// # Panics
    /// When nothing was [started](Self::start).
    pub fn choose_part(
        &mut self,
        constraint: &C,
        tokens: &[TokenId],
        on_token: &mut OnToken<'_>,
    ) -> Result<(), DecodeError> {
        self.promise(constraint)?;
        (self.unread, self.part) = (0, None);
        self.commit_all(constraint, tokens, TokenOrigin::Searched, on_token)
    }

    /// Membership in the constraint's set of what has been generated so far.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded.
    ///
    /// # Panics
    /// When nothing was [started](Self::start).
    pub fn is_accepting(&mut self, constraint: &C) -> Result<bool, DecodeError> {
        let step = self.tokens().len();
        let state = self.state.as_ref().expect(NOT_STARTED);
        let accepting = constraint.is_accepting(state, &mut self.scratch);
        accepting.map_err(|error| DecodeError::Constraint { step, why: error.to_string() })
    }

    /// Fills the mask with the tokens after which the sequence can be whole in time.
    fn leave_a_way(&mut self, constraint: &C) -> Result<(), DecodeError> {
        let (step, lengths) = (self.tokens().len(), self.lengths());
        let Self { state, scratch, mask, .. } = self;
        let state = state.as_ref().expect(NOT_STARTED);
        let filled = constraint.fill_ending_mask(state, lengths, scratch, mask);
        filled.map_err(|error| DecodeError::Constraint { step, why: error.to_string() })?;
        self.options.hold_back_stops(step, &mut self.mask);
        Ok(())
    }

    /// True where a stop token may follow.
    fn may_stop(&self) -> bool {
        let tokens = self.mask.len() * mask::WORD_TOKENS;
        let mut known = self.options.stop_tokens.iter().filter(|token| token.index() < tokens);
        known.any(|&token| mask::contains(&self.mask, token))
    }

    /// Commits tokens that were found together, as many as there may be.
    fn commit_all(
        &mut self,
        constraint: &C,
        tokens: &[TokenId],
        origin: TokenOrigin<'_>,
        on_token: &mut OnToken<'_>,
    ) -> Result<(), DecodeError> {
        for &token in tokens {
            if self.tokens().len() >= self.options.max_tokens {
                self.finish = Some(Finish::MaxTokens);
            }
            if self.finish.is_some() {
                break;
            }
            self.commit(constraint, token, origin, on_token)?;
        }
        Ok(())
    }

    /// Error of a token that was allowed and cannot be committed.
    fn refusal(&self, token: TokenId, error: CommitError<C::Error>) -> DecodeError {
        let step = self.tokens().len();
        match error {
            CommitError::Failed { error, .. } => {
                DecodeError::Constraint { step, why: error.to_string() }
            }
            _ => DecodeError::BrokenConstraint { token, step },
        }
    }

    fn commit(
        &mut self,
        constraint: &C,
        token: TokenId,
        origin: TokenOrigin<'_>,
        on_token: &mut OnToken<'_>,
    ) -> Result<(), DecodeError> {
        let state = self.state.as_mut().expect(NOT_STARTED);
        if let Err(error) = constraint.commit(state, token, &mut self.scratch) {
            return Err(self.refusal(token, error));
        }
        self.tokens.push(token);
        self.unread += 1;
        let is_forced = matches!(origin, TokenOrigin::Forced);
        self.forced += usize::from(is_forced);
        let logits = match origin {
            TokenOrigin::Drawn(logits) => logits,
            TokenOrigin::Forced | TokenOrigin::Searched => &[],
        };
        let flow = on_token(NewToken { token, is_forced, logits, allowed: &self.mask });
        self.finish = match flow {
            ControlFlow::Break(()) => Some(Finish::Stopped),
            ControlFlow::Continue(()) => {
                let stops = self.options.stop_tokens.contains(&token);
                stops.then_some(Finish::StopToken(token))
            }
        };
        Ok(())
    }

    /// Generates one sequence from the constraint's start, after the source's prompt.
    ///
    /// `on_token` is called with each token at once, and breaks generation off by
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded, a row has no distribution, or the source fails.
    /// [`tokens`](Self::tokens) are those before.
    pub fn run<L: LogitsSource>(
        &mut self,
        constraint: &C,
        source: &mut L,
        sampler: &mut Sampler,
        on_token: &mut OnToken<'_>,
    ) -> Result<Generated, L::Error>
    where
        L::Error: From<DecodeError>,
    {
        let (model, constrained) = (source.num_tokens(), constraint.num_tokens());
        if model != constrained {
            return Err(DecodeError::VocabularyMismatch { model, constraint: constrained }.into());
        }
        self.start(constraint);
        let mut passes = 0;
        let finish = loop {
            if let Some(finish) = self.settle(constraint, on_token)? {
                break finish;
            }
            if passes == 0 && self.unread > 0 {
                source.prompt_logits()?;
                passes = 1;
            }
            let logits = match self.unread() {
                [] => source.prompt_logits()?,
                unread => source.append(unread)?,
            };
            passes += 1;
            self.choose(constraint, logits, sampler, on_token)?;
        };
        let is_accepting = self.is_accepting(constraint)?;
        let (forced, length) = (self.forced, self.length());
        Ok(Generated { finish, is_accepting, forced, passes, length })
    }
}

/// Callback of a running generation: it is called with each token, and ends the generation by
/// [`ControlFlow::Break`].
pub type OnToken<'a> = dyn FnMut(NewToken<'_>) -> ControlFlow<()> + 'a;

const NOT_STARTED: &str = "a generation begins with `start`";
