//! Arrays of NumPy that own what was computed.

use bytemuck::NoUninit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyByteArray;

static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// An element type of NumPy.
pub(crate) trait Element: NoUninit {
    /// NumPy's name of it.
    const NAME: &'static str;
}

impl Element for i32 {
    const NAME: &'static str = "int32";
}

impl Element for i64 {
    const NAME: &'static str = "int64";
}

impl Element for f32 {
    const NAME: &'static str = "float32";
}

/// A writable array of one dimension. Cost: one copy.
pub(crate) fn array<'py, T: Element>(py: Python<'py>, values: &[T]) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyByteArray::new(py, bytemuck::cast_slice(values));
    from_buffer(py, bytes, T::NAME)
}

/// A writable array of truth values.
pub(crate) fn bools<'py>(py: Python<'py>, values: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    from_buffer(py, PyByteArray::new(py, bytemuck::cast_slice(values)), "bool")
}

/// A writable array of several dimensions.
pub(crate) fn shaped<'py>(
    array: Bound<'py, PyAny>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let shape = pyo3::types::PyTuple::new(array.py(), shape)?;
    array.call_method1("reshape", (shape,))
}

fn from_buffer<'py>(
    py: Python<'py>,
    bytes: Bound<'py, PyByteArray>,
    element: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let from_buffer = FROM_BUFFER.get_or_try_init(py, || -> PyResult<Py<PyAny>> {
        Ok(py.import("numpy")?.getattr("frombuffer")?.unbind())
    })?;
    from_buffer.bind(py).call1((bytes, element))
}
