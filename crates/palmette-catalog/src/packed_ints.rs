//! Numbers in as few bits as the largest needs.

/// A frozen array of numbers, each in the same number of bits, 0 to 32.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedInts {
    /// One spare word at the end, so that every read may take two.
    words: Box<[u64]>,
    bits: u32,
    len: usize,
}

impl PackedInts {
    pub(crate) fn new(values: &[u32]) -> Self {
        let bits = values.iter().max().map_or(0, |max| u32::BITS - max.leading_zeros());
        let mut words = vec![0_u64; (values.len() * bits as usize).div_ceil(64) + 1];
        for (index, &value) in values.iter().enumerate() {
            let place = index * bits as usize;
            let spread = u128::from(value) << (place % 64);
            words[place / 64] |= spread as u64;
            if (spread >> 64) != 0 {
                words[place / 64 + 1] |= (spread >> 64) as u64;
            }
        }
        Self { words: words.into(), bits, len: values.len() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, index: usize) -> u32 {
        assert!(index < self.len, "entry {index} of {}", self.len);
        let place = index * self.bits as usize;
        let pair = u128::from(self.words[place / 64])
            | u128::from(self.words.get(place / 64 + 1).copied().unwrap_or(0)) << 64;
        ((pair >> (place % 64)) as u64 & ((1 << self.bits) - 1)) as u32
    }

    /// Bits of one entry.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_back_what_went_in(values in prop::collection::vec(0_u32.., 0..200), keep in 0_u32..=32) {
            let values: Vec<u32> = values.iter().map(|v| v.checked_shr(32 - keep).unwrap_or(0)).collect();
            let packed = PackedInts::new(&values);
            prop_assert!(packed.bits() <= keep);
            prop_assert_eq!((0..packed.len()).map(|i| packed.get(i)).collect::<Vec<_>>(), values);
        }
    }
}
