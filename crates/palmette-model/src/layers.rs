//! The arithmetic of the decoder's layers over one block of rows.

use std::ops::Range;

use crate::attention::{self, HeadShape};
use crate::config::ModelConfig;
use crate::kernels::{
    Heads, RopeTable, RowsMut, RowsRef, multiply, multiply_swiglu, rms_norm_rows,
};
use crate::key_values::{OwnPart, PromptPart};
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

/// Where a block's rows stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions<'a> {
    pub(crate) rope: &'a RopeTable,
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
        let (rows, eps) = (hidden.len() / config.hidden_size, config.rms_norm_eps);
        let stride = 2 * config.key_value_width();
        rms_norm_rows(&mut self.normed[..hidden.len()], hidden, &layer.attention_norm, eps);
        let out = RowsMut { data: &mut self.key_values, stride };
        layer.keys_values.multiply(out, &mut self.normed[..hidden.len()]);
        let data = &mut self.key_values[..rows * stride];
        let (heads, norm) = (config.num_key_value_heads, &*layer.key_norm);
        let Positions { rope, first: position, advance } = positions;
        Heads { data, stride, heads, norm, eps, rope, position, advance }.norm_and_turn();
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
        self.project_queries(config, layer, positions, hidden);
        let place = (rows, positions.first);
        let (scores, out) = (&mut self.scores, &mut self.attended);
        attention::causal(&HeadShape::of(config), &self.queries, prompt, place, scores, out);
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
        self.project_queries(config, layer, positions, hidden);
        let (scores, out) = (&mut self.scores, &mut self.attended);
        attention::beams(&HeadShape::of(config), &self.queries, prompt, own, rows, scores, out);
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
    fn project_queries(
        &mut self,
        config: &ModelConfig,
        layer: &LayerWeights,
        positions: Positions<'_>,
        hidden: &[f32],
    ) {
        let (d, eps) = (config.hidden_size, config.rms_norm_eps);
        let (rows, stride) = (hidden.len() / d, config.query_width());
        rms_norm_rows(&mut self.normed[..hidden.len()], hidden, &layer.attention_norm, eps);
        let out = RowsMut { data: &mut self.queries, stride };
        layer.queries.multiply(out, &mut self.normed[..hidden.len()]);
        let data = &mut self.queries[..rows * stride];
        let (heads, norm) = (config.num_attention_heads, &*layer.query_norm);
        let Positions { rope, first: position, advance } = positions;
        Heads { data, stride, heads, norm, eps, rope, position, advance }.norm_and_turn();
    }

    /// Adds what was attended to, and the feed-forward part, to the residual stream.
    fn finish_layer(&mut self, config: &ModelConfig, layer: &LayerWeights, hidden: &mut [f32]) {
        let (d, f, width) = (config.hidden_size, config.intermediate_size, config.query_width());
        let rows = hidden.len() / d;
        let attended = &mut self.attended[..rows * width];
        layer.attention_out.multiply_add(RowsMut { data: hidden, stride: d }, attended);
        let normed = &mut self.normed[..hidden.len()];
        rms_norm_rows(normed, hidden, &layer.mlp_norm, config.rms_norm_eps);
        multiply_swiglu(
            RowsMut { data: &mut self.gated, stride: f },
            normed,
            &layer.gate,
            &layer.up,
        );
        let gated = &mut self.gated[..rows * f];
        layer.down.multiply_add(RowsMut { data: hidden, stride: d }, gated);
    }
}
