//! The arithmetic of the decoder's layers over the rows of one pass, attention excepted.

use std::ops::Range;

use crate::attention::HeadShape;
use crate::config::ModelConfig;
use crate::kernels::{
    MatMut, MatRef, RopeTable, Write, matmul, rms_norm, rms_norm_in_place, swiglu,
};
use crate::model::Model;
use crate::plan::zeroed;
use crate::weights::LayerWeights;

/// Activations of one pass, R rows: prompt positions or beams.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The residual stream, `[R, D]`
    pub(crate) hidden: Vec<f32>,
    /// `[R, D]`
    normed: Vec<f32>,
    /// `[R, (H + 2 G) C]`
    pub(crate) qkv: Vec<f32>,
    /// `[H, R, C]`
    pub(crate) heads: Vec<f32>,
    /// `[R, H·C]`
    attended: Vec<f32>,
    /// `[R, 2 F]`
    gate_up: Vec<f32>,
    /// `[R, F]`
    gated: Vec<f32>,
    /// Attention scores; see [`attention`](crate::attention)
    pub(crate) scores: Vec<f32>,
}

impl Rows {
    /// For at most `num_rows` rows, and as many places of scores as
    /// [`score_places`](crate::attention::score_places) says; `None` where there
    /// is not the memory for it.
    pub(crate) fn new(config: &ModelConfig, num_rows: usize, score_places: usize) -> Option<Self> {
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let (q, kv) = (config.query_width(), config.key_value_width());
        Some(Self {
            hidden: zeroed(num_rows * d)?,
            normed: zeroed(num_rows * d)?,
            qkv: zeroed(num_rows * (q + 2 * kv))?,
            heads: zeroed(num_rows * q)?,
            attended: zeroed(num_rows * q)?,
            gate_up: zeroed(num_rows * 2 * f)?,
            gated: zeroed(num_rows * f)?,
            scores: zeroed(score_places)?,
        })
    }

    #[cfg(test)]
    pub(crate) fn activation_bytes(&self) -> usize {
        let Self { hidden, normed, qkv, heads, attended, gate_up, gated, scores: _ } = self;
        let parts = [hidden, normed, qkv, heads, attended, gate_up, gated];
        parts.iter().map(|part| size_of_val(&***part)).sum()
    }

    pub(crate) fn project_qkv(
        &mut self,
        layer: &LayerWeights,
        eps: f32,
        rows: usize,
        threads: usize,
    ) {
        let d = layer.attention_norm.len();
        rms_norm(
            &mut self.normed[..rows * d],
            &self.hidden[..rows * d],
            &layer.attention_norm,
            eps,
        );
        linear(&mut self.qkv, Write::Replace, &self.normed, &layer.qkv, (rows, d), threads);
    }

    /// Norms each head of queries and keys and turns it to its position.
    pub(crate) fn position_queries_and_keys(
        &mut self,
        config: &ModelConfig,
        rope: &RopeTable,
        layer: &LayerWeights,
        rows: usize,
        first_position: usize,
        positions_advance: bool,
    ) {
        let (c, heads) = (config.head_dim, config.num_attention_heads);
        let width = config.query_width() + 2 * config.key_value_width();
        let turned = heads + config.num_key_value_heads;
        for (row, qkv) in self.qkv.chunks_exact_mut(width).take(rows).enumerate() {
            let position = first_position + if positions_advance { row } else { 0 };
            for (head, values) in qkv.chunks_exact_mut(c).take(turned).enumerate() {
                let weight = if head < heads { &layer.query_norm } else { &layer.key_norm };
                rms_norm_in_place(values, weight, config.rms_norm_eps);
                rope.rotate(values, position);
            }
        }
    }

    /// Adds the attention's output to the residual stream.
    pub(crate) fn finish_attention(
        &mut self,
        layer: &LayerWeights,
        shape: &HeadShape,
        rows: usize,
        threads: usize,
    ) {
        shape.gather_heads(&self.heads, rows, &mut self.attended);
        let width = shape.query_width();
        let out = &layer.attention_out;
        linear(&mut self.hidden, Write::Add, &self.attended, out, (rows, width), threads);
    }

    pub(crate) fn feed_forward(
        &mut self,
        layer: &LayerWeights,
        eps: f32,
        rows: usize,
        threads: usize,
    ) {
        let d = layer.mlp_norm.len();
        let f = layer.down.len() / d;
        let (hidden, normed) = (&self.hidden[..rows * d], &mut self.normed[..rows * d]);
        rms_norm(normed, hidden, &layer.mlp_norm, eps);
        linear(&mut self.gate_up, Write::Replace, &self.normed, &layer.gate_up, (rows, d), threads);
        swiglu(&mut self.gated[..rows * f], &self.gate_up[..rows * 2 * f], f);
        linear(&mut self.hidden, Write::Add, &self.gated, &layer.down, (rows, f), threads);
    }

    /// Logits of some rows of the residual stream into `logits`, `[rows, V]`.
    pub(crate) fn logits(
        &mut self,
        model: &Model,
        rows: Range<usize>,
        logits: &mut [f32],
        threads: usize,
    ) {
        let d = model.config.hidden_size;
        let count = rows.len();
        rms_norm(
            &mut self.normed[..count * d],
            &self.hidden[rows.start * d..rows.end * d],
            &model.weights.final_norm,
            model.config.rms_norm_eps,
        );
        linear(logits, Write::Replace, &self.normed, model.weights.head(), (count, d), threads);
    }
}

/// `out ← x · weightᵀ`: `x` is `[rows, width]`, `weight` `[outputs, width]`, `out` `[rows, outputs]`.
fn linear(
    out: &mut [f32],
    write: Write,
    x: &[f32],
    weight: &[f32],
    (rows, width): (usize, usize),
    threads: usize,
) {
    let outputs = weight.len() / width;
    matmul(
        MatMut::row_major(out, rows, outputs),
        write,
        1.0,
        MatRef::row_major(x, rows, width),
        MatRef::row_major(weight, outputs, width).transposed(),
        threads,
    );
}
