//! Random numbers that are the same everywhere.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A source of random numbers.
#[derive(Debug)]
pub(super) struct Draws(ChaCha8Rng);

impl Draws {
    /// The numbers of `seed` for one purpose.
    pub(super) fn new(seed: u64, purpose: u64) -> Self {
        let mut source = ChaCha8Rng::seed_from_u64(seed);
        source.set_stream(purpose);
        Self(source)
    }

    /// A number from 0 up to, without, 1.
    pub(super) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// `count` different whole numbers below `bound`, in random order.
    pub(super) fn sample(&mut self, bound: usize, count: usize) -> Vec<u32> {
        let mut all: Vec<u32> = (0..bound as u32).collect();
        let count = count.min(bound);
        for at in 0..count {
            let other = at + self.below(bound - at);
            all.swap(at, other);
        }
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_different_numbers() {
        let mut sample = Draws::new(1, 2).sample(50, 20);
        assert_eq!(sample, Draws::new(1, 2).sample(50, 20));
        assert_ne!(sample, Draws::new(1, 3).sample(50, 20));
        sample.sort_unstable();
        sample.dedup();
        assert_eq!(sample.len(), 20);
        assert!(sample.iter().all(|&at| at < 50));
        let mut whole = Draws::new(7, 0).sample(5, 9);
        whole.sort_unstable();
        assert_eq!(whole, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn uniform_draws_fill_the_unit_interval() {
        let mut draws = Draws::new(3, 0);
        let mean: f64 = (0..10_000).map(|_| draws.uniform()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
