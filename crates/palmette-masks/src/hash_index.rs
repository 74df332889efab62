//! Sharded hash index from hashes to numbers.

use hashbrown::HashTable;

/// So many tables share the entries.
const SHARDS: usize = 32;

/// Numbers by hash; what has equal hashes is for the caller to tell apart.
///
/// PERF: a table that grows puts all its entries elsewhere. There are several, each of which grows for itself, with the hashes beside the
/// numbers: with one table some new masks took 0.1 to 0.2 ms.
#[derive(Debug)]
pub(super) struct HashIndex {
    shards: [HashTable<(u64, u32)>; SHARDS],
}

impl Default for HashIndex {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| HashTable::new()) }
    }
}

impl HashIndex {
    /// The number with this hash that `is_same` takes.
    pub(super) fn find(&self, hash: u64, mut is_same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mixed = mixed(hash);
        let same = |&(other, number): &(u64, u32)| other == mixed && is_same(number);
        self.shards[shard(mixed)].find(mixed, same).map(|&(_, number)| number)
    }

    /// Adds a number that is not there.
    pub(super) fn insert(&mut self, hash: u64, number: u32) {
        let mixed = mixed(hash);
        self.shards[shard(mixed)].insert_unique(mixed, (mixed, number), |&(hash, _)| hash);
    }

    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(HashTable::len).sum()
    }

    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        const ENTRY: usize = size_of::<(u64, u32)>() + 1;
        self.len() * ENTRY * 3 / 2
    }
}

/// A hash of which some bits may be looked at alone. It is as good at telling apart: this can be undone.
fn mixed(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(0xFF51_AFD7_ED55_8CCD).rotate_left(31)
}

/// Tables look at the topmost and the lowest bits.
fn shard(mixed: u64) -> usize {
    (mixed >> 40) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_equal_hashes_is_told_apart() {
        let mut index = HashIndex::default();
        for number in 0..3000_u32 {
            let hash = u64::from(number / 3);
            assert_eq!(index.find(hash, |other| other == number), None);
            index.insert(hash, number);
        }
        assert_eq!(index.len(), 3000);
        for number in 0..3000 {
            assert_eq!(index.find(u64::from(number / 3), |other| other == number), Some(number));
        }
        assert_eq!(index.find(1000, |_| true), None);
    }
}
