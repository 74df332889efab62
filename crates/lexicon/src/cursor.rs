//! Cursors of a lexicon's sets: a prefix, and how much of an escape has been read.

use palmette_core::Cursor;

use crate::arrays::Prefix;

/// A place within a spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The strings that begin so.
    pub(crate) at: Prefix,
    pub(crate) phase: Phase,
}

/// Part of a spelling that has been read besides whole bytes of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// State outside escapes: a byte of a string comes next, or a string has ended.
    Inside,
    /// The beginning of an escape, by its place among those (see `spelling`), which is not 0.
    Escape(usize),
    /// The closing byte. The prefix is one string, whole.
    Closed,
}

/// Two words: the first rank and the one after the last; the depth and the phase.
const CLOSED: u64 = u32::MAX as u64;

impl Place {
    pub(crate) fn to_cursor(self) -> Cursor {
        let Prefix { lo, hi, depth } = self.at;
        let phase = match self.phase {
            Phase::Inside => 0,
            Phase::Escape(begun) => begun as u64,
            Phase::Closed => CLOSED,
        };
        Cursor::new(&[lo as u64 | (hi as u64) << 32, depth as u64 | phase << 32])
    }

    /// The place that a cursor of the same set, which has so many strings, stands for; `None` for
    /// what is no such cursor.
    #[inline]
    pub(crate) fn from_cursor(cursor: &Cursor, num_strings: usize) -> Option<Self> {
        let &[ranks, rest] = cursor.words() else { return None };
        let (lo, hi) = (ranks as u32 as usize, (ranks >> 32) as usize);
        let phase = match rest >> 32 {
            0 => Phase::Inside,
            CLOSED => Phase::Closed,
            begun => Phase::Escape(begun as usize),
        };
        let at = Prefix { lo, hi, depth: rest as u32 as usize };
        (lo < hi && hi <= num_strings).then_some(Self { at, phase })
    }
}
