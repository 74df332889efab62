//! Prefix verification by binary search (DISC-PPV, arXiv 2504.09135; STATIC §5.2, baselines 3, 4).
//!
//! The rows are one sorted array. To ask whether a code may follow, the prefix with that code is
//! searched in the whole array; nothing is kept between steps. The original runs the searches of
//! all candidates side by side on an accelerator; here they run one after another.

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
/// Scores are random here: each prefix is given one of 256 random rankings. Finding the 50 best is
/// not part of the step; a beam search that checks them has them at hand.
#[derive(Clone, Debug)]
pub struct PpvTop50 {
    rows: SortedKeys,
    /// `[256, min(50, vocab)]` distinct codes, ascending in each row.
    best: Vec<u32>,
    num_best: usize,
}

const RANKINGS: usize = 256;
const NUM_BEST: u32 = 50;

impl PpvTop50 {
    #[inline]
    fn best(&self, state: &PrefixState) -> &[u32] {
        let prefix = (state.key >> 64) as u64 ^ state.key as u64 ^ u64::from(state.level) << 56;
        let ranking = mix(prefix) as usize % RANKINGS;
        &self.best[ranking * self.num_best..][..self.num_best]
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
        let (vocab, mut random) = (builder.layout.vocab, Random::new(0));
        let num_best = NUM_BEST.min(vocab) as usize;
        let mut best = Vec::with_capacity(RANKINGS * num_best);
        for _ in 0..RANKINGS {
            let mut drawn = std::collections::BTreeSet::new();
            while drawn.len() < num_best {
                drawn.insert(random.below(u64::from(vocab)) as u32);
            }
            best.extend(drawn);
        }
        Ok(Self { rows: builder, best, num_best })
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
        for (state, row) in states.iter().zip(out.chunks_exact_mut(words_per_row)) {
            row.fill(0);
            for &code in self.best(state) {
                if self.rows.advance(state, code).is_some() {
                    allow(row, code);
                }
            }
        }
    }

    fn successors(&self, states: &[PrefixState], mut visit: impl FnMut(u32, u32, PrefixState)) {
        for (beam, state) in states.iter().enumerate() {
            for &code in self.best(state) {
                if let Some(next) = self.rows.advance(state, code) {
                    visit(beam as u32, code, next);
                }
            }
        }
    }
}
