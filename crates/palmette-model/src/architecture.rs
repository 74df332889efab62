//! A table of the differences between the decoders that are computed, and one row of it as a value.
//!
//! Everything else is the same in all of them: RMS norms before attention and before the feed-forward part, rotary
//! positions on queries and keys, grouped-query attention, a gated feed-forward part.
//!
//! | `model_type` | norms of q and k | biases | norms after a part | norm weight | embedding × | gate | scores ÷ √ | sliding window |
//! |---|---|---|---|---|---|---|---|---|
//! | `qwen3` | yes | `attention_bias`: q k v o | no | w | 1 | SiLU | C | `use_sliding_window`: layers from `max_window_layers` on |
//! | `qwen2` | no | q k v | no | w | 1 | SiLU | C | as `qwen3` |
//! | `llama` | no | `attention_bias`: q k v o | no | w | 1 | SiLU | C | none |
//! | `mistral` | no | none | no | w | 1 | SiLU | C | `sliding_window`: all layers |
//! | `gemma3_text` | yes | `attention_bias`: q k v o | yes | 1 + w | √D | tanh GELU | `query_pre_attn_scalar` | all but every `sliding_window_pattern`th layer, with rotary positions of their own |
//!
//! `layer_types`, where it stands, says which layers have the window. Rotary wavelengths may be stretched in all of them
//! ([`RopeScaling`](crate::RopeScaling)).
//!
//! Layers take the differences as data: a tensor that is there or not, a factor, a window. So a decoder that lacks one does
//! nothing for it, and a further decoder of this kind is a row here and the names of its tensors in `weights.rs`.

use serde::{Deserialize, Serialize};

use crate::kernels::Activation;
use crate::rotary::{Rope, RopeScaling};

/// The differences of a decoder from plain Qwen3, which is the default.
///
/// Made from `config.json` by [`ModelConfig`](crate::ModelConfig), whose `check` covers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Architecture {
    /// The `model_type` that it was read as: for messages and for writing it; computing looks at the other fields.
    pub family: Family,
    /// RMS norms of every head of queries and of keys.
    pub query_key_norms: bool,
    /// Biases of queries, keys and values.
    pub query_key_value_biases: bool,
    /// A bias of what attention gives.
    pub attention_out_bias: bool,
    /// RMS norms also of what attention and the feed-forward part give, before it is added.
    pub norms_after: bool,
    /// Added to the stored weights of all norms.
    pub norm_offset: f32,
    /// Factor of embeddings; the output head, though it may be the same matrix, has none.
    pub embedding_scale: f32,
    /// The function of gates.
    pub activation: Activation,
    /// Products of queries and keys are divided by the root of this; `None`: of `head_dim`.
    pub query_scalar: Option<f64>,
    /// The stretching of rotary wavelengths.
    pub rope_scaling: RopeScaling,
    /// Layers that see the last positions only.
    pub window: Option<SlidingWindow>,
}

/// The decoders by `model_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Qwen2 and Qwen2.5.
    Qwen2,
    /// Qwen3 with dense layers.
    #[default]
    Qwen3,
    /// Llama 1 to 3, and what was published in their form.
    Llama,
    /// Mistral with dense layers.
    Mistral,
    /// The text part of Gemma 3.
    #[serde(rename = "gemma3_text")]
    Gemma3,
}

/// Layers in which a position sees itself and the `positions - 1` before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlidingWindow {
    /// Positions seen, at least 1.
    pub positions: usize,
    /// The layers that have it.
    pub layers: WindowLayers,
    /// Rotary positions in these layers; `None`: as in the others.
    #[serde(default)]
    pub rope: Option<Rope>,
}

/// A set of layers: those with a sliding window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowLayers {
    /// Layers from one on, counted from 0.
    From(usize),
    /// Layers but every n-th: with 6, layers 5, 11, 17 … see everything.
    AllButEvery(usize),
    /// A value a layer: true for those in the set.
    Listed(Vec<bool>),
}

impl Default for Architecture {
    fn default() -> Self {
        Self::of(Family::Qwen3, 0)
    }
}

impl Architecture {
    /// The row of a family as far as no field of a configuration changes it; `hidden_size` is D.
    pub fn of(family: Family, hidden_size: usize) -> Self {
        let gemma = family == Family::Gemma3;
        Self {
            family,
            query_key_norms: matches!(family, Family::Qwen3 | Family::Gemma3),
            query_key_value_biases: family == Family::Qwen2,
            attention_out_bias: false,
            norms_after: gemma,
            norm_offset: if gemma { 1.0 } else { 0.0 },
            // Rounded to the weights' type where others compute in that; this is what f32 gives.
            embedding_scale: if gemma { (hidden_size as f64).sqrt() as f32 } else { 1.0 },
            activation: if gemma { Activation::GeluTanh } else { Activation::Silu },
            query_scalar: gemma.then_some(256.0),
            rope_scaling: RopeScaling::None,
            window: None,
        }
    }

    /// Factor of the products of queries and keys.
    pub(crate) fn attention_scale(&self, head_dim: usize) -> f32 {
        match self.query_scalar {
            None => 1.0 / (head_dim as f32).sqrt(),
            Some(scalar) => (1.0 / scalar.sqrt()) as f32,
        }
    }

    /// The window of a layer that has one.
    pub(crate) fn window_of(&self, layer: usize) -> Option<&SlidingWindow> {
        self.window.as_ref().filter(|window| window.layers.contains(layer))
    }

    /// Tables of rotary angles that a session needs.
    pub(crate) fn num_rope_tables(&self) -> usize {
        let own = self.window.as_ref().is_some_and(|window| window.rope.is_some());
        1 + usize::from(own)
    }

    /// Checks what the layers rely on.
    pub(crate) fn check(&self, rope_theta: f64, num_layers: usize) -> Result<(), String> {
        let rope = Rope { theta: rope_theta, scaling: self.rope_scaling.clone() };
        rope.check("rope_theta")?;
        if let Some(scalar) = self.query_scalar.filter(|s| !(s.is_finite() && *s > 0.0)) {
            return Err(format!("`query_pre_attn_scalar` is {scalar}; it must be positive"));
        }
        if !(self.embedding_scale.is_finite() && self.norm_offset.is_finite()) {
            return Err("the factor of embeddings and the offset of norms must be finite".into());
        }
        let Some(window) = &self.window else { return Ok(()) };
        if window.positions == 0 {
            return Err("`sliding_window` is 0; a position sees itself at least".into());
        }
        match &window.layers {
            WindowLayers::AllButEvery(0) => {
                return Err("`sliding_window_pattern` is 0; it must be at least 1".into());
            }
            WindowLayers::Listed(layers) if layers.len() != num_layers => {
                return Err(format!(
                    "`layer_types` names {} layers, `num_hidden_layers` is {num_layers}; name each layer once",
                    layers.len()
                ));
            }
            _ => {}
        }
        window.rope.as_ref().map_or(Ok(()), |rope| rope.check("rope_local_base_freq"))
    }
}

impl Family {
    /// Families that are computed.
    pub const ALL: [Self; 5] = [Self::Qwen2, Self::Qwen3, Self::Llama, Self::Mistral, Self::Gemma3];

    /// The `model_type` that stands for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Gemma3 => "gemma3_text",
        }
    }

    /// The name of its class with an output head, as configurations list it.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Qwen2 => "Qwen2ForCausalLM",
            Self::Qwen3 => "Qwen3ForCausalLM",
            Self::Llama => "LlamaForCausalLM",
            Self::Mistral => "MistralForCausalLM",
            Self::Gemma3 => "Gemma3ForCausalLM",
        }
    }
}

impl WindowLayers {
    /// True for a layer, counted from 0, that is among them.
    pub fn contains(&self, layer: usize) -> bool {
        match self {
            Self::From(first) => layer >= *first,
            Self::AllButEvery(pattern) => !(layer + 1).is_multiple_of(*pattern),
            Self::Listed(layers) => layers.get(layer) == Some(&true),
        }
    }
}
