//! Starts of the prefixes of one level, in the form that takes less memory.

use std::ops::Range;

use palmette_mapped::{SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::position_list::{PositionList, PositionListMeta};
use super::rank_bits::{RankBits, RankBitsMeta};

/// A set of ranks that can be counted in order: the ranks at which a new prefix begins.
///
/// Shallow levels of a large catalog have few prefixes, which need no bit an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Starts {
    /// Starts as a list.
    Listed(PositionList),
    /// Starts as bits.
    Bits(RankBits),
}

/// Serialised place of a level's starts in a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartsMeta {
    Listed(PositionListMeta),
    Bits(RankBitsMeta),
}

impl Starts {
    /// The smaller form of `bits`.
    pub(crate) fn new(bits: RankBits) -> Self {
        let (len, ones) = (bits.len(), bits.num_ones());
        if PositionList::bytes_for(len, ones) >= RankBits::bytes_for(len) {
            return Self::Bits(bits);
        }
        let positions = (0..len).filter(|&position| bits.get(position));
        Self::Listed(PositionList::new(len, ones, positions))
    }

    /// Bytes of `len` starts among `num_items` ranks.
    pub(crate) fn bytes_for(num_items: u64, len: u64) -> u64 {
        PositionList::bytes_for(num_items, len).min(RankBits::bytes_for(num_items))
    }

    /// Number of starts.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Listed(list) => list.len(),
            Self::Bits(bits) => bits.num_ones(),
        }
    }

    pub(crate) fn contains(&self, rank: u64) -> bool {
        match self {
            Self::Listed(list) => list.contains(rank),
            Self::Bits(bits) => bits.get(rank),
        }
    }

    /// Number of starts before `rank`.
    #[inline(always)]
    pub(crate) fn count_before(&self, rank: u64) -> u64 {
        match self {
            Self::Listed(list) => list.count_before(rank),
            Self::Bits(bits) => bits.rank(rank),
        }
    }

    /// The rank of start number `index`, which lies in `within`; the end of `within` if it does
    /// not.
    #[inline(always)]
    pub(crate) fn nth(&self, index: u64, within: &Range<u64>) -> u64 {
        let rank = match self {
            Self::Listed(list) if index < list.len() => list.get(index),
            Self::Listed(_) => within.end,
            Self::Bits(bits) => bits.select(index, within.start, within.end),
        };
        rank.clamp(within.start, within.end)
    }

    /// The start that has as many `others` within the range before it, and the one after that; the
    /// end of `within` for either that is not before it.
    #[inline(always)]
    pub(crate) fn nth_after(&self, within: &Range<u64>, others: u64) -> Range<u64> {
        match self {
            Self::Listed(list) => {
                let index = list.count_before(within.start).saturating_add(others);
                let nth = |index| if index < list.len() { list.get(index) } else { within.end };
                let start = nth(index).clamp(within.start, within.end);
                start..nth(index.saturating_add(1)).clamp(start, within.end)
            }
            Self::Bits(bits) => {
                let found = bits.nth_after(within.start, others, within.end);
                let start = found.start.clamp(within.start, within.end);
                start..found.end.clamp(start, within.end)
            }
        }
    }

    /// The first start at or after `rank`, which is number `index`; `end` if that comes first.
    #[inline(always)]
    pub(crate) fn next(&self, rank: u64, end: u64, index: u64) -> u64 {
        match self {
            Self::Listed(list) if index < list.len() => list.get(index).clamp(rank.min(end), end),
            Self::Listed(_) => end,
            Self::Bits(bits) => bits.next(rank, end, index),
        }
    }

    /// Asks for the memory that [`count_before`](Self::count_before) will read.
    #[inline]
    pub(crate) fn prefetch(&self, rank: u64) {
        match self {
            Self::Listed(list) => list.prefetch(rank),
            Self::Bits(bits) => bits.prefetch(rank),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Listed(list) => list.bytes(),
            Self::Bits(bits) => bits.bytes(),
        }
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> StartsMeta {
        match self {
            Self::Listed(list) => StartsMeta::Listed(list.save(out)),
            Self::Bits(bits) => StartsMeta::Bits(bits.save(out)),
        }
    }

    /// Takes the starts among `num_items` ranks from a file.
    pub(crate) fn load(
        meta: StartsMeta,
        num_items: u64,
        sections: &SectionsIn,
    ) -> Result<Self, String> {
        match meta {
            StartsMeta::Listed(meta) => Ok(Self::Listed(PositionList::load(meta, sections)?)),
            StartsMeta::Bits(meta) => match RankBits::load(meta, sections)? {
                bits if bits.len() == num_items => Ok(Self::Bits(bits)),
                bits => Err(format!("a bitvector over {num_items} ranks has {}", bits.len())),
            },
        }
    }

    pub(crate) fn check(&self, num_items: u64) -> Result<(), String> {
        match self {
            Self::Listed(list) => list.check(num_items),
            Self::Bits(bits) => bits.check(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few and many.
    fn bits() -> impl Strategy<Value = Vec<bool>> {
        let share = prop_oneof![Just(0.0), Just(0.002), Just(0.3), Just(1.0)];
        share.prop_flat_map(|share| prop::collection::vec(prop::bool::weighted(share), 0..4000))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn both_forms_equal_counting(bits in bits(), from: prop::sample::Index, to: prop::sample::Index) {
            let len = bits.len() as u64;
            let ones: Vec<u64> = (0..len).filter(|&i| bits[i as usize]).collect();
            let made = RankBits::new(len, ones.iter().copied());
            let listed = PositionList::new(len, ones.len() as u64, ones.iter().copied());
            let (from, to) = (from.index(bits.len() + 1) as u64, to.index(bits.len() + 1) as u64);
            let (from, to) = (from.min(to), from.max(to));
            let within: Vec<u64> = ones.iter().copied().filter(|one| (from..to).contains(one)).collect();
            let smaller = Starts::new(made.clone());
            for starts in [Starts::Bits(made), Starts::Listed(listed)] {
                prop_assert!(smaller.bytes() <= starts.bytes());
                prop_assert_eq!(starts.len(), ones.len() as u64);
                prop_assert_eq!(starts.check(len), Ok(()));
                for rank in 0..=len {
                    let before = ones.partition_point(|&one| one < rank) as u64;
                    prop_assert_eq!(starts.count_before(rank), before);
                    prop_assert_eq!(starts.contains(rank), bits.get(rank as usize) == Some(&true));
                }
                let first = starts.count_before(from);
                for (at, &rank) in within.iter().enumerate() {
                    prop_assert_eq!(starts.nth(first + at as u64, &(from..to)), rank);
                }
                let next = within.first().copied().unwrap_or(to);
                prop_assert_eq!(starts.next(from, to, first), next);
            }
        }
    }
}
