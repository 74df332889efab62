//! Few positions among many.

use std::ops::Range;

use palmette_mapped::{SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::packed_ints::{PackedInts, PackedIntsMeta, bits_for, num_words};

/// Ascending positions below a bound, for bitvectors with few ones or few zeros.
///
/// Cost: counting the positions before another reads two neighbouring entries of a directory and
/// searches the one or two positions between them; memory: about `log2(bound) + 3` bits a position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PositionList {
    positions: PackedInts,
    /// Numbers of positions before each multiple of `1 << shift`.
    directory: PackedInts,
    shift: u32,
}

/// Serialised place of a list in a file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct PositionListMeta {
    positions: PackedIntsMeta,
    directory: PackedIntsMeta,
    shift: u32,
}

impl PositionList {
    /// Takes `len` positions, strictly ascending and below `bound`.
    pub(crate) fn new(bound: u64, len: u64, positions: impl IntoIterator<Item = u64>) -> Self {
        let positions = PackedInts::new(bits_for(bound), positions);
        debug_assert_eq!(positions.len(), len);
        let shift = shift(bound, len);
        let mut before = 0;
        let counts = (0..=(bound >> shift) + 1).map(|bucket| {
            while before < len && positions.get(before) < bucket << shift {
                before += 1;
            }
            before
        });
        let directory = PackedInts::new(bits_for(len), counts);
        Self { positions, directory, shift }
    }

    /// Bytes of a list before it is made.
    pub(crate) fn bytes_for(bound: u64, len: u64) -> u64 {
        let words = |bits, len| num_words(bits, len).unwrap_or(u64::MAX / 16);
        let buckets = (bound >> shift(bound, len)) + 2;
        8 * (words(bits_for(bound), len) + words(bits_for(len), buckets))
    }

    pub(crate) fn len(&self) -> u64 {
        self.positions.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: u64) -> u64 {
        self.positions.get(index)
    }

    /// Number of positions before `position`.
    #[inline(always)]
    pub(crate) fn count_before(&self, position: u64) -> u64 {
        let directory = self.directory.reader();
        let bucket = position >> self.shift;
        let (start, end) = (directory.get(bucket), directory.get(bucket + 1));
        let positions = self.positions.reader();
        let end = end.min(self.len());
        partition_point(start..end, |index| positions.get(index) < position)
    }

    pub(crate) fn contains(&self, position: u64) -> bool {
        let index = self.count_before(position);
        index < self.len() && self.get(index) == position
    }

    #[inline]
    pub(crate) fn prefetch(&self, position: u64) {
        self.directory.reader().prefetch(position >> self.shift);
    }

    /// Asks for what [`count_before`](Self::count_before) will read after what
    /// [`prefetch`](Self::prefetch) asks for.
    #[inline]
    pub(crate) fn prefetch_positions(&self, position: u64) {
        self.positions.reader().prefetch(self.directory.get(position >> self.shift));
    }

    pub(crate) fn bytes(&self) -> usize {
        self.positions.bytes() + self.directory.bytes()
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> PositionListMeta {
        PositionListMeta {
            positions: self.positions.save(out),
            directory: self.directory.save(out),
            shift: self.shift,
        }
    }

    pub(crate) fn load(meta: PositionListMeta, sections: &SectionsIn) -> Result<Self, String> {
        if meta.shift >= u64::BITS {
            return Err(format!("a list of positions has a shift of {}", meta.shift));
        }
        Ok(Self {
            positions: PackedInts::load(meta.positions, sections)?,
            directory: PackedInts::load(meta.directory, sections)?,
            shift: meta.shift,
        })
    }

    /// Fails unless positions ascend below `bound` and the directory agrees with them.
    pub(crate) fn check(&self, bound: u64) -> Result<(), String> {
        let ascending = self.positions.iter().is_sorted_by(|a, b| a < b);
        let last = self.len().checked_sub(1).map(|index| self.get(index));
        if !ascending || last.is_some_and(|last| last >= bound) {
            return Err("positions are out of order".into());
        }
        if *self != Self::new(bound, self.len(), self.positions.iter()) {
            return Err("the directory of a list of positions is wrong".into());
        }
        Ok(())
    }
}

/// Buckets about as many as positions.
fn shift(bound: u64, len: u64) -> u32 {
    bits_for(bound / (len + 1))
}

/// The first of `range` for which `before` is false; it is true for those below.
///
/// PERF: it takes the same steps whatever `before` says, since a processor cannot guess that. With
/// it, and with all lines of the codes asked for, a commit of 140 beams with 180 children each went
/// from 25.5 to 22.9 us (p99 54 to 33; `palmette-catalog-live`'s bench `updates`).
#[inline(always)]
pub(crate) fn partition_point(range: Range<u64>, before: impl Fn(u64) -> bool) -> u64 {
    let Range { start, end } = range;
    let (mut first, mut len) = (start, end.saturating_sub(start));
    while len > 1 {
        let half = len / 2;
        first += u64::from(before(first + half - 1)) * half;
        len -= half;
    }
    first + u64::from(len == 1 && before(first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_counting(
            positions in prop::collection::btree_set(prop_oneof![0_u64..5000, 4000_u64..4100], 0..200),
            more in 0_u64..100,
        ) {
            let bound = positions.last().map_or(0, |last| last + 1) + more;
            let list = PositionList::new(bound, positions.len() as u64, positions.iter().copied());
            prop_assert_eq!(list.bytes() as u64, PositionList::bytes_for(bound, list.len()));
            prop_assert_eq!(list.check(bound), Ok(()));
            let back: BTreeSet<u64> = (0..list.len()).map(|index| list.get(index)).collect();
            prop_assert_eq!(&back, &positions);
            for position in 0..=bound {
                prop_assert_eq!(list.count_before(position), positions.range(..position).count() as u64);
            }
        }
    }
}
