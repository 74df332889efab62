//! Classes `LiveCatalog` and `LiveReader`: catalogs in a directory, which change while they are
//! read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use palmette_catalog_live::{LiveError, LiveOptions, ReaderOptions, Update};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value};

use super::arrow;
use super::errors::CatalogError;
use super::frozen::Catalog;
use super::values::dict_to_json;
use crate::errors::with;
use crate::process::{self, OfProcess};

/// The exception of a live catalog.
fn of_live(py: Python<'_>, error: &LiveError) -> PyErr {
    let raised = CatalogError::new_err(error.to_string());
    match error.update_index() {
        Some(index) => with(raised, py, "line", index + 1),
        None => raised,
    }
}

/// A catalog in a directory, whose items come, change and go while it is read. What `apply`
/// returned from outlives a crash. One process at a time writes to a directory; others read it with
/// `LiveReader`. Threads share it.
#[pyclass(frozen, weakref, module = "palmette")]
#[derive(Debug)]
pub(crate) struct LiveCatalog {
    /// `None` once it was closed: the directory is unlocked when nothing holds it any more.
    live: Mutex<Option<OfProcess<Arc<palmette_catalog_live::LiveCatalog>>>>,
}

impl LiveCatalog {
    fn of(
        py: Python<'_>,
        opened: Result<palmette_catalog_live::LiveCatalog, LiveError>,
    ) -> PyResult<Self> {
        let live = opened.map_err(|error| of_live(py, &error))?;
        Ok(Self { live: Mutex::new(Some(OfProcess::new(Arc::new(live)))) })
    }

    /// The catalog, as long as it was not closed, in the process that opened it.
    pub(crate) fn live(&self) -> PyResult<Arc<palmette_catalog_live::LiveCatalog>> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(live) = live.as_ref() else {
            return Err(CatalogError::new_err("the live catalog was closed; open it again"));
        };
        live.get().map(Arc::clone).ok_or_else(|| {
            CatalogError::new_err(
                "the live catalog was opened before this process was forked, and one process writes to it: read its directory with \
                 LiveReader.open, or take a snapshot before forking",
            )
        })
    }
}

#[pymethods]
impl LiveCatalog {
    /// Makes one in a directory, with the items of a catalog, or none.
    #[staticmethod]
    #[pyo3(signature = (dir, catalog=None))]
    fn create(
        py: Python<'_>,
        dir: PathBuf,
        catalog: Option<&Bound<'_, Catalog>>,
    ) -> PyResult<Self> {
        let items = catalog.map(|catalog| catalog.get().frozen()).transpose()?;
        let items = items.map(|items| (*items).clone());
        let options = LiveOptions::default();
        let created = process::detach_in_pool(py, || {
            palmette_catalog_live::LiveCatalog::create_with(&dir, items, None, options)
        });
        Self::of(py, created)
    }

    /// Opens a directory that `create` or `palmette catalog live init` made.
    #[staticmethod]
    fn open(py: Python<'_>, dir: PathBuf) -> PyResult<Self> {
        let opened = process::detach_in_pool(py, || {
            palmette_catalog_live::LiveCatalog::open_with(&dir, LiveOptions::default())
        });
        Self::of(py, opened)
    }

    /// Applies updates, all or none; they are on disk when this returns, and readers see them from
    /// then on. Returns the generation.
    ///
    /// An update is `{"id": …, "codes": […], …attributes}` to insert or replace an item, without
    /// codes to change attributes (None takes one away), or `{"delete": id}`. A table has these as
    /// columns, and `_delete` where rows are deletions.
    fn apply(&self, py: Python<'_>, updates: &Bound<'_, PyAny>) -> PyResult<u64> {
        let updates = updates_of(updates)?;
        let live = self.live()?;
        let applied = process::detach_in_pool(py, || live.apply(&updates));
        applied.map(|applied| applied.generation).map_err(|error| of_live(py, &error))
    }

    /// The items as they are now, whatever comes after.
    fn snapshot(&self) -> PyResult<Catalog> {
        Ok(Catalog::of_view(self.live()?.snapshot().into()))
    }

    /// The number of the present state: one more with each batch.
    #[getter]
    fn generation(&self) -> PyResult<u64> {
        Ok(self.live()?.snapshot().generation())
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.live()?.snapshot().num_items() as usize)
    }

    /// Makes codebooks larger: codes of updates are then below these sizes. Returns the generation.
    fn widen(&self, py: Python<'_>, codes_per_level: Vec<u32>) -> PyResult<u64> {
        let live = self.live()?;
        process::detach_in_pool(py, || live.widen(&codes_per_level))
            .map_err(|error| of_live(py, &error))
    }

    /// Keeps the present generation, to go back to; returns its number.
    #[pyo3(signature = (name=None))]
    fn keep(&self, py: Python<'_>, name: Option<&str>) -> PyResult<u64> {
        let live = self.live()?;
        process::detach_in_pool(py, || live.keep(name)).map_err(|error| of_live(py, &error))
    }

    /// Lets go of a kept generation.
    fn forget(&self, py: Python<'_>, generation: u64) -> PyResult<()> {
        let live = self.live()?;
        process::detach_in_pool(py, || live.forget(generation)).map_err(|error| of_live(py, &error))
    }

    /// Makes the items those of a kept generation again, as a new one; returns its number.
    fn rollback(&self, py: Python<'_>, generation: u64) -> PyResult<u64> {
        let live = self.live()?;
        process::detach_in_pool(py, || live.rollback(generation))
            .map_err(|error| of_live(py, &error))
    }

    /// Ends what runs in the background and unlocks the directory; readers of snapshots go on.
    fn close(&self, py: Python<'_>) {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner).take();
        process::detach_in_pool(py, || {
            if let Some(live) = live.as_ref().and_then(OfProcess::get) {
                live.close();
            }
            drop(live);
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        let live = match self.live() {
            Ok(live) => live,
            Err(_) if self.live.lock().unwrap_or_else(PoisonError::into_inner).is_none() => {
                return "<LiveCatalog, closed>".into();
            }
            Err(_) => return "<LiveCatalog of another process>".into(),
        };
        let snapshot = live.snapshot();
        let (items, generation) = (snapshot.num_items(), snapshot.generation());
        format!("<LiveCatalog of {items} items, generation {generation}>")
    }
}

/// A catalog in a directory that another process changes. It locks nothing and writes nothing, and
/// sees a new generation some 20 ms after it was published. Threads share it.
#[pyclass(frozen, weakref, module = "palmette")]
#[derive(Debug)]
pub(crate) struct LiveReader {
    dir: PathBuf,
    /// Opened anew in a forked child, where nothing follows the directory otherwise.
    reader: Mutex<OfProcess<Arc<palmette_catalog_live::LiveReader>>>,
}

impl LiveReader {
    /// The reader of this process.
    pub(crate) fn reader(
        &self,
        py: Python<'_>,
    ) -> PyResult<Arc<palmette_catalog_live::LiveReader>> {
        let mut reader = self.reader.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if let Some(reader) = reader.get() {
            return Ok(Arc::clone(reader));
        }
        let opened = opened(py, &self.dir)?;
        *reader = OfProcess::new(Arc::clone(&opened));
        Ok(opened)
    }
}

fn opened(py: Python<'_>, dir: &Path) -> PyResult<Arc<palmette_catalog_live::LiveReader>> {
    let opened = process::detach_in_pool(py, || {
        palmette_catalog_live::LiveReader::open_with(dir, ReaderOptions::default())
    });
    opened.map(Arc::new).map_err(|error| of_live(py, &error))
}

#[pymethods]
impl LiveReader {
    /// Opens a directory that a `LiveCatalog` or `palmette catalog live` writes.
    #[staticmethod]
    fn open(py: Python<'_>, dir: PathBuf) -> PyResult<Self> {
        let reader = Mutex::new(OfProcess::new(opened(py, &dir)?));
        Ok(Self { dir, reader })
    }

    /// The items as they are now, whatever comes after.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Catalog> {
        Ok(Catalog::of_view(self.reader(py)?.snapshot().into()))
    }

    /// The items of a generation that is kept, by its number or name.
    fn kept(&self, py: Python<'_>, generation: &Bound<'_, PyAny>) -> PyResult<Catalog> {
        let name = generation.str()?.to_cow()?.into_owned();
        let reader = self.reader(py)?;
        let found = process::detach_in_pool(py, || reader.generation(&name));
        Ok(Catalog::of_view(found.map_err(|error| of_live(py, &error))?.into()))
    }

    /// Looks for a newer generation at once; returns the newest.
    fn refresh(&self, py: Python<'_>) -> PyResult<u64> {
        let reader = self.reader(py)?;
        process::detach_in_pool(py, || reader.refresh()).map_err(|error| of_live(py, &error))
    }

    /// The number of the newest generation that was seen.
    #[getter]
    fn generation(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.reader(py)?.snapshot().generation())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.reader(py)?.snapshot().num_items() as usize)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let snapshot = self.reader(py)?.snapshot();
        let (items, generation) = (snapshot.num_items(), snapshot.generation());
        Ok(format!("<LiveReader of {items} items, generation {generation}>"))
    }
}

/// Updates of dicts, or of the rows of a table.
fn updates_of(updates: &Bound<'_, PyAny>) -> PyResult<Vec<Update>> {
    if arrow::is_table(updates)? {
        let (rows, _) = arrow::rows(updates)?;
        let update = |(at, row)| update_of(updates.py(), at, without_mark(row));
        return rows.into_iter().enumerate().map(update).collect();
    }
    if !updates.is_instance_of::<PyList>() && updates.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err("updates are a list of dicts; put this one in a list"));
    }
    let update = |(at, update): (usize, PyResult<Bound<'_, PyAny>>)| {
        let update = update?;
        let Ok(dict) = update.cast::<PyDict>() else {
            let kind = update.get_type().name()?;
            return Err(PyTypeError::new_err(format!("update {at} is a {kind}, not a dict")));
        };
        update_of(update.py(), at, dict_to_json(dict)?)
    };
    updates.try_iter()?.enumerate().map(update).collect()
}

/// The row of a table as an update: `{"delete": id}` where it is marked so.
fn without_mark(mut row: Map<String, Value>) -> Map<String, Value> {
    if row.remove("_delete") != Some(Value::Bool(true)) {
        return row;
    }
    let id = ["item_id", "id"].into_iter().find_map(|name| row.remove(name));
    Map::from_iter([("delete".to_owned(), id.unwrap_or(Value::Null))])
}

fn update_of(py: Python<'_>, at: usize, update: Map<String, Value>) -> PyResult<Update> {
    Update::from_json_line(&Value::Object(update).to_string()).map_err(|error| {
        with(CatalogError::new_err(format!("update {at}: {error}")), py, "line", at + 1)
    })
}
