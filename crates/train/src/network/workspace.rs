//! The memory of one shard's pass, reused from step to step.

use super::attention::Heads;
use super::batch::BatchView;
use super::branches::BranchScratch;
use super::output_head;
use crate::params::Layout;

/// Activations and scratch of one shard.
///
/// Buffers grow to the largest shard seen and never shrink: once the longest batch has passed, a
/// step allocates nothing. A batch uses the front of each buffer, so what lies behind is stale.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(crate) layers: Vec<LayerActivations>,
    /// `[N, D]`: the residual stream after the last layer.
    pub(crate) last: Vec<f32>,
    /// Places of the tokens that have a target.
    pub(crate) target_rows: Vec<u32>,
    pub(crate) head: HeadScratch,
    pub(crate) draft: BranchScratch,
    pub(crate) scratch: Scratch,
}

/// Activations of one layer's forward pass, kept for its backward pass.
#[derive(Debug, Default)]
pub(crate) struct LayerActivations {
    /// `[N, D]`: the residual stream that enters the layer.
    pub(crate) input: Vec<f32>,
    /// `[N, D]`
    pub(crate) normed: Vec<f32>,
    /// `[N]`
    pub(crate) norm_scale: Vec<f32>,
    /// `[N, (H + 2G)·C]`: queries and keys before their norms, and values.
    pub(crate) projected: Vec<f32>,
    /// `[N, H + G]`
    pub(crate) head_norm_scale: Vec<f32>,
    /// `[N, (H + G)·C]`: queries and keys, normed and turned.
    pub(crate) queries_keys: Vec<f32>,
    /// `[H, T, T]` of each sequence, one sequence after another.
    pub(crate) attention_weights: Vec<f32>,
    /// `[N, H·C]`
    pub(crate) attended: Vec<f32>,
    /// `[N, D]`: the residual stream between attention and feed-forward.
    pub(crate) middle: Vec<f32>,
    /// `[N, D]`
    pub(crate) middle_normed: Vec<f32>,
    /// `[N]`
    pub(crate) middle_norm_scale: Vec<f32>,
    /// `[N, 2F]`
    pub(crate) gate_up: Vec<f32>,
    /// `[N, F]`
    pub(crate) activated: Vec<f32>,
}

/// Gradients that live within one layer's backward pass, and the scratch of both passes.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// `[N, D]`: gradient of the residual stream.
    pub(crate) d_stream: Vec<f32>,
    /// `[N, D]`: gradient of a residual branch's output.
    pub(crate) d_branch: Vec<f32>,
    /// `[N, D]`
    pub(crate) d_normed: Vec<f32>,
    /// `[N, F]`
    pub(crate) d_activated: Vec<f32>,
    /// `[N, 2F]`
    pub(crate) d_gate_up: Vec<f32>,
    /// `[N, H·C]`
    pub(crate) d_attended: Vec<f32>,
    /// `[N, (H + G)·C]`
    pub(crate) d_queries_keys: Vec<f32>,
    /// `[N, (H + 2G)·C]`
    pub(crate) d_projected: Vec<f32>,
    /// Two blocks of attention weights.
    pub(crate) attention: [Vec<f32>; 2],
    /// One row, for the norms.
    pub(crate) row: Vec<f32>,
}

/// The output head's scratch; it works on a bounded number of rows at a time.
#[derive(Debug, Default)]
pub(crate) struct HeadScratch {
    /// `[R, D]`
    pub(crate) normed: Vec<f32>,
    /// `[R]`
    pub(crate) norm_scale: Vec<f32>,
    /// `[R, V]`
    pub(crate) logits: Vec<f32>,
    /// `[R, D]`
    pub(crate) d_normed: Vec<f32>,
    /// One row, for the norm.
    pub(crate) row: Vec<f32>,
}

impl Workspace {
    /// Makes every buffer long enough for this batch.
    pub(crate) fn prepare(&mut self, layout: &Layout, batch: BatchView<'_>) {
        let config = layout.config();
        let (rows, width, inner) =
            (batch.tokens.len(), config.hidden_size, config.intermediate_size);
        let heads = Heads::new(config);
        let weights = heads.query * batch.sum_of_squares();
        self.layers.resize_with(layout.layers.len(), LayerActivations::default);
        for layer in &mut self.layers {
            grow(&mut layer.input, rows * width);
            grow(&mut layer.normed, rows * width);
            grow(&mut layer.norm_scale, rows);
            grow(&mut layer.projected, rows * heads.projected_width());
            grow(&mut layer.head_norm_scale, rows * (heads.query + heads.key_value));
            grow(&mut layer.queries_keys, rows * heads.queries_keys_width());
            grow(&mut layer.attention_weights, weights);
            grow(&mut layer.attended, rows * heads.output_width());
            grow(&mut layer.middle, rows * width);
            grow(&mut layer.middle_normed, rows * width);
            grow(&mut layer.middle_norm_scale, rows);
            grow(&mut layer.gate_up, rows * 2 * inner);
            grow(&mut layer.activated, rows * inner);
        }
        grow(&mut self.last, rows * width);
        let scratch = &mut self.scratch;
        grow(&mut scratch.d_stream, rows * width);
        grow(&mut scratch.d_branch, rows * width);
        grow(&mut scratch.d_normed, rows * width);
        grow(&mut scratch.d_activated, rows * inner);
        grow(&mut scratch.d_gate_up, rows * 2 * inner);
        grow(&mut scratch.d_attended, rows * heads.output_width());
        grow(&mut scratch.d_queries_keys, rows * heads.queries_keys_width());
        grow(&mut scratch.d_projected, rows * heads.projected_width());
        for block in &mut scratch.attention {
            grow(block, Heads::scratch_len(batch.longest()));
        }
        grow(&mut scratch.row, width.max(config.head_dim));
        let head_rows = output_head::ROWS.min(rows);
        grow(&mut self.head.normed, head_rows * width);
        grow(&mut self.head.norm_scale, head_rows);
        grow(&mut self.head.logits, head_rows * config.vocab_size);
        grow(&mut self.head.d_normed, head_rows * width);
        grow(&mut self.head.row, width);
    }
}

fn grow(buffer: &mut Vec<f32>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
}
