//! The steps of one engine at every level.

use std::hint::black_box;

use palmette_catalog::index::MaskRows;
use palmette_mapped::Array;

use crate::bench::{CatalogBench, Progress};
use crate::engines::{Engine, IndexEngine};
use crate::measure::{Beams, Sampling, StepTimes, Sweep, count_bits, time_steps};
use crate::own_core;
use crate::random::Random;
use crate::report::{ByLevel, FilterSet, Microseconds, OwnCore};

/// Steps of an engine at every level.
pub(crate) struct Steps<'a> {
    pub(crate) bench: &'a CatalogBench,
    pub(crate) sweep: &'a Sweep,
    /// Steps timed for each figure.
    pub(crate) samples: usize,
    pub(crate) progress: &'a mut dyn Progress,
}

impl<'a> Steps<'a> {
    pub(crate) fn levels(&self) -> std::ops::Range<usize> {
        0..self.bench.items.shape().levels
    }

    fn sampling(&self) -> Sampling<'a> {
        Sampling { sweep: self.sweep, samples: self.samples }
    }

    fn begin(&mut self, stage: &str) {
        self.progress.begin(stage, (self.levels().len() * self.samples) as u64);
    }

    /// Beams that are the same for every call.
    pub(crate) fn beams(&self) -> Beams<'a> {
        Beams::new(&self.bench.items, self.bench.beams, self.bench.seed)
    }

    /// Words of a row, and rows for all beams.
    pub(crate) fn mask_rows(&self) -> (usize, Vec<u32>) {
        let words_per_row = self.bench.items.shape().mask_words();
        (words_per_row, vec![0; self.bench.beams * words_per_row])
    }

    /// Mask rows at every level, and how many codes were allowed a beam.
    pub(crate) fn masks<E: Engine>(
        &mut self,
        engine: &E,
    ) -> Result<(Vec<StepTimes>, ByLevel<f64>), String> {
        self.begin(&format!("{}: masks", E::NAME));
        let mut beams = self.beams();
        let (words_per_row, mut masks) = self.mask_rows();
        let (mut times, mut branching) = (Vec::new(), Vec::new());
        for level in self.levels() {
            let mut allowed = 0;
            times.push(time_steps(
                self.sampling(),
                &mut masks,
                || beams.draw(engine, level),
                |_, _| (),
                |masks| masks.fill(u32::MAX),
                |states, masks| engine.fill_masks(states, words_per_row, masks),
                |masks| {
                    allowed += count_bits(masks);
                    self.progress.advance(1);
                },
            )?);
            branching.push(allowed as f64 / (self.samples * self.bench.beams) as f64);
        }
        Ok((times, ByLevel(branching)))
    }

    /// A word of a line for each beam, at random from `bytes`, cold. The memory is had as an index
    /// has its own, in large pages where there are any.
    pub(crate) fn line_reads(&mut self, bytes: usize) -> Result<Microseconds, String> {
        self.progress.begin("a line for each beam", self.samples as u64);
        let words = Array::from(vec![1_u64; bytes.div_ceil(size_of::<u64>()).max(1)]);
        let words = words.as_slice();
        let mut random = Random::new(self.bench.seed);
        let mut place = || random.below(words.len() as u64) as usize;
        let times = time_steps(
            self.sampling(),
            &mut 0,
            || Ok((0..self.bench.beams).map(|_| place()).collect()),
            |_, _| (),
            |_| (),
            |places, read| *read = places.iter().fold(0, |read, &place| read ^ words[place]),
            |_| self.progress.advance(1),
        )?;
        Ok(times.cold)
    }

    /// Mask rows that clear what they set last, at every level, cold. They are read before the
    /// step, as a decoder has read them.
    pub(crate) fn kept_rows(
        &mut self,
        index: &IndexEngine,
    ) -> Result<ByLevel<Microseconds>, String> {
        self.begin("index: mask rows that clear what they set");
        let mut beams = self.beams();
        let mut rows = MaskRows::new(self.mask_rows().0);
        let mut times = Vec::new();
        for level in self.levels() {
            times.push(time_steps(
                self.sampling(),
                &mut rows,
                || beams.draw(index, level),
                |_, _| (),
                |rows| _ = black_box(count_bits(rows.masks())),
                |states, rows| index.fill_mask_rows(states, rows),
                |_| self.progress.advance(1),
            )?);
        }
        Ok(cold(&times))
    }

    /// Codes and next states at every level.
    pub(crate) fn successors<E: Engine>(&mut self, engine: &E) -> Result<Vec<StepTimes>, String> {
        self.begin(&format!("{}: successors", E::NAME));
        let mut beams = self.beams();
        let words_per_row = self.bench.items.shape().mask_words();
        let mut found: Vec<(u32, u32, E::State)> = Vec::new();
        let mut times = Vec::new();
        for level in self.levels() {
            times.push(time_steps(
                self.sampling(),
                &mut found,
                || beams.draw(engine, level),
                |states, found| make_room(engine, states, words_per_row, found),
                |found| found.iter_mut().for_each(|entry| entry.0 = u32::MAX),
                |states, found| {
                    found.clear();
                    engine.successors(states, |beam, code, next| found.push((beam, code, next)));
                },
                |_| self.progress.advance(1),
            )?);
        }
        Ok(times)
    }

    /// Mask rows at every level under a filter, cold; and what its set takes.
    pub(crate) fn filtered(
        &mut self,
        index: &IndexEngine,
    ) -> Result<Option<(ByLevel<Microseconds>, FilterSet)>, String> {
        self.begin("index: masks under a filter");
        let filter = index.random_filter(self.bench.filter_share, self.bench.seed);
        let Some(filter) = filter else { return Ok(None) };
        let mut beams = filter.beams(index, self.bench.beams, self.bench.seed);
        let (words_per_row, mut masks) = self.mask_rows();
        let mut times = Vec::new();
        for level in self.levels() {
            times.push(time_steps(
                self.sampling(),
                &mut masks,
                || beams.draw(index, level),
                |_, _| (),
                |masks| masks.fill(u32::MAX),
                |states, masks| index.fill_filtered_masks(states, &filter, words_per_row, masks),
                |_| self.progress.advance(1),
            )?);
        }
        let set = FilterSet { bytes: filter.bytes(), made_ms: filter.set_ms };
        Ok(Some((cold(&times), set)))
    }
}

/// Makes `found` as large as what a step will find and writes all of it, so that the step neither
/// allocates nor meets a page for the first time. Masks say how large: they leave the code that is
/// about to be timed as unused as it was.
fn make_room<E: Engine>(
    engine: &E,
    states: &[E::State],
    words_per_row: usize,
    found: &mut Vec<(u32, u32, E::State)>,
) {
    let mut masks = vec![0; states.len() * words_per_row];
    engine.fill_masks(states, words_per_row, &mut masks);
    found.clear();
    found.resize(count_bits(&masks) as usize, (0, 0, engine.start()));
}

pub(crate) fn cold(times: &[StepTimes]) -> ByLevel<Microseconds> {
    ByLevel(times.iter().map(|times| times.cold).collect())
}

pub(crate) fn hot(times: &[StepTimes]) -> ByLevel<Microseconds> {
    ByLevel(times.iter().map(|times| times.hot).collect())
}

/// The cold steps that had their core for themselves, as steps of all levels tell.
pub(crate) fn cold_on_own_core(times: &[StepTimes]) -> ByLevel<OwnCore> {
    let mixing = times.iter().flat_map(|times| &times.samples).map(|sample| sample.mixing);
    let most = own_core::most_on_own_core(mixing);
    let of_level = |times: &StepTimes| {
        let own = times.samples.iter().filter(|sample| sample.mixing <= most);
        let cold: Vec<_> = own.map(|sample| sample.cold).collect();
        let steps = cold.len();
        OwnCore { steps, times: (steps > 0).then(|| Microseconds::of_nanoseconds(cold)) }
    };
    ByLevel(times.iter().map(of_level).collect())
}
