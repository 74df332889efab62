//! Tables of other libraries, as streams of Arrow batches: pyarrow, polars, pandas, DuckDB.
//!
//! They speak the [PyCapsule
//! interface](https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html): a
//! method `__arrow_c_stream__` that hands over a C structure. Batches are read one by one, and
//! nothing is copied before it is packed.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use palmette_catalog::readers::{ItemSink, ReadSummary, SourceOptions};
use palmette_catalog::{BuildError, BuildOptions, Catalog, CatalogBuilder};
use palmette_catalog_arrow::{TableError, read_batch_rows, read_batches_into};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use serde_json::{Map, Value};

use super::build::{conflict_notes, not_built, warn};
use super::errors::{CatalogError, of_build};
use crate::errors::with;
use crate::interrupt::interruptible;
use crate::process;

/// Name of a table in errors.
pub(crate) const TABLE: &str = "table";

/// True when an object hands over a stream.
pub(crate) fn is_table(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    object.hasattr("__arrow_c_stream__")
}

/// The stream that an object hands over.
///
/// # Errors
/// `TypeError` for what has none.
#[allow(unsafe_code, reason = "a C structure changes hands")]
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    if !is_table(object)? {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "{kind} is no table: a pyarrow Table, a polars or pandas DataFrame, a DuckDB relation, or anything else with \
             __arrow_c_stream__ is"
        )));
    }
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast_into::<PyCapsule>().map_err(PyErr::from)?;
    let stream =
        capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a pointer to such a structure, by the interface, and
    // keeps it until the capsule goes, which is held here. `from_raw` moves the structure out and
    // leaves a released one, which the capsule's destructor then lets be; one that was released
    // before it refuses.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|error| PyValueError::new_err(format!("the stream of the table: {error}")))
}

/// The catalog of a table's rows.
pub(crate) fn catalog(table: &Bound<'_, PyAny>, options: &SourceOptions) -> PyResult<Catalog> {
    let py = table.py();
    let reader = stream(table)?;
    build_from(py, |sink| {
        let schema = reader.schema();
        read_batches_into(TABLE, &schema, reader, options, sink)
    })
}

/// Builds the catalog of the items that `read` pushes; Ctrl-C ends it.
pub(crate) fn build_from(
    py: Python<'_>,
    read: impl FnOnce(&mut CancelSink<'_>) -> Result<ReadSummary, TableError> + Send,
) -> PyResult<Catalog> {
    let built = interruptible(py, |cancelled| {
        let builder = CatalogBuilder::new(BuildOptions::default()).map_err(TableRefusal::Build)?;
        let mut sink = CancelSink { builder, cancelled };
        let summary = match read(&mut sink) {
            Err(_) if cancelled.load(Ordering::Relaxed) => return Ok(None),
            read => read.map_err(TableRefusal::Table)?,
        };
        let mut notes = conflict_notes(&sink.builder, 1);
        notes.extend(summary.notes);
        let catalog = sink.builder.finish_unless(summary.level_prefixes, cancelled);
        Ok(catalog.map_err(TableRefusal::Build)?.map(|catalog| (catalog, notes)))
    })?;
    let built = built.map_err(|refused: TableRefusal| refused.into_exception(py))?;
    // Called off, the signal's exception was raised above.
    let (catalog, notes) = built.ok_or_else(not_built)?;
    warn(py, &notes)?;
    Ok(catalog)
}

/// A builder that takes no more items once the work is called off.
pub(crate) struct CancelSink<'a> {
    builder: CatalogBuilder,
    cancelled: &'a AtomicBool,
}

impl ItemSink for CancelSink<'_> {
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        match self.cancelled.load(Ordering::Relaxed) {
            true => Err(BuildError::of_item(line, id, "was not read: the work was called off")),
            false => self.builder.push(line, id, codes, attributes),
        }
    }

    fn timestamps(&mut self, names: &[String]) {
        ItemSink::timestamps(&mut self.builder, names);
    }
}

/// The rows of a table as objects, and the names of its columns that are points in time.
type Rows = (Vec<Map<String, Value>>, Vec<String>);

/// All rows of a table.
pub(crate) fn rows(table: &Bound<'_, PyAny>) -> PyResult<Rows> {
    let py = table.py();
    let reader = stream(table)?;
    let read = process::detach_in_pool(py, || {
        let schema = reader.schema();
        let times = palmette_catalog_arrow::time_columns(&schema);
        let mut rows = Vec::new();
        let each = &mut |row: palmette_catalog_arrow::TableRow| {
            rows.push(row.values);
            ControlFlow::Continue(())
        };
        read_batch_rows(TABLE, &schema, reader, each).map(|()| (rows, times))
    });
    read.map_err(|error| of_table(py, &error))
}

/// Cause of a table of which no catalog is made.
pub(crate) enum TableRefusal {
    Table(TableError),
    Build(palmette_catalog::BuildError),
}

impl TableRefusal {
    pub(crate) fn into_exception(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Table(error) => of_table(py, &error),
            Self::Build(error) => of_build(py, &error),
        }
    }
}

/// The exception of a table.
pub(crate) fn of_table(py: Python<'_>, error: &TableError) -> PyErr {
    let raised = with(CatalogError::new_err(error.to_string()), py, "line", error.row());
    with(raised, py, "column", error.column())
}
