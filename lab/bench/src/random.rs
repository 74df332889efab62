//! Random numbers that are the same on every platform, one multiplication or two a draw.

/// A splitmix64 stream (Steele, Lea and Flood 2014): a counter, each value of which is mixed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0. The bias of the multiply-shift reduction is below
    /// `bound / 2^64`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Spreads every bit of `x` over all 64: splitmix64's finaliser, a bijection.
#[inline]
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64() {
        // The first numbers of the published reference code for seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(
            [random.next(), random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn draws_stay_below_their_bound_and_reach_it() {
        let mut random = Random::new(3);
        let draws: std::collections::BTreeSet<u64> = (0..200).map(|_| random.below(5)).collect();
        assert_eq!(draws.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
