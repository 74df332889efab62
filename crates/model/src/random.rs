//! Models with made-up weights, for measuring.

use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::model_tensors::ModelTensors;
use crate::weights::Weights;

impl Weights {
    /// Weights of [`drawn`] tensors.
    pub(crate) fn random(config: &ModelConfig, seed: u64) -> Result<Self, LoadError> {
        let mut draw = drawn(config, seed);
        Self::from_tensors(config, |name, shape| Ok(draw(name, shape).into()))
    }
}

impl ModelTensors {
    /// The tensors of [`Model::random`](crate::Model::random) of this seed, for measuring.
    ///
    /// They are drawn in the order in which weights are taken, so that a model is made of them on
    /// the way, and let go.
    ///
    /// # Errors
    /// When the configuration is not [sound](ModelConfig::check).
    pub fn random(config: &ModelConfig, seed: u64) -> Result<Self, LoadError> {
        let name = Path::new("random weights");
        config.check().map_err(|reason| LoadError::config(name, reason))?;
        let (mut draw, mut tensors) = (drawn(config, seed), Vec::new());
        Weights::from_tensors(config, |name, shape| {
            let values = draw(name, shape);
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            tensors.push((name.to_owned(), shape.to_vec(), bytes));
            Ok(values.into())
        })?;
        let views = tensors.iter().map(|(name, shape, bytes)| {
            Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?))
        });
        let views = views.collect::<Result<Vec<_>, _>>();
        let file = views.and_then(|views| safetensors::serialize(views, None));
        let file = file.map_err(|error| LoadError::weights(name, error.to_string()))?;
        drop(tensors);
        Self::from_bytes(name, file, config)
    }
}

/// Tensors drawn in the order in which weights are taken: matrices uniform in ±√(3 / in), so that
/// every layer keeps the size of what it is given; norms 1, biases uniform in ±1/2. The same for
/// the same seed.
pub(crate) fn drawn(config: &ModelConfig, seed: u64) -> impl FnMut(&str, &[usize]) -> Vec<f32> {
    let mut uniform = Uniform::new(seed);
    let norm = 1.0 - config.architecture.norm_offset;
    move |name, shape| {
        let &[outputs, inputs] = shape else {
            let width = shape.iter().product();
            return match name.ends_with(".bias") {
                true => (0..width).map(|_| uniform.draw() - 0.5).collect(),
                false => vec![norm; width],
            };
        };
        let bound = (3.0 / inputs as f32).sqrt();
        (0..outputs * inputs).map(|_| (uniform.draw() * 2.0 - 1.0) * bound).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::{Architecture, Family};
    use crate::model::Model;
    use crate::tensor_files::{EMBEDDING, HEAD};

    /// With biases and a head of its own, so that vectors are drawn between matrices.
    #[test]
    fn random_tensors_are_those_of_the_random_model() {
        let config = ModelConfig {
            vocab_size: 20,
            hidden_size: 16,
            intermediate_size: 24,
            num_hidden_layers: 2,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            head_dim: 8,
            max_position_embeddings: 9,
            rms_norm_eps: 1e-6,
            rope_theta: 1e4,
            tie_word_embeddings: false,
            architecture: Architecture::of(Family::Qwen2, 2),
        };
        let model = Model::random(config.clone(), 5).unwrap();
        let mut tensors = ModelTensors::random(&config, 5).unwrap();
        // Another order than that of the drawing.
        let head = tensors.take(HEAD, &[20, 16]).unwrap().into_f32();
        let bias = tensors.take("model.layers.1.self_attn.q_proj.bias", &[16]).unwrap();
        let embeddings = tensors.take(EMBEDDING, &[20, 16]).unwrap().into_f32();
        let mut row = vec![0.0; 16];
        for token in 0..20 {
            model.weights.embed(palmette_core::TokenId(token as u32), &mut row);
            assert_eq!(row, embeddings[token * 16..][..16]);
        }
        assert_eq!(model.weights.layers[1].query_bias.as_deref(), Some(&*bias.into_f32()));
        assert_eq!(head.len(), 20 * 16);
        let odd = ModelConfig { head_dim: 7, ..config };
        assert!(ModelTensors::random(&odd, 5).is_err());
    }
}
