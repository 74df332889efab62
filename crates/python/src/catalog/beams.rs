//! Class `Beams`: the rows of one constrained search, with their positions in the catalog.

use std::convert::Infallible;

use palmette_catalog::CatalogConstraint as Frozen;
use palmette_catalog_live::SnapshotConstraint;
use palmette_core::{Constraint, TokenId};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arrays;
use super::bitmask::places_of;
use super::codes::IntMatrix;
use super::constraint::{CatalogConstraint, Successors};
use super::view_constraint::{Followers, ViewConstraint, token, write_masks};
use crate::buffers::{FloatRows, MaskRows};
use crate::errors::not_allowed;
use crate::process;

/// The hypotheses of a search over a catalog: at first one without tokens, then those that
/// `advance` makes of them.
///
/// Successors are exact, and a search with fewer items than beams has fewer rows, never an invalid
/// one.
#[pyclass(weakref, module = "palmette")]
pub(crate) struct Beams {
    constraint: Py<CatalogConstraint>,
    width: usize,
    live: Live,
    /// Tokens of all rows, one after another, `level` each.
    tokens: Vec<i32>,
    level: usize,
    scores: Vec<f32>,
}

/// Positions of the rows, by the kind of catalog.
enum Live {
    Frozen(Rows<Frozen>),
    Snapshot(Rows<SnapshotConstraint>),
}

struct Rows<C: Constraint> {
    constraint: C,
    states: Vec<C::State>,
    scratch: C::Scratch,
}

/// A way on from a row.
#[derive(Clone, Copy)]
struct Extension {
    score: f32,
    row: u32,
    token: u32,
}

/// Does the same with either kind of rows.
macro_rules! with_rows {
    ($live:expr, $rows:ident => $body:expr) => {
        match $live {
            Live::Frozen($rows) => $body,
            Live::Snapshot($rows) => $body,
        }
    };
}

impl<C: Constraint<Error = Infallible>> Rows<C> {
    fn new(constraint: C) -> Self {
        let states = vec![constraint.start()];
        Self { constraint, states, scratch: C::Scratch::default() }
    }

    fn followers(&mut self) -> Followers {
        let mut found = Followers::default();
        for (row, state) in self.states.iter().enumerate() {
            let Ok(()) = self.constraint.successors(state, &mut self.scratch, |token, _| {
                found.rows.push(row as i32);
                found.tokens.push(token.0 as i32);
            });
        }
        found
    }

    /// The best extensions by the sum of a row's score and the token's log-probability, best first;
    /// equal ones by row, then by token. `Err`: the place of a number that is not one.
    fn best(
        &mut self,
        scores: &[f32],
        log_probs: &FloatRows,
        width: usize,
    ) -> Result<Vec<Extension>, (usize, u32)> {
        let mut found = Vec::new();
        let mut wrong = None;
        for (row, state) in self.states.iter().enumerate() {
            let log_probs = log_probs.row(row);
            let Ok(()) = self.constraint.successors(state, &mut self.scratch, |token, _| {
                // Adding 0 turns -0 into +0, which `total_cmp` would tell apart.
                let score = scores[row] + log_probs[token.index()] + 0.0;
                if score.is_nan() {
                    wrong.get_or_insert((row, token.0));
                }
                found.push(Extension { score, row: row as u32, token: token.0 });
            });
        }
        if let Some(place) = wrong {
            return Err(place);
        }
        let order = |a: &Extension, b: &Extension| {
            b.score.total_cmp(&a.score).then((a.row, a.token).cmp(&(b.row, b.token)))
        };
        if found.len() > width {
            if width > 0 {
                found.select_nth_unstable_by(width - 1, order);
            }
            found.truncate(width);
        }
        found.sort_unstable_by(order);
        Ok(found)
    }

    /// Advances from some rows, each by a token. `Err`: the first place of a token that is not
    /// allowed; nothing is changed.
    fn advance(&mut self, parents: &[usize], tokens: &[Option<TokenId>]) -> Result<(), usize> {
        let mut states = Vec::with_capacity(parents.len());
        for (place, (&parent, &token)) in parents.iter().zip(tokens).enumerate() {
            let mut state = self.states[parent].clone();
            let committed =
                token.map(|token| self.constraint.commit(&mut state, token, &mut self.scratch));
            match committed {
                Some(Ok(())) => states.push(state),
                _ => return Err(place),
            }
        }
        self.states = states;
        Ok(())
    }
}

impl Beams {
    /// Numbers of rows, each one of the search's.
    fn parents_of(&self, parents: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let parents = IntMatrix::of_column(parents, "parents")?;
        let num_rows = self.scores.len();
        let parent = |at| {
            let parent = parents.get(at, 0);
            usize::try_from(parent).ok().filter(|&parent| parent < num_rows).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "parents[{at}] is {parent}, but there are {num_rows} rows"
                ))
            })
        };
        (0..parents.num_rows()).map(parent).collect()
    }
}

#[pymethods]
impl Beams {
    #[new]
    fn new(constraint: &Bound<'_, CatalogConstraint>, width: usize) -> PyResult<Self> {
        if width == 0 {
            return Err(PyValueError::new_err("width is 0; a search has at least one beam"));
        }
        let live = match &constraint.get().spelled {
            ViewConstraint::Frozen(frozen) => Live::Frozen(Rows::new(frozen.clone())),
            ViewConstraint::Snapshot(snapshot) => Live::Snapshot(Rows::new(snapshot.clone())),
        };
        let constraint = constraint.clone().unbind();
        Ok(Self { constraint, width, live, tokens: Vec::new(), level: 0, scores: vec![0.0] })
    }

    /// The constraint.
    #[getter]
    fn constraint(&self, py: Python<'_>) -> Py<CatalogConstraint> {
        self.constraint.clone_ref(py)
    }

    /// Beams that `select` keeps at most.
    #[getter]
    fn width(&self) -> usize {
        self.width
    }

    /// Tokens of a row.
    #[getter]
    fn level(&self) -> usize {
        self.level
    }

    /// Hypotheses now.
    #[getter]
    fn num_rows(&self) -> usize {
        self.scores.len()
    }

    fn __len__(&self) -> usize {
        self.scores.len()
    }

    /// The tokens of all rows, `[rows, level]`.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrays::shaped(arrays::array(py, &self.tokens)?, &[self.scores.len(), self.level])
    }

    /// The sum of log-probabilities of each row, as given to `advance`.
    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        arrays::array(py, &self.scores)
    }

    /// Successors of each row: `(rows, tokens, offsets)`, as of `CatalogConstraint.successors`.
    fn successors<'py>(&mut self, py: Python<'py>) -> PyResult<Successors<'py>> {
        let found = process::detach(py, || with_rows!(&mut self.live, rows => rows.followers()));
        let offsets = found.offsets(self.scores.len());
        let array = |values: &[i32]| arrays::array(py, values);
        Ok((array(&found.rows)?, array(&found.tokens)?, array(&offsets)?))
    }

    /// Writes the masks of the rows to the first rows of a bitmask, or to those that `rows` names.
    #[pyo3(signature = (bitmask, rows=None))]
    fn fill_masks(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        rows: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let mut bitmask = MaskRows::of(bitmask)?;
        bitmask.check_width(self.constraint.get().spelled.tokens().num_tokens())?;
        let into = places_of(rows, self.scores.len(), &bitmask)?;
        let all: Vec<usize> = (0..into.len()).collect();
        process::detach(
            py,
            || with_rows!(&self.live, rows => write_masks(&rows.constraint, &all, &rows.states, &into, &mut bitmask)),
        )
    }

    /// The best extensions of all rows: `(parents, tokens, scores)`, best first; equal scores by
    /// row, then by token. Fewer than `width` where fewer may follow. `log_probs` are float32
    /// `[rows, num_tokens or more]`, over the whole vocabulary.
    #[pyo3(signature = (log_probs, width=None))]
    fn select<'py>(
        &mut self,
        py: Python<'py>,
        log_probs: &Bound<'py, PyAny>,
        width: Option<usize>,
    ) -> PyResult<Successors<'py>> {
        let log_probs = FloatRows::of(log_probs, "log_probs")?;
        let (num_rows, num_tokens) =
            (self.scores.len(), self.constraint.get().spelled.tokens().num_tokens());
        let (rows, columns) = log_probs.shape();
        if rows != num_rows || columns < num_tokens {
            return Err(PyValueError::new_err(format!(
                "log_probs has the shape ({rows}, {columns}); ({num_rows}, {num_tokens}) is expected: a row a beam"
            )));
        }
        let width = width.unwrap_or(self.width);
        let best = process::detach(
            py,
            || with_rows!(&mut self.live, rows => rows.best(&self.scores, &log_probs, width)),
        );
        let best = best.map_err(|(row, token)| {
            PyValueError::new_err(format!(
                "log_probs[{row}, {token}] and the row's score are no number (NaN)"
            ))
        })?;
        let ints = |value: fn(&Extension) -> u32| -> Vec<i32> {
            best.iter().map(|extension| value(extension) as i32).collect()
        };
        let scores: Vec<f32> = best.iter().map(|extension| extension.score).collect();
        Ok((
            arrays::array(py, &ints(|extension| extension.row))?,
            arrays::array(py, &ints(|extension| extension.token))?,
            arrays::array(py, &scores)?,
        ))
    }

    /// Advances: row `i` becomes row `parents[i]` and `tokens[i]`. A row may be taken several
    /// times, or not at all. Where `scores` are not given, those of the parents stay.
    #[pyo3(signature = (parents, tokens, scores=None))]
    fn advance(
        &mut self,
        py: Python<'_>,
        parents: &Bound<'_, PyAny>,
        tokens: &Bound<'_, PyAny>,
        scores: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let parents = self.parents_of(parents)?;
        let given = IntMatrix::of_column(tokens, "tokens")?;
        if given.num_rows() != parents.len() {
            let (tokens, parents) = (given.num_rows(), parents.len());
            let message = format!("{tokens} tokens are given for {parents} parents");
            return Err(PyValueError::new_err(message));
        }
        let scores = match scores {
            None => parents.iter().map(|&parent| self.scores[parent]).collect(),
            Some(scores) => {
                let scores = FloatRows::of(scores, "scores")?;
                match scores.shape() {
                    (1, len) if len == parents.len() => scores.row(0).to_vec(),
                    (_, 0) if parents.is_empty() => Vec::new(),
                    (rows, columns) => {
                        return Err(PyValueError::new_err(format!(
                            "scores has {rows} rows of {columns} numbers for {} parents",
                            parents.len()
                        )));
                    }
                }
            }
        };
        let values: Vec<i64> = (0..parents.len()).map(|at| given.get(at, 0)).collect();
        let tokens: Vec<Option<TokenId>> = values.iter().map(|&value| token(value)).collect();
        let advanced = process::detach(
            py,
            || with_rows!(&mut self.live, rows => rows.advance(&parents, &tokens)),
        );
        if let Err(place) = advanced {
            let (value, parent) = (values[place], parents[place]);
            let message =
                format!("token {value} may not follow row {parent}: no item goes on with it");
            let token = token(value).unwrap_or(TokenId(u32::MAX));
            return Err(not_allowed(py, message, token, self.level));
        }
        let mut all = Vec::with_capacity(parents.len() * (self.level + 1));
        for (&parent, &value) in parents.iter().zip(&values) {
            all.extend(&self.tokens[parent * self.level..(parent + 1) * self.level]);
            all.push(value as i32);
        }
        (self.tokens, self.scores, self.level) = (all, scores, self.level + 1);
        Ok(())
    }

    /// The ids of the items whose whole semantic ID each row is: several that share one, none of a
    /// row that must go on.
    fn items(&self) -> Vec<Vec<String>> {
        let view = &self.constraint.get().view;
        match &self.live {
            Live::Frozen(rows) => {
                let ids =
                    |state| rows.constraint.items_at(state).map(|rank| view.id(rank).to_owned());
                rows.states.iter().map(|state| ids(state).collect()).collect()
            }
            Live::Snapshot(rows) => {
                let id = |at| view.id(view.number(at)).to_owned();
                let ids = |state| rows.constraint.items_at(state).map(id).collect();
                rows.states.iter().map(ids).collect()
            }
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "<Beams: {} rows of {} tokens, width {}>",
            self.scores.len(),
            self.level,
            self.width
        )
    }
}
