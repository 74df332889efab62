//! Going through the members of a set.

use std::iter::FusedIterator;
use std::ops::Range;

use super::RankSet;

/// Members of a [`RankSet`] in ascending order.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    set: &'a RankSet,
    /// Members still to come of the word that begins at rank `word_start`.
    bits: u64,
    word_start: u64,
    end: u64,
}

impl<'a> Members<'a> {
    pub(super) fn new(set: &'a RankSet, range: Range<u64>) -> Self {
        let end = range.end.min(set.num_ranks());
        let mut members = Self { set, bits: 0, word_start: end, end };
        members.load(range.start);
        members
    }

    /// Goes to the word of the first member at `from` or after it.
    fn load(&mut self, from: u64) {
        let Some(first) = self.set.next_in(from..self.end) else { return };
        self.word_start = first / 64 * 64;
        self.bits = self.set.word(first / 64) & (u64::MAX << (first % 64));
        if self.end - self.word_start < 64 {
            self.bits &= !(u64::MAX << (self.end - self.word_start));
        }
    }
}

impl Iterator for Members<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.bits == 0 {
            self.load(self.word_start + 64);
            if self.bits == 0 {
                return None;
            }
        }
        let rank = self.word_start + u64::from(self.bits.trailing_zeros());
        self.bits &= self.bits - 1;
        Some(rank)
    }
}

impl FusedIterator for Members<'_> {}
