//! A table of the differences between the models that are computed, and one row of it as a value.
//!
//! Everything else is the same in all of them: RMS norms before attention and before the
//! feed-forward part, grouped-query attention. Decoders alone also have rotary positions on queries
//! and keys, and a gated feed-forward part.
//!
//! | `model_type` | norms of q and k | biases | norms after a part | norm weight | embedding × | gate | scores ÷ √ | sliding window |
//! |---|---|---|---|---|---|---|---|---|
//! | `qwen3` | yes | `attention_bias`: q k v o | no | w | 1 | SiLU | C | `use_sliding_window`: layers from `max_window_layers` on |
//! | `qwen2` | no | q k v | no | w | 1 | SiLU | C | as `qwen3` |
//! | `llama` | no | `attention_bias`: q k v o | no | w | 1 | SiLU | C | none |
//! | `mistral` | no | none | no | w | 1 | SiLU | C | `sliding_window`: all layers |
//! | `gemma3_text` | yes | `attention_bias`: q k v o | yes | 1 + w | √D | tanh GELU | `query_pre_attn_scalar` | all but every `sliding_window_pattern`th layer, with rotary positions of their own |
//!
//! `layer_types`, where it stands, says which layers have the window. Rotary wavelengths may be
//! stretched in all of them ([`RopeScaling`](crate::RopeScaling)).
//!
//! Encoder–decoders have an [encoder](Encoder), cross-attention in each decoder layer, [relative
//! positions](RelativePositions), and no factor of scores:
//!
//! | `model_type` | biases of distances | feed-forward part, by `feed_forward_proj` | logits × |
//! |---|---|---|---|
//! | `t5` | the first layer's in all | ReLU; T5 v1.1 gated tanh GELU | `scale_decoder_outputs`, or else `tie_word_embeddings`: 1 / √D |
//! | `mt5` | the first layer's in all | gated tanh GELU | 1 (tied by transformers 4: 1 / √D) |
//! | `umt5` | each layer its own | gated tanh GELU | as `t5` |
//!
//! Layers take the differences as data: a tensor that is there or not, a factor, a window. So a
//! model that lacks one does nothing for it, and a further decoder of this kind is a row here and
//! the names of its tensors in `weights.rs`, a further encoder–decoder those in
//! `encoder_decoder/weights.rs`.

use serde::{Deserialize, Serialize};

use crate::encoder_decoder::{Encoder, RelativePositions};
use crate::kernels::Activation;
use crate::rotary::{Rope, RopeScaling};

/// The differences of a model from plain Qwen3, which is the default.
///
/// Made from `config.json` by [`ModelConfig`](crate::ModelConfig), whose `check` covers it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Architecture {
    /// The `model_type` that it was read as: for messages and for writing it; computing looks at
    /// the other fields.
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
    /// The function of gates, or of the feed-forward part's only matrix.
    pub activation: Activation,
    /// True where values that went through it are multiplied with another product.
    pub gated_mlp: bool,
    /// Products of queries and keys are divided by the root of this; `None`: of `head_dim`.
    pub query_scalar: Option<f64>,
    /// The stretching of rotary wavelengths.
    pub rope_scaling: RopeScaling,
    /// Layers that see the last positions only.
    pub window: Option<SlidingWindow>,
    /// Biases of distances in place of rotary positions, which then have no base.
    pub relative_positions: Option<RelativePositions>,
    /// Factor of logits.
    pub logit_scale: f32,
    /// The reader of prompts; `None` where the decoder reads them.
    pub encoder: Option<Encoder>,
}

/// The models by `model_type`.
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
    /// T5 and T5 v1.1, and TIGER, LETTER and GRID in their form.
    T5,
    /// Multilingual T5.
    Mt5,
    /// The successor of mT5.
    Umt5,
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
        let (gemma, encoder) = (family == Family::Gemma3, family.has_encoder());
        Self {
            family,
            query_key_norms: matches!(family, Family::Qwen3 | Family::Gemma3),
            query_key_value_biases: family == Family::Qwen2,
            attention_out_bias: false,
            norms_after: gemma,
            norm_offset: if gemma { 1.0 } else { 0.0 },
            // Rounded to the weights' type where others compute in that; this is what f32 gives.
            embedding_scale: if gemma { (hidden_size as f64).sqrt() as f32 } else { 1.0 },
            activation: match family {
                Family::Gemma3 | Family::Mt5 | Family::Umt5 => Activation::GeluTanh,
                Family::T5 => Activation::Relu,
                _ => Activation::Silu,
            },
            gated_mlp: family != Family::T5,
            query_scalar: match (gemma, encoder) {
                (true, _) => Some(256.0),
                (_, true) => Some(1.0),
                _ => None,
            },
            rope_scaling: RopeScaling::None,
            window: None,
            relative_positions: encoder.then_some(RelativePositions {
                num_buckets: 32,
                max_distance: 128,
                in_every_layer: family == Family::Umt5,
            }),
            logit_scale: match family {
                Family::T5 | Family::Umt5 => root_of_inverse(hidden_size),
                _ => 1.0,
            },
            encoder: encoder.then_some(Encoder { num_layers: 6, start_token: 0 }),
        }
    }

    /// Factor of the products of queries and keys.
    pub fn attention_scale(&self, head_dim: usize) -> f32 {
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
        if self.relative_positions.is_some() {
            return 0;
        }
        let own = self.window.as_ref().is_some_and(|window| window.rope.is_some());
        1 + usize::from(own)
    }

    /// Checks that an encoder comes with what encoder–decoders have, and with nothing that only
    /// decoders alone do.
    fn check_encoder(&self) -> Result<(), String> {
        if self.encoder.is_some() != self.relative_positions.is_some() {
            return Err("an encoder comes with relative positions, and they with one".into());
        }
        let Some(encoder) = &self.encoder else { return Ok(()) };
        if encoder.num_layers == 0 {
            return Err("`num_layers` is 0; an encoder has at least 1".into());
        }
        let biases = self.query_key_value_biases || self.attention_out_bias;
        if self.query_key_norms || biases || self.norms_after || self.window.is_some() {
            return Err(
                "norms of queries and keys, biases, norms after a part and windows are not computed in encoder–decoders"
                    .into(),
            );
        }
        Ok(())
    }

    /// Checks what the layers rely on.
    pub(crate) fn check(&self, rope_theta: f64, num_layers: usize) -> Result<(), String> {
        match &self.relative_positions {
            Some(by) => by.check()?,
            None => {
                let rope = Rope { theta: rope_theta, scaling: self.rope_scaling.clone() };
                rope.check("rope_theta")?;
            }
        }
        self.check_encoder()?;
        if let Some(scalar) = self.query_scalar.filter(|s| !(s.is_finite() && *s > 0.0)) {
            return Err(format!("`query_pre_attn_scalar` is {scalar}; it must be positive"));
        }
        let factors = [self.embedding_scale, self.norm_offset, self.logit_scale];
        if !factors.into_iter().all(f32::is_finite) {
            return Err(
                "the factors of embeddings and of logits and the offset of norms must be finite"
                    .into(),
            );
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
    pub const ALL: [Self; 8] = [
        Self::Qwen2,
        Self::Qwen3,
        Self::Llama,
        Self::Mistral,
        Self::Gemma3,
        Self::T5,
        Self::Mt5,
        Self::Umt5,
    ];

    /// True where an encoder reads the prompt.
    pub fn has_encoder(self) -> bool {
        matches!(self, Self::T5 | Self::Mt5 | Self::Umt5)
    }

    /// The `model_type` that stands for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen2 => "qwen2",
            Self::Qwen3 => "qwen3",
            Self::Llama => "llama",
            Self::Mistral => "mistral",
            Self::Gemma3 => "gemma3_text",
            Self::T5 => "t5",
            Self::Mt5 => "mt5",
            Self::Umt5 => "umt5",
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
            Self::T5 => "T5ForConditionalGeneration",
            Self::Mt5 => "MT5ForConditionalGeneration",
            Self::Umt5 => "UMT5ForConditionalGeneration",
        }
    }
}

/// `1 / √width`
pub(crate) fn root_of_inverse(width: usize) -> f32 {
    (width as f64).powf(-0.5) as f32
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
