//! Search for the entry of a codebook that is nearest to each vector.

use palmette_model::kernels::dot;
use palmette_train_matmul::{MatMut, MatRef, Write, matmul};
use rayon::prelude::*;

/// Rows per unit of parallel work.
const CHUNK: usize = 256;

/// A codebook, ready to be searched.
#[derive(Debug)]
pub(super) struct Nearest<'a> {
    /// `[K, D]`
    entries: &'a [f32],
    width: usize,
    /// |e|² / 2 of each entry.
    half_squares: Vec<f32>,
}

impl<'a> Nearest<'a> {
    /// The entries `[K, D]`.
    pub(super) fn new(entries: &'a [f32], width: usize) -> Self {
        let half_squares = entries.chunks(width).map(|entry| dot(entry, entry) / 2.0).collect();
        Self { entries, width, half_squares }
    }

    /// Writes the number of the nearest entry of each row of `rows` `[N, D]` to `codes`, and its
    /// squared distance to `distances`. Of entries equally near, the one of the lowest number.
    /// 2·N·K·D floating-point operations.
    pub(super) fn assign(&self, rows: &[f32], codes: &mut [u32], distances: &mut [f32]) {
        let (width, count) = (self.width, self.half_squares.len());
        let chunks = rows.par_chunks(CHUNK * width).zip(codes.par_chunks_mut(CHUNK));
        chunks.zip(distances.par_chunks_mut(CHUNK)).for_each_init(
            || vec![0.0; CHUNK * count],
            |products, ((rows, codes), distances)| {
                let products = &mut products[..codes.len() * count];
                matmul(
                    MatMut::row_major(products, codes.len(), count),
                    Write::Replace,
                    1.0,
                    MatRef::row_major(rows, codes.len(), width),
                    MatRef::row_major(self.entries, count, width).transposed(),
                    1,
                );
                let of_rows = rows.chunks(width).zip(products.chunks(count));
                for ((row, products), (code, distance)) in
                    of_rows.zip(codes.iter_mut().zip(distances))
                {
                    let best = self.best(products);
                    *code = best as u32;
                    // The difference itself: |x|² − 2xe + |e|² loses all digits near an entry.
                    *distance = squared_distance(row, &self.entries[best * width..][..width]);
                }
            },
        );
    }

    /// |x − e|² is least where x·e − |e|²/2 is greatest.
    fn best(&self, products: &[f32]) -> usize {
        let mut best = (0, f32::NEG_INFINITY);
        for (at, (product, half_square)) in products.iter().zip(&self.half_squares).enumerate() {
            let score = product - half_square;
            if score > best.1 {
                best = (at, score);
            }
        }
        best.0
    }
}

/// |a − b|²
pub(super) fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::floats;

    #[test]
    fn equals_trying_every_entry() {
        let (width, count, rows) = (5, 9, 2 * CHUNK + 3);
        let (entries, values) = (floats(count * width, 1), floats(rows * width, 2));
        let (mut codes, mut distances) = (vec![7; rows], vec![0.0; rows]);
        Nearest::new(&entries, width).assign(&values, &mut codes, &mut distances);
        for (row, (&code, &distance)) in values.chunks(width).zip(codes.iter().zip(&distances)) {
            let all: Vec<f32> =
                entries.chunks(width).map(|entry| squared_distance(row, entry)).collect();
            let least = all.iter().copied().fold(f32::INFINITY, f32::min);
            assert!((all[code as usize] - least).abs() <= 1e-5, "{code} in {all:?}");
            assert_eq!(distance, all[code as usize]);
        }
    }

    #[test]
    fn of_equal_entries_the_first() {
        let (mut codes, mut distances) = ([9; 2], [9.0; 2]);
        let entries = [1.0, 1.0, -1.0, -1.0];
        Nearest::new(&entries, 1).assign(&[1.0, -1.0], &mut codes, &mut distances);
        assert_eq!((codes, distances), ([0, 2], [0.0, 0.0]));
    }
}
