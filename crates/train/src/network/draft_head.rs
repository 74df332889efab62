//! The draft head and its loss: W, A, B and b of each level, forward and backward through all
//! levels at once.
//!
//! With h₀ the normed state after the prompt and h₁ … h_L those at the placeholders (of an item: a *branch*),
//! t_l the codes to be said and e_l their embeddings:
//!
//! ```text
//! s₁ = h₀    x_l = h_l + s_l    p_l = softmax(W_l x_l)    s_l₊₁ = tanh(A_l s_l + B_l e_l + b_l)
//! ```
//!
//! and the loss is `− Σ log p_l[t_l]`. Source: NEZHA (WWW 2026), equations 1 to 3 and 6; other
//! [`DraftForm`]s leave out parts. Backward, d_s runs from the last level to the first: what x_l
//! gives, and what s_l₊₁ hands on.
//!
//! Arrays are level-major: `[L, R, D]` for R branches, so that each level is one product.

use palmette_model::draft::{DraftForm, DraftInput};

use super::{cross_entropy, linear};
use crate::params::{DraftRanges, Layout};

/// Branches that are computed together.
pub(crate) const BRANCHES: usize = 64;

/// Form of the loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DraftLossForm {
    /// The share of the wanted distribution that is spread over the level's codes.
    pub(crate) label_smoothing: f32,
    /// Multiplies the gradient.
    pub(crate) scale: f32,
}

/// The memory of a pass over at most [`BRANCHES`] branches.
#[derive(Debug, Default)]
pub(crate) struct DraftScratch {
    /// h: `[1 + L, R, D]`, given.
    pub(crate) hidden: Vec<f32>,
    /// The tokens to be said, `[L, R]`, given.
    pub(crate) targets: Vec<u32>,
    /// The gradient with respect to `hidden`, replaced.
    pub(crate) d_hidden: Vec<f32>,
    /// s: `[L, R, D]`
    states: Vec<f32>,
    /// e: `[L, R, D]`
    embeddings: Vec<f32>,
    /// x: `[R, D]`
    inputs: Vec<f32>,
    /// `[L, R, D]`
    d_inputs: Vec<f32>,
    /// `[R, D]`
    d_state: Vec<f32>,
    /// `[R, D]`
    d_sum: Vec<f32>,
    /// `[R, codes]`
    logits: Vec<f32>,
}

impl DraftScratch {
    /// Makes every buffer long enough for `rows` branches, and `hidden` and `targets` exactly as
    /// long.
    pub(crate) fn prepare(&mut self, draft: &DraftRanges, width: usize, rows: usize) {
        let levels = draft.levels.len();
        let codes = draft.levels.iter().map(|level| level.num_codes).max().unwrap_or(0);
        self.hidden.resize((1 + levels) * rows * width, 0.0);
        self.d_hidden.resize((1 + levels) * rows * width, 0.0);
        self.targets.resize(levels * rows, 0);
        for buffer in [&mut self.states, &mut self.embeddings, &mut self.d_inputs] {
            buffer.resize(levels * rows * width, 0.0);
        }
        for buffer in [&mut self.inputs, &mut self.d_state, &mut self.d_sum] {
            buffer.resize(rows * width, 0.0);
        }
        self.logits.resize(rows * codes, 0.0);
    }
}

/// The sum of the losses of `rows` branches, whose hidden states and targets are in `scratch`,
/// which was prepared for them. With `gradient`, of all weights, adds to it and leaves the gradient
/// of the hidden states in `scratch`.
///
/// Without `embeddings_learn` the embeddings' part of `gradient` is left alone.
pub(crate) fn loss(
    layout: &Layout,
    weights: &[f32],
    rows: usize,
    form: DraftLossForm,
    mut gradient: Option<&mut [f32]>,
    embeddings_learn: bool,
    scratch: &mut DraftScratch,
) -> f64 {
    let draft = layout.draft.as_ref().expect("a layout with a draft head");
    let width = layout.config().hidden_size;
    let pass = Pass { layout, draft, width, rows, size: rows * width };
    let mut sum = 0.0;
    for level in 0..draft.levels.len() {
        pass.state(level, weights, scratch);
        pass.input(level, scratch);
        sum += pass.level_loss(level, weights, form, gradient.as_deref_mut(), scratch);
    }
    if let Some(gradient) = gradient {
        pass.backward(weights, gradient, embeddings_learn, scratch);
    }
    sum
}

struct Pass<'a> {
    layout: &'a Layout,
    draft: &'a DraftRanges,
    width: usize,
    rows: usize,
    /// rows · width
    size: usize,
}

impl Pass<'_> {
    fn form(&self) -> DraftForm {
        self.draft.form
    }

    /// s of a level, from the one before and the target there.
    fn state(&self, level: usize, weights: &[f32], scratch: &mut DraftScratch) {
        let (size, width) = (self.size, self.width);
        if !self.form().has_state() {
            return;
        }
        let Some(before) = level.checked_sub(1) else {
            scratch.states[..size].copy_from_slice(&scratch.hidden[..size]);
            return;
        };
        let targets = &scratch.targets[before * self.rows..level * self.rows];
        let embeddings = &mut scratch.embeddings[before * size..level * size];
        for (row, &token) in embeddings.chunks_exact_mut(width).zip(targets) {
            let from = self.layout.embedding.start + token as usize * width;
            row.copy_from_slice(&weights[from..from + width]);
        }
        let (earlier, later) = scratch.states.split_at_mut(level * size);
        let (earlier, state) = (&earlier[before * size..], &mut later[..size]);
        match &self.draft.levels[before].transition {
            None => {
                let parts = earlier.iter().zip(&*embeddings);
                state.iter_mut().zip(parts).for_each(|(out, (s, e))| *out = s + e);
            }
            Some(transition) => {
                let moved = &mut scratch.inputs[..size];
                linear::forward(moved, earlier, &weights[transition.state.clone()], self.rows);
                linear::forward(state, embeddings, &weights[transition.token.clone()], self.rows);
                let bias = &weights[transition.bias.clone()];
                let rows = state.chunks_exact_mut(width).zip(moved.chunks_exact(width));
                for (out, moved) in rows {
                    for ((out, moved), bias) in out.iter_mut().zip(moved).zip(bias) {
                        *out = (*out + moved + bias).tanh();
                    }
                }
            }
        }
    }

    /// x of a level.
    fn input(&self, level: usize, scratch: &mut DraftScratch) {
        let size = self.size;
        let placeholder = &scratch.hidden[(level + 1) * size..(level + 2) * size];
        let state = &scratch.states[level * size..(level + 1) * size];
        let inputs = &mut scratch.inputs[..size];
        match self.form().input {
            DraftInput::Both => {
                let parts = placeholder.iter().zip(state);
                inputs.iter_mut().zip(parts).for_each(|(x, (h, s))| *x = h + s);
            }
            DraftInput::Placeholder => inputs.copy_from_slice(placeholder),
            DraftInput::State => inputs.copy_from_slice(state),
            DraftInput::Prompt => inputs.copy_from_slice(&scratch.hidden[..size]),
        }
    }

    /// The loss of a level; with `gradient`, that of W, and `d_inputs`.
    fn level_loss(
        &self,
        level: usize,
        weights: &[f32],
        form: DraftLossForm,
        gradient: Option<&mut [f32]>,
        scratch: &mut DraftScratch,
    ) -> f64 {
        let (rows, size, at) = (self.rows, self.size, &self.draft.levels[level]);
        let logits = &mut scratch.logits[..rows * at.num_codes];
        let inputs = &scratch.inputs[..size];
        linear::forward(logits, inputs, &weights[at.head.clone()], rows);
        let targets = &scratch.targets[level * rows..(level + 1) * rows];
        let mut sum = 0.0;
        for (logits, &token) in logits.chunks_exact_mut(at.num_codes).zip(targets) {
            let code = token - at.first_token;
            sum +=
                cross_entropy::forward_backward_row(logits, code, form.label_smoothing, form.scale);
        }
        if let Some(gradient) = gradient {
            linear::backward_weight(&mut gradient[at.head.clone()], logits, inputs, rows);
            let d_inputs = &mut scratch.d_inputs[level * size..(level + 1) * size];
            linear::backward_input(d_inputs, logits, &weights[at.head.clone()], rows);
        }
        sum
    }

    /// From `d_inputs` to the gradients of the transitions, of embeddings and of `hidden`.
    fn backward(
        &self,
        weights: &[f32],
        gradient: &mut [f32],
        embeddings_learn: bool,
        scratch: &mut DraftScratch,
    ) {
        let (size, form) = (self.size, self.form());
        scratch.d_hidden.fill(0.0);
        scratch.d_state.fill(0.0);
        for level in (0..self.draft.levels.len()).rev() {
            let d_input = &scratch.d_inputs[level * size..(level + 1) * size];
            if form.has_placeholders() {
                add(&mut scratch.d_hidden[(level + 1) * size..(level + 2) * size], d_input);
            }
            if form.input == DraftInput::Prompt {
                add(&mut scratch.d_hidden[..size], d_input);
            }
            if !form.has_state() {
                continue;
            }
            add(&mut scratch.d_state, d_input);
            if level > 0 {
                self.backward_state(level, weights, gradient, embeddings_learn, scratch);
            }
        }
        // That of s₁ is that of h₀; 0 where there is no state.
        let (d_prompt, d_state) = (&mut scratch.d_hidden[..size], &scratch.d_state);
        add(d_prompt, d_state);
    }

    /// From d_s of `level` to that of the level before.
    fn backward_state(
        &self,
        level: usize,
        weights: &[f32],
        gradient: &mut [f32],
        embeddings_learn: bool,
        scratch: &mut DraftScratch,
    ) {
        let (size, rows, width, before) = (self.size, self.rows, self.width, level - 1);
        let embeddings = &scratch.embeddings[before * size..level * size];
        // The gradient of e: that of the sum where the state is only added to.
        let d_embeddings = &mut scratch.inputs[..size];
        match &self.draft.levels[before].transition {
            None => d_embeddings.copy_from_slice(&scratch.d_state),
            Some(transition) => {
                let state = &scratch.states[level * size..(level + 1) * size];
                let parts = scratch.d_state.iter().zip(state);
                let d_sum = &mut scratch.d_sum;
                d_sum.iter_mut().zip(parts).for_each(|(out, (d, s))| *out = d * (1.0 - s * s));
                for row in d_sum.chunks_exact(width) {
                    add(&mut gradient[transition.bias.clone()], row);
                }
                let d_token = &mut gradient[transition.token.clone()];
                linear::backward_weight(d_token, d_sum, embeddings, rows);
                let earlier = &scratch.states[before * size..level * size];
                let d_matrix = &mut gradient[transition.state.clone()];
                linear::backward_weight(d_matrix, d_sum, earlier, rows);
                let token = &weights[transition.token.clone()];
                linear::backward_input(d_embeddings, d_sum, token, rows);
                let matrix = &weights[transition.state.clone()];
                linear::backward_input(&mut scratch.d_state, d_sum, matrix, rows);
            }
        }
        if embeddings_learn {
            let targets = &scratch.targets[before * rows..level * rows];
            for (d_row, &token) in d_embeddings.chunks_exact(width).zip(targets) {
                let from = self.layout.embedding.start + token as usize * width;
                add(&mut gradient[from..from + width], d_row);
            }
        }
    }
}

/// `out += a`
fn add(out: &mut [f32], a: &[f32]) {
    assert_eq!(out.len(), a.len());
    out.iter_mut().zip(a).for_each(|(out, a)| *out += a);
}
