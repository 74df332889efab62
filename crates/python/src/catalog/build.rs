//! Catalogs from arrays: codes, ids and attributes as columns.

use std::sync::atomic::{AtomicBool, Ordering};

use palmette_catalog::readers::ItemSink;
use palmette_catalog::{
    BuildError, BuildOptions, Catalog, CatalogBuilder, ColumnConflict, ColumnKind, KindConflict,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFrozenSet, PyInt, PySet, PyString};
use serde_json::{Map, Value};

use super::arrow::{self, is_table};
use super::codes::IntMatrix;
use super::errors::CatalogError;
use super::item_codes::Codes;
use super::values::{is_instant, listed, to_json};
use crate::errors::with;
use crate::interrupt::interruptible;

/// Names of items.
enum Ids {
    /// The number of the row.
    Numbers,
    Integers(IntMatrix),
    Texts(Vec<String>),
}

/// Number of rows between two looks at whether the work is called off.
const BETWEEN_LOOKS: usize = 1 << 12;

/// One attribute of all items.
struct Column {
    name: String,
    values: Vec<Value>,
    is_instant: bool,
}

/// Builds a catalog of codes with ids and attributes; Ctrl-C ends it.
pub(crate) fn build(
    py: Python<'_>,
    codes: Codes,
    ids: Option<&Bound<'_, PyAny>>,
    attributes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Catalog> {
    let num_items = codes.len();
    let ids = Ids::of(ids, num_items)?;
    let attributes = Attributes::of(attributes, num_items)?;
    let built = interruptible(py, |cancelled| build_of(&codes, &ids, attributes, cancelled))?;
    // Called off, the signal's exception was raised above.
    let built = built.map_err(|error| of_row(py, &error))?;
    let (catalog, notes) = built.ok_or_else(not_built)?;
    warn(py, &notes)?;
    Ok(catalog)
}

/// The exception of a build that was called off, where the signal's own was not raised.
pub(crate) fn not_built() -> PyErr {
    PyKeyboardInterrupt::new_err("the catalog was not built")
}

/// Notes about attributes that hold values of several kinds. Rows are counted on from `first`.
pub(crate) fn conflict_notes(builder: &CatalogBuilder, first: u64) -> Vec<String> {
    let note = |conflict: KindConflict| {
        let KindConflict { conflict, line, first_line } = conflict;
        let (row, first_row) = (line - 1 + first, first_line - 1 + first);
        let ColumnConflict { name, value, kind, first_value, first_kind, .. } = conflict;
        format!(
            "row {row}: attribute {name:?} is {value} ({kind}), and {first_value} ({first_kind}) in row {first_row}; it is kept as \
             json, which filters cannot compare: give one kind of value"
        )
    };
    builder.conflicts().map(note).collect()
}

/// Issues a `UserWarning` for each note.
pub(crate) fn warn(py: Python<'_>, notes: &[String]) -> PyResult<()> {
    let category = py.get_type::<PyUserWarning>();
    notes.iter().try_for_each(|note| {
        let note = std::ffi::CString::new(note.replace('\0', "")).expect("zeros were taken out");
        PyErr::warn(py, &category, &note, 1)
    })
}

/// Attributes of all items, and which of them are points in time.
struct Attributes {
    instants: Vec<String>,
    values: Values,
}

enum Values {
    Columns(Vec<Column>),
    Rows(Vec<Map<String, Value>>),
}

impl Attributes {
    fn of(attributes: Option<&Bound<'_, PyAny>>, num_items: usize) -> PyResult<Self> {
        let Some(attributes) = attributes else {
            return Ok(Self { instants: Vec::new(), values: Values::Columns(Vec::new()) });
        };
        if let Ok(columns) = attributes.cast::<PyDict>() {
            let columns = columns_of(columns, num_items)?;
            let instants = columns.iter().filter(|column| column.is_instant);
            let instants = instants.map(|column| column.name.clone()).collect();
            return Ok(Self { instants, values: Values::Columns(columns) });
        }
        if !is_table(attributes)? {
            let kind = attributes.get_type().name()?;
            let message = format!("attributes are a dict of columns or an Arrow table, not {kind}");
            return Err(PyTypeError::new_err(message));
        }
        let (rows, instants) = arrow::rows(attributes)?;
        if rows.len() != num_items {
            let len = rows.len();
            let message = format!("the attributes have {len} rows for {num_items} rows of codes");
            return Err(PyValueError::new_err(message));
        }
        Ok(Self { instants, values: Values::Rows(rows) })
    }
}

impl Values {
    /// Takes the attributes of a row; those that are null are left out.
    fn take(&mut self, row: usize) -> Map<String, Value> {
        match self {
            Self::Rows(rows) => std::mem::take(&mut rows[row]),
            Self::Columns(columns) => {
                let values = columns.iter_mut().map(|column| {
                    let value = std::mem::take(&mut column.values[row]);
                    (column.name.clone(), value)
                });
                values.filter(|(_, value)| !value.is_null()).collect()
            }
        }
    }
}

/// The catalog; `None` when it was called off.
fn build_of(
    codes: &Codes,
    ids: &Ids,
    attributes: Attributes,
    cancelled: &AtomicBool,
) -> Result<Option<(Catalog, Vec<String>)>, BuildError> {
    let Attributes { instants, mut values } = attributes;
    let columns = instants.into_iter().map(|name| (name, ColumnKind::Timestamp)).collect();
    let mut builder = CatalogBuilder::new(BuildOptions { columns, ..BuildOptions::default() })?;
    let mut row_codes = Vec::new();
    for row in 0..codes.len() {
        if row.is_multiple_of(BETWEEN_LOOKS) && cancelled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (line, id) = (row as u64 + 1, ids.get(row));
        codes.read(row, &mut row_codes).map_err(|rule| BuildError::of_item(line, &*id, rule))?;
        builder.push(line, id, &row_codes, values.take(row))?;
    }
    let notes = conflict_notes(&builder, 0);
    Ok(builder.finish_unless(None, cancelled)?.map(|catalog| (catalog, notes)))
}

/// The exception of a row, counted from 0 as arrays are.
fn of_row(py: Python<'_>, error: &BuildError) -> PyErr {
    let message = match (error.line(), error.id(), error.first_line(), error.rule()) {
        (Some(line), Some(id), Some(first), _) => format!(
            "row {}: item {id:?} stands twice, first in row {}; ids must be unique",
            line - 1,
            first - 1
        ),
        (Some(line), Some(id), None, Some(rule)) => format!("row {}: item {id:?} {rule}", line - 1),
        _ => error.to_string(),
    };
    let raised = with(CatalogError::new_err(message), py, "line", error.line());
    with(raised, py, "item", error.id())
}

impl Ids {
    fn of(ids: Option<&Bound<'_, PyAny>>, num_items: usize) -> PyResult<Self> {
        let Some(ids) = ids else { return Ok(Self::Numbers) };
        let (ids, len) = match is_integer_array(ids) {
            true => {
                let column = IntMatrix::of_column(ids, "ids")?;
                let len = column.num_rows();
                (Self::Integers(column), len)
            }
            false => {
                let texts = elements(ids)?.map(|id| id_of(&id?)).collect::<PyResult<Vec<_>>>()?;
                let len = texts.len();
                (Self::Texts(texts), len)
            }
        };
        match len == num_items {
            true => Ok(ids),
            false => {
                let message = format!("{len} ids are given for {num_items} rows of codes");
                Err(PyValueError::new_err(message))
            }
        }
    }

    fn get(&self, row: usize) -> String {
        match self {
            Self::Numbers => row.to_string(),
            Self::Integers(column) => column.get(row, 0).to_string(),
            Self::Texts(texts) => texts[row].clone(),
        }
    }
}

/// True of arrays whose integers fit 64 bits with a sign: larger ones, such as hashes, are read one
/// by one.
fn is_integer_array(object: &Bound<'_, PyAny>) -> bool {
    let Ok(dtype) = object.getattr("dtype") else { return false };
    let kind = dtype.getattr("kind").and_then(|kind| kind.extract::<String>());
    let bytes = dtype.getattr("itemsize").and_then(|bytes| bytes.extract::<usize>());
    match (kind.as_deref(), bytes) {
        (Ok("i"), _) => true,
        (Ok("u"), Ok(bytes)) => bytes < 8,
        _ => false,
    }
}

/// An id: text, or a whole number.
pub(crate) fn id_of(id: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = id.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    if id.is_instance_of::<PyInt>() && !id.is_instance_of::<PyBool>() {
        return Ok(id.str()?.to_cow()?.into_owned());
    }
    // Integers of NumPy and others.
    let name = id.get_type().name()?;
    if id.hasattr("__index__")? && !name.to_cow()?.starts_with("bool") {
        return Ok(id.call_method0("__index__")?.str()?.to_cow()?.into_owned());
    }
    let shown = id.repr()?;
    Err(PyTypeError::new_err(format!("{shown} is no id; ids are text or whole numbers")))
}

/// Refuses one text, a set or a dict in the place of a column.
///
/// All can be gone through; a set has no order, and of a dict the names would be taken.
pub(crate) fn check_order(column: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_one = column.is_instance_of::<PyString>() || column.is_instance_of::<PyBytes>();
    let is_set = column.is_instance_of::<PySet>() || column.is_instance_of::<PyFrozenSet>();
    if !is_one && !is_set && !column.is_instance_of::<PyDict>() {
        return Ok(());
    }
    let kind = column.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a {kind} is no list of values in order; give a list or an array"
    )))
}

/// The elements of a list, an array, a Series or a column of Arrow, as Python's own objects, `None`
/// where one is missing. Signals are looked at now and then.
pub(crate) fn elements<'py>(
    column: &Bound<'py, PyAny>,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>>> {
    let py = column.py();
    check_order(column)?;
    let list = ["to_pylist", "tolist", "to_list"].into_iter().find_map(|method| {
        let is_there = column.hasattr(method).ok()?;
        is_there.then(|| match method {
            "tolist" => listed(column),
            _ => column.call_method0(method),
        })
    });
    // A Series of pandas has a value of its own kind where one is missing: NaN, NaT, NA.
    let missing = match column.getattr_opt("isna")? {
        Some(isna) => Some(isna.call0()?.call_method0("tolist")?.try_iter()?),
        None => None,
    };
    let mut missing = missing.into_iter().flatten();
    let elements = list.unwrap_or_else(|| Ok(column.clone()))?.try_iter()?;
    Ok(elements.enumerate().map(move |(at, element)| {
        if at.is_multiple_of(BETWEEN_LOOKS) {
            py.check_signals()?;
        }
        let is_missing = missing.next().transpose()?;
        match is_missing.map(|is_missing| is_missing.is_truthy()).transpose()? {
            Some(true) => Ok(py.None().into_bound(py)),
            _ => element,
        }
    }))
}

fn columns_of(attributes: &Bound<'_, PyDict>, num_items: usize) -> PyResult<Vec<Column>> {
    let py = attributes.py();
    let column = |(name, values): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let Ok(name) = name.extract::<String>() else {
            let message = format!("attributes are named by text, not {}", name.repr()?);
            return Err(PyTypeError::new_err(message));
        };
        if values.is_instance_of::<PyString>() {
            let message = format!(
                "attribute {name:?} is one text; a list or array of {num_items} values is expected"
            );
            return Err(PyTypeError::new_err(message));
        }
        let (mut found, mut is_an_instant) = (Vec::with_capacity(num_items), false);
        let values = elements(&values).map_err(|cause| {
            PyTypeError::new_err(format!("attribute {name:?}: {}", cause.value(py)))
        })?;
        for (row, value) in values.enumerate() {
            let value = value?;
            is_an_instant |= is_instant(&value)?;
            found.push(to_json(&value).map_err(|cause| {
                let message = format!("attribute {name:?}, row {row}: {}", cause.value(value.py()));
                PyValueError::new_err(message)
            })?);
        }
        if found.len() != num_items {
            let len = found.len();
            let message =
                format!("attribute {name:?} has {len} values for {num_items} rows of codes");
            return Err(PyValueError::new_err(message));
        }
        Ok(Column { name, values: found, is_instant: is_an_instant })
    };
    attributes.iter().map(column).collect()
}
