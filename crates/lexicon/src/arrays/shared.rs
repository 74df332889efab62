//! The number of bytes that each string shares with the one before it, in a byte each.

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::minima::{Minima, MinimaMeta, MinimaView};
use super::scan::Number;

/// In the bytes: so many or more; the number is in the list of long ones.
const LONG: u8 = u8::MAX;

/// Lengths of shared prefixes ("LCP array"): byte `r` of string `r` and string `r - 1`, 0 for the
/// first.
///
/// Lengths of 255 and more lie in a list of their own, with minima likewise: strings under a prefix
/// so long are neighbours in it. `L` holds the longest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedLengths<L: Number = u16> {
    bytes: Minima<u8>,
    /// Ranks whose byte is [`LONG`], ascending.
    long_ranks: Array<u32>,
    long: Minima<L>,
}

/// Sections of [`SharedLengths`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SharedLengthsMeta {
    bytes: MinimaMeta,
    long_ranks: u32,
    num_long: u64,
    long: MinimaMeta,
}

/// Lengths in the making.
#[derive(Debug, Default)]
pub(crate) struct SharedLengthsBuilder<L = u16> {
    bytes: Vec<u8>,
    long_ranks: Vec<u32>,
    long: Vec<L>,
}

/// The slices of [`SharedLengths`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedView<'a, L> {
    bytes: MinimaView<'a, u8>,
    long_ranks: &'a [u32],
    long: MinimaView<'a, L>,
}

impl<L: Number> SharedLengthsBuilder<L> {
    pub(crate) fn with_capacity(len: usize) -> Self {
        Self { bytes: Vec::with_capacity(len), long_ranks: Vec::new(), long: Vec::new() }
    }

    /// Adds the next string's length, which `L` holds.
    pub(crate) fn push(&mut self, shared: usize) {
        if shared >= usize::from(LONG) {
            self.long_ranks.push(self.bytes.len() as u32);
            self.long.push(L::from_usize(shared).expect("strings are no longer"));
        }
        self.bytes.push(shared.min(usize::from(LONG)) as u8);
    }

    pub(crate) fn finish(mut self) -> SharedLengths<L> {
        self.bytes.shrink_to_fit();
        SharedLengths {
            bytes: Minima::new(self.bytes),
            long_ranks: self.long_ranks.into(),
            long: Minima::new(self.long),
        }
    }
}

impl<L: Number> SharedLengths<L> {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.bytes() + self.long_ranks.as_bytes().len() + self.long.bytes()
    }

    #[inline]
    pub(crate) fn view(&self) -> SharedView<'_, L> {
        SharedView {
            bytes: self.bytes.view(),
            long_ranks: self.long_ranks.as_slice(),
            long: self.long.view(),
        }
    }
}

impl SharedLengths {
    pub(crate) fn save(&self, out: &mut SectionsOut) -> SharedLengthsMeta {
        SharedLengthsMeta {
            bytes: self.bytes.save(out),
            long_ranks: out.add_array(&self.long_ranks),
            num_long: self.long_ranks.len() as u64,
            long: self.long.save(out),
        }
    }

    pub(crate) fn load(meta: &SharedLengthsMeta, sections: &SectionsIn) -> Result<Self, String> {
        let lengths = Self {
            bytes: Minima::load(&meta.bytes, sections)?,
            long_ranks: sections.array(meta.long_ranks, meta.num_long)?,
            long: Minima::load(&meta.long, sections)?,
        };
        if lengths.long.len() != lengths.long_ranks.len() {
            return Err("a list of long prefixes that is cut".to_owned());
        }
        Ok(lengths)
    }

    /// Checks minima and that the list holds the ranks whose byte says so, and no length that a
    /// byte could hold.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.bytes.check()?;
        self.long.check()?;
        let view = self.view();
        let bytes = (0_u32..).zip(view.bytes.values());
        let listed = bytes.filter(|&(_, &byte)| byte == LONG).map(|(rank, _)| rank);
        let is_long = |&length: &u16| length >= u16::from(LONG);
        if listed.eq(view.long_ranks.iter().copied()) && view.long.values().iter().all(is_long) {
            Ok(())
        } else {
            Err("a list of long prefixes that is not that of its strings".to_owned())
        }
    }
}

impl<L: Number> SharedView<'_, L> {
    /// Bytes that string `rank` shares with the one before it; 0 where there is no such string.
    #[inline]
    pub(crate) fn get(&self, rank: usize) -> usize {
        match self.bytes.values().get(rank) {
            Some(&LONG) => self.get_long(rank),
            Some(&byte) => byte.into(),
            None => 0,
        }
    }

    #[cold]
    fn get_long(&self, rank: usize) -> usize {
        let at = self.first_long(rank);
        self.long.values().get(at).map_or(usize::from(LONG), |&length| length.to_usize())
    }

    /// Place in the list of the first long length at `rank` or after it.
    fn first_long(&self, rank: usize) -> usize {
        self.long_ranks.partition_point(|&listed| (listed as usize) < rank)
    }

    /// The first string in `from..to` that shares at most `depth` bytes with the one before; `to`
    /// where there is none.
    #[inline]
    pub(crate) fn next_at_most(&self, from: usize, to: usize, depth: usize) -> usize {
        match u8::try_from(depth) {
            Ok(depth) if depth < LONG => self.bytes.next_at_most(from, to, depth),
            _ => self.next_long(from, to, depth),
        }
    }

    #[cold]
    fn next_long(&self, from: usize, to: usize, depth: usize) -> usize {
        let short = self.bytes.next_at_most(from, to, LONG - 1);
        let bound = L::from_usize(depth).unwrap_or(L::MAX);
        let (first, last) = (self.first_long(from), self.first_long(short));
        let at = self.long.next_at_most(first, last, bound);
        // A damaged list must not lead out of the range.
        if at < last { (self.long_ranks[at] as usize).clamp(from, short) } else { short }
    }

    /// The last string in `from..=at` that shares at most `depth` bytes with the one before; `from`
    /// where there is none.
    #[inline]
    pub(crate) fn prev_at_most(&self, from: usize, at: usize, depth: usize) -> usize {
        match u8::try_from(depth) {
            Ok(depth) if depth < LONG => self.bytes.prev_at_most(from, at, depth),
            _ => self.prev_long(from, at, depth),
        }
    }

    #[cold]
    fn prev_long(&self, from: usize, at: usize, depth: usize) -> usize {
        let short = self.bytes.prev_at_most(from, at, LONG - 1);
        let bound = L::from_usize(depth).unwrap_or(L::MAX);
        // Of those after the last short one, or from the beginning.
        let (first, last) = (self.first_long(short), self.first_long(at + 1));
        if first >= last {
            return short;
        }
        let found = self.long.prev_at_most(first, last - 1, bound);
        match self.long.values()[found] <= bound {
            true => (self.long_ranks[found] as usize).clamp(short, at),
            false => short,
        }
    }

    /// The fewest bytes that a string in `from..to`, which is not empty, shares with the one
    /// before.
    #[inline]
    pub(crate) fn min_in(&self, from: usize, to: usize) -> usize {
        match self.bytes.min_in(from, to) {
            LONG => self.min_long(from, to),
            byte => byte.into(),
        }
    }

    #[cold]
    fn min_long(&self, from: usize, to: usize) -> usize {
        self.long.min_in(self.first_long(from), self.first_long(to)).to_usize()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    proptest! {
        /// Lengths on both sides of what a byte holds.
        #[test]
        fn searches_equal_looking_at_each(
            lengths in prop::collection::vec(
                prop_oneof![0_usize..3, 250_usize..262, Just(65_535), 0_usize..65_536], 1..400),
            questions in prop::collection::vec(
                (any::<Index>(), any::<Index>(), prop_oneof![0_usize..5, 250_usize..262, 0_usize..70_000]), 1..40),
        ) {
            let mut builder = SharedLengthsBuilder::<u16>::default();
            lengths.iter().for_each(|&length| builder.push(length));
            let made = builder.finish();
            prop_assert_eq!(made.check(), Ok(()));
            let view = made.view();
            for (rank, &length) in lengths.iter().enumerate() {
                prop_assert_eq!(view.get(rank), length);
            }
            for (one, other, depth) in questions {
                let (one, other) = (one.index(lengths.len()), other.index(lengths.len()));
                let (from, last) = (one.min(other), one.max(other));
                let to = last + 1;
                let is_hit = |&at: &usize| lengths[at] <= depth;
                prop_assert_eq!(
                    view.next_at_most(from, to, depth), (from..to).find(is_hit).unwrap_or(to));
                prop_assert_eq!(
                    view.prev_at_most(from, last, depth), (from..to).rev().find(is_hit).unwrap_or(from));
                prop_assert_eq!(view.min_in(from, to), *lengths[from..to].iter().min().unwrap());
            }
        }
    }
}
