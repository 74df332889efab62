//! Rows of a bitmask, written in place.

use palmette_core::mask;
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::codes::IntMatrix;

/// A writable array `[rows, words]` of 32-bit words.
pub(crate) struct Bitmask {
    /// Keeps the memory.
    buffer: PyUntypedBuffer,
    num_rows: usize,
    words_per_row: usize,
}

impl Bitmask {
    /// The array in an object, with words for so many tokens.
    pub(crate) fn of(object: &Bound<'_, PyAny>, num_tokens: usize) -> PyResult<Self> {
        let words = mask::num_words(num_tokens);
        let buffer = match PyUntypedBuffer::get(object) {
            Ok(buffer) => buffer,
            // A tensor on the CPU is an array on the same memory.
            Err(_) => PyUntypedBuffer::get(
                &object.py().import("numpy")?.call_method1("asarray", (object,))?,
            )?,
        };
        let is_words = matches!(
            ElementType::from_format(buffer.format()),
            ElementType::SignedInteger { bytes: 4 } | ElementType::UnsignedInteger { bytes: 4 }
        );
        if !is_words {
            let format = buffer.format().to_string_lossy().into_owned();
            let message = format!(
                "the bitmask has elements of format {format:?}; int32 is expected, as allocate_bitmask makes it"
            );
            return Err(PyTypeError::new_err(message));
        }
        let &[num_rows, words_per_row] = buffer.shape() else {
            let shape = buffer.shape();
            let message = format!("the bitmask has shape {shape:?}; [rows, {words}] is expected");
            return Err(PyValueError::new_err(message));
        };
        if words_per_row < words {
            let message = format!(
                "the bitmask has shape [{num_rows}, {words_per_row}]; {num_tokens} tokens need [rows, {words}]"
            );
            return Err(PyValueError::new_err(message));
        }
        if buffer.readonly() {
            return Err(PyValueError::new_err(
                "the bitmask is read-only; copy it, or allocate one",
            ));
        }
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err(
                "the bitmask's rows do not lie one after another; make it with allocate_bitmask, and name rows by `rows`",
            ));
        }
        Ok(Self { buffer, num_rows, words_per_row })
    }

    pub(crate) fn num_rows(&self) -> usize {
        self.num_rows
    }

    pub(crate) fn words_per_row(&self) -> usize {
        self.words_per_row
    }

    /// The words of all rows.
    pub(crate) fn words(&mut self) -> &mut [u32] {
        let len = self.num_rows * self.words_per_row;
        if len == 0 {
            return &mut [];
        }
        // SAFETY: the exporter stated that so many elements of four bytes lie here one after another and may be written, and
        // keeps them for as long as the buffer is held; NumPy and torch align them. Another thread of Python may use the
        // array meanwhile, as every array that is handed to a library that releases the interpreter: it then sees words of
        // before and after, and these are only ever written here.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.buf_ptr().cast::<u32>(), len) }
    }
}

/// The rows of the bitmask that a call writes: those named, or as many as it has.
pub(crate) fn rows_of(
    rows: Option<&Bound<'_, PyAny>>,
    num_rows: usize,
    mask: &Bitmask,
) -> PyResult<Vec<usize>> {
    let of = mask.num_rows();
    let Some(rows) = rows else {
        return match num_rows <= of {
            true => Ok((0..num_rows).collect()),
            false => {
                let message = format!("the bitmask has {of} rows, {num_rows} are to be written");
                Err(PyValueError::new_err(message))
            }
        };
    };
    let rows = IntMatrix::of_column(rows, "rows")?;
    if rows.num_rows() != num_rows {
        let given = rows.num_rows();
        let message =
            format!("{given} rows of the bitmask are named for {num_rows} rows of tokens");
        return Err(PyValueError::new_err(message));
    }
    let row = |at| {
        let row = rows.get(at, 0);
        usize::try_from(row).ok().filter(|&row| row < of).ok_or_else(|| {
            PyValueError::new_err(format!("row {row} is named, but the bitmask has {of} rows"))
        })
    };
    (0..num_rows).map(row).collect()
}
