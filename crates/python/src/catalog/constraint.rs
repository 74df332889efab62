//! Class `CatalogConstraint`: a catalog, or some of its items, in a model's tokens.

use std::collections::BTreeMap;
use std::sync::Arc;

use palmette_catalog::{CodeTokens, LevelSpelling, LevelTokens, TokenTable};
use palmette_catalog_live::{CatalogView, ViewItems};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};

use super::arrays;
use super::bitmask::places_of;
use super::codes::IntMatrix;
use super::errors::{of_filter, of_tokens};
use super::filter::{ItemSet, filter_of, numbers_in};
use super::frozen::Catalog;
use super::view_constraint::{Followers, ViewConstraint};
use crate::buffers::MaskRows;
use crate::process;

/// The semantic IDs of a catalog's items as sequences of a model's tokens. It keeps no state: every
/// call names the tokens so far, so that beams may be reordered, dropped and copied in any way.
/// Threads share it.
#[pyclass(frozen, weakref, module = "palmette")]
#[derive(Debug)]
pub(crate) struct CatalogConstraint {
    catalog: Py<Catalog>,
    pub(crate) view: CatalogView,
    pub(crate) spelled: ViewConstraint,
    items: Option<ViewItems>,
}

/// Arrays of numbers of a CSR matrix: rows, tokens, offsets.
pub(crate) type Successors<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Parts of a pickled constraint.
type Pickled<'py> = (Py<Catalog>, Bound<'py, PyList>, usize, Option<Bound<'py, PyAny>>);

impl CatalogConstraint {
    pub(crate) fn new(catalog: &Bound<'_, Catalog>, tokens: CodeTokens) -> PyResult<Self> {
        let (py, view) = (catalog.py(), catalog.get().view.clone());
        let spelled = process::detach_in_pool(py, || ViewConstraint::new(&view, Arc::new(tokens)));
        let spelled = spelled.map_err(|error| of_tokens(py, &error))?;
        Ok(Self { catalog: catalog.clone().unbind(), view, spelled, items: None })
    }

    /// The constraint of which only `items` may be returned, and of its own only those.
    fn with(&self, py: Python<'_>, items: ViewItems) -> Self {
        let (spelled, items) = process::detach_in_pool(py, || {
            let items = match &self.items {
                Some(own) => self.view.intersection(own, &items),
                None => items,
            };
            (self.spelled.with_items(items.clone()), items)
        });
        let (catalog, view) = (self.catalog.clone_ref(py), self.view.clone());
        Self { catalog, view, spelled, items: Some(items) }
    }
}

#[pymethods]
impl CatalogConstraint {
    /// Size of the vocabulary: masks have this many bits.
    #[getter]
    fn num_tokens(&self) -> usize {
        self.spelled.tokens().num_tokens()
    }

    /// Codes of the longest semantic ID.
    #[getter]
    fn num_levels(&self) -> usize {
        self.view.num_levels()
    }

    /// The catalog.
    #[getter]
    fn catalog(&self, py: Python<'_>) -> Py<Catalog> {
        self.catalog.clone_ref(py)
    }

    /// The items that may be returned; None for all.
    #[getter]
    pub(crate) fn items(&self, py: Python<'_>) -> Option<ItemSet> {
        let items = self.items.clone()?;
        let (catalog, view) = (self.catalog.clone_ref(py), self.view.clone());
        Some(ItemSet { catalog, view, items, filter: None })
    }

    /// The token of each code of each level; -1 for a code without one.
    #[getter]
    fn code_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for level in self.spelled.tokens().levels() {
            let token = |code| level.token(code).map_or(-1, |token| token.0 as i32);
            let tokens: Vec<i32> = (0..level.num_codes()).map(token).collect();
            list.append(arrays::array(py, &tokens)?)?;
        }
        Ok(list)
    }

    /// Restricts the items that may be returned to a filter's matches or to a set. Items that may
    /// not be returned now stay out.
    pub(crate) fn filtered(&self, py: Python<'_>, items: &Bound<'_, PyAny>) -> PyResult<Self> {
        let items = match items.cast::<ItemSet>() {
            Ok(items) => items.get().items_of(&self.view)?,
            Err(_) => {
                let filter = filter_of(items)?;
                process::detach_in_pool(py, || self.view.filter(&filter))
                    .map_err(|error| of_filter(&error))?
            }
        };
        Ok(self.with(py, items))
    }

    /// Successors of rows of tokens `[rows, l]`: `(rows, tokens, offsets)`, where row `r` may be
    /// followed by `tokens[offsets[r]:offsets[r + 1]]`, ascending. Nothing follows tokens that no
    /// item begins with.
    #[pyo3(signature = (tokens, items=None, item_of_row=None))]
    fn successors<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
        items: Option<&Bound<'py, PyAny>>,
        item_of_row: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Successors<'py>> {
        let prefixes = IntMatrix::of_array(tokens, "tokens")?;
        let groups = self.groups(prefixes.num_rows(), items, item_of_row)?;
        let (found, offsets) = process::detach(py, || {
            let mut found = Followers::default();
            for (spelled, rows) in &groups {
                spelled.followers(&prefixes, rows, &mut found);
            }
            if groups.len() > 1 {
                found = found.by_row();
            }
            let offsets = found.offsets(prefixes.num_rows());
            (found, offsets)
        });
        let array = |values: &[i32]| arrays::array(py, values);
        Ok((array(&found.rows)?, array(&found.tokens)?, array(&offsets)?))
    }

    /// Writes the masks of rows of tokens `[rows, l]` to the rows of a bitmask, or to those that
    /// `rows` names.
    #[pyo3(signature = (tokens, bitmask, rows=None))]
    fn fill_masks(
        &self,
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        bitmask: &Bound<'_, PyAny>,
        rows: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let prefixes = IntMatrix::of_array(tokens, "tokens")?;
        let mut bitmask = MaskRows::of(bitmask)?;
        bitmask.check_width(self.spelled.tokens().num_tokens())?;
        let into = places_of(rows, prefixes.num_rows(), &bitmask)?;
        process::detach(py, || self.spelled.fill_masks(&prefixes, &into, &mut bitmask))
    }

    /// The ids of the items that may be returned and whose whole semantic ID is each row of tokens;
    /// none for a row that is no item's.
    fn decode(&self, py: Python<'_>, tokens: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<String>>> {
        let spelled = IntMatrix::of_array(tokens, "tokens")?;
        Ok(process::detach(py, || {
            let found = self.spelled.decode(&self.view, &spelled).into_iter();
            found.map(|ids| ids.into_iter().map(str::to_owned).collect()).collect()
        }))
    }

    /// Pickles by its catalog, the tokens of codes, and its items' numbers.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let (py, this) = (slf.py(), slf.get());
        let numbers = this.items.as_ref().map(|items| numbers_in(&this.view, items));
        let numbers = numbers.map(|numbers| arrays::array(py, &numbers)).transpose()?;
        let (catalog, tokens) = (this.catalog.clone_ref(py), this.code_tokens(py)?);
        let parts = (catalog, tokens, this.num_tokens(), numbers);
        Ok((slf.get_type().getattr("_restore")?, parts))
    }

    #[classmethod]
    fn _restore(
        class: &Bound<'_, PyType>,
        catalog: &Bound<'_, Catalog>,
        code_tokens: &Bound<'_, PyAny>,
        num_tokens: usize,
        numbers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let constraint = Self::new(catalog, code_tokens_of(code_tokens, Some(num_tokens))?)?;
        match numbers {
            Some(numbers) => Ok(constraint.with(class.py(), catalog.get().chosen(numbers)?)),
            None => Ok(constraint),
        }
    }

    fn __repr__(&self) -> String {
        let (items, tokens) = (self.view.num_items(), self.num_tokens());
        match &self.items {
            Some(some) => format!(
                "<CatalogConstraint of {} of {items} items over {tokens} tokens>",
                some.len()
            ),
            None => format!("<CatalogConstraint of {items} items over {tokens} tokens>"),
        }
    }
}

impl CatalogConstraint {
    /// Rows by the items that they may be completed to.
    fn groups(
        &self,
        num_rows: usize,
        items: Option<&Bound<'_, PyAny>>,
        item_of_row: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<(ViewConstraint, Vec<usize>)>> {
        let Some(items) = items else {
            if item_of_row.is_some() {
                return Err(PyValueError::new_err("item_of_row is given without items"));
            }
            return Ok(vec![(self.spelled.clone(), (0..num_rows).collect())]);
        };
        let sets = items.try_iter()?.map(|set| self.of_set(&set?)).collect::<PyResult<Vec<_>>>()?;
        let set_of_row: Vec<usize> = match item_of_row {
            None if sets.len() == num_rows => (0..num_rows).collect(),
            None => {
                let given = sets.len();
                return Err(PyValueError::new_err(format!(
                    "{given} item sets are given for {num_rows} rows of tokens; say by item_of_row which row has which"
                )));
            }
            Some(places) => {
                let places = IntMatrix::of_column(places, "item_of_row")?;
                if places.num_rows() != num_rows {
                    let given = places.num_rows();
                    return Err(PyValueError::new_err(format!(
                        "item_of_row has {given} elements for {num_rows} rows of tokens"
                    )));
                }
                let place = |row| {
                    let place = places.get(row, 0);
                    let found = usize::try_from(place).ok().filter(|&place| place < sets.len());
                    found.ok_or_else(|| {
                        let given = sets.len();
                        PyValueError::new_err(format!(
                            "item_of_row[{row}] is {place}, but {given} item sets are given"
                        ))
                    })
                };
                (0..num_rows).map(place).collect::<PyResult<_>>()?
            }
        };
        let mut rows_of_set: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (row, set) in set_of_row.into_iter().enumerate() {
            rows_of_set.entry(set).or_default().push(row);
        }
        Ok(rows_of_set.into_iter().map(|(set, rows)| (sets[set].clone(), rows)).collect())
    }

    /// The constraint for one of several sets: an `ItemSet`, or `None` for all that may be
    /// returned.
    fn of_set(&self, set: &Bound<'_, PyAny>) -> PyResult<ViewConstraint> {
        if set.is_none() {
            return Ok(self.spelled.clone());
        }
        let Ok(set) = set.cast::<ItemSet>() else {
            let kind = set.get_type().name()?;
            let message = format!("items are item sets or None, not {kind}; filter() makes one");
            return Err(PyTypeError::new_err(message));
        };
        let items = set.get().items_of(&self.view)?;
        Ok(match &self.items {
            Some(own) => self.spelled.with_items(self.view.intersection(own, &items)),
            None => self.spelled.with_items(items),
        })
    }
}

impl Followers {
    /// Sorts by rows.
    fn by_row(self) -> Self {
        let mut pairs: Vec<(i32, i32)> = self.rows.into_iter().zip(self.tokens).collect();
        pairs.sort_by_key(|&(row, _)| row);
        let (rows, tokens) = pairs.into_iter().unzip();
        Self { rows, tokens }
    }

    /// Offsets of the tokens of each row, and where the last end.
    pub(crate) fn offsets(&self, num_rows: usize) -> Vec<i32> {
        let mut offsets = vec![0; num_rows + 1];
        self.rows.iter().for_each(|&row| offsets[row as usize + 1] += 1);
        for row in 0..num_rows {
            offsets[row + 1] += offsets[row];
        }
        offsets
    }
}

/// Spelling of each level: `(first token, number of codes)`, or the token of each code.
pub(crate) fn code_tokens_of(
    levels: &Bound<'_, PyAny>,
    num_tokens: Option<usize>,
) -> PyResult<CodeTokens> {
    let levels = levels.try_iter()?.enumerate();
    let level = |(at, level): (usize, PyResult<Bound<'_, PyAny>>)| spelling_of(at, &level?);
    let levels = levels.map(level).collect::<PyResult<Vec<LevelSpelling>>>()?;
    let py_error = |error| Python::attach(|py| of_tokens(py, &error));
    let num_tokens = num_tokens.unwrap_or_else(|| {
        let last = |level: &LevelSpelling| match level {
            LevelSpelling::Run(run) => u64::from(run.first_token) + u64::from(run.num_codes),
            LevelSpelling::Table(table) => {
                table.tokens().iter().flatten().max().map_or(0, |&token| u64::from(token) + 1)
            }
        };
        levels.iter().map(last).max().unwrap_or(0) as usize
    });
    if num_tokens > i32::MAX as usize {
        let message = format!("a vocabulary of {num_tokens} tokens; at most {} are", i32::MAX);
        return Err(PyValueError::new_err(message));
    }
    CodeTokens::new(levels, num_tokens).map_err(py_error)
}

fn spelling_of(at: usize, level: &Bound<'_, PyAny>) -> PyResult<LevelSpelling> {
    if let Ok(run) = level.cast::<PyTuple>() {
        let Ok((first_token, num_codes)) = run.extract::<(u32, u32)>() else {
            return Err(PyTypeError::new_err(format!(
                "level {at} of code_tokens is {}; a tuple is (first token, number of codes), \
                 a list or an array is the token of each code",
                level.repr()?
            )));
        };
        return Ok(LevelTokens { first_token, num_codes }.into());
    }
    let tokens = IntMatrix::of_column(level, &format!("level {at} of code_tokens"))?;
    let token = |code| match tokens.get(code, 0) {
        -1 => Ok(None),
        token => u32::try_from(token).map(Some).map_err(|_| {
            PyValueError::new_err(format!(
                "code {code} of level {at} has token {token}; a code without a token has -1"
            ))
        }),
    };
    let tokens = (0..tokens.num_rows()).map(token).collect::<PyResult<Vec<_>>>()?;
    Ok(TokenTable::new(tokens).into())
}
