//! Causal attention within each sequence, with grouped keys and values. A row of a branch sees what
//! is before the branch and the rows of the branch up to itself.
//!
//! `queries_keys`: `[N, (H + G)·C]`, normed and turned. `projected`: `[N, (H + 2G)·C]`, of which
//! the last G·C columns are the values. `weights`: for each sequence, H matrices `[T, T]` after the
//! softmax and before dropout; above the diagonal they hold nothing of meaning, and 0 where a query
//! does not see. `y`: `[N, H·C]`.
//!
//! Queries are taken in blocks of [`BLOCK`], which see the keys up to their own end: about half of
//! the products that the mask would throw away are not computed.

use palmette_model::ModelConfig;
use palmette_model::kernels::{dot, softmax_in_place};
use palmette_train_matmul::{MatMut, MatRef, Write, matmul};

use super::batch::{BatchView, VisibleRows};
use super::dropout::{Dropout, DropoutStream, Site};

/// Queries per block.
const BLOCK: usize = 64;

/// The sizes that attention needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    /// H
    pub(crate) query: usize,
    /// G
    pub(crate) key_value: usize,
    /// C
    pub(crate) dim: usize,
}

impl Heads {
    pub(crate) fn new(config: &ModelConfig) -> Self {
        Self {
            query: config.num_attention_heads,
            key_value: config.num_key_value_heads,
            dim: config.head_dim,
        }
    }

    /// Columns of `queries_keys`.
    pub(crate) fn queries_keys_width(&self) -> usize {
        (self.query + self.key_value) * self.dim
    }

    /// Columns of `projected`.
    pub(crate) fn projected_width(&self) -> usize {
        (self.query + 2 * self.key_value) * self.dim
    }

    /// Columns of `y`.
    pub(crate) fn output_width(&self) -> usize {
        self.query * self.dim
    }

    /// Values of one block's scratch matrix when the longest sequence has `longest` tokens.
    pub(crate) fn scratch_len(longest: usize) -> usize {
        BLOCK.min(longest) * longest
    }

    /// The head of `queries_keys` that holds query head `head`'s keys; in `projected`, its values
    /// are G heads further on.
    fn key_head(&self, head: usize) -> usize {
        self.query + head / (self.query / self.key_value)
    }

    fn scale(&self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }

    /// `rows` rows of one head, from `row` on, in an array of `width` columns.
    fn view<'a>(
        &self,
        data: &'a [f32],
        width: usize,
        row: usize,
        rows: usize,
        head: usize,
    ) -> MatRef<'a> {
        MatRef::strided(&data[row * width + head * self.dim..], rows, self.dim, width)
    }

    fn view_mut<'a>(
        &self,
        data: &'a mut [f32],
        width: usize,
        row: usize,
        rows: usize,
        head: usize,
    ) -> MatMut<'a> {
        MatMut::strided(&mut data[row * width + head * self.dim..], rows, self.dim, width)
    }
}

/// Replaces `y` and `weights`. `scratch` has [`Heads::scratch_len`] values.
#[expect(clippy::too_many_arguments, reason = "each is one array of the layer")]
pub(crate) fn forward(
    y: &mut [f32],
    weights: &mut [f32],
    scratch: &mut [f32],
    queries_keys: &[f32],
    projected: &[f32],
    heads: Heads,
    batch: BatchView<'_>,
    dropout: Dropout,
    layer: usize,
) {
    let (qk_width, width) = (heads.queries_keys_width(), heads.projected_width());
    let mut weights_at = 0;
    for (sequence, at) in batch.sequences() {
        let length = at.len();
        let stream = dropout.stream(Site::Attention(layer), sequence);
        for head in 0..heads.query {
            let key_head = heads.key_head(head);
            let weights = &mut weights[weights_at..weights_at + length * length];
            weights_at += length * length;
            for from in (0..length).step_by(BLOCK) {
                let (to, rows) = ((from + BLOCK).min(length), BLOCK.min(length - from));
                let block = &mut weights[from * length..];
                matmul(
                    MatMut::strided(block, rows, to, length),
                    Write::Replace,
                    heads.scale(),
                    heads.view(queries_keys, qk_width, at.start + from, rows, head),
                    heads.view(queries_keys, qk_width, at.start, to, key_head).transposed(),
                    1,
                );
                for row in 0..rows {
                    let seen = batch.seen()[at.start + from + row];
                    softmax_of_seen(&mut block[row * length..][..to], from + row, seen);
                }
                let mixed = if dropout.is_off() {
                    MatRef::strided(block, rows, to, length)
                } else {
                    drop_block(scratch, block, stream, head, from, to, length);
                    MatRef::row_major(scratch, rows, to)
                };
                matmul(
                    heads.view_mut(y, heads.output_width(), at.start + from, rows, head),
                    Write::Replace,
                    1.0,
                    mixed,
                    heads.view(projected, width, at.start, to, key_head + heads.key_value),
                    1,
                );
            }
        }
    }
}

/// Adds to `d_queries_keys` and to the value columns of `d_projected`.
///
/// With A the weights after dropout, `y = A v`: `d_v = Aᵀ d_y`, `d_A = d_y vᵀ`; dropout's factor
/// leads from d_A to the gradient of the weights P; the softmax gives `d_S = P ∘ (d_P − Σ d_P ∘
/// P)`, summed over a row, and the scores `S = q kᵀ / √C` give the rest.
///
/// `scratch` holds two matrices of [`Heads::scratch_len`] values.
#[expect(clippy::too_many_arguments, reason = "each is one array of the layer")]
pub(crate) fn backward(
    d_queries_keys: &mut [f32],
    d_projected: &mut [f32],
    scratch: [&mut [f32]; 2],
    d_y: &[f32],
    weights: &[f32],
    queries_keys: &[f32],
    projected: &[f32],
    heads: Heads,
    batch: BatchView<'_>,
    dropout: Dropout,
    layer: usize,
) {
    let (qk_width, width, y_width) =
        (heads.queries_keys_width(), heads.projected_width(), heads.output_width());
    let [d_scores, dropped] = scratch;
    let mut weights_at = 0;
    for (sequence, at) in batch.sequences() {
        let length = at.len();
        let stream = dropout.stream(Site::Attention(layer), sequence);
        for head in 0..heads.query {
            let key_head = heads.key_head(head);
            let value_head = key_head + heads.key_value;
            let weights = &weights[weights_at..weights_at + length * length];
            weights_at += length * length;
            for from in (0..length).step_by(BLOCK) {
                let (to, rows) = ((from + BLOCK).min(length), BLOCK.min(length - from));
                let block = &weights[from * length..];
                let d_y = heads.view(d_y, y_width, at.start + from, rows, head);
                let mixed = if dropout.is_off() {
                    MatRef::strided(block, rows, to, length)
                } else {
                    drop_block(dropped, block, stream, head, from, to, length);
                    MatRef::row_major(dropped, rows, to)
                };
                matmul(
                    heads.view_mut(d_projected, width, at.start, to, value_head),
                    Write::Add,
                    1.0,
                    mixed.transposed(),
                    d_y,
                    1,
                );
                matmul(
                    MatMut::row_major(d_scores, rows, to),
                    Write::Replace,
                    1.0,
                    d_y,
                    heads.view(projected, width, at.start, to, value_head).transposed(),
                    1,
                );
                for row in 0..rows {
                    let (query, d_row) = (from + row, &mut d_scores[row * to..][..to]);
                    if !dropout.is_off() {
                        stream.apply(&mut d_row[..=query], first_element(head, query, length));
                    }
                    softmax_backward(d_row, &block[row * length..][..to], query + 1);
                }
                matmul(
                    heads.view_mut(d_queries_keys, qk_width, at.start + from, rows, head),
                    Write::Add,
                    heads.scale(),
                    MatRef::row_major(d_scores, rows, to),
                    heads.view(queries_keys, qk_width, at.start, to, key_head),
                    1,
                );
                matmul(
                    heads.view_mut(d_queries_keys, qk_width, at.start, to, key_head),
                    Write::Add,
                    heads.scale(),
                    MatRef::row_major(d_scores, rows, to).transposed(),
                    heads.view(queries_keys, qk_width, at.start + from, rows, head),
                    1,
                );
            }
        }
    }
}

/// Softmax over the scores that `query` sees; the others become 0.
#[inline]
fn softmax_of_seen(row: &mut [f32], query: usize, seen: VisibleRows) {
    let (prefix, own, end) = (seen.prefix as usize, seen.own as usize, query + 1);
    let together = prefix + end - own;
    // The rows of a branch lie apart from those before it: brought next to them, and back.
    row.copy_within(own..end, prefix);
    softmax_in_place(&mut row[..together], 1.0);
    row.copy_within(prefix..together, own);
    row[prefix..own].fill(0.0);
    row[end..].fill(0.0);
}

/// Turns the gradient of the first `end` weights into that of their scores. A weight of 0, where a
/// query does not see, leaves none.
#[inline]
fn softmax_backward(d_row: &mut [f32], weights: &[f32], end: usize) {
    let (past, future) = d_row.split_at_mut(end);
    let mean = dot(past, &weights[..end]);
    for (d, weight) in past.iter_mut().zip(weights) {
        *d = weight * (*d - mean);
    }
    future.fill(0.0);
}

/// Copies the queries `from..` of a block to `[rows, to]`, values dropped.
fn drop_block(
    dropped: &mut [f32],
    block: &[f32],
    stream: DropoutStream,
    head: usize,
    from: usize,
    to: usize,
    length: usize,
) {
    let rows = dropped.chunks_exact_mut(to).zip(block.chunks(length));
    for (query, (row, weights)) in (from..to).zip(rows) {
        let (past, future) = row.split_at_mut(query + 1);
        let first = first_element(head, query, length);
        for (i, (out, weight)) in past.iter_mut().zip(weights).enumerate() {
            *out = weight * stream.factor(first.wrapping_add(i as u32));
        }
        future.fill(0.0);
    }
}

/// The number, for dropout, of the weight of `query` on key 0. Wraps beyond 2³² weights.
fn first_element(head: usize, query: usize, length: usize) -> u32 {
    ((head * length + query) * length) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::batch::{NO_TARGET, PackedBatch};
    use crate::network::testing::{
        assert_close, check_gradient, floats, reference, to_f64, weighted_sum,
    };

    /// All arrays of one layer, and the definition's inputs in f64: `queries_keys`, then values.
    #[track_caller]
    fn check(lengths: &[usize], rate: f32, with_gradient: bool) {
        let heads = Heads { query: 4, key_value: 2, dim: 4 };
        let dropout = Dropout { rate, seed: 3, step: 5 };
        let mut batch = PackedBatch::default();
        for &length in lengths {
            batch.push(&vec![0; length], &vec![NO_TARGET; length]);
        }
        let (view, rows) = (batch.view(), batch.num_tokens());
        let queries_keys: Vec<f32> =
            floats(rows * heads.queries_keys_width(), 1).iter().map(|x| x * 2.0).collect();
        let projected = floats(rows * heads.projected_width(), 2);
        let d_y = floats(rows * heads.output_width(), 3);
        let scratch_len = Heads::scratch_len(view.longest());
        let (mut scratch, mut scratch_2) = (vec![9.0; scratch_len], vec![9.0; scratch_len]);
        let mut y = vec![9.0; d_y.len()];
        let mut weights = vec![9.0; heads.query * view.sum_of_squares()];
        forward(
            &mut y,
            &mut weights,
            &mut scratch,
            &queries_keys,
            &projected,
            heads,
            view,
            dropout,
            1,
        );
        let definition = |queries_keys: &[f64], projected: &[f64]| {
            reference::attention(queries_keys, projected, heads, view, dropout, 1)
        };
        let (qk, pr) = (to_f64(&queries_keys), to_f64(&projected));
        assert_close("y", &y, &definition(&qk, &pr));
        if !with_gradient {
            return;
        }
        let (mut d_qk, mut d_projected) = (vec![0.0; qk.len()], vec![0.0; pr.len()]);
        let scratch = [&mut scratch[..], &mut scratch_2[..]];
        backward(
            &mut d_qk,
            &mut d_projected,
            scratch,
            &d_y,
            &weights,
            &queries_keys,
            &projected,
            heads,
            view,
            dropout,
            1,
        );
        check_gradient("d_qk", &d_qk, &qk, |x| weighted_sum(&definition(x, &pr), &d_y));
        check_gradient("d_v", &d_projected, &pr, |x| weighted_sum(&definition(&qk, x), &d_y));
    }

    #[test]
    fn gradients_match_the_definition() {
        check(&[3, 1, 5], 0.0, true);
        check(&[3, 1, 5], 0.4, true);
    }

    #[test]
    fn sequences_longer_than_a_block_match_the_definition() {
        check(&[BLOCK, BLOCK + 1, 2 * BLOCK + 3], 0.0, false);
        check(&[2 * BLOCK + 3, 2], 0.3, false);
    }

    #[test]
    fn gradients_match_across_blocks() {
        // Every element would take minutes; the whole-model check uses short sequences only, so
        // this compares one long sequence's gradient with the definition's along one direction.
        let heads = Heads { query: 2, key_value: 1, dim: 4 };
        let length = BLOCK + 9;
        let mut batch = PackedBatch::default();
        batch.push(&vec![0; length], &vec![NO_TARGET; length]);
        let dropout = Dropout { rate: 0.2, seed: 3, step: 5 };
        let queries_keys = floats(length * heads.queries_keys_width(), 1);
        let projected = floats(length * heads.projected_width(), 2);
        let d_y = floats(length * heads.output_width(), 3);
        let scratch_len = Heads::scratch_len(length);
        let (mut scratch, mut scratch_2) = (vec![9.0; scratch_len], vec![9.0; scratch_len]);
        let (mut y, mut weights) = (vec![0.0; d_y.len()], vec![9.0; 2 * length * length]);
        let view = batch.view();
        forward(
            &mut y,
            &mut weights,
            &mut scratch,
            &queries_keys,
            &projected,
            heads,
            view,
            dropout,
            0,
        );
        let (mut d_qk, mut d_pr) = (vec![0.0; queries_keys.len()], vec![0.0; projected.len()]);
        let scratch = [&mut scratch[..], &mut scratch_2[..]];
        backward(
            &mut d_qk,
            &mut d_pr,
            scratch,
            &d_y,
            &weights,
            &queries_keys,
            &projected,
            heads,
            view,
            dropout,
            0,
        );
        let (direction_qk, direction_pr) = (floats(d_qk.len(), 4), floats(d_pr.len(), 5));
        let along = |step: f64| {
            let moved = |x: &[f32], direction: &[f32]| -> Vec<f64> {
                let pairs = x.iter().zip(direction);
                pairs.map(|(&x, &d)| f64::from(x) + step * f64::from(d)).collect()
            };
            let (qk, pr) = (moved(&queries_keys, &direction_qk), moved(&projected, &direction_pr));
            weighted_sum(&reference::attention(&qk, &pr, heads, view, dropout, 0), &d_y)
        };
        let wanted = (along(1e-5) - along(-1e-5)) / 2e-5;
        let found = weighted_sum(&to_f64(&d_qk), &direction_qk)
            + weighted_sum(&to_f64(&d_pr), &direction_pr);
        assert!((found - wanted).abs() < 1e-4 * wanted.abs().max(1.0), "{found} {wanted}");
    }
}
