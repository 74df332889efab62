//! Mask pool: masks by number, delta-encoded against rows that they share.
//!
//! - A [`Row`] is a base, which it shares with others, or none, and *patches*: the words that
//!   differ from it. Grammars over a vocabulary share the rows of token effects.
//! - A mask is a union of parts: rows, and short lists of tokens.
//!
//! Nothing of a mask's words is written before somebody asks for them.

mod row;

use hashbrown::HashTable;
use palmette_core::mask;

use row::FEW;
pub(super) use row::{Row, RowEncoder};

use super::residuals::{SuffixSetId, SuffixSets};
use super::tables::{IndexSet, table_bytes};

/// Number of a mask in the pool; different ones may be equal masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub(crate) u32);

/// A number into the rows of a [`MaskPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowId(u32);

/// Part of a mask; its tokens are those of all its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Row(RowId),
    /// Few tokens.
    SuffixSet(SuffixSetId),
}

/// Masks by number, some of them perhaps equal.
///
/// PERF: to compute the words of a new mask, and whether another has the same, took longer than all
/// else about it: 3 to 20 us where most rows are not in the cache.
#[derive(Debug, Default)]
pub(super) struct MaskPool {
    rows: boxcar::Vec<Row>,
    encoder: RowEncoder,
    /// Ascending parts, rows first.
    masks: boxcar::Vec<Box<[Part]>>,
    /// Rows that were interned, each with its hash.
    interned: HashTable<(u64, RowId, PoolId)>,
    /// Bytes of the masks, without the rows.
    bytes: usize,
}

impl MaskPool {
    /// Number of them.
    pub(super) fn len(&self) -> usize {
        self.masks.count()
    }

    /// About how much memory they take, without the suffix sets.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
            + self.rows.count() * size_of::<Row>()
            + self.encoder.memory_bytes()
            + table_bytes::<(u64, RowId, PoolId)>(self.interned.len())
    }

    /// True when so many tokens of suffix sets are few enough to be written one by one.
    pub(super) fn are_few(num_tokens: usize, num_words: usize) -> bool {
        num_tokens * FEW <= num_words
    }

    /// The number of a row, whether there are others for the same or not.
    pub(super) fn add_row(&mut self, row: Row) -> RowId {
        RowId(self.rows.push(row) as u32)
    }

    /// The row of some words.
    pub(super) fn encode(&mut self, words: &[u32]) -> Row {
        self.encoder.encode(words, None)
    }

    /// The number of a mask made of some parts, whether there are others for the same or not.
    pub(super) fn add(&mut self, parts: &mut Vec<Part>) -> PoolId {
        parts.sort_unstable();
        parts.dedup();
        self.bytes += size_of::<Box<[Part]>>() + size_of_val(&**parts);
        PoolId(self.masks.push(parts.as_slice().into()) as u32)
    }

    /// A row that masks differ from by patches.
    pub(super) fn add_base(&mut self, words: &[u32]) -> Row {
        self.encoder.base(words)
    }

    /// The number of a mask that is a base, or no tokens, but for some words, each after its place,
    /// ascending; whether there are others for the same or not.
    pub(super) fn add_patched(&mut self, base: Option<&Row>, patches: &[[u32; 2]]) -> PoolId {
        let row = self.encoder.patched(base, patches);
        let row = self.add_row(row);
        self.add(&mut vec![Part::Row(row)])
    }

    /// The number of a mask; equal ones that are given so have one.
    pub(super) fn intern(&mut self, words: &[u32]) -> PoolId {
        let hash = hash_of_words(words);
        let same = |&(other, row, _): &(u64, RowId, PoolId)| {
            other == hash && self.rows[row.0 as usize].to_words(words.len()) == words
        };
        if let Some(&(_, _, known)) = self.interned.find(hash, same) {
            return known;
        }
        let row = self.encode(words);
        let row = self.add_row(row);
        let id = self.add(&mut vec![Part::Row(row)]);
        self.interned.insert_unique(hash, (hash, row, id), |&(hash, ..)| hash);
        id
    }

    /// Writes a mask.
    pub(super) fn copy(&self, id: PoolId, suffix_sets: &SuffixSets, mask: &mut [u32]) {
        let parts = &*self.masks[id.0 as usize];
        let others = match parts {
            [Part::Row(first), others @ ..] => {
                self.rows[first.0 as usize].copy(mask);
                others
            }
            parts => {
                mask.fill(0);
                parts
            }
        };
        self.insert_parts(others, suffix_sets, mask);
    }

    /// Adds its tokens to a mask.
    pub(super) fn insert(&self, id: PoolId, suffix_sets: &SuffixSets, mask: &mut [u32]) {
        self.insert_parts(&self.masks[id.0 as usize], suffix_sets, mask);
    }

    /// Adds the tokens of some parts to a mask.
    pub(super) fn insert_parts(&self, parts: &[Part], suffix_sets: &SuffixSets, mask: &mut [u32]) {
        for &part in parts {
            match part {
                Part::Row(row) => self.rows[row.0 as usize].insert(mask),
                Part::SuffixSet(suffix_set) => {
                    let tokens = suffix_sets.get(suffix_set).tokens();
                    tokens.for_each(|token| mask::insert(mask, token));
                }
            }
        }
    }

    /// All different masks of so many words, end to end, and by mask the number of its own.
    pub(super) fn different(
        &self,
        num_words: usize,
        suffix_sets: &SuffixSets,
    ) -> (Vec<u32>, Vec<u32>) {
        let mut different: IndexSet<Box<[u32]>> = IndexSet::default();
        let number = |id: u32| {
            let mut mask = vec![0; num_words];
            self.copy(PoolId(id), suffix_sets, &mut mask);
            different.insert_full(mask.into()).0 as u32
        };
        let numbers = (0..self.masks.count() as u32).map(number).collect();
        (different.iter().flatten().copied().collect(), numbers)
    }
}

/// A hash of words that is the same everywhere. Equal hashes are looked into.
fn hash_of_words(words: &[u32]) -> u64 {
    let each = words.iter().zip(0_u64..).map(|(&word, at)| {
        let product = (u64::from(word) << 32 | at).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product ^ product >> 32
    });
    each.fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Equal masks have one number, others have others, and each is what it was.
        #[test]
        fn masks_stay_what_they_are(
            masks in prop::collection::vec(prop::collection::vec(0..2_u32, 16), 0..20),
        ) {
            let (mut pool, suffix_sets) = (MaskPool::default(), SuffixSets::default());
            let ids: Vec<PoolId> = masks.iter().map(|mask| pool.intern(mask)).collect();
            for (mask, &id) in masks.iter().zip(&ids) {
                let first = masks.iter().position(|other| other == mask).unwrap();
                prop_assert_eq!(id, ids[first]);
                let mut copy = vec![u32::MAX; mask.len()];
                pool.copy(id, &suffix_sets, &mut copy);
                prop_assert_eq!(&copy, mask);
            }
            let (different, numbers) = pool.different(16, &suffix_sets);
            prop_assert_eq!(different.len(), 16 * pool.len());
            for (mask, &id) in masks.iter().zip(&ids) {
                prop_assert_eq!(&different[numbers[id.0 as usize] as usize * 16..][..16], mask);
            }
        }
    }
}
