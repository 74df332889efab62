//! Mask rows that are cleared where they are set.

use std::ops::Range;

use palmette_mapped::with_bit_instructions;

use super::sparse::SparseLevel;
use super::step::{READ_WINDOW, WINDOW, is_asked, read_masks, write_bits};
use super::{CatalogState, Index, ItemSet};

/// Mask rows that remember which words they set, so that only those are cleared.
///
/// With a large vocabulary and few codes allowed, clearing whole rows is most of a step: 140 rows
/// of 32,768 bits are 573 KB. These cost what is allowed, not what there is. A row of which more
/// than a sixteenth is to be set is cleared whole, and so are rows of fewer than 256 words; plain
/// rows are as good there.
///
/// Memory: the rows, and a sixteenth of it and 33 bytes a row for what they remember. Made once and
/// reused, one for each thread; filling allocates only when there are more rows than ever before.
///
/// PERF: what all rows remember is one list. With a list a row, each in a cache line of its own,
/// 140 rows of 32,768 bits, cold, took 17 to 22 us where they take 11 to 14.
#[derive(Clone, Debug)]
pub struct MaskRows {
    words_per_row: usize,
    num_rows: usize,
    /// All rows that there ever were, one after another; those past `num_rows` are 0, or remembered
    /// as set.
    masks: Vec<u32>,
    /// Places of `masks` that may be set, beside those of `whole` rows: the first `num_set`.
    set: Vec<u32>,
    num_set: usize,
    /// A bit for each row: whether any word of it may be set.
    whole: Vec<u64>,
}

/// Number of codes past a prefix that a read may visit.
const SPARE_PLACES: usize = 8;

/// Words of a row that are remembered singly.
///
/// PERF: none of a narrow row, which is cleared sooner than it is remembered: 140 rows of 64 words,
/// cold, took 12.8 us with it and 10.2 without.
fn max_single(words_per_row: usize) -> usize {
    const NARROW_WORDS: usize = 256;
    if words_per_row < NARROW_WORDS { 0 } else { words_per_row / 16 }
}

impl MaskRows {
    /// No rows yet; each will have `words_per_row` words, `mask::num_words` of the tokens.
    pub fn new(words_per_row: usize) -> Self {
        let (masks, set, whole) = (Vec::new(), Vec::new(), Vec::new());
        Self { words_per_row, num_rows: 0, masks, set, num_set: 0, whole }
    }

    /// Words of a row.
    pub fn words_per_row(&self) -> usize {
        self.words_per_row
    }

    /// Rows that were filled last.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// The rows that were filled last, one after another.
    pub fn masks(&self) -> &[u32] {
        &self.masks[..self.num_rows * self.words_per_row]
    }

    /// One of them.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.masks()[row * self.words_per_row..(row + 1) * self.words_per_row]
    }

    fn set_num_rows(&mut self, num_rows: usize) {
        self.num_rows = num_rows;
        let num_words = num_rows * self.words_per_row;
        if self.masks.len() < num_words {
            self.masks.resize(num_words, 0);
            self.set.resize(num_rows * (max_single(self.words_per_row) + SPARE_PLACES), 0);
        }
        if self.whole.len() < num_rows.div_ceil(64) {
            self.whole.resize(num_rows.div_ceil(64), 0);
        }
    }

    /// Writes all words of `num_rows` rows; they may hold anything when `write` gets them.
    pub(crate) fn rewrite(&mut self, num_rows: usize, write: impl FnOnce(&mut [u32])) {
        self.set_num_rows(num_rows);
        self.clear_set();
        (0..num_rows).for_each(|row| self.set_whole(row));
        write(&mut self.masks[..num_rows * self.words_per_row]);
    }

    /// Clears the words that are remembered singly.
    fn clear_set(&mut self) {
        for &place in &self.set[..self.num_set] {
            if let Some(word) = self.masks.get_mut(place as usize) {
                *word = 0;
            }
        }
        self.num_set = 0;
    }

    /// Clears a row of which any word may be set.
    #[inline]
    fn clear_whole(&mut self, row: usize) {
        if self.whole[row / 64] >> (row % 64) & 1 == 1 {
            self.row_mut(row).fill(0);
            self.whole[row / 64] &= !(1 << (row % 64));
        }
    }

    #[inline]
    fn set_whole(&mut self, row: usize) {
        self.whole[row / 64] |= 1 << (row % 64);
    }

    /// The most words of a row that are remembered singly. None where a word's place is no `u32`.
    fn max_single(&self) -> usize {
        let is_small = u32::try_from(self.masks.len()).is_ok();
        if is_small { max_single(self.words_per_row) } else { 0 }
    }

    /// Rows of states at a level that keeps a mask for each prefix.
    #[inline(never)]
    fn copy<'a>(
        &mut self,
        states: &[CatalogState],
        mask_of: impl Fn(u32) -> &'a [u32],
        first_bit: u32,
        rows: Range<usize>,
    ) {
        let windows = states.chunks(READ_WINDOW).zip(rows.step_by(READ_WINDOW));
        for (states, first_row) in windows {
            read_masks(states.iter().map(|state| state.key), &mask_of);
            for (state, row) in states.iter().zip(first_row..) {
                write_bits(mask_of(state.key), self.row_mut(row), first_bit);
                self.set_whole(row);
            }
        }
    }

    #[inline]
    fn row_mut(&mut self, row: usize) -> &mut [u32] {
        &mut self.masks[row * self.words_per_row..(row + 1) * self.words_per_row]
    }
}

impl Index {
    /// Fills masks as [`fill_masks`](Self::fill_masks) does, into rows that remember what they
    /// hold. One row a state.
    ///
    /// Cost: below the dense levels, what is allowed now and what was allowed by the rows' last
    /// filling, rather than the rows' words. No allocation, but for more rows than ever before.
    pub fn fill_mask_rows(
        &self,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        first_bits: &[u32],
        rows: &mut MaskRows,
    ) {
        rows.set_num_rows(states.len());
        rows.clear_set();
        let mut first_row = 0;
        for run in states.chunk_by(|a, b| a.level == b.level) {
            let level = run[0].level();
            let first_bit = first_bits.get(level).copied().unwrap_or(0);
            let run_rows = first_row..first_row + run.len();
            first_row = run_rows.end;
            match (self.sparse_level(level), items) {
                (_, None) if level < self.dense.num_masked() => {
                    rows.copy(run, self.dense.mask_reader(level), first_bit, run_rows);
                }
                (_, Some(items)) if level < self.dense.num_masked() => {
                    rows.copy(run, items.mask_reader(level), first_bit, run_rows);
                }
                (Some(sparse), _) => with_bit_instructions(
                    #[inline(always)]
                    || {
                        for (states, row) in run.chunks(WINDOW).zip(run_rows.step_by(WINDOW)) {
                            self.remember_codes(sparse, states, items, first_bit, row, rows);
                        }
                    },
                ),
                (None, _) => run_rows.for_each(|row| rows.clear_whole(row)),
            }
        }
    }

    /// Rows of states at a level that keeps codes, from `first_row` on.
    #[inline(always)]
    fn remember_codes(
        &self,
        sparse: &SparseLevel,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        first_bit: u32,
        first_row: usize,
        rows: &mut MaskRows,
    ) {
        let members = items.map(|items| items.members(self, states[0].level()));
        let places = self.bring_in(sparse, states, members);
        // Clearing takes time in which the lines arrive.
        (first_row..).take(states.len()).for_each(|row| rows.clear_whole(row));
        let most = rows.max_single() as u64;
        for ((state, places), row) in states.iter().zip(places).zip(first_row..) {
            let start = row * rows.words_per_row;
            let words = &mut rows.masks[start..start + rows.words_per_row];
            if places.end.saturating_sub(places.start) > most {
                self.add_codes(sparse, state, places, members, first_bit, words);
                rows.set_whole(row);
                continue;
            }
            let (remembered, mut len) = (&mut rows.set[rows.num_set..], 0);
            let mut is_whole = false;
            let mut set = |code: u64, valid: bool| {
                let bit = u64::from(first_bit) + code;
                let word = (bit / 32) as usize;
                if let Some(bits) = words.get_mut(word) {
                    *bits |= u32::from(valid) << (bit % 32);
                    match remembered.get_mut(len) {
                        Some(place) => *place = (start + word) as u32,
                        // A damaged file may have more codes than it says.
                        None => is_whole = true,
                    }
                    len += usize::from(valid);
                }
            };
            let within = self.within(state);
            sparse.for_each_code_or_more(members, is_asked(state), within, places, &mut set);
            if is_whole {
                rows.set_whole(row);
            } else {
                rows.num_set += len;
            }
        }
    }
}
