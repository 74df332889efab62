//! One bit for every hashed prefix: STATIC's "Hash Bitmap" (§5.2, baseline 5), after Bloom.

use super::{Engine, allow, try_all_codes};
use crate::generate::Shape;
use crate::random::mix;

/// A bitmap a level, of a power of two of bits and at least 16 for every item.
///
/// Every prefix sets the bit that its hash names. Prefixes that meet on one bit cannot be told
/// apart, so codes that lead nowhere are allowed at times; a code that leads on is never forbidden.
#[derive(Clone, Debug)]
pub struct HashBitmap {
    vocab: u32,
    levels: Vec<Vec<u64>>,
    shift: u32,
}

const BITS_PER_ITEM: usize = 16;

/// A prefix: its hash.
#[derive(Clone, Copy, Debug)]
pub struct HashedState {
    hash: u64,
    level: u32,
}

const START: HashedState = HashedState { hash: 0, level: 0 };

fn num_bits(shape: &Shape) -> usize {
    (shape.items * BITS_PER_ITEM).next_power_of_two().max(64)
}

fn then(state: &HashedState, code: u32) -> HashedState {
    // The 1 keeps code 0 from leaving the start as it is.
    HashedState {
        hash: mix(state.hash.wrapping_add(1) ^ u64::from(code) << 32),
        level: state.level + 1,
    }
}

impl HashBitmap {
    fn bit(&self, state: &HashedState) -> usize {
        (state.hash >> self.shift) as usize
    }
}

impl Engine for HashBitmap {
    const NAME: &'static str = "hash_bitmap";
    const EXACT: bool = false;
    type Builder = Self;
    type State = HashedState;

    fn peak_bytes(shape: &Shape) -> u64 {
        (num_bits(shape) / 8 * shape.levels) as u64
    }

    fn builder(shape: &Shape) -> Self {
        let bits = num_bits(shape);
        Self {
            vocab: shape.vocab,
            levels: vec![vec![0; bits / 64]; shape.levels],
            shift: u64::BITS - bits.trailing_zeros(),
        }
    }

    fn push(builder: &mut Self, codes: &[u32]) {
        let mut state = START;
        for (level, &code) in codes.iter().enumerate() {
            state = then(&state, code);
            let bit = builder.bit(&state);
            builder.levels[level][bit / 64] |= 1 << (bit % 64);
        }
    }

    fn build(builder: Self) -> Result<Self, String> {
        Ok(builder)
    }

    fn bytes(&self) -> usize {
        self.levels.iter().map(|bits| size_of_val(bits.as_slice())).sum()
    }

    fn start(&self) -> HashedState {
        START
    }

    #[inline]
    fn advance(&self, state: &HashedState, code: u32) -> Option<HashedState> {
        let bits = self.levels.get(state.level as usize).filter(|_| code < self.vocab)?;
        let next = then(state, code);
        let bit = self.bit(&next);
        (bits[bit / 64] >> (bit % 64) & 1 == 1).then_some(next)
    }

    fn contains(&self, codes: &[u32]) -> bool {
        let end = codes.iter().try_fold(START, |state, &code| self.advance(&state, code));
        end.is_some_and(|state| state.level as usize == self.levels.len())
    }

    fn fill_masks(&self, states: &[HashedState], words_per_row: usize, out: &mut [u32]) {
        for (state, row) in states.iter().zip(out.chunks_exact_mut(words_per_row)) {
            row.fill(0);
            for code in 0..self.vocab {
                if self.advance(state, code).is_some() {
                    allow(row, code);
                }
            }
        }
    }

    fn successors(&self, states: &[HashedState], visit: impl FnMut(u32, u32, HashedState)) {
        try_all_codes(self, self.vocab, states, visit);
    }
}
