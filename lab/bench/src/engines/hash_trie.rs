//! A prefix trie as a hash map: STATIC's "CPU trie" (§5.2, baseline 2) and what most projects use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::keys::KeyLayout;
use super::{Engine, allow};
use crate::generate::Shape;
use crate::random::mix;

/// From each prefix to the codes that may follow it, ascending.
///
/// A prefix is its codes' bits behind a 1, which keeps prefixes of different lengths apart.
#[derive(Clone, Debug)]
pub struct HashTrie {
    shape: Shape,
    next_codes: HashMap<u128, Vec<u32>, BuildHasherDefault<PrefixHasher>>,
}

const START: u128 = 1;

impl HashTrie {
    fn then(&self, prefix: u128, code: u32) -> u128 {
        let layout = KeyLayout::new(&self.shape);
        prefix << layout.bits_after(layout.levels - 1) | u128::from(code)
    }

    fn codes(&self, prefix: u128) -> &[u32] {
        self.next_codes.get(&prefix).map_or(&[], Vec::as_slice)
    }
}

impl Engine for HashTrie {
    const NAME: &'static str = "hash_trie";
    const EXACT: bool = true;
    type Builder = Self;
    type State = u128;

    fn obstacle(shape: &Shape) -> Option<String> {
        KeyLayout::obstacle(shape)
    }

    /// A map at its worst, just grown, holds three times 8/7 of its 48-byte entries, half old and
    /// half new; each list is an allocation of 32 bytes.
    fn peak_bytes(shape: &Shape) -> u64 {
        let mut prefixes = 0;
        let mut possible = 1_u64;
        for _ in 0..shape.levels {
            prefixes += possible.min(shape.items as u64);
            possible = possible.saturating_mul(u64::from(shape.vocab));
        }
        let places = (prefixes * 8 / 7).next_power_of_two();
        places * (size_of::<(u128, Vec<u32>)>() as u64 + 1) * 3 / 2 + prefixes * 32
    }

    fn builder(shape: &Shape) -> Self {
        Self { shape: *shape, next_codes: HashMap::default() }
    }

    fn push(builder: &mut Self, codes: &[u32]) {
        let mut prefix = START;
        for &code in codes {
            let next = builder.next_codes.entry(prefix).or_default();
            if let Err(place) = next.binary_search(&code) {
                next.insert(place, code);
            }
            prefix = builder.then(prefix, code);
        }
    }

    fn build(builder: Self) -> Result<Self, String> {
        Ok(builder)
    }

    /// The map's places with a byte each of its own, and the lists' codes. What the allocator
    /// adds to each list is not counted.
    fn bytes(&self) -> usize {
        let lists: usize = self.next_codes.values().map(|codes| 4 * codes.capacity()).sum();
        let places = (self.next_codes.capacity() * 8 / 7).next_power_of_two();
        places * (size_of::<(u128, Vec<u32>)>() + 1) + lists
    }

    fn start(&self) -> u128 {
        START
    }

    fn advance(&self, state: &u128, code: u32) -> Option<u128> {
        self.codes(*state).binary_search(&code).ok()?;
        Some(self.then(*state, code))
    }

    fn contains(&self, codes: &[u32]) -> bool {
        let end = codes.iter().try_fold(START, |state, &code| self.advance(&state, code));
        end.is_some() && codes.len() == self.shape.levels
    }

    fn fill_masks(&self, states: &[u128], words_per_row: usize, out: &mut [u32]) {
        for (&state, row) in states.iter().zip(out.chunks_exact_mut(words_per_row)) {
            row.fill(0);
            self.codes(state).iter().for_each(|&code| allow(row, code));
        }
    }

    fn successors(&self, states: &[u128], mut visit: impl FnMut(u32, u32, u128)) {
        for (beam, &state) in states.iter().enumerate() {
            for &code in self.codes(state) {
                visit(beam as u32, code, self.then(state, code));
            }
        }
    }
}

/// Mixes integer keys: faster than the standard library's hasher, and the same in every run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrefixHasher(u64);

impl Hasher for PrefixHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = mix(self.0 ^ u64::from(byte)));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = mix(mix(key as u64) ^ (key >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
