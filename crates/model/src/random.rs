//! Models with made-up weights, for measuring.

use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::kernels::Values;
use crate::weights::Weights;

impl Weights {
    /// Matrices uniform in ±√(3 / in), so that every layer keeps the size of what it is given;
    /// norms 1, biases uniform in ±1/2. The same for the same seed.
    pub(crate) fn random(config: &ModelConfig, seed: u64) -> Result<Self, LoadError> {
        let mut uniform = Uniform::new(seed);
        let norm = 1.0 - config.architecture.norm_offset;
        Self::from_tensors(config, |name, shape| {
            let &[outputs, inputs] = shape else {
                let width = shape.iter().product();
                let values: Vec<f32> = match name.ends_with(".bias") {
                    true => (0..width).map(|_| uniform.draw() - 0.5).collect(),
                    false => vec![norm; width],
                };
                return Ok(values.into());
            };
            let bound = (3.0 / inputs as f32).sqrt();
            let value = |_| (uniform.draw() * 2.0 - 1.0) * bound;
            Ok(Values::F32((0..outputs * inputs).map(value).collect()))
        })
    }
}

/// Numbers in [0, 1): the top 24 bits of a 64-bit linear congruential generator.
pub(crate) struct Uniform {
    state: u64,
}

impl Uniform {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn draw(&mut self) -> f32 {
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        self.state = self.state.wrapping_mul(FACTOR).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 40) as f32 / (1_u32 << 24) as f32
    }
}
