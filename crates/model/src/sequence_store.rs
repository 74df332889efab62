//! The seam between texts that are written side by side and what computes their model.

use std::fmt::Debug;
use std::ops::Range;

use palmette_core::TokenId;

/// Capacity of a [`SequenceStore`], whose memory is planned from this. Each number counts as 1
/// where it is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencesOptions {
    /// N: most sequences at once.
    pub max_sequences: usize,
    /// Tokens that all sequences together keep keys and values of, rounded up to whole
    /// [pages](Self::PAGE_TOKENS).
    pub max_tokens: usize,
    /// R: most rows of a pass, those of all sequences together.
    pub max_rows: usize,
    /// Largest number of rayon workers at once. Results do not depend on it.
    pub threads: usize,
}

impl SequencesOptions {
    /// Tokens of a page of keys and values, in every store.
    pub const PAGE_TOKENS: usize = 64;

    /// The plan with 1 for each 0.
    pub fn at_least_one(self) -> Self {
        Self {
            max_sequences: self.max_sequences.max(1),
            max_tokens: self.max_tokens.max(1),
            max_rows: self.max_rows.max(1),
            threads: self.threads.max(1),
        }
    }
}

/// A pass or a plan that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SequencesError {
    /// All places are taken.
    #[error("there are {max} sequences, as many as were planned for; remove one")]
    TooManySequences {
        /// N.
        max: usize,
    },
    /// A sequence that was removed, or never was.
    #[error("there is no sequence {0:?}: it was removed, or is of other sequences")]
    UnknownSequence(SequenceId),
    /// A sequence that stands in a pass twice.
    #[error("sequence {0:?} stands in the pass twice; give its tokens at once")]
    NamedTwice(SequenceId),
    /// A stretch of no tokens.
    #[error("sequence {0:?} stands in the pass without tokens; leave it out")]
    NoTokens(SequenceId),
    /// More rows than planned for.
    #[error(
        "a pass of {rows} rows, {max} were planned for; give some of the tokens to the next pass"
    )]
    TooManyRows {
        /// Tokens of all stretches.
        rows: usize,
        /// R.
        max: usize,
    },
    /// A prompt that an encoder reads whole.
    #[error(
        "the model is an encoder–decoder, whose prompts an encoder reads; sequences side by side are a decoder's: use a session"
    )]
    EncoderDecoder,
    /// A token outside the vocabulary.
    #[error("token {token} is not in the model's vocabulary of {vocab_size}")]
    UnknownToken {
        /// The token.
        token: TokenId,
        /// V.
        vocab_size: usize,
    },
    /// More tokens of a sequence than it has.
    #[error("a fork of {tokens} tokens, and the sequence has {has}")]
    FewerTokens {
        /// Tokens asked for.
        tokens: usize,
        /// Tokens there are.
        has: usize,
    },
    /// A sequence longer than positions go.
    #[error("a sequence of {tokens} tokens, the model and the plan have {max} positions")]
    TooManyPositions {
        /// Tokens, those of the pass included.
        tokens: usize,
        /// The model's positions, or the tokens of all pages if they are fewer.
        max: usize,
    },
    /// All pages are taken. Nothing was computed; removing a sequence frees some.
    #[error(
        "{needed} more pages of {} tokens are needed and {free} are free; remove a sequence",
        SequencesOptions::PAGE_TOKENS
    )]
    NoRoom {
        /// Pages that the pass needs.
        needed: usize,
        /// Pages that no sequence has.
        free: usize,
    },
    /// The plan needs more memory than there is.
    #[error(
        "{sequences} sequences with {tokens} tokens need more memory than can be allocated: plan for fewer tokens"
    )]
    PlanTooLarge {
        /// Sequences planned.
        sequences: usize,
        /// Tokens planned.
        tokens: usize,
    },
    /// Failure of what computes the model: a device, say.
    #[error("{0}")]
    Engine(String),
}

/// A sequence of a [`SequenceStore`], until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SequenceId {
    pub(crate) slot: u32,
    /// Number of the sequence among all that had the slot.
    pub(crate) serial: u32,
}

/// Tokens by which a sequence grows in a pass.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// The sequence; it stands in a pass once.
    pub sequence: SequenceId,
    /// Tokens that follow those it has, one at least: some of a prompt, or the next token.
    pub tokens: &'a [TokenId],
    /// True when the logits after the last of them are wanted.
    pub wants_logits: bool,
}

/// Several sequences through a model, each growing by itself, in passes over rows of any of them.
///
/// A row's bits depend neither on the rows beside it, nor on how a sequence is divided among
/// passes, nor on what it was [forked](Self::fork) from.
pub trait SequenceStore: Debug + Send {
    /// The plan.
    fn options(&self) -> &SequencesOptions;

    /// Positions that one sequence can have: the model's, or the tokens of all pages if they are
    /// fewer.
    fn max_positions(&self) -> usize;

    /// Pages that no sequence has.
    fn free_pages(&self) -> usize;

    /// Adds a sequence without tokens.
    ///
    /// # Errors
    /// When all places are taken.
    fn add(&mut self) -> Result<SequenceId, SequencesError>;

    /// Adds a sequence that has the first tokens of another. Whole pages are shared.
    ///
    /// # Errors
    /// When there is no such sequence, it has fewer tokens, or no place or page is free.
    fn fork(&mut self, sequence: SequenceId, tokens: usize) -> Result<SequenceId, SequencesError>;

    /// Removes a sequence; its place is free, and its pages that no fork has.
    ///
    /// # Errors
    /// When there is no such sequence.
    fn remove(&mut self, sequence: SequenceId) -> Result<(), SequencesError>;

    /// Takes the tokens after the first ones away from a sequence, which has another id from then
    /// on where it is stored anew.
    ///
    /// # Errors
    /// When there is no such sequence, it has fewer tokens, or a place or page that is needed is
    /// not free; the sequence is as it was.
    fn truncate(
        &mut self,
        sequence: SequenceId,
        tokens: usize,
    ) -> Result<SequenceId, SequencesError> {
        let fork = self.fork(sequence, tokens)?;
        self.remove(sequence)?;
        Ok(fork)
    }

    /// Tokens that a sequence has.
    ///
    /// # Errors
    /// When there is no such sequence.
    fn num_tokens(&self, sequence: SequenceId) -> Result<usize, SequencesError>;

    /// Grows sequences by their stretches, all in one pass of the model. The logits that are wanted
    /// are [`logits`](Self::logits) until the next pass.
    ///
    /// # Errors
    /// When the stretches break a rule, there are no pages for them, or what computes them fails:
    /// every sequence is as it was.
    fn pass(&mut self, stretches: &[Stretch<'_>]) -> Result<(), SequencesError>;

    /// The logits after a stretch of the latest pass, by its place there: `[V]`. `None` where they
    /// were not wanted.
    fn logits(&self, place: usize) -> Option<&[f32]>;

    /// The logits after some rows of a stretch of the latest pass, `[rows, V]`, the stretch by its
    /// place there. Those of other stretches are gone then; `None` where there are no such rows, or
    /// more than sequences were planned.
    ///
    /// # Errors
    /// When what computes them fails.
    fn logits_of_rows(
        &mut self,
        place: usize,
        rows: Range<usize>,
    ) -> Result<Option<&[f32]>, SequencesError>;
}
