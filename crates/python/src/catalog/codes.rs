//! Matrices and columns of whole numbers, read in place from any array.
//!
//! NumPy arrays of every integer type and stride, and tensors in host memory, are read where they
//! are, while the interpreter does other things: no second matrix is made. What is no array (a
//! Series, a list) becomes one by `numpy.asarray`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::values::is_of_module;
use crate::buffers::{self, Array, shown};

/// Columns of whole numbers of one length, in others' memory.
pub(crate) struct IntMatrix {
    num_rows: usize,
    columns: Columns,
}

enum Columns {
    Matrix(buffers::IntMatrix),
    /// Each a matrix of one row.
    Apart(Vec<buffers::IntMatrix>),
}

impl IntMatrix {
    /// The matrix `[rows, columns]` in an object; `name` is what errors call it.
    pub(crate) fn of_array(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let matrix = numbers(object, name)?;
        match *matrix.shape() {
            [num_rows, _] => Ok(Self { num_rows, columns: Columns::Matrix(matrix) }),
            _ => Err(wrong_shape(name, "two dimensions (rows, levels) are", matrix.shape())),
        }
    }

    /// A matrix of columns that lie apart.
    pub(crate) fn of_columns<'py>(
        objects: impl IntoIterator<Item = Bound<'py, PyAny>>,
        name: &str,
    ) -> PyResult<Self> {
        let (mut num_rows, mut columns) = (0, Vec::new());
        for (at, object) in objects.into_iter().enumerate() {
            let name = format!("column {at} of {name}");
            let column = column(&object, &name)?;
            let len = column.num_cols();
            if at > 0 && len != num_rows {
                let message = format!("{name} has {len} rows, the columns before it {num_rows}");
                return Err(PyValueError::new_err(message));
            }
            num_rows = len;
            columns.push(column);
        }
        Ok(Self { num_rows, columns: Columns::Apart(columns) })
    }

    /// One column.
    pub(crate) fn of_column(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let column = column(object, name)?;
        Ok(Self { num_rows: column.num_cols(), columns: Columns::Apart(vec![column]) })
    }

    pub(crate) fn num_rows(&self) -> usize {
        self.num_rows
    }

    pub(crate) fn num_columns(&self) -> usize {
        match &self.columns {
            Columns::Matrix(matrix) => matrix.num_cols(),
            Columns::Apart(columns) => columns.len(),
        }
    }

    /// A number; unsigned ones past the greatest i64 become that.
    ///
    /// # Panics
    /// When there is no such row or column.
    #[inline]
    pub(crate) fn get(&self, row: usize, column: usize) -> i64 {
        match &self.columns {
            Columns::Matrix(matrix) => matrix.get(row, column),
            Columns::Apart(columns) => columns[column].get(0, row),
        }
    }

    /// The numbers of a row.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = i64> + '_ {
        (0..self.num_columns()).map(move |column| self.get(row, column))
    }
}

/// An array of one dimension, as a matrix of one row.
fn column(object: &Bound<'_, PyAny>, name: &str) -> PyResult<buffers::IntMatrix> {
    let column = numbers(object, name)?;
    match column.shape() {
        [_] => Ok(column),
        shape => Err(wrong_shape(name, "one dimension is", shape)),
    }
}

/// The object's array, or the one that NumPy makes of it.
fn numbers(object: &Bound<'_, PyAny>, name: &str) -> PyResult<buffers::IntMatrix> {
    // The buffer of a masked array has whatever stands behind the mask.
    if is_of_module(object, "numpy.ma")
        && object.getattr("mask")?.call_method0("any")?.is_truthy()?
    {
        return Err(PyValueError::new_err(format!(
            "{name} has masked elements; every one needs a number: fill them, or leave those rows out"
        )));
    }
    if object.hasattr("__dlpack__")? || Array::of(object, name).is_ok() {
        return buffers::IntMatrix::of(object, name);
    }
    let py = object.py();
    let array = py.import("numpy")?.call_method1("asarray", (object,)).map_err(|cause| {
        let kind = object.get_type().name().map_or_else(|_| "?".into(), |kind| kind.to_string());
        let message = format!("{name} is of type {kind}, of which no array is made: {cause}");
        let error = PyTypeError::new_err(message);
        error.set_cause(py, Some(cause));
        error
    })?;
    // An array of no elements has no type of its own.
    let array = match array.getattr("size")?.extract::<usize>()? {
        0 => array.call_method1("astype", ("int64",))?,
        _ => array,
    };
    buffers::IntMatrix::of(&array, name)
}

fn wrong_shape(name: &str, expected: &str, shape: &[usize]) -> PyErr {
    PyValueError::new_err(format!("{name} has the shape {}; {expected} expected", shown(shape)))
}
