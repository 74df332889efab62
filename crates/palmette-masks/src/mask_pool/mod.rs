//! Mask pool: masks by number, delta-encoded against rows that they share.
//!
//! - A [`MaskRow`] is a row of words that others are told by; grammars over a vocabulary share those of token effects.
//! - A [`Row`] is a base, one of these or none, and *patches*: the words that differ from it ([`rows`], [`bases`]).
//! - A mask is a union of parts: rows, and short lists of tokens.
//!
//! Nothing of a mask's words is written before somebody asks for them.

mod bases;
mod mask_row;
mod rows;

use hashbrown::HashMap;
use palmette_core::mask;

pub(super) use mask_row::MaskRow;
use rows::{FEW, Rows};
pub(super) use rows::{Row, RowId};

use super::IndexSet;
use super::residuals::{SuffixSetId, SuffixSets};

/// Number of a mask in the pool; different ones may be equal masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub(crate) u32);

/// Part of a mask; its tokens are those of all its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Row(RowId),
    /// Few tokens.
    SuffixSet(SuffixSetId),
}

/// Masks by number, some of them perhaps equal.
///
/// PERF: to compute the words of a new mask, and whether another has the same, took longer than all else about it: 3 to 20 us where most of
/// what it reads is not in the cache.
#[derive(Debug, Default)]
pub(super) struct MaskPool {
    rows: Rows,
    /// Ascending parts, rows first.
    masks: boxcar::Vec<Box<[Part]>>,
    /// Those that were interned.
    interned: HashMap<RowId, PoolId>,
    /// Of the masks, without the rows.
    bytes: usize,
}

impl MaskPool {
    /// Number of them.
    pub(super) fn len(&self) -> usize {
        self.masks.count()
    }

    /// About how much memory they take, without the suffix sets.
    pub(super) fn memory_bytes(&self) -> usize {
        let interned = self.interned.len() * size_of::<(RowId, PoolId)>();
        self.bytes + interned + self.rows.memory_bytes()
    }

    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub(super) fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// True when so many tokens of suffix sets are few enough to be written one by one.
    pub(super) fn are_few(num_tokens: usize, num_words: usize) -> bool {
        num_tokens * FEW <= num_words
    }

    /// The number of a mask made of some parts, whether there are others for the same or not.
    pub(super) fn add(&mut self, parts: &mut Vec<Part>) -> PoolId {
        parts.sort_unstable();
        parts.dedup();
        let id = PoolId(self.masks.count() as u32);
        self.bytes += size_of::<Box<[Part]>>() + size_of_val(&**parts);
        self.masks.push(parts.as_slice().into());
        id
    }

    /// [`add`](Self::add) for a mask that nobody waits for: it takes longer, and what is to be written of it later lies together.
    ///
    /// PERF: at the pace of a model hardly anything of a mask is in the cache when it is asked for.
    pub(super) fn add_compact(
        &mut self,
        parts: &mut Vec<Part>,
        suffix_sets: &SuffixSets,
    ) -> PoolId {
        let num_rows = parts.iter().filter(|part| matches!(part, Part::Row(_))).count();
        if num_rows > 1 || num_rows == parts.len() {
            return self.add(parts);
        }
        let mut row = None;
        let mut bits: Vec<(u32, u32)> = Vec::new();
        for &part in &*parts {
            match part {
                Part::Row(id) => row = Some(id),
                Part::SuffixSet(suffix_set) => {
                    bits.extend(suffix_sets.tokens(suffix_set).map(|token| {
                        let token = token.index() as u32;
                        (token / 32, 1 << (token % 32))
                    }))
                }
            }
        }
        bits.sort_unstable();
        bits.dedup_by(|&mut (at, bits), (known_at, known)| {
            let same = at == *known_at;
            if same {
                *known |= bits;
            }
            same
        });
        let row = self.rows.add_with(row, &bits);
        parts.clear();
        parts.push(Part::Row(row));
        self.add(parts)
    }

    /// The number of a mask; equal ones that are given so have one.
    pub(super) fn intern(&mut self, mask: &[u32]) -> PoolId {
        let row = self.rows.intern(mask);
        if let Some(&known) = self.interned.get(&row) {
            return known;
        }
        let id = self.add(&mut vec![Part::Row(row)]);
        self.interned.insert(row, id);
        id
    }

    /// Writes a mask.
    pub(super) fn copy(&self, id: PoolId, suffix_sets: &SuffixSets, mask: &mut [u32]) {
        let parts = &*self.masks[id.0 as usize];
        let others = match parts {
            [Part::Row(first), others @ ..] => {
                self.rows.copy(self.rows.row(*first), mask);
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
                Part::Row(row) => self.rows.insert(self.rows.row(row), mask),
                Part::SuffixSet(suffix_set) => {
                    suffix_sets.tokens(suffix_set).for_each(|token| mask::insert(mask, token));
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
