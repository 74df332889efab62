//! Many beams at once, each over a code of its own.
//!
//! As in a step (`step.rs`), the lines that beams will read are asked for before any is read.

use std::ops::Range;

use palmette_mapped::{prefetch, with_bit_instructions};

use super::sparse::SparseLevel;
use super::step::{LINE_WORDS, WINDOW, is_asked};
use super::{CatalogState, Index, ItemSet};

/// Beams that commit at a time.
///
/// PERF: a commit asks for up to six lines a beam. The third code of `palmette-catalog-live`'s
/// bench `segments`, on an AMD EPYC (Zen 4), took 31 us with 32 and 27 with 16 and with 10.
const COMMIT_WINDOW: usize = 16;
const _: () = assert!(COMMIT_WINDOW <= WINDOW, "lines are asked for in windows of a step");

impl Index {
    /// Moves each state over a code: `states[i]`, of level `l`, over `code_of(i, l)`. Where no item
    /// continues so, or with `items` none of that set, it becomes [`CatalogState::DEAD`]. The
    /// states are as in [`fill_masks`](Self::fill_masks); a code over [`MAX_CODE`](super::MAX_CODE)
    /// is one that no item has.
    ///
    /// Cost: as [`child`](Self::child) for each, but beams wait for memory together. No allocation.
    pub fn advance(
        &self,
        states: &mut [CatalogState],
        items: Option<&ItemSet>,
        code_of: impl Fn(usize, usize) -> u32,
    ) {
        // PERF: prefixes are found by counting bits, and many of them.
        with_bit_instructions(
            #[inline(always)]
            || self.advance_runs(states, items, code_of),
        );
    }

    #[inline(always)]
    pub(super) fn advance_runs(
        &self,
        states: &mut [CatalogState],
        items: Option<&ItemSet>,
        code_of: impl Fn(usize, usize) -> u32,
    ) {
        let mut place = 0;
        for run in states.chunk_by_mut(|a, b| a.level == b.level) {
            let level = run[0].level();
            // Where most items are in, a child's ranks are asked whether any is: masks after it
            // read them too.
            let asked_after = items.filter(|items| {
                let is_by_masks = |sparse| self.is_numbered_by_masks(sparse, level);
                items.len() > self.num_items / 2
                    && self.sparse_level(level).is_some_and(is_by_masks)
            });
            for states in run.chunks_mut(COMMIT_WINDOW) {
                let mut codes = [0; COMMIT_WINDOW];
                codes
                    .iter_mut()
                    .zip(place..)
                    .take(states.len())
                    .for_each(|(code, at)| *code = code_of(at, level));
                place += states.len();
                match self.sparse_level(level) {
                    Some(sparse) if self.is_numbered_by_masks(sparse, level) => {
                        self.advance_by_masks(sparse, states, &codes, items, asked_after);
                    }
                    Some(sparse) => self.advance_sparse(sparse, states, &codes, items),
                    None => self.advance_dense(states, &codes, items),
                }
            }
            // PERF: after all windows, when what was asked for has arrived: 0.3 us of the third
            // code of 15 in `palmette-catalog-live`'s bench `segments`, on an AMD EPYC (Zen 5).
            if let Some(items) = asked_after {
                for state in run {
                    if !items.ranks().any_in(state.ranks()) {
                        *state = CatalogState::DEAD;
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn advance_dense(
        &self,
        states: &mut [CatalogState],
        codes: &[u32; COMMIT_WINDOW],
        items: Option<&ItemSet>,
    ) {
        let level = states[0].level();
        if level >= self.dense.num_levels() {
            return states.fill(CatalogState::DEAD);
        }
        let size = self.dense.size(level);
        let key =
            |state: &CatalogState, code| u64::from(state.key) * u64::from(size) + u64::from(code);
        for (state, &code) in states.iter().zip(codes) {
            self.dense.prefetch_ranks(level + 1, key(state, code));
            if items.is_some() {
                prefetch(self.kept_mask(state, items).unwrap_or_default(), code as usize / 32);
            }
        }
        for (state, &code) in states.iter_mut().zip(codes) {
            let key = key(state, code);
            let is_in = code < size && (items.is_none() || self.is_kept(state, items, code));
            let ranks = if is_in { self.dense.ranks(level + 1, key) } else { 0..0 };
            *state = self.state_or_dead(ranks, key, level + 1);
        }
    }

    /// True if a prefix's mask numbers its children, and lies in a line or two.
    #[inline]
    fn is_numbered_by_masks(&self, sparse: &SparseLevel, level: usize) -> bool {
        level < self.dense.num_masked()
            && self.dense.words_per_row(level) <= LINE_WORDS
            && sparse.knows_starts()
    }

    /// Advances as [`advance_sparse`](Self::advance_sparse) does, by masks instead of codes. As
    /// many children come before the one over a code as the mask of the prefix has bits before it.
    ///
    /// PERF: it reads a line of the mask rather than up to three of codes, and searches nothing.
    /// With it and the instructions, the step over the third code of `palmette-catalog-live`'s
    /// bench `updates` (180 children a beam, 20 million items) went from 27.5 to 16.8 us.
    ///
    /// What `asked_after` will be asked afterwards is only asked for.
    #[inline(always)]
    fn advance_by_masks(
        &self,
        sparse: &SparseLevel,
        states: &mut [CatalogState],
        codes: &[u32; COMMIT_WINDOW],
        items: Option<&ItemSet>,
        asked_after: Option<&ItemSet>,
    ) {
        let level = states[0].level();
        let sets = if asked_after.is_some() { None } else { items };
        for (state, &code) in states.iter().zip(codes) {
            let mask = self.dense.mask(level, state.key);
            prefetch(mask, 0);
            prefetch(mask, code as usize / 32);
            if sets.is_some() {
                prefetch(self.kept_mask(state, sets).unwrap_or_default(), code as usize / 32);
            }
            sparse.prefetch_starts(&self.within(state));
        }
        states.iter().for_each(|state| sparse.prefetch_listed_starts(&self.within(state)));
        for (state, &code) in states.iter_mut().zip(codes) {
            let child = if self.is_kept(state, sets, code) {
                let mask = self.dense.mask(level, state.key);
                sparse.child_after(&self.within(state), ones_before(mask, code))
            } else {
                0..0
            };
            if let Some(items) = asked_after {
                items.ranks().prefetch(child.start);
            }
            *state = self.state_or_dead(child, 0, level + 1);
            self.prefetch_codes_after(state);
        }
    }

    /// Asks for what masks after this state will read first.
    #[inline(always)]
    pub(super) fn prefetch_codes_after(&self, state: &CatalogState) {
        if let Some(sparse) = self.sparse_level(state.level()) {
            sparse.prefetch_codes_or_starts(&self.within(state));
        }
    }

    #[inline(always)]
    fn advance_sparse(
        &self,
        sparse: &SparseLevel,
        states: &mut [CatalogState],
        codes: &[u32; COMMIT_WINDOW],
        items: Option<&ItemSet>,
    ) {
        let level = states[0].level();
        let is_masked = level < self.dense.num_masked();
        if is_masked {
            for (state, &code) in states.iter().zip(codes) {
                prefetch(self.kept_mask(state, items).unwrap_or_default(), code as usize / 32);
            }
        }
        // Where there is a mask it says which children there are, and under a set are in; it has
        // mostly been read for the step before. In a small index it refuses nearly all.
        let mut parents = [CatalogState::DEAD; COMMIT_WINDOW];
        let mut origins = [0; COMMIT_WINDOW];
        let mut num_parents = 0;
        for (at, state) in states.iter_mut().enumerate() {
            if is_masked && !self.is_kept(state, items, codes[at]) {
                *state = CatalogState::DEAD;
            } else {
                (parents[num_parents], origins[num_parents]) = (*state, at);
                num_parents += 1;
            }
        }
        let (parents, origins) = (&parents[..num_parents], &origins[..num_parents]);
        let members = items.filter(|_| !is_masked).map(|items| items.members(self, level));
        let places = self.bring_in(sparse, parents, None);
        places[..num_parents].iter().for_each(|places| sparse.prefetch_all_codes(places));
        let mut children = [const { (0, 0..0) }; COMMIT_WINDOW];
        for (((parent, &at), places), child) in
            parents.iter().zip(origins).zip(places).zip(&mut children)
        {
            if let Some((place, ranks)) = sparse.child_at(&self.within(parent), places, codes[at]) {
                if let Some(members) = members.filter(|_| is_asked(parent)) {
                    members.prefetch_child(place, &ranks);
                }
                *child = (place, ranks);
            }
        }
        for ((parent, &at), (place, ranks)) in parents.iter().zip(origins).zip(children) {
            let members = members.filter(|_| is_asked(parent));
            let is_in = members.is_none_or(|members| members.has_child(place, ranks.clone()));
            let ranks = if is_in { ranks } else { 0..0 };
            states[at] = self.state_or_dead(ranks, 0, level + 1);
            self.prefetch_codes_after(&states[at]);
        }
    }

    /// True if the mask kept for a state has a code.
    #[inline]
    fn is_kept(&self, state: &CatalogState, items: Option<&ItemSet>, code: u32) -> bool {
        has_code(self.kept_mask(state, items).unwrap_or_default(), code)
    }

    #[inline]
    pub(super) fn state_or_dead(&self, ranks: Range<u64>, key: u64, level: usize) -> CatalogState {
        let CatalogState { start, end, key, level } = self.state(ranks, key, level);
        // PERF: whether it is dead is not predictable where an index is small.
        let keep = u32::from(start != end).wrapping_neg();
        CatalogState { start: start & keep, end: end & keep, key: key & keep, level: level & keep }
    }
}

/// True if a mask has the bit of a code.
#[inline(always)]
pub(super) fn has_code(mask: &[u32], code: u32) -> bool {
    mask.get(code as usize / 32).is_some_and(|word| word >> (code % 32) & 1 == 1)
}

/// Bits of a mask, of a line or two, before that of a code.
///
/// PERF: all words are counted, since how many come before is not predictable.
#[inline(always)]
fn ones_before(mask: &[u32], code: u32) -> u64 {
    let ones = |(first, word): (u32, &u32)| {
        let from_on = u32::MAX.checked_shl(code.saturating_sub(first)).unwrap_or(0);
        (word & !from_on).count_ones()
    };
    (0..).step_by(32).zip(mask).map(ones).sum::<u32>().into()
}
