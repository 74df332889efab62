//! Rows of a bitmask that a call writes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::codes::IntMatrix;
use crate::buffers::MaskRows;

/// The places of the rows that are written: those named, or as many from the first as there are
/// sequences.
pub(crate) fn places_of(
    rows: Option<&Bound<'_, PyAny>>,
    num_rows: usize,
    mask: &MaskRows,
) -> PyResult<Vec<usize>> {
    let Some(rows) = rows else {
        let of = mask.num_rows();
        return match num_rows <= of {
            true => Ok((0..num_rows).collect()),
            false => {
                let message = format!("bitmask has {of} rows, and {num_rows} are to be filled");
                Err(PyValueError::new_err(message))
            }
        };
    };
    let rows = IntMatrix::of_column(rows, "rows")?;
    if rows.num_rows() != num_rows {
        let given = rows.num_rows();
        let message = format!("{given} rows of bitmask are named for {num_rows} rows of tokens");
        return Err(PyValueError::new_err(message));
    }
    let place = |at| mask.row_index(isize::try_from(rows.get(at, 0)).unwrap_or(isize::MAX));
    (0..num_rows).map(place).collect()
}
