//! The arithmetic of the decoder's layers over one block of rows.

use std::ops::Range;

use crate::attention::{self, HeadShape};
use crate::config::ModelConfig;
use crate::kernels::{
    Heads, RopeTable, RowsMut, RowsRef, add_normed_rows, multiply, multiply_gated, rms_norm_rows,
};
use crate::key_values::{OwnPart, Pieces, PromptPart};
use crate::model::Model;
use crate::plan::zeroed;
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
}

/// Positions of a block's rows, and the reach of a layer's sight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions<'a> {
    pub(crate) rope: &'a RopeTable,
    /// Most positions that a row sees; `usize::MAX` for all.
    pub(crate) window: usize,
    /// Of the first row.
    pub(crate) first: usize,
    /// How far the next row is from there: 1 in a prompt, 0 among beams.
    pub(crate) advance: usize,
}

impl Workspace {
    /// `None` where there is not the memory for it.
    pub(crate) fn new(config: &ModelConfig, rows: usize, score_places: usize) -> Option<Self> {
        let shape = HeadShape::of(config);
        Some(Self {
            normed: zeroed(rows * config.hidden_size)?,
            queries: zeroed(rows * shape.query_width())?,
            key_values: zeroed(rows * 2 * shape.key_value_width())?,
            attended: zeroed(rows * shape.query_width())?,
            gated: zeroed(rows * config.intermediate_size)?,
            scores: zeroed(score_places)?,
        })
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let Self { normed, queries, key_values, attended, gated, scores } = self;
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

    /// The same where rows are of several sequences: how many follow one another, and their positions.
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
            Heads { data, stride, heads, head_dim, norm, eps, rope, position, advance }
                .norm_and_turn();
        }
        data
    }

    /// The rest of a layer over prompt positions, whose keys and values are in `prompt`.
    pub(crate) fn finish_prompt_layer(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        positions: Positions<'_>,
        prompt: PromptPart<'_>,
        hidden: &mut [f32],
    ) {
        let rows = hidden.len() / config.hidden_size;
        self.finish_layer_of(config, layer, [(rows, positions, prompt)], hidden);
    }

    /// The same where rows are of several sequences: how many follow one another, their positions, and the keys and values of
    /// their sequence, which has these rows' already.
    pub(crate) fn finish_layer_of<'a, P: Pieces<'a>>(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        runs: impl IntoIterator<Item = (usize, Positions<'a>, P), IntoIter: Clone>,
        hidden: &mut [f32],
    ) {
        let runs = runs.into_iter();
        let positions = runs.clone().map(|(rows, positions, _)| (rows, positions));
        self.project_queries(config, layer, positions, hidden);
        let (shape, mut first) = (&HeadShape::of(config), 0);
        for (rows, positions, key_values) in runs {
            let start = first * shape.query_width();
            first += rows;
            let (queries, place) = (&self.queries[start..], (rows, positions.first));
            let (scores, out) = (&mut self.scores, &mut self.attended[start..]);
            attention::causal(shape, queries, key_values, place, positions.window, scores, out);
        }
        self.finish_layer(config, layer, hidden);
    }

    /// The rest of a layer over beams.
    pub(crate) fn finish_beam_layer(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        positions: Positions<'_>,
        prompt: (PromptPart<'_>, usize),
        own: OwnPart<'_>,
        hidden: &mut [f32],
    ) {
        let rows = hidden.len() / config.hidden_size;
        self.project_queries(config, layer, [(rows, positions)], hidden);
        let (rows, shape) = ((rows, positions.window), &HeadShape::of(config));
        let (scores, out) = (&mut self.scores, &mut self.attended);
        attention::beams(shape, &self.queries, prompt, own, rows, scores, out);
        self.finish_layer(config, layer, hidden);
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
        multiply(out, x, model.weights.head.columns(columns));
    }

    /// From the rows' normed values, anew: [`project_keys_and_values`](Self::project_keys_and_values) has used them up,
    /// or was for other rows last.
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
            Heads { data, stride, heads, head_dim, norm, eps, rope, position, advance }
                .norm_and_turn();
        }
    }

    /// Adds what was attended to, and the feed-forward part, to the residual stream.
    fn finish_layer(&mut self, config: &ModelConfig, layer: &LayerWeights, hidden: &mut [f32]) {
        let (d, f, width) = (config.hidden_size, config.intermediate_size, config.query_width());
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
        rms_norm_rows(normed, hidden, &layer.mlp_norm, eps);
        let out = RowsMut { data: &mut self.gated, stride: f };
        multiply_gated(out, normed, &layer.gate, &layer.up, config.architecture.activation);
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
