//! Matrices of integers and floats that are read, logits that are written, and new arrays.

use std::ptr::NonNull;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

use super::{Array, Element, Matrix, dtype_name};

/// Numbers of any integer type and layout, read one by one: token ids, codes.
pub(crate) struct IntMatrix {
    array: Array,
    matrix: Matrix,
}

impl IntMatrix {
    /// Takes a matrix of integers; an array of one dimension is one row.
    ///
    /// # Errors
    /// `TypeError` for other elements, `ValueError` for other shapes; `name` is what they call it.
    pub(crate) fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let array = Array::of(object, name)?;
        if !matches!(array.element, Element::Signed(1..=8) | Element::Unsigned(1..=8)) {
            return Err(PyTypeError::new_err(format!(
                "{name} has elements of type {}; give integers, such as int64",
                dtype_name(object)
            )));
        }
        let matrix = array.matrix(name)?;
        Ok(Self { array, matrix })
    }

    /// Number of rows.
    pub(crate) fn num_rows(&self) -> usize {
        self.matrix.rows
    }

    /// Numbers of a row.
    pub(crate) fn num_cols(&self) -> usize {
        self.matrix.cols
    }

    /// The numbers of a row, in place of those that `into` holds. Unsigned numbers past the
    /// greatest i64 become that.
    ///
    /// # Panics
    /// When there is no such row.
    pub(crate) fn read_row(&self, row: usize, into: &mut Vec<i64>) {
        into.clear();
        into.extend((0..self.matrix.cols).map(|col| self.get(row, col)));
    }

    /// A number; unsigned ones past the greatest i64 become that.
    ///
    /// # Panics
    /// When there is no such row or column.
    #[inline]
    pub(crate) fn get(&self, row: usize, col: usize) -> i64 {
        let Matrix { rows, cols, row_stride, col_stride } = self.matrix;
        assert!(row < rows && col < cols, "row {row}, column {col} of {rows} by {cols}");
        let offset = row as isize * row_stride + col as isize * col_stride;
        // SAFETY: `row` and `col` are within the shape, so the element is within the array, which
        // its owner keeps alive; reads are unaligned, and every bit pattern is an integer.
        unsafe {
            let at = self.array.data.as_ptr().offset(offset);
            match self.array.element {
                Element::Signed(1) => at.cast::<i8>().read_unaligned().into(),
                Element::Signed(2) => at.cast::<i16>().read_unaligned().into(),
                Element::Signed(4) => at.cast::<i32>().read_unaligned().into(),
                Element::Signed(_) => at.cast::<i64>().read_unaligned(),
                Element::Unsigned(1) => at.read_unaligned().into(),
                Element::Unsigned(2) => at.cast::<u16>().read_unaligned().into(),
                Element::Unsigned(4) => at.cast::<u32>().read_unaligned().into(),
                _ => i64::try_from(at.cast::<u64>().read_unaligned()).unwrap_or(i64::MAX),
            }
        }
    }

    /// The lengths of the array's dimensions.
    pub(crate) fn shape(&self) -> &[usize] {
        self.array.shape()
    }
}

/// Numbers of f32 that are read: `[rows, columns]`, each row in one piece.
pub(crate) struct FloatRows {
    array: Array,
    matrix: Matrix,
}

impl FloatRows {
    /// Takes a matrix of float32, or one row.
    ///
    /// # Errors
    /// `TypeError` for other elements, `ValueError` for another layout; `name` is what they call
    /// it.
    pub(crate) fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let array = Array::of(object, name)?;
        if array.element != Element::Float(4) {
            return Err(PyTypeError::new_err(format!(
                "{name} has elements of type {}; give float32",
                dtype_name(object)
            )));
        }
        let layout = "give rows that are contiguous, such as a copy in C order";
        let matrix = array.matrix(name)?.with_rows_in_one_piece(&array, 4, name, layout)?;
        Ok(Self { array, matrix })
    }

    /// Rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.matrix.rows, self.matrix.cols)
    }

    /// A row.
    ///
    /// # Panics
    /// When there is none of this number.
    pub(crate) fn row(&self, row: usize) -> &[f32] {
        let Matrix { rows, cols, row_stride, .. } = self.matrix;
        assert!(row < rows, "row {row} of {rows}");
        if cols == 0 {
            return &[];
        }
        // SAFETY: the row is within the array, in one piece and aligned (checked when it was
        // taken), the array's owner keeps it alive, and every bit pattern is an f32.
        unsafe {
            let start = self.array.data.as_ptr().offset(row as isize * row_stride);
            std::slice::from_raw_parts(start.cast::<f32>(), cols)
        }
    }
}

/// Logits to be written in place: `[rows, tokens]`, each row in one piece.
pub(crate) struct LogitRows {
    array: Array,
    matrix: Matrix,
}

/// A row of logits as the bits of its elements.
pub(crate) enum LogitRow<'a> {
    /// f16 or bf16, with the bits of minus infinity.
    Half(&'a mut [u16], u16),
    /// f32.
    Single(&'a mut [u32], u32),
    /// f64.
    Double(&'a mut [u64], u64),
}

impl LogitRows {
    /// Takes a matrix of logits, or one row; `bfloat16` where a two-byte integer type stands for
    /// it.
    ///
    /// # Errors
    /// `TypeError` for other elements, `ValueError` for another layout or one that is read-only.
    pub(crate) fn of(object: &Bound<'_, PyAny>, bfloat16: bool) -> PyResult<Self> {
        let name = "logits";
        let mut array = Array::of(object, name)?;
        if bfloat16 && matches!(array.element, Element::Unsigned(2) | Element::Signed(2)) {
            array.element = Element::BFloat16;
        }
        let size = match array.element {
            Element::Float(2) | Element::BFloat16 => 2,
            Element::Float(size @ (4 | 8)) => size,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "{name} have elements of type {}; give float32, float16, bfloat16 or float64",
                    dtype_name(object)
                )));
            }
        };
        array.writable(name)?;
        let layout = "give logits whose rows are contiguous, such as a copy in C order";
        let matrix = array.matrix(name)?.with_rows_in_one_piece(&array, size, name, layout)?;
        Ok(Self { array, matrix })
    }

    /// Number of rows.
    pub(crate) fn num_rows(&self) -> usize {
        self.matrix.rows
    }

    /// A row.
    ///
    /// # Panics
    /// When there is none of this number.
    pub(crate) fn row_mut(&mut self, row: usize) -> LogitRow<'_> {
        assert!(row < self.matrix.rows, "row {row} of {}", self.matrix.rows);
        let cols = self.matrix.cols;
        // SAFETY: as in `MaskRows::slice`: the row is within the array, in one piece and aligned to
        // its elements, whose bits are seen as an integer of their size; `&mut self` is borrowed as
        // long as the slice.
        unsafe {
            let start = match cols {
                0 => NonNull::<u64>::dangling().as_ptr().cast(),
                _ => self.array.data.as_ptr().offset(row as isize * self.matrix.row_stride),
            };
            match self.array.element {
                Element::BFloat16 => {
                    LogitRow::Half(std::slice::from_raw_parts_mut(start.cast(), cols), 0xFF80)
                }
                Element::Float(2) => {
                    LogitRow::Half(std::slice::from_raw_parts_mut(start.cast(), cols), 0xFC00)
                }
                Element::Float(4) => {
                    let bits = f32::NEG_INFINITY.to_bits();
                    LogitRow::Single(std::slice::from_raw_parts_mut(start.cast(), cols), bits)
                }
                _ => {
                    let bits = f64::NEG_INFINITY.to_bits();
                    LogitRow::Double(std::slice::from_raw_parts_mut(start.cast(), cols), bits)
                }
            }
        }
    }
}

/// Numbers that new arrays are made of, by NumPy's name of their type.
pub(crate) trait Number: pyo3::buffer::Element {
    /// The name.
    const DTYPE: &str;
}

impl Number for i32 {
    const DTYPE: &str = "int32";
}

impl Number for u8 {
    const DTYPE: &str = "uint8";
}

impl Number for i64 {
    const DTYPE: &str = "int64";
}

impl Number for f32 {
    const DTYPE: &str = "float32";
}

/// A new NumPy array of these numbers, of one dimension.
///
/// # Errors
/// When NumPy cannot be imported.
pub(crate) fn new_array<'py, T: Number>(
    py: Python<'py>,
    numbers: &[T],
) -> PyResult<Bound<'py, PyAny>> {
    let empty = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "empty"))?;
    let array = empty.call1((numbers.len(), T::DTYPE))?;
    if !numbers.is_empty() {
        pyo3::buffer::PyBuffer::<T>::get(&array)?.copy_from_slice(py, numbers)?;
    }
    Ok(array)
}
