//! Matrices and columns of whole numbers, read in place from any array.
//!
//! NumPy arrays of every integer type and stride are read through the buffer protocol while the interpreter does other things:
//! nothing is converted and no second matrix is made. What has no buffer (a torch tensor, a Series, a list) becomes an array by
//! `numpy.asarray`, which for tensors on the CPU is the same memory.

use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Columns of whole numbers of one length, in others' memory.
pub(crate) struct IntMatrix {
    /// Keeps the memory; none is read after this is dropped.
    _buffers: Vec<PyUntypedBuffer>,
    num_rows: usize,
    columns: Vec<IntColumn>,
}

/// A number every so many bytes.
#[derive(Clone, Copy)]
struct IntColumn {
    first: *const u8,
    stride: isize,
    kind: IntKind,
}

#[derive(Clone, Copy)]
enum IntKind {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

// SAFETY: the memory is read only, is kept by the exporters for as long as the buffers are held, and may be read from any
// thread. Another thread of Python may write to it meanwhile, as to every array that is handed to a library that releases
// the interpreter: numbers are then old, new, or of both, and whatever they are they are checked after they were read.
unsafe impl Send for IntMatrix {}
// SAFETY: as above.
unsafe impl Sync for IntMatrix {}

impl IntMatrix {
    /// The matrix `[rows, columns]` in an object; `name` is what errors call it.
    pub(crate) fn of_array(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let buffer = buffer_of(object, name)?;
        let &[num_rows, num_columns] = buffer.shape() else {
            return Err(wrong_shape(name, "two dimensions [rows, levels]", buffer.shape()));
        };
        let kind = kind_of(&buffer, name)?;
        let (first, strides) = (buffer.buf_ptr().cast::<u8>().cast_const(), buffer.strides());
        let column = |at: usize| IntColumn {
            first: first.wrapping_offset(strides[1] * at as isize),
            stride: strides[0],
            kind,
        };
        let columns = (0..num_columns).map(column).collect();
        Ok(Self { _buffers: vec![buffer], num_rows, columns })
    }

    /// A matrix of columns that lie apart.
    pub(crate) fn of_columns<'py>(
        objects: impl IntoIterator<Item = Bound<'py, PyAny>>,
        name: &str,
    ) -> PyResult<Self> {
        let mut matrix = Self { _buffers: Vec::new(), num_rows: 0, columns: Vec::new() };
        for (at, object) in objects.into_iter().enumerate() {
            let name = format!("column {at} of {name}");
            let buffer = buffer_of(&object, &name)?;
            let &[len] = buffer.shape() else {
                return Err(wrong_shape(&name, "one dimension", buffer.shape()));
            };
            if at > 0 && len != matrix.num_rows {
                let first = matrix.num_rows;
                let message = format!("{name} has {len} rows, the columns before it {first}");
                return Err(PyValueError::new_err(message));
            }
            matrix.num_rows = len;
            let kind = kind_of(&buffer, &name)?;
            let first = buffer.buf_ptr().cast::<u8>().cast_const();
            matrix.columns.push(IntColumn { first, stride: buffer.strides()[0], kind });
            matrix._buffers.push(buffer);
        }
        Ok(matrix)
    }

    /// One column.
    pub(crate) fn of_column(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let buffer = buffer_of(object, name)?;
        let &[num_rows] = buffer.shape() else {
            return Err(wrong_shape(name, "one dimension", buffer.shape()));
        };
        let kind = kind_of(&buffer, name)?;
        let first = buffer.buf_ptr().cast::<u8>().cast_const();
        let columns = vec![IntColumn { first, stride: buffer.strides()[0], kind }];
        Ok(Self { _buffers: vec![buffer], num_rows, columns })
    }

    pub(crate) fn num_rows(&self) -> usize {
        self.num_rows
    }

    pub(crate) fn num_columns(&self) -> usize {
        self.columns.len()
    }

    /// A number. Unsigned ones past the largest `i64` become that.
    ///
    /// # Panics
    /// When there is no such row or column.
    #[inline]
    pub(crate) fn get(&self, row: usize, column: usize) -> i64 {
        assert!(row < self.num_rows, "row {row} of {}", self.num_rows);
        let IntColumn { first, stride, kind } = self.columns[column];
        let at = first.wrapping_offset(stride * row as isize);
        // SAFETY: `row` and `column` are within the shape that the exporter stated with its strides and its item size, which
        // `kind` is of, and the buffer is held; so these bytes are its, aligned or not.
        unsafe {
            match kind {
                IntKind::I8 => at.cast::<i8>().read().into(),
                IntKind::I16 => at.cast::<i16>().read_unaligned().into(),
                IntKind::I32 => at.cast::<i32>().read_unaligned().into(),
                IntKind::I64 => at.cast::<i64>().read_unaligned(),
                IntKind::U8 => at.read().into(),
                IntKind::U16 => at.cast::<u16>().read_unaligned().into(),
                IntKind::U32 => at.cast::<u32>().read_unaligned().into(),
                IntKind::U64 => {
                    i64::try_from(at.cast::<u64>().read_unaligned()).unwrap_or(i64::MAX)
                }
            }
        }
    }

    /// The numbers of a row.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = i64> + '_ {
        (0..self.columns.len()).map(move |column| self.get(row, column))
    }
}

/// The object's buffer, or that of the array that NumPy makes of it.
fn buffer_of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<PyUntypedBuffer> {
    // An empty list is an array of float.
    let buffer = match PyUntypedBuffer::get(object) {
        Ok(buffer) => buffer,
        Err(_) => {
            let py = object.py();
            let array =
                py.import("numpy")?.call_method1("asarray", (object,)).map_err(|cause| {
                    let kind = object.get_type().name().map(|name| name.to_string());
                    let kind = kind.unwrap_or_else(|_| "object".into());
                    let error = PyTypeError::new_err(format!(
                        "{name} is a {kind} that is no array of whole numbers: {cause}"
                    ));
                    error.set_cause(py, Some(cause));
                    error
                })?;
            let array = match array.getattr("size")?.extract::<usize>()? {
                0 => array.call_method1("astype", ("int64",))?,
                _ => array,
            };
            PyUntypedBuffer::get(&array).map_err(|_| not_integers(name, &array))?
        }
    };
    if buffer.suboffsets().is_some() {
        return Err(PyTypeError::new_err(format!("{name} is an array of pointers to rows")));
    }
    Ok(buffer)
}

fn not_integers(name: &str, array: &Bound<'_, PyAny>) -> PyErr {
    let kind = array.getattr("dtype").map_or_else(|_| "?".into(), |kind| kind.to_string());
    PyTypeError::new_err(format!(
        "{name} has dtype {kind}; whole numbers are expected, as int32, int64 or uint16"
    ))
}

fn kind_of(buffer: &PyUntypedBuffer, name: &str) -> PyResult<IntKind> {
    use ElementType::{SignedInteger, UnsignedInteger};
    let kind = match ElementType::from_format(buffer.format()) {
        SignedInteger { bytes: 1 } => IntKind::I8,
        SignedInteger { bytes: 2 } => IntKind::I16,
        SignedInteger { bytes: 4 } => IntKind::I32,
        SignedInteger { bytes: 8 } => IntKind::I64,
        UnsignedInteger { bytes: 1 } => IntKind::U8,
        UnsignedInteger { bytes: 2 } => IntKind::U16,
        UnsignedInteger { bytes: 4 } => IntKind::U32,
        UnsignedInteger { bytes: 8 } => IntKind::U64,
        _ => {
            let format = buffer.format().to_string_lossy();
            let hint = match &*format {
                "?" | "f" | "d" | "e" => "convert it with astype(\"int32\")",
                _ => "whole numbers in this machine's byte order are expected, as int32",
            };
            return Err(PyTypeError::new_err(format!(
                "{name} has elements of format {format:?}; {hint}"
            )));
        }
    };
    Ok(kind)
}

fn wrong_shape(name: &str, expected: &str, shape: &[usize]) -> PyErr {
    PyValueError::new_err(format!("{name} has shape {shape:?}; {expected} are expected"))
}
