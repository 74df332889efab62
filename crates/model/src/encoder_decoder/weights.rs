//! The weights of encoder–decoders, by the names that they have in files of T5, mT5 and UMT5.

use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::kernels::{HeadMatrix, Matrix};
use crate::tensor_files::{HEAD, TensorFiles};
use crate::weights::{LayerTensors, LayerWeights, Take, Weights, add_offset};

/// Name of the embeddings, which encoder and decoder share.
pub(crate) const SHARED: &str = "shared.weight";

/// Copies of the embeddings that some files store.
const COPIES: [&str; 2] = ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"];

/// Attention of one decoder layer to what the encoder made.
#[derive(Clone, Debug)]
pub(crate) struct CrossWeights {
    /// `[D]`
    pub(crate) norm: Vec<f32>,
    /// `[D, H C]`
    pub(crate) queries: Matrix,
    /// `[D, 2 G C]`
    pub(crate) keys_values: Matrix,
    /// `[H C, D]`
    pub(crate) out: Matrix,
}

/// A stack of layers: the encoder, or the decoder before its parts go to [`Weights`].
#[derive(Clone, Debug)]
pub(crate) struct EncoderWeights {
    pub(crate) layers: Vec<LayerWeights>,
    /// Biases of buckets, `[buckets, H]`: of each layer, or of the first for all.
    pub(crate) relative_biases: Vec<Vec<f32>>,
    /// `[D]`
    pub(crate) final_norm: Vec<f32>,
}

/// Leaves one of the matrices that are to be the same, in files that hold several; returns true
/// where the head is another.
///
/// A head that is not said to be tied is one of its own where the file has one: transformers 5
/// writes `tie_word_embeddings` true whatever it was, and drops the head where it is the
/// embeddings.
pub(crate) fn settle_shared_tensors(
    files: &mut TensorFiles,
    config: &ModelConfig,
) -> Result<bool, LoadError> {
    for copy in COPIES {
        files.tie(
            copy,
            SHARED,
            "although encoder and decoder have one matrix of embeddings: one of the two would be left out; remove the one \
             that the model was not trained with",
        )?;
    }
    if config.tie_word_embeddings {
        files.tie_head(SHARED)?;
    }
    Ok(files.holds(HEAD))
}

/// Asks `take` for each tensor that the configuration has, by its Hugging Face name and shape,
/// `[out, in]`.
pub(crate) fn weights_from_tensors(
    config: &ModelConfig,
    encoder_layers: usize,
    take: &mut Take<'_>,
) -> Result<Weights, LoadError> {
    let (vocab, d) = (config.vocab_size, config.hidden_size);
    let embedding = take(SHARED, &[vocab, d])?;
    let encoder = stack(config, "encoder", encoder_layers, take)?;
    let mut decoder = stack(config, "decoder", config.num_hidden_layers, take)?;
    // A factor of logits is one of the last norm.
    decoder.final_norm.iter_mut().for_each(|weight| *weight *= config.architecture.logit_scale);
    let (embedding, head) = match config.tie_word_embeddings {
        true => (None, embedding),
        false => (Some(embedding), take(HEAD, &[vocab, d])?),
    };
    Ok(Weights {
        embedding,
        embedding_scale: config.architecture.embedding_scale,
        layers: decoder.layers,
        relative_biases: decoder.relative_biases,
        final_norm: decoder.final_norm,
        head: HeadMatrix::transposed(&head, d),
        encoder: Some(encoder),
    })
}

fn stack(
    config: &ModelConfig,
    name: &str,
    num_layers: usize,
    take: &mut Take<'_>,
) -> Result<EncoderWeights, LoadError> {
    let norm_offset = config.architecture.norm_offset;
    // Grown as tensors are found: the number in `config` is not to be trusted with memory.
    let (mut layers, mut relative_biases) = (Vec::new(), Vec::new());
    for layer in 0..num_layers {
        let take =
            &mut |part: &str, shape: &[usize]| take(&format!("{name}.block.{layer}.{part}"), shape);
        if let Some(by) = &config.architecture.relative_positions
            && (layer == 0 || by.in_every_layer)
        {
            let shape = [by.num_buckets, config.num_attention_heads];
            let biases = take("layer.0.SelfAttention.relative_attention_bias.weight", &shape)?;
            relative_biases.push(biases.into_f32());
        }
        let tensors = &mut LayerTensors { take, norm_offset };
        let cross = match name {
            "decoder" => Some(CrossWeights::from_tensors(config, tensors)?),
            _ => None,
        };
        layers.push(layer_from_tensors(config, tensors, cross)?);
    }
    let final_norm = take(&format!("{name}.final_layer_norm.weight"), &[config.hidden_size])?;
    let mut final_norm = final_norm.into_f32();
    add_offset(&mut final_norm, norm_offset);
    Ok(EncoderWeights { layers, relative_biases, final_norm })
}

fn layer_from_tensors(
    config: &ModelConfig,
    tensors: &mut LayerTensors<'_>,
    cross: Option<CrossWeights>,
) -> Result<LayerWeights, LoadError> {
    let (d, f) = (config.hidden_size, config.intermediate_size);
    let (queries, keys) = (config.query_width(), config.key_value_width());
    // Parts of a layer are numbered, and the cross-attention's number comes between.
    let mlp = if cross.is_some() { "layer.2" } else { "layer.1" };
    let of_mlp = |part: &str| format!("{mlp}.DenseReluDense.{part}");
    let gated = config.architecture.gated_mlp;
    let gate = of_mlp(if gated { "wi_0" } else { "wi" });
    let up = gated.then(|| tensors.matrix(&[&of_mlp("wi_1")], f, d)).transpose()?;
    let mut layer = LayerWeights {
        attention_norm: tensors.norm("layer.0.layer_norm", d)?,
        queries: tensors.matrix(&["layer.0.SelfAttention.q"], queries, d)?,
        query_bias: None,
        keys_values: tensors.matrix(
            &["layer.0.SelfAttention.k", "layer.0.SelfAttention.v"],
            keys,
            d,
        )?,
        key_value_bias: None,
        query_norm: None,
        key_norm: None,
        attention_out: tensors.matrix(&["layer.0.SelfAttention.o"], d, queries)?,
        attention_out_bias: None,
        norm_after_attention: None,
        cross,
        mlp_norm: tensors.norm(&format!("{mlp}.layer_norm"), d)?,
        gate: tensors.matrix(&[&gate], f, d)?,
        up,
        down: tensors.matrix(&[&of_mlp("wo")], d, f)?,
        norm_after_mlp: None,
    };
    layer.keep_gates_alike();
    Ok(layer)
}

impl CrossWeights {
    fn from_tensors(
        config: &ModelConfig,
        tensors: &mut LayerTensors<'_>,
    ) -> Result<Self, LoadError> {
        let d = config.hidden_size;
        let (queries, keys) = (config.query_width(), config.key_value_width());
        Ok(Self {
            norm: tensors.norm("layer.1.layer_norm", d)?,
            queries: tensors.matrix(&["layer.1.EncDecAttention.q"], queries, d)?,
            keys_values: tensors.matrix(
                &["layer.1.EncDecAttention.k", "layer.1.EncDecAttention.v"],
                keys,
                d,
            )?,
            out: tensors.matrix(&["layer.1.EncDecAttention.o"], d, queries)?,
        })
    }

    pub(crate) fn matrices(&self) -> [&Matrix; 3] {
        [&self.queries, &self.keys_values, &self.out]
    }

    pub(crate) fn matrices_mut(&mut self) -> [&mut Matrix; 3] {
        [&mut self.queries, &mut self.keys_values, &mut self.out]
    }
}

impl EncoderWeights {
    /// The final norm and the biases of buckets, which stay as they are when matrices are rounded.
    pub(crate) fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        self.relative_biases.iter().chain([&self.final_norm]).map(Vec::as_slice)
    }
}
