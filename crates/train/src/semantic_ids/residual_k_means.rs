//! Codebooks found by k-means, one level after another.

use rayon::prelude::*;

use super::draws::Draws;
use super::embeddings::rows_of;
use super::k_means::k_means;
use super::nearest::Nearest;

/// Options of fitting [`ResidualKMeans`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KMeansOptions {
    /// Limit on the rounds of k-means a level.
    pub rounds: usize,
    /// Limit on the items that centres are learned from; larger sets are sampled.
    pub max_items: usize,
}

impl Default for KMeansOptions {
    fn default() -> Self {
        Self { rounds: 50, max_items: 200_000 }
    }
}

/// Codebooks whose entries are the centres of what the levels before have left over.
#[derive(Clone, Debug, PartialEq)]
pub struct ResidualKMeans {
    width: usize,
    /// `[K, D]` for each level.
    codebooks: Vec<Vec<f32>>,
}

impl ResidualKMeans {
    /// Codebooks as read from a file.
    pub(super) fn from_codebooks(width: usize, codebooks: Vec<Vec<f32>>) -> Self {
        Self { width, codebooks }
    }

    /// Learns `levels` codebooks of `codes` entries from rows `[N, D]`, and calls `done` after
    /// each.
    pub(super) fn fit(
        rows: &[f32],
        width: usize,
        levels: usize,
        codes: usize,
        options: KMeansOptions,
        seed: u64,
        done: &mut dyn FnMut(usize),
    ) -> Self {
        let num_rows = rows.len() / width;
        let mut residual = if num_rows > options.max_items {
            let mut drawn = Draws::new(seed, 0).sample(num_rows, options.max_items);
            drawn.sort_unstable();
            rows_of(rows, width, &drawn)
        } else {
            rows.to_vec()
        };
        let num_rows = residual.len() / width;
        let (mut chosen, mut distances) = (vec![0; num_rows], vec![0.0; num_rows]);
        let mut codebooks = Vec::with_capacity(levels);
        for level in 0..levels {
            let mut draws = Draws::new(seed, 1 + level as u64);
            let codebook = k_means(&residual, width, codes, options.rounds, &mut draws);
            Nearest::new(&codebook, width).assign(&residual, &mut chosen, &mut distances);
            subtract(&mut residual, width, &codebook, &chosen);
            codebooks.push(codebook);
            done(level + 1);
        }
        Self { width, codebooks }
    }

    /// Numbers in a vector (D).
    pub fn width(&self) -> usize {
        self.width
    }

    /// The codebooks, `[K, D]` each.
    pub fn codebooks(&self) -> &[Vec<f32>] {
        &self.codebooks
    }

    /// The codes of rows `[N, D]`, as `[N, L]`, with the squared error `[N, L]` that is left after
    /// each level.
    pub(super) fn encode(&self, rows: &[f32]) -> (Vec<u32>, Vec<f32>) {
        quantise(rows, self.width, &self.codebooks)
    }
}

/// The codes of rows `[N, D]` in codebooks `[L, K, D]`: codes `[N, L]` and the squared error `[N,
/// L]` left after each.
pub(super) fn quantise(rows: &[f32], width: usize, codebooks: &[Vec<f32>]) -> (Vec<u32>, Vec<f32>) {
    let (num_rows, levels) = (rows.len() / width, codebooks.len());
    let mut residual = rows.to_vec();
    let (mut chosen, mut distances) = (vec![0; num_rows], vec![0.0; num_rows]);
    let (mut codes, mut errors) = (vec![0; num_rows * levels], vec![0.0; num_rows * levels]);
    for (level, codebook) in codebooks.iter().enumerate() {
        Nearest::new(codebook, width).assign(&residual, &mut chosen, &mut distances);
        subtract(&mut residual, width, codebook, &chosen);
        for row in 0..num_rows {
            codes[row * levels + level] = chosen[row];
            errors[row * levels + level] = distances[row];
        }
    }
    (codes, errors)
}

/// Subtracts from each row its entry.
pub(super) fn subtract(residual: &mut [f32], width: usize, codebook: &[f32], chosen: &[u32]) {
    residual.par_chunks_mut(width).zip(chosen).for_each(|(row, &code)| {
        let entry = &codebook[code as usize * width..][..width];
        row.iter_mut().zip(entry).for_each(|(value, entry)| *value -= entry);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::floats;

    #[test]
    fn codes_add_up_to_the_rows() {
        let (width, num_rows) = (4, 300);
        let rows = floats(num_rows * width, 1);
        let mut levels = Vec::new();
        let fitted =
            ResidualKMeans::fit(&rows, width, 3, 8, KMeansOptions::default(), 1, &mut |at| {
                levels.push(at);
            });
        assert_eq!(levels, [1, 2, 3]);
        let (codes, errors) = fitted.encode(&rows);
        for (row, values) in rows.chunks(width).enumerate() {
            let mut left = values.to_vec();
            for level in 0..3 {
                let code = codes[row * 3 + level] as usize;
                let entry = &fitted.codebooks()[level][code * width..][..width];
                left.iter_mut().zip(entry).for_each(|(left, entry)| *left -= entry);
                let error: f32 = left.iter().map(|x| x * x).sum();
                assert!((error - errors[row * 3 + level]).abs() < 1e-5);
            }
        }
        let sum = |level: usize| errors.iter().skip(level).step_by(3).sum::<f32>();
        assert!(sum(0) > sum(1) && sum(1) > sum(2), "every level comes nearer");
    }

    #[test]
    fn threads_and_repetition_change_nothing_and_the_seed_does() {
        let rows = floats(3000, 2);
        let fit = |threads: usize, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let options = KMeansOptions { rounds: 5, max_items: 700 };
            pool.install(|| ResidualKMeans::fit(&rows, 3, 2, 16, options, seed, &mut |_| ()))
        };
        assert_eq!(fit(1, 9), fit(3, 9));
        assert_ne!(fit(1, 9), fit(1, 10));
    }
}
