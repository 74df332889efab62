//! `palmette.Matcher`: one sequence under a grammar, followed token by token.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use palmette_core::{CommitError, Constraint, Lengths, TokenId, mask};
use palmette_grammar::{
    GrammarConstraint, GrammarScratch, GrammarState, MaskBudget, RecognizerError, RowErrorKind,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyAny, PyBytes};

use super::compiled::CompiledGrammar;
use super::draft_trees::{checked_tree, numbered_tree};
use super::members::Member;
use super::steps::{Step, Steps};
use super::vocabulary::{numbers_of, token_of, tokens_of};
use crate::buffers::{MaskRows, new_array};
use crate::errors::{self, Error};
use crate::process;

/// A sequence being written under a grammar: what may follow, and what has been committed.
///
/// A fork costs a few counts; forks do not see each other. Every call that fails leaves it as it
/// was. An accepted end token is a commit, which ``rollback`` takes back; after it nothing may
/// follow.
#[pyclass(module = "palmette", frozen)]
pub(crate) struct Matcher {
    compiled: Py<CompiledGrammar>,
    constraint: Arc<GrammarConstraint>,
    /// Locked for as long as a commit takes, never while a mask is filled.
    place: Mutex<Place>,
}

#[derive(Clone)]
struct Place {
    state: GrammarState,
    steps: Steps,
}

thread_local! {
    /// Memory that a thread lends to whatever grammar it works for; what is in it between two calls
    /// does not matter.
    static SCRATCH: RefCell<GrammarScratch> = RefCell::default();
}

/// Lends this thread's scratch.
pub(crate) fn with_scratch<R>(work: impl FnOnce(&mut GrammarScratch) -> R) -> R {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => work(&mut scratch),
        // Nothing here calls back into Python while it is lent; a fresh one is as good.
        Err(_) => work(&mut GrammarScratch::default()),
    })
}

/// Writes the mask of a state into a row that is wide enough, all zeros past the vocabulary; under
/// it the text ends after tokens of one of these lengths, where there are some.
///
/// # Errors
/// When a limit of the grammar is exceeded, or the tokens are too few; the row then denies all.
pub(crate) fn fill_row(
    constraint: &GrammarConstraint,
    state: &GrammarState,
    row: &mut [u32],
    lengths: Option<Lengths>,
) -> Result<(), RowErrorKind> {
    let (row, past) = row.split_at_mut(mask::num_words(constraint.num_tokens()));
    past.fill(0);
    let work = MaskBudget::unlimited();
    with_scratch(|scratch| match lengths {
        None => Ok(constraint.fill_mask_within(state, scratch, row, &work)?),
        Some(lengths) => {
            Ok(constraint.fill_ending_mask_within(state, lengths, scratch, row, &work)?)
        }
    })
}

/// Lengths that a text may still have, from tokens that are left to it and needed.
pub(crate) fn lengths_of(left: Option<isize>, needed: Option<isize>) -> PyResult<Option<Lengths>> {
    let number = |name, given: Option<isize>| {
        let number = given.map(usize::try_from).transpose();
        number.map_err(|_| {
            let given = given.unwrap_or_default();
            PyValueError::new_err(format!("{name} is {given}; it must be 0 or more"))
        })
    };
    Ok(Lengths::of(number("tokens_needed", needed)?, number("tokens_left", left)?))
}

/// True when a row forbids any token: of the vocabulary, or one past it that has a place in the
/// row's further words.
pub(crate) fn forbids(row: &[u32], num_tokens: usize) -> bool {
    let (whole, rest) = (num_tokens / mask::WORD_TOKENS, num_tokens % mask::WORD_TOKENS);
    let last = row.get(whole).is_none_or(|&word| rest == 0 || word == (1 << rest) - 1);
    !(row.len() == mask::num_words(num_tokens)
        && last
        && row[..whole].iter().all(|&word| word == u32::MAX))
}

impl Matcher {
    pub(crate) fn new(compiled: Py<CompiledGrammar>, constraint: Arc<GrammarConstraint>) -> Self {
        let place = Place { state: constraint.start(), steps: Steps::default() };
        Self { compiled, constraint, place: Mutex::new(place) }
    }

    /// The grammar with this sequence's ends.
    pub(crate) fn constraint(&self) -> &Arc<GrammarConstraint> {
        &self.constraint
    }

    /// The position by now.
    pub(crate) fn state(&self, py: Python<'_>) -> GrammarState {
        self.locked(py).state.clone()
    }

    fn locked(&self, py: Python<'_>) -> std::sync::MutexGuard<'_, Place> {
        // A commit that panicked left the state as it was.
        self.place.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn num_tokens(&self) -> usize {
        self.constraint.num_tokens()
    }

    /// Commits tokens one after another, or none of them.
    fn commit_each(
        &self,
        place: &mut Place,
        tokens: &[TokenId],
        scratch: &mut GrammarScratch,
    ) -> Result<(), CommitError<RecognizerError>> {
        let mut ahead = place.clone();
        for &token in tokens {
            self.constraint.commit(&mut ahead.state, token, scratch)?;
            ahead.steps.push(Step::Token(token.0));
        }
        *place = ahead;
        Ok(())
    }
}

/// A token, and whether it may follow: an error only for a limit.
fn accepted<T>(py: Python<'_>, result: Result<T, CommitError<RecognizerError>>) -> PyResult<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(CommitError::NotAllowed { .. }) => Ok(false),
        Err(error) => Err(errors::of_commit(py, &error)),
    }
}

#[pymethods]
impl Matcher {
    /// Writes the tokens that may follow into a row of a bitmask: int32 ``[rows, words]`` in host
    /// memory, bit ``t % 32`` of word ``t // 32`` is token ``t``, bits past the vocabulary 0. All
    /// are 0 when nothing may follow.
    ///
    /// With ``tokens_left`` the text ends in time: only tokens may follow after which it can be
    /// whole within that many, the next one among them and end tokens left out. ``TooFewTokens``
    /// where no way is known; from ``fewest_tokens()`` on there is one, and it stays. With
    /// ``tokens_needed`` it does not end before so many: ``TooManyTokens`` where no text is known
    /// that is so long (see ``has_way``).
    ///
    /// ``False``: nothing is forbidden, so the mask need not be applied.
    #[pyo3(signature = (bitmask, row=0, *, tokens_left=None, tokens_needed=None))]
    fn fill_mask(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        row: isize,
        tokens_left: Option<isize>,
        tokens_needed: Option<isize>,
    ) -> PyResult<bool> {
        let lengths = lengths_of(tokens_left, tokens_needed)?;
        let num_tokens = self.num_tokens();
        let mut rows = MaskRows::of(bitmask)?;
        rows.check_width(num_tokens)?;
        let row = rows.row_index(row)?;
        let state = self.state(py);
        let words = rows.row_mut(row);
        let filled = process::detach(py, || {
            fill_row(&self.constraint, &state, words, lengths)?;
            Ok(forbids(words, num_tokens))
        });
        filled.map_err(|error| errors::of_mask(py, &error))
    }

    /// Tokens of the shortest way to the end of the text that is known, end tokens left out; 0
    /// where it is whole, ``None`` where no way is known.
    fn fewest_tokens(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let state = self.state(py);
        let found = process::detach(py, || {
            with_scratch(|scratch| self.constraint.fewest_tokens(&state, scratch))
        });
        found.map_err(|error| errors::of_recognizer(py, &error))
    }

    /// ``True`` where a text is known that is whole after ``tokens_needed`` to ``tokens_left`` more
    /// tokens, end tokens left out; then masks of these numbers keep one.
    #[pyo3(signature = (*, tokens_left=None, tokens_needed=None))]
    fn has_way(
        &self,
        py: Python<'_>,
        tokens_left: Option<isize>,
        tokens_needed: Option<isize>,
    ) -> PyResult<bool> {
        let lengths =
            lengths_of(tokens_left, tokens_needed)?.unwrap_or(Lengths::within(usize::MAX));
        let state = self.state(py);
        let found = process::detach(py, || {
            with_scratch(|scratch| self.constraint.has_way(&state, lengths, scratch))
        });
        found.map_err(|error| errors::of_recognizer(py, &error))
    }

    /// The shortest way to the end of the text that is known: its tokens, and their bytes. ``None``
    /// where no way is known.
    fn shortest_completion<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Vec<u32>, Bound<'py, PyBytes>)>> {
        let state = self.state(py);
        let found = process::detach(py, || {
            with_scratch(|scratch| {
                self.constraint.shortest_completion(&state, scratch, &MaskBudget::unlimited())
            })
        });
        let found = found.map_err(|error| errors::of_recognizer(py, &error))?;
        Ok(found.map(|way| {
            let tokens = way.tokens.iter().map(|token| token.0).collect();
            (tokens, PyBytes::new(py, &way.bytes))
        }))
    }

    /// ``fill_mask`` by the name that llguidance and XGrammar have for it.
    #[pyo3(signature = (bitmask, index=0))]
    fn fill_next_token_bitmask(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        index: isize,
    ) -> PyResult<bool> {
        self.fill_mask(py, bitmask, index, None, None)
    }

    /// Moves over a token; ``NotAllowed`` when it may not follow.
    fn commit(&self, py: Python<'_>, token: i64) -> PyResult<()> {
        let token = token_of(token, self.num_tokens())?;
        let mut place = self.locked(py);
        let state = &mut place.state;
        with_scratch(|scratch| self.constraint.commit(state, token, scratch))
            .map_err(|error| errors::of_commit(py, &error))?;
        place.steps.push(Step::Token(token.0));
        Ok(())
    }

    /// Moves over a token and gives ``True``, or ``False`` when it may not follow.
    fn try_commit(&self, py: Python<'_>, token: i64) -> PyResult<bool> {
        let token = token_of(token, self.num_tokens())?;
        let mut place = self.locked(py);
        let state = &mut place.state;
        let result = with_scratch(|scratch| self.constraint.commit(state, token, scratch));
        let moved = accepted(py, result)?;
        if moved {
            place.steps.push(Step::Token(token.0));
        }
        Ok(moved)
    }

    /// Moves over several tokens, or over none of them: ``NotAllowed`` names the first that may not
    /// follow.
    fn commit_all(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<()> {
        let tokens = tokens_of(&numbers_of(tokens)?, self.num_tokens())?;
        let result = process::detach(py, || {
            let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
            with_scratch(|scratch| self.commit_each(&mut place, &tokens, scratch))
        });
        result.map_err(|error| errors::of_commit(py, &error))
    }

    /// Number of these tokens that could be committed, one after another; nothing is.
    fn accepted_prefix(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        let tokens = tokens_of(&numbers_of(tokens)?, self.num_tokens())?;
        let state = self.state(py);
        let result = process::detach(py, || {
            with_scratch(|scratch| self.constraint.accepted_prefix(&state, &tokens, scratch))
        });
        result.map_err(|error| errors::of_commit(py, &error))
    }

    /// Tokens of a draft tree that could be committed, a bool for each; nothing is. Each stands
    /// behind the one at its parent's place, which comes before it, or behind the text where the
    /// parent is -1; what stands behind one that may not follow may not either.
    fn accepted_tree(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        parents: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<bool>> {
        let tree = checked_tree(numbered_tree(tokens, parents)?, self.num_tokens())?;
        let state = self.state(py);
        let result = process::detach(py, || {
            with_scratch(|scratch| self.constraint.states_after(&state, &tree, None, scratch))
        });
        let states = result.map_err(|error| errors::of_commit(py, &error))?;
        Ok(states.iter().map(Option::is_some).collect())
    }

    /// Deprecated: ``accepted_prefix``.
    fn validate(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<usize> {
        errors::warn_renamed(py, "Matcher.validate", "Matcher.accepted_prefix")?;
        self.accepted_prefix(py, tokens)
    }

    /// Moves over text that no token stands for, such as the part of the answer that is in the
    /// prompt; one commit for ``rollback``.
    fn commit_bytes(&self, py: Python<'_>, text: &[u8]) -> PyResult<()> {
        let result = process::detach(py, || {
            let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
            let before = place.state.num_commits();
            let state = &mut place.state;
            let result = with_scratch(|scratch| self.constraint.commit_bytes(state, text, scratch));
            if place.state.num_commits() > before {
                place.steps.push(Step::Bytes(text.into()));
            }
            (result, before)
        });
        let (result, position) = result;
        result.map_err(|error| errors::of_bytes(py, &error, position))
    }

    /// Takes back the last ``n`` commits.
    #[pyo3(signature = (n=1))]
    fn rollback(&self, py: Python<'_>, n: isize) -> PyResult<()> {
        let count = usize::try_from(n).map_err(|_| {
            PyValueError::new_err(format!("n is {n}; a rollback takes back 0 commits or more"))
        })?;
        let mut place = self.locked(py);
        self.constraint
            .rollback(&mut place.state, count)
            .map_err(|error| Error::new_err(error.to_string()))?;
        place.steps.pop(count);
        Ok(())
    }

    /// Begins again.
    fn reset(&self, py: Python<'_>) {
        let start = Place { state: self.constraint.start(), steps: Steps::default() };
        *self.locked(py) = start;
    }

    /// Number of commits that can be taken back.
    #[getter]
    fn position(&self, py: Python<'_>) -> usize {
        self.locked(py).state.num_commits()
    }

    /// True when the text so far is in the language: it may end here, or has ended.
    #[getter]
    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        let state = self.state(py);
        let accepting = with_scratch(|scratch| self.constraint.is_accepting(&state, scratch));
        accepting.map_err(|error| errors::of_recognizer(py, &error))
    }

    /// True once an end token was committed.
    #[getter]
    fn is_ended(&self, py: Python<'_>) -> bool {
        self.locked(py).state.ended()
    }

    /// The tokens that end this sequence, ascending.
    #[getter]
    fn ends(&self) -> Vec<u32> {
        self.constraint.ends().iter().map(|end| end.0).collect()
    }

    /// The compiled grammar.
    #[getter]
    fn compiled(&self, py: Python<'_>) -> Py<CompiledGrammar> {
        self.compiled.clone_ref(py)
    }

    /// The members of the sets that the grammar is bound to, as far as the text has them, in their
    /// order; none where nothing is bound. A member counts where it has ended, or where the text
    /// may end with it. The cost is a step for each byte of the text.
    fn members(&self, py: Python<'_>) -> PyResult<Vec<Member>> {
        let Some(bound) = self.compiled.get().bound() else { return Ok(Vec::new()) };
        let steps = self.locked(py).steps.all();
        let found = process::detach(py, || {
            let vocabulary = self.constraint.vocabulary();
            let text = |token: TokenId| vocabulary.text(token);
            let is_end = |token: &TokenId| self.constraint.ends().contains(token);
            let tokens = steps.iter().map(|step| match step {
                Step::Token(token) => Some(TokenId(*token)),
                Step::Bytes(_) => None,
            });
            if let Some(mut tokens) = tokens.collect::<Option<Vec<_>>>() {
                tokens.retain(|token| !is_end(token));
                return bound.members_of_tokens(&tokens, |token| text(token).len());
            }
            // Text that was committed is no tokens: a semantic ID in others is none of its bytes.
            let bytes = steps.iter().flat_map(|step| match step {
                Step::Token(token) if is_end(&TokenId(*token)) => &[],
                Step::Token(token) => text(TokenId(*token)),
                Step::Bytes(bytes) => bytes,
            });
            let bytes: Vec<u8> = bytes.copied().collect();
            with_scratch(|scratch| bound.members_with(&bytes, scratch))
        });
        let members = found.map_err(|error| errors::of_recognizer(py, &error))?;
        Ok(members.into_iter().flatten().map(Member::from).collect())
    }

    /// The tokens that may follow, ascending: int32 ``[n]``.
    fn allowed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = self.state(py);
        let mut words = vec![0; mask::num_words(self.num_tokens())];
        let tokens = process::detach(py, || {
            fill_row(&self.constraint, &state, &mut words, None)?;
            Ok(mask::iter(&words).map(|token| token.0 as i32).collect::<Vec<_>>())
        });
        let tokens = tokens.map_err(|error| errors::of_mask(py, &error))?;
        new_array(py, &tokens)
    }

    /// The tokens that must follow, each the only one allowed after those before it; at most
    /// ``limit``.
    #[pyo3(signature = (limit=256))]
    fn forced_tokens(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<u32>> {
        let state = self.state(py);
        let forced = process::detach(py, || {
            with_scratch(|scratch| self.constraint.forced_tokens(&state, limit, scratch))
        });
        let forced = forced.map_err(|error| errors::of_recognizer(py, &error))?;
        Ok(forced.into_iter().map(|token| token.0).collect())
    }

    /// The bytes that must follow, whatever the text becomes; at most ``limit``.
    #[pyo3(signature = (limit=4096))]
    fn forced_bytes<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyBytes>> {
        let state = self.state(py);
        let forced = process::detach(py, || {
            with_scratch(|scratch| self.constraint.forced_bytes(&state, limit, scratch))
        });
        let forced = forced.map_err(|error| errors::of_recognizer(py, &error))?;
        Ok(PyBytes::new(py, &forced))
    }

    /// Seconds that filling the mask `times` times takes without Python. A call's cost above that
    /// is the call's own.
    fn _seconds_of_masks(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        times: usize,
    ) -> PyResult<f64> {
        let mut rows = MaskRows::of(bitmask)?;
        rows.check_width(self.num_tokens())?;
        let words = rows.row_mut(rows.row_index(0)?);
        let (state, begun) = (self.state(py), Instant::now());
        let filled = process::detach(py, || {
            (0..times).try_for_each(|_| fill_row(&self.constraint, &state, words, None))
        });
        filled.map_err(|error| errors::of_mask(py, &error))?;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Copies the sequence, to continue it from here.
    fn fork(&self, py: Python<'_>) -> Self {
        Self {
            compiled: self.compiled.clone_ref(py),
            constraint: Arc::clone(&self.constraint),
            place: Mutex::new(self.locked(py).clone()),
        }
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.fork(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
        self.fork(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = self.locked(py);
        let ended = if place.state.ended() { ", ended" } else { "" };
        format!("<palmette.Matcher after {} commits{ended}>", place.state.num_commits())
    }

    #[allow(clippy::type_complexity, reason = "a pickle's parts")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(
        Bound<'py, PyAny>,
        (Py<CompiledGrammar>, Option<Vec<u32>>, Vec<Bound<'py, PyAny>>),
    )> {
        let (py, this) = (slf.py(), slf.get());
        let steps = this.locked(py).steps.all();
        let steps = steps.into_iter().map(|step| match step {
            Step::Token(token) => Ok(token.into_pyobject(py)?.into_any()),
            Step::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any()),
        });
        let steps = steps.collect::<PyResult<Vec<_>>>()?;
        let own = this.constraint.ends() != this.constraint.vocabulary().ends();
        let parts = (this.compiled(py), own.then(|| this.ends()), steps);
        Ok((slf.get_type().getattr("_restore")?, parts))
    }

    #[staticmethod]
    fn _restore(
        compiled: &Bound<'_, CompiledGrammar>,
        ends: Option<Vec<i64>>,
        steps: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (py, matcher) = (compiled.py(), CompiledGrammar::matcher(compiled, ends)?);
        for step in steps {
            match step.cast::<PyBytes>() {
                Ok(bytes) => matcher.commit_bytes(py, bytes.as_bytes())?,
                Err(_) => matcher.commit(py, step.extract()?)?,
            }
        }
        Ok(matcher)
    }
}
