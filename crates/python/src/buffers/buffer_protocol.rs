//! Arrays by Python's buffer protocol: NumPy's, memoryviews, bytearrays.

use std::ptr::NonNull;

use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{Array, Element, MAX_DIMS, Owner, dtype_name, type_name};

/// An object's array.
pub(super) fn array(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Array> {
    let buffer = PyUntypedBuffer::get(object).map_err(|error| {
        // An array without dimensions has no shape; other exporters refuse types of elements that
        // buffers do not know.
        match error.is_instance_of::<PyBufferError>(object.py()) {
            true => PyValueError::new_err(format!(
                "{name} ({}) is no matrix: {error}; give a matrix, or one row of it",
                type_name(object)
            )),
            false => PyTypeError::new_err(format!(
                "{name} has elements of type {}, which cannot be read: {error}",
                dtype_name(object)
            )),
        }
    })?;
    let num_dims = buffer.dimensions();
    let (mut shape, mut strides) = ([0; MAX_DIMS], [0; MAX_DIMS]);
    if num_dims > MAX_DIMS || buffer.suboffsets().is_some() {
        return Err(PyValueError::new_err(format!(
            "{name} has {num_dims} dimensions; give an array of one or two"
        )));
    }
    shape[..num_dims].copy_from_slice(buffer.shape());
    strides[..num_dims].copy_from_slice(buffer.strides());
    let format = buffer.format();
    let item = buffer.item_size();
    let swapped = matches!(format.to_bytes(), [b'>' | b'!', ..]) && cfg!(target_endian = "little");
    let element = match ElementType::from_format(format) {
        _ if swapped => Element::Other,
        ElementType::SignedInteger { bytes } if bytes == item => Element::Signed(bytes),
        ElementType::UnsignedInteger { bytes } if bytes == item => Element::Unsigned(bytes),
        ElementType::Float { bytes } if bytes == item => Element::Float(bytes),
        ElementType::Bool => Element::Bool,
        _ if matches!(format.to_bytes(), b"e" | b"<e" | b"=e") && item == 2 => Element::Float(2),
        _ => Element::Other,
    };
    let data = NonNull::new(buffer.buf_ptr().cast::<u8>()).unwrap_or(NonNull::dangling());
    let read_only = buffer.readonly();
    let owner = Owner::Buffer { _buffer: buffer };
    Ok(Array { data, num_dims, shape, strides, element, read_only, _owner: owner })
}
