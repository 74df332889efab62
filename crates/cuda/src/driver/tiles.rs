//! Maps of matrices, by which kernels copy boxes of them: 128 bytes that a driver makes.

use super::{Address, DeviceError};

/// Columns of a box: 128 bytes, which the copy swizzles.
pub(crate) const BOX_COLUMNS: u32 = 64;
/// Rows that a box may have.
const MOST_BOX_ROWS: u32 = 256;
/// Rows or columns that a matrix may have.
const MOST_LENGTH: u64 = 1 << 32;

/// A matrix of bfloat16 in device memory, and the box of it that a copy takes: 64 columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// The first value: a multiple of 16 bytes.
    pub address: Address,
    /// Rows of the matrix.
    pub rows: u64,
    /// Columns, without gaps between rows: a multiple of 8.
    pub columns: u64,
    /// Rows of a box; past the matrix's there are zeros.
    pub box_rows: u32,
}

impl Tiles {
    /// Checks that a device copies such boxes.
    ///
    /// # Errors
    /// When it does not: the message says which rule is broken.
    pub fn check(&self) -> Result<(), DeviceError> {
        let Self { address, rows, columns, box_rows } = *self;
        let lengths = 1..=MOST_LENGTH;
        let rule = if address.0 % 16 != 0 || columns % 8 != 0 {
            "begins, and has rows, of no multiple of 16 bytes"
        } else if !lengths.contains(&rows) || !lengths.contains(&columns) {
            "has no rows or columns, or more than 2^32"
        } else if !(1..=MOST_BOX_ROWS).contains(&box_rows) {
            "is copied in boxes of no row, or of more than 256"
        } else {
            return Ok(());
        };
        let message = format!("a matrix of {rows} x {columns} {rule}: {self:?}");
        Err(DeviceError::Driver { call: "a map of tiles", message })
    }
}

/// A map as kernels take it: opaque, made by a driver for itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct TensorMap(pub [u8; 128]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_that_no_copy_takes_are_refused_by_their_rule() {
        let sound = Tiles { address: Address(32), rows: 5, columns: 64, box_rows: 128 };
        assert!(sound.check().is_ok());
        for (tiles, words) in [
            (Tiles { address: Address(8), ..sound }, "of no multiple of 16 bytes"),
            (Tiles { columns: 68, ..sound }, "of no multiple of 16 bytes"),
            (Tiles { rows: 0, ..sound }, "has no rows"),
            (Tiles { rows: 1 << 33, ..sound }, "more than 2^32"),
            (Tiles { box_rows: 257, ..sound }, "of more than 256"),
        ] {
            let error = tiles.check().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
