//! Test of whether a thread has its core for itself.
//!
//! Virtual machines are often given threads of cores of which the other thread is somebody else's,
//! or at times their own: for milliseconds to minutes a core then gets less done at a time, and
//! steps over the same data take up to 1.5 times as long. So after each step some numbers are
//! mixed, each by itself. That reads no memory and is bounded by what the core gets done at a time;
//! numbers that were mixed one from the other would take the same in either case.

use std::ops::BitXor;
use std::time::{Duration, Instant};

use crate::random::mix;

/// Count of mixed numbers, which take some microseconds.
const NUM_MIXED: u64 = 5_000;
/// Factor over the least time up to which the core is its own.
const MOST: f64 = 1.06;

/// Times the mixing of numbers. The same `seed` gives the same numbers.
pub fn compute(seed: u64) -> Duration {
    let begun = Instant::now();
    let mixed = (0..NUM_MIXED).map(|n| mix(seed ^ n));
    std::hint::black_box(mixed.fold(0, BitXor::bitxor));
    begun.elapsed()
}

/// The most that they take on a core of one's own: near what one time in fifty is not passed.
pub fn most_on_own_core(computing: impl Iterator<Item = Duration>) -> Duration {
    let mut computing: Vec<_> = computing.collect();
    computing.sort_unstable();
    computing.get(computing.len() / 50).copied().unwrap_or_default().mul_f64(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_time_that_is_too_short_does_not_make_others_too_long() {
        let own = [1].into_iter().chain([100; 10]).chain([150; 90]).map(Duration::from_micros);
        assert_eq!(most_on_own_core(own), Duration::from_micros(106));
        assert_eq!(most_on_own_core(std::iter::empty()), Duration::ZERO);
    }
}
