//! Arrays of other libraries, read and written in place: NumPy by the buffer protocol, torch and
//! others by DLPack.
//!
//! Every line of unsafe code about arrays is in this module: arrays by either protocol, and what is
//! read and written of them. Everything is checked when an array is taken: element type, shape,
//! strides, device, alignment, and that it may be written to. What cannot be checked is that nobody
//! else writes meanwhile: two Python threads that fill the same row of one array at the same time
//! race, as they do with NumPy's own functions, and what the row then holds is not said. Rows that
//! different calls fill are never borrowed together.

mod buffer_protocol;
#[cfg(feature = "cuda")]
mod device;
mod dlpack;
mod masks;
mod numbers;

use std::ptr::NonNull;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;

#[cfg(feature = "cuda")]
pub(crate) use device::DeviceArray;
pub(crate) use masks::{MaskBuffer, MaskRows};
pub(crate) use numbers::{FloatRows, IntMatrix, LogitRow, LogitRows, new_array};

/// The most dimensions that any array here may have.
const MAX_DIMS: usize = 4;

/// Types of elements that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// Two's complement, this many bytes.
    Signed(usize),
    /// This many bytes.
    Unsigned(usize),
    /// IEEE 754, this many bytes.
    Float(usize),
    /// The upper half of a 32-bit float.
    BFloat16,
    Bool,
    Other,
}

/// Memory in which an array lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// That of this process.
    Host,
    /// That of a CUDA device of this number. Its addresses are for kernels alone.
    #[cfg(feature = "cuda")]
    Cuda(i32),
}

impl Place {
    /// True for a device as DLPack names it.
    fn has(self, device_type: i32, device_id: i32) -> bool {
        match self {
            // Host memory, and host memory that a CUDA or ROCm device reads.
            Self::Host => [1, 3, 11].contains(&device_type),
            // Memory of the device, and memory that it shares with the host.
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => [2, 13].contains(&device_type) && device_id == index,
        }
    }

    /// Advice for an array that lies elsewhere.
    fn rule(self) -> String {
        match self {
            Self::Host => "give one in host memory, and copy it over afterwards".to_owned(),
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => format!("give one on cuda:{index}, where the others are"),
        }
    }
}

/// An array in this process's memory that was checked to be as described, and is kept alive.
///
/// Strides are in bytes.
pub(crate) struct Array {
    data: NonNull<u8>,
    num_dims: usize,
    shape: [usize; MAX_DIMS],
    strides: [isize; MAX_DIMS],
    element: Element,
    read_only: bool,
    _owner: Owner,
}

/// Owner that keeps the memory where it is.
enum Owner {
    /// Released when dropped.
    Buffer { _buffer: PyUntypedBuffer },
    /// A tensor whose description was read from its type's table of functions.
    Object { _object: Py<PyAny> },
    /// A tensor that was handed over; its capsule's destructor would release it, and is told not
    /// to.
    Managed { _tensor: dlpack::Managed },
}

// SAFETY: the memory is reached by the methods of this module alone, which take `&self` or `&mut
// self`; its owners may be dropped on any thread: buffers and objects attach first, and DLPack asks
// it of deleters.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Array {
    /// Takes an array; `name` is what messages call it.
    ///
    /// # Errors
    /// `TypeError` for what is no array; `ValueError` for one on another device, or in a layout
    /// that is not read.
    pub(crate) fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        // SAFETY: the pointer is that of a live object.
        if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 1 {
            return buffer_protocol::array(object, name);
        }
        match dlpack::array(object, name, Place::Host)? {
            Some(array) => Ok(array),
            None => Err(PyTypeError::new_err(format!(
                "{name} is of type {}; give a NumPy array, or a tensor in host memory (with __dlpack__)",
                type_name(object)
            ))),
        }
    }

    /// The lengths of its dimensions.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape[..self.num_dims]
    }

    /// True for the same memory in the same layout.
    fn is_as(&self, other: &Self) -> bool {
        self.data == other.data
            && self.shape() == other.shape()
            && self.strides[..self.num_dims] == other.strides[..self.num_dims]
            && self.element == other.element
            && self.read_only == other.read_only
    }

    /// Two dimensions: an array of one is a single row.
    fn matrix(&self, name: &str) -> PyResult<Matrix> {
        match *self.shape() {
            [cols] => Ok(Matrix { rows: 1, cols, row_stride: 0, col_stride: self.strides[0] }),
            [rows, cols] => {
                let [row_stride, col_stride, ..] = self.strides;
                Ok(Matrix { rows, cols, row_stride, col_stride })
            }
            ref shape => Err(PyValueError::new_err(format!(
                "{name} has the shape {}; give a matrix, or one row of it",
                shown(shape)
            ))),
        }
    }

    fn writable(&self, name: &str) -> PyResult<()> {
        match self.read_only {
            true => Err(PyValueError::new_err(format!(
                "{name} is read-only; give an array that may be written to, such as a copy of it"
            ))),
            false => Ok(()),
        }
    }
}

/// Rows and columns, with what lies between their elements in bytes.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
}

impl Matrix {
    /// Checks that elements of a row lie side by side, and every row at a multiple of their size.
    fn with_rows_in_one_piece(
        self,
        array: &Array,
        size: usize,
        name: &str,
        layout: &str,
    ) -> PyResult<Self> {
        let side_by_side = self.cols <= 1 || self.col_stride == size as isize;
        let aligned = (array.data.as_ptr() as usize).is_multiple_of(size)
            && (self.rows <= 1 || self.row_stride.unsigned_abs().is_multiple_of(size));
        // Rows that overlap would be written twice at once.
        let apart = self.rows <= 1 || self.row_stride.unsigned_abs() >= self.cols * size;
        if side_by_side && aligned && apart {
            return Ok(self);
        }
        Err(PyValueError::new_err(format!(
            "the rows of {name}, of shape {}, do not lie in one piece each; {layout}",
            shown(array.shape())
        )))
    }
}

/// A shape as Python writes it.
pub(crate) fn shown(shape: &[usize]) -> String {
    let numbers: Vec<_> = shape.iter().map(usize::to_string).collect();
    match &numbers[..] {
        [only] => format!("({only},)"),
        _ => format!("({})", numbers.join(", ")),
    }
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

/// The type of an array's elements as its library writes it.
fn dtype_name(object: &Bound<'_, PyAny>) -> String {
    match object.getattr("dtype").and_then(|dtype| dtype.str()) {
        Ok(name) => name.to_string(),
        Err(_) => format!("those of {}", type_name(object)),
    }
}
