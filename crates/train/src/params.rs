//! The weights: one flat array and a table of names.

use std::ops::Range;
use std::sync::Arc;

use palmette_model::draft::{DraftForm, DraftShape};
use palmette_model::{Architecture, ModelConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Standard deviation of freshly drawn weights.
const INIT_DEVIATION: f64 = 0.02;

/// Deviation of the rows of new tokens from the mean of the others, of what each column of these
/// deviates: rows that are equal would make codes that no softmax tells apart at first, and larger
/// noise would give new tokens a probability that the model never learnt.
const NEW_ROW_DEVIATION: f64 = 0.1;

/// Checks a configuration, and that it is of an architecture that has a backward pass here.
///
/// That is a plain decoder: norms of queries and keys (Qwen3), their biases (Qwen2) and stretched
/// rotary wavelengths are there or not, and everything else is as in Qwen3.
pub(crate) fn check_trainable(config: &ModelConfig) -> Result<(), String> {
    config.check()?;
    let of = &config.architecture;
    let plain = Architecture {
        family: of.family,
        query_key_norms: of.query_key_norms,
        query_key_value_biases: of.query_key_value_biases,
        rope_scaling: of.rope_scaling.clone(),
        ..Architecture::default()
    };
    if *of == plain {
        return Ok(());
    }
    let family = of.family.name();
    if of.encoder.is_some() {
        return Err(format!(
            "`model_type` is {family}, an encoder–decoder, and training computes decoders alone: encoder and cross-attention would \
             be left out; train this one elsewhere, or begin with a plain qwen3, qwen2, llama or mistral"
        ));
    }
    let parts = [
        (of.attention_out_bias, "a bias of what attention gives (`attention_bias`)"),
        (of.norms_after || of.norm_offset != plain.norm_offset, "norms after each part"),
        (of.window.is_some(), "a sliding window"),
    ];
    let parts = parts.iter().filter(|(has, _)| *has).map(|&(_, part)| part);
    let parts = parts.chain(["another activation, gate or scale"]).next().unwrap_or_default();
    Err(format!(
        "`model_type` is {family} with {parts}, and training computes plain qwen3, qwen2, llama and mistral only: gradients would be \
         another model's; train this one elsewhere, or begin with one of these"
    ))
}

/// One weight tensor's place in the flat array, under its Hugging Face name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTensor {
    /// The name in `model.safetensors`, such as `model.layers.0.mlp.up_proj.weight`.
    pub name: String,
    /// Row-major; `[out, in]` for a projection, `[width]` for a norm.
    pub shape: Vec<usize>,
    /// Place of its first value.
    pub offset: usize,
    /// Role of the tensor, which decides how it is drawn and if it decays.
    pub(crate) role: Role,
}

impl NamedTensor {
    /// The places of its values.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.shape.iter().product::<usize>()
    }
}

/// Role of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The token embedding; when tied, the output head as well.
    Embedding,
    /// A projection inside a layer, or the untied output head.
    Projection,
    /// A projection whose output is added to the residual stream.
    ResidualProjection,
    /// The weight of an RMS norm.
    Norm,
    /// A matrix of a draft head's transition.
    Transition,
    /// A vector that is added to a projection.
    Bias,
}

/// The places of one decoder layer's tensors.
///
/// `q_proj`, `k_proj` and `v_proj` lie one after another, and so do their biases, and `gate_proj`
/// and `up_proj`: each group is one matrix or vector, and one product computes it.
#[derive(Clone, Debug)]
pub(crate) struct LayerRanges {
    pub(crate) input_norm: Range<usize>,
    /// `[(H + 2G)·C, D]`
    pub(crate) query_key_value: Range<usize>,
    /// `[(H + 2G)·C]`, where there is one.
    pub(crate) query_key_value_bias: Option<Range<usize>>,
    /// `[C]` each, where there are such: of queries, and of keys.
    pub(crate) head_norms: Option<[Range<usize>; 2]>,
    /// `[D, H·C]`
    pub(crate) output: Range<usize>,
    pub(crate) feed_forward_norm: Range<usize>,
    /// `[2F, D]`
    pub(crate) gate_up: Range<usize>,
    /// `[D, F]`
    pub(crate) down: Range<usize>,
}

/// The places of a draft head's tensors, and what it computes with them.
#[derive(Clone, Debug)]
pub(crate) struct DraftRanges {
    pub(crate) form: DraftForm,
    /// `[L, D]`, where the form has placeholders.
    pub(crate) placeholders: Option<Range<usize>>,
    pub(crate) levels: Vec<DraftLevelRanges>,
    /// The place of the first tensor; those before are the decoder's.
    pub(crate) start: usize,
}

impl DraftRanges {
    /// The codes that the head spells.
    pub(crate) fn shape(&self) -> DraftShape {
        let levels = self.levels.iter();
        DraftShape { levels: levels.map(|l| (l.first_token, l.num_codes as u32)).collect() }
    }
}

/// The places of one level's tensors.
#[derive(Clone, Debug)]
pub(crate) struct DraftLevelRanges {
    /// The token of code 0.
    pub(crate) first_token: u32,
    pub(crate) num_codes: usize,
    /// `[codes, D]`
    pub(crate) head: Range<usize>,
    /// Transition by weights from this level to the next, where there is one.
    pub(crate) transition: Option<TransitionRanges>,
}

/// The places of a transition's tensors.
#[derive(Clone, Debug)]
pub(crate) struct TransitionRanges {
    /// `[D, D]`, of the code's embedding.
    pub(crate) token: Range<usize>,
    /// `[D]`
    pub(crate) bias: Range<usize>,
    /// `[D, D]`, of the state.
    pub(crate) state: Range<usize>,
}

/// Layout of a model's tensors in the flat arrays of weights, gradients and moments.
///
/// Tensors lie one after another without gaps, in the order of [`Layout::tensors`].
#[derive(Clone, Debug)]
pub struct Layout {
    config: ModelConfig,
    tensors: Vec<NamedTensor>,
    pub(crate) layers: Vec<LayerRanges>,
    pub(crate) embedding: Range<usize>,
    pub(crate) final_norm: Range<usize>,
    /// `[V, D]`; equal to `embedding` when tied.
    pub(crate) head: Range<usize>,
    /// A draft head's tensors come after all others.
    pub(crate) draft: Option<DraftRanges>,
    len: usize,
}

impl Layout {
    /// The layout of a model of this shape.
    pub fn new(config: &ModelConfig) -> Self {
        Self::assemble(config, None)
    }

    /// The layout of a model of this shape with a draft head.
    pub fn with_draft(config: &ModelConfig, form: DraftForm, shape: &DraftShape) -> Self {
        Self::assemble(config, Some((form, shape)))
    }

    fn assemble(config: &ModelConfig, draft: Option<(DraftForm, &DraftShape)>) -> Self {
        let mut table = Table::default();
        let (width, vocab) = (config.hidden_size, config.vocab_size);
        let (query, key_value) = (config.query_width(), config.key_value_width());
        let inner = config.intermediate_size;
        let embedding = table.push("model.embed_tokens.weight", &[vocab, width], Role::Embedding);
        let mut layers = Vec::with_capacity(config.num_hidden_layers);
        for layer in 0..config.num_hidden_layers {
            let mut push = |name: &str, shape: &[usize], role| {
                table.push(&format!("model.layers.{layer}.{name}"), shape, role)
            };
            let of = &config.architecture;
            let input_norm = push("input_layernorm.weight", &[width], Role::Norm);
            let q = push("self_attn.q_proj.weight", &[query, width], Role::Projection);
            push("self_attn.k_proj.weight", &[key_value, width], Role::Projection);
            let v = push("self_attn.v_proj.weight", &[key_value, width], Role::Projection);
            let query_key_value_bias = of.query_key_value_biases.then(|| {
                let q = push("self_attn.q_proj.bias", &[query], Role::Bias);
                push("self_attn.k_proj.bias", &[key_value], Role::Bias);
                q.start..push("self_attn.v_proj.bias", &[key_value], Role::Bias).end
            });
            let head_norms = of.query_key_norms.then(|| {
                ["q_norm", "k_norm"].map(|name| {
                    push(&format!("self_attn.{name}.weight"), &[config.head_dim], Role::Norm)
                })
            });
            let output = push("self_attn.o_proj.weight", &[width, query], Role::ResidualProjection);
            let feed_forward_norm = push("post_attention_layernorm.weight", &[width], Role::Norm);
            let gate = push("mlp.gate_proj.weight", &[inner, width], Role::Projection);
            let up = push("mlp.up_proj.weight", &[inner, width], Role::Projection);
            let down = push("mlp.down_proj.weight", &[width, inner], Role::ResidualProjection);
            layers.push(LayerRanges {
                input_norm,
                query_key_value: q.start..v.end,
                query_key_value_bias,
                head_norms,
                output,
                feed_forward_norm,
                gate_up: gate.start..up.end,
                down,
            });
        }
        let final_norm = table.push("model.norm.weight", &[width], Role::Norm);
        let head = if config.tie_word_embeddings {
            embedding.clone()
        } else {
            table.push("lm_head.weight", &[vocab, width], Role::Projection)
        };
        let draft = draft.map(|(form, shape)| draft_ranges(&mut table, width, form, shape));
        let Table { tensors, len } = table;
        Self { config: config.clone(), tensors, layers, embedding, final_norm, head, draft, len }
    }

    /// The shape of the model.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Every tensor, in the order of the flat array.
    pub fn tensors(&self) -> &[NamedTensor] {
        &self.tensors
    }

    /// Number of weights of the model, those of a draft head included.
    pub fn num_weights(&self) -> usize {
        self.len
    }

    /// The tensors of the decoder, and those of the draft head.
    pub(crate) fn parts(&self) -> (&[NamedTensor], &[NamedTensor]) {
        let start = self.draft.as_ref().map_or(self.len, |draft| draft.start);
        self.tensors.split_at(self.tensors.partition_point(|tensor| tensor.offset < start))
    }

    /// Index in [`Layout::tensors`] of the tensor that holds the weight at `place`.
    pub(crate) fn tensor_at(&self, place: usize) -> usize {
        self.tensors.partition_point(|tensor| tensor.offset <= place) - 1
    }
}

fn draft_ranges(
    table: &mut Table,
    width: usize,
    form: DraftForm,
    shape: &DraftShape,
) -> DraftRanges {
    let (start, count) = (table.len, shape.levels.len());
    let placeholders = form
        .has_placeholders()
        .then(|| table.push("draft.placeholders", &[count, width], Role::Embedding));
    let mut levels = Vec::with_capacity(count);
    for (level, &(first_token, num_codes)) in shape.levels.iter().enumerate() {
        let mut push = |part: &str, shape: &[usize], role| {
            table.push(&format!("draft.levels.{level}.{part}"), shape, role)
        };
        let num_codes = num_codes as usize;
        let head = push("head.weight", &[num_codes, width], Role::Projection);
        let transition = (form.has_transitions() && level + 1 < count).then(|| TransitionRanges {
            token: push("transition.token.weight", &[width, width], Role::Transition),
            bias: push("transition.bias", &[width], Role::Bias),
            state: push("transition.state.weight", &[width, width], Role::Transition),
        });
        levels.push(DraftLevelRanges { first_token, num_codes, head, transition });
    }
    DraftRanges { form, placeholders, levels, start }
}

#[derive(Default)]
struct Table {
    tensors: Vec<NamedTensor>,
    len: usize,
}

impl Table {
    fn push(&mut self, name: &str, shape: &[usize], role: Role) -> Range<usize> {
        let tensor =
            NamedTensor { name: name.to_owned(), shape: shape.to_vec(), offset: self.len, role };
        let range = tensor.range();
        self.len = range.end;
        self.tensors.push(tensor);
        range
    }
}

/// All weights of a model, f32, laid out as its [`Layout`] says.
#[derive(Clone, Debug)]
pub struct Params {
    layout: Arc<Layout>,
    values: Vec<f32>,
}

impl Params {
    /// Draws the weights of a new model: norms are 1, everything else is normal with deviation
    /// 0.02, and projections into the residual stream are smaller by √(2 · layers), so that the
    /// stream's variance does not grow with depth.
    pub fn init(config: &ModelConfig, seed: u64) -> Self {
        Self::draw(Arc::new(Layout::new(config)), seed)
    }

    /// A trained decoder with a new draft head. The head's output begins as the decoder's own for
    /// the level's codes, a placeholder as the mean of the embeddings of the codes in whose place
    /// it stands, transitions are drawn.
    pub fn with_draft(decoder: &Self, form: DraftForm, shape: &DraftShape, seed: u64) -> Self {
        let layout = Arc::new(Layout::with_draft(decoder.config(), form, shape));
        let mut params = Self::draw(Arc::clone(&layout), seed);
        params.values[..decoder.values.len()].copy_from_slice(&decoder.values);
        let Some(draft) = &layout.draft else { return params };
        let width = decoder.config().hidden_size;
        for (index, level) in draft.levels.iter().enumerate() {
            let rows = |table: &Range<usize>| {
                let first = table.start + level.first_token as usize * width;
                &decoder.values[first..first + level.num_codes * width]
            };
            params.values[level.head.clone()].copy_from_slice(rows(&layout.head));
            if let Some(placeholders) = &draft.placeholders {
                let mean = &mut params.values[placeholders.start + index * width..][..width];
                mean.fill(0.0);
                for row in rows(&layout.embedding).chunks_exact(width) {
                    mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += value);
                }
                mean.iter_mut().for_each(|mean| *mean /= level.num_codes as f32);
            }
        }
        params
    }

    fn draw(layout: Arc<Layout>, seed: u64) -> Self {
        let mut params =
            Self { values: vec![0.0; layout.num_weights()], layout: Arc::clone(&layout) };
        let config = layout.config();
        let residual_deviation = INIT_DEVIATION / (2.0 * config.num_hidden_layers as f64).sqrt();
        let mut normal = Normal { source: ChaCha8Rng::seed_from_u64(seed), spare: None };
        for tensor in layout.tensors() {
            let values = &mut params.values[tensor.range()];
            let deviation = match tensor.role {
                Role::Norm => {
                    values.fill(1.0);
                    continue;
                }
                Role::Bias => continue,
                Role::Transition => 0.5 / (config.hidden_size as f64).sqrt(),
                Role::ResidualProjection => residual_deviation,
                Role::Embedding | Role::Projection => INIT_DEVIATION,
            };
            values.fill_with(|| (normal.draw() * deviation) as f32);
        }
        params
    }

    /// Grows the decoder's vocabulary to `vocab_size` tokens. In embeddings and head the rows of
    /// `new` tokens, and of those that there was no row for, are normal about the mean of the rows
    /// before the first of them, each column with a tenth of these rows' deviation: alike, and not
    /// equal. The same seed draws the same.
    ///
    /// # Panics
    /// When the vocabulary would shrink, or has no tokens before the new ones.
    pub fn with_vocabulary(&self, vocab_size: usize, new: &[u32], seed: u64) -> Self {
        let (old, width) = (self.config().vocab_size, self.config().hidden_size);
        assert!(
            vocab_size >= old,
            "a vocabulary of {old} tokens cannot become one of {vocab_size}"
        );
        let mut params = Self::zeros(&ModelConfig { vocab_size, ..self.config().clone() });
        let first_new = new.iter().map(|&token| token as usize).min().unwrap_or(old).min(old);
        assert!(first_new > 0 || vocab_size == old, "new rows are about the mean of those before");
        let mut normal = Normal { source: ChaCha8Rng::seed_from_u64(seed), spare: None };
        let layout = Arc::clone(&params.layout);
        for tensor in layout.tensors() {
            let Some((shape, values)) = self.tensor(&tensor.name) else { continue };
            let target = &mut params.values[tensor.range()];
            target[..values.len()].copy_from_slice(values);
            if shape != [old, width] || (first_new == old && vocab_size == old) {
                continue;
            }
            let columns = column_moments(&values[..first_new * width], width);
            let rows = new.iter().map(|&token| token as usize).chain(old..vocab_size);
            for row in rows {
                let row = &mut target[row * width..][..width];
                for (value, (mean, deviation)) in row.iter_mut().zip(&columns) {
                    *value = (mean + NEW_ROW_DEVIATION * deviation * normal.draw()) as f32;
                }
            }
        }
        params
    }

    /// A model whose weights are all 0.
    pub fn zeros(config: &ModelConfig) -> Self {
        let layout = Arc::new(Layout::new(config));
        let values = vec![0.0; layout.num_weights()];
        Self { layout, values }
    }

    /// Weights `values`, laid out as `layout`.
    pub(crate) fn from_values(layout: Arc<Layout>, values: Vec<f32>) -> Self {
        assert_eq!(layout.num_weights(), values.len(), "weights of another layout");
        Self { layout, values }
    }

    /// The shape of the model.
    pub fn config(&self) -> &ModelConfig {
        &self.layout.config
    }

    /// Layout of the tensors.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The flat array.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The flat array, writable.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The tensor of this Hugging Face name: its shape and its values.
    pub fn tensor(&self, name: &str) -> Option<(&[usize], &[f32])> {
        let tensor = self.layout.tensors.iter().find(|tensor| tensor.name == name)?;
        Some((&tensor.shape, &self.values[tensor.range()]))
    }
}

/// Mean and standard deviation of each column of rows.
fn column_moments(rows: &[f32], width: usize) -> Vec<(f64, f64)> {
    let count = (rows.len() / width) as f64;
    let of_column = |column: usize| {
        let values = || rows.iter().skip(column).step_by(width).map(|&value| f64::from(value));
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        (mean, variance.sqrt())
    };
    (0..width).map(of_column).collect()
}

/// Normal variates by the Box-Muller transform, which gives two at a time.
struct Normal {
    source: ChaCha8Rng,
    spare: Option<f64>,
}

impl Normal {
    fn draw(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        // In (0, 1]: the logarithm of 0 must not be taken.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }

    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.source.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use palmette_model::Family;

    use super::*;
    use crate::network::testing::tiny_config;

    #[test]
    fn tensors_cover_the_array_without_gaps() {
        let families = [(true, Family::Qwen3), (false, Family::Qwen2), (false, Family::Llama)];
        for (tied, family) in families {
            let architecture = Architecture::of(family, 6);
            let layout = Layout::new(&ModelConfig { architecture, ..tiny_config(tied) });
            let mut end = 0;
            for (index, tensor) in layout.tensors().iter().enumerate() {
                assert_eq!(tensor.offset, end, "{}", tensor.name);
                end = tensor.range().end;
                assert_eq!(layout.tensor_at(tensor.offset), index);
                assert_eq!(layout.tensor_at(end - 1), index);
            }
            assert_eq!(end, layout.num_weights());
            let has_head = layout.tensors().iter().any(|t| t.name == "lm_head.weight");
            assert_eq!(has_head, !tied);
        }
    }

    #[test]
    fn init_follows_the_seed_and_the_deviations() {
        let config = ModelConfig { vocab_size: 500, ..tiny_config(true) };
        let params = Params::init(&config, 3);
        assert_eq!(params.values(), Params::init(&config, 3).values());
        assert_ne!(params.values(), Params::init(&config, 4).values());
        let deviation = |name: &str| {
            let (_, values) = params.tensor(name).unwrap();
            let squares: f64 = values.iter().map(|&v| f64::from(v).powi(2)).sum();
            (squares / values.len() as f64).sqrt()
        };
        assert!((deviation("model.embed_tokens.weight") - 0.02).abs() < 0.001);
        assert!((deviation("model.layers.1.mlp.down_proj.weight") - 0.01).abs() < 0.002);
        assert_eq!(deviation("model.layers.0.self_attn.q_norm.weight"), 1.0);
    }
}
