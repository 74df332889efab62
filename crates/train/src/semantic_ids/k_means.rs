//! Lloyd's k-means, begun by k-means++ (Arthur and Vassilvitskii, 2007).

use rayon::prelude::*;

use super::draws::Draws;
use super::nearest::{Nearest, squared_distance};

/// Rounds end when one lowers the sum of distances by less than this share.
const LEAST_GAIN: f64 = 1e-5;

/// `count` centres `[K, D]` of the rows `[N, D]`.
///
/// With fewer different rows than centres, some centres are equal. At most `rounds` rounds of
/// 2·N·K·D floating-point operations; beginning takes as much once.
pub(super) fn k_means(
    rows: &[f32],
    width: usize,
    count: usize,
    rounds: usize,
    draws: &mut Draws,
) -> Vec<f32> {
    let num_rows = rows.len() / width;
    let mut centres = begin(rows, width, count, draws);
    let (mut codes, mut distances) = (vec![0; num_rows], vec![0.0; num_rows]);
    let mut before = f64::INFINITY;
    for _ in 0..rounds {
        Nearest::new(&centres, width).assign(rows, &mut codes, &mut distances);
        let sum: f64 = distances.iter().copied().map(f64::from).sum();
        if sum == 0.0 || before - sum < LEAST_GAIN * before {
            break;
        }
        before = sum;
        centre(rows, width, &codes, &mut distances, &mut centres);
    }
    centres
}

/// Rows drawn one after another, each with a chance in proportion to its squared distance from
/// those before.
fn begin(rows: &[f32], width: usize, count: usize, draws: &mut Draws) -> Vec<f32> {
    let num_rows = rows.len() / width;
    let row = |at: usize| &rows[at * width..][..width];
    let mut centres = row(draws.below(num_rows)).to_vec();
    let mut distances = vec![f32::INFINITY; num_rows];
    for _ in 1..count {
        let last = centres[centres.len() - width..].to_vec();
        let nearer = |(row, distance): (&[f32], &mut f32)| {
            *distance = distance.min(squared_distance(row, &last));
        };
        rows.par_chunks(width).zip(&mut distances).for_each(nearer);
        let sum: f64 = distances.iter().copied().map(f64::from).sum();
        let mut left = draws.uniform() * sum;
        let drawn = distances.iter().position(|&distance| {
            left -= f64::from(distance);
            left < 0.0
        });
        // All rows are centres already, or rounding has used up the sum.
        let drawn = drawn.unwrap_or_else(|| farthest(&distances));
        centres.extend_from_slice(row(drawn));
    }
    centres
}

/// Moves each centre to the mean of its rows; one without rows goes to the row that is farthest
/// from its own, which then counts as no distance away.
fn centre(rows: &[f32], width: usize, codes: &[u32], distances: &mut [f32], centres: &mut [f32]) {
    let count = centres.len() / width;
    let mut members = vec![Vec::new(); count];
    for (row, &code) in codes.iter().enumerate() {
        members[code as usize].push(row);
    }
    centres.par_chunks_mut(width).zip(&members).for_each(|(centre, members)| {
        if members.is_empty() {
            return;
        }
        let mut sum = vec![0.0_f64; width];
        for &member in members {
            let row = &rows[member * width..][..width];
            sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let share = 1.0 / members.len() as f64;
        centre.iter_mut().zip(sum).for_each(|(centre, sum)| *centre = (sum * share) as f32);
    });
    for (centre, _) in
        centres.chunks_mut(width).zip(&members).filter(|(_, members)| members.is_empty())
    {
        let row = farthest(distances);
        distances[row] = 0.0;
        centre.copy_from_slice(&rows[row * width..][..width]);
    }
}

/// Place of the greatest distance; of equal ones the first.
fn farthest(distances: &[f32]) -> usize {
    let mut best = 0;
    for (at, &distance) in distances.iter().enumerate() {
        if distance > distances[best] {
            best = at;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::floats;

    #[test]
    fn clusters_that_lie_apart_are_found() {
        // Four corners of a square, 30 rows around each.
        let corners = [[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]];
        let noise = floats(240, 5);
        let rows: Vec<f32> = (0..240).map(|at| corners[at / 2 % 4][at % 2] + noise[at]).collect();
        for seed in 0..5 {
            let centres = k_means(&rows, 2, 4, 50, &mut Draws::new(seed, 0));
            let mut found: Vec<[i32; 2]> = centres
                .chunks(2)
                .map(|centre| [(centre[0] / 9.0).round() as i32, (centre[1] / 9.0).round() as i32])
                .collect();
            found.sort_unstable();
            assert_eq!(found, [[0, 0], [0, 1], [1, 0], [1, 1]], "seed {seed}");
        }
    }

    #[test]
    fn more_centres_than_rows() {
        let centres = k_means(&[1.0, 5.0], 1, 4, 10, &mut Draws::new(0, 0));
        assert!(centres.iter().all(|&centre| centre == 1.0 || centre == 5.0), "{centres:?}");
        assert!(centres.contains(&1.0) && centres.contains(&5.0));
    }

    /// Every round of Lloyd's algorithm lowers the sum of squared distances.
    #[test]
    fn more_rounds_are_never_worse() {
        let rows = floats(600, 3);
        let cost = |rounds| {
            let centres = k_means(&rows, 3, 8, rounds, &mut Draws::new(1, 0));
            let (mut codes, mut distances) = (vec![0; 200], vec![0.0; 200]);
            Nearest::new(&centres, 3).assign(&rows, &mut codes, &mut distances);
            distances.iter().copied().map(f64::from).sum::<f64>()
        };
        let costs: Vec<f64> = [0, 1, 2, 4, 8].map(cost).to_vec();
        assert!(costs.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-6)), "{costs:?}");
        assert!(costs[4] < costs[0], "{costs:?}");
    }
}
