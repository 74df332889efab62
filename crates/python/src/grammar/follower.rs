//! `palmette.Follower`: positions of rows that an engine reorders without saying how, found by
//! their contents.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use palmette_core::{CommitError, Constraint, TokenId};
use palmette_grammar::{
    BatchRow, GrammarConstraint, GrammarScratch, GrammarState, RecognizerError, RowErrorKind,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::batch;
use super::compiled::CompiledGrammar;
use super::matcher::{lengths_of, with_scratch};
use super::vocabulary::tokens_of;
use crate::buffers::{IntMatrix, MaskRows};
use crate::errors;
use crate::process;

/// Follows rows of tokens that an engine forks, drops and reorders between two calls, as beam
/// search does.
///
/// A row goes on from the row of the last call that equals it up to its new tokens: equal rows have
/// equal states, so that any of them will do, and a fork costs a few counts. Rows are found by a
/// hash and then compared token by token. Without such a row, a row is what the row at its place
/// was, rolled back to what both begin with; and where they share nothing it is read from its
/// beginning. So what a call writes depends on its rows alone.
#[pyclass(module = "palmette", frozen)]
pub(crate) struct Follower {
    compiled: Py<CompiledGrammar>,
    constraint: Arc<GrammarConstraint>,
    num_rows: Option<usize>,
    last: Mutex<Rows>,
}

/// The rows of a call, all of them equally long, with their positions.
#[derive(Default)]
struct Rows {
    len: usize,
    /// `[rows, len]`.
    tokens: Vec<i64>,
    /// `None`: a token was refused.
    states: Vec<Option<GrammarState>>,
    by_hash: HashMap<u64, Vec<usize>>,
    /// Rows that were read from their beginning, and rows that had a forerunner, since the follower
    /// was made.
    replayed: u64,
    followed: u64,
}

impl Rows {
    fn tokens(&self, row: usize) -> &[i64] {
        &self.tokens[row * self.len..][..self.len]
    }

    /// The row that equals `tokens`.
    fn find(&self, hash: u64, tokens: &[i64]) -> Option<usize> {
        let alike = self.by_hash.get(&hash)?;
        alike.iter().copied().find(|&row| self.tokens(row) == tokens)
    }
}

fn hash(tokens: &[i64]) -> u64 {
    tokens.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &token| {
        (hash ^ token as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    })
}

/// A state after more tokens; `None` once one of them is refused.
fn after(
    constraint: &GrammarConstraint,
    mut state: GrammarState,
    tokens: &[i64],
    scratch: &mut GrammarScratch,
) -> Result<Option<GrammarState>, CommitError<RecognizerError>> {
    let num_tokens = constraint.num_tokens();
    for &token in tokens {
        let token = u32::try_from(token).ok().filter(|&token| (token as usize) < num_tokens);
        let Some(token) = token else { return Ok(None) };
        match constraint.commit(&mut state, TokenId(token), scratch) {
            Ok(()) => {}
            Err(CommitError::NotAllowed { .. } | CommitError::UnknownToken { .. }) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(state))
}

/// The position of the row at this place in the last call, taken back to the tokens that it shares
/// with `tokens`, and the number of those.
fn rolled_back(
    constraint: &GrammarConstraint,
    last: &Rows,
    row: usize,
    tokens: &[i64],
) -> Option<(GrammarState, usize)> {
    let mut state = last.states.get(row)?.clone()?;
    let shared = last.tokens(row).iter().zip(tokens).take_while(|(a, b)| a == b).count();
    if shared == 0 {
        return None;
    }
    constraint.rollback(&mut state, last.len - shared).ok()?;
    Some((state, shared))
}

/// The positions of these rows, from those of the last call.
fn follow(
    constraint: &GrammarConstraint,
    last: &Rows,
    suffixes: &IntMatrix,
    scratch: &mut GrammarScratch,
) -> Result<Rows, CommitError<RecognizerError>> {
    let (num_rows, len) = (suffixes.num_rows(), suffixes.num_cols());
    let mut rows =
        Rows { len, replayed: last.replayed, followed: last.followed, ..Rows::default() };
    let mut tokens = Vec::with_capacity(len);
    for row in 0..num_rows {
        suffixes.read_row(row, &mut tokens);
        let key = hash(&tokens);
        let state = if let Some(equal) = rows.find(key, &tokens) {
            rows.states[equal].clone()
        } else {
            let before = tokens.get(..last.len).map(|before| (hash(before), before));
            match before.and_then(|(key, before)| last.find(key, before)) {
                Some(parent) => {
                    rows.followed += 1;
                    let parent = last.states[parent].clone();
                    let new = &tokens[last.len..];
                    match parent {
                        Some(parent) => after(constraint, parent, new, scratch)?,
                        None => None,
                    }
                }
                None => match rolled_back(constraint, last, row, &tokens) {
                    Some((state, shared)) => {
                        rows.followed += 1;
                        after(constraint, state, &tokens[shared..], scratch)?
                    }
                    None => {
                        rows.replayed += 1;
                        after(constraint, constraint.start(), &tokens, scratch)?
                    }
                },
            }
        };
        rows.by_hash.entry(key).or_default().push(row);
        rows.tokens.extend_from_slice(&tokens);
        rows.states.push(state);
    }
    Ok(rows)
}

#[pymethods]
impl Follower {
    /// ``rows``: the number of rows that every call must have; left out, any. ``ends``: the tokens
    /// that end a text instead of the vocabulary's.
    #[new]
    #[pyo3(signature = (compiled, rows=None, *, ends=None))]
    fn new(
        compiled: &Bound<'_, CompiledGrammar>,
        rows: Option<usize>,
        ends: Option<Vec<i64>>,
    ) -> PyResult<Self> {
        let constraint = &compiled.get().constraint;
        let constraint = match ends {
            Some(ends) => {
                Arc::new(constraint.with_ends(tokens_of(&ends, constraint.num_tokens())?))
            }
            None => Arc::clone(constraint),
        };
        let compiled = compiled.clone().unbind();
        Ok(Self { compiled, constraint, num_rows: rows, last: Mutex::default() })
    }

    /// Writes the masks of rows of tokens: ``suffixes`` is an integer array ``[rows, n]``, of each
    /// row what was generated so far, without the prompt.
    ///
    /// A row with a token that was not allowed, is negative or not in the vocabulary gets a mask of
    /// zeros, as has one that ended. Row ``i`` is written to row ``rows[i]`` of the bitmask; left
    /// out, row ``i``. With ``tokens_left`` the texts end in time, and with ``tokens_needed`` not
    /// before, as under ``Matcher.fill_mask``; a row that cannot gets a mask of zeros.
    #[pyo3(signature = (suffixes, bitmask, rows=None, threads=None, *, tokens_left=None, tokens_needed=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn advance(
        &self,
        py: Python<'_>,
        suffixes: &Bound<'_, PyAny>,
        bitmask: &Bound<'_, PyAny>,
        rows: Option<&Bound<'_, PyAny>>,
        threads: Option<isize>,
        tokens_left: Option<isize>,
        tokens_needed: Option<isize>,
    ) -> PyResult<()> {
        let lengths = lengths_of(tokens_left, tokens_needed)?;
        let suffixes = IntMatrix::of(suffixes, "suffixes")?;
        let num_rows = suffixes.num_rows();
        if let Some(expected) = self.num_rows.filter(|&expected| expected != num_rows) {
            return Err(PyValueError::new_err(format!(
                "suffixes have {num_rows} rows, but the follower was made for {expected}"
            )));
        }
        let mut mask = MaskRows::of(bitmask)?;
        mask.check_width(self.constraint.num_tokens())?;
        let numbers = batch::row_numbers(&mask, rows, num_rows, "rows of suffixes")?;
        let threads = batch::num_threads(threads, num_rows)?;
        let followed = process::detach(py, || {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = with_scratch(|scratch| follow(&self.constraint, &last, &suffixes, scratch))?;
            let states = rows.states.clone();
            *last = rows;
            Ok(states)
        });
        let states = followed.map_err(|error| errors::of_commit(py, &error))?;
        let mut each = Vec::with_capacity(num_rows);
        for (words, state) in mask.rows_mut(&numbers)?.into_iter().zip(&states) {
            let what = match state {
                Some(state) => BatchRow::new(&self.constraint, state).ending_within(lengths),
                None => {
                    words.fill(0);
                    BatchRow::Untouched
                }
            };
            each.push((what, words));
        }
        let failed = batch::fill(py, each, threads)?;
        // A row without a way is one that an engine carries along, as one that was refused.
        match failed.into_iter().find(|(_, error)| !matches!(error, RowErrorKind::Ending(_))) {
            Some((place, error)) => Err(errors::of_row(py, numbers[place], &error)),
            None => Ok(()),
        }
    }

    /// True for each row of the last call of which all tokens were allowed.
    #[getter]
    fn alive(&self, py: Python<'_>) -> Vec<bool> {
        self.asked(py, |state| state.is_some())
    }

    /// True for each row of the last call that ended: its last token is an end token.
    #[getter]
    fn ended(&self, py: Python<'_>) -> Vec<bool> {
        self.asked(py, |state| state.is_some_and(GrammarState::ended))
    }

    /// Rows that were read from their beginning, and rows that went on from one of the call before,
    /// so far: equal rows of a call count once.
    #[getter]
    fn statistics(&self, py: Python<'_>) -> (u64, u64) {
        process::detach(py, || {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            (last.replayed, last.followed)
        })
    }

    /// Forgets the rows of the last call.
    fn reset(&self, py: Python<'_>) {
        process::detach(py, || {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Rows::default()
        });
    }

    /// The compiled grammar.
    #[getter]
    fn compiled(&self, py: Python<'_>) -> Py<CompiledGrammar> {
        self.compiled.clone_ref(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let rows = process::detach(py, || {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.states.len()
        });
        format!("<palmette.Follower of {rows} rows>")
    }
}

impl Follower {
    fn asked(
        &self,
        py: Python<'_>,
        question: impl Fn(Option<&GrammarState>) -> bool + Send + Sync,
    ) -> Vec<bool> {
        process::detach(py, || {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.states.iter().map(|state| question(state.as_ref())).collect()
        })
    }
}
