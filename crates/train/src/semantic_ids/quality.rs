//! Quality of semantic IDs.

use std::collections::HashMap;

use serde::Serialize;

/// Use of a level's codes, and the error after it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelUse {
    /// Codes that some item has.
    pub used: usize,
    /// That as a share of all codes of the level.
    pub utilisation: f64,
    /// e to the entropy of the codes: as many codes, equally used, would tell as much.
    pub perplexity: f64,
    /// Squared error after this level as a share of the embeddings' variance: 0 is exact, 1 is no
    /// better than their mean.
    pub reconstruction_error: f64,
}

/// Quality of semantic IDs, before anything is done about collisions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quality {
    /// Items.
    pub items: usize,
    /// Different IDs.
    pub distinct_ids: usize,
    /// Items that share their ID with another, as a share of all.
    pub collision_rate: f64,
    /// Number of items of the ID that has the most.
    pub largest_collision: usize,
    /// Each level, from the first.
    pub levels: Vec<LevelUse>,
}

impl Quality {
    /// Measures codes `[N, L]` of `count` codes a level. `errors` has the mean squared error of an
    /// embedding after each level, and `variance` that of their mean.
    pub(super) fn of(codes: &[u32], count: usize, errors: &[f64], variance: f64) -> Self {
        let levels = errors.len();
        let items = codes.len() / levels;
        let mut sharing: HashMap<&[u32], usize> = HashMap::new();
        codes.chunks(levels).for_each(|id| *sharing.entry(id).or_default() += 1);
        let colliding: usize = sharing.values().filter(|&&items| items > 1).sum();
        let level_use = |(level, &error): (usize, &f64)| {
            let mut uses = vec![0_usize; count];
            codes.iter().skip(level).step_by(levels).for_each(|&code| uses[code as usize] += 1);
            let shares = uses.iter().filter(|&&uses| uses > 0);
            let entropy: f64 = shares
                .map(|&uses| uses as f64 / items as f64)
                .map(|share| -share * share.ln())
                .sum();
            let used = uses.iter().filter(|&&uses| uses > 0).count();
            let exact = if error == 0.0 { 0.0 } else { f64::INFINITY };
            LevelUse {
                used,
                utilisation: used as f64 / count as f64,
                perplexity: entropy.exp(),
                reconstruction_error: if variance > 0.0 { error / variance } else { exact },
            }
        };
        Self {
            items,
            distinct_ids: sharing.len(),
            collision_rate: colliding as f64 / items as f64,
            largest_collision: sharing.values().copied().max().unwrap_or(0),
            levels: errors.iter().enumerate().map(level_use).collect(),
        }
    }
}

/// The mean of rows `[N, D]`.
pub(super) fn mean(rows: &[f32], width: usize) -> Vec<f64> {
    let count = (rows.len() / width) as f64;
    let mut mean = vec![0.0_f64; width];
    for row in rows.chunks(width) {
        mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    mean.iter_mut().for_each(|sum| *sum /= count);
    mean
}

/// The mean of |x − mean|² over rows `[N, D]`.
pub(super) fn variance(rows: &[f32], width: usize) -> f64 {
    let mean = mean(rows, width);
    let squares = rows.chunks(width).flat_map(|row| row.iter().zip(&mean));
    squares.map(|(&x, mean)| (f64::from(x) - mean).powi(2)).sum::<f64>()
        / (rows.len() / width) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let codes = [0, 1, 0, 1, 2, 1, 2, 3];
        let found = Quality::of(&codes, 4, &[2.0, 0.5], 4.0);
        assert_eq!((found.items, found.distinct_ids, found.largest_collision), (4, 3, 2));
        assert_eq!(found.collision_rate, 0.5);
        let first = &found.levels[0];
        assert_eq!((first.used, first.utilisation, first.reconstruction_error), (2, 0.5, 0.5));
        assert!((first.perplexity - 2.0).abs() < 1e-12);
        // Three quarters and one quarter.
        let entropy = -(0.75_f64 * 0.75_f64.ln() + 0.25 * 0.25_f64.ln());
        assert!((found.levels[1].perplexity - entropy.exp()).abs() < 1e-12);
        assert_eq!(variance(&[0.0, 1.0, 4.0, 1.0], 2), 4.0);
    }
}
