//! Attention over a prompt that all beams share and over each beam's own tokens.
//!
//! Letters: H query heads, G key/value heads, C values a head, T prompt tokens, R rows (prompt
//! positions or beams), P decode passes.
//!
//! The prompt's part is a matrix product over all rows of a head, so that each prompt key is read
//! once however many beams there are; the own part is at most P short products a beam. Both write
//! into one row of scores, and one softmax covers them. Source: xGR, arXiv 2512.11529, §5.2.

use std::ops::Range;

use rayon::prelude::*;

use crate::config::ModelConfig;
use crate::kernels::{MatMut, MatRef, Write, dot, matmul, softmax_in_place};
use crate::plan::{SessionOptions, product, zeroed};

/// Query rows of a prompt treated at once; keys after a block's last row are not looked at.
const CAUSAL_BLOCK: usize = 64;

/// How queries, keys and values lie in a row of width `(H + 2 G) C`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadShape {
    heads: usize,
    key_heads: usize,
    head_dim: usize,
}

/// The beams' own keys and values, and which of them each beam descends from.
#[derive(Debug)]
pub(crate) struct BeamKeyValues {
    /// `[layers, P, B, G·C]` each
    keys: Vec<f32>,
    values: Vec<f32>,
    /// `[P, B]`: the slot in pass `p` of the ancestor of the beam in row `b`.
    ancestors: Vec<u32>,
    /// `ancestors` before the latest fork.
    previous: Vec<u32>,
    max_beams: usize,
    max_passes: usize,
    width: usize,
}

/// One layer's view of [`BeamKeyValues`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnPart<'a> {
    keys: &'a [f32],
    values: &'a [f32],
    ancestors: &'a [u32],
    max_beams: usize,
    passes: usize,
}

impl BeamKeyValues {
    /// For options whose [`PlannedBytes`](crate::PlannedBytes) could be counted.
    /// `None` where there is not the memory for it.
    pub(crate) fn new(config: &ModelConfig, options: &SessionOptions) -> Option<Self> {
        let (max_beams, max_passes) = (options.max_beams, options.max_decode_passes);
        let (slots, width) = (max_passes * max_beams, config.key_value_width());
        Some(Self {
            keys: zeroed(slots * config.num_hidden_layers * width)?,
            values: zeroed(slots * config.num_hidden_layers * width)?,
            ancestors: zeroed(slots)?,
            previous: zeroed(slots)?,
            max_beams,
            max_passes,
            width,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.keys)
            + size_of_val(&*self.values)
            + size_of_val(&*self.ancestors)
            + size_of_val(&*self.previous)
    }

    /// Makes row `b` a child of row `parents[b]`, `passes` passes after the prompt, and gives each
    /// row its own slot in the pass to come.
    pub(crate) fn fork(&mut self, parents: &[u32], passes: usize) {
        std::mem::swap(&mut self.ancestors, &mut self.previous);
        for pass in 0..passes {
            let row = pass * self.max_beams;
            for (beam, &parent) in parents.iter().enumerate() {
                self.ancestors[row + beam] = self.previous[row + parent as usize];
            }
        }
        for beam in 0..parents.len() {
            self.ancestors[passes * self.max_beams + beam] = beam as u32;
        }
    }

    /// The slots of the first `rows` beams in one pass of one layer, `[rows, G·C]` each.
    pub(crate) fn slots_mut(
        &mut self,
        layer: usize,
        pass: usize,
        rows: usize,
    ) -> (&mut [f32], &mut [f32]) {
        let start = (layer * self.max_passes + pass) * self.max_beams * self.width;
        let slots = start..start + rows * self.width;
        (&mut self.keys[slots.clone()], &mut self.values[slots])
    }

    /// One layer's keys and values of the first `passes` passes.
    pub(crate) fn layer(&self, layer: usize, passes: usize) -> OwnPart<'_> {
        let places = self.max_passes * self.max_beams * self.width;
        let all = layer * places..(layer + 1) * places;
        OwnPart {
            keys: &self.keys[all.clone()],
            values: &self.values[all],
            ancestors: &self.ancestors,
            max_beams: self.max_beams,
            passes,
        }
    }
}

impl OwnPart<'_> {
    /// Places of one key head's values of the beam's token of a pass.
    fn slot(&self, shape: &HeadShape, pass: usize, beam: usize, key_head: usize) -> Range<usize> {
        let ancestor = self.ancestors[pass * self.max_beams + beam] as usize;
        let (width, c) = (shape.key_value_width(), shape.head_dim);
        let start = (pass * self.max_beams + ancestor) * width + key_head * c;
        start..start + c
    }
}

impl HeadShape {
    pub(crate) fn of(config: &ModelConfig) -> Self {
        Self {
            heads: config.num_attention_heads,
            key_heads: config.num_key_value_heads,
            head_dim: config.head_dim,
        }
    }

    pub(crate) fn query_width(&self) -> usize {
        self.heads * self.head_dim
    }

    fn key_value_width(&self) -> usize {
        self.key_heads * self.head_dim
    }

    pub(crate) fn qkv_width(&self) -> usize {
        self.query_width() + 2 * self.key_value_width()
    }

    /// Copies the key and value parts of rows of `qkv` to their caches.
    pub(crate) fn copy_keys_and_values(&self, qkv: &[f32], keys: &mut [f32], values: &mut [f32]) {
        let (q, kv) = (self.query_width(), self.key_value_width());
        let caches = keys.chunks_exact_mut(kv).zip(values.chunks_exact_mut(kv));
        for (row, (keys, values)) in qkv.chunks_exact(self.qkv_width()).zip(caches) {
            keys.copy_from_slice(&row[q..q + kv]);
            values.copy_from_slice(&row[q + kv..]);
        }
    }

    /// `[H, R, C]` → `[R, H·C]`
    pub(crate) fn gather_heads(&self, heads: &[f32], rows: usize, out: &mut [f32]) {
        let c = self.head_dim;
        for (row, out) in out.chunks_exact_mut(self.query_width()).take(rows).enumerate() {
            for (head, out) in out.chunks_exact_mut(c).enumerate() {
                out.copy_from_slice(&heads[(head * rows + row) * c..][..c]);
            }
        }
    }

    /// The queries of one head as `[rows, C]`.
    fn queries<'a>(&self, qkv: &'a [f32], head: usize, rows: Range<usize>) -> MatRef<'a> {
        let start = rows.start * self.qkv_width() + head * self.head_dim;
        MatRef::strided(&qkv[start..], rows.len(), self.head_dim, self.qkv_width())
    }

    /// One key head's part of a cache as `[tokens, C]`.
    fn cached<'a>(&self, cache: &'a [f32], key_head: usize, tokens: usize) -> MatRef<'a> {
        let start = key_head * self.head_dim;
        MatRef::strided(&cache[start..], tokens, self.head_dim, self.key_value_width())
    }

    /// The key head that serves a query head.
    fn key_head(&self, head: usize) -> usize {
        head / (self.heads / self.key_heads)
    }

    fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

/// Places that scores need: the larger of a block of prompt rows and of all beams, for each head.
/// `None` when there are too many to count.
pub(crate) fn score_places(heads: usize, options: &SessionOptions) -> Option<usize> {
    let prompt = options.max_prompt_tokens;
    let causal = product(&[CAUSAL_BLOCK.min(prompt), prompt])?;
    let beams = product(&[options.max_beams, prompt.checked_add(options.max_decode_passes)?])?;
    product(&[heads, causal.max(beams)])
}

/// Attention of prompt positions to themselves and those before.
///
/// `qkv`: `[rows, (H + 2 G) C]`; the caches: `[rows, G·C]`; `out`: `[H, rows, C]`.
pub(crate) fn causal(
    shape: &HeadShape,
    qkv: &[f32],
    (keys, values): (&[f32], &[f32]),
    rows: usize,
    scores: &mut [f32],
    out: &mut [f32],
    threads: usize,
) {
    let c = shape.head_dim;
    let one_head = |head: usize, scores: &mut [f32], out: &mut [f32]| {
        let key_head = shape.key_head(head);
        for start in (0..rows).step_by(CAUSAL_BLOCK) {
            let block = start..rows.min(start + CAUSAL_BLOCK);
            let (count, seen) = (block.len(), block.end);
            let scores = &mut scores[..count * seen];
            matmul(
                MatMut::row_major(scores, count, seen),
                Write::Replace,
                1.0,
                shape.queries(qkv, head, block.clone()),
                shape.cached(keys, key_head, seen).transposed(),
                1,
            );
            for (row, scores) in scores.chunks_exact_mut(seen).enumerate() {
                let (visible, hidden) = scores.split_at_mut(start + row + 1);
                softmax_in_place(visible, shape.scale());
                hidden.fill(0.0);
            }
            matmul(
                MatMut::row_major(&mut out[start * c..block.end * c], count, c),
                Write::Replace,
                1.0,
                MatRef::row_major(scores, count, seen),
                shape.cached(values, key_head, seen),
                1,
            );
        }
    };
    for_each_head(shape.heads, threads, scores, &mut out[..shape.heads * rows * c], one_head);
}

/// Attention of beams to the prompt and to their own tokens, the newest included.
///
/// `qkv`: `[rows, (H + 2 G) C]`; the prompt caches: `[T, G·C]`; `out`: `[H, rows, C]`.
#[allow(clippy::too_many_arguments)]
pub(crate) fn beams(
    shape: &HeadShape,
    qkv: &[f32],
    (keys, values, prompt): (&[f32], &[f32], usize),
    own: OwnPart<'_>,
    rows: usize,
    scores: &mut [f32],
    out: &mut [f32],
    threads: usize,
) {
    let c = shape.head_dim;
    let seen = prompt + own.passes;
    let one_head = |head: usize, scores: &mut [f32], out: &mut [f32]| {
        let key_head = shape.key_head(head);
        let scores = &mut scores[..rows * seen];
        matmul(
            MatMut::strided(scores, rows, prompt, seen),
            Write::Replace,
            1.0,
            shape.queries(qkv, head, 0..rows),
            shape.cached(keys, key_head, prompt).transposed(),
            1,
        );
        for (beam, scores) in scores.chunks_exact_mut(seen).enumerate() {
            let query = &qkv[beam * shape.qkv_width() + head * c..][..c];
            for (pass, score) in scores[prompt..].iter_mut().enumerate() {
                *score = dot(query, &own.keys[own.slot(shape, pass, beam, key_head)]);
            }
            softmax_in_place(scores, shape.scale());
        }
        matmul(
            MatMut::row_major(out, rows, c),
            Write::Replace,
            1.0,
            MatRef::strided(scores, rows, prompt, seen),
            shape.cached(values, key_head, prompt),
            1,
        );
        for (beam, out) in out.chunks_exact_mut(c).enumerate() {
            for pass in 0..own.passes {
                let weight = scores[beam * seen + prompt + pass];
                let value = &own.values[own.slot(shape, pass, beam, key_head)];
                out.iter_mut().zip(value).for_each(|(out, value)| *out += weight * value);
            }
        }
    };
    for_each_head(shape.heads, threads, scores, &mut out[..shape.heads * rows * c], one_head);
}

/// Runs `work` for each head with its equal part of `scores` and of `out`, on at most `threads` rayon
/// workers; heads do not touch each other.
fn for_each_head(
    heads: usize,
    threads: usize,
    scores: &mut [f32],
    out: &mut [f32],
    work: impl Fn(usize, &mut [f32], &mut [f32]) + Send + Sync,
) {
    let (score_places, out_places) = (scores.len() / heads, out.len() / heads);
    let group_size = heads.div_ceil(threads.max(1));
    let one_group = |(group, (scores, out)): (usize, (&mut [f32], &mut [f32]))| {
        let parts = scores.chunks_exact_mut(score_places).zip(out.chunks_exact_mut(out_places));
        for (place, (scores, out)) in parts.enumerate() {
            work(group * group_size + place, scores, out);
        }
    };
    if threads > 1 {
        let scores = scores.par_chunks_mut(group_size * score_places);
        let out = out.par_chunks_mut(group_size * out_places);
        scores.zip(out).enumerate().for_each(one_group);
    } else {
        one_group((0, (scores, out)));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;

    use super::for_each_head;

    #[test]
    fn every_head_gets_its_parts_once_on_no_more_threads_than_asked_for() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
        for (heads, threads) in [(1, 4), (4, 1), (4, 3), (7, 2), (8, 3), (8, 5), (12, 20)] {
            let (mut scores, mut out) = (vec![0.0; heads * 3], vec![0.0; heads * 2]);
            let workers = Mutex::new(HashSet::new());
            pool.install(|| {
                for_each_head(heads, threads, &mut scores, &mut out, |head, scores, out| {
                    workers.lock().unwrap().insert(std::thread::current().id());
                    scores.iter_mut().chain(out).for_each(|value| *value += head as f32 + 1.0);
                });
            });
            assert!(workers.lock().unwrap().len() <= threads, "{heads} heads, {threads} threads");
            let owned_by =
                |places: usize| (0..heads * places).map(move |i| (i / places + 1) as f32);
            assert!(scores.into_iter().eq(owned_by(3)) && out.into_iter().eq(owned_by(2)));
        }
    }
}
