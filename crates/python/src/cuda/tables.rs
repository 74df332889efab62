//! Classes `CudaTables` and `CudaFilters`: a catalog on a device, for searches over tensors of a
//! caller.

use std::sync::Arc;

use palmette_catalog::LevelSpelling;
use palmette_catalog_live::{CatalogView, ViewItems};
use palmette_cuda::catalog::{
    CallerArrays, CallerFilters, CallerShape, CallerTables, CatalogError as Failure, DeviceCatalog,
};
use palmette_cuda::{Address, CallerStream};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::device::{CudaDevice, of_device};
use crate::buffers::{DeviceArray, Element};
use crate::catalog::constraint::CatalogConstraint;
use crate::catalog::errors::of_filter;
use crate::catalog::filter::{ItemSet, filter_of, is_same};
use crate::catalog::frozen::Catalog;
use crate::process;

/// Bytes of filters that are kept on a device for a catalog.
const FILTER_BYTES: usize = 256 << 20;

/// Catalog of one generation on a device.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct CudaTables {
    device: Py<CudaDevice>,
    tables: Arc<CallerTables>,
    source: Source,
    /// Token, and column of logits, of each level's code 0.
    first_tokens: Vec<u32>,
}

/// Filters of searches over tables, on the device.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct CudaFilters {
    filters: CallerFilters,
    num_filters: usize,
}

/// Items that tables are of, and those of them that may be found.
#[derive(Clone, Debug)]
struct Source {
    view: CatalogView,
    items: Option<ViewItems>,
}

/// First token and number of codes of each level.
type Runs = Vec<(u32, u32)>;

impl Source {
    /// A catalog, whose codes are the tokens, or a constraint of one.
    fn new(source: &Bound<'_, PyAny>) -> PyResult<(Self, Runs)> {
        let py = source.py();
        if let Ok(catalog) = source.cast::<Catalog>() {
            let catalog = catalog.get();
            let runs = catalog.codes_per_level().into_iter().map(|codes| (0, codes)).collect();
            return Ok((Self { view: catalog.view.clone(), items: None }, runs));
        }
        let Ok(constraint) = source.cast::<CatalogConstraint>() else {
            return Err(PyTypeError::new_err(format!(
                "tables are made of a Catalog or a CatalogConstraint, not of a {}",
                source.get_type().name()?
            )));
        };
        let constraint = constraint.get();
        let levels = constraint.spelled.tokens().levels().iter().enumerate();
        let run = |(level, spelling): (usize, &LevelSpelling)| match spelling {
            LevelSpelling::Run(run) => Ok((run.first_token, run.num_codes)),
            LevelSpelling::Table(_) => Err(PyValueError::new_err(format!(
                "the tokens of level {level} are no run: kernels take levels whose code c is token first + c; \
                 palmette.torch_tables takes others"
            ))),
        };
        let runs = levels.map(run).collect::<PyResult<_>>()?;
        Ok((
            Self {
                view: constraint.view.clone(),
                items: constraint.items(py).map(|set| set.items.clone()),
            },
            runs,
        ))
    }

    /// The items of a filter in any of its forms, as far as they may be found; `None` for all.
    fn matching(&self, py: Python<'_>, filter: &Bound<'_, PyAny>) -> PyResult<Option<ViewItems>> {
        if filter.is_none() {
            return Ok(self.items.clone());
        }
        let items = if let Ok(set) = filter.cast::<ItemSet>() {
            set.get().items_of(&self.view)?
        } else if let Ok(constraint) = filter.cast::<CatalogConstraint>() {
            match constraint.get().items(py) {
                Some(set) => set.items_of(&self.view)?,
                None if is_same(&constraint.get().view, &self.view) => {
                    return Ok(self.items.clone());
                }
                None => {
                    return Err(PyValueError::new_err(
                        "the constraint is of another catalog (or generation) than the tables; filter the one that they are of",
                    ));
                }
            }
        } else {
            let filter = filter_of(filter)?;
            process::detach_in_pool(py, || self.view.filter(&filter))
                .map_err(|error| of_filter(&error))?
        };
        Ok(Some(match &self.items {
            Some(own) => process::detach_in_pool(py, || self.view.intersection(own, &items)),
            None => items,
        }))
    }
}

/// The exception of a catalog's failure on a device.
fn of_catalog(error: &Failure) -> PyErr {
    match error {
        Failure::Device(error) => of_device(error),
        error => PyValueError::new_err(error.to_string()),
    }
}

impl CudaTables {
    pub(super) fn new(
        device: &Bound<'_, CudaDevice>,
        source: &Bound<'_, PyAny>,
        known: Option<&Self>,
    ) -> PyResult<Self> {
        let py = device.py();
        let (source, runs) = Source::new(source)?;
        let (first_tokens, codes): (Vec<u32>, Vec<u32>) = runs.into_iter().unzip();
        let driver = Arc::clone(device.get().driver()?);
        let catalog = match known.map(|known| known.tables.catalog()) {
            Some(catalog) if catalog.codes() == codes => Arc::clone(catalog),
            _ => Arc::new(DeviceCatalog::new(driver, codes, FILTER_BYTES)),
        };
        let tables = process::detach_in_pool(py, || {
            let snapshot = catalog.snapshot(&source.view)?;
            CallerTables::new(catalog, snapshot)
        });
        let tables = Arc::new(tables.map_err(|error| of_catalog(&error))?);
        Ok(Self { device: device.clone().unbind(), tables, source, first_tokens })
    }

    fn shape(
        &self,
        level: usize,
        (requests, rows): (usize, usize),
        columns: usize,
        width: usize,
    ) -> PyResult<CallerShape> {
        let Some(&first) = self.first_tokens.get(level) else {
            let levels = self.first_tokens.len();
            let message =
                format!("level {level} of a catalog with {levels} levels: the search has ended");
            return Err(PyValueError::new_err(message));
        };
        Ok(CallerShape { level, requests, rows, columns, first, width })
    }
}

#[pymethods]
impl CudaTables {
    /// Levels of a semantic ID.
    #[getter]
    fn num_levels(&self) -> usize {
        self.first_tokens.len()
    }

    /// Number of segments.
    #[getter]
    fn num_segments(&self) -> usize {
        self.tables.snapshot().num_segments()
    }

    /// The number of a live catalog's moment; None for a frozen catalog.
    #[getter]
    fn generation(&self) -> Option<u64> {
        self.source.view.generation()
    }

    /// Bytes of the tables on the device, those that other generations share included.
    #[getter]
    fn nbytes(&self) -> usize {
        self.tables.snapshot().bytes()
    }

    /// The device.
    #[getter]
    fn device(&self, py: Python<'_>) -> Py<CudaDevice> {
        self.device.clone_ref(py)
    }

    /// Tables of another generation; the segments that both have are shared.
    fn refreshed(slf: &Bound<'_, Self>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let this = slf.get();
        Self::new(this.device.bind(slf.py()), source, Some(this))
    }

    /// Filters on the device: one for all requests, or several, a request each. Each is a filter,
    /// an item set, a constraint of the catalog, or None for all that may be found.
    #[pyo3(signature = (*filters))]
    fn filters(&self, py: Python<'_>, filters: &Bound<'_, PyTuple>) -> PyResult<CudaFilters> {
        self.device.get().driver()?;
        if filters.is_empty() {
            return Err(PyValueError::new_err(
                "no filters: give one for all requests, or one a request",
            ));
        }
        let items = filters.iter().map(|filter| self.source.matching(py, &filter));
        let items = items.collect::<PyResult<Vec<_>>>()?;
        let made = process::detach_in_pool(py, || self.tables.filters(&items));
        let filters = made.map_err(|error| of_catalog(&error))?;
        Ok(CudaFilters { filters, num_filters: items.len() })
    }

    /// Bytes of memory that a level works in.
    fn scratch_bytes(
        &self,
        level: usize,
        requests: usize,
        rows: usize,
        columns: usize,
        width: usize,
    ) -> PyResult<usize> {
        let shape = self.shape(level, (requests, rows), columns, width)?;
        self.tables.scratch_bytes(&shape).map_err(|error| of_catalog(&error))
    }

    /// Launches a level on a stream. `before`: scores, positions, states and tokens of the beams;
    /// `after`: those of the next ones, and the beams that they continue.
    #[expect(clippy::too_many_arguments, reason = "arrays of one kernel, for one caller")]
    fn select(
        &self,
        py: Python<'_>,
        filters: &Bound<'_, CudaFilters>,
        level: usize,
        logits: &Bound<'_, PyAny>,
        is_log_probs: bool,
        before: [Bound<'_, PyAny>; 4],
        after: [Bound<'_, PyAny>; 5],
        scratch: &Bound<'_, PyAny>,
        stream: u64,
    ) -> PyResult<()> {
        let device = self.device.get();
        device.driver()?;
        let array = |object: &Bound<'_, PyAny>, name, element, rule: &str| {
            DeviceArray::new(object, name, device.place(), &[element], rule)
        };
        let (single, word, number) = (Element::Float(4), Element::Signed(4), Element::Signed(8));
        let logits = array(logits, "logits", single, "float32, such as logits.float()")?;
        let [scores, positions, states, tokens] = &before;
        let scores = array(scores, "scores", single, "float32")?;
        let positions = array(positions, "positions", word, "int32")?;
        let states = array(states, "states", word, "int32")?;
        let tokens = array(tokens, "tokens", number, "int64")?;
        let &[requests, rows] = scores.shape() else {
            return Err(PyValueError::new_err(
                "scores are of beams [requests, beams], as select gives them",
            ));
        };
        let segments = self.num_segments();
        let of_beams = "of the beams, as select gives them";
        scores.exact(&[requests, rows], of_beams)?;
        if level > 0 {
            positions.exact(&[requests, rows, segments, 3], of_beams)?;
            states.exact(&[requests, 4], of_beams)?;
        }
        tokens.exact(&[requests, rows, level], of_beams)?;
        let &[_, columns] = logits.shape() else {
            return Err(PyValueError::new_err("logits are a matrix [requests * beams, tokens]"));
        };
        logits.exact(&[requests * rows, columns], "a row for each beam of each request")?;
        let [next_scores, next_positions, next_states, next_tokens, parents] = &after;
        let next_scores = array(next_scores, "next scores", single, "float32")?.writable()?;
        let next_positions = array(next_positions, "next positions", word, "int32")?.writable()?;
        let next_states = array(next_states, "next states", word, "int32")?.writable()?;
        let next_tokens = array(next_tokens, "next tokens", number, "int64")?.writable()?;
        let parents = array(parents, "parents", number, "int64")?.writable()?;
        let &[_, width] = parents.shape() else {
            return Err(PyValueError::new_err("parents are of beams [requests, width]"));
        };
        let of_next = "of the next beams";
        next_scores.exact(&[requests, width], of_next)?;
        next_positions.exact(&[requests, width, segments, 3], of_next)?;
        next_states.exact(&[requests, 4], of_next)?;
        next_tokens.exact(&[requests, width, level + 1], of_next)?;
        parents.exact(&[requests, width], of_next)?;
        let shape = self.shape(level, (requests, rows), columns, width)?;
        let needed = self.tables.scratch_bytes(&shape).map_err(|error| of_catalog(&error))?;
        let scratch = array(scratch, "scratch", Element::Unsigned(1), "uint8")?.writable()?;
        scratch.exact(&[needed], "the bytes that the level works in")?;
        let address = |array: &DeviceArray| Address(array.address());
        let arrays = CallerArrays {
            logits: address(&logits),
            is_normalised: is_log_probs,
            scores: address(&scores),
            positions: address(&positions),
            states: address(&states),
            tokens: address(&tokens),
            scratch: address(&scratch),
            next_scores: address(&next_scores),
            next_positions: address(&next_positions),
            next_states: address(&next_states),
            next_tokens: address(&next_tokens),
            parents: address(&parents),
        };
        let filters = &filters.get().filters;
        let selected = process::detach(py, || {
            self.tables.select(CallerStream(stream), filters, &shape, &arrays)
        });
        selected.map_err(|error| of_catalog(&error))
    }

    fn __repr__(&self) -> String {
        let (levels, bytes) = (self.num_levels(), self.nbytes());
        format!(
            "<CudaTables of {} items, {levels} levels, {bytes} bytes>",
            self.source.view.num_items()
        )
    }
}

#[pymethods]
impl CudaFilters {
    fn __len__(&self) -> usize {
        self.num_filters
    }

    fn __repr__(&self) -> String {
        format!("<CudaFilters: {}>", self.num_filters)
    }
}
