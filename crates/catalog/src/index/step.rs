//! The masks of many beams at once.
//!
//! A beam's next codes lie in one or two cache lines, but nearly always in lines that no other beam
//! has brought in, so a step costs as much as waiting for memory does. Beams are therefore taken in
//! windows: first the lines that say where each beam's codes are are asked for, then the lines of
//! the codes, and only then is anything looked at.
//!
//! Between a model's passes the step's own code has left the caches too, and a step over a single
//! beam is mostly waiting for it. So what a kind of level needs is a function of its own, and as
//! little code as it can be.

use std::hint::black_box;
use std::ops::Range;

use palmette_mapped::with_bit_instructions;

use super::members::Members;
use super::packed_ints::PackedReader;
use super::sparse::SparseLevel;
use super::{CatalogState, Index, ItemSet};

/// Beams looked after at a time. PERF: enough that the first line has arrived when the last was
/// asked for. 140 beams over 20 million items, cold, take the same time with 16, 32 and 64 and 5%
/// more with 160 (`palmette bench catalog`): the lines themselves are what takes time.
pub(super) const WINDOW: usize = 32;

/// Beams of which a word of each line is read, rather than asked for, before any is looked at.
/// Reads that depend on nothing wait for one another's lines no longer than for their own.
///
/// PERF: 140 beams over 20 million items, cold, on an AMD EPYC (Zen 4): rows of level 1, four lines
/// each, are copied in 11 us so and in 18 where they are asked for in windows of 32. Not
/// everywhere: with reads in place of all that is asked for, the third code of
/// `palmette-catalog-live`'s bench `segments` took 47 us and not 31.
pub(super) const READ_WINDOW: usize = 160;

/// Rows that are cleared at a time.
///
/// PERF: 140 rows of 64 words are more than the nearest cache of a Zen 4 holds: setting codes in
/// them took 2.4 us, hot, and 2.6 where all had been cleared first, row by row as well (level 2 of
/// 20 million items).
const CLEARED: usize = 8;

/// Words in a cache line.
pub(super) const LINE_WORDS: usize = 16;

/// Target of the masks of many states: rows, their width, the bit of code 0.
#[derive(Debug)]
pub struct MaskTarget<'a> {
    /// A row for each state.
    pub masks: &'a mut [u32],
    /// Words of a row.
    pub words_per_row: usize,
    /// The bit of code 0.
    pub first_bit: u32,
}

impl Index {
    /// Writes which codes may follow each state: row `i` of `masks`, `words_per_row` words, belongs
    /// to `states[i]`; code `c` after a state of level `l` is bit `first_bits[l] + c`, or bit `c`
    /// where `first_bits` is shorter. Codes whose bit is past the row are left out.
    ///
    /// With `items`, only what leads to an item of that set. Each state is then the start or the
    /// prefix of some item of the set, as what is reached from the start under that set is; where
    /// it is not, a code may be allowed that leads to none.
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
        let mut rest = masks;
        for run in states.chunk_by(|a, b| a.level == b.level) {
            let (masks, after) = rest.split_at_mut(run.len() * words_per_row);
            rest = after;
            let level = run[0].level();
            let first_bit = first_bits.get(level).copied().unwrap_or(0);
            self.fill_level(level, run, items, MaskTarget { masks, words_per_row, first_bit });
        }
    }

    /// [`fill_masks`](Self::fill_masks) for states of one level.
    ///
    /// # Panics
    /// When the target has no words, or not a row for each state.
    pub fn fill_level(
        &self,
        level: usize,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        target: MaskTarget<'_>,
    ) {
        match (self.sparse_level(level), items) {
            (_, None) if level < self.dense.num_masked() => {
                copy_masks(states, self.dense.mask_reader(level), target);
            }
            (_, Some(items)) if level < self.dense.num_masked() => {
                copy_masks(states, items.mask_reader(level), target);
            }
            (Some(sparse), None) if !sparse.knows_starts() => {
                self.set_codes_of_ranks(sparse, states, target);
            }
            (Some(sparse), _) => self.set_codes(sparse, states, items, target),
            (None, _) => target.masks.fill(0),
        }
    }

    /// Rows of states at a level that keeps codes.
    #[inline(never)]
    fn set_codes(
        &self,
        sparse: &SparseLevel,
        states: &[CatalogState],
        items: Option<&ItemSet>,
        MaskTarget { masks, words_per_row, first_bit }: MaskTarget<'_>,
    ) {
        let members = items.map(|items| items.members(self, states[0].level()));
        let windows = states.chunks(WINDOW).zip(masks.chunks_mut(WINDOW * words_per_row));
        with_bit_instructions(
            #[inline(always)]
            || {
                for (states, rows) in windows {
                    let places = self.bring_in(sparse, states, members);
                    // Clearing takes time in which the lines arrive.
                    rows.fill(0);
                    for ((state, places), row) in
                        states.iter().zip(places).zip(rows.chunks_exact_mut(words_per_row))
                    {
                        self.add_codes(sparse, state, places, members, first_bit, row);
                    }
                }
            },
        );
    }

    /// Rows of states at a level that keeps a code for each rank, all of them allowed.
    fn set_codes_of_ranks(
        &self,
        sparse: &SparseLevel,
        states: &[CatalogState],
        target: MaskTarget<'_>,
    ) {
        let MaskTarget { words_per_row, first_bit, .. } = target;
        let first_word = first_bit as usize / 32;
        let num_words = words_per_row.saturating_sub(first_word);
        let has_whole = |bits: u32| first_bit.is_multiple_of(32) && num_words >= 1 << (bits - 5);
        let rows = (sparse, states, target);
        // The sizes that codebooks mostly have.
        match sparse.code_bits() {
            8 if has_whole(8) => self.set_codes_by(rows, set_whole::<8, 8>(first_word)),
            9 if has_whole(9) => self.set_codes_by(rows, set_whole::<9, 16>(first_word)),
            10 if has_whole(10) => self.set_codes_by(rows, set_whole::<10, 32>(first_word)),
            11 if has_whole(11) => self.set_codes_by(rows, set_whole::<11, 64>(first_word)),
            12 if has_whole(12) => self.set_codes_by(rows, set_whole::<12, 128>(first_word)),
            13 if has_whole(13) => self.set_codes_by(rows, set_whole::<13, 256>(first_word)),
            _ => self.set_codes_by(rows, |codes, ranks, row| codes.set_bits(ranks, first_bit, row)),
        }
    }

    /// [`set_codes_of_ranks`](Self::set_codes_of_ranks) by a way to set the codes of a state in its
    /// row.
    ///
    /// PERF: nothing here counts bits, and a second copy of the code would be one more page to wait
    /// for.
    #[inline(never)]
    fn set_codes_by(
        &self,
        (sparse, states, target): (&SparseLevel, &[CatalogState], MaskTarget<'_>),
        set: impl Fn(PackedReader<'_>, Range<u64>, &mut [u32]),
    ) {
        let MaskTarget { masks, words_per_row, .. } = target;
        let codes = sparse.codes();
        let mut rest = masks;
        for states in states.chunks(READ_WINDOW) {
            self.read_codes_of_ranks(sparse, states);
            for states in states.chunks(CLEARED) {
                let (mut rows, after) = rest.split_at_mut(states.len() * words_per_row);
                rest = after;
                rows.fill(0);
                for state in states {
                    let row;
                    (row, rows) = rows.split_at_mut(words_per_row);
                    set(codes, self.within(state), row);
                }
            }
        }
    }

    /// Reads each state's first codes at a level that keeps a code for each rank, so that their
    /// lines arrive together.
    ///
    /// PERF: see [`READ_WINDOW`]. The last codes too where they mostly lie in another line (64
    /// codes of 11 bits a beam, cold: 30 us with it, 37 without). Whether they do is judged by two
    /// of the beams: adding up all widths took 0.3 us of 9.5.
    #[inline(always)]
    pub(super) fn read_codes_of_ranks(&self, sparse: &SparseLevel, states: &[CatalogState]) {
        const HALF_LINE_BITS: u64 = 256;
        let (codes, code_bits) = (sparse.codes(), u64::from(sparse.code_bits()));
        let is_wide = |state: Option<&CatalogState>| {
            let num_codes = state.map_or(0, |state| state.end.wrapping_sub(state.start));
            u64::from(num_codes) * code_bits > HALF_LINE_BITS
        };
        let mut read = 0;
        for state in states {
            read ^= codes.read(self.within(state).start);
        }
        if is_wide(states.first()) || is_wide(states.last()) {
            for state in states {
                read ^= codes.read(self.within(state).end.saturating_sub(1));
            }
        }
        black_box(read);
    }

    /// Asks for the memory that a window of states of one level will read; returns for each the
    /// places of its codes.
    #[inline(always)]
    pub(super) fn bring_in(
        &self,
        sparse: &SparseLevel,
        states: &[CatalogState],
        members: Option<Members<'_>>,
    ) -> [Range<u64>; WINDOW] {
        let mut places = [const { 0..0 }; WINDOW];
        for (state, places) in states.iter().zip(&mut places) {
            let within = self.within(state);
            if sparse.knows_starts() {
                sparse.prefetch_starts(&within);
            } else {
                sparse.prefetch_codes(&within);
                *places = within;
            }
            if let Some(Members { ranks, prefixes: None }) = members
                && is_asked(state)
            {
                ranks.prefetch(u64::from(state.start));
            }
        }
        if !sparse.knows_starts() {
            return places;
        }
        states.iter().for_each(|state| sparse.prefetch_listed_starts(&self.within(state)));
        for (state, places) in states.iter().zip(&mut places) {
            *places = sparse.places(&self.within(state));
            sparse.prefetch_codes(places);
            if let Some(Members { prefixes: Some(prefixes), .. }) = members {
                prefixes.prefetch(places.start);
            }
        }
        places
    }

    /// Adds to `row` the codes at `places`, those that follow `state`.
    #[inline(always)]
    pub(super) fn add_codes(
        &self,
        sparse: &SparseLevel,
        state: &CatalogState,
        places: Range<u64>,
        members: Option<Members<'_>>,
        first_bit: u32,
        row: &mut [u32],
    ) {
        let within = self.within(state);
        sparse.for_each_code_or_more(members, is_asked(state), within, places, |code, valid| {
            let bit = u64::from(first_bit) + code;
            if let Some(word) = row.get_mut((bit / 32) as usize) {
                *word |= u32::from(valid) << (bit % 32);
            }
        });
    }

    /// The mask of the codes that may follow, at levels that keep one for each prefix.
    #[inline]
    pub(super) fn kept_mask<'a>(
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
}

/// Sets codes of `BITS` bits in rows that have a bit for each of them from `first_word` on.
fn set_whole<const BITS: u32, const WORDS: usize>(
    first_word: usize,
) -> impl Fn(PackedReader<'_>, Range<u64>, &mut [u32]) {
    move |codes, ranks, row| {
        let row = row.get_mut(first_word..).and_then(<[u32]>::first_chunk_mut);
        codes.set_all_bits::<BITS, WORDS>(ranks, row.expect("rows have as many words"));
    }
}

/// Rows of states at a level that keeps a mask for each prefix.
#[inline(never)]
fn copy_masks<'a>(
    states: &[CatalogState],
    mask_of: impl Fn(u32) -> &'a [u32],
    MaskTarget { masks, words_per_row, first_bit }: MaskTarget<'_>,
) {
    let windows = states.chunks(READ_WINDOW).zip(masks.chunks_mut(READ_WINDOW * words_per_row));
    for (states, rows) in windows {
        read_masks(states.iter().map(|state| state.key), &mask_of);
        for (state, row) in states.iter().zip(rows.chunks_exact_mut(words_per_row)) {
            write_bits(mask_of(state.key), row, first_bit);
        }
    }
}

/// Reads a word of each line of the masks of some states, so that the lines arrive together; see
/// [`READ_WINDOW`].
#[inline(always)]
pub(super) fn read_masks<'a>(keys: impl Iterator<Item = u32>, mask_of: impl Fn(u32) -> &'a [u32]) {
    let mut read = 0;
    for mask in keys.map(mask_of) {
        mask.iter().step_by(LINE_WORDS).chain(mask.last()).for_each(|word| read ^= word);
    }
    black_box(read);
}

/// True if a set decides which of a state's codes lead to its items. Where a single item has the
/// prefix, that item is in, since some item is.
#[inline]
pub(super) fn is_asked(state: &CatalogState) -> bool {
    state.end.wrapping_sub(state.start) != 1 || state.level == 0
}

/// Writes the bits of `mask` over `row`, the first of them at `first_bit`, and 0 around them.
pub(super) fn write_bits(mask: &[u32], row: &mut [u32], first_bit: u32) {
    // Nothing is around it.
    if first_bit == 0 && mask.len() == row.len() {
        return row.copy_from_slice(mask);
    }
    if !first_bit.is_multiple_of(32) {
        row.fill(0);
        return add_bits(mask, row, first_bit);
    }
    let (before, row) = row.split_at_mut((first_bit as usize / 32).min(row.len()));
    let (row, after) = row.split_at_mut(mask.len().min(row.len()));
    before.fill(0);
    row.copy_from_slice(&mask[..row.len()]);
    after.fill(0);
}

/// Adds the bits of `mask` to `row`, the first of them at `first_bit`.
#[inline]
pub(super) fn add_bits(mask: &[u32], row: &mut [u32], first_bit: u32) {
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
