//! NEZHA's check (WWW 2026, §3.3): a hash set of whole semantic IDs as mixed-radix integers.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::hash_trie::PrefixHasher;
use super::{Engine, allow, allow_all, try_all_codes};
use crate::generate::Shape;

/// Whole IDs as integers, equation (4): the sum of each code times the product of the codebook
/// sizes before it.
///
/// It verifies whole IDs alone: before the last level every code is allowed, so a beam may end up
/// where nothing can follow. Not exact by prefix.
#[derive(Clone, Debug)]
pub struct MixedRadixSet {
    shape: Shape,
    ids: HashSet<u128, BuildHasherDefault<PrefixHasher>>,
}

/// Codes so far: their sum, and the product that the next code is multiplied with.
#[derive(Clone, Copy, Debug)]
pub struct RadixState {
    sum: u128,
    place: u128,
    level: u32,
}

const START: RadixState = RadixState { sum: 0, place: 1, level: 0 };

impl MixedRadixSet {
    fn last_level(&self) -> u32 {
        self.shape.levels as u32 - 1
    }

    #[inline]
    fn then(&self, state: &RadixState, code: u32) -> RadixState {
        let sum = state.sum + u128::from(code) * state.place;
        let place = state.place * u128::from(self.shape.vocab);
        RadixState { sum, place, level: state.level + 1 }
    }
}

impl Engine for MixedRadixSet {
    const NAME: &'static str = "mixed_radix_set";
    const EXACT: bool = false;
    type Builder = Self;
    type State = RadixState;

    fn obstacle(shape: &Shape) -> Option<String> {
        u128::from(shape.vocab)
            .checked_pow(shape.levels as u32)
            .is_none()
            .then(|| format!("{} ^ {} IDs have no numbers of 128 bits", shape.vocab, shape.levels))
    }

    fn peak_bytes(shape: &Shape) -> u64 {
        (shape.items as u64 * 8 / 7).next_power_of_two() * 17
    }

    fn builder(shape: &Shape) -> Self {
        let ids = HashSet::with_capacity_and_hasher(shape.items, BuildHasherDefault::default());
        Self { shape: *shape, ids }
    }

    fn push(builder: &mut Self, codes: &[u32]) {
        let whole = codes.iter().fold(START, |state, &code| builder.then(&state, code));
        builder.ids.insert(whole.sum);
    }

    fn build(builder: Self) -> Result<Self, String> {
        Ok(builder)
    }

    fn bytes(&self) -> usize {
        (self.ids.capacity() * 8 / 7).next_power_of_two() * 17
    }

    fn start(&self) -> RadixState {
        START
    }

    fn advance(&self, state: &RadixState, code: u32) -> Option<RadixState> {
        if state.level > self.last_level() || code >= self.shape.vocab {
            return None;
        }
        let next = self.then(state, code);
        (state.level < self.last_level() || self.ids.contains(&next.sum)).then_some(next)
    }

    fn contains(&self, codes: &[u32]) -> bool {
        let end = codes.iter().try_fold(START, |state, &code| self.advance(&state, code));
        end.is_some_and(|state| state.level > self.last_level())
    }

    fn fill_masks(&self, states: &[RadixState], words_per_row: usize, out: &mut [u32]) {
        let vocab = self.shape.vocab;
        for (state, row) in states.iter().zip(out.chunks_exact_mut(words_per_row)) {
            if state.level < self.last_level() {
                allow_all(row, vocab);
                continue;
            }
            row.fill(0);
            for code in 0..vocab {
                if self.advance(state, code).is_some() {
                    allow(row, code);
                }
            }
        }
    }

    fn successors(&self, states: &[RadixState], visit: impl FnMut(u32, u32, RadixState)) {
        try_all_codes(self, self.shape.vocab, states, visit);
    }
}
