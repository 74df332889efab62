//! Many beams at once, each of which has a position in several indexes.
//!
//! Such a beam is a caller's state with a part for each index, and the part is [`CatalogState::DEAD`] where the index
//! has nothing under its prefix. In a small index most parts are dead after a code or two, and those that
//! are not lie in the nearest caches: what takes time is moving parts about. At levels that keep masks and tables
//! they are read and written where they are; below, those that are not dead are put together first.

use std::hint::black_box;

use palmette_storage::{prefetch, with_bit_instructions};

use super::advance::has_code;
use super::item_set::Members;
use super::sparse::SparseLevel;
use super::step::{MaskTarget, WINDOW, add_bits, read_masks};
use super::{CatalogState, Index, ItemSet};

/// Bytes of a level's masks, or of the table of ranks, that are in a near cache as soon as they have been read a few
/// times. Those are not asked for before they are read: that takes longer than reading them does.
const NEAR_BYTES: usize = 1 << 16;

/// Masks are thin that have fewer than one code of so many.
const THIN: u64 = 8;

/// Working memory of one thread, for parts that are put together.
#[derive(Clone, Debug, Default)]
pub struct PartScratch {
    /// The parts, and what is left of others after them.
    parts: Vec<CatalogState>,
    /// The place of the state of each.
    rows: Vec<u32>,
}

impl PartScratch {
    /// Puts those parts together that are wanted.
    ///
    /// PERF: whether a part is wanted is not predictable, so each is written and only then kept or written over.
    #[inline(always)]
    fn gather(
        &mut self,
        parts: impl ExactSizeIterator<Item = (CatalogState, bool)>,
    ) -> (&mut [CatalogState], &[u32]) {
        let most = parts.len();
        if self.parts.len() < most {
            self.parts.resize(most, CatalogState::DEAD);
            self.rows.resize(most, 0);
        }
        let (kept, rows) = (&mut self.parts[..most], &mut self.rows[..most]);
        let mut len = 0;
        for (row, (part, is_wanted)) in (0_u32..).zip(parts) {
            if let (Some(kept), Some(kept_row)) = (kept.get_mut(len), rows.get_mut(len)) {
                (*kept, *kept_row) = (part, row);
            }
            len += usize::from(is_wanted);
        }
        (&mut kept[..len], &rows[..len])
    }
}

impl Index {
    /// Moves the part of each state over the code of that state, as [`advance`](Self::advance): dead
    /// parts stay dead, and all others are of level `level`.
    ///
    /// # Panics
    /// When there is not a code for each state.
    pub fn advance_parts<S>(
        &self,
        level: usize,
        states: &mut [S],
        part_of: impl Fn(&mut S) -> &mut CatalogState,
        codes: &[u32],
        items: Option<&ItemSet>,
        scratch: &mut PartScratch,
    ) {
        assert_eq!(states.len(), codes.len(), "a code for each state");
        // PERF: as in `advance`.
        with_bit_instructions(
            #[inline(always)]
            || match self.sparse_level(level) {
                Some(_) => self.advance_gathered(level, states, part_of, codes, items, scratch),
                None => self.advance_dense_parts(level, states, part_of, codes, items),
            },
        );
    }

    /// Asks for what [`advance_parts`](Self::advance_parts) reads first of a part, so that it arrives while parts in other indexes are
    /// moved. Nothing where that is in a near cache anyway.
    ///
    /// PERF: in `palmette-live`'s bench `segments`, on an AMD EPYC (Zen 5), the third code over six segments took 16.6 us without
    /// this and takes 15.5.
    pub fn prefetch_parts<S>(
        &self,
        level: usize,
        states: &[S],
        part_of: impl Fn(&S) -> &CatalogState,
        codes: &[u32],
    ) {
        if self.has_near_masks(level) || !self.has_thin_masks(level) {
            return;
        }
        let mask_of = self.dense.mask_reader(level);
        for (state, &code) in states.iter().zip(codes) {
            prefetch(mask_of(part_of(state).key), code as usize / 32);
        }
    }

    #[inline(always)]
    fn advance_dense_parts<S>(
        &self,
        level: usize,
        states: &mut [S],
        part_of: impl Fn(&mut S) -> &mut CatalogState,
        codes: &[u32],
        items: Option<&ItemSet>,
    ) {
        if level >= self.dense.num_levels() {
            return states.iter_mut().for_each(|state| *part_of(state) = CatalogState::DEAD);
        }
        let size = self.dense.size(level);
        if self.dense.table_bytes() > NEAR_BYTES {
            for (state, &code) in states.iter_mut().zip(codes) {
                let key = u64::from(part_of(state).key) * u64::from(size) + u64::from(code);
                self.dense.prefetch_ranks(level + 1, key);
            }
        }
        let ranks_of = self.dense.ranks_reader(level + 1);
        let mask_of = items.map(|items| items.mask_reader(level));
        for (state, &code) in states.iter_mut().zip(codes) {
            let part = part_of(state);
            let is_in = !part.is_dead()
                && code < size
                && mask_of.as_ref().is_none_or(|mask_of| has_code(mask_of(part.key), code));
            let key = u64::from(part.key) * u64::from(size) + u64::from(code);
            let ranks = if is_in { ranks_of(key) } else { 0..0 };
            *part = self.state_or_dead(ranks, key, level + 1);
        }
    }

    #[inline(always)]
    fn advance_gathered<S>(
        &self,
        level: usize,
        states: &mut [S],
        part_of: impl Fn(&mut S) -> &mut CatalogState,
        codes: &[u32],
        items: Option<&ItemSet>,
        scratch: &mut PartScratch,
    ) {
        let is_near = self.has_near_masks(level);
        let (parts, rows) = match items {
            Some(items) if is_near => {
                let mask_of = items.mask_reader(level);
                gather_taken(scratch, states, &part_of, codes, mask_of, is_near)
            }
            // What is refused without a set is refused under it; the masks of a set lie in many pieces of memory.
            _ if is_near || self.has_thin_masks(level) => {
                let mask_of = self.dense.mask_reader(level);
                gather_taken(scratch, states, &part_of, codes, mask_of, is_near)
            }
            _ => {
                let parts = states.iter_mut().map(|state| *part_of(state));
                scratch.gather(parts.map(|part| (part, !part.is_dead())))
            }
        };
        self.advance_runs(parts, items, |at, _| codes[rows[at] as usize]);
        for (part, &row) in parts.iter().zip(rows) {
            *part_of(&mut states[row as usize]) = *part;
        }
    }

    /// Adds to row `i` of the target the codes that may follow the part of `states[i]`. Parts are dead, or of level
    /// `level`; otherwise as [`fill_masks`](Self::fill_masks).
    ///
    /// # Panics
    /// When there is not a row for each state.
    pub fn add_masks_of_parts<S>(
        &self,
        level: usize,
        states: &[S],
        part_of: impl Fn(&S) -> &CatalogState,
        items: Option<&ItemSet>,
        target: MaskTarget<'_>,
        scratch: &mut PartScratch,
    ) {
        let (num_words, num_states) = (target.masks.len(), states.len());
        assert_eq!(num_words, num_states * target.words_per_row, "rows of {num_states} states");
        if target.words_per_row == 0 {
            return;
        }
        with_bit_instructions(
            #[inline(always)]
            || match (self.sparse_level(level), items) {
                (_, None) if level < self.dense.num_masked() => {
                    let is_near = self.has_near_masks(level);
                    add_masks(states, part_of, self.dense.mask_reader(level), is_near, target);
                }
                (_, Some(items)) if level < self.dense.num_masked() => {
                    let is_near = self.has_near_masks(level);
                    add_masks(states, part_of, items.mask_reader(level), is_near, target);
                }
                (Some(sparse), _) => {
                    let members = items.map(|items| items.members(self, level));
                    let parts = states.iter().map(|state| *part_of(state));
                    let (parts, rows) = scratch.gather(parts.map(|part| (part, !part.is_dead())));
                    self.add_gathered(sparse, parts, rows, members, target);
                }
                (None, _) => {}
            },
        );
    }

    #[inline(always)]
    fn add_gathered(
        &self,
        sparse: &SparseLevel,
        parts: &[CatalogState],
        rows: &[u32],
        members: Option<Members<'_>>,
        MaskTarget { masks, words_per_row, first_bit }: MaskTarget<'_>,
    ) {
        for (parts, rows) in parts.chunks(WINDOW).zip(rows.chunks(WINDOW)) {
            let places = self.bring_in(sparse, parts, members);
            for ((part, places), &row) in parts.iter().zip(places).zip(rows) {
                let start = row as usize * words_per_row;
                let row = &mut masks[start..start + words_per_row];
                self.add_codes(sparse, part, places, members, first_bit, row);
            }
        }
    }

    fn has_near_masks(&self, level: usize) -> bool {
        level < self.dense.num_masked() && 4 * self.dense.mask_words(level) <= NEAR_BYTES
    }

    /// Whether the masks of a sparse level have few of its codes.
    fn has_thin_masks(&self, level: usize) -> bool {
        let has_few = |sparse: &SparseLevel| {
            let num_bits = 32 * self.dense.mask_words(level) as u64;
            sparse.num_prefixes() < num_bits / THIN
        };
        level < self.dense.num_masked() && self.sparse_level(level).is_some_and(has_few)
    }
}

/// Takes each part out of its state, and puts those together whose prefix's mask has the code that they are moved over: masks with few
/// codes refuse nearly all parts before anything else is done.
///
/// PERF: masks that are not near are all read before any is looked at, see [`READ_WINDOW`](super::step::READ_WINDOW). In
/// `palmette-live`'s bench `segments`, on an AMD EPYC (Zen 4), the third code took 4.6 us more for a segment of 266,000
/// items when parts were put together first and masks asked for, and takes 3.1 more.
#[inline(always)]
fn gather_taken<'s, 'm, S>(
    scratch: &'s mut PartScratch,
    states: &mut [S],
    part_of: impl Fn(&mut S) -> &mut CatalogState,
    codes: &[u32],
    mask_of: impl Fn(u32) -> &'m [u32],
    is_near: bool,
) -> (&'s mut [CatalogState], &'s [u32]) {
    if !is_near {
        let keys = states.iter_mut().map(|state| part_of(state).key);
        let words = keys.zip(codes).map(|(key, &code)| mask_of(key).get(code as usize / 32));
        black_box(words.flatten().fold(0, |read, word| read ^ word));
    }
    scratch.gather(states.iter_mut().zip(codes).map(|(state, &code)| {
        let part = std::mem::replace(part_of(state), CatalogState::DEAD);
        (part, !part.is_dead() & has_code(mask_of(part.key), code))
    }))
}

/// Adds the mask of each part that is not dead to the row of its state.
#[inline(always)]
fn add_masks<'a, S>(
    states: &[S],
    part_of: impl Fn(&S) -> &CatalogState,
    mask_of: impl Fn(u32) -> &'a [u32],
    is_near: bool,
    MaskTarget { masks, words_per_row, first_bit }: MaskTarget<'_>,
) {
    if !is_near {
        read_masks(states.iter().map(|state| part_of(state).key), &mask_of);
    }
    for (state, row) in states.iter().zip(masks.chunks_exact_mut(words_per_row)) {
        let part = part_of(state);
        if !part.is_dead() {
            add_bits(mask_of(part.key), row, first_bit);
        }
    }
}
