//! The best extensions of a step, chosen where the logits are.
//!
//! The host sends scores and the level's masks, kernels choose, and the best extensions come back:
//! some bytes a beam, where the logits of 256 rows of 8,192 codes are 8 MB.
//!
//! Layout of the region: what is sent (the search, scores, masks, a histogram and counts of zero),
//! then what kernels write. Normalisers are the device's, and not to the bit those that the
//! host would make of the same logits.

use std::ops::Range;

use palmette_core::TokenId;
use palmette_decode::{Extension, Step};

use crate::arguments::{Arguments, Extension as Chosen, Search, Select};
use crate::{Address, DeviceError, Driver, Event, Kernel, Pinned, Region, Stream, launch};

/// Bins of scores: see `kernels/select.cu`.
pub(crate) const BINS: usize = 4096;
/// Candidates that are sorted at once, and the widest step.
pub(crate) const SORTED: usize = 4096;
/// Words of a search's state, and those of its kernels' counts.
pub(crate) const STATE: usize = 4;
pub(crate) const FOUND: usize = 2;
pub(crate) const BAD: usize = 3;

/// Places within the region, for steps of this many rows, columns and extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    search: usize,
    scores: usize,
    masks: usize,
    histogram: usize,
    state: usize,
    /// End of what is sent.
    sent: usize,
    normalisers: usize,
    best: usize,
    candidates: usize,
    bytes: usize,
}

impl Places {
    pub(crate) fn new(rows: usize, columns: usize, width: usize) -> Self {
        let mut end = 0;
        let mut take = |bytes: usize| {
            let at = end;
            end = (end + bytes).next_multiple_of(64);
            at
        };
        Self {
            search: take(Search::BYTES),
            scores: take(rows * 4),
            masks: take(rows * columns.div_ceil(32) * 4),
            histogram: take(BINS * 4),
            state: take(STATE * 4),
            sent: take(0),
            normalisers: take(rows * 4),
            best: take(width * Chosen::BYTES),
            candidates: take(SORTED * 8),
            bytes: take(0),
        }
    }

    /// Bytes of the region.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// True where kernels choose a step's extensions: without gains, of no more extensions than are
/// sorted at once.
pub(crate) fn is_computed(step: &Step<'_>) -> bool {
    !step.has_gains() && (1..=SORTED).contains(&step.width) && step.rows() > 0
}

/// Host memory of a reading's steps of selection.
#[derive(Debug)]
pub(crate) struct Selection {
    sent: Pinned,
    state: Pinned,
    best: Pinned,
}

/// Logits of a step, and the end of the pass that computes them.
#[derive(Clone, Copy)]
pub(crate) struct Computed<'a> {
    /// `[rows, columns]`
    pub(crate) logits: Address,
    pub(crate) columns: &'a Range<usize>,
    /// End of the pass.
    pub(crate) end: &'a Event,
}

impl Selection {
    /// Memory for steps up to these places and this width.
    pub(crate) fn new(
        driver: &dyn Driver,
        places: &Places,
        width: usize,
    ) -> Result<Self, DeviceError> {
        Ok(Self {
            sent: driver.pinned(places.sent)?,
            state: driver.pinned(STATE * 4)?,
            best: driver.pinned(width * Chosen::BYTES)?,
        })
    }

    /// Writes the best extensions of a step over `best`; false where a row has no distribution,
    /// which is for the host to name, or the step has more rows and codes than the region has
    /// [`Places`] for. Kernels that take any number of blocks take `blocks`.
    ///
    /// # Errors
    /// When the device fails.
    pub(crate) fn select(
        &mut self,
        (driver, blocks, region): (&dyn Driver, u32, &Region),
        computed: Computed<'_>,
        step: &Step<'_>,
        best: &mut Vec<Extension>,
    ) -> Result<bool, DeviceError> {
        let (columns, masks) = (computed.columns, step.masks);
        // The window's codes: those of a level, where logits may be the whole vocabulary's.
        let (rows, codes) = (step.rows(), masks.columns().len() * 32);
        let first = masks.first_token() as usize;
        let places = Places::new(rows, codes, step.width);
        if places.bytes > region.bytes() || places.sent > self.sent.len() {
            return Ok(false);
        }
        let at = |place| region.address_at(place);
        let bytes = &mut self.sent.bytes()?[..places.sent];
        bytes.fill(0);
        let search = Search {
            logits: computed.logits,
            scores: at(places.scores),
            positions: Address::NULL,
            levels: Address::NULL,
            filters: Address::NULL,
            live: Address::NULL,
            masks: at(places.masks),
            normalisers: at(places.normalisers),
            histogram: at(places.histogram),
            state: at(places.state),
            candidates: at(places.candidates),
            best: at(places.best),
            next: Address::NULL,
            next_scores: Address::NULL,
            rows: rows as i32,
            segments: 0,
            codes: codes as i32,
            columns: columns.len() as i32,
            first: first as i32 - columns.start as i32,
            width: step.width as i32,
            capacity: SORTED as i32,
            normalised: 0,
            floor: step.floor,
        };
        search.write(&mut bytes[places.search..][..Search::BYTES]);
        let scores = bytes[places.scores..].chunks_exact_mut(4).zip(step.pass.scores);
        scores.for_each(|(to, score)| to.copy_from_slice(&score.to_le_bytes()));
        let sent_words = bytes[places.masks..places.histogram].chunks_exact_mut(4);
        for (at, (to, word)) in sent_words.zip(masks.words()).enumerate() {
            // A token outside of the columns is for the host to name.
            if word & !word_within(first + at % (codes / 32) * 32, columns) != 0 {
                return Ok(false);
            }
            to.copy_from_slice(&word.to_le_bytes());
        }
        driver.write(Stream::Upload, region, 0, &mut self.sent, places.sent)?;
        driver.wait(Stream::Selection, &driver.record(Stream::Upload)?)?;
        driver.wait(Stream::Selection, computed.end)?;
        let arguments = Select { searches: at(places.search) };
        for (kernel, blocks) in [
            (Kernel::RowScores, blocks),
            (Kernel::PickBin, 1),
            (Kernel::KeepCandidates, blocks),
            (Kernel::SortBest, 1),
        ] {
            launch(driver, Stream::Selection, kernel, [blocks, 1, 1], &arguments)?;
        }
        driver.wait(Stream::Download, &driver.record(Stream::Selection)?)?;
        driver.read(Stream::Download, region, places.state, &mut self.state, STATE * 4)?;
        let chosen = step.width * Chosen::BYTES;
        driver.read(Stream::Download, region, places.best, &mut self.best, chosen)?;
        // Nothing that is sent later is written over what is still read.
        driver.finish(&driver.record(Stream::Download)?)?;
        let state = self.state.bytes()?;
        let word = |at: usize| u32_at(state, at * 4);
        if word(BAD) > 0 {
            return Ok(false);
        }
        let found = word(FOUND) as usize;
        best.clear();
        let chosen = self.best.bytes()?.chunks_exact(Chosen::BYTES);
        best.extend(chosen.take(found).map(|chosen| Extension {
            score: f32::from_bits(u32_at(chosen, 0)),
            bound: 0.0,
            parent: u32_at(chosen, 4),
            token: TokenId(first as u32 + u32_at(chosen, 8)),
        }));
        Ok(true)
    }
}

/// Bits of the 32 tokens from `first` on that are among the columns.
fn word_within(first: usize, columns: &Range<usize>) -> u32 {
    let below = |end: usize| match end.saturating_sub(first) {
        0 => 0,
        bits @ 1..32 => (1 << bits) - 1,
        _ => u32::MAX,
    };
    below(columns.end) & !below(columns.start)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::word_within;

    #[test]
    fn words_are_cut_at_the_columns() {
        for (first, columns, want) in [
            (64, 64..96, u32::MAX),
            (64, 0..200, u32::MAX),
            (64, 70..80, 0xffc0),
            (64, 0..65, 1),
            (64, 95..300, 1 << 31),
            (64, 96..300, 0),
            (64, 0..64, 0),
        ] {
            assert_eq!(word_within(first, &columns), want, "{first} {columns:?}");
        }
    }
}
