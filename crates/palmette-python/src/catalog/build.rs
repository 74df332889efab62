//! Catalogs from arrays: codes, ids and attributes as columns.

use palmette_catalog::index::MAX_CODE;
use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildError, BuildOptions, Catalog, CatalogBuilder, ColumnKind};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Value};

use super::arrow::{self, is_table};
use super::codes::IntMatrix;
use super::errors::CatalogError;
use super::values::{is_instant, to_json};
use crate::errors::with;

/// Semantic IDs in the memory of their arrays.
enum Codes {
    /// A row an item.
    Matrix(IntMatrix),
    /// Rows of any length.
    Rows(Vec<Vec<i64>>),
    /// All rows one after another, and where each begins and the last ends.
    Flat(IntMatrix, Vec<usize>),
}

/// Names of items.
enum Ids {
    /// The number of the row.
    Numbers,
    Integers(IntMatrix),
    Texts(Vec<String>),
}

/// One attribute of all items.
struct Column {
    name: String,
    values: Vec<Value>,
    is_instant: bool,
}

/// Builds a catalog of codes `[n, levels]` with ids and attributes.
pub(crate) fn build(
    codes: &Bound<'_, PyAny>,
    ids: Option<&Bound<'_, PyAny>>,
    attributes: Option<&Bound<'_, PyAny>>,
    offsets: Option<&Bound<'_, PyAny>>,
) -> PyResult<Catalog> {
    let py = codes.py();
    let codes = Codes::of(codes, offsets)?;
    let num_items = codes.len();
    let ids = Ids::of(ids, num_items)?;
    let attributes = Attributes::of(attributes, num_items)?;
    py.detach(|| build_of(&codes, &ids, attributes)).map_err(|error| of_row(py, &error))
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

fn build_of(codes: &Codes, ids: &Ids, attributes: Attributes) -> Result<Catalog, BuildError> {
    let Attributes { instants, mut values } = attributes;
    let columns = instants.into_iter().map(|name| (name, ColumnKind::Timestamp)).collect();
    let mut builder = CatalogBuilder::new(BuildOptions { columns, ..BuildOptions::default() })?;
    let mut row_codes = Vec::new();
    for row in 0..codes.len() {
        let (line, id) = (row as u64 + 1, ids.get(row));
        codes.read(row, &mut row_codes).map_err(|rule| BuildError::of_item(line, &*id, rule))?;
        builder.push(line, id, &row_codes, values.take(row))?;
    }
    builder.finish(None, |_| {})
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

impl Codes {
    fn of(codes: &Bound<'_, PyAny>, offsets: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        if let Some(offsets) = offsets {
            let codes = IntMatrix::of_column(codes, "codes (with offsets)")?;
            let offsets = offsets_of(offsets, codes.num_rows())?;
            return Ok(Self::Flat(codes, offsets));
        }
        let is_sequence = codes.is_instance_of::<PyList>() || codes.is_instance_of::<PyTuple>();
        if !is_sequence {
            return IntMatrix::of_array(codes, "codes").map(Self::Matrix);
        }
        let Ok(first) = codes.get_item(0) else { return Ok(Self::Rows(Vec::new())) };
        if first.is_instance_of::<PyList>() || first.is_instance_of::<PyTuple>() {
            return rows_of(codes).map(Self::Rows);
        }
        let columns = codes.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        IntMatrix::of_columns(columns, "codes").map(Self::Matrix)
    }

    fn len(&self) -> usize {
        match self {
            Self::Matrix(matrix) => matrix.num_rows(),
            Self::Rows(rows) => rows.len(),
            Self::Flat(_, offsets) => offsets.len().saturating_sub(1),
        }
    }

    /// Reads the codes of a row. `Err`: the rule that one breaks, as the end of a sentence about the item.
    fn read(&self, row: usize, codes: &mut Vec<u32>) -> Result<(), String> {
        codes.clear();
        let mut push = |code: i64| match u32::try_from(code) {
            Ok(code) if code <= MAX_CODE => {
                codes.push(code);
                Ok(())
            }
            _ => Err(format!(
                "has code {code} at level {}; codes are whole numbers from 0 to {MAX_CODE}, and shorter rows come as \
                 lists or with offsets",
                codes.len()
            )),
        };
        match self {
            Self::Matrix(matrix) => matrix.row(row).try_for_each(&mut push),
            Self::Rows(rows) => rows[row].iter().copied().try_for_each(&mut push),
            Self::Flat(values, offsets) => {
                (offsets[row]..offsets[row + 1]).map(|at| values.get(at, 0)).try_for_each(&mut push)
            }
        }
    }
}

fn rows_of(rows: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<i64>>> {
    let row = |(at, row): (usize, PyResult<Bound<'_, PyAny>>)| {
        let row = row?;
        row.extract::<Vec<i64>>().map_err(|_| {
            let shown = row.repr().map_or_else(|_| "?".into(), |text| text.to_string());
            let shown: String = shown.chars().take(60).collect();
            PyTypeError::new_err(format!(
                "row {at} of codes is {shown}; a list of whole numbers is expected"
            ))
        })
    };
    rows.try_iter()?.enumerate().map(row).collect()
}

/// Offsets of rows in so many codes, and where the last ends.
fn offsets_of(offsets: &Bound<'_, PyAny>, num_codes: usize) -> PyResult<Vec<usize>> {
    let column = IntMatrix::of_column(offsets, "offsets")?;
    let mut starts = Vec::with_capacity(column.num_rows());
    for at in 0..column.num_rows() {
        let start = column.get(at, 0);
        let before = starts.last().copied().unwrap_or(0);
        match usize::try_from(start) {
            Ok(start) if start >= before && start <= num_codes => starts.push(start),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "offsets[{at}] is {start}; offsets ascend from 0 to the number of codes, {num_codes}"
                )));
            }
        }
    }
    match (starts.first(), starts.last()) {
        (Some(0), Some(&last)) if last == num_codes => Ok(starts),
        _ => Err(PyValueError::new_err(format!(
            "offsets begin with 0 and end with the number of codes, {num_codes}: one more than there are items"
        ))),
    }
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

fn is_integer_array(object: &Bound<'_, PyAny>) -> bool {
    let kind = object.getattr("dtype").and_then(|dtype| dtype.getattr("kind"));
    kind.is_ok_and(|kind| matches!(kind.extract::<&str>(), Ok("i" | "u")))
}

/// An id: text, or a whole number.
pub(crate) fn id_of(id: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = id.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    if id.is_instance_of::<PyInt>() && !id.is_instance_of::<PyBool>() {
        return Ok(id.str()?.to_cow()?.into_owned());
    }
    let shown = id.repr()?;
    Err(PyTypeError::new_err(format!("{shown} is no id; ids are text or whole numbers")))
}

/// The elements of a list, an array, a Series or a column of Arrow, as Python's own objects.
fn elements<'py>(
    column: &Bound<'py, PyAny>,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>>> {
    let list = ["to_pylist", "tolist", "to_list"]
        .into_iter()
        .find_map(|method| column.hasattr(method).ok()?.then(|| column.call_method0(method)));
    list.unwrap_or_else(|| Ok(column.clone()))?.try_iter()
}

fn columns_of(attributes: &Bound<'_, PyDict>, num_items: usize) -> PyResult<Vec<Column>> {
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
        for (row, value) in elements(&values)?.enumerate() {
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
