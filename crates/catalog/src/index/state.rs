//! A position in an index.

use std::ops::Range;

/// A prefix of semantic IDs, as the range of ranks of the items that have it. 16 bytes.
///
/// The range is never empty, except at the start of an empty set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogState {
    /// There are at most [`MAX_ITEMS`](super::MAX_ITEMS), so that ranks have 32 bits.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// At dense levels the prefix as a mixed-radix number; 0 below them.
    pub(crate) key: u32,
    /// Codes in the prefix.
    pub(crate) level: u32,
}

impl CatalogState {
    /// The position from which nothing can be completed: no items, and no codes that led there.
    pub const DEAD: Self = Self { start: 0, end: 0, key: 0, level: 0 };

    /// True if no item begins with this prefix.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.start == self.end
    }

    /// Ranks of the items that begin with this prefix.
    #[inline]
    pub fn ranks(&self) -> Range<u64> {
        u64::from(self.start)..u64::from(self.end)
    }

    /// The position as two words, for sets that keep it beside other things.
    pub fn to_words(&self) -> [u64; 2] {
        let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << u32::BITS;
        [word(self.start, self.end), word(self.key, self.level)]
    }

    /// The position of [`to_words`](Self::to_words). One of other words is a wrong position, and
    /// looking at it gives wrong codes and no panic.
    pub fn from_words([ranks, place]: [u64; 2]) -> Self {
        let halves = |word: u64| (word as u32, (word >> u32::BITS) as u32);
        let ((start, end), (key, level)) = (halves(ranks), halves(place));
        Self { start, end, key, level }
    }

    /// Codes committed so far.
    pub fn level(&self) -> usize {
        self.level as usize
    }
}
