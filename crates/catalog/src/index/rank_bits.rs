//! A bitvector that counts.

use std::ops::Range;

use palmette_mapped::{Array, SectionsIn, SectionsOut, nth_one, prefetch};
use serde::{Deserialize, Serialize};

use super::position_list::partition_point;

/// A block is one cache line of eight words: 480 bits in the words, but for the first half of word
/// 0, which counts the ones before the block.
const BLOCK_WORDS: usize = 8;
const BLOCK_BITS: u64 = 480;
/// The count is relative to its superblock, since it has 32 bits.
const SUPERBLOCK_BLOCKS: u64 = 1 << 20;
/// Lines that are looked through for the next one before it is searched for by number.
const NEAR_BLOCKS: u64 = 4;

/// A frozen bitvector with rank and select, counts and bits in the same cache line.
///
/// Cost: `rank` reads one line; `select` within a range is a binary search over the range's blocks.
/// Memory: 1.067 bits a bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RankBits {
    words: Array<u64>,
    /// Ones before each superblock.
    superblocks: Array<u64>,
    len: u64,
    num_ones: u64,
}

/// Serialised place of a bitvector in a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RankBitsMeta {
    words: u32,
    superblocks: u32,
    len: u64,
    num_ones: u64,
}

impl RankBits {
    /// A bitvector of `len` bits with ones at `ones`, strictly ascending.
    pub(crate) fn new(len: u64, ones: impl IntoIterator<Item = u64>) -> Self {
        let mut words = vec![0_u64; num_blocks(len) as usize * BLOCK_WORDS];
        let mut num_ones = 0;
        for one in ones {
            assert!(one < len, "bit {one} of {len}");
            let (word, bit) = place(one);
            words[word] |= 1 << bit;
            num_ones += 1;
        }
        let mut superblocks = Vec::new();
        let mut total = 0;
        for (number, block) in words.chunks_exact_mut(BLOCK_WORDS).enumerate() {
            if (number as u64).is_multiple_of(SUPERBLOCK_BLOCKS) {
                superblocks.push(total);
            }
            let before = total - superblocks[superblocks.len() - 1];
            total += block.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            block[0] |= before;
        }
        debug_assert_eq!(total, num_ones);
        Self { words: words.into(), superblocks: superblocks.into(), len, num_ones }
    }

    /// Number of bits.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn num_ones(&self) -> u64 {
        self.num_ones
    }

    #[inline]
    pub(crate) fn get(&self, position: u64) -> bool {
        let (word, bit) = place(position);
        self.words.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// Ones before `position`, which may be the length.
    #[inline(always)]
    pub(crate) fn rank(&self, position: u64) -> u64 {
        let block = position / BLOCK_BITS;
        let Some(words) = self.block(block) else { return self.num_ones };
        // The count takes the first 32 bits of the line.
        let bit = (position % BLOCK_BITS + 32) as u32;
        let (word, keep) = ((bit / 64) as usize, (1_u64 << (bit % 64)) - 1);
        let mut ones = (words[word] & keep & !count_bits(word)).count_ones();
        for (at, bits) in words[..word].iter().enumerate() {
            ones += (bits & !count_bits(at)).count_ones();
        }
        self.before(block, words) + u64::from(ones)
    }

    /// Position of the one numbered `index` from 0, which lies at or after `from` and before `to`;
    /// `to` when it does not.
    #[inline(always)]
    pub(crate) fn select(&self, index: u64, from: u64, to: u64) -> u64 {
        let (first, last) = (from / BLOCK_BITS, to.div_ceil(BLOCK_BITS));
        let not_past = |block| self.block(block).is_some_and(|w| self.before(block, w) <= index);
        let block = partition_point(first + 1..last, not_past) - 1;
        let Some(words) = self.block(block) else { return to };
        let mut left = index.wrapping_sub(self.before(block, words));
        for (at, bits) in words.iter().enumerate() {
            let bits = bits & !count_bits(at);
            let ones = u64::from(bits.count_ones());
            if left < ones {
                let bits = (0..left).fold(bits, |bits, _| bits & (bits - 1));
                let bit = at as u64 * 64 + u64::from(bits.trailing_zeros()) - 32;
                return (block * BLOCK_BITS + bit).min(to);
            }
            left -= ones;
        }
        to
    }

    /// Position of the first one at or after `from`, which is the one numbered `index`; `to` when
    /// there is none before it.
    #[inline(always)]
    pub(crate) fn next(&self, from: u64, to: u64, index: u64) -> u64 {
        if from >= to {
            return to;
        }
        let (first, bit) = (from / BLOCK_BITS, from % BLOCK_BITS + 32);
        let last = (to.div_ceil(BLOCK_BITS)).min(first + NEAR_BLOCKS);
        let (mut at, mut keep) = ((bit / 64) as usize, u64::MAX << (bit % 64));
        for block in first..last {
            let Some(words) = self.block(block) else { return to };
            while at < BLOCK_WORDS {
                let bits = words[at] & keep & !count_bits(at);
                if bits != 0 {
                    let bit = at as u64 * 64 + u64::from(bits.trailing_zeros()) - 32;
                    return (block * BLOCK_BITS + bit).min(to);
                }
                (at, keep) = (at + 1, u64::MAX);
            }
            at = 0;
        }
        match last * BLOCK_BITS < to {
            true => self.select(index, last * BLOCK_BITS, to),
            false => to,
        }
    }

    /// Position of the one that has as many `others` at `from` or after it before it, and of the
    /// one after that; `to` for either that is not before it.
    ///
    /// PERF: within a block nothing is guessed: all words are counted, and word and bit found by
    /// comparing.
    #[inline(always)]
    pub(crate) fn nth_after(&self, from: u64, others: u64, to: u64) -> Range<u64> {
        let first = from / BLOCK_BITS;
        let Some(words) = self.block(first) else { return to..to };
        let from_bit = (from % BLOCK_BITS + 32) as u32;
        let before: u32 = (0..BLOCK_WORDS)
            .map(|at| (bits_of(words, at) & !from_on(from_bit, at)).count_ones())
            .sum();
        let index = (self.before(first, words) + u64::from(before)).saturating_add(others);
        let last = to.saturating_sub(1) / BLOCK_BITS;
        let not_past = |block| self.block(block).is_some_and(|w| self.before(block, w) <= index);
        let block = match last <= first + 1 {
            true => first + u64::from(last > first && not_past(last)),
            false => partition_point(first + 1..last + 1, not_past) - 1,
        };
        let Some(words) = self.block(block) else { return to..to };
        let left = index.wrapping_sub(self.before(block, words));
        let (mut word, mut before, mut ones) = (0, 0, 0);
        for at in 0..BLOCK_WORDS {
            ones += u64::from(bits_of(words, at).count_ones());
            let is_past = ones <= left;
            word += usize::from(is_past);
            before = if is_past { ones } else { before };
        }
        if word >= BLOCK_WORDS {
            return to..to;
        }
        let bits = bits_of(words, word);
        let bit = nth_one(bits, (left - before) as u32);
        // The count takes the first 32 bits of the line; no one lies there.
        let position =
            |bit: u32| (block * BLOCK_BITS + word as u64 * 64 + u64::from(bit) - 32).min(to);
        let start = position(bit);
        match bits & (u64::MAX << bit << 1) {
            0 => start..self.next(start + 1, to, index.saturating_add(1)),
            after => start..position(after.trailing_zeros()),
        }
    }

    #[inline]
    pub(crate) fn prefetch(&self, position: u64) {
        prefetch(&self.words, (position / BLOCK_BITS) as usize * BLOCK_WORDS);
    }

    /// Bytes of a bitvector before it is made.
    pub(crate) fn bytes_for(len: u64) -> u64 {
        let blocks = num_blocks(len);
        8 * (blocks * BLOCK_WORDS as u64 + blocks.div_ceil(SUPERBLOCK_BLOCKS))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.as_bytes().len() + self.superblocks.as_bytes().len()
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> RankBitsMeta {
        RankBitsMeta {
            words: out.add_array(&self.words),
            superblocks: out.add_array(&self.superblocks),
            len: self.len,
            num_ones: self.num_ones,
        }
    }

    pub(crate) fn load(meta: RankBitsMeta, sections: &SectionsIn) -> Result<Self, String> {
        let RankBitsMeta { words, superblocks, len, num_ones } = meta;
        if num_ones > len {
            return Err(format!("a bitvector of {len} bits has {num_ones} ones"));
        }
        let blocks = num_blocks(len);
        let num_words = blocks.checked_mul(BLOCK_WORDS as u64).ok_or("a size overflows")?;
        let superblocks = sections.array(superblocks, blocks.div_ceil(SUPERBLOCK_BLOCKS))?;
        Ok(Self { words: sections.array(words, num_words)?, superblocks, len, num_ones })
    }

    /// Fails unless the counts are those of the bits, and no bit lies past the end.
    pub(crate) fn check(&self) -> Result<(), String> {
        let ones = (0..self.len).filter(|&position| self.get(position));
        match *self == Self::new(self.len, ones) {
            true => Ok(()),
            false => Err("a bitvector's counts are wrong".into()),
        }
    }

    #[inline]
    fn block(&self, block: u64) -> Option<&[u64; BLOCK_WORDS]> {
        let start = usize::try_from(block).ok()?.checked_mul(BLOCK_WORDS)?;
        self.words.get(start..)?.first_chunk()
    }

    /// Ones before a block.
    #[inline]
    fn before(&self, block: u64, words: &[u64; BLOCK_WORDS]) -> u64 {
        let superblock = (block / SUPERBLOCK_BLOCKS) as usize;
        // A catalog below 500 million items has one superblock, whose count is 0.
        let base = if superblock == 0 {
            0
        } else {
            // No more than there are, whatever a damaged file says.
            self.superblocks.get(superblock).copied().unwrap_or(0).min(self.num_ones)
        };
        base + (words[0] & count_bits(0))
    }
}

/// One more than the bits need, so that the position after the last has a block too.
fn num_blocks(len: u64) -> u64 {
    len / BLOCK_BITS + 1
}

/// The part of a block's word that is a count and not bits.
#[inline]
fn count_bits(word: usize) -> u64 {
    if word == 0 { u64::from(u32::MAX) } else { 0 }
}

/// The bits of a block's word, without the count.
#[inline(always)]
fn bits_of(words: &[u64; BLOCK_WORDS], word: usize) -> u64 {
    words[word] & !count_bits(word)
}

/// Mask of the bits of word `word` from bit `bit` of the line on.
#[inline(always)]
fn from_on(bit: u32, word: usize) -> u64 {
    u64::MAX.checked_shl(bit.saturating_sub(64 * word as u32)).unwrap_or(0)
}

#[inline]
fn place(position: u64) -> (usize, u32) {
    let bit = position % BLOCK_BITS + 32;
    ((position / BLOCK_BITS) as usize * BLOCK_WORDS + (bit / 64) as usize, (bit % 64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Dense ones, and ones farther apart than is looked through.
    fn bits() -> impl Strategy<Value = Vec<bool>> {
        let share = prop_oneof![Just(0.1), Just(0.002)];
        share.prop_flat_map(|share| prop::collection::vec(prop::bool::weighted(share), 0..6000))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn equals_counting(bits in bits(), from: prop::sample::Index, to: prop::sample::Index) {
            let len = bits.len() as u64;
            let ones: Vec<u64> = (0..len).filter(|&i| bits[i as usize]).collect();
            let made = RankBits::new(len, ones.iter().copied());
            prop_assert_eq!(made.num_ones(), ones.len() as u64);
            prop_assert_eq!(made.bytes() as u64, RankBits::bytes_for(len));
            prop_assert_eq!(made.check(), Ok(()));
            for position in 0..=len {
                let before = ones.partition_point(|&one| one < position) as u64;
                prop_assert_eq!(made.rank(position), before);
                prop_assert_eq!(made.get(position), bits.get(position as usize) == Some(&true));
            }
            let (from, to) = (from.index(bits.len() + 1) as u64, to.index(bits.len() + 1) as u64);
            let (from, to) = (from.min(to), from.max(to));
            let index = made.rank(from);
            let next = ones.get(index as usize).map_or(to, |&one| one.min(to));
            prop_assert_eq!(made.next(from, to, index), next);
            let one = |index: u64| ones.get(index as usize).map_or(to, |&one| one.min(to));
            for index in made.rank(from)..made.rank(to) {
                prop_assert_eq!(made.select(index, from, to), ones[index as usize]);
                let others = index - made.rank(from);
                prop_assert_eq!(made.nth_after(from, others, to), one(index)..one(index + 1));
            }
            let past = made.rank(to) - made.rank(from);
            for others in [past, past + 1, past + 1000, u64::MAX] {
                prop_assert_eq!(made.nth_after(from, others, to), to..to);
            }
            prop_assert_eq!(made.select(made.rank(to), from, to), to);
        }
    }
}
