//! The end of the network: final norm, output projection and loss, where a token has a target.
//!
//! Forward and backward are one: nothing after the loss needs its gradient, so a block of rows goes
//! there and back while its logits are still in cache, and no `[N, V]` array exists.

use palmette_model::kernels::rms_norm_row;

use super::batch::NO_TARGET;
use super::workspace::HeadScratch;
use super::{cross_entropy, linear, rms_norm};
use crate::params::Layout;

/// Rows with a target that are computed together.
pub(crate) const ROWS: usize = 128;

/// Form of the loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossForm {
    pub(crate) label_smoothing: f32,
    /// Multiplies the gradient: 1 / targets of the whole batch.
    pub(crate) scale: f32,
}

/// The gradients that the head adds to.
#[derive(Debug)]
pub(crate) struct HeadGradients<'a> {
    /// All weights.
    pub(crate) weights: &'a mut [f32],
    /// `[N, D]`
    pub(crate) d_last: &'a mut [f32],
}

/// Returns the sum of the losses over the targets; with `gradients`, adds to them.
///
/// `last`: `[N, D]`, the residual stream after the last layer. `rows`: places with a target.
#[expect(clippy::too_many_arguments, reason = "each is one array of the layer")]
pub(crate) fn loss(
    layout: &Layout,
    weights: &[f32],
    last: &[f32],
    rows: &[u32],
    targets: &[u32],
    form: LossForm,
    mut gradients: Option<HeadGradients<'_>>,
    scratch: &mut HeadScratch,
) -> f64 {
    let config = layout.config();
    let (width, vocab) = (config.hidden_size, config.vocab_size);
    let norm = &weights[layout.final_norm.clone()];
    let head = &weights[layout.head.clone()];
    let mut loss = 0.0;
    for rows in rows.chunks(ROWS) {
        let count = rows.len();
        let normed = &mut scratch.normed[..count * width];
        let logits = &mut scratch.logits[..count * vocab];
        let d_normed = &mut scratch.d_normed[..count * width];
        for (i, &row) in rows.iter().enumerate() {
            let x = &last[row as usize * width..][..width];
            let y = &mut normed[i * width..][..width];
            scratch.norm_scale[i] = rms_norm_row(y, x, norm, config.rms_norm_eps);
        }
        linear::forward(logits, normed, head, count);
        for (logits, &row) in logits.chunks_exact_mut(vocab).zip(rows) {
            let target = targets[row as usize];
            loss += cross_entropy::forward_backward_row(
                logits,
                target,
                form.label_smoothing,
                form.scale,
            );
        }
        let Some(HeadGradients { weights: d_weights, d_last }) = &mut gradients else {
            continue;
        };
        linear::backward_weight(&mut d_weights[layout.head.clone()], logits, normed, count);
        linear::backward_input(d_normed, logits, head, count);
        for (i, &row) in rows.iter().enumerate() {
            let at = row as usize * width..(row as usize + 1) * width;
            rms_norm::backward_row(
                &mut d_last[at.clone()],
                &mut d_weights[layout.final_norm.clone()],
                &mut scratch.row,
                &d_normed[i * width..][..width],
                &last[at],
                norm,
                scratch.norm_scale[i],
            );
        }
    }
    loss
}

/// Lists the places that have a target.
pub(crate) fn find_target_rows(rows: &mut Vec<u32>, targets: &[u32]) {
    rows.clear();
    let places = targets.iter().enumerate().filter(|&(_, &target)| target != NO_TARGET);
    rows.extend(places.map(|(row, _)| row as u32));
}
