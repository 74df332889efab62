//! Batches: the masks of many sequences, side by side on several threads.

use std::mem::MaybeUninit;
use std::num::NonZeroUsize;

use palmette_core::Lengths;
use palmette_grammar::{BatchFiller, BatchRow, MaskBudget};

use crate::arguments::{array, array_mut, invalid, needed};
use crate::border;
use crate::error::{Error, Status};
use crate::lengths::LengthsLeft;
use crate::matcher::Matcher;

/// Threads that fill masks, with their memory. One thread uses it at a time; made once.
#[derive(Debug)]
pub struct Batch {
    filler: BatchFiller,
    /// Steps that a mask may take.
    mask_steps: u64,
}

/// Makes a batch of so many threads, the caller's included; 0 is as many as the process may run at
/// once.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_batch_new(
    threads: usize,
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let batch = needed(batch, "batch")?;
        let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = NonZeroUsize::new(threads).unwrap_or_else(all);
        if threads.get() > BatchFiller::MAX_THREADS {
            let most = BatchFiller::MAX_THREADS;
            return Err(invalid(format!("threads is {threads}; give {most} or fewer")));
        }
        let filler = BatchFiller::new(threads).map_err(|error| {
            let message = format!("{threads} threads could not be started: {error}; give fewer");
            Error::new(Status::LimitExceeded, message)
        })?;
        batch.write(Box::into_raw(Box::new(Batch { filler, mask_steps: u64::MAX })));
        Ok(())
    })
}

/// Limits the steps that each mask of a batch may take, as palmette_matcher_limit_masks() does for
/// those of a matcher. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_batch_limit_masks(batch: Option<&mut Batch>, steps: u64) {
    if let Some(batch) = batch {
        batch.mask_steps = steps;
    }
}

/// Writes the masks of many sequences: row i of `words`, which has `row_words` words, is the mask
/// of matcher i. Matchers may be of different grammars and vocabularies, one may be there more than
/// once, and NULL leaves its row as it is. They stay where they are.
///
/// `lengths` is an array of as many lengths as there are matchers, each as
/// palmette_matcher_fill_mask() takes it; NULL is any length. A row that fails is all 0, and the
/// others are filled all the same: the error is that of the first, and where `statuses` is not NULL
/// it becomes the status of each row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_batch_fill(
    batch: Option<&mut Batch>,
    matchers: *const *const Matcher,
    num_matchers: usize,
    words: *mut u32,
    row_words: usize,
    lengths: *const LengthsLeft,
    statuses: *mut i32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let batch = needed(batch, "batch")?;
        let too_many = || invalid(format!("{num_matchers} rows of {row_words} words are too many"));
        let all_words = row_words.checked_mul(num_matchers).ok_or_else(too_many)?;
        let (num_lengths, num_statuses) = (
            if lengths.is_null() { 0 } else { num_matchers },
            if statuses.is_null() { 0 } else { num_matchers },
        );
        // SAFETY: a pointer that may be null is an `Option` of a reference; the rest is the
        // caller's promise.
        let (matchers, words, lengths, statuses) = unsafe {
            (
                array(matchers.cast::<Option<&Matcher>>(), num_matchers, "matchers")?,
                array_mut(words, all_words, "words")?,
                array(lengths, num_lengths, "lengths")?,
                array_mut(statuses, num_statuses, "statuses")?,
            )
        };
        statuses.fill(Status::Ok as i32);
        let mut rest = words;
        let rows = (0..matchers.len()).map(|row| {
            let (words, after) = std::mem::take(&mut rest).split_at_mut(row_words);
            rest = after;
            let lengths: Option<Lengths> = lengths.get(row).and_then(|of| of.lengths());
            let what = match &matchers[row] {
                Some(of) => BatchRow::new(&of.constraint, &of.state).ending_within(lengths),
                None => BatchRow::Untouched,
            };
            (what, words)
        });
        let work = MaskBudget::of_steps(batch.mask_steps, None);
        let failed = batch.filler.fill_each(rows, &work);
        let mut first = None;
        for failure in failed {
            let (row, error) = (failure.row, Error::from(failure.kind).at_row(failure.row));
            if let Some(status) = statuses.get_mut(row) {
                *status = error.status() as i32;
            }
            first.get_or_insert(error);
        }
        first.map_or(Ok(()), Err)
    })
}

/// Frees a batch, whose threads then end by themselves. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_batch_free(batch: Option<Box<Batch>>) {
    border::ask((), || drop(batch));
}
