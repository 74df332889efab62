//! Arrays of other libraries, read and written in place: NumPy by the buffer protocol, torch and others by DLPack.
//!
//! Every line of unsafe code about arrays is here. Everything is checked when an array is taken: element type, shape, strides,
//! device, alignment, and that it may be written to. What cannot be checked is that nobody else writes meanwhile: two
//! Python threads that fill the same row of one array at the same time race, as they do with NumPy's own functions, and what
//! the row then holds is not said. Rows that different calls fill are never borrowed together.

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyBufferError, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{ffi, intern};

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
    /// A tensor that was handed over; its capsule's destructor would release it, and is told not to.
    Managed { _tensor: Managed },
}

// SAFETY: the memory is reached by the methods of this file alone, which take `&self` or `&mut self`; its owners may be dropped
// on any thread: buffers and objects attach first, and DLPack asks it of deleters.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Array {
    /// Takes an array; `name` is what messages call it.
    ///
    /// # Errors
    /// `TypeError` for what is no array; `ValueError` for one on another device, or in a layout that is not read.
    pub(crate) fn of(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        // SAFETY: the pointer is that of a live object.
        if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 1 {
            return Self::of_buffer(object, name);
        }
        match dlpack::array(object, name)? {
            Some(array) => Ok(array),
            None => Err(PyTypeError::new_err(format!(
                "{name} is of type {}; give a NumPy array, or a tensor in host memory (with __dlpack__)",
                type_name(object)
            ))),
        }
    }

    fn of_buffer(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object).map_err(|error| {
            // An array without dimensions has no shape; other exporters refuse types of elements that buffers do not know.
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
        let swapped =
            matches!(format.to_bytes(), [b'>' | b'!', ..]) && cfg!(target_endian = "little");
        let element = match ElementType::from_format(format) {
            _ if swapped => Element::Other,
            ElementType::SignedInteger { bytes } if bytes == item => Element::Signed(bytes),
            ElementType::UnsignedInteger { bytes } if bytes == item => Element::Unsigned(bytes),
            ElementType::Float { bytes } if bytes == item => Element::Float(bytes),
            ElementType::Bool => Element::Bool,
            _ if matches!(format.to_bytes(), b"e" | b"<e" | b"=e") && item == 2 => {
                Element::Float(2)
            }
            _ => Element::Other,
        };
        let data = NonNull::new(buffer.buf_ptr().cast::<u8>()).unwrap_or(NonNull::dangling());
        let read_only = buffer.readonly();
        let owner = Owner::Buffer { _buffer: buffer };
        Ok(Self { data, num_dims, shape, strides, element, read_only, _owner: owner })
    }

    /// The lengths of its dimensions.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape[..self.num_dims]
    }

    /// Whether it is the same memory in the same layout.
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

/// The rows of a bitmask: int32 or uint32 `[rows, words]`, bit `t % 32` of word `t / 32` is token `t`.
pub(crate) struct MaskRows {
    array: Array,
    matrix: Matrix,
}

const MASK: &str = "bitmask";

impl MaskRows {
    /// Takes a bitmask that may be written to.
    ///
    /// # Errors
    /// `TypeError` for another type, `ValueError` for another layout or one that is read-only; each says what it is and
    /// what it should be.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let rows = Self::to_read(object)?;
        rows.array.writable(MASK)?;
        Ok(rows)
    }

    /// Takes a bitmask that is only read.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub(crate) fn to_read(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bound) = object.cast::<MaskBuffer>() {
            return MaskBuffer::rows(bound);
        }
        let array = Array::of(object, MASK)?;
        if !matches!(array.element, Element::Signed(4) | Element::Unsigned(4)) {
            return Err(PyTypeError::new_err(format!(
                "{MASK} has elements of type {}; a bitmask is int32 (or uint32): palmette.allocate_bitmask makes one",
                dtype_name(object)
            )));
        }
        let layout = "give one in C order, as palmette.allocate_bitmask makes it";
        let matrix = array.matrix(MASK)?.with_rows_in_one_piece(&array, 4, MASK, layout)?;
        Ok(Self { array, matrix })
    }

    /// Number of rows.
    pub(crate) fn num_rows(&self) -> usize {
        self.matrix.rows
    }

    /// Words of a row.
    pub(crate) fn num_words(&self) -> usize {
        self.matrix.cols
    }

    /// Checks that masks over a vocabulary fit.
    ///
    /// # Errors
    /// `ValueError` with both widths.
    pub(crate) fn check_width(&self, num_tokens: usize) -> PyResult<()> {
        let needed = palmette_core::mask::num_words(num_tokens);
        if self.num_words() >= needed {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "{MASK} has the shape {}, but a mask over {num_tokens} tokens takes {needed} words of 32 bits; \
             palmette.allocate_bitmask(rows, {num_tokens}) makes one",
            shown(self.array.shape())
        )))
    }

    /// The place of a row.
    ///
    /// # Errors
    /// `IndexError` for one that is not there; numbers do not count from the end.
    pub(crate) fn row_index(&self, row: isize) -> PyResult<usize> {
        let rows = self.num_rows();
        usize::try_from(row).ok().filter(|&row| row < rows).ok_or_else(|| {
            PyIndexError::new_err(match rows {
                0 => format!("row {row} of a {MASK} without rows"),
                _ => format!("row {row} of a {MASK} with rows 0 to {}", rows - 1),
            })
        })
    }

    /// A row to be written.
    ///
    /// # Panics
    /// When there is none of this number.
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [u32] {
        assert!(row < self.matrix.rows, "row {row} of {}", self.matrix.rows);
        // SAFETY: as in `rows_mut`; `&mut self` keeps other rows of this view from being borrowed.
        unsafe { self.slice(row) }
    }

    /// Several rows to be written at once, each at most once.
    ///
    /// # Panics
    /// When there is none of such a number.
    ///
    /// # Errors
    /// `ValueError` for a row that comes twice.
    pub(crate) fn rows_mut(&mut self, rows: &[usize]) -> PyResult<Vec<&mut [u32]>> {
        let mut sorted = rows.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(PyValueError::new_err(format!(
                "row {} of the {MASK} is given twice; each sequence needs a row of its own",
                pair[0]
            )));
        }
        assert!(sorted.last().is_none_or(|&last| last < self.matrix.rows), "rows of a bitmask");
        // SAFETY: rows are different, and do not overlap (`with_rows_in_one_piece`), and `&mut self` is borrowed as long as
        // they are.
        Ok(rows.iter().map(|&row| unsafe { self.slice(row) }).collect())
    }

    /// Neighbouring rows to be written, as one piece; `None` where something lies between them.
    ///
    /// # Panics
    /// When there are none of such numbers.
    pub(crate) fn block_mut(&mut self, rows: std::ops::Range<usize>) -> Option<&mut [u32]> {
        let Matrix { rows: num_rows, cols, row_stride, .. } = self.matrix;
        assert!(rows.start <= rows.end && rows.end <= num_rows, "rows {rows:?} of {num_rows}");
        if rows.is_empty() || cols == 0 {
            return Some(&mut []);
        }
        if rows.len() > 1 && row_stride != 4 * cols as isize {
            return None;
        }
        // SAFETY: as in `slice`, and each of the rows begins where the one before it ends.
        Some(unsafe {
            let start = self.array.data.as_ptr().offset(rows.start as isize * row_stride);
            std::slice::from_raw_parts_mut(start.cast::<u32>(), cols * rows.len())
        })
    }

    /// A row to be read.
    ///
    /// # Panics
    /// When there is none of this number.
    pub(crate) fn row(&self, row: usize) -> &[u32] {
        assert!(row < self.matrix.rows, "row {row} of {}", self.matrix.rows);
        // SAFETY: as in `rows_mut`, and nothing of this view is written while `&self` is borrowed.
        unsafe { self.slice(row) }
    }

    /// # Safety
    /// `row` is one of the matrix, and its slice is the only one of it while it is written to.
    #[allow(clippy::mut_from_ref, reason = "its callers borrow the view as the slice is used")]
    unsafe fn slice(&self, row: usize) -> &mut [u32] {
        if self.matrix.cols == 0 {
            return &mut [];
        }
        // SAFETY: the array has `rows` rows of `cols` elements, each row in one piece and aligned (checked when it was
        // taken), its memory is kept alive by its owner, and every bit pattern is a u32. Another Python thread may
        // write the row meanwhile; the module's documentation says what that means.
        unsafe {
            let start = self.array.data.as_ptr().offset(row as isize * self.matrix.row_stride);
            std::slice::from_raw_parts_mut(start.cast::<u32>(), self.matrix.cols)
        }
    }
}

/// A bitmask whose layout was checked once; each call that takes it checks that its array is still as it was.
///
/// An array whose memory, shape or type changed since, as by ``tensor.resize_``, is refused: it needs another buffer.
#[pyclass(module = "palmette", frozen)]
pub(crate) struct MaskBuffer {
    rows: MaskRows,
    object: Py<PyAny>,
}

impl MaskBuffer {
    /// The rows, in the memory that the array has now.
    ///
    /// Nothing keeps a library from putting an array's memory elsewhere while someone else holds the array, so that an address
    /// means nothing a call later.
    fn rows(slf: &Bound<'_, Self>) -> PyResult<MaskRows> {
        let MaskRows { array: before, matrix } = &slf.get().rows;
        let array = Array::of(slf.get().object.bind(slf.py()), MASK)?;
        match array.is_as(before) {
            true => Ok(MaskRows { array, matrix: *matrix }),
            false => Err(PyValueError::new_err(format!(
                "the array of this MaskBuffer is no longer the one that was checked: it had the shape {} and has {}, and its memory \
                 may be elsewhere; make another MaskBuffer after resizing an array",
                shown(before.shape()),
                shown(array.shape())
            ))),
        }
    }
}

#[pymethods]
impl MaskBuffer {
    #[new]
    fn new(bitmask: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(buffer) = bitmask.cast::<Self>() {
            return Self::new(buffer.get().object.bind(bitmask.py()));
        }
        Ok(Self { rows: MaskRows::of(bitmask)?, object: bitmask.clone().unbind() })
    }

    /// The array.
    #[getter]
    fn array(&self, py: Python<'_>) -> Py<PyAny> {
        self.object.clone_ref(py)
    }

    /// Rows and words of a row.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.rows.num_rows(), self.rows.num_words())
    }

    fn __repr__(&self) -> String {
        let (rows, words) = self.shape();
        format!("<palmette.MaskBuffer of {rows} rows of {words} words>")
    }
}

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

    /// The numbers of a row, in place of those that `into` holds. Unsigned numbers past the greatest i64 become that.
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
        // SAFETY: `row` and `col` are within the shape, so the element is within the array, which its owner keeps alive;
        // reads are unaligned, and every bit pattern is an integer.
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
    /// `TypeError` for other elements, `ValueError` for another layout; `name` is what they call it.
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
        // SAFETY: the row is within the array, in one piece and aligned (checked when it was taken), the array's owner keeps
        // it alive, and every bit pattern is an f32.
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
    /// Takes a matrix of logits, or one row; `bfloat16` where a two-byte integer type stands for it.
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
        // SAFETY: as in `MaskRows::slice`: the row is within the array, in one piece and aligned to its elements, whose bits are
        // seen as an integer of their size; `&mut self` is borrowed as long as the slice.
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

/// A tensor that was handed over: released when dropped.
struct Managed(NonNull<c_void>, ManagedKind);

enum ManagedKind {
    Legacy,
    Versioned,
}

impl Drop for Managed {
    fn drop(&mut self) {
        // Deleters of some libraries touch Python objects without attaching.
        Python::attach(|_| match self.1 {
            // SAFETY: the pointer is that of a tensor that was handed over to us, and nothing else releases it.
            ManagedKind::Legacy => unsafe {
                let tensor = self.0.cast::<dlpack::ManagedTensor>().as_ptr();
                if let Some(delete) = (*tensor).deleter {
                    delete(tensor);
                }
            },
            // SAFETY: as above.
            ManagedKind::Versioned => unsafe {
                let tensor = self.0.cast::<dlpack::ManagedTensorVersioned>().as_ptr();
                if let Some(delete) = (*tensor).deleter {
                    delete(tensor);
                }
            },
        });
    }
}

mod dlpack {
    //! Tensors by [DLPack](https://dmlc.github.io/dlpack/latest/): the C structures, as of version 1.3.

    use super::*;

    /// Host memory, and host memory that a CUDA or ROCm device reads.
    const HOST: [i32; 3] = [1, 3, 11];
    const READ_ONLY: u64 = 1;

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Tensor {
        data: *mut c_void,
        device_type: i32,
        device_id: i32,
        num_dims: i32,
        type_code: u8,
        type_bits: u8,
        type_lanes: u16,
        shape: *const i64,
        /// In elements; null for C order.
        strides: *const i64,
        byte_offset: u64,
    }

    #[repr(C)]
    pub(super) struct ManagedTensor {
        tensor: Tensor,
        manager: *mut c_void,
        pub(super) deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
    }

    #[repr(C)]
    pub(super) struct ManagedTensorVersioned {
        major: u32,
        minor: u32,
        manager: *mut c_void,
        pub(super) deleter: Option<unsafe extern "C" fn(*mut ManagedTensorVersioned)>,
        flags: u64,
        tensor: Tensor,
    }

    /// The functions of a type of tensors, by which one is described without a Python object in between.
    #[repr(C)]
    struct ExchangeTable {
        major: u32,
        minor: u32,
        earlier: *const c_void,
        allocator: *const c_void,
        managed_from_object: *const c_void,
        managed_to_object: *const c_void,
        tensor_from_object: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
        current_stream: *const c_void,
    }

    const TABLE: &CStr = c"dlpack_exchange_api";
    const LEGACY: &CStr = c"dltensor";
    const VERSIONED: &CStr = c"dltensor_versioned";

    /// An object's tensor; `None` where it does not speak DLPack.
    pub(super) fn array(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Array>> {
        let py = object.py();
        if let Some(table) = table(object)? {
            let mut tensor = MaybeUninit::<Tensor>::uninit();
            // SAFETY: the function is from the table of the object's own type, and writes all of the description, which is
            // valid as long as the object lives, when it returns 0.
            let failed = unsafe { table(object.as_ptr().cast(), tensor.as_mut_ptr()) } != 0;
            if failed {
                return Err(PyErr::fetch(py));
            }
            // SAFETY: it was written.
            let tensor = unsafe { tensor.assume_init() };
            let owner = Owner::Object { _object: object.clone().unbind() };
            return described(&tensor, owner, false, object, name).map(Some);
        }
        let Some(export) = object.getattr_opt(intern!(py, "__dlpack__"))? else {
            return Ok(None);
        };
        let versions = PyDict::new(py);
        versions.set_item(intern!(py, "max_version"), (1, 0))?;
        let capsule = match export.call((), Some(&versions)) {
            // Before DLPack 1.0 the argument was not known.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => export.call0()?,
            capsule => capsule?,
        };
        let (pointer, kind) =
            if let Some(pointer) = take(&capsule, VERSIONED, c"used_dltensor_versioned")? {
                (pointer, ManagedKind::Versioned)
            } else if let Some(pointer) = take(&capsule, LEGACY, c"used_dltensor")? {
                (pointer, ManagedKind::Legacy)
            } else {
                return Err(PyTypeError::new_err(format!("{name}.__dlpack__() gave no tensor")));
            };
        let managed = Managed(pointer, kind);
        // SAFETY: the capsule's name says which structure it holds; its version, where it has one, is checked.
        let (tensor, read_only) = unsafe {
            match managed.1 {
                ManagedKind::Legacy => (pointer.cast::<ManagedTensor>().as_ref().tensor, false),
                ManagedKind::Versioned => {
                    let versioned = pointer.cast::<ManagedTensorVersioned>().as_ref();
                    if versioned.major != 1 {
                        let (major, minor) = (versioned.major, versioned.minor);
                        return Err(PyTypeError::new_err(format!(
                            "{name} speaks DLPack {major}.{minor}; only 1.x is known here"
                        )));
                    }
                    (versioned.tensor, versioned.flags & READ_ONLY != 0)
                }
            }
        };
        described(&tensor, Owner::Managed { _tensor: managed }, read_only, object, name).map(Some)
    }

    type Describe = unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int;

    /// The function of an object's type that describes it, where the type has a table of the version that is known.
    fn table(object: &Bound<'_, PyAny>) -> PyResult<Option<Describe>> {
        let attribute = intern!(object.py(), "__dlpack_c_exchange_api__");
        let Some(capsule) = object.get_type().getattr_opt(attribute)? else { return Ok(None) };
        // SAFETY: the pointer is that of a live object; it is asked for the name first.
        let table = unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), TABLE.as_ptr()) != 1 {
                return Ok(None);
            }
            ffi::PyCapsule_GetPointer(capsule.as_ptr(), TABLE.as_ptr()).cast::<ExchangeTable>()
        };
        // SAFETY: a capsule of this name holds a table, which lives as long as the process; the layout of what is read has
        // been the same since the table exists, in versions 1.x.
        unsafe {
            let Some(table) = table.as_ref() else { return Ok(None) };
            Ok(table.tensor_from_object.filter(|_| table.major == 1))
        }
    }

    /// Takes the tensor out of a capsule of a name, which is then renamed so that its destructor does nothing.
    fn take(
        capsule: &Bound<'_, PyAny>,
        name: &'static CStr,
        used: &'static CStr,
    ) -> PyResult<Option<NonNull<c_void>>> {
        // SAFETY: the pointer is that of a live object, which is asked for the name first; names are static.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) != 1 {
                return Ok(None);
            }
            let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
            if ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
                return Err(PyErr::fetch(capsule.py()));
            }
            Ok(NonNull::new(pointer))
        }
    }

    fn described(
        tensor: &Tensor,
        owner: Owner,
        read_only: bool,
        object: &Bound<'_, PyAny>,
        name: &str,
    ) -> PyResult<Array> {
        if !HOST.contains(&tensor.device_type) {
            let device = match object.getattr("device").and_then(|device| device.str()) {
                Ok(device) => device.to_string(),
                Err(_) => format!("device {}:{}", tensor.device_type, tensor.device_id),
            };
            return Err(PyValueError::new_err(format!(
                "{name} is on {device}; give one in host memory, and copy it over afterwards"
            )));
        }
        let num_dims = usize::try_from(tensor.num_dims).unwrap_or(usize::MAX);
        if num_dims > MAX_DIMS {
            return Err(PyValueError::new_err(format!(
                "{name} has {num_dims} dimensions; give a tensor of one or two"
            )));
        }
        let bits = usize::from(tensor.type_bits);
        let (size, whole) = (bits / 8, bits.is_multiple_of(8) && tensor.type_lanes == 1);
        let element = match tensor.type_code {
            _ if !whole || size == 0 => Element::Other,
            0 => Element::Signed(size),
            1 => Element::Unsigned(size),
            2 => Element::Float(size),
            4 if size == 2 => Element::BFloat16,
            6 => Element::Bool,
            _ => Element::Other,
        };
        let (mut shape, mut strides) = ([0; MAX_DIMS], [0; MAX_DIMS]);
        let mut in_order = size as isize;
        for dim in (0..num_dims).rev() {
            // SAFETY: the description has a length for each dimension, and a stride unless there are none.
            let (length, stride) = unsafe {
                let length = *tensor.shape.add(dim);
                let given = (!tensor.strides.is_null()).then(|| *tensor.strides.add(dim));
                (length, given)
            };
            shape[dim] = usize::try_from(length).unwrap_or(0);
            strides[dim] = stride.map_or(in_order, |stride| stride as isize * size as isize);
            in_order *= shape[dim] as isize;
        }
        let data = NonNull::new(tensor.data.cast::<u8>());
        let data = match data {
            // SAFETY: the tensor's first element is this far behind its data, within the same allocation.
            Some(data) => unsafe { data.add(tensor.byte_offset as usize) },
            None => NonNull::dangling(),
        };
        // Without data there are no elements.
        if tensor.data.is_null() && shape[..num_dims].iter().all(|&length| length > 0) {
            return Err(PyValueError::new_err(format!("{name} has no memory; give a real tensor")));
        }
        Ok(Array { data, num_dims, shape, strides, element, read_only, _owner: owner })
    }
}
