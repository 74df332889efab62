//! The items that one request may return.

use palmette_catalog_filter::RankSet;

use super::members::Members;
use super::prefix_sets::PrefixSets;
use super::shared_masks::SharedMasks;
use super::{CatalogState, Index};

/// Some of an index's items: a set of ranks, the masks of the first levels under it, and below
/// them, where prefixes still have many items each, the prefixes that are left.
///
/// With it a step stays exact: a code may follow if and only if some item of the set continues with
/// it. Memory: a bit an item where the set has any, the masks, and a bit for each prefix of the
/// levels that have an eighth as many as there are items, or fewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemSet {
    ranks: RankSet,
    /// Masks of each level that has masks in the index.
    masks: Vec<SharedMasks>,
    prefixes: PrefixSets,
}

impl Index {
    /// Prepares a set of ranks for steps.
    ///
    /// Cost: a pass over the dense levels' table or over the set, whichever is less, and over the
    /// prefixes below them that have many items each.
    ///
    /// # Panics
    /// When the set is over another number of items.
    pub fn item_set(&self, ranks: RankSet) -> ItemSet {
        assert_eq!(ranks.num_ranks(), self.num_items, "ranks of another catalog");
        let dense = &self.dense;
        let words = |level| vec![0; dense.mask_words(level)];
        let mut masks: Vec<Vec<u32>> = (0..dense.num_masked()).map(words).collect();
        if let Some(last) = dense.num_levels().checked_sub(1) {
            let size = u64::from(dense.size(last));
            let row = &mut masks[last];
            let mut set = |key: u64| dense.set(row, last, key / size, (key % size) as u32);
            if ranks.len() < dense.num_keys(last + 1) / 16 {
                let mut end = 0;
                for rank in ranks.iter() {
                    if rank >= end {
                        let key = dense.key_of(rank, last + 1);
                        end = dense.ranks(last + 1, key).end;
                        set(key);
                    }
                }
            } else {
                dense.for_each_used_key(|key, range| {
                    if ranks.any_in(range) {
                        set(key);
                    }
                });
            }
            for level in (0..last).rev() {
                self.fold_masks(&mut masks, level);
            }
        }
        let prefixes = PrefixSets::new(self, &ranks);
        if dense.num_masked() > dense.num_levels() {
            self.fill_last_masks(&mut masks[dense.num_levels()], &ranks, prefixes.of_level(0));
        }
        let share = |(level, masks): (usize, Vec<u32>)| {
            SharedMasks::new(&masks, dense.words_per_row(level))
        };
        let masks = masks.into_iter().enumerate().map(share).collect();
        ItemSet { ranks, masks, prefixes }
    }

    /// All items, as a set to take some out of. Cost: a copy of the masks.
    pub fn all_items(&self) -> ItemSet {
        let dense = &self.dense;
        let masks = (0..dense.num_masked())
            .map(|level| SharedMasks::new(dense.masks(level), dense.words_per_row(level)));
        let (ranks, prefixes) = (RankSet::full(self.num_items), PrefixSets::all(self));
        ItemSet { ranks, masks: masks.collect(), prefixes }
    }

    /// Fills the mask rows of `level` from those of the level below: a code may follow where
    /// anything may follow it.
    fn fold_masks(&self, masks: &mut [Vec<u32>], level: usize) {
        let (above, below) = masks.split_at_mut(level + 1);
        let size = u64::from(self.dense.size(level));
        let rows = below[0].chunks(self.dense.words_per_row(level + 1));
        for (key, row) in (0_u64..).zip(rows) {
            if row.iter().any(|&word| word != 0) {
                self.dense.set(&mut above[level], level, key / size, (key % size) as u32);
            }
        }
    }

    /// Fills the mask rows of the level that has masks and no table.
    pub(super) fn fill_last_masks(
        &self,
        masks: &mut [u32],
        ranks: &RankSet,
        prefixes: Option<&RankSet>,
    ) {
        let level = self.dense.num_levels();
        let Some(sparse) = self.sparse_level(level) else { return };
        let size = u64::from(self.dense.size(level));
        self.dense.for_each_used_key(|key, range| {
            // A damaged table goes on past the items.
            let range = range.start.min(self.num_items)..range.end.min(self.num_items);
            if !ranks.any_in(range.clone()) {
                return;
            }
            let places = sparse.places(&range);
            let members = Members { ranks, prefixes };
            sparse.for_each_code_of(members, range, places, |code| {
                if code < size {
                    self.dense.set(masks, level, key, code as u32);
                }
            });
        });
    }
}

impl ItemSet {
    /// The ranks.
    pub fn ranks(&self) -> &RankSet {
        &self.ranks
    }

    /// Items in the set.
    pub fn len(&self) -> u64 {
        self.ranks.len()
    }

    /// True if nothing may be returned.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Bytes of the set, memory that it shares with others included.
    pub fn bytes(&self) -> usize {
        let masks: usize = self.masks.iter().map(SharedMasks::bytes).sum();
        self.ranks.bytes() + masks + self.prefixes.bytes()
    }

    /// A copy without some items.
    pub fn without(&self, index: &Index, ranks: impl IntoIterator<Item = u64>) -> Self {
        let mut items = self.clone();
        ranks.into_iter().for_each(|rank| _ = items.remove(index, rank));
        items
    }

    /// Takes an item out; returns whether it was in. `index` is the one the set was made for.
    ///
    /// Cost: a copy of a few kilobytes where the set shares its memory with a clone. Cloning a set
    /// copies a pointer for each 4 KiB.
    pub fn remove(&mut self, index: &Index, rank: u64) -> bool {
        if !self.ranks.remove(rank) {
            return false;
        }
        self.forget(index, &index.start(), rank);
        true
    }

    /// Takes out the prefixes longer than `prefix` that only the item `rank` had. Returns whether
    /// an item that is in has one of them that `rank` has too.
    fn forget(&mut self, index: &Index, prefix: &CatalogState, rank: u64) -> bool {
        let (level, num_dense) = (prefix.level(), index.dense.num_levels());
        if level >= self.masks.len().max(num_dense + self.prefixes.num_levels()) {
            return false;
        }
        let Some((code, next)) = index.next_of(prefix, rank) else { return false };
        if self.forget(index, &next, rank) || self.ranks.any_in(next.ranks()) {
            return true;
        }
        if let Some(masks) = self.masks.get_mut(level) {
            masks.clear(prefix.key, code);
        }
        if let (Some(at), Some(sparse)) = (level.checked_sub(num_dense), index.sparse_level(level))
        {
            // As many prefixes begin before this one as its number says.
            self.prefixes.remove(at, sparse.first(next.ranks().start));
        }
        false
    }

    /// The set as the children of states of `level` are asked about it.
    #[inline]
    pub(super) fn members(&self, index: &Index, level: usize) -> Members<'_> {
        let sparse_level = level.checked_sub(index.dense.num_levels());
        let prefixes = sparse_level.and_then(|at| self.prefixes.of_level(at));
        Members { ranks: &self.ranks, prefixes }
    }

    #[inline]
    pub(super) fn mask(&self, level: usize, key: u32) -> &[u32] {
        self.mask_reader(level)(key)
    }

    /// For several [`mask`](Self::mask)s of one level: their memory is looked up once.
    #[inline(always)]
    pub(super) fn mask_reader<'a>(&'a self, level: usize) -> impl Fn(u32) -> &'a [u32] {
        let masks = self.masks.get(level);
        move |key| masks.map_or(&[], |masks| masks.row(key))
    }
}
