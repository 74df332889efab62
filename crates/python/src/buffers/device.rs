//! Arrays for kernels: where they lie on a device, once everything that can be checked is.
//!
//! Nothing here reads them. On an emulated device they lie in this process's memory.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{Array, Element, Matrix, Place, dlpack, dtype_name, shown, type_name};

/// An array on a device, kept alive.
pub(crate) struct DeviceArray {
    array: Array,
    name: &'static str,
}

impl DeviceArray {
    /// Takes an array that lies in this memory and has elements of one of these types; `rule` names
    /// them.
    ///
    /// # Errors
    /// `TypeError` for what is no array, or one of other elements; `ValueError` for one elsewhere.
    pub(crate) fn new(
        object: &Bound<'_, PyAny>,
        name: &'static str,
        place: Place,
        elements: &[Element],
        rule: &str,
    ) -> PyResult<Self> {
        let array = match place {
            Place::Host => Array::of(object, name)?,
            Place::Cuda(index) => dlpack::array(object, name, place)?.ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "{name} is of type {}; give a tensor on cuda:{index} (with __dlpack__)",
                    type_name(object)
                ))
            })?,
        };
        if !elements.contains(&array.element) {
            return Err(PyTypeError::new_err(format!(
                "{name} has elements of type {}; give {rule}",
                dtype_name(object)
            )));
        }
        Ok(Self { array, name })
    }

    /// Check that it may be written to.
    ///
    /// # Errors
    /// `ValueError` for one that is read-only.
    pub(crate) fn writable(self) -> PyResult<Self> {
        self.array.writable(self.name)?;
        Ok(self)
    }

    /// The type of its elements.
    pub(crate) fn element(&self) -> Element {
        self.array.element
    }

    /// The lengths of its dimensions.
    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// Address of the first element.
    pub(crate) fn address(&self) -> u64 {
        self.array.data.as_ptr().addr() as u64
    }

    /// Rows and columns, and the elements from row to row; an array of one dimension is a row.
    ///
    /// # Errors
    /// `ValueError` where elements of a row do not lie side by side, or rows overlap.
    pub(crate) fn rows(&self) -> PyResult<(usize, usize, usize)> {
        let size = self.element_bytes();
        let layout = "give one whose rows are contiguous, such as x.contiguous()";
        let matrix = self.array.matrix(self.name)?;
        if matrix.rows == 0 || matrix.cols == 0 {
            return Ok((matrix.rows, matrix.cols, matrix.cols));
        }
        let matrix = matrix.with_rows_in_one_piece(&self.array, size, self.name, layout)?;
        let Matrix { rows, cols, row_stride, .. } = matrix;
        let stride = if rows <= 1 { cols as isize } else { row_stride / size as isize };
        match usize::try_from(stride) {
            Ok(stride) => Ok((rows, cols, stride)),
            Err(_) => Err(PyValueError::new_err(format!(
                "{} has rows in descending places; {layout}",
                self.name
            ))),
        }
    }

    /// Checks that it has this shape and lies in one piece; `why` says where the shape is from.
    ///
    /// # Errors
    /// `ValueError` with both shapes.
    pub(crate) fn exact(&self, shape: &[usize], why: &str) -> PyResult<()> {
        if self.shape() != shape {
            return Err(PyValueError::new_err(format!(
                "{} has the shape {}; give {}, {why}",
                self.name,
                shown(self.shape()),
                shown(shape)
            )));
        }
        let size = self.element_bytes();
        let mut in_order = size as isize;
        let is_empty = shape.contains(&0);
        for dim in (0..shape.len()).rev() {
            if !is_empty && shape[dim] > 1 && self.array.strides[dim] != in_order {
                return Err(PyValueError::new_err(format!(
                    "{} does not lie in one piece; give a contiguous one, such as x.contiguous()",
                    self.name
                )));
            }
            in_order *= shape[dim] as isize;
        }
        if !is_empty && !(self.address() as usize).is_multiple_of(size) {
            return Err(PyValueError::new_err(format!(
                "{} begins at {:#x}, which is no multiple of its elements' {size} bytes; give a copy",
                self.name,
                self.address()
            )));
        }
        Ok(())
    }

    fn element_bytes(&self) -> usize {
        match self.array.element {
            Element::Signed(bytes) | Element::Unsigned(bytes) | Element::Float(bytes) => bytes,
            Element::BFloat16 => 2,
            Element::Bool | Element::Other => 1,
        }
    }
}
