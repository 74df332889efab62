//! Filters, and the items that they match.

use std::sync::Arc;

use palmette_catalog_live::{CatalogView, ViewItems};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};
use serde_json::Value;

use super::arrays::array;
use super::errors::of_filter;
use super::frozen::Catalog;
use super::values::{dict_to_json, to_python};
use crate::process;

/// A condition on the attributes of items, read and checked once.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct Filter {
    filter: palmette_catalog::Filter,
    value: Value,
}

#[pymethods]
impl Filter {
    #[new]
    fn new(filter: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (filter, value) = read(filter)?;
        Ok(Self { filter, value })
    }

    /// The filter as a `dict`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.value)
    }

    fn __repr__(&self) -> String {
        format!("Filter({})", self.value)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.value == other.value
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.value.to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().into_any(), (slf.get().value.to_string(),)))
    }
}

fn read(filter: &Bound<'_, PyAny>) -> PyResult<(palmette_catalog::Filter, Value)> {
    let (parsed, value) = if let Ok(text) = filter.cast::<PyString>() {
        let text = text.to_cow()?;
        let parsed = palmette_catalog::Filter::parse(&text);
        (parsed, serde_json::from_str(&text).unwrap_or(Value::Null))
    } else if let Ok(dict) = filter.cast::<PyDict>() {
        let value = Value::Object(dict_to_json(dict)?);
        (palmette_catalog::Filter::from_value(&value), value)
    } else {
        let kind = filter.get_type().name()?;
        let message = format!("a filter is a dict, JSON text or a Filter, not {kind}");
        return Err(PyTypeError::new_err(message));
    };
    Ok((parsed.map_err(|error| of_filter(&error))?, value))
}

/// A filter in any of its forms.
pub(crate) fn filter_of(filter: &Bound<'_, PyAny>) -> PyResult<palmette_catalog::Filter> {
    match filter.cast::<Filter>() {
        Ok(filter) => Ok(filter.get().filter.clone()),
        Err(_) => read(filter).map(|(filter, _)| filter),
    }
}

/// Some items of a catalog, as a filter found them or combined from others.
#[pyclass(frozen, weakref, module = "palmette")]
#[derive(Debug)]
pub(crate) struct ItemSet {
    pub(crate) catalog: Py<Catalog>,
    pub(crate) view: CatalogView,
    pub(crate) items: ViewItems,
    /// The filter that found them; `None` where other sets were combined.
    pub(crate) filter: Option<palmette_catalog::Filter>,
}

impl ItemSet {
    /// The items, if they are of this view.
    pub(crate) fn items_of(&self, view: &CatalogView) -> PyResult<ViewItems> {
        match is_same(&self.view, view) {
            true => Ok(self.items.clone()),
            false => Err(PyValueError::new_err(
                "the item set is of another catalog (or generation); make it with the filter() of this one",
            )),
        }
    }

    fn combined(
        &self,
        other: &Self,
        py: Python<'_>,
        op: impl Fn(&CatalogView, &ViewItems, &ViewItems) -> ViewItems + Send + Sync,
        filter: Option<palmette_catalog::Filter>,
    ) -> PyResult<Self> {
        let others = other.items_of(&self.view)?;
        let items = process::detach_in_pool(py, || op(&self.view, &self.items, &others));
        Ok(Self { catalog: self.catalog.clone_ref(py), view: self.view.clone(), items, filter })
    }
}

/// True when two views are of one catalog at one moment.
pub(crate) fn is_same(a: &CatalogView, b: &CatalogView) -> bool {
    match (a, b) {
        (CatalogView::Frozen(a), CatalogView::Frozen(b)) => Arc::ptr_eq(a.catalog(), b.catalog()),
        (CatalogView::Snapshot(a), CatalogView::Snapshot(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

#[pymethods]
impl ItemSet {
    fn __len__(&self) -> usize {
        self.items.len() as usize
    }

    /// The ids, in the order of semantic IDs (of a live catalog: segment by segment).
    pub(crate) fn ids(&self) -> Vec<String> {
        self.view.numbers_in(&self.items).map(|number| self.view.id(number).to_owned()).collect()
    }

    fn __contains__(&self, id: &str) -> bool {
        let Some(number) = self.view.find(id) else { return false };
        let (segment, rank) = self.view.segment_of(number);
        self.view.rank_sets(&self.items)[segment].contains(rank)
    }

    fn __and__(&self, other: &Self, py: Python<'_>) -> PyResult<Self> {
        let filters = self.filter.as_ref().zip(other.filter.as_ref());
        let filter = filters.map(|(one, other)| one.and(other));
        self.combined(other, py, CatalogView::intersection, filter)
    }

    fn __or__(&self, other: &Self, py: Python<'_>) -> PyResult<Self> {
        self.combined(other, py, CatalogView::union, None)
    }

    fn __sub__(&self, other: &Self, py: Python<'_>) -> PyResult<Self> {
        self.combined(other, py, CatalogView::minus, None)
    }

    fn __eq__(&self, other: &Self) -> bool {
        is_same(&self.view, &other.view)
            && self.view.rank_sets(&self.items) == other.view.rank_sets(&other.items)
    }

    fn __hash__(&self) -> u64 {
        self.items.len()
    }

    /// Bytes of the set.
    #[getter]
    fn nbytes(&self) -> usize {
        self.items.bytes()
    }

    /// The catalog that these items are of.
    #[getter]
    fn catalog(&self, py: Python<'_>) -> Py<Catalog> {
        self.catalog.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        format!("<ItemSet of {} of {} items>", self.items.len(), self.view.num_items())
    }

    /// Pickles by its catalog and its items' numbers.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let (py, this) = (slf.py(), slf.get());
        let numbers = array(py, &this.numbers())?;
        Ok((slf.get_type().getattr("_restore")?, (this.catalog.clone_ref(py), numbers)))
    }

    #[classmethod]
    fn _restore(
        _class: &Bound<'_, PyType>,
        catalog: &Bound<'_, Catalog>,
        numbers: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let view = catalog.get().view.clone();
        let items = catalog.get().chosen(numbers)?;
        Ok(Self { catalog: catalog.clone().unbind(), view, items, filter: None })
    }
}

/// Parts of a pickled set.
type Pickled<'py> = (Py<Catalog>, Bound<'py, PyAny>);

impl ItemSet {
    /// The numbers of its items.
    fn numbers(&self) -> Vec<i64> {
        numbers_in(&self.view, &self.items)
    }
}

/// The numbers of some items of a view.
pub(crate) fn numbers_in(view: &CatalogView, items: &ViewItems) -> Vec<i64> {
    view.numbers_in(items).map(|number| number as i64).collect()
}
