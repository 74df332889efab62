//! Poisson process: the times at which requests are sent.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The highest rate, in requests a second: beyond it one driver measures itself.
pub const MAX_RATE: f64 = 100_000.0;

/// A rate at which nothing can be offered; the message names it and the rule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the rate is {0}; it must be above 0 and at most {MAX_RATE} requests a second")]
pub struct RateError(f64);

/// Times of a Poisson process after its start, without end and never decreasing.
///
/// Gaps are exponential, `−ln(1 − u) / rate` with `u` of 53 random bits: the same seed, stream and
/// rate give the same times. Streams of one seed are independent of each other, so a rate's
/// arrivals do not depend on those measured before it.
#[derive(Clone, Debug)]
pub struct Arrivals {
    random: ChaCha8Rng,
    rate: f64,
    seconds: f64,
}

impl Arrivals {
    /// Arrivals at `rate` a second.
    ///
    /// # Errors
    /// For a rate that is not above 0 and at most [`MAX_RATE`].
    pub fn new(rate: f64, seed: u64, stream: u64) -> Result<Self, RateError> {
        // NaN is in no range.
        if !(f64::MIN_POSITIVE..=MAX_RATE).contains(&rate) {
            return Err(RateError(rate));
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        Ok(Self { random, rate, seconds: 0.0 })
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let uniform = (self.random.next_u64() >> 11) as f64 * (-53_f64).exp2();
        self.seconds -= (1.0 - uniform).ln() / self.rate;
        // Rates near 0 have gaps that no clock counts to.
        Some(Duration::try_from_secs_f64(self.seconds).unwrap_or(Duration::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_that_are_none() {
        for rate in [0.0, -0.0, -5.0, f64::NAN, f64::INFINITY, 100_000.1] {
            let error = Arrivals::new(rate, 1, 0).unwrap_err().to_string();
            assert!(error.contains(&rate.to_string()) && error.contains("above 0"), "{error}");
        }
        let rare = Arrivals::new(f64::MIN_POSITIVE, 1, 0).unwrap().next().unwrap();
        assert!(rare > Duration::from_secs(1 << 40));
    }

    #[test]
    fn a_seed_gives_the_same_times_and_streams_differ() {
        let times =
            |seed, stream| Arrivals::new(50.0, seed, stream).unwrap().take(100).collect::<Vec<_>>();
        assert_eq!(times(7, 0), times(7, 0));
        assert_ne!(times(7, 0), times(7, 1));
        assert_ne!(times(7, 0), times(8, 0));
        assert!(times(7, 0).is_sorted());
    }

    /// Counts in windows of 1 s have mean and variance `rate`; gaps longer than `t` have the share
    /// `exp(−rate · t)`.
    #[test]
    fn gaps_are_exponential() {
        let (rate, seconds) = (40.0, 2_000);
        let mut counts = vec![0_f64; seconds];
        let (mut last, mut long, mut all) = (Duration::ZERO, 0.0, 0.0);
        for time in Arrivals::new(rate, 3, 0).unwrap() {
            let Some(count) = counts.get_mut(time.as_secs() as usize) else { break };
            *count += 1.0;
            all += 1.0;
            long += f64::from(u8::from((time - last).as_secs_f64() > 2.0 / rate));
            last = time;
        }
        let mean = all / seconds as f64;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / seconds as f64;
        assert!((mean / rate - 1.0).abs() < 0.02, "{mean}");
        assert!((variance / rate - 1.0).abs() < 0.15, "{variance}");
        let share: f64 = long / all;
        assert!((share / (-2_f64).exp() - 1.0).abs() < 0.05, "{share}");
    }
}
