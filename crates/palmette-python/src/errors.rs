//! Exceptions of the package.

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{IntoPyObjectExt, create_exception};
use std::io;

create_exception!(
    palmette,
    Error,
    PyValueError,
    "Every error of the package that is not a wrong type or a refusal of the system."
);

/// Class attributes that are `None`.
pub(crate) fn none_unless_set(class: &Bound<'_, PyType>, attributes: &[&str]) -> PyResult<()> {
    attributes.iter().try_for_each(|name| class.setattr(*name, class.py().None()))
}

/// Sets an attribute of an exception.
pub(crate) fn with<'py, T: IntoPyObjectExt<'py>>(
    error: PyErr,
    py: Python<'py>,
    name: &str,
    value: T,
) -> PyErr {
    match error.value(py).setattr(name, value) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// A refusal of the system as the `OSError` of its number, such as `FileNotFoundError`.
pub(crate) fn of_io(py: Python<'_>, error: &io::Error, path: Option<&std::path::Path>) -> PyErr {
    let Some(number) = error.raw_os_error() else {
        return PyOSError::new_err(error.to_string());
    };
    let text = py.import("os").and_then(|os| os.call_method1("strerror", (number,)));
    match text {
        Ok(text) => PyOSError::new_err((number, text.unbind(), path.map(|p| p.to_path_buf()))),
        Err(other) => other,
    }
}
