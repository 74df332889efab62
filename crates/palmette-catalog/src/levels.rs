//! The index: for each level, where its prefixes begin and which code each ends in.

use std::ops::Range;

use crate::packed_ints::PackedInts;
use crate::rank_bits::RankBits;

/// All levels of a catalog's semantic IDs, over ranks.
///
/// Level `l` has one mark for every distinct prefix of `l + 1` codes, at the rank of its first
/// item, and that prefix's last code at the same number in its code array. Within a prefix's range
/// the items whose ID ends there come first and carry no mark; then come its children, one mark
/// each, with ascending codes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    levels: Vec<Level>,
    num_items: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    starts: RankBits,
    codes: PackedInts,
}

/// Most codes a semantic ID may have.
pub const MAX_LEVELS: usize = 64;

/// Most items one catalog may hold.
pub const MAX_ITEMS: usize = (u32::MAX - 1) as usize;

/// Largest code at any level.
pub const MAX_CODE: u32 = i32::MAX as u32;

impl Levels {
    /// Indexes semantic IDs that are sorted (shorter before longer where one is a prefix) and not
    /// empty. The caller has checked the limits above.
    pub(crate) fn of_sorted<'a, I>(ids: I) -> Self
    where
        I: ExactSizeIterator<Item = &'a [u32]> + Clone,
    {
        let num_items = ids.len();
        let num_levels = ids.clone().map(<[u32]>::len).max().unwrap_or(0);
        let mut starts = vec![Vec::new(); num_levels];
        let mut codes = vec![Vec::new(); num_levels];
        let mut previous: &[u32] = &[];
        for (rank, id) in ids.enumerate() {
            let shared = previous.iter().zip(id).take_while(|(a, b)| a == b).count();
            for level in shared..id.len() {
                starts[level].push(rank);
                codes[level].push(id[level]);
            }
            previous = id;
        }
        let levels = starts
            .into_iter()
            .zip(codes)
            .map(|(starts, codes)| Level {
                starts: RankBits::new(num_items, starts),
                codes: PackedInts::new(&codes),
            })
            .collect();
        Self { levels, num_items: num_items as u32 }
    }

    /// Codes in the longest semantic ID.
    pub fn num_levels(&self) -> usize {
        self.levels.len()
    }

    /// Items in all.
    pub fn num_items(&self) -> u32 {
        self.num_items
    }

    /// Distinct prefixes of `level + 1` codes.
    ///
    /// # Panics
    /// When `level` is not below `num_levels`.
    pub fn num_prefixes(&self, level: usize) -> usize {
        self.levels[level].codes.len()
    }

    /// The codes of a level's prefixes, in order of the prefixes.
    pub(crate) fn prefix_codes(&self, level: usize) -> impl Iterator<Item = u32> + '_ {
        let codes = &self.levels[level].codes;
        (0..codes.len()).map(|prefix| codes.get(prefix))
    }

    /// Bits one code takes at a level.
    ///
    /// # Panics
    /// When `level` is not below `num_levels`.
    pub fn code_bits(&self, level: usize) -> u32 {
        self.levels[level].codes.bits()
    }

    /// Bytes of the index, all levels.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|l| l.starts.bytes() + l.codes.bytes()).sum()
    }

    /// The codes that continue the prefix of `level` codes with range `ranks`, ascending.
    ///
    /// Cost: two ranks, then one packed read a code.
    #[inline]
    pub(crate) fn child_codes(
        &self,
        level: usize,
        ranks: Range<u32>,
    ) -> impl Iterator<Item = u32> + '_ {
        let (codes, prefixes) = match self.levels.get(level) {
            Some(at) => (Some(&at.codes), at.prefixes(&ranks)),
            None => (None, 0..0),
        };
        prefixes.filter_map(move |prefix| codes.map(|codes| codes.get(prefix)))
    }

    /// The children of a prefix: code and range of each, ascending.
    ///
    /// Cost: two ranks, then one packed read a child and a look for the next mark: a few words, or a
    /// select where it is farther.
    pub(crate) fn children(
        &self,
        level: usize,
        ranks: Range<u32>,
    ) -> impl Iterator<Item = (u32, Range<u32>)> + '_ {
        let end = ranks.end;
        let prefixes = self.levels.get(level).map_or(0..0, |at| at.prefixes(&ranks));
        let mut start = self.first_child_rank(level, &ranks);
        prefixes.map(move |prefix| {
            let at = &self.levels[level];
            let child = start..(at.starts.following(start as usize, prefix + 1) as u32).min(end);
            start = child.end;
            (at.codes.get(prefix), child)
        })
    }

    /// The child reached over `code`, if there is one.
    ///
    /// Cost: two ranks, a binary search over the children's codes, a select, and a look for the next
    /// mark.
    pub(crate) fn child(&self, level: usize, ranks: &Range<u32>, code: u32) -> Option<Range<u32>> {
        let at = self.levels.get(level)?;
        let Range { mut start, mut end } = at.prefixes(ranks);
        while start < end {
            let middle = start + (end - start) / 2;
            match at.codes.get(middle).cmp(&code) {
                std::cmp::Ordering::Less => start = middle + 1,
                std::cmp::Ordering::Greater => end = middle,
                std::cmp::Ordering::Equal => return Some(at.range_of(middle, ranks.end)),
            }
        }
        None
    }

    /// The items whose ID ends with the prefix: the first of its range.
    pub(crate) fn ended(&self, level: usize, ranks: &Range<u32>) -> Range<u32> {
        ranks.start..self.first_child_rank(level, ranks)
    }

    /// The range of the prefix of `num_codes` codes that item `rank` has, and the code it ends in;
    /// `None` when the item's ID is shorter or `num_codes` is 0.
    pub(crate) fn prefix_of(&self, rank: u32, num_codes: usize) -> Option<(Range<u32>, u32)> {
        let mut ranks = 0..self.num_items;
        let mut last = None;
        for (level, at) in self.levels.iter().enumerate().take(num_codes) {
            if rank < self.first_child_rank(level, &ranks) {
                return None;
            }
            let prefix = at.starts.rank(rank as usize + 1) - 1;
            ranks = at.range_of(prefix, ranks.end);
            last = Some((ranks.clone(), at.codes.get(prefix)));
        }
        last
    }

    /// Rank of the first item in the range that has a code at `level`; the range's end if none has.
    fn first_child_rank(&self, level: usize, ranks: &Range<u32>) -> u32 {
        let Some(at) = self.levels.get(level) else { return ranks.end };
        let start = ranks.start as usize;
        if start == self.num_items as usize || at.starts.get(start) {
            return ranks.start;
        }
        // By number, not by looking for the next mark: that may be far away where IDs differ in
        // length.
        (at.starts.select(at.starts.rank(start)) as u32).min(ranks.end)
    }
}

impl Level {
    /// Numbers of the prefixes that begin within `ranks`.
    #[inline]
    fn prefixes(&self, ranks: &Range<u32>) -> Range<usize> {
        self.starts.rank(ranks.start as usize)..self.starts.rank(ranks.end as usize)
    }

    fn range_of(&self, prefix: usize, parent_end: u32) -> Range<u32> {
        let start = self.starts.select(prefix);
        let end = self.starts.following(start, prefix + 1) as u32;
        start as u32..end.min(parent_end)
    }
}
