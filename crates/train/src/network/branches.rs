//! Between the residual stream and the draft head: the rows of each branch, normed, and their
//! gradients back.

use palmette_model::kernels::rms_norm_row;

use super::batch::{BatchView, Branch};
use super::draft_head::{self, BRANCHES, DraftLossForm, DraftScratch};
use super::output_head::HeadGradients;
use super::rms_norm;
use crate::params::Layout;

/// The memory of the branches' part of a pass.
#[derive(Debug, Default)]
pub(crate) struct BranchScratch {
    head: DraftScratch,
    /// `[1 + L, R]`
    norm_scale: Vec<f32>,
    /// One row, for the norm.
    row: Vec<f32>,
}

/// Returns the sum of the draft head's losses over the branches; with `gradients`, adds to them.
///
/// `last`: `[N, D]`, the residual stream after the last layer. Work is cut into blocks of
/// [`BRANCHES`].
pub(crate) fn loss(
    layout: &Layout,
    weights: &[f32],
    last: &[f32],
    batch: BatchView<'_>,
    form: DraftLossForm,
    mut gradients: Option<HeadGradients<'_>>,
    scratch: &mut BranchScratch,
) -> f64 {
    let Some(draft) = layout.draft.as_ref().filter(|_| batch.num_branches() > 0) else {
        return 0.0;
    };
    let (width, eps) = (layout.config().hidden_size, layout.config().rms_norm_eps);
    let norm = &weights[layout.final_norm.clone()];
    let branches: Vec<Branch<'_>> = batch.branches().collect();
    let mut sum = 0.0;
    for branches in branches.chunks(BRANCHES) {
        let count = branches.len();
        let BranchScratch { head, norm_scale, row } = scratch;
        head.prepare(draft, width, count);
        norm_scale.resize((1 + draft.levels.len()) * count, 0.0);
        row.resize(width, 0.0);
        for (place, from) in rows(layout, branches) {
            let x = &last[from * width..][..width];
            let y = &mut head.hidden[place * width..][..width];
            norm_scale[place] = rms_norm_row(y, x, norm, eps);
        }
        for (index, branch) in branches.iter().enumerate() {
            for (level, &token) in branch.targets.iter().enumerate() {
                head.targets[level * count + index] = token;
            }
        }
        let gradient = gradients.as_mut().map(|gradients| &mut *gradients.weights);
        sum += draft_head::loss(layout, weights, count, form, gradient, true, head);
        let Some(HeadGradients { weights: d_weights, d_last }) = &mut gradients else { continue };
        for (place, from) in rows(layout, branches) {
            let at = from * width..(from + 1) * width;
            rms_norm::backward_row(
                &mut d_last[at.clone()],
                &mut d_weights[layout.final_norm.clone()],
                row,
                &head.d_hidden[place * width..][..width],
                &last[at],
                norm,
                norm_scale[place],
            );
        }
    }
    sum
}

/// The normed states of each branch, `[branches, 1 + L, D]`.
pub(crate) fn states(
    layout: &Layout,
    weights: &[f32],
    last: &[f32],
    batch: BatchView<'_>,
) -> Vec<f32> {
    let draft = layout.draft.as_ref().expect("a layout with a draft head");
    let (width, eps) = (layout.config().hidden_size, layout.config().rms_norm_eps);
    let norm = &weights[layout.final_norm.clone()];
    let per_branch = 1 + draft.levels.len();
    let mut states = vec![0.0; batch.num_branches() * per_branch * width];
    for (index, branch) in batch.branches().enumerate() {
        for (place, from) in rows(layout, &[branch]) {
            let y = &mut states[(index * per_branch + place) * width..][..width];
            rms_norm_row(y, &last[from * width..][..width], norm, eps);
        }
    }
    states
}

/// Places in `[1 + L, R]`, each with the row of the stream that belongs there.
fn rows(layout: &Layout, branches: &[Branch<'_>]) -> impl Iterator<Item = (usize, usize)> {
    let draft = layout.draft.as_ref();
    let placeholders = draft.filter(|draft| draft.form.has_placeholders());
    let (levels, count) = (placeholders.map_or(0, |draft| draft.levels.len()), branches.len());
    branches.iter().enumerate().flat_map(move |(index, branch)| {
        let (after, first) = (branch.after, branch.placeholders);
        let own = (0..levels).map(move |level| ((level + 1) * count + index, first + level));
        std::iter::once((index, after)).chain(own)
    })
}
