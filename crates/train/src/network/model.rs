//! The whole decoder: layers composed forward, then walked backward.

use std::ops::Range;
use std::sync::Arc;

use palmette_model::ModelConfig;
use palmette_model::kernels::{RopeTable, rms_norm_row, swiglu};

use super::attention::{self, Heads};
use super::batch::{BatchView, Branches};
use super::draft_head::DraftLossForm;
use super::dropout::{Dropout, Site};
use super::output_head::{self, HeadGradients, LossForm};
use super::workspace::{LayerActivations, Scratch, Workspace};
use super::{branches, embedding, linear, rms_norm, swiglu};
use crate::params::{LayerRanges, Layout};

/// Objective of training: the mean cross-entropy of next tokens and of branches' codes. The former
/// is the mean over the targets of the whole batch, times
/// [`next_token_weight`](Self::next_token_weight).
#[derive(Clone, Copy, Debug)]
pub struct Objective {
    /// The share of the wanted distribution that is spread over the whole vocabulary, in [0, 1).
    pub label_smoothing: f32,
    /// Applied to the embedding, to attention weights, and to each residual branch.
    pub dropout: Dropout,
    /// Targets of the whole batch, of which the given part may be one shard.
    pub num_targets: usize,
    /// Factor of the next tokens' part.
    pub next_token_weight: f32,
    /// Codes that the branches of the whole batch are to say.
    pub num_draft_targets: usize,
}

/// Sums of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossSums {
    /// Over the next tokens, not weighted.
    pub next_token: f64,
    /// Over the codes of branches.
    pub draft: f64,
}

impl std::ops::Add for LossSums {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { next_token: self.next_token + other.next_token, draft: self.draft + other.draft }
    }
}

impl Objective {
    /// Loss that is minimised, from the sums over the whole batch.
    pub fn mean(&self, sums: LossSums) -> f64 {
        let mean = |sum: f64, count: usize| if count == 0 { 0.0 } else { sum / count as f64 };
        f64::from(self.next_token_weight) * mean(sums.next_token, self.num_targets)
            + mean(sums.draft, self.num_draft_targets)
    }
}

/// A decoder's arithmetic; the weights are passed in.
///
/// One call runs on one thread. Different calls may run at the same time, each with its own
/// [`Workspace`].
#[derive(Clone, Debug)]
pub struct Network {
    layout: Arc<Layout>,
    rope: RopeTable,
}

impl Network {
    /// The arithmetic of models with this layout.
    pub fn new(layout: Arc<Layout>) -> Self {
        let config = layout.config();
        let rope = config.rope_table(config.max_position_embeddings);
        let rope = rope.expect("memory for the angles of all positions");
        Self { layout, rope }
    }

    /// The shape of the model.
    pub fn config(&self) -> &ModelConfig {
        self.layout.config()
    }

    /// The **sums** of the losses of this part of the batch; adds to `gradient` its part of the
    /// gradient of [`Objective::mean`].
    ///
    /// # Panics
    /// When `weights` or `gradient` is of another layout, a token or target is outside the
    /// vocabulary, or a sequence is longer than `max_position_embeddings`.
    pub fn loss_and_gradient(
        &self,
        weights: &[f32],
        gradient: &mut [f32],
        batch: BatchView<'_>,
        objective: Objective,
        workspace: &mut Workspace,
    ) -> LossSums {
        self.forward(weights, batch, objective.dropout, workspace);
        let Workspace { layers, last, target_rows, head, draft, scratch } = workspace;
        let last = &last[..batch.tokens.len() * self.config().hidden_size];
        let d_stream = &mut scratch.d_stream[..last.len()];
        d_stream.fill(0.0);
        let gradients = HeadGradients { weights: gradient, d_last: d_stream };
        let form = LossForm {
            label_smoothing: objective.label_smoothing,
            scale: objective.next_token_weight / objective.num_targets as f32,
        };
        let targets = batch.targets;
        let next_token = output_head::loss(
            &self.layout,
            weights,
            last,
            target_rows,
            targets,
            form,
            Some(gradients),
            head,
        );
        let form = DraftLossForm {
            label_smoothing: objective.label_smoothing,
            scale: 1.0 / objective.num_draft_targets as f32,
        };
        let gradients = HeadGradients { weights: gradient, d_last: d_stream };
        let drafted =
            branches::loss(&self.layout, weights, last, batch, form, Some(gradients), draft);
        for (index, ranges) in self.layout.layers.iter().enumerate().rev() {
            let pass =
                LayerPass { network: self, ranges, index, batch, dropout: objective.dropout };
            pass.backward_feed_forward(weights, gradient, &layers[index], scratch);
            pass.backward_attention(weights, gradient, &layers[index], scratch);
        }
        let width = self.config().hidden_size;
        let d_stream = &mut scratch.d_stream[..batch.tokens.len() * width];
        drop_rows(d_stream, width, batch, objective.dropout, Site::Embedding);
        self.tables().backward(gradient, d_stream, batch.tokens, width);
        LossSums { next_token, draft: drafted }
    }

    /// The sums of the losses of this part of the batch, nothing dropped.
    ///
    /// # Panics
    /// As [`Network::loss_and_gradient`].
    pub fn loss(
        &self,
        weights: &[f32],
        batch: BatchView<'_>,
        label_smoothing: f32,
        workspace: &mut Workspace,
    ) -> LossSums {
        self.forward(weights, batch, Dropout::OFF, workspace);
        let Workspace { last, target_rows, head, draft, .. } = workspace;
        let (layout, scale) = (&self.layout, 0.0);
        let form = LossForm { label_smoothing, scale };
        let targets = batch.targets;
        let next_token =
            output_head::loss(layout, weights, last, target_rows, targets, form, None, head);
        let form = DraftLossForm { label_smoothing, scale };
        let draft = branches::loss(layout, weights, last, batch, form, None, draft);
        LossSums { next_token, draft }
    }

    /// The normed hidden states that a draft head reads, of each branch: `[branches, 1 + L, D]`,
    /// nothing dropped. Those at placeholders are 0 where the form has none.
    ///
    /// # Panics
    /// As [`Network::loss_and_gradient`], and when the layout has no draft head.
    pub(crate) fn draft_states(
        &self,
        weights: &[f32],
        batch: BatchView<'_>,
        workspace: &mut Workspace,
    ) -> Vec<f32> {
        self.forward(weights, batch, Dropout::OFF, workspace);
        branches::states(&self.layout, weights, &workspace.last, batch)
    }

    /// The numbers of the placeholders that each branch gets, from the vocabulary's end on.
    pub(crate) fn placeholders(&self) -> Range<u32> {
        let draft = self.layout.draft.as_ref().filter(|draft| draft.form.has_placeholders());
        let (first, count) =
            (self.config().vocab_size as u32, draft.map_or(0, |draft| draft.levels.len()));
        first..first + count as u32
    }

    /// Checks the branches of a sequence of `num_tokens`.
    ///
    /// # Errors
    /// A sentence about the first that cannot be computed.
    pub(crate) fn check_branches(
        &self,
        branches: &Branches,
        num_tokens: usize,
    ) -> Result<(), String> {
        let Branches { after, targets } = branches;
        let levels = self.layout.draft.as_ref().map_or(&[][..], |draft| &draft.levels);
        if targets.len() != after.len() * levels.len() {
            return Err(format!(
                "{} branches are to say {} tokens; the draft head says {} in each",
                after.len(),
                targets.len(),
                levels.len()
            ));
        }
        if let Some(after) = after.iter().find(|&&n| n == 0 || n as usize > num_tokens) {
            return Err(format!("a branch comes after {after} of {num_tokens} tokens"));
        }
        for (&token, level) in targets.iter().zip(levels.iter().cycle()) {
            let (first, count) = (level.first_token, level.num_codes as u32);
            if !(first..first + count).contains(&token) {
                let last = first + count - 1;
                return Err(format!("a branch is to say {token} of the tokens {first} to {last}"));
            }
        }
        Ok(())
    }

    fn tables(&self) -> embedding::Tables {
        let draft = self.layout.draft.as_ref();
        let placeholders = draft.and_then(|draft| draft.placeholders.clone());
        embedding::Tables { tokens: self.layout.embedding.clone(), placeholders }
    }

    /// The logits at every position of every sequence, `[N, V]`, nothing dropped.
    ///
    /// Meant for checks against inference: it computes all rows and allocates its answer.
    ///
    /// # Panics
    /// As [`Network::loss_and_gradient`].
    pub fn logits(
        &self,
        weights: &[f32],
        batch: BatchView<'_>,
        workspace: &mut Workspace,
    ) -> Vec<f32> {
        self.forward(weights, batch, Dropout::OFF, workspace);
        let (rows, width) = (batch.tokens.len(), self.config().hidden_size);
        let (mut normed, mut scales) = (vec![0.0; rows * width], vec![0.0; rows]);
        let norm = &weights[self.layout.final_norm.clone()];
        let last = &workspace.last[..rows * width];
        rms_norm::forward(&mut normed, &mut scales, last, norm, self.config().rms_norm_eps);
        let mut logits = vec![0.0; rows * self.config().vocab_size];
        linear::forward(&mut logits, &normed, &weights[self.layout.head.clone()], rows);
        logits
    }

    /// Leaves the residual stream in `workspace.last`, and each layer's activations.
    fn forward(
        &self,
        weights: &[f32],
        batch: BatchView<'_>,
        dropout: Dropout,
        workspace: &mut Workspace,
    ) {
        assert_eq!(weights.len(), self.layout.num_weights(), "weights of another layout");
        workspace.prepare(&self.layout, batch);
        output_head::find_target_rows(&mut workspace.target_rows, batch.targets);
        let width = self.config().hidden_size;
        let len = batch.tokens.len() * width;
        let Workspace { layers, last, scratch, .. } = workspace;
        let stream = &mut layers.first_mut().map_or(&mut *last, |layer| &mut layer.input)[..len];
        self.tables().forward(stream, batch.tokens, weights, width);
        drop_rows(stream, width, batch, dropout, Site::Embedding);
        for (index, ranges) in self.layout.layers.iter().enumerate() {
            let (done, next) = layers.split_at_mut(index + 1);
            let output = next.first_mut().map_or(&mut *last, |layer| &mut layer.input);
            let pass = LayerPass { network: self, ranges, index, batch, dropout };
            pass.forward(weights, &mut done[index], scratch, &mut output[..len]);
        }
    }
}

/// One layer's work on one batch.
struct LayerPass<'a> {
    network: &'a Network,
    ranges: &'a LayerRanges,
    index: usize,
    batch: BatchView<'a>,
    dropout: Dropout,
}

impl LayerPass<'_> {
    fn rows(&self) -> usize {
        self.batch.tokens.len()
    }

    fn forward(
        &self,
        weights: &[f32],
        kept: &mut LayerActivations,
        scratch: &mut Scratch,
        output: &mut [f32],
    ) {
        let (config, ranges, rows) = (self.network.config(), self.ranges, self.rows());
        let (heads, eps, width) = (Heads::new(config), config.rms_norm_eps, config.hidden_size);
        let inner = config.intermediate_size;

        let input = &kept.input[..rows * width];
        let normed = &mut kept.normed[..rows * width];
        let norm = &weights[ranges.input_norm.clone()];
        rms_norm::forward(normed, &mut kept.norm_scale[..rows], input, norm, eps);
        let projected = &mut kept.projected[..rows * heads.projected_width()];
        linear::forward(projected, normed, &weights[ranges.query_key_value.clone()], rows);
        if let Some(bias) = &ranges.query_key_value_bias {
            let bias = &weights[bias.clone()];
            projected.chunks_exact_mut(bias.len()).for_each(|row| add(row, bias));
        }
        self.norm_and_turn(weights, &mut kept.queries_keys, &mut kept.head_norm_scale, projected);
        let attended = &mut kept.attended[..rows * heads.output_width()];
        attention::forward(
            attended,
            &mut kept.attention_weights,
            &mut scratch.attention[0],
            &kept.queries_keys,
            projected,
            heads,
            self.batch,
            self.dropout,
            self.index,
        );
        let middle = &mut kept.middle[..rows * width];
        linear::forward(middle, attended, &weights[ranges.output.clone()], rows);
        drop_rows(middle, width, self.batch, self.dropout, Site::AttentionBranch(self.index));
        add(middle, input);

        let normed = &mut kept.middle_normed[..rows * width];
        let norm = &weights[ranges.feed_forward_norm.clone()];
        rms_norm::forward(normed, &mut kept.middle_norm_scale[..rows], middle, norm, eps);
        let gate_up = &mut kept.gate_up[..rows * 2 * inner];
        linear::forward(gate_up, normed, &weights[ranges.gate_up.clone()], rows);
        let activated = &mut kept.activated[..rows * inner];
        swiglu(activated, gate_up, inner);
        linear::forward(output, activated, &weights[ranges.down.clone()], rows);
        drop_rows(output, width, self.batch, self.dropout, Site::FeedForwardBranch(self.index));
        add(output, middle);
    }

    /// From the gradient of the layer's output, in `d_stream`, to that of `middle`.
    fn backward_feed_forward(
        &self,
        weights: &[f32],
        gradient: &mut [f32],
        kept: &LayerActivations,
        scratch: &mut Scratch,
    ) {
        let (config, ranges, rows) = (self.network.config(), self.ranges, self.rows());
        let (width, inner) = (config.hidden_size, config.intermediate_size);
        let d_stream = &mut scratch.d_stream[..rows * width];
        let d_branch = &mut scratch.d_branch[..rows * width];
        d_branch.copy_from_slice(d_stream);
        drop_rows(d_branch, width, self.batch, self.dropout, Site::FeedForwardBranch(self.index));
        let activated = &kept.activated[..rows * inner];
        linear::backward_weight(&mut gradient[ranges.down.clone()], d_branch, activated, rows);
        let d_activated = &mut scratch.d_activated[..rows * inner];
        linear::backward_input(d_activated, d_branch, &weights[ranges.down.clone()], rows);
        let d_gate_up = &mut scratch.d_gate_up[..rows * 2 * inner];
        swiglu::backward(d_gate_up, d_activated, &kept.gate_up[..rows * 2 * inner], inner);
        let normed = &kept.middle_normed[..rows * width];
        linear::backward_weight(&mut gradient[ranges.gate_up.clone()], d_gate_up, normed, rows);
        let d_normed = &mut scratch.d_normed[..rows * width];
        linear::backward_input(d_normed, d_gate_up, &weights[ranges.gate_up.clone()], rows);
        rms_norm::backward(
            d_stream,
            &mut gradient[ranges.feed_forward_norm.clone()],
            &mut scratch.row[..width],
            d_normed,
            &kept.middle[..rows * width],
            &weights[ranges.feed_forward_norm.clone()],
            &kept.middle_norm_scale[..rows],
        );
    }

    /// From the gradient of `middle`, in `d_stream`, to that of the layer's input.
    fn backward_attention(
        &self,
        weights: &[f32],
        gradient: &mut [f32],
        kept: &LayerActivations,
        scratch: &mut Scratch,
    ) {
        let (config, ranges, rows) = (self.network.config(), self.ranges, self.rows());
        let (heads, width) = (Heads::new(config), config.hidden_size);
        let d_stream = &scratch.d_stream[..rows * width];
        let d_branch = &mut scratch.d_branch[..rows * width];
        d_branch.copy_from_slice(d_stream);
        drop_rows(d_branch, width, self.batch, self.dropout, Site::AttentionBranch(self.index));
        let attended = &kept.attended[..rows * heads.output_width()];
        linear::backward_weight(&mut gradient[ranges.output.clone()], d_branch, attended, rows);
        let d_attended = &mut scratch.d_attended[..rows * heads.output_width()];
        linear::backward_input(d_attended, d_branch, &weights[ranges.output.clone()], rows);
        let d_queries_keys = &mut scratch.d_queries_keys[..rows * heads.queries_keys_width()];
        let d_projected = &mut scratch.d_projected[..rows * heads.projected_width()];
        d_queries_keys.fill(0.0);
        d_projected.fill(0.0);
        let [block, other_block] = &mut scratch.attention;
        attention::backward(
            d_queries_keys,
            d_projected,
            [block, other_block],
            d_attended,
            &kept.attention_weights,
            &kept.queries_keys,
            &kept.projected,
            heads,
            self.batch,
            self.dropout,
            self.index,
        );
        self.norm_and_turn_backward(weights, gradient, kept, scratch);
        let d_stream = &mut scratch.d_stream[..rows * width];
        let d_projected = &scratch.d_projected[..rows * heads.projected_width()];
        let normed = &kept.normed[..rows * width];
        let projection = ranges.query_key_value.clone();
        if let Some(bias) = &ranges.query_key_value_bias {
            let d_bias = &mut gradient[bias.clone()];
            d_projected.chunks_exact(d_bias.len()).for_each(|row| add(d_bias, row));
        }
        linear::backward_weight(&mut gradient[projection.clone()], d_projected, normed, rows);
        let d_normed = &mut scratch.d_normed[..rows * width];
        linear::backward_input(d_normed, d_projected, &weights[projection], rows);
        rms_norm::backward(
            d_stream,
            &mut gradient[ranges.input_norm.clone()],
            &mut scratch.row[..width],
            d_normed,
            &kept.input[..rows * width],
            &weights[ranges.input_norm.clone()],
            &kept.norm_scale[..rows],
        );
    }

    /// Norms each head of the projected queries and keys, where there are such norms, then turns it
    /// to its position.
    fn norm_and_turn(
        &self,
        weights: &[f32],
        queries_keys: &mut [f32],
        scales: &mut [f32],
        projected: &[f32],
    ) {
        let (config, heads) = (self.network.config(), Heads::new(self.network.config()));
        let (dim, count) = (heads.dim, heads.query + heads.key_value);
        for (_, at) in self.batch.sequences() {
            for (place, row) in at.enumerate() {
                let position = self.batch.seen()[row].position(place);
                let x = &projected[row * heads.projected_width()..];
                let y = &mut queries_keys[row * count * dim..][..count * dim];
                for head in 0..count {
                    let (x, y) = (&x[head * dim..][..dim], &mut y[head * dim..][..dim]);
                    match self.head_norm(heads, head) {
                        Some(norm) => {
                            let scale = &mut scales[row * count + head];
                            *scale = rms_norm_row(y, x, &weights[norm], config.rms_norm_eps);
                        }
                        None => y.copy_from_slice(x),
                    }
                    self.network.rope.rotate(y, position);
                }
            }
        }
    }

    /// Adds to the query and key columns of `d_projected`; turns `d_queries_keys` back in place.
    fn norm_and_turn_backward(
        &self,
        weights: &[f32],
        gradient: &mut [f32],
        kept: &LayerActivations,
        scratch: &mut Scratch,
    ) {
        let heads = Heads::new(self.network.config());
        let (dim, count) = (heads.dim, heads.query + heads.key_value);
        for (_, at) in self.batch.sequences() {
            for (place, row) in at.enumerate() {
                let position = self.batch.seen()[row].position(place);
                let x = &kept.projected[row * heads.projected_width()..];
                let d_x = &mut scratch.d_projected[row * heads.projected_width()..];
                let d_y = &mut scratch.d_queries_keys[row * count * dim..][..count * dim];
                for head in 0..count {
                    let d_y = &mut d_y[head * dim..][..dim];
                    let d_x = &mut d_x[head * dim..][..dim];
                    self.network.rope.rotate_back(d_y, position);
                    let Some(norm) = self.head_norm(heads, head) else {
                        add(d_x, d_y);
                        continue;
                    };
                    rms_norm::backward_row(
                        d_x,
                        &mut gradient[norm.clone()],
                        &mut scratch.row,
                        d_y,
                        &x[head * dim..][..dim],
                        &weights[norm],
                        kept.head_norm_scale[row * count + head],
                    );
                }
            }
        }
    }

    /// The norm of a head, counted over queries, then keys; `None` where heads have none.
    fn head_norm(&self, heads: Heads, head: usize) -> Option<Range<usize>> {
        let [query, key] = self.ranges.head_norms.as_ref()?;
        Some(if head < heads.query { query.clone() } else { key.clone() })
    }
}

/// Applies a site's dropout to `[N, width]`; its own backward pass.
fn drop_rows(values: &mut [f32], width: usize, batch: BatchView<'_>, dropout: Dropout, site: Site) {
    if dropout.is_off() {
        return;
    }
    for (sequence, at) in batch.sequences() {
        let stream = dropout.stream(site, sequence);
        stream.apply(&mut values[at.start * width..at.end * width], 0);
    }
}

/// `out += a`
fn add(out: &mut [f32], a: &[f32]) {
    assert_eq!(out.len(), a.len());
    for (out, a) in out.iter_mut().zip(a) {
        *out += a;
    }
}

#[cfg(test)]
mod tests {
    use palmette_model::draft::{DraftForm, DraftInput, DraftShape, DraftTransition};
    use palmette_model::{Architecture, Family};

    use super::*;
    use crate::network::batch::{NO_TARGET, PackedBatch};
    use crate::network::testing::{assert_close, check_gradient, reference, tiny_config, to_f64};
    use crate::params::Params;

    /// Weights far from their initial values, so that every path carries a visible gradient.
    fn weights(config: &ModelConfig) -> Params {
        let mut params = Params::init(config, 5);
        let noise = crate::network::testing::floats(params.values().len(), 11);
        params.values_mut().iter_mut().zip(noise).for_each(|(w, noise)| *w += 0.4 * noise);
        params
    }

    fn batch() -> PackedBatch {
        let mut batch = PackedBatch::default();
        batch.push(&[3, 1, 4, 1, 5], &[1, 4, 1, 5, 9]);
        batch.push(&[2], &[7]);
        batch.push(&[6, 5, 3], &[NO_TARGET, 3, NO_TARGET]);
        batch
    }

    fn plain_objective(label_smoothing: f32, num_targets: usize) -> Objective {
        let (next_token_weight, num_draft_targets) = (1.0, 0);
        let dropout = Dropout::OFF;
        Objective { label_smoothing, dropout, num_targets, next_token_weight, num_draft_targets }
    }

    #[track_caller]
    fn check(tied: bool, rate: f32, label_smoothing: f32) {
        check_of(Family::Qwen3, tied, rate, label_smoothing);
    }

    #[track_caller]
    fn check_of(family: Family, tied: bool, rate: f32, label_smoothing: f32) {
        let architecture = Architecture::of(family, 6);
        let config = ModelConfig { architecture, ..tiny_config(tied) };
        let params = weights(&config);
        let network = Network::new(Arc::clone(params.layout()));
        let batch = batch();
        let objective = Objective {
            label_smoothing,
            dropout: Dropout { rate, seed: 9, step: 2 },
            num_targets: batch.num_targets(),
            next_token_weight: 1.0,
            num_draft_targets: 0,
        };
        let mut gradient = vec![0.0; params.values().len()];
        let mut workspace = Workspace::default();
        let loss = network.loss_and_gradient(
            params.values(),
            &mut gradient,
            batch.view(),
            objective,
            &mut workspace,
        );
        let exact = |weights: &[f64]| {
            reference::mean_loss(params.layout(), weights, batch.view(), objective)
        };
        let weights = to_f64(params.values());
        let wanted = exact(&weights);
        let found = objective.mean(loss);
        assert!((found - wanted).abs() < 1e-5 * wanted, "loss {found}, not {wanted}");
        for tensor in params.layout().tensors() {
            let range = tensor.range();
            let mut moved = weights.clone();
            let name = format!("{} of {family:?} (tied {tied}, rate {rate})", tensor.name);
            check_gradient(&name, &gradient[range.clone()], &weights[range.clone()], |part| {
                moved[range.clone()].copy_from_slice(part);
                exact(&moved)
            });
        }
    }

    #[test]
    fn every_tensor_of_a_tied_model() {
        check(true, 0.0, 0.0);
        check(true, 0.3, 0.1);
    }

    #[test]
    fn every_tensor_of_an_untied_model() {
        check(false, 0.3, 0.1);
    }

    #[test]
    fn every_tensor_without_norms_of_heads_and_with_biases() {
        check_of(Family::Llama, true, 0.0, 0.0);
        check_of(Family::Llama, false, 0.3, 0.1);
        check_of(Family::Qwen2, true, 0.3, 0.1);
        let tensors = |family| {
            let architecture = Architecture::of(family, 6);
            let layout = Layout::new(&ModelConfig { architecture, ..tiny_config(true) });
            let named = |part| layout.tensors().iter().filter(|of| of.name.contains(part)).count();
            (named("_norm.weight"), named("_proj.bias"))
        };
        // Two layers.
        assert_eq!(tensors(Family::Qwen3), (4, 0));
        assert_eq!(tensors(Family::Llama), (0, 0));
        assert_eq!(tensors(Family::Qwen2), (0, 6));
    }

    /// Items of two codes, tokens 2 to 5 and 6 to 9; branches after one token, in the middle and at
    /// the end.
    fn drafting(form: DraftForm, tied: bool) -> (Params, PackedBatch) {
        let shape = DraftShape { levels: vec![(2, 4), (6, 4)] };
        let decoder = weights(&tiny_config(tied));
        let mut params = Params::with_draft(&decoder, form, &shape, 3);
        let noise = crate::network::testing::floats(params.values().len(), 12);
        params.values_mut().iter_mut().zip(noise).for_each(|(w, noise)| *w += 0.2 * noise);
        let network = Network::new(Arc::clone(params.layout()));
        let mut batch = PackedBatch::default();
        let branches = Branches { after: vec![1, 3, 5], targets: vec![2, 7, 5, 8, 2, 9] };
        let (tokens, targets) = ([1, 2, 7, 5, 8], [2, 7, 5, 8, NO_TARGET]);
        network.check_branches(&branches, tokens.len()).unwrap();
        batch.push_with_branches(&tokens, &targets, &branches, network.placeholders());
        batch.push(&[1, 3], &[3, 6]);
        let branches = Branches { after: vec![1], targets: vec![4, 6] };
        batch.push_with_branches(&[1], &[4], &branches, network.placeholders());
        (params, batch)
    }

    #[track_caller]
    fn check_draft(form: DraftForm, tied: bool, rate: f32, label_smoothing: f32) {
        let (params, batch) = drafting(form, tied);
        let network = Network::new(Arc::clone(params.layout()));
        let objective = Objective {
            label_smoothing,
            dropout: Dropout { rate, seed: 9, step: 2 },
            num_targets: batch.num_targets(),
            next_token_weight: 0.7,
            num_draft_targets: batch.num_branch_targets(),
        };
        let mut gradient = vec![0.0; params.values().len()];
        let loss = network.loss_and_gradient(
            params.values(),
            &mut gradient,
            batch.view(),
            objective,
            &mut Workspace::default(),
        );
        let exact = |weights: &[f64]| {
            reference::mean_loss(params.layout(), weights, batch.view(), objective)
        };
        let weights = to_f64(params.values());
        let (found, wanted) = (objective.mean(loss), exact(&weights));
        assert!((found - wanted).abs() < 1e-5 * wanted, "{form:?}: loss {found}, not {wanted}");
        for tensor in params.layout().tensors() {
            let range = tensor.range();
            let mut moved = weights.clone();
            let name = format!("{} ({form:?}, rate {rate})", tensor.name);
            check_gradient(&name, &gradient[range.clone()], &weights[range.clone()], |part| {
                moved[range.clone()].copy_from_slice(part);
                exact(&moved)
            });
        }
    }

    #[test]
    fn every_tensor_of_a_draft_head_and_its_decoder() {
        check_draft(DraftForm::default(), true, 0.0, 0.0);
        check_draft(DraftForm::default(), false, 0.3, 0.1);
    }

    #[test]
    fn every_tensor_of_the_other_forms() {
        for input in [DraftInput::Placeholder, DraftInput::State, DraftInput::Prompt] {
            let transition = DraftTransition::Rnn;
            check_draft(DraftForm { input, transition }, true, 0.0, 0.1);
        }
        let (input, transition) = (DraftInput::Both, DraftTransition::Add);
        check_draft(DraftForm { input, transition }, true, 0.0, 0.0);
    }

    /// A branch in a packed sequence is what a sequence of its own would be.
    #[test]
    fn branches_see_their_prefix_and_nothing_else() {
        let (params, batch) = drafting(DraftForm::default(), true);
        let network = Network::new(Arc::clone(params.layout()));
        let mut workspace = Workspace::default();
        let together = network.draft_states(params.values(), batch.view(), &mut workspace);
        let per_branch = 3 * network.config().hidden_size;
        let prefixes: [&[u32]; 4] = [&[1], &[1, 2, 7], &[1, 2, 7, 5, 8], &[1]];
        for (branch, prefix) in prefixes.iter().enumerate() {
            let mut alone = PackedBatch::default();
            let targets = vec![NO_TARGET; prefix.len()];
            let after = vec![prefix.len() as u32];
            let branches = Branches { after, targets: vec![2, 6] };
            alone.push_with_branches(prefix, &targets, &branches, network.placeholders());
            let states = network.draft_states(params.values(), alone.view(), &mut workspace);
            assert_close(
                "states",
                &states,
                &to_f64(&together[branch * per_branch..][..per_branch]),
            );
        }
    }

    #[test]
    #[should_panic(expected = "up_proj")]
    fn a_wrong_gradient_is_found() {
        let config = tiny_config(true);
        let params = weights(&config);
        let network = Network::new(Arc::clone(params.layout()));
        let batch = batch();
        let num_targets = batch.num_targets();
        let objective = plain_objective(0.0, num_targets);
        let mut gradient = vec![0.0; params.values().len()];
        network.loss_and_gradient(
            params.values(),
            &mut gradient,
            batch.view(),
            objective,
            &mut Workspace::default(),
        );
        let tensors = params.layout().tensors();
        let tensor =
            tensors.iter().find(|t| t.name == "model.layers.1.mlp.up_proj.weight").unwrap();
        let range = tensor.range();
        gradient[range.start + 3] *= 1.02;
        let weights = to_f64(params.values());
        let mut moved = weights.clone();
        check_gradient(&tensor.name, &gradient[range.clone()], &weights[range.clone()], |part| {
            moved[range.clone()].copy_from_slice(part);
            reference::mean_loss(params.layout(), &moved, batch.view(), objective)
        });
    }

    #[test]
    fn logits_do_not_depend_on_the_neighbours() {
        let config = tiny_config(true);
        let params = weights(&config);
        let network = Network::new(Arc::clone(params.layout()));
        let mut workspace = Workspace::default();
        let packed = network.logits(params.values(), batch().view(), &mut workspace);
        let mut alone = PackedBatch::default();
        alone.push(&[6, 5, 3], &[NO_TARGET; 3]);
        // The same workspace: what the larger batch left behind must not show.
        let alone = network.logits(params.values(), alone.view(), &mut workspace);
        assert_close("logits", &alone, &to_f64(&packed[6 * config.vocab_size..]));
    }

    #[test]
    fn loss_alone_equals_loss_with_gradient() {
        let params = weights(&tiny_config(false));
        let network = Network::new(Arc::clone(params.layout()));
        let batch = batch();
        let num_targets = batch.num_targets();
        let objective = plain_objective(0.2, num_targets);
        let (mut gradient, mut workspace) =
            (vec![0.0; params.values().len()], Workspace::default());
        let both = network.loss_and_gradient(
            params.values(),
            &mut gradient,
            batch.view(),
            objective,
            &mut workspace,
        );
        assert_eq!(both, network.loss(params.values(), batch.view(), 0.2, &mut workspace));
    }
}
