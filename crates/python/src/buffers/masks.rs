//! Bitmasks: rows of words that are filled and read in place.

use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::{Array, Element, Matrix, dtype_name, shown};

/// The rows of a bitmask: int32 or uint32 `[rows, words]`, bit `t % 32` of word `t / 32` is token
/// `t`.
pub(crate) struct MaskRows {
    array: Array,
    matrix: Matrix,
}

const MASK: &str = "bitmask";

impl MaskRows {
    /// Takes a bitmask that may be written to.
    ///
    /// # Errors
    /// `TypeError` for another type, `ValueError` for another layout or one that is read-only; each
    /// says what it is and what it should be.
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
        // SAFETY: rows are different, and do not overlap (`with_rows_in_one_piece`), and `&mut
        // self` is borrowed as long as they are.
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
        // SAFETY: the array has `rows` rows of `cols` elements, each row in one piece and aligned
        // (checked when it was taken), its memory is kept alive by its owner, and every bit pattern
        // is a u32. Another Python thread may write the row meanwhile; the module's documentation
        // says what that means.
        unsafe {
            let start = self.array.data.as_ptr().offset(row as isize * self.matrix.row_stride);
            std::slice::from_raw_parts_mut(start.cast::<u32>(), self.matrix.cols)
        }
    }
}

/// A bitmask whose layout was checked once; each call that takes it checks that its array is still
/// as it was.
///
/// An array whose memory, shape or type changed since, as by ``tensor.resize_``, is refused: it
/// needs another buffer.
#[pyclass(module = "palmette", frozen)]
pub(crate) struct MaskBuffer {
    rows: MaskRows,
    object: Py<PyAny>,
}

impl MaskBuffer {
    /// The rows, in the memory that the array has now.
    ///
    /// Nothing keeps a library from putting an array's memory elsewhere while someone else holds
    /// the array, so that an address means nothing a call later.
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
