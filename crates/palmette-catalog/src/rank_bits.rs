//! A bitvector that counts.

/// Bits in a block: one entry of the rank index for each.
const BLOCK_BITS: usize = 512;
const BLOCK_WORDS: usize = BLOCK_BITS / 64;

/// A frozen bitvector with rank and select.
///
/// Cost: `rank` reads one index entry and at most one 64-byte block; `select` adds a binary search
/// over the index. Memory: 1.0625 bits per bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RankBits {
    words: Box<[u64]>,
    /// Ones before each block, and in the end all of them.
    block_ranks: Box<[u32]>,
    len: usize,
}

impl RankBits {
    /// A bitvector of `len` bits with ones at `ones`, strictly ascending.
    pub(crate) fn new(len: usize, ones: impl IntoIterator<Item = usize>) -> Self {
        let mut words = vec![0_u64; len.div_ceil(BLOCK_BITS) * BLOCK_WORDS];
        for one in ones {
            assert!(one < len, "bit {one} of {len}");
            words[one / 64] |= 1 << (one % 64);
        }
        let mut block_ranks = Vec::with_capacity(words.len() / BLOCK_WORDS + 1);
        let mut total = 0;
        for block in words.chunks_exact(BLOCK_WORDS) {
            block_ranks.push(total);
            total += block.iter().map(|w| w.count_ones()).sum::<u32>();
        }
        block_ranks.push(total);
        Self { words: words.into(), block_ranks: block_ranks.into(), len }
    }

    /// Number of ones.
    pub(crate) fn count_ones(&self) -> usize {
        self.block_ranks.last().map_or(0, |&n| n as usize)
    }

    pub(crate) fn get(&self, position: usize) -> bool {
        self.words[position / 64] >> (position % 64) & 1 == 1
    }

    /// Ones before `position`, which may be the length.
    pub(crate) fn rank(&self, position: usize) -> usize {
        debug_assert!(position <= self.len);
        let block = position / BLOCK_BITS;
        let mut rank = self.block_ranks[block];
        let word = position / 64;
        rank += self.words[block * BLOCK_WORDS..word].iter().map(|w| w.count_ones()).sum::<u32>();
        if !position.is_multiple_of(64) {
            rank += (self.words[word] & ((1 << (position % 64)) - 1)).count_ones();
        }
        rank as usize
    }

    /// Position of the one numbered `index` from 0; the length when there are not that many.
    pub(crate) fn select(&self, index: usize) -> usize {
        if index >= self.count_ones() {
            return self.len;
        }
        let block = self.block_ranks.partition_point(|&before| before as usize <= index) - 1;
        let mut left = index as u32 - self.block_ranks[block];
        for (word, &bits) in self.words.iter().enumerate().skip(block * BLOCK_WORDS) {
            let ones = bits.count_ones();
            if left < ones {
                let bits = (0..left).fold(bits, |bits, _| bits & (bits - 1));
                return word * 64 + bits.trailing_zeros() as usize;
            }
            left -= ones;
        }
        unreachable!("the index counts {} ones", self.count_ones())
    }

    /// Position of the one numbered `index`, which is the first after `position`; the length when
    /// there is none. [`select`](Self::select), but quick where the two are near.
    pub(crate) fn following(&self, position: usize, index: usize) -> usize {
        let from = position + 1;
        let near = self.words.iter().enumerate().skip(from / 64).take(BLOCK_WORDS);
        for (word, &bits) in near {
            let bits = if word == from / 64 { bits & (u64::MAX << (from % 64)) } else { bits };
            if bits != 0 {
                return word * 64 + bits.trailing_zeros() as usize;
            }
        }
        self.select(index)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.block_ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Dense ones, and ones farther apart than a block.
    fn bits() -> impl Strategy<Value = Vec<bool>> {
        let share = prop_oneof![Just(0.1), Just(0.001)];
        share.prop_flat_map(|share| prop::collection::vec(prop::bool::weighted(share), 0..3000))
    }

    proptest! {
        #[test]
        fn equals_counting(bits in bits()) {
            let ones: Vec<usize> = (0..bits.len()).filter(|&i| bits[i]).collect();
            let made = RankBits::new(bits.len(), ones.iter().copied());
            prop_assert_eq!(made.count_ones(), ones.len());
            for position in 0..=bits.len() {
                let before = ones.iter().filter(|&&one| one < position).count();
                prop_assert_eq!(made.rank(position), before);
                prop_assert_eq!(position < bits.len() && made.get(position), bits.get(position) == Some(&true));
            }
            for (index, &one) in ones.iter().enumerate() {
                prop_assert_eq!(made.select(index), one);
                let next = ones.get(index + 1).copied().unwrap_or(bits.len());
                prop_assert_eq!(made.following(one, index + 1), next);
            }
            prop_assert_eq!(made.select(ones.len()), bits.len());
        }
    }
}
