//! Relative positions: a bias of attention scores by the bucket of the distance, in place of turned
//! queries and keys.

use serde::{Deserialize, Serialize};

use crate::allocation::zeroed;

/// The buckets of distances, of each of which a head has learnt a bias.
///
/// Near distances have a bucket each; farther ones share buckets whose widths grow as logarithms,
/// up to `max_distance`, from which all share the last. Where positions see those after them too,
/// half of the buckets are for these. There is no longest sequence. Source: T5, arXiv 1910.10683,
/// §2.1, with the buckets of transformers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelativePositions {
    /// Buckets of each head, at least 4.
    pub num_buckets: usize,
    /// The distance from which on all are in the last bucket; more than half the buckets.
    pub max_distance: usize,
    /// True where every layer has biases of its own; else the first layer's are all layers'.
    pub in_every_layer: bool,
}

impl RelativePositions {
    /// The bucket of a key `ahead` positions after the query, negative for one before it.
    ///
    /// In f32 step by step as torch computes it: a logarithm at the edge of a bucket rounds to one
    /// side or the other.
    pub(crate) fn bucket(&self, ahead: isize, sees_later: bool) -> usize {
        let (buckets, first, distance) = match sees_later {
            true => {
                let half = self.num_buckets / 2;
                (half, if ahead > 0 { half } else { 0 }, ahead.unsigned_abs())
            }
            false => (self.num_buckets, 0, (-ahead).max(0).unsigned_abs()),
        };
        let exact = buckets / 2;
        if distance < exact {
            return first + distance;
        }
        let range = (self.max_distance as f64 / exact as f64).ln() as f32;
        let share = (distance as f32 / exact as f32).ln() / range * (buckets - exact) as f32;
        first + (exact + share as usize).min(buckets - 1)
    }

    /// Tables of biases that a stack of layers needs.
    fn num_tables(&self, layers: usize) -> usize {
        if self.in_every_layer { layers } else { 1 }
    }

    /// Checks what buckets rely on.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Self { num_buckets, max_distance, .. } = *self;
        if num_buckets < 4 {
            return Err(format!(
                "`relative_attention_num_buckets` is {num_buckets}; both directions need 2 at least, 4 together"
            ));
        }
        if max_distance <= num_buckets / 2 {
            return Err(format!(
                "`relative_attention_max_distance` is {max_distance}; it must be more than half of \
                 `relative_attention_num_buckets`, {num_buckets}, for near distances have a bucket each"
            ));
        }
        Ok(())
    }
}

/// Bias of every distance among a number of positions, a row a head.
#[derive(Clone, Debug)]
pub(crate) struct RelativeBias {
    /// `[H, 2 n − 1]`: of the key `n − 1` positions before the query, and so on, to the one as far
    /// after it.
    biases: Vec<f32>,
    /// n, at least 1
    positions: usize,
}

impl RelativeBias {
    /// From the biases of buckets, `[buckets, H]`. `None` where there is not the memory for it.
    fn new(
        by: &RelativePositions,
        of_buckets: &[f32],
        sees_later: bool,
        positions: usize,
    ) -> Option<Self> {
        let positions = positions.max(1);
        let (heads, width) = (of_buckets.len() / by.num_buckets, 2 * positions - 1);
        let mut biases: Vec<f32> = zeroed(heads * width)?;
        for place in 0..width {
            let ahead = place as isize - (positions as isize - 1);
            let bucket = &of_buckets[by.bucket(ahead, sees_later) * heads..][..heads];
            let column = biases[place..].iter_mut().step_by(width);
            column.zip(bucket).for_each(|(bias, &of_bucket)| *bias = of_bucket);
        }
        Some(Self { biases, positions })
    }

    /// Biases of `keys` keys from position `first` on, as a query at position `query` has them at
    /// one head. All positions are below those of the table.
    pub(crate) fn row(&self, head: usize, query: usize, first: usize, keys: usize) -> &[f32] {
        let start = head * (2 * self.positions - 1) + (first + self.positions - 1 - query);
        &self.biases[start..start + keys]
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.biases)
    }
}

/// The tables of a stack of layers: one each, or one for all. `None` where there is not the memory
/// for them.
pub(crate) fn bias_tables(
    by: &RelativePositions,
    of_buckets: &[Vec<f32>],
    sees_later: bool,
    positions: usize,
) -> Option<Vec<RelativeBias>> {
    of_buckets.iter().map(|biases| RelativeBias::new(by, biases, sees_later, positions)).collect()
}

/// Values of those tables; `None` when there are more than can be counted.
pub(crate) fn num_bias_values(
    by: &RelativePositions,
    layers: usize,
    heads: usize,
    positions: usize,
) -> Option<usize> {
    let width = positions.max(1).checked_mul(2)? - 1;
    by.num_tables(layers).checked_mul(heads)?.checked_mul(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t5() -> RelativePositions {
        RelativePositions { num_buckets: 32, max_distance: 128, in_every_layer: false }
    }

    /// The distances at which transformers begins a new bucket; every power of two lies at an edge.
    #[test]
    fn buckets_begin_where_those_of_transformers_do() {
        let edges = |by: &RelativePositions, sees_later, sign: isize| -> Vec<(isize, usize)> {
            let mut edges = vec![(0, by.bucket(0, sees_later))];
            for distance in 1..300 {
                let bucket = by.bucket(sign * distance, sees_later);
                if bucket != edges.last().map_or(0, |edge| edge.1) {
                    edges.push((distance, bucket));
                }
            }
            edges
        };
        let near = |to: isize| (0..to).map(|d| (d, d as usize)).collect::<Vec<_>>();
        let causal = [EDGES_CAUSAL, &near(16)].concat();
        let both = [EDGES_BOTH, &near(8)].concat();
        let sorted = |mut edges: Vec<(isize, usize)>| {
            edges.sort_unstable();
            edges
        };
        assert_eq!(edges(&t5(), false, -1), sorted(causal));
        assert_eq!(edges(&t5(), true, -1), sorted(both.clone()));
        let later = sorted(both).into_iter().map(|(d, b)| (d, if d > 0 { b + 16 } else { b }));
        assert_eq!(edges(&t5(), true, 1), later.collect::<Vec<_>>());
        assert_eq!(edges(&t5(), false, 1), [(0, 0)], "what comes later is not seen");
    }

    /// Edges of wide buckets, by torch 2.15 on a processor.
    const EDGES_CAUSAL: &[(isize, usize)] = &[
        (16, 16),
        (19, 17),
        (21, 18),
        (24, 19),
        (27, 20),
        (31, 21),
        (35, 22),
        (40, 23),
        (46, 24),
        (52, 25),
        (59, 26),
        (67, 27),
        (77, 28),
        (87, 29),
        (99, 30),
        (113, 31),
    ];
    const EDGES_BOTH: &[(isize, usize)] =
        &[(8, 8), (12, 9), (16, 10), (23, 11), (32, 12), (46, 13), (64, 14), (91, 15)];

    #[test]
    fn rows_are_the_biases_of_their_distances() {
        let by = RelativePositions { num_buckets: 6, max_distance: 9, in_every_layer: true };
        let of_buckets: Vec<f32> = (0..12).map(|i| i as f32).collect();
        for (sees_later, positions) in [(true, 20), (false, 7), (true, 1)] {
            let table = RelativeBias::new(&by, &of_buckets, sees_later, positions).unwrap();
            let bytes = num_bias_values(&by, 1, 2, positions).unwrap() * size_of::<f32>();
            assert_eq!(table.bytes(), bytes);
            for (query, first) in (0..positions).flat_map(|q| (0..positions).map(move |f| (q, f))) {
                for head in 0..2 {
                    let row = table.row(head, query, first, positions - first);
                    for (key, &bias) in (first..positions).zip(row) {
                        let bucket = by.bucket(key as isize - query as isize, sees_later);
                        assert_eq!(bias, of_buckets[bucket * 2 + head]);
                    }
                }
            }
        }
    }

    #[test]
    fn buckets_that_cannot_be_are_refused() {
        let of = |num_buckets, max_distance| {
            RelativePositions { num_buckets, max_distance, in_every_layer: false }.check()
        };
        assert!(of(2, 128).unwrap_err().contains("`relative_attention_num_buckets` is 2"));
        assert!(of(32, 16).unwrap_err().contains("`relative_attention_max_distance` is 16"));
        assert_eq!(of(4, 3), Ok(()));
        let least = RelativePositions { num_buckets: 4, max_distance: 3, in_every_layer: false };
        for ahead in -20..20 {
            assert!(least.bucket(ahead, true) < 4 && least.bucket(ahead, false) < 4);
        }
    }
}
