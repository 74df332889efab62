//! Models with made-up weights, for measuring.

use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::weights::Weights;

impl Weights {
    /// Matrices uniform in ±√(3 / in), so that every layer keeps the size of what it is given; norms 1. The same for
    /// the same seed.
    pub(crate) fn random(config: &ModelConfig, seed: u64) -> Result<Self, LoadError> {
        let mut state = seed;
        Self::from_tensors(config, |_, shape| {
            let &[outputs, inputs] = shape else { return Ok(vec![1.0; shape.iter().product()]) };
            let bound = (3.0 / inputs as f32).sqrt();
            let value = |_| (uniform(&mut state) * 2.0 - 1.0) * bound;
            Ok((0..outputs * inputs).map(value).collect())
        })
    }
}

/// A number in [0, 1): the top 24 bits of a 64-bit linear congruential generator.
fn uniform(state: &mut u64) -> f32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 40) as f32 / (1_u32 << 24) as f32
}
