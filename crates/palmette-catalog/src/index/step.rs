//! Many beams at once.
//!
//! A beam's next codes lie in one or two cache lines, but nearly always in lines that no other beam
//! has brought in, so a step costs as much as waiting for memory does. Beams are therefore taken in
//! windows: first the lines that say where each beam's codes are are asked for, then the lines of the
//! codes, and only then is anything read.

use std::ops::Range;

use palmette_storage::prefetch;

use super::sparse::SparseLevel;
use super::{CatalogState, Index, ItemSet};

/// Beams looked after at a time. PERF: enough that the first line has arrived when the last was asked
/// for; 16 and 64 were not faster.
const WINDOW: usize = 32;

/// Words in a cache line.
const LINE_WORDS: usize = 16;

impl Index {
    /// Writes which codes may follow each state: row `i` of `masks`, `words_per_row` words, belongs to
    /// `states[i]`; code `c` after a state of level `l` is bit `first_bits[l] + c`, or bit `c` where
    /// `first_bits` is shorter. With `items`, only what leads to an item of that set. Codes whose bit is
    /// past the row are left out.
    ///
    /// Cost: at dense levels a copy of the row; below, one read a code. No allocation.
    ///
    /// # Panics
    /// When `masks` does not have a row for each state.
    pub fn fill_masks(
        &self,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        first_bits: &[u32],
        words_per_row: usize,
        masks: &mut [u32],
    ) {
        assert_eq!(
            masks.len(),
            states.len() * words_per_row,
            "mask rows of {} states",
            states.len()
        );
        if words_per_row == 0 {
            return;
        }
        let rows = masks.chunks_mut(WINDOW * words_per_row);
        for (states, masks) in states.chunks(WINDOW).zip(rows) {
            let firsts = self.bring_in(states, items, Wanted::Masks);
            masks.fill(0);
            for (at, row) in masks.chunks_exact_mut(words_per_row).enumerate() {
                self.add_mask(&states[at], firsts[at], items, first_bits, row);
            }
        }
    }

    /// As [`fill_masks`](Self::fill_masks), but adds to what the masks hold, and `states[i]` has row
    /// `rows[i]` of them: for a set that is put together from several indexes.
    ///
    /// # Panics
    /// When a state has no row, or the row does not exist.
    pub fn add_masks(
        &self,
        states: &[CatalogState],
        rows: &[u32],
        items: Option<&ItemSet>,
        first_bits: &[u32],
        words_per_row: usize,
        masks: &mut [u32],
    ) {
        assert_eq!(states.len(), rows.len(), "a row for each state");
        for (states, rows) in states.chunks(WINDOW).zip(rows.chunks(WINDOW)) {
            let firsts = self.bring_in(states, items, Wanted::Masks);
            for (at, state) in states.iter().enumerate() {
                let row = &mut masks[rows[at] as usize * words_per_row..][..words_per_row];
                self.add_mask(state, firsts[at], items, first_bits, row);
            }
        }
    }

    /// Adds to `row` the codes that may follow one state, whose first code is at place `first`.
    #[inline]
    fn add_mask(
        &self,
        state: &CatalogState,
        first: u64,
        items: Option<&ItemSet>,
        first_bits: &[u32],
        row: &mut [u32],
    ) {
        let first_bit = first_bits.get(state.level()).copied().unwrap_or(0);
        if let Some(mask) = self.kept_mask(state, items) {
            add_bits(mask, row, first_bit);
        } else if let Some(sparse) = self.sparse_level(state.level()) {
            let set = |code| set_bit(row, u64::from(first_bit) + code);
            fill_row(sparse, self.within(state), first, items, set);
        }
    }

    /// Visits what may follow each state, in order of the states and then of the codes: the place of the
    /// state in `states`, the code, and the position after it. With `items`, only what leads to an item
    /// of that set.
    ///
    /// Cost: one read a code, and finding where the next prefix begins. No allocation.
    pub fn successors(
        &self,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        mut visit: impl FnMut(usize, u32, CatalogState),
    ) {
        for (window, states) in states.chunks(WINDOW).enumerate() {
            let firsts = self.bring_in(states, items, Wanted::Children);
            for (at, state) in states.iter().enumerate() {
                let (place, level) = (window * WINDOW + at, state.level() + 1);
                let Some(sparse) = self.sparse_level(state.level()) else {
                    self.for_each_dense_child(state, items, |code, child| {
                        visit(place, code, child);
                    });
                    continue;
                };
                sparse.for_each_child(self.within(state), firsts[at], |code, ranks| {
                    if items.is_none_or(|items| items.ranks().any_in(ranks.clone())) {
                        visit(place, code as u32, self.state(ranks, 0, level));
                    }
                });
            }
        }
    }

    /// Asks for the memory that a window of states will read; returns for each state of a sparse level
    /// the place of its first code.
    fn bring_in(
        &self,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        wanted: Wanted,
    ) -> [u64; WINDOW] {
        let sparse_level = |state: &CatalogState| {
            let masked = wanted == Wanted::Masks && state.level() < self.dense.num_masked();
            if masked { None } else { self.sparse_level(state.level()) }
        };
        for state in states {
            if let Some(sparse) = sparse_level(state) {
                sparse.prefetch_first(&self.within(state));
                if let Some(items) = items {
                    items.ranks().prefetch(state.start);
                }
            } else if let Some(row) = self.kept_mask(state, items) {
                (0..row.len().div_ceil(LINE_WORDS))
                    .for_each(|line| prefetch(row, line * LINE_WORDS));
            }
        }
        let mut firsts = [0; WINDOW];
        for (first, state) in firsts.iter_mut().zip(states) {
            if let Some(sparse) = sparse_level(state) {
                *first = sparse.first(self.within(state).start);
                sparse.prefetch_codes(*first);
            }
        }
        firsts
    }

    /// The mask of the codes that may follow, at levels that keep one for each prefix.
    #[inline]
    fn kept_mask<'a>(
        &'a self,
        state: &CatalogState,
        items: Option<&'a ItemSet>,
    ) -> Option<&'a [u32]> {
        let level = state.level();
        (level < self.dense.num_masked()).then(|| match items {
            Some(items) => items.mask(level, state.key),
            None => self.dense.mask(level, state.key),
        })
    }

    fn for_each_dense_child(
        &self,
        state: &CatalogState,
        items: Option<&ItemSet>,
        mut visit: impl FnMut(u32, CatalogState),
    ) {
        let level = state.level();
        if level >= self.dense.num_levels() {
            return;
        }
        let size = self.dense.size(level);
        for (at, &word) in self.kept_mask(state, items).unwrap_or_default().iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let code = at as u32 * 32 + left.trailing_zeros();
                left &= left - 1;
                if code < size {
                    let key = u64::from(state.key) * u64::from(size) + u64::from(code);
                    let ranks = self.dense.ranks(level + 1, key);
                    visit(code, self.state(ranks, key, level + 1));
                }
            }
        }
    }
}

/// What a window of states is to give.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Masks,
    Children,
}

/// Visits the codes that follow the prefix with range `within`; some may be visited twice.
#[inline]
fn fill_row(
    sparse: &SparseLevel,
    within: Range<u64>,
    first: u64,
    items: Option<&ItemSet>,
    mut visit: impl FnMut(u64),
) {
    match items {
        // Where all items are in, as they mostly are in a set that few were taken out of, there is no need
        // to find where each child begins.
        None => sparse.for_each_code(within, first, visit),
        Some(items) if items.ranks().all_in(within.clone()) => {
            sparse.for_each_code(within, first, visit);
        }
        Some(items) => sparse.for_each_child(within, first, |code, ranks| {
            if items.ranks().any_in(ranks) {
                visit(code);
            }
        }),
    }
}

#[inline]
fn set_bit(row: &mut [u32], bit: u64) {
    if let Some(word) = row.get_mut((bit / 32) as usize) {
        *word |= 1 << (bit % 32);
    }
}

/// Adds the bits of `mask` to `row`, the first of them at `first_bit`.
fn add_bits(mask: &[u32], row: &mut [u32], first_bit: u32) {
    let row = row.get_mut(first_bit as usize / 32..).unwrap_or_default();
    let shift = first_bit % 32;
    if shift == 0 {
        row.iter_mut().zip(mask).for_each(|(word, bits)| *word |= bits);
        return;
    }
    let mut carry = 0;
    for (at, word) in row.iter_mut().enumerate().take(mask.len() + 1) {
        let bits = u64::from(mask.get(at).copied().unwrap_or(0)) << shift;
        *word |= bits as u32 | carry;
        carry = (bits >> 32) as u32;
    }
}
