//! Decoders of made-up weights, as small as kernels compute them: for tests of both engines.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use palmette_cuda::{CudaEngine, CudaError, DeviceLimits, DeviceWeights};
use palmette_model::draft::DraftTensors;
use palmette_model::{Architecture as Layers, Family, ModelConfig, ModelTensors};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::Emulator;

/// A small decoder of a family, with heads of this width.
pub fn config(family: Family, head_dim: usize) -> ModelConfig {
    ModelConfig {
        vocab_size: 200,
        hidden_size: 128,
        intermediate_size: 192,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        num_key_value_heads: 2,
        head_dim,
        max_position_embeddings: 2400,
        rms_norm_eps: 1e-6,
        rope_theta: 1e4,
        tie_word_embeddings: family == Family::Qwen3,
        architecture: Layers::of(family, 128),
    }
}

/// The bytes of a safetensors file in bfloat16, so that both engines have the same weights.
///
/// # Panics
/// Never for a configuration of [`config`].
pub fn weights(config: &ModelConfig) -> Vec<u8> {
    let (d, f, c) = (config.hidden_size, config.intermediate_size, config.head_dim);
    let (queries, keys) = (config.query_width(), config.key_value_width());
    let mut shapes = vec![("model.embed_tokens.weight".to_owned(), vec![config.vocab_size, d])];
    if !config.tie_word_embeddings {
        shapes.push(("lm_head.weight".to_owned(), vec![config.vocab_size, d]));
    }
    shapes.push(("model.norm.weight".to_owned(), vec![d]));
    for layer in 0..config.num_hidden_layers {
        let mut of_layer = vec![
            ("input_layernorm.weight", vec![d]),
            ("self_attn.q_proj.weight", vec![queries, d]),
            ("self_attn.k_proj.weight", vec![keys, d]),
            ("self_attn.v_proj.weight", vec![keys, d]),
            ("self_attn.o_proj.weight", vec![d, queries]),
            ("post_attention_layernorm.weight", vec![d]),
            ("mlp.gate_proj.weight", vec![f, d]),
            ("mlp.up_proj.weight", vec![f, d]),
            ("mlp.down_proj.weight", vec![d, f]),
        ];
        if config.architecture.query_key_norms {
            of_layer.push(("self_attn.q_norm.weight", vec![c]));
            of_layer.push(("self_attn.k_norm.weight", vec![c]));
        }
        if config.architecture.query_key_value_biases {
            of_layer.push(("self_attn.q_proj.bias", vec![queries]));
            of_layer.push(("self_attn.k_proj.bias", vec![keys]));
            of_layer.push(("self_attn.v_proj.bias", vec![keys]));
        }
        shapes.extend(
            of_layer
                .into_iter()
                .map(|(name, shape)| (format!("model.layers.{layer}.{name}"), shape)),
        );
    }
    let mut state = 7_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = shapes
        .into_iter()
        .map(|(name, shape)| {
            let (base, scale) = match shape.len() {
                1 if name.ends_with("bias") => (0.0, 0.2),
                1 => (1.0, 0.3),
                _ => (0.0, 1.8 / (shape[1] as f32).sqrt()),
            };
            let values = (0..shape.iter().product()).map(|_| base + scale * uniform());
            let bytes = values.flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes());
            (name, shape, bytes.collect())
        })
        .collect();
    let views: HashMap<&str, TensorView<'_>> = tensors
        .iter()
        .map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::BF16, shape.clone(), bytes);
            (name.as_str(), view.expect("as many bytes as values"))
        })
        .collect();
    safetensors::serialize(views, None).expect("tensors of known names")
}

/// Limits that suit a processor.
pub const LIMITS: DeviceLimits = DeviceLimits {
    batch_rows: 700,
    requests: 3,
    beams: 512,
    prompt_tokens: None,
    memory: Some(48 << 20),
    keeps_prefixes: true,
    weights: DeviceWeights::Bf16,
};

/// The decoder of a configuration on an emulated device.
///
/// # Errors
/// As [`CudaEngine::new`].
pub fn upload(
    driver: Arc<Emulator>,
    config: &ModelConfig,
    limits: &DeviceLimits,
) -> Result<CudaEngine, CudaError> {
    upload_with(driver, config, None, limits)
}

/// [`upload`], with a draft head.
///
/// # Errors
/// As there.
pub fn upload_with(
    driver: Arc<Emulator>,
    config: &ModelConfig,
    draft: Option<DraftTensors>,
    limits: &DeviceLimits,
) -> Result<CudaEngine, CudaError> {
    let tensors = ModelTensors::from_bytes(Path::new("weights"), weights(config), config);
    CudaEngine::new(driver, config.clone(), tensors?, draft, limits)
}
