//! Sets of prefixes that lead to an item of a set.

use std::ops::Range;

use palmette_catalog_filter::RankSet;

use super::Index;
use super::sparse::SparseLevel;

/// Items a prefix of a wide level has at least, on average. Where it has fewer, a beam's children
/// lie so close together that their ranks are in a cache line or two.
const WIDE: u64 = 8;

/// For each wide level, the set of its prefixes that some item of a set has, by their numbers.
///
/// Prefixes are numbered as their codes are stored, so that a beam's children are neighbours here
/// too: one cache line says of all of them what their ranks would say in a line each. Clones share
/// their memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrefixSets(Vec<RankSet>);

impl PrefixSets {
    /// The prefixes of all items.
    pub(super) fn all(index: &Index) -> Self {
        let wide = index.wide_levels().iter();
        Self(wide.map(|level| RankSet::full(level.num_prefixes())).collect())
    }

    /// The prefixes of the items with these ranks.
    ///
    /// Cost: a look at each child of each prefix that is in, of the wide levels.
    pub(super) fn new(index: &Index, ranks: &RankSet) -> Self {
        let levels = index.wide_levels();
        if levels.is_empty() || ranks.is_full() {
            return Self::all(index);
        }
        let words = |level: &SparseLevel| vec![0; level.num_prefixes().div_ceil(64) as usize];
        let mut found: Vec<Vec<u64>> = levels.iter().map(words).collect();
        index.dense.for_each_used_key(|_, range| {
            // A damaged table goes on past the items.
            let range = range.start.min(index.num_items)..range.end.min(index.num_items);
            if ranks.any_in(range.clone()) {
                find_below(levels, &mut found, ranks, range);
            }
        });
        let set = |(level, words): (&SparseLevel, &Vec<u64>)| {
            let set = RankSet::from_words(level.num_prefixes(), words);
            set.expect("only numbers of prefixes were found")
        };
        Self(levels.iter().zip(&found).map(set).collect())
    }

    /// The prefixes of a sparse level, counted from the first of these, that are in; `None` where
    /// the level is not wide.
    #[inline]
    pub(super) fn of_level(&self, sparse_level: usize) -> Option<&RankSet> {
        self.0.get(sparse_level)
    }

    /// Takes out a prefix of a sparse level; nothing where the level is not wide.
    pub(super) fn remove(&mut self, sparse_level: usize, prefix: u64) {
        if let Some(prefixes) = self.0.get_mut(sparse_level) {
            prefixes.remove(prefix);
        }
    }

    pub(super) fn num_levels(&self) -> usize {
        self.0.len()
    }

    /// Bytes of the sets, memory that they share with others included.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(RankSet::bytes).sum()
    }
}

impl Index {
    /// The first sparse levels, as long as they say where prefixes begin and those have many items
    /// each.
    fn wide_levels(&self) -> &[SparseLevel] {
        let is_wide = |level: &&SparseLevel| {
            level.knows_starts() && level.num_prefixes().saturating_mul(WIDE) <= self.num_items
        };
        &self.sparse[..self.sparse.iter().take_while(is_wide).count()]
    }
}

/// Finds the prefixes that begin with the one with range `within`, some item of which is in.
fn find_below(levels: &[SparseLevel], found: &mut [Vec<u64>], ranks: &RankSet, within: Range<u64>) {
    let (Some((level, deeper)), Some((words, found))) =
        (levels.split_first(), found.split_first_mut())
    else {
        return;
    };
    let mut prefix = level.first(within.start);
    let first = prefix;
    level.for_each_child(within, first, |_, child| {
        if ranks.any_in(child.clone()) {
            // In a damaged file there may be more children than prefixes.
            if let Some(word) = words.get_mut((prefix / 64) as usize)
                && prefix < level.num_prefixes()
            {
                *word |= 1 << (prefix % 64);
            }
            find_below(deeper, found, ranks, child);
        }
        prefix += 1;
    });
}
