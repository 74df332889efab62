//! The weights of a model, matrices packed, by the names that they have in Hugging Face files.

use std::borrow::Cow;
use std::path::Path;

use palmette_core::TokenId;

use crate::config::ModelConfig;
use crate::encoder_decoder::{CrossWeights, EncoderWeights, weights_from_tensors};
use crate::error::LoadError;
use crate::kernels::{HeadMatrix, Int8Kernel, Matrix, Values};
use crate::model_tensors::ModelTensors;
use crate::tensor_files::{EMBEDDING, HEAD};

/// All weights of a model, matrices packed as `[in, out]`.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// `[V, D]` row-major; `None` when the head's columns serve as embeddings.
    pub(crate) embedding: Option<Values>,
    /// Factor of embeddings when they are read.
    pub(crate) embedding_scale: f32,
    pub(crate) layers: Vec<LayerWeights>,
    /// Biases of relative positions, `[buckets, H]`: of each layer, or of the first for all; none
    /// with rotary ones.
    pub(crate) relative_biases: Vec<Vec<f32>>,
    /// `[D]`
    pub(crate) final_norm: Vec<f32>,
    /// Turns hidden states into logits: `[D, V]`
    pub(crate) head: HeadMatrix,
    /// The reader of prompts in an encoder–decoder.
    pub(crate) encoder: Option<EncoderWeights>,
}

/// One layer's. Those that an [`Architecture`](crate::Architecture) may lack are `None` where it
/// does; norms are as they multiply, the architecture's offset added.
#[derive(Clone, Debug)]
pub(crate) struct LayerWeights {
    /// `[D]`
    pub(crate) attention_norm: Vec<f32>,
    /// `[D, H C]`
    pub(crate) queries: Matrix,
    /// `[H C]`
    pub(crate) query_bias: Option<Vec<f32>>,
    /// Keys and values in one matrix, so that they are one product: `[D, 2 G C]`
    pub(crate) keys_values: Matrix,
    /// `[2 G C]`
    pub(crate) key_value_bias: Option<Vec<f32>>,
    /// `[C]`
    pub(crate) query_norm: Option<Vec<f32>>,
    /// `[C]`
    pub(crate) key_norm: Option<Vec<f32>>,
    /// `[H C, D]`
    pub(crate) attention_out: Matrix,
    /// `[D]`
    pub(crate) attention_out_bias: Option<Vec<f32>>,
    /// Norm of what attention gives, before it is added: `[D]`
    pub(crate) norm_after_attention: Option<Vec<f32>>,
    /// Attention to what an encoder made.
    pub(crate) cross: Option<CrossWeights>,
    /// `[D]`
    pub(crate) mlp_norm: Vec<f32>,
    /// `[D, F]`; what goes through the activation.
    pub(crate) gate: Matrix,
    /// `[D, F]`; `None` where nothing is gated.
    pub(crate) up: Option<Matrix>,
    /// `[F, D]`
    pub(crate) down: Matrix,
    /// Norm of what the feed-forward part gives, before it is added: `[D]`
    pub(crate) norm_after_mlp: Option<Vec<f32>>,
}

impl Weights {
    /// Reads `model.safetensors`, or the shards that `model.safetensors.index.json` names.
    pub(crate) fn read(dir: &Path, config: &ModelConfig) -> Result<Self, LoadError> {
        Self::assemble(ModelTensors::open(dir, config)?, config)
    }

    /// Reads the bytes of one safetensors file; `name` stands for the path in errors.
    pub(crate) fn from_bytes(
        name: &Path,
        bytes: Vec<u8>,
        config: &ModelConfig,
    ) -> Result<Self, LoadError> {
        Self::assemble(ModelTensors::from_bytes(name, bytes, config)?, config)
    }

    fn assemble(mut tensors: ModelTensors, config: &ModelConfig) -> Result<Self, LoadError> {
        let mut config = Cow::Borrowed(config);
        if tensors.has_own_head() == config.tie_word_embeddings {
            config.to_mut().tie_word_embeddings = !tensors.has_own_head();
        }
        let weights = Self::from_tensors(&config, |name, shape| tensors.take(name, shape))?;
        tensors.finish()?;
        Ok(weights)
    }

    /// Asks `take` for each tensor that the configuration has, by its Hugging Face name and shape,
    /// `[out, in]`.
    pub(crate) fn from_tensors(
        config: &ModelConfig,
        mut take: impl FnMut(&str, &[usize]) -> Result<Values, LoadError>,
    ) -> Result<Self, LoadError> {
        if let Some(encoder) = &config.architecture.encoder {
            return weights_from_tensors(config, encoder.num_layers, &mut take);
        }
        let embedding = take(EMBEDDING, &[config.vocab_size, config.hidden_size])?;
        // Grown as tensors are found: the number in `config` is not to be trusted with memory.
        let mut layers = Vec::new();
        for layer in 0..config.num_hidden_layers {
            let take = &mut |name: &str, shape: &[usize]| {
                take(&format!("model.layers.{layer}.{name}"), shape)
            };
            let norm_offset = config.architecture.norm_offset;
            layers
                .push(LayerWeights::from_tensors(config, &mut LayerTensors { take, norm_offset })?);
        }
        let mut final_norm = take("model.norm.weight", &[config.hidden_size])?.into_f32();
        add_offset(&mut final_norm, config.architecture.norm_offset);
        let (embedding, head) = if config.tie_word_embeddings {
            (None, embedding)
        } else {
            (Some(embedding), take(HEAD, &[config.vocab_size, config.hidden_size])?)
        };
        let head = HeadMatrix::transposed(&head, config.hidden_size);
        let embedding_scale = config.architecture.embedding_scale;
        let (relative_biases, encoder) = (Vec::new(), None);
        Ok(Self { embedding, embedding_scale, layers, relative_biases, final_norm, head, encoder })
    }

    /// Copies a token's embedding to `out`, `[D]`, scaled as the first layer reads it.
    pub(crate) fn embed(&self, token: TokenId, out: &mut [f32]) {
        match &self.embedding {
            Some(rows) => rows.copy_to(token.index() * out.len(), out),
            None => self.head.copy_column(token.index(), out),
        }
        if self.embedding_scale != 1.0 {
            out.iter_mut().for_each(|value| *value *= self.embedding_scale);
        }
    }

    /// Rounds the layers' matrices to 8 bits; embeddings, head, norms and biases stay as they are.
    pub(crate) fn round_to_int8(&mut self) {
        self.all_layers_mut().flat_map(LayerWeights::matrices_mut).for_each(Matrix::round_to_int8);
    }

    /// Has products with matrices in 8 bits computed by another kernel.
    pub(crate) fn set_int8_kernel(&mut self, kernel: Int8Kernel) {
        let matrices = self.all_layers_mut().flat_map(LayerWeights::matrices_mut);
        matrices.for_each(|matrix| matrix.set_int8_kernel(kernel));
    }

    /// Rounds all matrices that are kept in full to bfloat16, embeddings and head among them; norms
    /// and biases stay.
    pub(crate) fn round_to_bf16(&mut self) {
        self.all_layers_mut().flat_map(LayerWeights::matrices_mut).for_each(Matrix::round_to_bf16);
        self.embedding = self.embedding.as_ref().map(Values::to_bf16);
        self.head.round_to_bf16();
    }

    fn all_layers_mut(&mut self) -> impl Iterator<Item = &mut LayerWeights> {
        let encoder = self.encoder.iter_mut().flat_map(|encoder| &mut encoder.layers);
        self.layers.iter_mut().chain(encoder)
    }

    /// Every layer, the encoder's too.
    fn all_layers(&self) -> impl Iterator<Item = &LayerWeights> {
        self.layers.iter().chain(self.encoder.iter().flat_map(|encoder| &encoder.layers))
    }

    /// Norms and biases outside of layers.
    fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        let of_encoder = self.encoder.iter().flat_map(EncoderWeights::vectors);
        let own = self.relative_biases.iter().chain([&self.final_norm]).map(Vec::as_slice);
        own.chain(of_encoder)
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        let embedding = self.embedding.as_ref().map_or(0, Values::bytes);
        let layers: usize = self.all_layers().map(LayerWeights::bytes).sum();
        let vectors: usize = self.vectors().map(size_of_val).sum();
        embedding + layers + vectors + self.head.bytes()
    }

    /// Number of parameters, tied ones counted once.
    pub(crate) fn num_parameters(&self) -> usize {
        let layer =
            |l: &LayerWeights| l.vectors().map(<[f32]>::len).sum::<usize>() + l.num_matrix_values();
        self.embedding.as_ref().map_or(0, Values::len)
            + self.all_layers().map(layer).sum::<usize>()
            + self.vectors().map(<[f32]>::len).sum::<usize>()
            + self.head.num_values()
    }
}

const KEYS_VALUES: [&str; 2] = ["self_attn.k_proj", "self_attn.v_proj"];

/// Gives the tensor of a name and shape.
pub(crate) type Take<'a> = dyn FnMut(&str, &[usize]) -> Result<Values, LoadError> + 'a;

/// The tensors of one layer, asked for by their names in it.
pub(crate) struct LayerTensors<'a> {
    pub(crate) take: &'a mut Take<'a>,
    /// Added to stored norms.
    pub(crate) norm_offset: f32,
}

impl LayerTensors<'_> {
    /// The matrices of these names side by side, each `[outputs, inputs]` as stored.
    pub(crate) fn matrix(
        &mut self,
        names: &[&str],
        outputs: usize,
        inputs: usize,
    ) -> Result<Matrix, LoadError> {
        let rows = self.parts(names, "weight", &[outputs, inputs])?;
        Ok(Matrix::transposed(&rows, inputs))
    }

    /// Their biases one after another, where the architecture has some.
    fn bias(
        &mut self,
        names: &[&str],
        width: usize,
        there: bool,
    ) -> Result<Option<Vec<f32>>, LoadError> {
        there.then(|| Ok(self.parts(names, "bias", &[width])?.into_f32())).transpose()
    }

    fn parts(&mut self, names: &[&str], part: &str, shape: &[usize]) -> Result<Values, LoadError> {
        let mut all: Option<Values> = None;
        for name in names {
            let values = (self.take)(&format!("{name}.{part}"), shape)?;
            all = Some(match all {
                Some(all) => all.followed_by(values),
                None => values,
            });
        }
        Ok(all.unwrap_or_else(|| Values::F32(Vec::new())))
    }

    pub(crate) fn norm(&mut self, name: &str, width: usize) -> Result<Vec<f32>, LoadError> {
        let mut norm = (self.take)(&format!("{name}.weight"), &[width])?.into_f32();
        add_offset(&mut norm, self.norm_offset);
        Ok(norm)
    }

    fn norm_if(
        &mut self,
        there: bool,
        name: &str,
        width: usize,
    ) -> Result<Option<Vec<f32>>, LoadError> {
        there.then(|| self.norm(name, width)).transpose()
    }
}

pub(crate) fn add_offset(norm: &mut [f32], offset: f32) {
    norm.iter_mut().for_each(|weight| *weight += offset);
}

impl LayerWeights {
    fn from_tensors(
        config: &ModelConfig,
        tensors: &mut LayerTensors<'_>,
    ) -> Result<Self, LoadError> {
        let (d, f, c) = (config.hidden_size, config.intermediate_size, config.head_dim);
        let (queries, keys) = (config.query_width(), config.key_value_width());
        let has = &config.architecture;
        // One name means two norms: that before the feed-forward part, or that after attention
        // where there are both.
        let before_mlp = match has.norms_after {
            true => "pre_feedforward_layernorm",
            false => "post_attention_layernorm",
        };
        // In this order, for made-up weights are drawn in it.
        let mut layer = Self {
            attention_norm: tensors.norm("input_layernorm", d)?,
            queries: tensors.matrix(&["self_attn.q_proj"], queries, d)?,
            query_bias: tensors.bias(&["self_attn.q_proj"], queries, has.query_key_value_biases)?,
            keys_values: tensors.matrix(&KEYS_VALUES, keys, d)?,
            key_value_bias: tensors.bias(&KEYS_VALUES, keys, has.query_key_value_biases)?,
            query_norm: tensors.norm_if(has.query_key_norms, "self_attn.q_norm", c)?,
            key_norm: tensors.norm_if(has.query_key_norms, "self_attn.k_norm", c)?,
            attention_out: tensors.matrix(&["self_attn.o_proj"], d, queries)?,
            attention_out_bias: tensors.bias(&["self_attn.o_proj"], d, has.attention_out_bias)?,
            norm_after_attention: tensors.norm_if(
                has.norms_after,
                "post_attention_layernorm",
                d,
            )?,
            cross: None,
            mlp_norm: tensors.norm(before_mlp, d)?,
            gate: tensors.matrix(&["mlp.gate_proj"], f, d)?,
            up: Some(tensors.matrix(&["mlp.up_proj"], f, d)?),
            down: tensors.matrix(&["mlp.down_proj"], d, f)?,
            norm_after_mlp: tensors.norm_if(has.norms_after, "post_feedforward_layernorm", d)?,
        };
        layer.keep_gates_alike();
        Ok(layer)
    }

    /// Keeps the matrices of the gated feed-forward part in one way, as their common product takes
    /// them.
    pub(crate) fn keep_gates_alike(&mut self) {
        if let Some(up) = &mut self.up {
            Matrix::keep_alike(&mut self.gate, up);
        }
    }

    fn matrices(&self) -> impl Iterator<Item = &Matrix> {
        let Self { queries, keys_values, attention_out, gate, up, down, cross, .. } = self;
        let matrices = [queries, keys_values, attention_out, gate, down].into_iter().chain(up);
        matrices.chain(cross.iter().flat_map(CrossWeights::matrices))
    }

    fn matrices_mut(&mut self) -> impl Iterator<Item = &mut Matrix> {
        let Self { queries, keys_values, attention_out, gate, up, down, cross, .. } = self;
        let matrices = [queries, keys_values, attention_out, gate, down].into_iter().chain(up);
        matrices.chain(cross.iter_mut().flat_map(CrossWeights::matrices_mut))
    }

    /// Values of the matrices, each of which takes two operations a row.
    pub(crate) fn num_matrix_values(&self) -> usize {
        self.matrices().map(Matrix::num_values).sum()
    }

    fn bytes(&self) -> usize {
        self.matrices().map(Matrix::bytes).chain(self.vectors().map(size_of_val)).sum()
    }

    /// The norms and biases that it has.
    fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        let Self {
            attention_norm, mlp_norm, query_bias, key_value_bias, attention_out_bias, ..
        } = self;
        let Self { query_norm, key_norm, norm_after_attention, norm_after_mlp, .. } = self;
        let some = [query_norm, key_norm, norm_after_attention, norm_after_mlp]
            .into_iter()
            .chain([query_bias, key_value_bias, attention_out_bias])
            .filter_map(Option::as_deref);
        let cross_norm = self.cross.iter().map(|cross| &cross.norm[..]);
        [&attention_norm[..], mlp_norm].into_iter().chain(some).chain(cross_norm)
    }
}
