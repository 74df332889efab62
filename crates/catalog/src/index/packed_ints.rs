//! Numbers in as few bits as the largest needs.

use std::ops::Range;

use palmette_mapped::{Array, SectionsIn, SectionsOut, prefetch};
use serde::{Deserialize, Serialize};

use super::position_list::partition_point;

/// Largest width of a number: any of these bits lie whole in an unaligned 64-bit read.
const MAX_BITS: u32 = 57;

/// A frozen array of numbers, each in the same number of bits, 0 to 57.
///
/// Cost: a read is one unaligned load, a shift and a mask; nearly always one cache line. A read
/// past the end gives 0, so that a damaged file cannot do worse than a wrong number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedInts {
    /// The numbers from the lowest bit up, and a spare word, so that every read may take eight
    /// bytes.
    words: Array<u64>,
    bits: u32,
    len: u64,
}

/// Serialised place of an array in a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct PackedIntsMeta {
    section: u32,
    bits: u32,
    len: u64,
}

impl PackedInts {
    /// Takes numbers that all fit in `bits`.
    pub(crate) fn new(bits: u32, values: impl IntoIterator<Item = u64>) -> Self {
        let mut packer = Packer::new(bits);
        values.into_iter().for_each(|value| packer.push(value));
        packer.finish()
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, index: u64) -> u64 {
        self.reader().get(index)
    }

    /// For several reads in a row: the memory is looked up once.
    #[inline]
    pub(crate) fn reader(&self) -> PackedReader<'_> {
        let (bits, mask) = (u64::from(self.bits), (1 << self.bits) - 1);
        let per_read = MAX_BITS.checked_div(self.bits).map_or(0, |numbers| numbers.min(8));
        PackedReader { bytes: self.words.as_bytes(), bits, mask, per_read: u64::from(per_read) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let reader = self.reader();
        (0..self.len).map(move |index| reader.get(index))
    }

    /// Bits of one entry.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.as_bytes().len()
    }

    /// Bytes of an array before it is made.
    pub(crate) fn bytes_for(bits: u32, len: u64) -> Option<u64> {
        num_words(bits, len)?.checked_mul(8)
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> PackedIntsMeta {
        PackedIntsMeta { section: out.add_array(&self.words), bits: self.bits, len: self.len }
    }

    pub(crate) fn load(meta: PackedIntsMeta, sections: &SectionsIn) -> Result<Self, String> {
        let PackedIntsMeta { section, bits, len } = meta;
        if bits > MAX_BITS {
            return Err(format!("an array has {bits} bits a number, over the limit of {MAX_BITS}"));
        }
        let num_words = num_words(bits, len).ok_or("the size of an array overflows")?;
        Ok(Self { words: sections.array(section, num_words)?, bits, len })
    }
}

/// Words of an array, the spare one with them.
pub(crate) fn num_words(bits: u32, len: u64) -> Option<u64> {
    Some(len.checked_mul(u64::from(bits))?.div_ceil(64) + 1)
}

/// Bits that hold every number up to `max`.
pub(crate) fn bits_for(max: u64) -> u32 {
    u64::BITS - max.leading_zeros()
}

/// The numbers of a [`PackedInts`], its memory looked up.
#[derive(Clone, Copy)]
pub(crate) struct PackedReader<'a> {
    bytes: &'a [u8],
    bits: u64,
    mask: u64,
    /// Numbers that a read always holds, at most eight; none where they have no bits.
    per_read: u64,
}

impl PackedReader<'_> {
    #[inline(always)]
    pub(crate) fn get(&self, index: u64) -> u64 {
        self.read(index) & self.mask
    }

    /// Visits the numbers at `range`; past the end they are 0.
    #[inline]
    pub(crate) fn for_each(&self, range: Range<u64>, mut visit: impl FnMut(u64)) {
        let mut place = range.start.wrapping_mul(self.bits);
        for _ in range {
            let word = self.bytes.get((place / 8) as usize..).and_then(|rest| rest.first_chunk());
            visit(word.map_or(0, |&word| u64::from_le_bytes(word)) >> (place % 8) & self.mask);
            place = place.wrapping_add(self.bits);
        }
    }

    /// Visits the numbers at `range` that there are, and some after them with `false`; where
    /// numbers have no bits, a single one.
    ///
    /// PERF: as many numbers as a read holds are visited without asking whether they belong, since
    /// how many do is not predictable. With five codes a beam, a step of 140 beams went from 3.6 to
    /// 2.8 us, hot.
    #[inline(always)]
    pub(crate) fn for_each_or_more(&self, range: Range<u64>, mut visit: impl FnMut(u64, bool)) {
        let (mut index, mut word) = (range.start, self.read(range.start));
        // So it is with nearly all prefixes of deep levels.
        if index + 1 == range.end {
            return visit(word & self.mask, true);
        }
        if self.per_read == 0 || range.is_empty() {
            // All numbers are 0, however many a damaged file says there are.
            return visit(0, !range.is_empty());
        }
        loop {
            let left = range.end - index;
            for at in 0..self.per_read {
                visit(word & self.mask, at < left);
                word = word.wrapping_shr(self.bits as u32);
            }
            index += self.per_read;
            if left <= self.per_read || index.wrapping_mul(self.bits) / 8 >= self.bytes.len() as u64
            {
                return;
            }
            word = self.read(index);
        }
    }

    /// Visits as [`for_each_or_more`](Self::for_each_or_more) does, with `false` for numbers whose
    /// bit is not set. `bits_in` gives the bits of a part of the range, of at most eight numbers,
    /// the first in the lowest bit. The numbers have bits.
    #[inline(always)]
    pub(crate) fn for_each_in_or_more(
        &self,
        range: Range<u64>,
        bits_in: impl Fn(Range<u64>) -> u64,
        mut visit: impl FnMut(u64, bool),
    ) {
        debug_assert!(self.per_read > 0, "numbers without bits");
        let mut index = range.start;
        while index < range.end && index.wrapping_mul(self.bits) / 8 < self.bytes.len() as u64 {
            let next = index + self.per_read.max(1);
            let (mut word, mut bits) = (self.read(index), bits_in(index..next.min(range.end)));
            for _ in 0..self.per_read {
                visit(word & self.mask, bits & 1 == 1);
                word = word.wrapping_shr(self.bits as u32);
                bits >>= 1;
            }
            index = next;
        }
    }

    /// Sets the bit `first_bit` and so many more as a number says of `row`, for each of the numbers
    /// at `range`; what is past the row is left out.
    #[inline(always)]
    pub(crate) fn set_bits(&self, range: Range<u64>, first_bit: u32, row: &mut [u32]) {
        self.for_each_or_more(range, |number, valid| {
            let bit = u64::from(first_bit) + number;
            if let Some(word) = row.get_mut((bit / 32) as usize) {
                *word |= u32::from(valid) << (bit % 32);
            }
        });
    }

    /// [`set_bits`](Self::set_bits) in a row that has a bit for each number there can be, of
    /// numbers that have `BITS` bits.
    ///
    /// PERF: no number is past the row, and shifts are by constants: 140 rows of 5.8 codes of 11
    /// bits take 2.5 us hot rather than 3.0, and 0.5 us less cold.
    #[inline(always)]
    pub(crate) fn set_all_bits<const BITS: u32, const WORDS: usize>(
        &self,
        range: Range<u64>,
        row: &mut [u32; WORDS],
    ) {
        const { assert!(1 << BITS == u32::BITS as usize * WORDS && BITS <= MAX_BITS) };
        debug_assert_eq!(self.bits, u64::from(BITS));
        let per_read = u64::from(const { MAX_BITS / BITS });
        let read = |index: u64| {
            let place = index.wrapping_mul(u64::from(BITS));
            let word = self.bytes.get((place / 8) as usize..).and_then(|rest| rest.first_chunk());
            word.map(|&word| u64::from_le_bytes(word) >> (place % 8))
        };
        let mut set = |word: u64, valid: bool| {
            let bit = word & ((1 << BITS) - 1);
            row[(bit / 32) as usize] |= u32::from(valid) << (bit % 32);
        };
        let mut index = range.start;
        while index < range.end
            && let Some(mut word) = read(index)
        {
            let left = range.end - index;
            // So it is with nearly all prefixes of deep levels.
            if left == 1 {
                return set(word, true);
            }
            for at in 0..per_read {
                set(word, at < left);
                word >>= BITS;
            }
            index += per_read;
        }
    }

    /// The first of the ascending numbers at `range` that equals `value`.
    ///
    /// PERF: as many as a read holds are all compared with it; how many there are is not
    /// predictable, and in a small index hardly ever is it one of them.
    #[inline(always)]
    pub(crate) fn find_sorted(&self, range: Range<u64>, value: u64) -> Option<u64> {
        const AT_ONCE: u64 = 5;
        let len = range.end.saturating_sub(range.start);
        if len > AT_ONCE || AT_ONCE * self.bits > u64::from(MAX_BITS) {
            let index = partition_point(range.clone(), |index| self.get(index) < value);
            return (index < range.end && self.get(index) == value).then_some(index);
        }
        let (mut word, mut found) = (self.read(range.start), 0_u32);
        for at in 0..AT_ONCE {
            found |= u32::from((word & self.mask == value) & (at < len)) << at;
            word = word.wrapping_shr(self.bits as u32);
        }
        (found != 0).then(|| range.start + u64::from(found.trailing_zeros()))
    }

    /// Looks for a value among the numbers at a range; `true` for ranges of many reads.
    ///
    /// PERF: all numbers of a read are compared at once: one that equals the value becomes 0, and
    /// taking one from it borrows.
    #[inline(always)]
    pub(crate) fn may_hold(&self) -> impl Fn(Range<u64>, u64) -> bool {
        const MAX_READS: u64 = 4;
        let ones = (0..self.per_read).fold(0, |ones, at| ones | 1_u64 << (at * self.bits));
        let highest = ones.wrapping_shl((self.bits as u32).wrapping_sub(1));
        move |Range { start, end }, value| {
            if end.saturating_sub(start) > MAX_READS * self.per_read {
                return true;
            }
            let wanted = value.wrapping_mul(ones);
            let has_wanted = |index: u64| {
                let len = (end - index).min(self.per_read);
                let past = u64::MAX << (len * self.bits);
                let differences = self.read(index) ^ wanted | past;
                differences.wrapping_sub(ones) & !differences & highest != 0
            };
            let (mut index, mut found) = (start, false);
            while index < end {
                found |= has_wanted(index);
                index += self.per_read;
            }
            found
        }
    }

    /// The number at `index` in the lowest bits, and those after it that eight bytes hold.
    #[inline(always)]
    pub(crate) fn read(&self, index: u64) -> u64 {
        let place = index.wrapping_mul(self.bits);
        let word = self.bytes.get((place / 8) as usize..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |&word| u64::from_le_bytes(word)) >> (place % 8)
    }

    #[inline]
    pub(crate) fn prefetch(&self, index: u64) {
        prefetch(self.bytes, (index.wrapping_mul(self.bits) / 8) as usize);
    }
}

/// Packs numbers one after another.
#[derive(Debug)]
pub(crate) struct Packer {
    words: Vec<u64>,
    /// Bits that do not fill a word yet.
    open: u128,
    num_open: u32,
    bits: u32,
    len: u64,
}

impl Packer {
    pub(crate) fn new(bits: u32) -> Self {
        assert!(bits <= MAX_BITS, "{bits} bits a number");
        Self { words: Vec::new(), open: 0, num_open: 0, bits, len: 0 }
    }

    pub(crate) fn with_capacity(bits: u32, len: u64) -> Self {
        let num_words = num_words(bits, len).unwrap_or(0) as usize;
        Self { words: Vec::with_capacity(num_words), ..Self::new(bits) }
    }

    /// Adds a number, which must fit.
    #[inline]
    pub(crate) fn push(&mut self, value: u64) {
        debug_assert!(bits_for(value) <= self.bits, "{value} in {} bits", self.bits);
        self.open |= u128::from(value) << self.num_open;
        self.num_open += self.bits;
        self.len += 1;
        if self.num_open >= 64 {
            self.words.push(self.open as u64);
            self.open >>= 64;
            self.num_open -= 64;
        }
    }

    /// A number that was added.
    ///
    /// # Panics
    /// When `index` is not below how many there are.
    pub(crate) fn get(&self, index: u64) -> u64 {
        assert!(index < self.len, "{index} of {}", self.len);
        let first_bit = index * u64::from(self.bits);
        let (at, shift) = ((first_bit / 64) as usize, first_bit % 64);
        let word = |at: usize| u128::from(self.words.get(at).copied().unwrap_or(self.open as u64));
        let both = word(at) | word(at + 1) << 64;
        (both >> shift) as u64 & ((1 << self.bits) - 1)
    }

    pub(crate) fn finish(mut self) -> PackedInts {
        if self.num_open > 0 {
            self.words.push(self.open as u64);
        }
        self.words.push(0);
        self.words.shrink_to_fit();
        PackedInts { words: self.words.into(), bits: self.bits, len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_set_bits<const BITS: u32, const WORDS: usize>(codes: &[u64], range: Range<u64>) {
        let codes: Vec<u64> = codes.iter().map(|code| code & ((1 << BITS) - 1)).collect();
        let packed = PackedInts::new(BITS, codes.iter().copied());
        let (mut row, mut whole, mut expected) = ([0_u32; WORDS], [0_u32; WORDS], [0_u32; WORDS]);
        packed.reader().set_bits(range.clone(), 0, &mut row);
        packed.reader().set_all_bits::<BITS, WORDS>(range.clone(), &mut whole);
        for &code in codes.iter().skip(range.start as usize).take(range.clone().count()) {
            expected[code as usize / 32] |= 1 << (code % 32);
        }
        // Past the end numbers are 0 or are not there.
        if range.end > codes.len() as u64 {
            for row in [&mut row, &mut whole, &mut expected] {
                row[0] |= 1;
            }
        }
        assert_eq!(row, expected);
        assert_eq!(whole, expected);
    }

    proptest! {
        #[test]
        fn gives_back_what_went_in(values in prop::collection::vec(any::<u64>(), 0..200), bits in 0_u32..=57) {
            let values: Vec<u64> = values.iter().map(|v| v & ((1 << bits) - 1)).collect();
            let packed = PackedInts::new(bits, values.iter().copied());
            let mut packer = Packer::new(bits);
            values.iter().for_each(|&value| packer.push(value));
            let unfinished: Vec<u64> = (0..packed.len()).map(|index| packer.get(index)).collect();
            prop_assert_eq!(&unfinished, &values);
            prop_assert_eq!(num_words(bits, packed.len()), Some(packed.words.len() as u64));
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), values);
            prop_assert_eq!(packed.get(u64::MAX), 0);
        }

        #[test]
        fn sets_the_same_bits_whichever_way(
            codes in prop::collection::vec(any::<u64>(), 0..60),
            from in 0_u64..70,
            len in 0_u64..70,
        ) {
            check_set_bits::<8, 8>(&codes, from..from + len);
            check_set_bits::<9, 16>(&codes, from..from + len);
            check_set_bits::<10, 32>(&codes, from..from + len);
            check_set_bits::<11, 64>(&codes, from..from + len);
            check_set_bits::<12, 128>(&codes, from..from + len);
            check_set_bits::<13, 256>(&codes, from..from + len);
        }

        #[test]
        fn finds_what_is_there(
            mut values in prop::collection::vec(prop_oneof![0_u64..9, any::<u64>()], 0..20),
            bits in 0_u32..=57,
            from: prop::sample::Index,
            to: prop::sample::Index,
        ) {
            let mask = (1_u64 << bits) - 1;
            values.iter_mut().for_each(|value| *value &= mask);
            values.sort_unstable();
            let (from, to) = (from.index(values.len() + 1), to.index(values.len() + 1));
            let packed = PackedInts::new(bits, values.iter().copied());
            for value in values.iter().copied().chain([0, mask, u64::MAX]) {
                let expected = (from..to).find(|&at| values[at] == value).map(|at| at as u64);
                let range = from as u64..to as u64;
                prop_assert_eq!(packed.reader().find_sorted(range.clone(), value), expected);
                let reader = packed.reader();
                let may_hold = reader.may_hold()(range.clone(), value);
                prop_assert!(may_hold || expected.is_none());
                // It looks through so many at least.
                if bits > 0 && value <= mask && to.saturating_sub(from) <= 4 {
                    prop_assert_eq!(may_hold, expected.is_some());
                }
            }
        }

        #[test]
        fn visits_the_numbers_that_are_asked_for(
            values in prop::collection::vec(any::<u64>(), 0..60),
            bits in 1_u32..=57,
            members in any::<u64>(),
            from: prop::sample::Index,
            to: prop::sample::Index,
        ) {
            let values: Vec<u64> = values.iter().map(|v| v & ((1 << bits) - 1)).collect();
            let (from, to) = (from.index(values.len() + 1), to.index(values.len() + 1));
            let packed = PackedInts::new(bits, values.iter().copied());
            let bits_in = |part: Range<u64>| {
                assert!(part.end - part.start <= 8, "{part:?} is over eight numbers");
                members >> part.start & ((1 << (part.end - part.start)) - 1)
            };
            let mut visited = Vec::new();
            packed.reader().for_each_in_or_more(from as u64..to as u64, bits_in, |number, valid| {
                visited.extend(valid.then_some(number));
            });
            let is_in = |at: &usize| members >> at & 1 == 1;
            let expected: Vec<u64> = (from..to).filter(is_in).map(|at| values[at]).collect();
            prop_assert_eq!(visited, expected);
        }
    }
}
