//! `apply_bitmask_`: logits of tokens that may not follow become minus infinity, in place, on the
//! CPU.

use palmette_core::mask::WORD_TOKENS;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use crate::buffers::{LogitRow, LogitRows, MaskRows};
use crate::process;

/// Sets logits to minus infinity where a mask has a 0, and past the mask's last word.
///
/// ``rows`` are the rows of both to be done; left out, all, of which both then have as many.
/// ``bfloat16``: logits are given as the bits of such, uint16 or int16.
#[pyfunction]
#[pyo3(signature = (logits, bitmask, rows=None, *, bfloat16=false))]
pub(crate) fn apply_bitmask(
    py: Python<'_>,
    logits: &Bound<'_, PyAny>,
    bitmask: &Bound<'_, PyAny>,
    rows: Option<&Bound<'_, PyAny>>,
    bfloat16: bool,
) -> PyResult<()> {
    let mask = MaskRows::to_read(bitmask)?;
    let mut logits = LogitRows::of(logits, bfloat16)?;
    let rows = match rows.filter(|rows| !rows.is_none()) {
        Some(rows) => {
            let rows = rows.try_iter()?.map(|row| {
                let row = mask.row_index(row?.extract()?)?;
                match row < logits.num_rows() {
                    true => Ok(row),
                    false => Err(PyIndexError::new_err(format!(
                        "row {row} of logits with {} rows",
                        logits.num_rows()
                    ))),
                }
            });
            rows.collect::<PyResult<Vec<_>>>()?
        }
        None if logits.num_rows() == mask.num_rows() => (0..mask.num_rows()).collect(),
        None => {
            return Err(PyValueError::new_err(format!(
                "logits have {} rows and the bitmask has {}; give as many of both, or the rows to be done",
                logits.num_rows(),
                mask.num_rows()
            )));
        }
    };
    process::detach(py, || {
        for row in rows {
            let allowed = mask.row(row);
            match logits.row_mut(row) {
                LogitRow::Half(logits, minus_infinity) => apply(logits, allowed, minus_infinity),
                LogitRow::Single(logits, minus_infinity) => apply(logits, allowed, minus_infinity),
                LogitRow::Double(logits, minus_infinity) => apply(logits, allowed, minus_infinity),
            }
        }
    });
    Ok(())
}

fn apply<T: Copy>(logits: &mut [T], allowed: &[u32], minus_infinity: T) {
    let covered = logits.len().min(allowed.len() * WORD_TOKENS);
    let (logits, past) = logits.split_at_mut(covered);
    past.fill(minus_infinity);
    for (logits, &word) in logits.chunks_mut(WORD_TOKENS).zip(allowed) {
        match word {
            u32::MAX => {}
            0 => logits.fill(minus_infinity),
            _ => {
                for (bit, logit) in logits.iter_mut().enumerate() {
                    *logit = if word >> bit & 1 == 1 { *logit } else { minus_infinity };
                }
            }
        }
    }
}
