//! Attention over a prompt that all beams share and over each beam's own tokens.
//!
//! Letters: H query heads, G key/value heads, C values a head, T prompt tokens, R rows (prompt
//! positions or beams).
//!
//! In a layer with a sliding window a row sees the last `window` positions, its own included.
//! Products begin at the panels of keys in which the first row's window does, so that their cost is
//! the window's and not the prompt's; what a row does not see before that gets the weight 0.
//!
//! The prompt's part is a matrix product over the rows of a head, so that each prompt key is read
//! once for many beams; the own part is a few short products a beam. Source: xGR, arXiv 2512.11529,
//! §5.2. We differ: both stages write into one row of scores and share its maximum and sum, which
//! is what merging by online softmax comes to, less a rounding.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use crate::beam_key_values::OwnPart;
use crate::encoder_decoder::RelativeBias;
use crate::head_shape::HeadShape;
use crate::kernels::{
    BF16_BLOCK, PANEL, Panels, RowsMut, RowsRef, Scores, dot, multiply, multiply_add, multiply_bf16,
};
use crate::key_values::SequencePart;

/// Query rows treated at once: their scores stay in the nearest cache, and a prompt's rows look at
/// few keys after their own.
pub(crate) const QUERY_ROWS: usize = 24;

/// The reach of a row among the positions before it, and the biases of their distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'a> {
    /// Number of positions that a row sees at most, its own included; `usize::MAX` for all.
    pub(crate) window: usize,
    /// Added to the products of queries and keys, before they are scaled.
    pub(crate) bias: Option<&'a RelativeBias>,
}

/// The positions that a block of rows looks at, from the [panels](block_of) on in which the first
/// of them lies.
struct KeyWindow {
    positions: Range<usize>,
    /// Number of `positions` that the first row sees, counted from the first.
    visible: usize,
    /// Positions that the next row sees more.
    advance: usize,
}

/// Attention of prompt positions to themselves and those before, as far as they see.
///
/// Keys and values may lie in several pieces: scores of each stand side by side, and a sum over
/// values goes on from one piece to the next, so that the bits are those of one piece.
///
/// `queries`, `out`: `[rows, H·C]`, the first row at `position`; `scores`: room for [`QUERY_ROWS`]
/// rows of as many places as the last position sees.
pub(crate) fn causal(
    shape: &HeadShape,
    queries: &[f32],
    prompt: SequencePart<'_>,
    (rows, position): (usize, usize),
    sight: Sight<'_>,
    scores: &mut [f32],
    out: &mut [f32],
) {
    let seen = |row: usize, count: usize| {
        let (visible, end) = (position + row + 1, position + row + count);
        let first = block_of(visible.saturating_sub(sight.window));
        KeyWindow { positions: first..end, visible: visible - first, advance: 1 }
    };
    over_prompt(shape, queries, prompt, (rows, position, seen), sight, scores, out);
}

/// Attention of rows to every token of a prompt, those after their own position too: within an
/// encoder, and of a decoder to the encoder's output.
///
/// `queries`, `out`: `[rows, H·C]`, the first row at `position`, which only a bias asks about;
/// `scores`: room for [`QUERY_ROWS`] rows of all tokens.
pub(crate) fn whole(
    shape: &HeadShape,
    queries: &[f32],
    (prompt, tokens): (SequencePart<'_>, usize),
    (rows, position): (usize, usize),
    bias: Option<&RelativeBias>,
    scores: &mut [f32],
    out: &mut [f32],
) {
    let seen = |_, _| KeyWindow { positions: 0..tokens, visible: tokens, advance: 0 };
    let sight = Sight { window: usize::MAX, bias };
    over_prompt(shape, queries, prompt, (rows, position, seen), sight, scores, out);
}

/// Attention of rows to prompt tokens, of which `seen(row, count)` are those of `count` rows from
/// `row` on.
fn over_prompt(
    shape: &HeadShape,
    queries: &[f32],
    prompt: SequencePart<'_>,
    (rows, position, seen): (usize, usize, impl Fn(usize, usize) -> KeyWindow),
    Sight { window, bias }: Sight<'_>,
    scores: &mut [f32],
    out: &mut [f32],
) {
    let (width, c, scale) = (shape.query_width(), shape.head_dim, shape.scale);
    let is_bf16 = shape.is_bf16;
    for start in (0..rows).step_by(QUERY_ROWS) {
        let count = QUERY_ROWS.min(rows - start);
        let KeyWindow { positions, visible, advance } = seen(start, count);
        let stride = positions.len();
        let scores = &mut scores[..count * stride];
        for head in 0..shape.heads {
            let (key_head, places) = (shape.key_head(head), start * width + head * c);
            let x = RowsRef { data: &queries[places..], rows: count, stride: width };
            if let Some(bias) = bias {
                for (row, scores) in scores.chunks_exact_mut(stride).enumerate() {
                    let query = position + start + row;
                    scores.copy_from_slice(bias.row(head, query, positions.start, stride));
                }
            }
            let keys = Head { sequence: prompt, key_head, tokens: positions.clone(), is_bf16 };
            keys.multiply_keys(RowsMut { data: scores, stride }, x, bias.is_some());
            let data = &mut *scores;
            Scores { data, stride, width: stride, visible, advance, window, scale }.softmax();
            let weights = RowsRef { data: scores, rows: count, stride };
            keys.multiply_values(RowsMut { data: &mut out[places..], stride: width }, weights);
        }
    }
}

/// Some tokens of a sequence at one key head.
struct Head<'a> {
    sequence: SequencePart<'a>,
    key_head: usize,
    tokens: Range<usize>,
    /// See [`HeadShape`].
    is_bf16: bool,
}

impl Head<'_> {
    /// `scores = queries · keys`, or added to what `scores` holds: `[rows, tokens]`, those of
    /// pieces side by side.
    fn multiply_keys(&self, scores: RowsMut<'_>, queries: RowsRef<'_>, add: bool) {
        let RowsMut { data, stride } = scores;
        let mut place = 0;
        for (piece, tokens) in self.sequence.pieces(self.tokens.clone()) {
            let scores = RowsMut { data: &mut data[place..], stride };
            place += tokens.len();
            let keys = piece.keys(self.key_head, tokens);
            self.multiply(scores, queries, keys, add);
        }
    }

    /// `out = weights · values`, `[rows, C]`; a sum continues from one piece to the next.
    fn multiply_values(&self, out: RowsMut<'_>, weights: RowsRef<'_>) {
        let mut place = 0;
        for (piece, tokens) in self.sequence.pieces(self.tokens.clone()) {
            let out = RowsMut { data: &mut *out.data, stride: out.stride };
            let weights = RowsRef { data: &weights.data[place..], ..weights };
            let is_first = place == 0;
            place += tokens.len();
            let values = piece.values(self.key_head, tokens);
            self.multiply(out, weights, values, !is_first);
        }
    }

    fn multiply(&self, out: RowsMut<'_>, x: RowsRef<'_>, b: Panels<'_>, add: bool) {
        match (self.is_bf16, add) {
            (true, _) => multiply_bf16(out, x, b, add),
            (false, true) => multiply_add(out, x, b),
            (false, false) => multiply(out, x, b),
        }
    }
}

/// The first position of a position's panels of keys: of as many as products in bfloat16 sum
/// before they add, so that sums are divided alike wherever a window begins.
fn block_of(position: usize) -> usize {
    const { assert!(BF16_BLOCK.is_multiple_of(PANEL)) }
    position - position % BF16_BLOCK
}

/// Attention of beams to the prompt and to their own tokens, the newest included, as far as they
/// see.
///
/// `queries`, `out`: `[rows, H·C]`; `scores`: room for [`QUERY_ROWS`] rows of prompt and own
/// tokens.
pub(crate) fn beams(
    shape: &HeadShape,
    queries: &[f32],
    (prompt, tokens): (SequencePart<'_>, usize),
    own: OwnPart<'_>,
    (rows, Sight { window, bias }): (usize, Sight<'_>),
    scores: &mut [f32],
    out: &mut [f32],
) {
    let (width, c, scale) = (shape.query_width(), shape.head_dim, shape.scale);
    // One prompt token at least: a window among own tokens only costs a panel that no row sees.
    let first = block_of((tokens + own.passes()).saturating_sub(window).min(tokens - 1));
    let seen = tokens - first + own.passes();
    for start in (0..rows).step_by(QUERY_ROWS) {
        let count = QUERY_ROWS.min(rows - start);
        let scores = &mut scores[..count * seen];
        for head in 0..shape.heads {
            let (key_head, places) = (shape.key_head(head), start * width + head * c);
            let queries = RowsRef { data: &queries[places..], rows: count, stride: width };
            if let Some(bias) = bias {
                // All beams are at one position, that of their newest token.
                let biases = bias.row(head, first + seen - 1, first, seen);
                scores.chunks_exact_mut(seen).for_each(|row| row.copy_from_slice(biases));
            }
            let tokens = first..tokens;
            let of_prompt = Head { sequence: prompt, key_head, tokens, is_bf16: shape.is_bf16 };
            let add = bias.is_some();
            of_prompt.multiply_keys(RowsMut { data: scores, stride: seen }, queries, add);
            let part = OwnHead { own, first_row: start, rows: count, key_head, head_dim: c };
            Arch::new().dispatch(OwnScores { part, queries, scores, stride: seen, add });
            let (data, stride, visible) = (&mut *scores, seen, seen);
            Scores { data, stride, width: seen, visible, advance: 0, window, scale }.softmax();
            let weights = RowsRef { data: scores, rows: count, stride: seen };
            let out = &mut out[places..];
            of_prompt.multiply_values(RowsMut { data: out, stride: width }, weights);
            Arch::new().dispatch(OwnValues { part, weights, out, stride: width });
        }
    }
}

/// Some beams' own tokens at one key head.
#[derive(Clone, Copy)]
struct OwnHead<'a> {
    own: OwnPart<'a>,
    first_row: usize,
    rows: usize,
    key_head: usize,
    head_dim: usize,
}

/// The scores of own keys, behind those of the prompt's.
struct OwnScores<'a> {
    part: OwnHead<'a>,
    queries: RowsRef<'a>,
    scores: &'a mut [f32],
    stride: usize,
    /// To what is there.
    add: bool,
}

/// Adds own values by their weights.
struct OwnValues<'a> {
    part: OwnHead<'a>,
    weights: RowsRef<'a>,
    out: &'a mut [f32],
    stride: usize,
}

impl WithSimd for OwnScores<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let OwnHead { own, first_row, rows, key_head, head_dim } = self.part;
        for (row, scores) in self.scores.chunks_exact_mut(self.stride).take(rows).enumerate() {
            let query = &self.queries.data[row * self.queries.stride..][..head_dim];
            let places = &mut scores[self.stride - own.passes()..];
            for (pass, score) in places.iter_mut().enumerate() {
                let product = dot(query, own.key(pass, first_row + row, key_head, head_dim));
                *score = if self.add { *score + product } else { product };
            }
        }
    }
}

impl WithSimd for OwnValues<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let OwnHead { own, first_row, rows, key_head, head_dim } = self.part;
        let stride = self.weights.stride;
        for row in 0..rows {
            let out = &mut self.out[row * self.stride..][..head_dim];
            let weights = &self.weights.data[row * stride..][..stride];
            for (pass, &weight) in weights[stride - own.passes()..].iter().enumerate() {
                let value = own.value(pass, first_row + row, key_head, head_dim);
                out.iter_mut().zip(value).for_each(|(out, value)| *out += weight * value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beam_key_values::BeamKeyValues;
    use crate::encoder_decoder::{RelativePositions, bias_tables};
    use crate::key_values::{KeyValues, ONLY_PAGE};

    const SHAPE: HeadShape =
        HeadShape { heads: 6, key_heads: 2, head_dim: 10, scale: 0.3, is_bf16: false };

    /// None; shorter than a beam's own tokens; panels whole and in part; longer than any prompt.
    const WINDOWS: [usize; 7] = [usize::MAX, 1, 2, 3, 16, 19, 1000];

    fn values(count: usize, seed: u64) -> Vec<f32> {
        let step = |&x: &u64| {
            Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        };
        let random = std::iter::successors(step(&seed), step);
        random.take(count).map(|x| (x >> 40) as f32 / (1 << 22) as f32 - 2.0).collect()
    }

    /// The definition, in f64: `query` `[H, C]`, each of `tokens` `[2, G, C]`, and what is added to
    /// the products of a head with each of them.
    fn naive(query: &[f32], tokens: &[&[f32]], added: impl Fn(usize, usize) -> f32) -> Vec<f64> {
        let (c, width) = (SHAPE.head_dim, SHAPE.key_value_width());
        let mut out = Vec::new();
        for (head, query) in query.chunks_exact(c).enumerate() {
            let at = head / 3 * c;
            let score = |(place, token): (usize, &&[f32])| -> f64 {
                let products = query.iter().zip(&token[at..]).map(|(q, k)| f64::from(q * k));
                let sum = products.sum::<f64>() + f64::from(added(head, place));
                sum * f64::from(SHAPE.scale)
            };
            let weights: Vec<f64> =
                tokens.iter().enumerate().map(|token| score(token).exp()).collect();
            let total: f64 = weights.iter().sum();
            out.extend((0..c).map(|i| {
                let value = |token: &&[f32]| f64::from(token[width + at + i]);
                tokens.iter().zip(&weights).map(|(t, w)| w / total * value(t)).sum::<f64>()
            }));
        }
        out
    }

    #[track_caller]
    fn check(got: &[f32], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        let worst =
            got.iter().zip(want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-5, "off by {worst}");
    }

    /// Biases of 6 heads among 100 positions, and the same by query and key: bucket by bucket,
    /// without a table.
    fn biases(sees_later: bool) -> (RelativeBias, impl Fn(usize, usize, usize) -> f32) {
        let by = RelativePositions { num_buckets: 8, max_distance: 20, in_every_layer: false };
        let of_buckets = values(8 * SHAPE.heads, 7);
        let tables = bias_tables(&by, std::slice::from_ref(&of_buckets), sees_later, 100);
        let [table] = <[RelativeBias; 1]>::try_from(tables.unwrap()).unwrap();
        let of = move |head: usize, query: usize, key: usize| {
            let bucket = by.bucket(key as isize - query as isize, sees_later);
            of_buckets[bucket * SHAPE.heads + head]
        };
        (table, of)
    }

    fn stored(key_values: &[f32], tokens: usize) -> KeyValues {
        let mut cache = KeyValues::new(SHAPE, 1, 1, tokens).unwrap();
        cache.store(ONLY_PAGE, 0, 0, key_values);
        cache
    }

    #[test]
    fn of_prompts_equals_the_definition() {
        let (q, kv) = (SHAPE.query_width(), 2 * SHAPE.key_value_width());
        for tokens in [1, 2, 16, 17, 50, 77] {
            let (queries, key_values) = (values(tokens * q, 1), values(tokens * kv, 2));
            let cache = stored(&key_values, tokens);
            let mut scores = vec![0.0; QUERY_ROWS.min(tokens) * tokens];
            // From the middle on too, as blocks after the first.
            for (first, window) in [0, tokens / 2].into_iter().flat_map(|f| WINDOWS.map(|w| (f, w)))
            {
                let rows = tokens - first;
                let mut out = vec![0.0; rows * q];
                let (part, place) = (cache.layer(ONLY_PAGE, 0), (rows, first));
                let queries = &queries[first * q..];
                let (table, of) = biases(false);
                for bias in [None, Some(&table)] {
                    // Scores of before are of no account.
                    scores.fill(f32::NAN);
                    let sight = Sight { window, bias };
                    causal(&SHAPE, queries, part, place, sight, &mut scores, &mut out);
                    for row in 0..rows {
                        let end = first + row + 1;
                        let before = end.saturating_sub(window);
                        let seen = key_values.chunks_exact(kv).take(end);
                        let seen: Vec<&[f32]> = seen.skip(before).collect();
                        let want = naive(&queries[row * q..][..q], &seen, |head, place| {
                            bias.map_or(0.0, |_| of(head, end - 1, before + place))
                        });
                        check(&out[row * q..][..q], &want);
                    }
                }
            }
            let (table, of) = biases(true);
            let all: Vec<&[f32]> = key_values.chunks_exact(kv).collect();
            for (first, bias) in [(0, None), (0, Some(&table)), (tokens / 2, Some(&table))] {
                let rows = tokens - first;
                let (mut out, queries) = (vec![0.0; rows * q], &queries[first * q..]);
                let (part, place) = ((cache.layer(ONLY_PAGE, 0), tokens), (rows, first));
                scores.fill(f32::NAN);
                whole(&SHAPE, queries, part, place, bias, &mut scores, &mut out);
                for row in 0..rows {
                    let want = naive(&queries[row * q..][..q], &all, |head, place| {
                        bias.map_or(0.0, |_| of(head, first + row, place))
                    });
                    check(&out[row * q..][..q], &want);
                }
            }
        }
    }

    /// Pages in any order give what one page gives, to the bit.
    #[test]
    fn pages_equal_one_page() {
        let (q, kv) = (SHAPE.query_width(), 2 * SHAPE.key_value_width());
        let rows = 27;
        for tokens in [1, 15, 16, 17, 50, 64, 77] {
            let key_values = values(tokens * kv, 5);
            let one = stored(&key_values, tokens);
            let num_pages = tokens.div_ceil(PANEL);
            let order: Vec<u32> = (0..num_pages as u32).rev().collect();
            let mut pages = KeyValues::new(SHAPE, 1, num_pages, PANEL).unwrap();
            // In two parts, as sequences grow.
            let (before, after) = key_values.split_at(tokens / 3 * kv);
            pages.store(&order, 0, 0, before);
            pages.store(&order, 0, tokens / 3, after);
            let mut beams = BeamKeyValues::new(SHAPE, 1, rows, [rows].into_iter()).unwrap();
            beams.fork(&(0..rows as u32).collect::<Vec<_>>(), 0);
            let (earlier, current) = beams.split_at_pass(0, rows);
            current.copy_from_slice(&values(rows * kv, 6));
            let width = SHAPE.key_value_width();
            let own = OwnPart { earlier, current, first_beam: 0, layer: 0, width };
            let (queries, table) = (values(rows.max(tokens) * q, 7), biases(false).0);
            let (seen_by_all, every) = (biases(true).0, usize::MAX);
            for (window, bias) in WINDOWS.into_iter().flat_map(|w| [(w, None), (w, Some(&table))]) {
                let sight = Sight { window, bias };
                let bits = |part: SequencePart<'_>| -> Vec<u32> {
                    let mut scores = vec![f32::NAN; QUERY_ROWS * (tokens + 1)];
                    let mut out = vec![f32::NAN; (2 * tokens + rows) * q];
                    let (first, rest) = out.split_at_mut(tokens * q);
                    let (second, third) = rest.split_at_mut(tokens * q);
                    causal(&SHAPE, &queries, part, (tokens, 0), sight, &mut scores, first);
                    let all = (part, tokens);
                    let bias = bias.filter(|_| window == every).map(|_| &seen_by_all);
                    whole(&SHAPE, &queries, all, (tokens, 0), bias, &mut scores, second);
                    super::beams(&SHAPE, &queries, all, own, (rows, sight), &mut scores, third);
                    out.iter().map(|value| value.to_bits()).collect()
                };
                let [one, pages] = [one.layer(ONLY_PAGE, 0), pages.layer(&order, 0)].map(bits);
                assert!(one == pages, "{tokens} tokens, {sight:?}");
            }
        }
    }

    #[test]
    fn of_beams_equals_the_definition() {
        let (q, kv) = (SHAPE.query_width(), 2 * SHAPE.key_value_width());
        let (tokens, rows) = (21, 29);
        let key_values = values(tokens * kv, 3);
        let cache = stored(&key_values, tokens);
        let mut beams = BeamKeyValues::new(SHAPE, 1, rows, [rows; 3].into_iter()).unwrap();
        let mut histories: Vec<Vec<Vec<f32>>> = vec![Vec::new(); rows];
        for pass in 0..3 {
            let parents: Vec<u32> = (0..rows).map(|row| (row * 7 % rows) as u32).collect();
            histories = parents.iter().map(|&p| histories[p as usize].clone()).collect();
            beams.fork(&parents, pass);
            let own = values(rows * kv, 10 + pass as u64);
            let (earlier, current) = beams.split_at_pass(pass, rows);
            current.copy_from_slice(&own);
            for (history, own) in histories.iter_mut().zip(own.chunks_exact(kv)) {
                history.push(own.to_vec());
            }
            let queries = values(rows * q, 20 + pass as u64);
            let mut scores = vec![0.0; QUERY_ROWS * (tokens + 3)];
            let mut out = vec![0.0; rows * q];
            let width = SHAPE.key_value_width();
            let own = OwnPart { earlier, current, first_beam: 0, layer: 0, width };
            let prompt = (cache.layer(ONLY_PAGE, 0), tokens);
            let (table, of) = biases(false);
            for (window, bias) in WINDOWS.into_iter().flat_map(|w| [(w, None), (w, Some(&table))]) {
                let sight = Sight { window, bias };
                scores.fill(f32::NAN);
                super::beams(&SHAPE, &queries, prompt, own, (rows, sight), &mut scores, &mut out);
                for (row, history) in histories.iter().enumerate() {
                    let own = history.iter().map(Vec::as_slice);
                    let seen = key_values.chunks_exact(kv).chain(own);
                    let end = tokens + history.len();
                    let before = end.saturating_sub(window);
                    let seen: Vec<&[f32]> = seen.skip(before).collect();
                    let want = naive(&queries[row * q..][..q], &seen, |head, place| {
                        bias.map_or(0.0, |_| of(head, end - 1, before + place))
                    });
                    check(&out[row * q..][..q], &want);
                }
            }
        }
    }
}
