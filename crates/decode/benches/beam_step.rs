//! How long does one step of a beam search take, and where does the time go?
//!
//! ```text
//! cargo bench -p palmette-decode
//! cargo bench -p palmette-decode -- step
//! ```
//!
//! Measured, each beside the baseline one would otherwise use:
//! - `exp_of_4096`: the crate's `exp` over a slice, and `f32::exp`;
//! - `log_sum_exp_of_1026`: the crate's over one logits row, and the same formula with `f32::exp`;
//! - `step`: `select` and `expand` from a full beam to a full beam, and the definition: list every
//!   allowed extension, sort, keep the first. Each is brought to its full beam, untimed, before
//!   each step that is timed. The definition calls the crate's `log_sum_exp`, once a row, so that
//!   this ratio is about the selection alone.
//!
//! Data: logits uniform in ±4 from a fixed seed, `[beams, 1026]`, the same for every step. Two
//! constraints: `Unconstrained`, where every token is allowed, and `FourAllowed`, where four are.
//! Before anything is timed both ways of doing a step must agree on sequences, order and scores.

use std::cell::RefCell;
use std::convert::Infallible;
use std::num::NonZeroUsize;

use divan::{Bencher, black_box};
use palmette_core::{
    CommitError, Constraint, RollbackError, TokenId, TokenMask, Unconstrained, mask,
};
use palmette_decode::{BeamOptions, BeamSearch, Extension, TopK, log_sum_exp};

/// 4 levels of 256 codes, begin and padding.
const NUM_TOKENS: usize = 1026;
/// Long enough that the step that is timed is never the last.
const MAX_TOKENS: usize = 8;
const WIDTHS: [usize; 2] = [128, 512];

fn main() {
    divan::main();
}

mod exp_of_4096 {
    use super::*;

    #[divan::bench]
    fn palmette(bencher: Bencher) {
        map_slice(bencher, palmette_decode::exp);
    }

    #[divan::bench]
    fn std_f32_exp(bencher: Bencher) {
        map_slice(bencher, f32::exp);
    }

    /// Over −20 to 0, where a logit less the largest logit lies.
    fn map_slice(bencher: Bencher, exp: impl Fn(f32) -> f32) {
        let from: Vec<f32> = uniform(4096, 7).map(|x| x * 20.0 - 20.0).collect();
        let mut to = vec![0.0_f32; from.len()];
        bencher.bench_local(|| {
            for (to, &from) in to.iter_mut().zip(black_box(&from)) {
                *to = exp(from);
            }
            black_box(&mut to);
        });
    }
}

mod log_sum_exp_of_1026 {
    use super::*;

    #[divan::bench]
    fn palmette(bencher: Bencher) {
        let row = logits(1);
        bencher.bench_local(|| log_sum_exp(black_box(&row)));
    }

    #[divan::bench]
    fn std_f32_exp(bencher: Bencher) {
        let row = logits(1);
        bencher.bench_local(|| {
            let row = black_box(&row);
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            max + row.iter().map(|logit| (logit - max).exp()).sum::<f32>().ln()
        });
    }
}

mod step {
    use super::*;

    #[divan::bench(types = [Unconstrained, FourAllowed], args = WIDTHS, sample_size = 1)]
    fn palmette<C: Case>(bencher: Bencher, width: usize) {
        let (constraint, logits) = (C::case(), logits(width));
        let search = RefCell::new(new_search(width));
        let fill_beam = || search_to_full_beam(&mut search.borrow_mut(), &constraint, &logits);
        bencher
            .with_inputs(fill_beam)
            .bench_local_values(|()| step(&mut search.borrow_mut(), &constraint, &logits));
    }

    #[divan::bench(types = [Unconstrained, FourAllowed], args = WIDTHS, sample_size = 1)]
    fn sort_everything<C: Case>(bencher: Bencher, width: usize) {
        let (constraint, logits) = (C::case(), logits(width));
        assert_same_step(&constraint, &logits, width);
        bencher
            .with_inputs(|| sort_to_full_beam(&constraint, &logits, width))
            .bench_local_refs(|live| sorted_step(&constraint, live, &logits, width));
    }
}

/// A search with the buffers that a backend keeps for it.
struct Search<C: Constraint> {
    beam: BeamSearch<C>,
    top_k: TopK,
    best: Vec<Extension>,
}

fn new_search<C: Constraint>(width: usize) -> Search<C> {
    let nonzero = NonZeroUsize::new(width).expect("positive");
    Search {
        beam: BeamSearch::new(BeamOptions { width: nonzero, max_tokens: MAX_TOKENS }),
        top_k: TopK::with_capacity(width),
        best: Vec::with_capacity(width),
    }
}

fn step<C: Constraint>(search: &mut Search<C>, constraint: &C, logits: &[f32]) {
    let Search { beam, top_k, best } = search;
    let next = beam.step();
    let rows = &logits[..next.rows() * NUM_TOKENS];
    let chosen = top_k.select(&next, rows, 0..NUM_TOKENS, |_, _| true, best);
    chosen.expect("uniform logits have a distribution");
    beam.expand(constraint, best).expect("shorter than MAX_TOKENS");
}

fn search_to_full_beam<C: Constraint>(search: &mut Search<C>, constraint: &C, logits: &[f32]) {
    search.beam.start(constraint).expect("no limits");
    while search.beam.tokens().len() < search.beam.widths()[0].get() {
        step(search, constraint, logits);
    }
}

/// A live hypothesis as the definition keeps it.
#[derive(Clone)]
struct Live<C: Constraint> {
    state: C::State,
    score: f32,
    tokens: Vec<TokenId>,
    allowed: TokenMask,
}

fn sort_to_full_beam<C: Constraint>(constraint: &C, logits: &[f32], width: usize) -> Vec<Live<C>> {
    let state = constraint.start();
    let allowed = allowed(constraint, &state);
    let mut live = vec![Live { state, score: 0.0, tokens: Vec::new(), allowed }];
    while live.len() < width {
        live = sorted_step(constraint, &live, logits, width);
    }
    live
}

fn sorted_step<C: Constraint>(
    constraint: &C,
    live: &[Live<C>],
    logits: &[f32],
    width: usize,
) -> Vec<Live<C>> {
    let mut extensions = Vec::new();
    for ((parent, hypothesis), row) in live.iter().enumerate().zip(logits.chunks(NUM_TOKENS)) {
        let normaliser = log_sum_exp(row);
        for token in hypothesis.allowed.iter() {
            let score = hypothesis.score + (row[token.index()] - normaliser) + 0.0;
            extensions.push((score, parent, token));
        }
    }
    extensions.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    extensions.truncate(width);
    extensions
        .into_iter()
        .map(|(score, parent, token)| {
            let mut state = live[parent].state.clone();
            let mut scratch = C::Scratch::default();
            constraint.commit(&mut state, token, &mut scratch).expect("allowed");
            let tokens = [&live[parent].tokens[..], &[token]].concat();
            let allowed = allowed(constraint, &state);
            Live { state, score, tokens, allowed }
        })
        .collect()
}

fn allowed<C: Constraint>(constraint: &C, state: &C::State) -> TokenMask {
    let mut allowed = TokenMask::new(constraint.num_tokens());
    let filled = constraint.fill_mask(state, &mut C::Scratch::default(), allowed.as_words_mut());
    filled.expect("no limits");
    allowed
}

/// The two ways of doing a step give the same beam: sequences, order and scores to the bit.
fn assert_same_step<C: Case>(constraint: &C, logits: &[f32], width: usize) {
    let live = sort_to_full_beam(constraint, logits, width);
    let sorted = sorted_step(constraint, &live, logits, width);
    let mut search = new_search(width);
    search_to_full_beam(&mut search, constraint, logits);
    step(&mut search, constraint, logits);
    assert_eq!(search.beam.tokens().len(), sorted.len());
    for (row, sorted) in sorted.iter().enumerate() {
        let (last, before) = sorted.tokens.split_last().expect("a step adds a token");
        assert_eq!(search.beam.tokens()[row], *last, "row {row}");
        assert_eq!(live[search.beam.parents()[row] as usize].tokens, before, "row {row}");
    }
    // Scores of live hypotheses cannot be read; those of results can, and these have all tokens.
    while search.beam.is_live() {
        step(&mut search, constraint, logits);
    }
    let mut sorted = sorted;
    while sorted[0].tokens.len() < MAX_TOKENS {
        sorted = sorted_step(constraint, &sorted, logits, width);
    }
    let found: Vec<_> = search.beam.results().map(|r| (r.tokens, r.score.to_bits())).collect();
    let want: Vec<_> = sorted.iter().map(|s| (&s.tokens[..], s.score.to_bits())).collect();
    assert_eq!(found, want);
}

/// A constraint over [`NUM_TOKENS`] whose sequences all have [`MAX_TOKENS`] tokens.
trait Case: Constraint {
    fn case() -> Self;
}

impl Case for Unconstrained {
    fn case() -> Self {
        Unconstrained::new(NUM_TOKENS, MAX_TOKENS)
    }
}

/// Four tokens may follow any other, spread over the vocabulary: as sparse as the last levels of a
/// large catalog, at next to no cost of its own.
struct FourAllowed;

/// The tokens so far; places past `len` hold 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prefix {
    tokens: [u32; MAX_TOKENS],
    len: usize,
}

impl Case for FourAllowed {
    fn case() -> Self {
        FourAllowed
    }
}

impl FourAllowed {
    const STRIDE: u32 = NUM_TOKENS as u32 / 4;

    /// Ascending. None once the sequence is complete.
    fn allowed(prefix: &Prefix) -> impl Iterator<Item = TokenId> {
        let last = prefix.len.checked_sub(1).map_or(0, |last| prefix.tokens[last]);
        let first = (last * 31 + prefix.len as u32 * 17) % Self::STRIDE;
        let count = if prefix.len < MAX_TOKENS { 4 } else { 0 };
        (0..count).map(move |i| TokenId(first + i * Self::STRIDE))
    }

    fn after(prefix: &Prefix, token: TokenId) -> Prefix {
        let mut next = *prefix;
        next.tokens[next.len] = token.0;
        next.len += 1;
        next
    }
}

impl Constraint for FourAllowed {
    type State = Prefix;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        NUM_TOKENS
    }

    fn start(&self) -> Prefix {
        Prefix { tokens: [0; MAX_TOKENS], len: 0 }
    }

    fn fill_mask(&self, state: &Prefix, (): &mut (), words: &mut [u32]) -> Result<(), Infallible> {
        assert_eq!(words.len(), mask::num_words(NUM_TOKENS), "words of a mask row");
        words.fill(0);
        Self::allowed(state).for_each(|token| mask::insert(words, token));
        Ok(())
    }

    fn successors(
        &self,
        state: &Prefix,
        (): &mut (),
        mut visit: impl FnMut(TokenId, Prefix),
    ) -> Result<(), Infallible> {
        Self::allowed(state).for_each(|token| visit(token, Self::after(state, token)));
        Ok(())
    }

    fn commit(&self, state: &mut Prefix, token: TokenId, (): &mut ()) -> Result<(), CommitError> {
        if token.index() >= NUM_TOKENS {
            return Err(CommitError::UnknownToken { token, num_tokens: NUM_TOKENS });
        }
        if !Self::allowed(state).any(|allowed| allowed == token) {
            return Err(CommitError::NotAllowed { token, position: state.len });
        }
        *state = Self::after(state, token);
        Ok(())
    }

    fn rollback(&self, state: &mut Prefix, num_tokens: usize) -> Result<(), RollbackError> {
        state.len = RollbackError::remaining(state.len, num_tokens)?;
        state.tokens[state.len..].fill(0);
        Ok(())
    }

    fn is_accepting(&self, state: &Prefix, (): &mut ()) -> Result<bool, Infallible> {
        Ok(state.len == MAX_TOKENS)
    }
}

/// `[beams, NUM_TOKENS]`.
fn logits(beams: usize) -> Vec<f32> {
    uniform(beams * NUM_TOKENS, 1).map(|x| x * 8.0 - 4.0).collect()
}

/// Numbers in [0, 1): the top 24 bits of a 64-bit linear congruential generator.
fn uniform(count: usize, seed: u64) -> impl Iterator<Item = f32> {
    let step = |&x: &u64| {
        Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    let first = step(&seed);
    std::iter::successors(first, step).take(count).map(|x| (x >> 40) as f32 / (1_u32 << 24) as f32)
}
