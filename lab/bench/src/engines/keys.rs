//! Rows as integers, and a sorted array of them.

use crate::generate::Shape;

/// Layout of a row as one integer: equal bits a code, the first code highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyLayout {
    pub(super) levels: usize,
    pub(super) vocab: u32,
    code_bits: u32,
}

impl KeyLayout {
    /// Reason why rows of such a shape have no key, if they have none.
    pub(super) fn obstacle(shape: &Shape) -> Option<String> {
        let bits = code_bits(shape.vocab) as usize * shape.levels;
        (bits >= 128).then(|| {
            let Shape { levels, vocab, .. } = shape;
            format!("{levels} codes below {vocab} take {bits} bits; its keys have 127")
        })
    }

    /// Relies on [`obstacle`](Self::obstacle) having none.
    pub(super) fn new(shape: &Shape) -> Self {
        Self { levels: shape.levels, vocab: shape.vocab, code_bits: code_bits(shape.vocab) }
    }

    /// The key of a row, or of a prefix followed by zeros.
    pub(super) fn key(&self, codes: &[u32]) -> u128 {
        let place = |(level, &code): (usize, &u32)| self.at(level, code);
        codes.iter().enumerate().map(place).fold(0, |key, bits| key | bits)
    }

    /// A code at its level's place.
    #[inline]
    pub(super) fn at(&self, level: usize, code: u32) -> u128 {
        u128::from(code) << self.bits_after(level + 1)
    }

    /// The code at a level of a key.
    #[inline]
    pub(super) fn code(&self, key: u128, level: usize) -> u32 {
        (key >> self.bits_after(level + 1)) as u32 & ((1 << self.code_bits) - 1)
    }

    /// Bits of the codes from `level` on.
    #[inline]
    pub(super) fn bits_after(&self, level: usize) -> u32 {
        (self.levels - level) as u32 * self.code_bits
    }

    /// Codes that two keys have in common before they first differ.
    #[inline]
    pub(super) fn shared(&self, a: u128, b: u128) -> usize {
        let different_bits = u128::BITS - (a ^ b).leading_zeros();
        self.levels - different_bits.div_ceil(self.code_bits) as usize
    }
}

/// Bits that hold every code below `vocab`; at least one.
fn code_bits(vocab: u32) -> u32 {
    (u32::BITS - (vocab - 1).leading_zeros()).max(1)
}

/// The distinct rows in order, 16 bytes each.
#[derive(Clone, Debug)]
pub struct SortedKeys {
    pub(super) layout: KeyLayout,
    pub(super) keys: Vec<u128>,
}

impl SortedKeys {
    /// Peak while they are sorted, in place.
    pub(super) fn peak_bytes(shape: &Shape) -> u64 {
        16 * shape.items as u64
    }

    pub(super) fn with_capacity_for(shape: &Shape) -> Self {
        Self { layout: KeyLayout::new(shape), keys: Vec::with_capacity(shape.items) }
    }

    pub(super) fn push(&mut self, codes: &[u32]) {
        self.keys.push(self.layout.key(codes));
    }

    pub(super) fn sort(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup();
    }

    /// True if some key begins with the first `len` codes of `key`; its others are 0.
    #[inline]
    pub(super) fn has_prefix(&self, key: u128, len: usize) -> bool {
        let first = self.keys.partition_point(|&at| at < key);
        let rest = self.layout.bits_after(len);
        self.keys.get(first).is_some_and(|at| at >> rest == key >> rest)
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.keys.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_order_codes_and_shared_prefixes() {
        let layout = KeyLayout::new(&Shape { items: 0, levels: 3, vocab: 100 });
        let [a, b, c] = [[1, 99, 0], [1, 99, 1], [2, 0, 0]].map(|codes| layout.key(&codes));
        assert!(a < b && b < c);
        assert_eq!([layout.shared(a, b), layout.shared(b, c), layout.shared(a, a)], [2, 0, 3]);
        assert_eq!([0, 1, 2].map(|level| layout.code(b, level)), [1, 99, 1]);
    }

    #[test]
    fn keys_have_127_bits() {
        let shape = |levels, vocab| Shape { items: 1, levels, vocab };
        assert_eq!(KeyLayout::obstacle(&shape(127, 2)), None);
        assert!(KeyLayout::obstacle(&shape(16, 256)).unwrap().contains("128 bits"));
    }
}
