//! The arithmetic of layers over one block of rows.

use std::ops::Range;

use crate::allocation::zeroed;
use crate::attention::{self, Sight};
use crate::beam_key_values::OwnPart;
use crate::config::ModelConfig;
use crate::encoder_decoder::{CrossWeights, RelativeBias};
use crate::head_shape::HeadShape;
use crate::kernels::{
    Heads, RopeTable, RowsMut, RowsRef, activate_rows, add_normed_rows, multiply_gated,
    rms_norm_rows,
};
use crate::key_values::SequencePart;
use crate::model::Model;
use crate::weights::LayerWeights;

/// Scratch of one thread for a block of R rows, prompt positions or beams.
///
/// Methods take `hidden`, the block's rows of the residual stream, `[R, D]`.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// `[R, D]`
    normed: Vec<f32>,
    /// `[R, H·C]`
    queries: Vec<f32>,
    /// `[R, 2, G·C]`, keys before values
    key_values: Vec<f32>,
    /// `[R, H·C]`
    attended: Vec<f32>,
    /// `[R, F]`
    gated: Vec<f32>,
    /// See [`attention`]
    scores: Vec<f32>,
    /// See [`HeadShape`]
    is_bf16: bool,
}

/// Positions of a block's rows, and the reach of a layer's sight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions<'a> {
    /// Turns queries and keys; `None` where positions are relative.
    pub(crate) rope: Option<&'a RopeTable>,
    /// Biases of distances, where positions are relative.
    pub(crate) bias: Option<&'a RelativeBias>,
    /// The encoder's output, for a layer that attends to it.
    pub(crate) encoded: Option<Encoded<'a>>,
    /// Number of positions that a row sees at most; `usize::MAX` for all.
    pub(crate) window: usize,
    /// Position of the first row.
    pub(crate) first: usize,
    /// Distance of the next row from there: 1 in a prompt, 0 among beams.
    pub(crate) advance: usize,
}

/// Keys and values that every row sees, wherever it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded<'a> {
    pub(crate) key_values: SequencePart<'a>,
    pub(crate) tokens: usize,
}

impl<'a> Positions<'a> {
    /// Rows from position `first` on whose distances count, and nothing else.
    pub(crate) fn relative(bias: Option<&'a RelativeBias>, first: usize, advance: usize) -> Self {
        Self { rope: None, bias, encoded: None, window: usize::MAX, first, advance }
    }

    fn sight(&self) -> Sight<'a> {
        Sight { window: self.window, bias: self.bias }
    }
}

impl Workspace {
    /// `None` where there is not the memory for it.
    pub(crate) fn new(model: &Model, rows: usize, score_places: usize) -> Option<Self> {
        let (config, shape) = (&model.config, HeadShape::of(&model.config));
        Some(Self {
            normed: zeroed(rows * config.hidden_size)?,
            queries: zeroed(rows * shape.query_width())?,
            key_values: zeroed(rows * 2 * shape.key_value_width())?,
            attended: zeroed(rows * shape.query_width())?,
            gated: zeroed(rows * config.intermediate_size)?,
            scores: zeroed(score_places)?,
            is_bf16: model.attends_in_bf16,
        })
    }

    fn head_shape(&self, config: &ModelConfig) -> HeadShape {
        HeadShape { is_bf16: self.is_bf16, ..HeadShape::of(config) }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let Self { normed, queries, key_values, attended, gated, scores, is_bf16: _ } = self;
        let parts = [normed, queries, key_values, attended, gated];
        (parts.iter().map(|part| size_of_val(&***part)).sum(), size_of_val(&**scores))
    }

    /// The rows' keys and values, `[R, 2, G·C]`, keys at their positions.
    pub(crate) fn project_keys_and_values(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        positions: Positions<'_>,
        hidden: &[f32],
    ) -> &[f32] {
        let rows = hidden.len() / config.hidden_size;
        self.project_keys_and_values_of(config, layer, [(rows, positions)], hidden)
    }

    /// Keys and values of rows of several sequences: `runs` are numbers of rows that follow one
    /// another, and their positions.
    pub(crate) fn project_keys_and_values_of<'a>(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        runs: impl IntoIterator<Item = (usize, Positions<'a>)>,
        hidden: &[f32],
    ) -> &[f32] {
        let (rows, eps) = (hidden.len() / config.hidden_size, config.rms_norm_eps);
        let stride = 2 * config.key_value_width();
        rms_norm_rows(&mut self.normed[..hidden.len()], hidden, &layer.attention_norm, eps);
        let out = RowsMut { data: &mut self.key_values, stride };
        let bias = layer.key_value_bias.as_deref();
        layer.keys_values.multiply_biased(out, &mut self.normed[..hidden.len()], bias);
        let data = &mut self.key_values[..rows * stride];
        let (heads, head_dim) = (config.num_key_value_heads, config.head_dim);
        let norm = layer.key_norm.as_deref();
        let mut rest = &mut *data;
        for (rows, Positions { rope, first: position, advance, .. }) in runs {
            let (data, after) = rest.split_at_mut(rows * stride);
            rest = after;
            // Relative positions leave keys as they are, and come without norms of heads.
            let Some(rope) = rope else { continue };
            Heads { data, stride, heads, head_dim, norm, eps, rope, position, advance }
                .norm_and_turn();
        }
        data
    }

    /// Keys and values of what an encoder made, before its last norm, for one decoder layer: `[R,
    /// 2, G·C]`.
    pub(crate) fn project_encoded(
        &mut self,
        config: &ModelConfig,
        last_norm: &[f32],
        cross: &CrossWeights,
        hidden: &[f32],
    ) -> &[f32] {
        let (rows, stride) = (hidden.len() / config.hidden_size, 2 * config.key_value_width());
        let normed = &mut self.normed[..hidden.len()];
        rms_norm_rows(normed, hidden, last_norm, config.rms_norm_eps);
        cross.keys_values.multiply(RowsMut { data: &mut self.key_values, stride }, normed);
        &self.key_values[..rows * stride]
    }

    /// The rest of an encoder's layer, whose keys and values of all tokens are in `all`.
    pub(crate) fn finish_encoder_layer(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        positions: Positions<'_>,
        all: Encoded<'_>,
        hidden: &mut [f32],
    ) {
        let rows = hidden.len() / config.hidden_size;
        self.project_queries(config, layer, [(rows, positions)], hidden);
        let (prompt, place) = ((all.key_values, all.tokens), (rows, positions.first));
        let (shape, queries) = (&self.head_shape(config), &self.queries);
        let (scores, out) = (&mut self.scores, &mut self.attended);
        attention::whole(shape, queries, prompt, place, positions.bias, scores, out);
        self.finish_layer(config, layer, None, hidden);
    }

    /// The rest of a layer over prompt positions, whose keys and values are in `prompt`.
    pub(crate) fn finish_prompt_layer(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        positions: Positions<'_>,
        prompt: SequencePart<'_>,
        hidden: &mut [f32],
    ) {
        let rows = hidden.len() / config.hidden_size;
        self.finish_layer_of(config, layer, [(rows, positions, prompt)], hidden);
    }

    /// The rest of a layer over rows of several sequences: `runs` are numbers of rows, their
    /// positions, and the keys and values of their sequence, which has these rows' already. With an
    /// encoder there is one run.
    pub(crate) fn finish_layer_of<'a>(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        runs: impl IntoIterator<Item = (usize, Positions<'a>, SequencePart<'a>), IntoIter: Clone>,
        hidden: &mut [f32],
    ) {
        let runs = runs.into_iter();
        let positions = runs.clone().map(|(rows, positions, _)| (rows, positions));
        self.project_queries(config, layer, positions, hidden);
        let (shape, mut first, mut encoded) = (&self.head_shape(config), 0, None);
        for (rows, positions, key_values) in runs {
            let start = first * shape.query_width();
            first += rows;
            encoded = positions.encoded;
            let (queries, place) = (&self.queries[start..], (rows, positions.first));
            let (scores, out) = (&mut self.scores, &mut self.attended[start..]);
            attention::causal(shape, queries, key_values, place, positions.sight(), scores, out);
        }
        self.finish_layer(config, layer, encoded, hidden);
    }

    /// The rest of a layer over beams.
    pub(crate) fn finish_beam_layer(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        positions: Positions<'_>,
        prompt: (SequencePart<'_>, usize),
        own: OwnPart<'_>,
        hidden: &mut [f32],
    ) {
        let rows = hidden.len() / config.hidden_size;
        self.project_queries(config, layer, [(rows, positions)], hidden);
        let (rows, shape) = ((rows, positions.sight()), &self.head_shape(config));
        let (scores, out) = (&mut self.scores, &mut self.attended);
        attention::beams(shape, &self.queries, prompt, own, rows, scores, out);
        self.finish_layer(config, layer, positions.encoded, hidden);
    }

    /// Logits of some columns of the vocabulary: `[R, columns]`.
    pub(crate) fn logits(
        &mut self,
        model: &Model,
        hidden: &[f32],
        columns: Range<usize>,
        logits: &mut [f32],
    ) {
        let (d, eps) = (model.config.hidden_size, model.config.rms_norm_eps);
        rms_norm_rows(&mut self.normed[..hidden.len()], hidden, &model.weights.final_norm, eps);
        let out = RowsMut { data: logits, stride: columns.len() };
        let x = RowsRef { data: &self.normed, rows: hidden.len() / d, stride: d };
        model.weights.head.multiply_columns(out, x, columns);
    }

    /// Projects queries from the rows' normed values, which it computes again.
    /// [`project_keys_and_values`](Self::project_keys_and_values) has used them up, or was for
    /// other rows last.
    fn project_queries<'a>(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        runs: impl IntoIterator<Item = (usize, Positions<'a>)>,
        hidden: &[f32],
    ) {
        let (d, eps) = (config.hidden_size, config.rms_norm_eps);
        let (rows, stride) = (hidden.len() / d, config.query_width());
        rms_norm_rows(&mut self.normed[..hidden.len()], hidden, &layer.attention_norm, eps);
        let out = RowsMut { data: &mut self.queries, stride };
        let bias = layer.query_bias.as_deref();
        layer.queries.multiply_biased(out, &mut self.normed[..hidden.len()], bias);
        let mut rest = &mut self.queries[..rows * stride];
        let (heads, head_dim) = (config.num_attention_heads, config.head_dim);
        let norm = layer.query_norm.as_deref();
        for (rows, Positions { rope, first: position, advance, .. }) in runs {
            let (data, after) = rest.split_at_mut(rows * stride);
            rest = after;
            let Some(rope) = rope else { continue };
            Heads { data, stride, heads, head_dim, norm, eps, rope, position, advance }
                .norm_and_turn();
        }
    }

    /// Adds what was attended to, what of the encoder's is, and the feed-forward part, to the
    /// residual stream.
    fn finish_layer(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        encoded: Option<Encoded<'_>>,
        hidden: &mut [f32],
    ) {
        self.add_attended(config, layer, hidden);
        if let (Some(cross), Some(encoded)) = (&layer.cross, encoded) {
            self.attend_to_encoded(config, cross, encoded, hidden);
        }
        self.add_feed_forward(config, layer, hidden);
    }

    fn attend_to_encoded(
        &mut self,
        config: &ModelConfig,
        cross: &CrossWeights,
        encoded: Encoded<'_>,
        hidden: &mut [f32],
    ) {
        let (d, stride) = (config.hidden_size, config.query_width());
        let rows = hidden.len() / d;
        let normed = &mut self.normed[..hidden.len()];
        rms_norm_rows(normed, hidden, &cross.norm, config.rms_norm_eps);
        cross.queries.multiply(RowsMut { data: &mut self.queries, stride }, normed);
        let (shape, prompt) = (&self.head_shape(config), (encoded.key_values, encoded.tokens));
        let (scores, out) = (&mut self.scores, &mut self.attended);
        attention::whole(shape, &self.queries, prompt, (rows, 0), None, scores, out);
        let attended = &mut self.attended[..rows * stride];
        cross.out.multiply_add(RowsMut { data: hidden, stride: d }, attended);
    }

    fn add_attended(&mut self, config: &ModelConfig, layer: &LayerWeights, hidden: &mut [f32]) {
        let (d, width) = (config.hidden_size, config.query_width());
        let rows = hidden.len() / d;
        let (attended, eps) = (&mut self.attended[..rows * width], config.rms_norm_eps);
        let normed = &mut self.normed[..hidden.len()];
        let (matrix, bias) = (&layer.attention_out, layer.attention_out_bias.as_deref());
        match (&layer.norm_after_attention, bias) {
            (None, None) => matrix.multiply_add(RowsMut { data: hidden, stride: d }, attended),
            (None, Some(bias)) => {
                for row in hidden.chunks_exact_mut(d) {
                    row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
                }
                matrix.multiply_add(RowsMut { data: hidden, stride: d }, attended);
            }
            (Some(norm), bias) => {
                matrix.multiply_biased(RowsMut { data: normed, stride: d }, attended, bias);
                add_normed_rows(hidden, normed, norm, eps);
            }
        }
    }

    fn add_feed_forward(&mut self, config: &ModelConfig, layer: &LayerWeights, hidden: &mut [f32]) {
        let (d, f, eps) = (config.hidden_size, config.intermediate_size, config.rms_norm_eps);
        let rows = hidden.len() / d;
        let normed = &mut self.normed[..hidden.len()];
        rms_norm_rows(normed, hidden, &layer.mlp_norm, eps);
        let (out, by) =
            (RowsMut { data: &mut self.gated, stride: f }, config.architecture.activation);
        match &layer.up {
            Some(up) => multiply_gated(out, normed, &layer.gate, up, by),
            None => {
                layer.gate.multiply(out, normed);
                activate_rows(&mut self.gated[..rows * f], by);
            }
        }
        let gated = &mut self.gated[..rows * f];
        match &layer.norm_after_mlp {
            None => layer.down.multiply_add(RowsMut { data: hidden, stride: d }, gated),
            Some(norm) => {
                layer.down.multiply(RowsMut { data: normed, stride: d }, gated);
                add_normed_rows(hidden, normed, norm, eps);
            }
        }
    }
}
