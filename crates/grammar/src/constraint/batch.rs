//! The masks of a batch, side by side.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use palmette_core::{Constraint, Lengths, mask};
use palmette_grammar_parser::recognizer::RecognizerError;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::{EndingError, GrammarConstraint, GrammarScratch, GrammarState, MaskBudget};

/// Fills the masks of many sequences on several threads. Each may be of another grammar, and over
/// another vocabulary.
///
/// Holds the threads and their scratch; made once. What it fills does not depend on how many
/// threads there are.
///
/// ```
/// # use std::{num::NonZeroUsize, sync::Arc};
/// # use palmette_core::{Constraint, TokenId, Vocabulary};
/// # use palmette_grammar::{frontends::regex, *};
/// # let vocabulary = Vocabulary::new([Some("a"), Some("b"), None], [TokenId(2)])?;
/// # let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
/// # let compile = |source: &str| {
/// #     let grammar = regex::parse(source, &Default::default()).unwrap();
/// #     let recognizer = Recognizer::new(Arc::new(grammar), &Default::default(), &mut Budget::unlimited());
/// #     GrammarConstraint::new(Arc::new(recognizer.unwrap()), Arc::clone(&vocabulary))
/// # };
/// let (first, second) = (compile("a+b"), compile("b*"));
/// let mut filler = BatchFiller::new(NonZeroUsize::new(2).unwrap())?;
/// let mut masks = vec![0; 2 * 1]; // [batch, words]
/// let (one, other) = (first.start(), second.start());
/// let rows = [BatchRow::new(&first, &one), BatchRow::new(&second, &other)];
/// let failed = filler.fill(&rows, 1, &mut masks, &MaskBudget::unlimited());
/// assert!(failed.is_empty());
/// assert_eq!(masks, [0b001, 0b110]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchFiller {
    /// All threads but the caller's.
    pool: Option<ThreadPool>,
    scratches: Vec<GrammarScratch>,
}

/// Task of a row of a batch.
#[derive(Clone, Copy, Debug)]
pub enum BatchRow<'a> {
    /// The mask of a state; all zeros after an end token.
    Mask {
        /// The grammar over its vocabulary.
        constraint: &'a GrammarConstraint,
        /// A state of it.
        state: &'a GrammarState,
        /// Tokens that the text may still take, where it is to end after so many.
        lengths: Option<Lengths>,
    },
    /// No mask: the row stays as it is. For sequences without a grammar.
    Untouched,
}

impl<'a> BatchRow<'a> {
    /// The mask of a state.
    pub fn new(constraint: &'a GrammarConstraint, state: &'a GrammarState) -> Self {
        Self::Mask { constraint, state, lengths: None }
    }

    /// The mask under which the text ends after so many tokens
    /// ([`fill_ending_mask_within`](GrammarConstraint::fill_ending_mask_within)), where that is
    /// some.
    #[must_use]
    pub fn ending_within(self, lengths: Option<Lengths>) -> Self {
        match self {
            Self::Mask { constraint, state, .. } => Self::Mask { constraint, state, lengths },
            Self::Untouched => Self::Untouched,
        }
    }

    /// Writes the row as it says, without others beside it. Words past the vocabulary become 0.
    ///
    /// # Errors
    /// When the mask is not known; the row is all zeros then.
    pub fn fill(
        self,
        mask: &mut [u32],
        scratch: &mut GrammarScratch,
        work: &MaskBudget<'_>,
    ) -> Result<(), RowErrorKind> {
        let Self::Mask { constraint, state, lengths } = self else { return Ok(()) };
        let num_tokens = constraint.num_tokens();
        let (needed, given) = (mask::num_words(num_tokens), mask.len());
        if needed > given {
            mask.fill(0);
            return Err(RowErrorKind::Narrow { num_tokens, needed, given });
        }
        let (mask, past) = mask.split_at_mut(needed);
        past.fill(0);
        match lengths {
            None => Ok(constraint.fill_mask_within(state, scratch, mask, work)?),
            Some(lengths) => {
                Ok(constraint.fill_ending_mask_within(state, lengths, scratch, mask, work)?)
            }
        }
    }
}

/// A row whose mask is not known: it is all zeros.
#[derive(Debug, thiserror::Error)]
#[error("row {row} of the batch: {kind}")]
pub struct RowError {
    /// Place of the row in the batch.
    pub row: usize,
    /// Reason.
    #[source]
    pub kind: RowErrorKind,
}

/// Reason that the mask of a row is not known.
#[derive(Debug, thiserror::Error)]
pub enum RowErrorKind {
    /// A limit is exceeded, or the work was cancelled.
    #[error(transparent)]
    Limit(#[from] RecognizerError),
    /// The text cannot end within its tokens.
    #[error(transparent)]
    Ending(EndingError),
    /// The vocabulary has more tokens than the row has bits.
    #[error(
        "a mask over {num_tokens} tokens needs {needed} words, but rows have {given}; make the rows wider"
    )]
    Narrow {
        /// Size of the vocabulary.
        num_tokens: usize,
        /// Words of a mask over it.
        needed: usize,
        /// Words of a row.
        given: usize,
    },
}

impl BatchFiller {
    /// Threads past which a caller has no use for more: each has a scratch of its own.
    pub const MAX_THREADS: usize = 1024;

    /// This many threads, the caller's included.
    ///
    /// # Errors
    /// When the system has no more threads to give.
    pub fn new(threads: NonZeroUsize) -> Result<Self, ThreadPoolBuildError> {
        let others = threads.get() - 1;
        let pool = (others > 0)
            .then(|| {
                ThreadPoolBuilder::new()
                    .num_threads(others)
                    .thread_name(|number| format!("masks-{number}"))
                    .build()
            })
            .transpose()?;
        let scratches = std::iter::repeat_with(GrammarScratch::default).take(threads.get());
        Ok(Self { pool, scratches: scratches.collect() })
    }

    /// Number of threads that it fills on, the caller's included.
    pub fn num_threads(&self) -> usize {
        self.scratches.len()
    }

    /// Writes row `i` of `masks`, shape `[rows.len(), words]`, as `rows[i]` says. Words past the
    /// vocabulary of a row become 0, so that rows may be as wide as the logits are. Gives the rows
    /// that failed, in ascending order; they are all zeros, and the others are not affected.
    ///
    /// Each row may take as much as `work` says; its flag calls all of them off.
    ///
    /// # Panics
    /// When `masks` does not have `rows.len() * words` words.
    #[must_use = "a row that failed denies everything"]
    pub fn fill(
        &mut self,
        rows: &[BatchRow<'_>],
        words: usize,
        masks: &mut [u32],
        work: &MaskBudget<'_>,
    ) -> Vec<RowError> {
        assert_eq!(masks.len(), rows.len() * words, "{} rows of {words} words", rows.len());
        self.fill_each(rows.iter().copied().zip(rows_of(masks, words, rows.len())), work)
    }

    /// [`fill`](Self::fill) for rows that lie anywhere, each with what is to be written into it;
    /// they need not be equally wide. A row of an error is its place in the order given.
    #[must_use = "a row that failed denies everything"]
    pub fn fill_each<'a, 'm, R>(&mut self, rows: R, work: &MaskBudget<'_>) -> Vec<RowError>
    where
        R: IntoIterator<Item = (BatchRow<'a>, &'m mut [u32]), IntoIter: ExactSizeIterator + Send>,
    {
        let rows = rows.into_iter();
        let num_rows = rows.len();
        let failed = Mutex::new(Vec::new());
        // Rows are handed out one by one: some take a thousand times as long as others.
        let left = Mutex::new(rows.enumerate());
        let fill = |scratch: &mut GrammarScratch| {
            loop {
                let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((row, (what, mask))) = next else { break };
                if let Err(kind) = what.fill(mask, scratch, work) {
                    let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.push(RowError { row, kind });
                }
            }
        };
        let others = num_rows.saturating_sub(1).min(self.scratches.len() - 1);
        let (own, lent) = self.scratches.split_first_mut().expect("at least one thread");
        match &self.pool {
            Some(pool) if others > 0 => pool.in_place_scope(|scope| {
                for scratch in &mut lent[..others] {
                    scope.spawn(|_| fill(scratch));
                }
                fill(own);
            }),
            _ => fill(own),
        }
        let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.sort_unstable_by_key(|error: &RowError| error.row);
        failed
    }
}

/// The rows of a batch, also where they have no words.
fn rows_of(
    masks: &mut [u32],
    words: usize,
    num_rows: usize,
) -> impl ExactSizeIterator<Item = &mut [u32]> + Send {
    let mut rest = masks;
    (0..num_rows).map(move |_| {
        let (row, after) = std::mem::take(&mut rest).split_at_mut(words);
        rest = after;
        row
    })
}

impl From<EndingError> for RowErrorKind {
    fn from(error: EndingError) -> Self {
        match error {
            EndingError::Limit(error) => Self::Limit(error),
            error => Self::Ending(error),
        }
    }
}
