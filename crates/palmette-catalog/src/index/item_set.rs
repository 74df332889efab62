//! The items that one request may return.

use palmette_attributes::RankSet;

use super::Index;
use super::shared_masks::SharedMasks;

/// Some of an index's items: a set of ranks, and the masks of the first levels under it.
///
/// With it a step stays exact: a code may follow if and only if some item of the set continues with
/// it. Memory: a bit an item where the set has any, and the masks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemSet {
    ranks: RankSet,
    /// As in the index, for each level with masks.
    masks: Vec<SharedMasks>,
}

impl Index {
    /// Prepares a set of ranks for steps.
    ///
    /// Cost: a pass over the dense levels' table or over the set, whichever is less.
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
        if dense.num_masked() > dense.num_levels() {
            self.fill_last_masks(&mut masks[dense.num_levels()], &ranks);
        }
        let share = |(level, masks): (usize, Vec<u32>)| {
            SharedMasks::new(&masks, dense.words_per_row(level))
        };
        ItemSet { ranks, masks: masks.into_iter().enumerate().map(share).collect() }
    }

    /// All items, as a set to take some out of. Cost: a copy of the masks.
    pub fn all_items(&self) -> ItemSet {
        let dense = &self.dense;
        let masks = (0..dense.num_masked())
            .map(|level| SharedMasks::new(dense.masks(level), dense.words_per_row(level)));
        ItemSet { ranks: RankSet::full(self.num_items), masks: masks.collect() }
    }

    /// Fills the mask rows of `level` from those of the level below: a code may follow where anything
    /// may follow it.
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
    pub(super) fn fill_last_masks(&self, masks: &mut [u32], ranks: &RankSet) {
        let level = self.dense.num_levels();
        let Some(sparse) = self.sparse_level(level) else { return };
        let size = u64::from(self.dense.size(level));
        self.dense.for_each_used_key(|key, range| {
            // A damaged table goes on past the items.
            let range = range.start.min(self.num_items)..range.end.min(self.num_items);
            let first = sparse.first(range.start);
            sparse.for_each_code_of(ranks, range, first, |code| {
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

    /// Whether nothing may be returned.
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Bytes of the set, memory that it shares with others included.
    pub fn bytes(&self) -> usize {
        self.ranks.bytes() + self.masks.iter().map(SharedMasks::bytes).sum::<usize>()
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
        let dense = &index.dense;
        for level in (0..dense.num_masked()).rev() {
            let prefix = index.prefix_of(rank, level, |_| {});
            let Some((code, ranks)) = index.child_with(&prefix, rank) else { continue };
            if self.ranks.any_in(ranks) {
                break;
            }
            self.masks[level].clear(prefix.key, code);
        }
        true
    }

    #[inline]
    pub(super) fn mask(&self, level: usize, key: u32) -> &[u32] {
        self.masks.get(level).map_or(&[], |masks| masks.row(key))
    }
}
