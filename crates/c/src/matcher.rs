//! Matchers: one sequence under a grammar, followed token by token.

use std::mem::MaybeUninit;
use std::sync::Arc;

use palmette_core::{Constraint, TokenId, mask};
use palmette_grammar::{
    BatchRow, GrammarConstraint, GrammarScratch, GrammarState, MaskBudget, RowErrorKind,
};

use crate::arguments::{array, array_mut, needed, tokens};
use crate::border;
use crate::error::{Error, Status};
use crate::grammar::Grammar;
use crate::lengths::LengthsLeft;

/// A sequence being written under a grammar: what may follow, and what has been committed. One
/// thread uses it at a time.
#[derive(Debug)]
pub struct Matcher {
    pub(crate) constraint: Arc<GrammarConstraint>,
    pub(crate) state: GrammarState,
    /// Taken by a call and put back, so that one that panics leaves none.
    scratch: Option<Box<GrammarScratch>>,
    /// Steps that a mask may take.
    mask_steps: u64,
}

impl Matcher {
    pub(crate) fn new(constraint: Arc<GrammarConstraint>) -> Self {
        let state = constraint.start();
        Self { constraint, state, scratch: None, mask_steps: u64::MAX }
    }

    pub(crate) fn fork(&self) -> Self {
        let (constraint, state) = (Arc::clone(&self.constraint), self.state.clone());
        Self { constraint, state, scratch: None, mask_steps: self.mask_steps }
    }

    /// Lends its scratch.
    pub(crate) fn with<R>(
        &mut self,
        work: impl FnOnce(&GrammarConstraint, &mut GrammarState, &mut GrammarScratch) -> R,
    ) -> R {
        let mut scratch = self.scratch.take().unwrap_or_default();
        let result = work(&self.constraint, &mut self.state, &mut scratch);
        self.scratch = Some(scratch);
        result
    }

    pub(crate) fn mask_budget(&self) -> MaskBudget<'static> {
        MaskBudget::of_steps(self.mask_steps, None)
    }

    pub(crate) fn begin_again(&mut self) {
        self.state = self.constraint.start();
    }

    /// Writes the mask into a row; all zeros where it fails.
    pub(crate) fn fill(
        &mut self,
        row: &mut [u32],
        lengths: Option<LengthsLeft>,
    ) -> Result<(), RowErrorKind> {
        self.fill_within(row, lengths, &self.mask_budget())
    }

    /// [`fill`](Self::fill) within a budget.
    pub(crate) fn fill_within(
        &mut self,
        row: &mut [u32],
        lengths: Option<LengthsLeft>,
        work: &MaskBudget<'_>,
    ) -> Result<(), RowErrorKind> {
        let lengths = lengths.and_then(LengthsLeft::lengths);
        self.with(|constraint, state, scratch| {
            BatchRow::new(constraint, state).ending_within(lengths).fill(row, scratch, work)
        })
    }

    /// Commits tokens one after another, or none of them.
    pub(crate) fn commit_all(&mut self, tokens: &[TokenId]) -> Result<(), Error> {
        self.with(|constraint, state, scratch| {
            let mut ahead = state.clone();
            for &token in tokens {
                constraint.commit(&mut ahead, token, scratch)?;
            }
            *state = ahead;
            Ok(())
        })
    }
}

/// Makes a matcher at the beginning of a text. `ends` are the tokens that end this one instead of
/// the vocabulary's; NULL with 0 is the vocabulary's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_new(
    grammar: Option<&Grammar>,
    ends: *const u32,
    num_ends: usize,
    matcher: Option<&mut MaybeUninit<*mut Matcher>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let (grammar, matcher) = (needed(grammar, "grammar")?, needed(matcher, "matcher")?);
        // SAFETY: the caller's promise.
        let ends = unsafe { tokens(ends, num_ends)? };
        let constraint = &grammar.constraint;
        let num_tokens = constraint.num_tokens();
        if let Some(end) = ends.iter().find(|end| end.index() >= num_tokens) {
            let message =
                format!("end token {end} is not in the vocabulary of {num_tokens} tokens");
            return Err(Error::new(Status::Vocabulary, message));
        }
        let other = (!ends.is_empty()).then(|| constraint.with_ends(ends.iter().copied()));
        // The same ends share what is known of tokens.
        let constraint = match other.filter(|other| other.ends() != constraint.ends()) {
            Some(other) => Arc::new(other),
            None => Arc::clone(constraint),
        };
        matcher.write(Box::into_raw(Box::new(Matcher::new(constraint))));
        Ok(())
    })
}

/// Copies a matcher, to continue its text in two ways; neither sees the other. It costs a few
/// counts.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_fork(
    matcher: Option<&Matcher>,
    fork: Option<&mut MaybeUninit<*mut Matcher>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let (matcher, fork) = (needed(matcher, "matcher")?, needed(fork, "fork")?);
        fork.write(Box::into_raw(Box::new(matcher.fork())));
        Ok(())
    })
}

/// Limits the steps that each mask may take, some tens of nanoseconds each; UINT64_MAX is no limit,
/// as a new matcher has it. A mask that would take more is PALMETTE_STATUS_LIMIT_EXCEEDED. Those of
/// batches are limited by palmette_batch_limit_masks(). NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_limit_masks(matcher: Option<&mut Matcher>, steps: u64) {
    if let Some(matcher) = matcher {
        matcher.mask_steps = steps;
    }
}

/// Writes the tokens that may follow into a row: bit t % 32 of word t / 32 is token t, and 1 is
/// allowed. Words past the vocabulary become 0; all do when nothing may follow, and when the call
/// fails.
///
/// With `lengths` the text ends after so many tokens: only tokens may follow after which it still
/// can (PALMETTE_STATUS_TOO_FEW_TOKENS and PALMETTE_STATUS_TOO_MANY_TOKENS where no way is known).
/// NULL is any length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_fill_mask(
    matcher: Option<&mut Matcher>,
    words: *mut u32,
    num_words: usize,
    lengths: Option<&LengthsLeft>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        // SAFETY: the caller's promise.
        let row = unsafe { array_mut(words, num_words, "words")? };
        Ok(matcher.fill(row, lengths.copied())?)
    })
}

/// Moves over a token.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_commit(
    matcher: Option<&mut Matcher>,
    token: u32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        let token = TokenId(token);
        Ok(matcher.with(|constraint, state, scratch| constraint.commit(state, token, scratch))?)
    })
}

/// Moves over several tokens, or over none of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_commit_all(
    matcher: Option<&mut Matcher>,
    tokens: *const u32,
    num_tokens: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        // SAFETY: the caller's promise.
        matcher.commit_all(unsafe { self::tokens(tokens, num_tokens)? })
    })
}

/// Moves over text that no token stands for, such as the part of the answer that is in the prompt.
/// A rollback counts it as one token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_matcher_commit_bytes(
    matcher: Option<&mut Matcher>,
    bytes: *const u8,
    num_bytes: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { array(bytes, num_bytes, "bytes")? };
        let commit = |constraint: &GrammarConstraint, state: &mut _, scratch: &mut _| {
            constraint.commit_bytes(state, bytes, scratch)
        };
        Ok(matcher.with(commit)?)
    })
}

/// Takes back the last commits.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_rollback(
    matcher: Option<&mut Matcher>,
    num_commits: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        Ok(matcher.constraint.rollback(&mut matcher.state, num_commits)?)
    })
}

/// Begins again. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_reset(matcher: Option<&mut Matcher>) {
    border::ask((), || matcher.into_iter().for_each(Matcher::begin_again));
}

/// Number of commits that can be taken back. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_num_commits(matcher: Option<&Matcher>) -> usize {
    matcher.map_or(0, |matcher| matcher.state.num_commits())
}

/// Words of 32 bits of its masks. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_mask_words(matcher: Option<&Matcher>) -> usize {
    matcher.map_or(0, |matcher| mask::num_words(matcher.constraint.num_tokens()))
}

/// True once an end token was committed. False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_has_ended(matcher: Option<&Matcher>) -> bool {
    matcher.is_some_and(|matcher| matcher.state.ended())
}

/// Tells whether the text so far fits: it may end here, or has ended.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_is_accepting(
    matcher: Option<&mut Matcher>,
    is_accepting: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let matcher = needed(matcher, "matcher")?;
        let answer = needed(is_accepting, "is_accepting")?;
        let found =
            matcher.with(|constraint, state, scratch| constraint.is_accepting(state, scratch))?;
        answer.write(found);
        Ok(())
    })
}

/// Frees a matcher. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_matcher_free(matcher: Option<Box<Matcher>>) {
    border::ask((), || drop(matcher));
}
