//! Class `Catalog`: items and their semantic IDs, frozen or a moment of a live catalog.

use std::path::PathBuf;
use std::sync::Arc;

use palmette_catalog::readers::SourceOptions;
use palmette_catalog::{CatalogState, Check};
use palmette_catalog_live::{CatalogView, SegmentView, ViewItems};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use serde_json::Map;

use super::build::{build, id_of};
use super::codes::IntMatrix;
use super::constraint::{CatalogConstraint, code_tokens_of};
use super::errors::{CatalogError, of_file, of_filter};
use super::filter::{ItemSet, filter_of};
use super::item_codes::Codes;
use super::static_tables::{StaticTables, catalog_of};
use super::values::{object_to_python, to_json};
use super::{arrays, arrow, files};
use crate::process;

/// Items, each with a semantic ID and attributes. It never changes; threads share it.
#[pyclass(frozen, weakref, module = "palmette")]
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pub(crate) view: CatalogView,
}

impl Catalog {
    pub(crate) fn of(catalog: palmette_catalog::Catalog) -> Self {
        Self { view: Arc::new(catalog).into() }
    }

    pub(crate) fn of_view(view: CatalogView) -> Self {
        Self { view }
    }

    /// Items as one frozen catalog; that of a live one's moment is built here.
    pub(crate) fn frozen(&self) -> PyResult<Arc<palmette_catalog::Catalog>> {
        match &self.view {
            CatalogView::Frozen(filters) => Ok(Arc::clone(filters.catalog())),
            CatalogView::Snapshot(snapshot) => {
                let catalog = snapshot.to_catalog(|| {});
                catalog.map(Arc::new).map_err(|error| CatalogError::new_err(error.to_string()))
            }
        }
    }
}

#[pymethods]
impl Catalog {
    /// Builds a catalog of semantic IDs, ids and attributes.
    #[staticmethod]
    #[pyo3(name = "build", signature = (codes=None, ids=None, attributes=None, offsets=None, *, code_columns=None))]
    fn build_of(
        py: Python<'_>,
        codes: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyAny>>,
        attributes: Option<&Bound<'_, PyAny>>,
        offsets: Option<&Bound<'_, PyAny>>,
        code_columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let codes = Codes::given(codes, offsets, code_columns)?;
        build(py, codes, ids, attributes).map(Self::of)
    }

    /// Builds a catalog of a table's rows: any object with `__arrow_c_stream__`.
    #[staticmethod]
    #[pyo3(signature = (table, id=None, codes=None, leave_out=Vec::new()))]
    fn from_arrow(
        table: &Bound<'_, PyAny>,
        id: Option<String>,
        codes: Option<&Bound<'_, PyAny>>,
        leave_out: Vec<String>,
    ) -> PyResult<Self> {
        arrow::catalog(table, &columns(id, codes, leave_out)?).map(Self::of)
    }

    /// Builds a catalog of the rows of a Parquet file, or of an Arrow file (`.arrow`, `.feather`).
    #[staticmethod]
    #[pyo3(signature = (path, id=None, codes=None, leave_out=Vec::new()))]
    fn from_parquet(
        py: Python<'_>,
        path: PathBuf,
        id: Option<String>,
        codes: Option<&Bound<'_, PyAny>>,
        leave_out: Vec<String>,
    ) -> PyResult<Self> {
        files::of_table(py, &path, &columns(id, codes, leave_out)?).map(Self::of)
    }

    /// Builds a catalog of an index, a dict or a file of JSON: `{"0": ["<a_12>", "<b_3>"], …}`.
    #[staticmethod]
    fn from_index_json(py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let catalog = match index.cast::<PyDict>() {
            Ok(index) => {
                let mut items = Map::new();
                for (id, codes) in index.iter() {
                    let id = id_of(&id)?;
                    if items.contains_key(&id) {
                        let message =
                            format!("the id {id:?} stands twice, as text and as a number");
                        return Err(CatalogError::new_err(message));
                    }
                    items.insert(id, to_json(&codes)?);
                }
                files::of_index(py, items)
            }
            Err(_) => files::of_index_json(py, &index.extract::<PathBuf>()?),
        };
        catalog.map(Self::of)
    }

    /// Opens a catalog's file. Everything in it is checked.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = process::detach_in_pool(py, || palmette_catalog::Catalog::open(&path));
        opened.map(Self::of).map_err(|error| of_file(&error))
    }

    /// Writes the catalog to a file; one of that name is replaced, and kept if writing fails.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let catalog = process::detach_in_pool(py, || self.frozen())?;
        process::detach_in_pool(py, || catalog.save(&path)).map_err(|error| of_file(&error))
    }

    fn __len__(&self) -> usize {
        self.view.num_items() as usize
    }

    /// Codes of the longest semantic ID.
    #[getter]
    fn num_levels(&self) -> usize {
        self.view.num_levels()
    }

    /// One more than the largest code of each level, or the size of its codebook where that was
    /// given.
    #[getter]
    pub(crate) fn codes_per_level(&self) -> Vec<u32> {
        let mut sizes = vec![0; self.view.num_levels()];
        for (catalog, _) in self.view.parts() {
            for (size, &of_part) in sizes.iter_mut().zip(catalog.codes_per_level()) {
                *size = (*size).max(of_part);
            }
        }
        sizes
    }

    /// The letters of each level where codes were spelled `<a_12>`; else None.
    #[getter]
    fn level_prefixes(&self) -> Option<Vec<String>> {
        self.view.level_prefixes().map(<[String]>::to_vec)
    }

    /// The number of a live catalog's moment; None for a frozen catalog.
    #[getter]
    fn generation(&self) -> Option<u64> {
        self.view.generation()
    }

    /// Bytes of the catalog, ids and attributes included.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.view.parts().map(|(catalog, _)| catalog.file_bytes()).sum()
    }

    /// The ids of the items with exactly this semantic ID: several on a collision.
    fn find(&self, codes: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let Some(codes) = codes_of(codes)? else { return Ok(Vec::new()) };
        let found = self.view.find_codes(&codes).into_iter();
        Ok(found.map(|number| self.view.id(number).to_owned()).collect())
    }

    fn __contains__(&self, codes: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(codes) = codes_of(codes)? else { return Ok(false) };
        Ok(!self.view.find_codes(&codes).is_empty())
    }

    /// The ids of items by number, or of all: numbers follow the order of semantic IDs.
    #[pyo3(signature = (numbers=None))]
    fn ids(&self, numbers: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
        let Some(numbers) = numbers else {
            return Ok(self.view.numbers().map(|number| self.view.id(number).to_owned()).collect());
        };
        let numbers = IntMatrix::of_column(numbers, "numbers")?;
        let id = |row| Ok(self.view.id(self.number(numbers.get(row, 0))?).to_owned());
        (0..numbers.num_rows()).map(id).collect()
    }

    /// All semantic IDs, in the order of `ids()`; shorter ones end in -1.
    fn codes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let levels = self.view.num_levels();
        let codes = process::detach_in_pool(py, || {
            let mut all = Vec::with_capacity(self.view.num_items() as usize * levels);
            for (catalog, live) in self.view.parts() {
                for rank in 0..catalog.num_items() {
                    if live.is_none_or(|live| live.ranks().contains(rank)) {
                        let end = all.len() + levels;
                        all.extend(catalog.codes(rank).into_iter().map(|code| code as i32));
                        all.resize(end, -1);
                    }
                }
            }
            all
        });
        arrays::shaped(arrays::array(py, &codes)?, &[self.view.num_items() as usize, levels])
    }

    /// Segments of a live catalog's moment, the oldest first: the key that each has in every
    /// generation, its items, and how many of them are gone. A frozen catalog has none.
    #[pyo3(name = "_segments")]
    fn segments(&self) -> Vec<(u64, u64, u64)> {
        let CatalogView::Snapshot(snapshot) = &self.view else { return Vec::new() };
        let shown = |view: &SegmentView| {
            let segment = view.segment();
            (segment.key(), segment.catalog().num_items(), view.num_tombstones())
        };
        snapshot.segments().iter().map(shown).collect()
    }

    /// Semantic IDs of all items of a segment, in order and those that are gone included; shorter
    /// ones end in -1.
    #[pyo3(name = "_segment_codes")]
    fn segment_codes<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let (catalog, _) = self.segment(place)?;
        let levels = self.view.num_levels();
        let codes = process::detach_in_pool(py, || {
            let mut all = Vec::with_capacity(catalog.num_items() as usize * levels);
            for rank in 0..catalog.num_items() {
                let end = all.len() + levels;
                all.extend(catalog.codes(rank).into_iter().map(|code| code as i32));
                all.resize(end, -1);
            }
            all
        });
        arrays::shaped(arrays::array(py, &codes)?, &[catalog.num_items() as usize, levels])
    }

    /// Liveness of each item of a segment: true where it is there.
    #[pyo3(name = "_segment_live")]
    fn segment_live<'py>(&self, py: Python<'py>, place: usize) -> PyResult<Bound<'py, PyAny>> {
        let (catalog, live) = self.segment(place)?;
        let is_live = |rank| live.is_none_or(|live| live.ranks().contains(rank));
        let there: Vec<bool> =
            process::detach(py, || (0..catalog.num_items()).map(is_live).collect());
        arrays::bools(py, &there)
    }

    /// An item by its id: `{"id": …, "codes": […], "attributes": {…}}`.
    fn item<'py>(&self, py: Python<'py>, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
        let id = id_of(id)?;
        let Some(number) = self.view.find(&id) else {
            return Err(PyKeyError::new_err(format!("no item has the id {id:?}")));
        };
        let item = self.view.item(number);
        let dict = PyDict::new(py);
        dict.set_item("id", item.id)?;
        dict.set_item("codes", item.codes)?;
        dict.set_item("attributes", object_to_python(py, &item.attributes)?)?;
        Ok(dict)
    }

    /// True where some item's semantic ID begins with the row of codes.
    fn contains_prefix<'py>(
        &self,
        py: Python<'py>,
        prefixes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let prefixes = IntMatrix::of_array(prefixes, "prefixes")?;
        let found = process::detach(py, || self.have_prefixes(&prefixes));
        arrays::bools(py, &found)
    }

    /// The items that match a filter: a dict, JSON text or a Filter.
    fn filter(slf: &Bound<'_, Self>, filter: &Bound<'_, PyAny>) -> PyResult<ItemSet> {
        let (filter, view) = (filter_of(filter)?, &slf.get().view);
        let items = process::detach_in_pool(slf.py(), || view.filter(&filter));
        let items = Self::set(slf, items.map_err(|error| of_filter(&error))?);
        Ok(ItemSet { filter: Some(filter), ..items })
    }

    /// Counters of the filters that are kept.
    #[getter]
    fn cache_statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counted = self.view.filter_statistics();
        let shown = PyDict::new(py);
        shown.set_item("filters", counted.filters)?;
        shown.set_item("bytes", counted.bytes)?;
        shown.set_item("max_bytes", counted.max_bytes)?;
        shown.set_item("hits", counted.look_ups.hits)?;
        shown.set_item("built", counted.look_ups.misses)?;
        Ok(shown)
    }

    /// Lets go of the filters that are kept.
    fn clear_cache(&self) {
        self.view.clear_filters();
    }

    /// All items, as a set to take some out of.
    fn all_items(slf: &Bound<'_, Self>) -> ItemSet {
        let filter = Some(palmette_catalog::Filter::default());
        ItemSet { filter, ..Self::set(slf, slf.get().view.all_items()) }
    }

    /// The items with these ids.
    fn items_with_ids(slf: &Bound<'_, Self>, ids: &Bound<'_, PyAny>) -> PyResult<ItemSet> {
        let view = &slf.get().view;
        let number = |id: PyResult<Bound<'_, PyAny>>| {
            let id = id_of(&id?)?;
            let unknown = || PyKeyError::new_err(format!("no item has the id {id:?}"));
            view.find(&id).ok_or_else(unknown)
        };
        let numbers = ids.try_iter()?.map(number).collect::<PyResult<Vec<_>>>()?;
        Ok(Self::set(slf, view.choose(numbers)))
    }

    /// Joins the catalog with the tokens by which a model spells its codes.
    #[pyo3(signature = (code_tokens, num_tokens=None, items=None))]
    fn constraint(
        slf: &Bound<'_, Self>,
        code_tokens: &Bound<'_, PyAny>,
        num_tokens: Option<usize>,
        items: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<CatalogConstraint> {
        let tokens = code_tokens_of(code_tokens, num_tokens)?;
        let constraint = CatalogConstraint::new(slf, tokens)?;
        match items {
            Some(items) => constraint.filtered(slf.py(), items),
            None => Ok(constraint),
        }
    }

    /// The tables of STATIC for this catalog, whose code `c` is token `c`: `(packed_csr, indptr,
    /// layer_max_branches, start_mask, dense_mask, dense_states)`.
    #[pyo3(signature = (vocab_size=None, dense_lookup_layers=2, num_levels=None))]
    fn to_static<'py>(
        &self,
        py: Python<'py>,
        vocab_size: Option<usize>,
        dense_lookup_layers: usize,
        num_levels: Option<usize>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let num_tokens = vocab_size
            .unwrap_or_else(|| self.codes_per_level().into_iter().max().unwrap_or(0) as usize);
        let num_levels = num_levels.unwrap_or(self.view.num_levels());
        let tables = process::detach_in_pool(py, || {
            let catalog = self.frozen()?;
            StaticTables::of(&catalog, num_tokens, num_levels, dense_lookup_layers)
                .map_err(CatalogError::new_err)
        })?;
        let dense = vec![num_tokens; dense_lookup_layers];
        let packed = arrays::array(py, &tables.packed_csr)?;
        let branches = PyTuple::new(py, &tables.layer_max_branches)?;
        PyTuple::new(
            py,
            [
                arrays::shaped(packed, &[tables.packed_csr.len() / 2, 2])?,
                arrays::array(py, &tables.indptr)?,
                branches.into_any(),
                arrays::bools(py, &tables.start_mask)?,
                arrays::shaped(arrays::bools(py, &tables.dense_mask)?, &dense)?,
                arrays::shaped(arrays::array(py, &tables.dense_states)?, &dense)?,
            ],
        )
    }

    /// The catalog of an index of STATIC; its items are named `0`, `1`, … in the order of their
    /// semantic IDs.
    #[staticmethod]
    fn from_static(
        packed_csr: &Bound<'_, PyAny>,
        indptr: &Bound<'_, PyAny>,
        start_mask: &Bound<'_, PyAny>,
        num_levels: usize,
    ) -> PyResult<Self> {
        let py = packed_csr.py();
        let starts = py.import("numpy")?.call_method1("flatnonzero", (start_mask,))?;
        let starts = IntMatrix::of_column(&starts, "start_mask")?;
        let packed_csr = IntMatrix::of_array(packed_csr, "packed_csr")?;
        let indptr = IntMatrix::of_column(indptr, "indptr")?;
        let catalog =
            process::detach_in_pool(py, || catalog_of(&packed_csr, &indptr, &starts, num_levels));
        catalog.map(Self::of).map_err(CatalogError::new_err)
    }

    /// The bytes of the file that `save` writes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes =
            process::detach_in_pool(py, || self.frozen().map(|catalog| catalog.to_bytes()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The catalog in the bytes of a file. Everything in them is checked.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let bytes = bytes.to_vec();
        let read = process::detach_in_pool(py, || {
            palmette_catalog::Catalog::from_bytes("bytes", bytes, Check::Whole)
        });
        read.map(Self::of).map_err(|error| of_file(&error))
    }

    fn __repr__(&self) -> String {
        let (items, levels) = (self.view.num_items(), self.view.num_levels());
        match self.view.generation() {
            Some(generation) => {
                format!("<Catalog of {items} items, {levels} levels, generation {generation}>")
            }
            None => format!("<Catalog of {items} items, {levels} levels>"),
        }
    }

    /// Pickles by the bytes of its file.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>().getattr("_restore")?, (self.to_bytes(py)?,)))
    }

    #[classmethod]
    fn _restore(class: &Bound<'_, PyType>, bytes: &[u8]) -> PyResult<Self> {
        Self::from_bytes(class.py(), bytes)
    }
}

impl Catalog {
    /// A set of its items.
    fn set(slf: &Bound<'_, Self>, items: ViewItems) -> ItemSet {
        let (catalog, view) = (slf.clone().unbind(), slf.get().view.clone());
        ItemSet { catalog, view, items, filter: None }
    }

    /// The items with these numbers.
    pub(crate) fn chosen(&self, numbers: &Bound<'_, PyAny>) -> PyResult<ViewItems> {
        let numbers = IntMatrix::of_column(numbers, "numbers")?;
        let number = |row| self.number(numbers.get(row, 0));
        let numbers = (0..numbers.num_rows()).map(number).collect::<PyResult<Vec<_>>>()?;
        Ok(self.view.choose(numbers))
    }

    /// The frozen catalog or a segment by its place, and those of its items that are there.
    fn segment(
        &self,
        place: usize,
    ) -> PyResult<(&palmette_catalog::Catalog, Option<&palmette_catalog::index::ItemSet>)> {
        self.view.parts().nth(place).ok_or_else(|| {
            PyValueError::new_err(format!(
                "place {place} of {} segments",
                self.view.parts().count()
            ))
        })
    }

    /// The number of an item, if there is one of this number.
    fn number(&self, number: i64) -> PyResult<u64> {
        let num_numbers = self.view.num_numbers();
        let found = u64::try_from(number).ok().filter(|&number| number < num_numbers);
        let is_there = |number: &u64| {
            let (segment, rank) = self.view.segment_of(*number);
            let (_, live) = self.view.parts().nth(segment).expect("a segment of this view");
            live.is_none_or(|live| live.ranks().contains(rank))
        };
        found.filter(is_there).ok_or_else(|| {
            PyValueError::new_err(format!("no item has number {number} of {num_numbers}"))
        })
    }

    /// True where some item begins with the row of codes.
    fn have_prefixes(&self, prefixes: &IntMatrix) -> Vec<bool> {
        let mut found = vec![false; prefixes.num_rows()];
        for (catalog, live) in self.view.parts() {
            let index = catalog.index();
            // Rows still going on, and their places. A catalog without items has none.
            let mut rows: Vec<usize> = (0..prefixes.num_rows()).collect();
            let start = catalog.start();
            let start_is_in = match live {
                Some(live) => live.ranks().any_in(start.ranks()),
                None => !start.is_dead(),
            };
            rows.retain(|_| start_is_in);
            let mut states: Vec<CatalogState> = rows.iter().map(|_| start).collect();
            for level in 0..prefixes.num_columns() {
                let code =
                    |at: usize, _| prefixes.get(rows[at], level).try_into().unwrap_or(u32::MAX);
                index.advance(&mut states, live, code);
                let mut alive = states.iter().map(|state| !state.is_dead());
                rows.retain(|_| alive.next().unwrap_or(false));
                states.retain(|state| !state.is_dead());
            }
            rows.iter().for_each(|&row| found[row] = true);
        }
        found
    }
}

/// Codes of one item; `None` where one is no code, so that no item has them.
fn codes_of(codes: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u32>>> {
    let column = IntMatrix::of_column(codes, "codes")?;
    Ok((0..column.num_rows()).map(|row| u32::try_from(column.get(row, 0)).ok()).collect())
}

/// Names of a table's columns; the usual ones where none are given.
fn columns(
    id_column: Option<String>,
    codes: Option<&Bound<'_, PyAny>>,
    left_out: Vec<String>,
) -> PyResult<SourceOptions> {
    let codes_columns = match codes {
        None => Vec::new(),
        Some(codes) => match codes.extract::<String>() {
            Ok(name) => vec![name],
            Err(_) => codes.extract::<Vec<String>>()?,
        },
    };
    Ok(SourceOptions { id_column, codes_columns, left_out, ..SourceOptions::default() })
}
