//! Arrays of NumPy of truth values and of several dimensions.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub(super) use crate::buffers::new_array as array;

/// An array of truth values.
pub(super) fn bools<'py>(py: Python<'py>, values: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    let bytes: Vec<u8> = values.iter().copied().map(u8::from).collect();
    array(py, &bytes)?.call_method1("view", ("bool",))
}

/// An array of several dimensions of the numbers of one.
pub(super) fn shaped<'py>(
    array: Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    array.call_method1("reshape", (PyTuple::new(array.py(), shape)?,))
}
