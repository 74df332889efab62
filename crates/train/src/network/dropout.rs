//! Dropout whose choices are a function of where a value stands, not of when it is computed.
//!
//! Forward and backward ask the same question and get the same answer, so no mask is stored; and
//! since a sequence's place in the batch is part of the question, shards and threads do not matter.

/// Choice of the values that a step drops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The share of values set to 0, in [0, 1); the others are divided by `1 - rate`.
    pub rate: f32,
    /// The run's seed.
    pub seed: u64,
    /// The step, so that each step drops other values.
    pub step: u64,
}

impl Dropout {
    /// Drops nothing.
    pub const OFF: Self = Self { rate: 0.0, seed: 0, step: 0 };

    pub(crate) fn is_off(&self) -> bool {
        self.rate == 0.0
    }

    /// The choices for one sequence at one place of the network.
    pub(crate) fn stream(&self, site: Site, sequence: usize) -> DropoutStream {
        let (kind, layer) = match site {
            Site::Embedding => (0, 0),
            Site::Attention(layer) => (1, layer),
            Site::AttentionBranch(layer) => (2, layer),
            Site::FeedForwardBranch(layer) => (3, layer),
        };
        let mut key = mix(self.seed);
        for part in [self.step, kind, layer as u64, sequence as u64] {
            key = mix(key ^ part);
        }
        DropoutStream {
            keys: [key as u32, (key >> 32) as u32],
            threshold: (f64::from(self.rate) * (1_u64 << 32) as f64) as u32,
            scale: 1.0 / (1.0 - self.rate),
        }
    }
}

/// A place of the network where values are dropped; layers count from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Site {
    Embedding,
    Attention(usize),
    AttentionBranch(usize),
    FeedForwardBranch(usize),
}

/// The choices for the values of one sequence at one [`Site`], numbered from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DropoutStream {
    keys: [u32; 2],
    threshold: u32,
    scale: f32,
}

impl DropoutStream {
    /// 0 where value number `element` is dropped, else `1 / (1 - rate)`.
    #[inline(always)]
    pub(crate) fn factor(&self, element: u32) -> f32 {
        if hash(element, self.keys) < self.threshold { 0.0 } else { self.scale }
    }

    /// Multiplies values numbered from `first` by their factors.
    #[inline]
    pub(crate) fn apply(&self, values: &mut [f32], first: u32) {
        for (i, value) in values.iter_mut().enumerate() {
            *value *= self.factor(first.wrapping_add(i as u32));
        }
    }
}

/// A keyed 32-bit hash out of multiplications and shifts, which vectorise.
///
/// The multipliers and shifts are those of MurmurHash3's finaliser; the second key is added
/// halfway, so that streams whose first keys are close are not shifted copies of one another.
#[inline(always)]
fn hash(element: u32, keys: [u32; 2]) -> u32 {
    let mut h = element.wrapping_mul(0x9e37_79b9) ^ keys[0];
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b).wrapping_add(keys[1]);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// The output function of SplitMix64.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_holds_for_every_stream() {
        for rate in [0.1, 0.5] {
            for sequence in 0..20 {
                let dropout = Dropout { rate, seed: 1, step: 7 };
                let mut values = vec![1.0; 20_000];
                dropout.stream(Site::AttentionBranch(1), sequence).apply(&mut values, 0);
                let dropped = values.iter().filter(|&&v| v == 0.0).count() as f32 / 20_000.0;
                assert!((dropped - rate).abs() < 0.015, "{rate} {dropped}");
                let mean = values.iter().sum::<f32>() / 20_000.0;
                assert!((mean - 1.0).abs() < 0.03, "{mean}");
            }
        }
    }

    #[test]
    fn streams_differ_in_every_part_of_their_name() {
        let factors = |dropout: Dropout, site, sequence| -> Vec<f32> {
            let stream = dropout.stream(site, sequence);
            (0..64).map(|element| stream.factor(element)).collect()
        };
        let base = Dropout { rate: 0.5, seed: 1, step: 1 };
        let first = factors(base, Site::Attention(0), 0);
        assert_eq!(first, factors(base, Site::Attention(0), 0));
        assert_ne!(first, factors(Dropout { seed: 2, ..base }, Site::Attention(0), 0));
        assert_ne!(first, factors(Dropout { step: 2, ..base }, Site::Attention(0), 0));
        assert_ne!(first, factors(base, Site::Attention(1), 0));
        assert_ne!(first, factors(base, Site::AttentionBranch(0), 0));
        assert_ne!(first, factors(base, Site::FeedForwardBranch(0), 0));
        assert_ne!(first, factors(base, Site::Attention(0), 1));
    }
}
