//! Reading from what is buffered.

use std::io::{self, BufRead};

/// `Read::read` of a reader that has what it hands out in a buffer.
pub(super) fn read_buffered(reader: &mut impl BufRead, target: &mut [u8]) -> io::Result<usize> {
    let available = reader.fill_buf()?;
    let count = available.len().min(target.len());
    target[..count].copy_from_slice(&available[..count]);
    reader.consume(count);
    Ok(count)
}
