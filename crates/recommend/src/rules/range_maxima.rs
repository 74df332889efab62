//! Range maxima over numbers by rank: a tree of blocks of 16.

use std::ops::Range;

use palmette_catalog_filter::RankSet;

/// Numbers with the maxima of blocks of 16, of 16 such blocks, and so on.
#[derive(Debug)]
pub(super) struct RangeMaxima {
    /// The numbers first.
    levels: Vec<Vec<f32>>,
}

/// Ranges that are read number by number.
const SHORT: u64 = 32;
/// A block's maxima lie in one cache line.
const BLOCK: usize = 16;

impl RangeMaxima {
    pub(super) fn new(numbers: Vec<f32>) -> Self {
        let mut levels = vec![numbers];
        while levels[levels.len() - 1].len() > BLOCK {
            let below = &levels[levels.len() - 1];
            let max = |block: &[f32]| block.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            levels.push(below.chunks(BLOCK).map(max).collect());
        }
        Self { levels }
    }

    pub(super) fn get(&self, rank: u64) -> f32 {
        self.levels[0][rank as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        self.levels.iter().map(|level| size_of_val(&**level)).sum()
    }

    /// The largest number of a range, or of those in it that are allowed: branch and bound, the
    /// largest block first. Cost: a few blocks where the best are allowed; at most a look at each
    /// number that is larger than the answer.
    pub(super) fn max_in(&self, range: Range<u64>, allowed: Option<&RankSet>) -> f32 {
        if range.is_empty() {
            return f32::NEG_INFINITY;
        }
        if range.end - range.start <= SHORT {
            return self.max_in_short(range, allowed);
        }
        // The level at which the range begins and ends in neighbouring blocks.
        let (mut level, mut span) = (0, 1_u64);
        while level + 1 < self.levels.len() && (range.end - 1) / span - range.start / span > 1 {
            (level, span) = (level + 1, span * BLOCK as u64);
        }
        let mut best = f32::NEG_INFINITY;
        let blocks = range.start / span..(range.end - 1) / span + 1;
        Query { range, allowed }.raise(self, (level, span), blocks, &mut best);
        best
    }

    /// PERF: deep prefixes have few items; reading each in place of blocks took the steps of a
    /// request with two boosts from 1.36 to 1.24 ms (`bench/examples/rules.rs`, a million items, on
    /// an AMD EPYC with other work beside it).
    fn max_in_short(&self, range: Range<u64>, allowed: Option<&RankSet>) -> f32 {
        let values = &self.levels[0][range.start as usize..range.end as usize];
        let Some(allowed) = allowed else {
            return values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        };
        let (mut bits, mut best) = (allowed.bits_in(range), f32::NEG_INFINITY);
        while bits != 0 {
            best = best.max(values[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
        best
    }
}

/// A range, and those of it that are allowed; `None` for all.
struct Query<'a> {
    range: Range<u64>,
    allowed: Option<&'a RankSet>,
}

impl Query<'_> {
    /// Raises `best` to the largest number of some blocks, each of `span` numbers. All overlap the
    /// range.
    fn raise(
        &self,
        maxima: &RangeMaxima,
        (level, span): (usize, u64),
        blocks: Range<u64>,
        best: &mut f32,
    ) {
        let values = &maxima.levels[level][blocks.start as usize..blocks.end as usize];
        let largest = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b]));
        // The largest first, which mostly leaves nothing to look for in the others.
        let in_order =
            largest.into_iter().chain((0..values.len()).filter(|&at| Some(at) != largest));
        for at in in_order {
            if values[at] > *best {
                let block = blocks.start + at as u64;
                self.raise_by_block(maxima, (level, span), (block, values[at]), best);
            }
        }
    }

    fn raise_by_block(
        &self,
        maxima: &RangeMaxima,
        (level, span): (usize, u64),
        (block, max): (u64, f32),
        best: &mut f32,
    ) {
        let (first, end) = (block * span, (block + 1) * span);
        let end = end.min(maxima.levels[0].len() as u64);
        let within = self.range.start.max(first)..self.range.end.min(end);
        if self.allowed.is_some_and(|allowed| !allowed.any_in(within.clone())) {
            return;
        }
        let is_whole = within == (first..end);
        if level == 0 || self.allowed.is_none() && is_whole {
            *best = max;
            return;
        }
        let below = span / BLOCK as u64;
        let children = within.start / below..(within.end - 1) / below + 1;
        self.raise(maxima, (level - 1, below), children, best);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_maxima_equal_looking_at_every_number() {
        let mut seed = 1_u64;
        let mut below = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) * bound) >> 31
        };
        for len in [1, 2, 15, 16, 17, 255, 256, 257, 5000] {
            let numbers: Vec<f32> = (0..len).map(|_| below(50) as f32).collect();
            let maxima = RangeMaxima::new(numbers.clone());
            for _ in 0..300 {
                let (a, b) = (below(len + 1), below(len + 1));
                let range = a.min(b)..a.max(b);
                let one_in = below(30) + 1;
                let members: Vec<u64> = (0..len).filter(|_| below(one_in) == 0).collect();
                let allowed = RankSet::from_ranks(len, members.iter().copied());
                let max = |of: &mut dyn Iterator<Item = u64>| {
                    of.map(|rank| numbers[rank as usize]).fold(f32::NEG_INFINITY, f32::max)
                };
                assert_eq!(maxima.max_in(range.clone(), None), max(&mut range.clone()));
                let mut within = range.clone().filter(|rank| members.contains(rank));
                assert_eq!(maxima.max_in(range.clone(), Some(&allowed)), max(&mut within));
            }
        }
    }
}
