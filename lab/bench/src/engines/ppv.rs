//! Prefix verification by binary search (DISC-PPV, arXiv 2504.09135; STATIC §5.2, baselines 3, 4).
//!
//! The rows are one sorted array. To ask whether a code may follow, the prefix with that code is
//! searched in the whole array; nothing is kept between steps. The original runs the searches of
//! all candidates side by side on an accelerator; here they run one after another.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::keys::{KeyLayout, SortedKeys};
use super::{Engine, allow, try_all_codes};
use crate::generate::Shape;
use crate::random::{Random, mix};

/// A prefix: its key, zeros after it, and its codes' number.
#[derive(Clone, Copy, Debug)]
pub struct PrefixState {
    key: u128,
    level: u32,
}

const START: PrefixState = PrefixState { key: 0, level: 0 };

impl SortedKeys {
    #[inline]
    fn advance(&self, state: &PrefixState, code: u32) -> Option<PrefixState> {
        let level = state.level as usize;
        if level == self.layout.levels || code >= self.layout.vocab {
            return None;
        }
        let key = state.key | self.layout.at(level, code);
        self.has_prefix(key, level + 1).then_some(PrefixState { key, level: state.level + 1 })
    }

    fn contains(&self, codes: &[u32]) -> bool {
        let end = codes.iter().try_fold(START, |state, &code| self.advance(&state, code));
        end.is_some_and(|state| state.level as usize == self.layout.levels)
    }
}

/// Every code of the vocabulary is verified, for every beam.
#[derive(Clone, Debug)]
pub struct PpvExact(SortedKeys);

impl Engine for PpvExact {
    const NAME: &'static str = "ppv_exact";
    const EXACT: bool = true;
    type Builder = SortedKeys;
    type State = PrefixState;

    fn obstacle(shape: &Shape) -> Option<String> {
        KeyLayout::obstacle(shape)
    }

    fn peak_bytes(shape: &Shape) -> u64 {
        SortedKeys::peak_bytes(shape)
    }

    fn builder(shape: &Shape) -> SortedKeys {
        SortedKeys::with_capacity_for(shape)
    }

    fn push(builder: &mut SortedKeys, codes: &[u32]) {
        builder.push(codes);
    }

    fn build(mut builder: SortedKeys) -> Result<Self, String> {
        builder.sort();
        Ok(Self(builder))
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn start(&self) -> PrefixState {
        START
    }

    fn advance(&self, state: &PrefixState, code: u32) -> Option<PrefixState> {
        self.0.advance(state, code)
    }

    fn contains(&self, codes: &[u32]) -> bool {
        self.0.contains(codes)
    }

    fn fill_masks(&self, states: &[PrefixState], words_per_row: usize, out: &mut [u32]) {
        for (state, row) in states.iter().zip(out.chunks_exact_mut(words_per_row)) {
            row.fill(0);
            for code in 0..self.0.layout.vocab {
                if self.0.advance(state, code).is_some() {
                    allow(row, code);
                }
            }
        }
    }

    fn successors(&self, states: &[PrefixState], visit: impl FnMut(u32, u32, PrefixState)) {
        try_all_codes(self, self.0.layout.vocab, states, visit);
    }
}

/// Only the 50 best-scored codes of each beam are verified, as in the original; the other codes
/// are forbidden, valid or not.
///
/// Logits are random here: each prefix is given one of 256 rows, as long as the vocabulary. Finding
/// the 50 best of a beam's row is a part of the step.
#[derive(Clone, Debug)]
pub struct PpvTop50 {
    rows: SortedKeys,
    /// `[256, vocab]` logits.
    logits: Vec<f32>,
}

const LOGIT_ROWS: usize = 256;
const NUM_BEST: usize = 50;

/// Best codes of a row of logits, in ascending order.
#[derive(Default)]
struct BestCodes {
    /// The worst on top.
    heap: BinaryHeap<Reverse<ScoredCode>>,
    codes: Vec<u32>,
}

/// Bits of a code's logit, which order as its value where none is negative, and the code; of equal
/// ones the lower code is the greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ScoredCode(u32, Reverse<u32>);

impl BestCodes {
    fn of(&mut self, logits: &[f32]) -> &[u32] {
        self.heap.clear();
        for (code, logit) in (0..).zip(logits) {
            let scored = ScoredCode(logit.to_bits(), Reverse(code));
            if self.heap.len() < NUM_BEST {
                self.heap.push(Reverse(scored));
            } else if let Some(mut worst) = self.heap.peek_mut()
                && worst.0 < scored
            {
                *worst = Reverse(scored);
            }
        }
        self.codes.clear();
        self.codes.extend(self.heap.iter().map(|&Reverse(ScoredCode(_, Reverse(code)))| code));
        self.codes.sort_unstable();
        &self.codes
    }
}

impl PpvTop50 {
    #[inline]
    fn logits(&self, state: &PrefixState) -> &[f32] {
        let prefix = (state.key >> 64) as u64 ^ state.key as u64 ^ u64::from(state.level) << 56;
        let vocab = self.rows.layout.vocab as usize;
        &self.logits[mix(prefix) as usize % LOGIT_ROWS * vocab..][..vocab]
    }
}

impl Engine for PpvTop50 {
    const NAME: &'static str = "ppv_top50";
    const EXACT: bool = false;
    type Builder = SortedKeys;
    type State = PrefixState;

    fn obstacle(shape: &Shape) -> Option<String> {
        KeyLayout::obstacle(shape)
    }

    fn peak_bytes(shape: &Shape) -> u64 {
        SortedKeys::peak_bytes(shape)
    }

    fn builder(shape: &Shape) -> SortedKeys {
        SortedKeys::with_capacity_for(shape)
    }

    fn push(builder: &mut SortedKeys, codes: &[u32]) {
        builder.push(codes);
    }

    fn build(mut builder: SortedKeys) -> Result<Self, String> {
        builder.sort();
        let (vocab, mut random) = (builder.layout.vocab as usize, Random::new(0));
        let logits = (0..LOGIT_ROWS * vocab).map(|_| random.below(1 << 24) as f32).collect();
        Ok(Self { rows: builder, logits })
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn start(&self) -> PrefixState {
        START
    }

    /// Over any valid code: a beam stands where the search has put it.
    fn advance(&self, state: &PrefixState, code: u32) -> Option<PrefixState> {
        self.rows.advance(state, code)
    }

    fn contains(&self, codes: &[u32]) -> bool {
        self.rows.contains(codes)
    }

    fn fill_masks(&self, states: &[PrefixState], words_per_row: usize, out: &mut [u32]) {
        let mut best = BestCodes::default();
        for (state, row) in states.iter().zip(out.chunks_exact_mut(words_per_row)) {
            row.fill(0);
            for &code in best.of(self.logits(state)) {
                if self.rows.advance(state, code).is_some() {
                    allow(row, code);
                }
            }
        }
    }

    fn successors(&self, states: &[PrefixState], mut visit: impl FnMut(u32, u32, PrefixState)) {
        let mut best = BestCodes::default();
        for (beam, state) in states.iter().enumerate() {
            for &code in best.of(self.logits(state)) {
                if let Some(next) = self.rows.advance(state, code) {
                    visit(beam as u32, code, next);
                }
            }
        }
    }
}
