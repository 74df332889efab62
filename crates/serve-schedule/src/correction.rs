//! Correction of predictions by what was measured: a mean a cell, and the margin.

use crate::config::Margin;
use crate::cost::Work;
use crate::job::Shape;

/// Weight of the newest measurement in a cell's mean.
const NEWEST: f64 = 1.0 / 16.0;
/// Limits of a measured ratio, so that one stalled batch does not close the door for long.
const RATIOS: std::ops::RangeInclusive<f64> = 1.0 / 16.0..=16.0;
/// Prompts of `2^k` to `2^(k+1) − 1` tokens have one cell; those beyond 2^23 share the last.
const LENGTHS: usize = 24;

/// Moving means of actual over modelled time, one a cell of (model, kind of search, log2 of the
/// prompt's tokens that are computed).
///
/// A table of rows, one a (model, kind) seen, found by a scan: there are few. A prompt without
/// measurements takes the model's own prediction. Beside them stand means for runs on several
/// threads, by log2 of their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Corrections {
    rows: Vec<Row>,
    joined: [Mean; 12],
}

#[derive(Clone, Debug)]
struct Row {
    model: u32,
    mode: u8,
    cells: [Mean; LENGTHS],
}

#[derive(Clone, Copy, Debug)]
struct Mean(f64);

impl Default for Mean {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Mean {
    fn add(&mut self, ratio: f64) {
        self.0 += NEWEST * (ratio.clamp(*RATIOS.start(), *RATIOS.end()) - self.0);
    }
}

impl Corrections {
    /// Kinds of (model, search) at most; those beyond are not corrected.
    const MAX_ROWS: usize = 4096;

    pub(crate) fn of(&self, shape: &Shape, work: &Work) -> f64 {
        let row = self.rows.iter().find(|row| row.is_of(shape));
        row.map_or(1.0, |row| row.cells[length_cell(work)].0)
    }

    pub(crate) fn of_threads(&self, threads: u32) -> f64 {
        self.joined[thread_cell(threads)].0
    }

    /// Learns from a run on a stream's own threads.
    pub(crate) fn learn(&mut self, shape: &Shape, work: &Work, ratio: f64) {
        let place = match self.rows.iter().position(|row| row.is_of(shape)) {
            Some(place) => place,
            None if self.rows.len() == Self::MAX_ROWS => return,
            None => {
                let cells = [Mean::default(); LENGTHS];
                self.rows.push(Row { model: shape.model, mode: shape.mode, cells });
                self.rows.len() - 1
            }
        };
        self.rows[place].cells[length_cell(work)].add(ratio);
    }

    /// Learns from a run that other streams' threads joined.
    pub(crate) fn learn_threads(&mut self, threads: u32, ratio: f64) {
        self.joined[thread_cell(threads)].add(ratio);
    }

    pub(crate) fn forget(&mut self, model: u32) {
        self.rows.retain(|row| row.model != model);
    }
}

impl Row {
    fn is_of(&self, shape: &Shape) -> bool {
        (self.model, self.mode) == (shape.model, shape.mode)
    }
}

fn length_cell(work: &Work) -> usize {
    (work.tokens().max(1).ilog2() as usize).min(LENGTHS - 1)
}

fn thread_cell(threads: u32) -> usize {
    (threads.max(1).ilog2() as usize).min(11)
}

/// Quantile of actual over predicted time among the latest 1,000 batches.
///
/// A ring of bucket numbers and a count for each bucket. Buckets are 1.25% wide, and the upper edge
/// is what is told, so the margin errs towards more. Edges are products, not powers, whose last
/// bits differ between platforms. `add` looks through the buckets, `factor` reads one number.
#[derive(Clone, Debug)]
pub(crate) struct Margins {
    margin: Margin,
    /// Upper edges, ascending.
    edges: [f64; BUCKETS],
    ring: Vec<u8>,
    next: usize,
    counts: [u16; BUCKETS],
    factor: f64,
}

const BUCKETS: usize = 256;
const LATEST: usize = 1000;
const ENOUGH: usize = 20;
const WIDTH: f64 = 1.0125;
/// The bucket whose upper edge is 1; below it are ratios down to 1/4.9.
const ONE: usize = 127;

impl Margins {
    pub(crate) fn new(margin: Margin) -> Self {
        let factor = match margin {
            Margin::Fixed(factor) => factor,
            Margin::Measured { least, first, .. } => first.max(least),
        };
        let (ring, counts) = (Vec::with_capacity(LATEST), [0; BUCKETS]);
        Self { margin, edges: edges(), ring, next: 0, counts, factor: at_least_one(factor) }
    }

    pub(crate) fn factor(&self) -> f64 {
        self.factor
    }

    pub(crate) fn add(&mut self, ratio: f64) {
        let Margin::Measured { quantile, least, .. } = self.margin else { return };
        let bucket = self.bucket(ratio);
        if self.ring.len() < LATEST {
            self.ring.push(bucket);
        } else {
            let oldest = std::mem::replace(&mut self.ring[self.next], bucket);
            self.counts[usize::from(oldest)] -= 1;
            self.next = (self.next + 1) % LATEST;
        }
        self.counts[usize::from(bucket)] += 1;
        if self.ring.len() >= ENOUGH {
            self.factor = at_least_one(self.quantile(quantile).max(least));
        }
    }

    fn quantile(&self, quantile: f64) -> f64 {
        let rank = (quantile.clamp(0.0, 1.0) * self.ring.len() as f64).ceil() as usize;
        let mut below = 0;
        let full = |&count: &u16| {
            below += usize::from(count);
            below >= rank.max(1)
        };
        let bucket = self.counts.iter().position(full).unwrap_or(BUCKETS - 1);
        self.edges[bucket]
    }

    /// The bucket of a ratio: the first whose upper edge is not below it.
    fn bucket(&self, ratio: f64) -> u8 {
        self.edges.partition_point(|&edge| edge < ratio).min(BUCKETS - 1) as u8
    }
}

fn edges() -> [f64; BUCKETS] {
    let mut edges = [1.0; BUCKETS];
    for place in ONE + 1..BUCKETS {
        edges[place] = edges[place - 1] * WIDTH;
    }
    for place in (0..ONE).rev() {
        edges[place] = edges[place + 1] / WIDTH;
    }
    edges
}

fn at_least_one(factor: f64) -> f64 {
    match factor.is_finite() {
        true => factor.max(1.0),
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quantile of the latest 1,000 by sorting, and the bucket's 1.25% above it.
    #[test]
    fn the_margin_is_the_quantile_of_the_latest_thousand() {
        let margin = Margin::Measured { quantile: 0.95, least: 1.05, first: 1.25 };
        let mut margins = Margins::new(margin);
        let mut ratios = Vec::new();
        let mut seed = 1u64;
        for count in 1..=3500 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // The machine is slower in the middle third.
            let slower = if (1000..2000).contains(&count) { 1.5 } else { 1.0 };
            let ratio = slower * (0.6 + (seed >> 40) as f64 / (1u64 << 24) as f64);
            ratios.push(ratio);
            margins.add(ratio);
            let mut latest = ratios[ratios.len().saturating_sub(1000)..].to_vec();
            latest.sort_unstable_by(f64::total_cmp);
            let exact = latest[(0.95 * latest.len() as f64).ceil() as usize - 1].max(1.05);
            let expected = if count < 20 { 1.25..=1.25 } else { exact * 0.999..=exact * 1.013 };
            assert!(expected.contains(&margins.factor()), "{count}: {} {exact}", margins.factor());
        }
    }

    #[test]
    fn ratios_of_every_size_have_a_bucket_that_is_not_below_them() {
        let margins = Margins::new(Margin::default());
        let edge = |ratio| margins.edges[usize::from(margins.bucket(ratio))];
        for ratio in [0.0, 1e-300, 0.3, 0.5, 0.999_999, 1.0, 1.000_001, 1.3, 4.0, 4.8] {
            assert!(edge(ratio) >= ratio, "{ratio}: {}", edge(ratio));
            assert!(ratio < 0.3 || edge(ratio) < ratio * 1.013, "{ratio}: {}", edge(ratio));
        }
        assert_eq!(edge(1.0), 1.0);
        assert_eq!([f64::INFINITY, f64::NAN].map(|ratio| margins.bucket(ratio)), [255, 0]);
    }

    #[test]
    fn a_cell_comes_to_the_mean_and_the_others_stay() {
        let mut corrections = Corrections::default();
        let shape = Shape { model: 3, mode: 1, prompt_tokens: 100, ..Shape::default() };
        for _ in 0..100 {
            corrections.learn(&shape, &Work::of(&shape), 2.0);
        }
        assert!((corrections.of(&shape, &Work::of(&shape)) - 2.0).abs() < 0.01);
        for other in [
            Shape { model: 2, ..shape },
            Shape { mode: 0, ..shape },
            Shape { prompt_tokens: 128, ..shape },
        ] {
            assert_eq!(corrections.of(&other, &Work::of(&other)), 1.0);
        }
        corrections.forget(3);
        assert_eq!(corrections.of(&shape, &Work::of(&shape)), 1.0);
    }
}
