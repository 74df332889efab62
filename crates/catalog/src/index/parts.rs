//! Many beams at once, each of which has a position in several indexes.
//!
//! Such a beam has a part for each index in which some item has its prefix. In a small index few
//! have one after a code or two, and nearly none of those that do continues; those that do not are
//! found out before anything else is read.

use std::hint::black_box;

use palmette_mapped::{prefetch, with_bit_instructions};

use super::advance::has_code;
use super::members::Members;
use super::sparse::SparseLevel;
use super::step::{MaskTarget, WINDOW, add_bits, read_masks};
use super::{CatalogState, Index, ItemSet};

/// Bytes of a level's masks, or of the table of ranks, that are in a near cache as soon as they
/// have been read a few times. Those are not asked for before they are read: that takes longer than
/// reading them does.
const NEAR_BYTES: usize = 1 << 16;

/// Number of possible codes to one that is there, from which on masks are thin.
const THIN: u64 = 8;

/// Working memory of one thread, for the parts that continue.
#[derive(Clone, Debug, Default)]
pub struct PartScratch {
    /// Parts, and remains of earlier ones after them.
    parts: Vec<CatalogState>,
    /// The place of each among all.
    places: Vec<u32>,
}

impl PartScratch {
    /// Takes all parts out, and puts those together that have the code they are moved over, or may
    /// have it.
    ///
    /// PERF: whether one has it is not predictable, so each is written and only then kept or
    /// written over.
    #[inline(always)]
    fn take(
        &mut self,
        parts: &mut [CatalogState],
        codes: &[u32],
        may_have: impl Fn(&CatalogState, u32) -> bool,
    ) -> (&mut [CatalogState], &[u32]) {
        let most = parts.len();
        if self.parts.len() < most {
            self.parts.resize(most, CatalogState::DEAD);
            self.places.resize(most, 0);
        }
        let (kept, places) = (&mut self.parts[..most], &mut self.places[..most]);
        let mut len = 0;
        for (place, (part, &code)) in (0_u32..).zip(parts.iter_mut().zip(codes)) {
            let part = std::mem::replace(part, CatalogState::DEAD);
            if let (Some(kept), Some(kept_place)) = (kept.get_mut(len), places.get_mut(len)) {
                (*kept, *kept_place) = (part, place);
            }
            len += usize::from(may_have(&part, code));
        }
        (&mut kept[..len], &places[..len])
    }
}

impl Index {
    /// Moves each part, of level `level` and not dead, over its code, as
    /// [`advance`](Self::advance).
    ///
    /// # Panics
    /// When there is not a code for each part.
    pub fn advance_parts(
        &self,
        level: usize,
        parts: &mut [CatalogState],
        codes: &[u32],
        items: Option<&ItemSet>,
        scratch: &mut PartScratch,
    ) {
        assert_eq!(parts.len(), codes.len(), "a code for each part");
        // PERF: as in `advance`.
        with_bit_instructions(
            #[inline(always)]
            || match self.sparse_level(level) {
                Some(sparse) => {
                    self.advance_sparse_parts(sparse, level, parts, codes, items, scratch)
                }
                None => self.advance_dense_parts(level, parts, codes, items),
            },
        );
    }

    /// Asks for what [`advance_parts`](Self::advance_parts) reads first of a part, so that it
    /// arrives while parts in other indexes are moved. Nothing where that is in a near cache
    /// anyway.
    ///
    /// PERF: in `palmette-catalog-live`'s bench `segments`, on an AMD EPYC (Zen 5), the third code
    /// over five segments took 16.6 us without this and takes 15.5.
    pub fn prefetch_parts(&self, level: usize, parts: &[CatalogState], codes: &[u32]) {
        if self.has_near_masks(level) {
            return;
        }
        if self.has_thin_masks(level) {
            let mask_of = self.dense.mask_reader(level);
            for (part, &code) in parts.iter().zip(codes) {
                prefetch(mask_of(part.key), code as usize / 32);
            }
        } else if level >= self.dense.num_masked()
            && let Some(sparse) = self.sparse_level(level)
        {
            parts.iter().for_each(|part| sparse.prefetch_codes_or_starts(&self.within(part)));
        }
    }

    #[inline(always)]
    fn advance_dense_parts(
        &self,
        level: usize,
        parts: &mut [CatalogState],
        codes: &[u32],
        items: Option<&ItemSet>,
    ) {
        if level >= self.dense.num_levels() {
            return parts.fill(CatalogState::DEAD);
        }
        let size = self.dense.size(level);
        let key_of =
            |part: &CatalogState, code| u64::from(part.key) * u64::from(size) + u64::from(code);
        // Of a level with few prefixes few lines of the table are read.
        let lines = 64_u64.saturating_mul(self.dense.num_keys(level + 1));
        if lines.min(self.dense.table_bytes() as u64) > NEAR_BYTES as u64 {
            for (part, &code) in parts.iter().zip(codes) {
                self.dense.prefetch_ranks(level + 1, key_of(part, code));
            }
        }
        let ranks_of = self.dense.ranks_reader(level + 1);
        let mask_of = items.map(|items| items.mask_reader(level));
        for (part, &code) in parts.iter_mut().zip(codes) {
            let is_in = code < size
                && mask_of.as_ref().is_none_or(|mask_of| has_code(mask_of(part.key), code));
            let key = key_of(part, code);
            let ranks = if is_in { ranks_of(key) } else { 0..0 };
            *part = self.state_or_dead(ranks, key, level + 1);
        }
        self.prefetch_masks_of_parts(level + 1, parts, items);
    }

    /// Asks for what [`add_masks_of_parts`](Self::add_masks_of_parts) reads first of a part, so
    /// that it arrives while parts in other indexes are moved.
    #[inline(always)]
    fn prefetch_masks_of_parts(
        &self,
        level: usize,
        parts: &[CatalogState],
        items: Option<&ItemSet>,
    ) {
        if self.has_near_masks(level) {
            return;
        }
        // A row lies in two lines at most, or is far more to read than to wait for.
        let ask = |mask: &[u32]| {
            prefetch(mask, 0);
            prefetch(mask, mask.len().saturating_sub(1));
        };
        match (items, self.sparse_level(level)) {
            (Some(items), _) if level < self.dense.num_masked() => {
                let mask_of = items.mask_reader(level);
                parts.iter().for_each(|part| ask(mask_of(part.key)));
            }
            (None, _) if level < self.dense.num_masked() => {
                let mask_of = self.dense.mask_reader(level);
                parts.iter().for_each(|part| ask(mask_of(part.key)));
            }
            // PERF: of dead parts too, since which are is not predictable.
            (_, Some(sparse)) => {
                let ask = |part| sparse.prefetch_codes_or_starts(&self.within(part));
                parts.iter().for_each(ask);
            }
            (_, None) => {}
        }
    }

    /// PERF: what is far is read of all parts before any is looked at, see
    /// [`READ_WINDOW`](super::step::READ_WINDOW). In `palmette-catalog-live`'s bench `segments`, on
    /// an AMD EPYC (Zen 4), the third code took 4.6 us more for a segment of 266,000 items when
    /// masks were asked for, and takes 3.1 more.
    #[inline(always)]
    fn advance_sparse_parts(
        &self,
        sparse: &SparseLevel,
        level: usize,
        parts: &mut [CatalogState],
        codes: &[u32],
        items: Option<&ItemSet>,
        scratch: &mut PartScratch,
    ) {
        let (kept, places) = match items {
            Some(items) if self.has_near_masks(level) => {
                let mask_of = items.mask_reader(level);
                scratch.take(parts, codes, |part, code| has_code(mask_of(part.key), code))
            }
            _ if self.has_near_masks(level) => {
                let mask_of = self.dense.mask_reader(level);
                scratch.take(parts, codes, |part, code| has_code(mask_of(part.key), code))
            }
            // What is refused without a set is refused under it; the masks of a set lie in many
            // pieces of memory.
            _ if self.has_thin_masks(level) => {
                let mask_of = self.dense.mask_reader(level);
                let words = parts.iter().zip(codes);
                let words = words.map(|(part, &code)| mask_of(part.key).get(code as usize / 32));
                black_box(words.flatten().fold(0, |read, word| read ^ word));
                scratch.take(parts, codes, |part, code| has_code(mask_of(part.key), code))
            }
            _ if level >= self.dense.num_masked() && !sparse.knows_starts() => {
                let stored = sparse.codes();
                let starts = parts.iter().map(|part| self.within(part).start);
                black_box(starts.fold(0, |read, start| read ^ stored.read(start)));
                let may_hold = stored.may_hold();
                scratch.take(parts, codes, |part, code| may_hold(self.within(part), code.into()))
            }
            _ => return self.advance_runs(parts, items, |at, _| codes[at]),
        };
        self.advance_runs(kept, items, |at, _| codes[places[at] as usize]);
        for (part, &place) in kept.iter().zip(places) {
            parts[place as usize] = *part;
        }
    }

    /// Adds to row `rows[i]` of the target the codes that may follow `parts[i]`, of level `level`
    /// and not dead; otherwise as [`fill_masks`](Self::fill_masks).
    ///
    /// # Panics
    /// When there is no such row, or not one for each part.
    pub fn add_masks_of_parts(
        &self,
        level: usize,
        parts: &[CatalogState],
        rows: &[u32],
        items: Option<&ItemSet>,
        target: MaskTarget<'_>,
    ) {
        assert_eq!(parts.len(), rows.len(), "a row for each part");
        if target.words_per_row == 0 {
            return;
        }
        with_bit_instructions(
            #[inline(always)]
            || match (self.sparse_level(level), items) {
                (_, None) if level < self.dense.num_masked() => {
                    let is_near = self.has_near_masks(level);
                    add_masks(parts, rows, self.dense.mask_reader(level), is_near, target);
                }
                (_, Some(items)) if level < self.dense.num_masked() => {
                    let is_near = self.has_near_masks(level);
                    add_masks(parts, rows, items.mask_reader(level), is_near, target);
                }
                (Some(sparse), _) => {
                    let members = items.map(|items| items.members(self, level));
                    self.add_codes_of_parts(sparse, parts, rows, members, target);
                }
                (None, _) => {}
            },
        );
    }

    #[inline(always)]
    fn add_codes_of_parts(
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

    /// True if the masks of a sparse level have few of its codes.
    fn has_thin_masks(&self, level: usize) -> bool {
        let has_few = |sparse: &SparseLevel| {
            let num_bits = 32 * self.dense.mask_words(level) as u64;
            sparse.num_prefixes() < num_bits / THIN
        };
        level < self.dense.num_masked() && self.sparse_level(level).is_some_and(has_few)
    }
}

/// Adds the mask of each part to its row.
#[inline(always)]
fn add_masks<'a>(
    parts: &[CatalogState],
    rows: &[u32],
    mask_of: impl Fn(u32) -> &'a [u32],
    is_near: bool,
    MaskTarget { masks, words_per_row, first_bit }: MaskTarget<'_>,
) {
    if !is_near {
        read_masks(parts.iter().map(|part| part.key), &mask_of);
    }
    for (part, &row) in parts.iter().zip(rows) {
        let start = row as usize * words_per_row;
        add_bits(mask_of(part.key), &mut masks[start..start + words_per_row], first_bit);
    }
}
