//! Semantic IDs of many items: rows, columns, or one array with offsets.

use palmette_catalog::index::MAX_CODE;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::build::elements;
use super::codes::IntMatrix;

/// Semantic IDs in the memory of their arrays.
pub(crate) enum Codes {
    /// A row an item.
    Matrix(IntMatrix),
    /// Rows of any length.
    Rows(Vec<Vec<i64>>),
    /// All rows one after another, and where each begins and the last ends.
    Flat(IntMatrix, Vec<usize>),
}

impl Codes {
    /// Codes as a caller gives them, in one of three ways.
    ///
    /// # Errors
    /// `TypeError` for none or several ways, or for what holds no whole numbers; `ValueError` for
    /// other shapes.
    pub(crate) fn given(
        codes: Option<&Bound<'_, PyAny>>,
        offsets: Option<&Bound<'_, PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        match (codes, offsets, columns) {
            (Some(codes), None, None) => Self::of_rows(codes),
            (Some(codes), Some(offsets), None) => {
                let codes = IntMatrix::of_column(codes, "codes (with offsets)")?;
                let offsets = offsets_of(offsets, codes.num_rows())?;
                Ok(Self::Flat(codes, offsets))
            }
            (None, None, Some(columns)) => {
                let columns = columns.try_iter()?.collect::<PyResult<Vec<_>>>()?;
                IntMatrix::of_columns(columns, "code_columns").map(Self::Matrix)
            }
            _ => Err(PyTypeError::new_err(
                "give the codes in one way: codes, a row an item; codes with offsets, all rows one after another; or code_columns, an \
                 array a level",
            )),
        }
    }

    /// A matrix of which each row is an item, or the rows one by one: lists or arrays, of any
    /// lengths.
    fn of_rows(codes: &Bound<'_, PyAny>) -> PyResult<Self> {
        match is_of_rows(codes)? {
            true => rows_of(codes).map(Self::Rows),
            false => IntMatrix::of_array(codes, "codes").map(Self::Matrix),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Matrix(matrix) => matrix.num_rows(),
            Self::Rows(rows) => rows.len(),
            Self::Flat(_, offsets) => offsets.len().saturating_sub(1),
        }
    }

    /// Reads the codes of a row. `Err`: the rule that one breaks, as the end of a sentence about
    /// the item.
    pub(crate) fn read(&self, row: usize, codes: &mut Vec<u32>) -> Result<(), String> {
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

/// True for a sequence whose elements are rows, such as a list or a Series.
fn is_of_rows(codes: &Bound<'_, PyAny>) -> PyResult<bool> {
    if codes.is_instance_of::<PyList>() || codes.is_instance_of::<PyTuple>() {
        return Ok(true);
    }
    // An array of objects, or a column of one dimension: of numbers it would be a matrix without
    // levels.
    let is_flat = match codes.getattr_opt("ndim")? {
        Some(dims) => dims.extract::<usize>().is_ok_and(|dims| dims == 1),
        None => codes.hasattr("to_pylist")? || codes.hasattr("to_list")?,
    };
    let kind = codes.getattr_opt("dtype")?.map(|dtype| dtype.getattr_opt("kind")).transpose()?;
    let kind = kind.flatten().and_then(|kind| kind.extract::<String>().ok());
    Ok(is_flat && kind.is_none_or(|kind| kind == "O"))
}

fn rows_of(rows: &Bound<'_, PyAny>) -> PyResult<Vec<Vec<i64>>> {
    elements(rows)?.enumerate().map(|(at, row)| row_of(at, &row?)).collect()
}

/// The codes of an item: a list or an array of one dimension.
fn row_of(at: usize, row: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if let Ok(codes) = row.extract::<Vec<i64>>() {
        return Ok(codes);
    }
    let is_array =
        row.hasattr("__dlpack__")? || row.hasattr("tolist")? || row.hasattr("to_pylist")?;
    let column = is_array.then(|| IntMatrix::of_column(row, "a row of codes"));
    match column.and_then(Result::ok) {
        Some(column) => Ok((0..column.num_rows()).map(|level| column.get(level, 0)).collect()),
        None => {
            let shown = row.repr().map_or_else(|_| "?".into(), |text| text.to_string());
            let shown: String = shown.chars().take(60).collect();
            Err(PyTypeError::new_err(format!(
                "row {at} of codes is {shown}; the codes of an item are a list or array of whole numbers, and an array a level goes to \
                 code_columns"
            )))
        }
    }
}

/// Offsets of rows in `num_codes` codes, and the end of the last.
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
