//! `palmette.fill_masks`: the masks of a batch, over threads and without the interpreter.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use palmette_core::{Constraint, Lengths};
use palmette_grammar::{
    BatchFiller, BatchRow, GrammarConstraint, GrammarState, MaskBudget, RowErrorKind,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::draft_trees::{NumberedTree, checked_tree, numbered_tree};
use super::matcher::{Matcher, fill_row, forbids, lengths_of, with_scratch};
use super::vocabulary::numbers_of;
use crate::buffers::MaskRows;
use crate::errors;
use crate::process::{self, OfProcess};

/// Threads with their memory, kept from call to call; each call that runs has one of its own.
///
/// Only taken and put back while attached to the interpreter, so that nobody holds the lock while a
/// process forks.
static FILLERS: Mutex<Option<OfProcess<Fillers>>> = Mutex::new(None);

/// Idle fillers by their number of threads.
type Fillers = HashMap<usize, Vec<BatchFiller>>;

/// More threads than this do not help and cost memory.
const MAX_THREADS: usize = 64;

/// Threads that the process may run at once, asked once: the system's answer takes 20 us.
static PROCESSORS: OnceLock<NonZeroUsize> = OnceLock::new();

/// Threads that a call uses: those that the caller says, or as many as the process may run at once.
pub(crate) fn num_threads(given: Option<isize>, rows: usize) -> PyResult<NonZeroUsize> {
    let threads = match given {
        Some(given) => {
            usize::try_from(given).ok().and_then(NonZeroUsize::new).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "threads is {given}; give 1 or more, or None for as many as the machine has"
                ))
            })?
        }
        None if rows < 2 => NonZeroUsize::MIN,
        None => *PROCESSORS
            .get_or_init(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
    };
    let most = NonZeroUsize::new(rows.min(MAX_THREADS)).unwrap_or(NonZeroUsize::MIN);
    Ok(threads.min(most))
}

/// Time for which the caller's thread fills alone before others are woken, which takes about as
/// long.
const ALONE: Duration = Duration::from_micros(50);

/// Fills rows on at most so many threads; each is wide enough for its mask.
///
/// Most masks are looked up, and a batch of them is done before another thread would have begun:
/// others join in only where rows are left after a while.
///
/// Gives the places of those that failed, in ascending order: they are all zeros, and the others
/// are filled.
pub(crate) fn fill(
    py: Python<'_>,
    rows: Vec<(BatchRow<'_>, &mut [u32])>,
    threads: NonZeroUsize,
) -> PyResult<Vec<(usize, RowErrorKind)>> {
    let num_rows = rows.len();
    let mut rows = rows.into_iter();
    let mut failed = process::detach(py, || {
        let (begun, mut failed) = (Instant::now(), Vec::new());
        while (threads.get() == 1 || begun.elapsed() < ALONE)
            && let Some((what, words)) = rows.next()
        {
            if let BatchRow::Mask { constraint, state, lengths } = what
                && let Err(error) = fill_row(constraint, state, words, lengths)
            {
                failed.push((num_rows - rows.len() - 1, error));
            }
        }
        failed
    });
    if rows.len() > 0 {
        let (alone, mut filler) = (num_rows - rows.len(), taken(threads)?);
        let (filler, rest) = process::detach(py, move || {
            let rest = filler.fill_each(rows, &MaskBudget::unlimited());
            (filler, rest)
        });
        put_back(filler);
        failed.extend(rest.into_iter().map(|error| (alone + error.row, error.kind)));
    }
    Ok(failed)
}

fn taken(threads: NonZeroUsize) -> PyResult<BatchFiller> {
    let known = with_fillers(|kept| kept.get_mut(&threads.get()).and_then(Vec::pop));
    let filler = known.map_or_else(|| BatchFiller::new(threads), Ok).map_err(|error| {
        PyRuntimeError::new_err(format!("{threads} threads could not be started: {error}"))
    })?;
    Ok(filler)
}

fn put_back(filler: BatchFiller) {
    with_fillers(|kept| kept.entry(filler.num_threads()).or_default().push(filler));
}

/// Lends the fillers of this process: threads do not survive a fork.
fn with_fillers<R>(work: impl FnOnce(&mut Fillers) -> R) -> R {
    let mut kept = FILLERS.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.as_ref().and_then(OfProcess::get).is_none() {
        *kept = None;
    }
    let kept = kept.get_or_insert_with(|| OfProcess::new(Fillers::new()));
    work(kept.get_mut().expect("made in this process"))
}

/// Numbers of rows, `count` of them from 0 on unless given.
pub(crate) fn row_numbers(
    mask: &MaskRows,
    given: Option<&Bound<'_, PyAny>>,
    count: usize,
    what: &str,
) -> PyResult<Vec<usize>> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        if count > mask.num_rows() {
            return Err(PyValueError::new_err(format!(
                "{count} {what} need as many rows, but the bitmask has {}; palmette.allocate_bitmask({count}, …) makes one",
                mask.num_rows()
            )));
        }
        return Ok((0..count).collect());
    };
    let rows = given.try_iter()?.map(|row| mask.row_index(row?.extract()?));
    let rows = rows.collect::<PyResult<Vec<_>>>()?;
    if rows.len() != count {
        return Err(PyValueError::new_err(format!(
            "there are {count} {what} and {} rows; give a row for each",
            rows.len()
        )));
    }
    Ok(rows)
}

/// Positions of sequences, each with its grammar.
type States = Vec<Option<(Arc<GrammarConstraint>, GrammarState)>>;

fn states_of(matchers: &Bound<'_, PyAny>) -> PyResult<States> {
    let py = matchers.py();
    let states = matchers.try_iter()?.map(|matcher| {
        let matcher = matcher?;
        if matcher.is_none() {
            return Ok(None);
        }
        let matcher = matcher.cast::<Matcher>().map_err(|_| {
            let given = matcher.get_type().qualname();
            PyTypeError::new_err(format!(
                "matchers are palmette.Matcher, or None for a row that stays as it is; one is {}",
                given.map_or_else(|_| "something else".to_owned(), |name| name.to_string())
            ))
        })?;
        let matcher = matcher.get();
        Ok(Some((Arc::clone(matcher.constraint()), matcher.state(py))))
    });
    states.collect()
}

/// Fills a row for each of these, and says whether any of them forbids anything.
fn fill_states(
    py: Python<'_>,
    mask: &mut MaskRows,
    rows: &[usize],
    states: &States,
    lengths: &[Option<Lengths>],
    threads: Option<isize>,
) -> PyResult<bool> {
    for (constraint, _) in states.iter().flatten() {
        mask.check_width(constraint.num_tokens())?;
    }
    let threads = num_threads(threads, rows.len())?;
    let lengths = lengths.iter().copied().chain(std::iter::repeat(None));
    let what = states.iter().zip(lengths).map(|(state, lengths)| match state {
        Some((constraint, state)) => BatchRow::new(constraint, state).ending_within(lengths),
        None => BatchRow::Untouched,
    });
    let each = what.zip(mask.rows_mut(rows)?).collect();
    if let Some((place, error)) = fill(py, each, threads)?.first() {
        return Err(errors::of_row(py, rows[*place], error));
    }
    let mut sizes = rows.iter().zip(states).filter_map(|(&row, state)| {
        let (constraint, _) = state.as_ref()?;
        Some((row, constraint.num_tokens()))
    });
    Ok(sizes.any(|(row, num_tokens)| forbids(mask.row(row), num_tokens)))
}

/// Writes the masks of many sequences, each into its row of a bitmask, on several threads and
/// without the interpreter's lock.
///
/// Matchers may be of different grammars and vocabularies; ``None`` leaves a row as it is.
/// ``rows[i]`` is the row of ``matchers[i]``; left out, row ``i``. ``threads`` left out are as many
/// as the process may run at once. ``tokens_left[i]`` and ``tokens_needed[i]`` are those of
/// ``Matcher.fill_mask``, ``None`` for a text that may be cut off or end at once; the ``row`` of
/// ``TooFewTokens`` and ``TooManyTokens`` is the first one that fails, and the others are filled.
/// ``False``: no row forbids anything.
#[pyfunction]
#[pyo3(signature = (matchers, bitmask, rows=None, threads=None, *, tokens_left=None, tokens_needed=None))]
pub(crate) fn fill_masks(
    py: Python<'_>,
    matchers: &Bound<'_, PyAny>,
    bitmask: &Bound<'_, PyAny>,
    rows: Option<&Bound<'_, PyAny>>,
    threads: Option<isize>,
    tokens_left: Option<&Bound<'_, PyAny>>,
    tokens_needed: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    let states = states_of(matchers)?;
    let lengths = lengths_of_rows(tokens_left, tokens_needed, states.len())?;
    let mut mask = MaskRows::of(bitmask)?;
    let rows = row_numbers(&mask, rows, states.len(), "matchers")?;
    fill_states(py, &mut mask, &rows, &states, &lengths, threads)
}

/// Lengths that the text of each of the matchers may still have.
fn lengths_of_rows(
    left: Option<&Bound<'_, PyAny>>,
    needed: Option<&Bound<'_, PyAny>>,
    count: usize,
) -> PyResult<Vec<Option<Lengths>>> {
    let left = numbers_of_rows(left, count, "tokens_left", "may be cut off")?;
    let needed = numbers_of_rows(needed, count, "tokens_needed", "may end at once")?;
    left.into_iter().zip(needed).map(|(left, needed)| lengths_of(left, needed)).collect()
}

/// A number for each of the matchers; none for all where nothing is given.
fn numbers_of_rows(
    given: Option<&Bound<'_, PyAny>>,
    count: usize,
    name: &str,
    without: &str,
) -> PyResult<Vec<Option<isize>>> {
    let Some(given) = given.filter(|given| !given.is_none()) else { return Ok(vec![None; count]) };
    let numbers = given.try_iter()?.map(|number| number?.extract::<Option<isize>>());
    let numbers = numbers.collect::<PyResult<Vec<_>>>()?;
    if numbers.len() != count {
        return Err(PyValueError::new_err(format!(
            "there are {count} matchers and {} numbers of {name}; give one for each, None for a text that {without}",
            numbers.len()
        )));
    }
    Ok(numbers)
}

/// Writes the masks along drafts: of ``matchers[i]`` the mask before its draft, and after each
/// token of ``drafts[i]``, into ``len(drafts[i]) + 1`` rows.
///
/// They begin at row ``rows[i]``; left out, each behind those of the one before. Gives how many
/// tokens of each draft may be kept; rows behind a token that may not follow, or behind an end
/// token, are all 0. Matchers stay where they are. ``tokens_left[i]`` and ``tokens_needed[i]`` are
/// those of the mask before the draft, and one less after each of its tokens.
#[pyfunction]
#[pyo3(signature = (matchers, drafts, bitmask, rows=None, threads=None, *, tokens_left=None, tokens_needed=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn fill_masks_with_drafts(
    py: Python<'_>,
    matchers: &Bound<'_, PyAny>,
    drafts: &Bound<'_, PyAny>,
    bitmask: &Bound<'_, PyAny>,
    rows: Option<&Bound<'_, PyAny>>,
    threads: Option<isize>,
    tokens_left: Option<&Bound<'_, PyAny>>,
    tokens_needed: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<usize>> {
    let drafts = drafts.try_iter()?.map(|draft| numbers_of(&draft?));
    let drafts = drafts.collect::<PyResult<Vec<_>>>()?;
    let trees = drafts.into_iter().map(|tokens| {
        let parents = (0..tokens.len()).map(|node| node.checked_sub(1)).collect();
        (tokens, parents)
    });
    let rows = DraftRows { bitmask, rows, tokens_left, tokens_needed };
    let kept = fill_trees(py, matchers, trees.collect(), "drafts", rows, threads)?;
    Ok(kept.iter().map(|kept| kept.iter().take_while(|&&kept| kept).count()).collect())
}

/// Writes the masks at the tokens of draft trees: of ``matchers[i]`` the mask before its tree, and
/// after each token of ``trees[i]``, into one row more than there are tokens.
///
/// A tree is ``(tokens, parents)``: each token stands behind the one at its parent's place, which
/// comes before it, or behind the text where the parent is -1. Gives for each tree which of its
/// tokens may be kept; what stands behind one that may not be is not kept either, and rows behind
/// those, or behind an end token, are all 0. Matchers stay where they are; what drafts have in
/// common is walked once. Other arguments are those of ``fill_masks_with_drafts``.
#[pyfunction]
#[pyo3(signature = (matchers, trees, bitmask, rows=None, threads=None, *, tokens_left=None, tokens_needed=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn fill_masks_with_trees(
    py: Python<'_>,
    matchers: &Bound<'_, PyAny>,
    trees: &Bound<'_, PyAny>,
    bitmask: &Bound<'_, PyAny>,
    rows: Option<&Bound<'_, PyAny>>,
    threads: Option<isize>,
    tokens_left: Option<&Bound<'_, PyAny>>,
    tokens_needed: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Vec<bool>>> {
    let tree = |tree: PyResult<Bound<'_, PyAny>>| {
        let (tokens, parents): (Bound<'_, PyAny>, Bound<'_, PyAny>) = tree?.extract()?;
        numbered_tree(&tokens, &parents)
    };
    let trees = trees.try_iter()?.map(tree).collect::<PyResult<Vec<_>>>()?;
    let rows = DraftRows { bitmask, rows, tokens_left, tokens_needed };
    fill_trees(py, matchers, trees, "trees", rows, threads)
}

/// Rows that drafts' masks are written into, and the lengths of their texts, as Python has them.
#[derive(Clone, Copy)]
struct DraftRows<'a, 'py> {
    bitmask: &'a Bound<'py, PyAny>,
    rows: Option<&'a Bound<'py, PyAny>>,
    tokens_left: Option<&'a Bound<'py, PyAny>>,
    tokens_needed: Option<&'a Bound<'py, PyAny>>,
}

/// Fills the rows of draft trees; gives which tokens of each may be kept.
fn fill_trees(
    py: Python<'_>,
    matchers: &Bound<'_, PyAny>,
    trees: Vec<NumberedTree>,
    what: &str,
    DraftRows { bitmask, rows, tokens_left, tokens_needed }: DraftRows<'_, '_>,
    threads: Option<isize>,
) -> PyResult<Vec<Vec<bool>>> {
    let states = states_of(matchers)?;
    let before = lengths_of_rows(tokens_left, tokens_needed, states.len())?;
    if trees.len() != states.len() {
        return Err(PyValueError::new_err(format!(
            "there are {} matchers and {} {what}; give one for each, an empty one where there is none",
            states.len(),
            trees.len()
        )));
    }
    let mut mask = MaskRows::of(bitmask)?;
    let total: usize = trees.iter().map(|(tokens, _)| tokens.len() + 1).sum();
    let firsts = match rows.filter(|rows| !rows.is_none()) {
        Some(given) => row_numbers(&mask, Some(given), states.len(), "matchers")?,
        None => {
            row_numbers(&mask, None, total, "masks (one a matcher and one a draft token)")?;
            let before = trees.iter().scan(0, |next, (tokens, _)| {
                let first = *next;
                *next += tokens.len() + 1;
                Some(first)
            });
            before.collect()
        }
    };
    let (mut all, mut numbers, mut kept) = (States::new(), Vec::new(), Vec::new());
    let (mut after, mut lengths) = (Vec::new(), Vec::new());
    let each = states.into_iter().zip(trees).zip(firsts).zip(before);
    for (((state, (tokens, parents)), first), before) in each {
        let last = first + tokens.len();
        mask.row_index(isize::try_from(last).unwrap_or(isize::MAX))?;
        numbers.extend(first..=last);
        let Some((constraint, state)) = state else {
            all.extend((first..=last).map(|_| None));
            lengths.extend((first..=last).map(|_| None));
            kept.push(vec![true; tokens.len()]);
            continue;
        };
        mask.check_width(constraint.num_tokens())?;
        let tree = checked_tree((tokens, parents), constraint.num_tokens())?;
        let states =
            with_scratch(|scratch| constraint.states_after(&state, &tree, before, scratch))
                .map_err(|error| errors::of_commit(py, &error))?;
        let at = |taken| before?.after(taken).or(Some(Lengths::within(0)));
        lengths.extend([0].into_iter().chain(tree.depths()).map(at));
        kept.push(states.iter().map(Option::is_some).collect());
        after.extend((first + 1..).zip(&states).filter(|(_, at)| at.is_none()).map(|(row, _)| row));
        all.push(Some((Arc::clone(&constraint), state)));
        all.extend(states.into_iter().map(|at| at.map(|state| (Arc::clone(&constraint), state))));
    }
    fill_states(py, &mut mask, &numbers, &all, &lengths, threads)?;
    for row in after {
        mask.row_mut(row).fill(0);
    }
    Ok(kept)
}
