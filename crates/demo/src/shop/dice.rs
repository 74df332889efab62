//! Random draws that give the same numbers on every platform.
//!
//! Every draw takes one 32-bit word of a ChaCha8 stream and reduces it with integer arithmetic
//! written here, so a change of the sampling code in a dependency cannot change the shop.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded stream of draws.
#[derive(Debug)]
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number in `0..bound`. The bias of the multiply-shift reduction is below `bound / 2^32`.
    ///
    /// # Panics
    /// If `bound` is 0: there is nothing to draw.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "a draw needs at least one outcome");
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// True in `percent` of 100 draws.
    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One element, each as likely as the others.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u32) as usize]
    }

    /// An index into `weights`, drawn in proportion to them; `None` if they are all 0.
    pub(crate) fn weighted(&mut self, weights: &[u32]) -> Option<usize> {
        let total: u32 = weights.iter().sum();
        if total == 0 {
            return None;
        }
        let mut left = self.below(total);
        for (index, &weight) in weights.iter().enumerate() {
            if left < weight {
                return Some(index);
            }
            left -= weight;
        }
        unreachable!("a draw below the total falls into one of the weights")
    }

    /// The numbers `0..count` in random order (Fisher-Yates).
    pub(crate) fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            order.swap(last, self.below(last as u32 + 1) as usize);
        }
        order
    }
}
