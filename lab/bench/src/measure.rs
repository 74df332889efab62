//! Timing of single steps, cold and hot.
//!
//! A server's steps come between passes of a model that stream its weights through the caches, so
//! what counts is a step that finds nothing of the item set there. **Cold**: the beams are freshly
//! drawn and their states are computed; then a buffer larger than the last-level cache is read
//! through, which evicts everything; then the states are read and the output is written over, since
//! a decoder has just made the ones and used the other; then the step is timed. **Hot**: the same
//! step again at once. After both, numbers are mixed ([`own_core`]). One thread; no step allocates.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::engines::Engine;
use crate::generate::GeneratedItems;
use crate::own_core;
use crate::random::Random;
use crate::report::Microseconds;

/// Memory that is read through to empty the caches.
#[derive(Debug)]
pub(crate) struct Sweep(Vec<u64>);

impl Sweep {
    pub(crate) fn new(bytes: usize) -> Self {
        // Not 0: untouched zero pages would all be one page, which stays in the cache.
        Self(vec![1; bytes / size_of::<u64>()])
    }

    /// Reads one word of every cache line.
    fn read(&self) {
        const LINE_WORDS: usize = 64 / size_of::<u64>();
        black_box(self.0.iter().step_by(LINE_WORDS).fold(0, |sum, &word| word.wrapping_add(sum)));
    }
}

/// Both times of a number of steps.
#[derive(Clone, Debug)]
pub(crate) struct StepTimes {
    pub(crate) cold: Microseconds,
    pub(crate) hot: Microseconds,
    pub(crate) samples: Vec<Sample>,
}

/// The times of one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// In nanoseconds.
    pub(crate) cold: u64,
    /// In nanoseconds.
    pub(crate) hot: u64,
    /// Duration of mixing numbers just after.
    pub(crate) mixing: Duration,
}

/// Repetitions of a timed step, and the sweep that empties the caches before.
#[derive(Clone, Copy)]
pub(crate) struct Sampling<'a> {
    pub(crate) sweep: &'a Sweep,
    pub(crate) samples: usize,
}

/// Times steps. `draw` gives the states of fresh beams, `prepare` makes the output large
/// enough for them, `touch` writes over it without asking the item set, and `step` is timed.
pub(crate) fn time_steps<S: Clone, O>(
    sampling: Sampling<'_>,
    out: &mut O,
    mut draw: impl FnMut() -> Result<Vec<S>, String>,
    prepare: impl Fn(&[S], &mut O),
    touch: impl Fn(&mut O),
    step: impl Fn(&[S], &mut O),
    mut done: impl FnMut(&O),
) -> Result<StepTimes, String> {
    let mut samples = Vec::with_capacity(sampling.samples);
    for number in 0..sampling.samples {
        let states = draw()?;
        prepare(&states, out);
        sampling.sweep.read();
        black_box(states.clone());
        touch(out);
        let [cold, hot] = [(); 2].map(|()| {
            let start = Instant::now();
            step(black_box(&states), out);
            let took = start.elapsed().as_nanos() as u64;
            black_box(&mut *out);
            took
        });
        samples.push(Sample { cold, hot, mixing: own_core::compute(number as u64) });
        done(out);
    }
    Ok(StepTimes {
        cold: Microseconds::of_nanoseconds(samples.iter().map(|sample| sample.cold).collect()),
        hot: Microseconds::of_nanoseconds(samples.iter().map(|sample| sample.hot).collect()),
        samples,
    })
}

/// Prefixes of items drawn at random.
pub(crate) struct Beams<'a> {
    count: usize,
    random: Random,
    codes: Vec<u32>,
    draw_item: DrawItem<'a>,
}

/// Writes the codes of an item.
type DrawItem<'a> = Box<dyn FnMut(&mut Random, &mut [u32]) + 'a>;

impl<'a> Beams<'a> {
    /// `count` beams over items each of which is as likely as the others.
    pub(crate) fn new(items: &'a GeneratedItems, count: usize, seed: u64) -> Self {
        let num_items = items.shape().items as u64;
        Self::drawn_by(items.shape().levels, count, seed, move |random, codes| {
            items.row(random.below(num_items) as usize, codes);
        })
    }

    /// `count` beams over items that `draw_item` draws.
    pub(crate) fn drawn_by(
        levels: usize,
        count: usize,
        seed: u64,
        draw_item: impl FnMut(&mut Random, &mut [u32]) + 'a,
    ) -> Self {
        let (random, codes) = (Random::new(seed), vec![0; levels]);
        Self { count, random, codes, draw_item: Box::new(draw_item) }
    }

    /// The states of fresh beams after `level` codes.
    ///
    /// # Errors
    /// When the engine has lost an item.
    pub(crate) fn draw<E: Engine>(
        &mut self,
        engine: &E,
        level: usize,
    ) -> Result<Vec<E::State>, String> {
        let mut state = || {
            (self.draw_item)(&mut self.random, &mut self.codes);
            state_after(engine, &self.codes[..level])
        };
        (0..self.count).map(|_| state()).collect()
    }
}

/// The state after codes that some item begins with.
///
/// # Errors
/// When the engine does not know that.
fn state_after<E: Engine>(engine: &E, codes: &[u32]) -> Result<E::State, String> {
    let end = codes.iter().try_fold(engine.start(), |state, &code| engine.advance(&state, code));
    end.ok_or_else(|| format!("{} has lost the items that begin with {codes:?}", E::NAME))
}

/// Bits set in mask rows.
pub(crate) fn count_bits(masks: &[u32]) -> u64 {
    masks.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::IndexEngine;
    use crate::generate::{Distribution, Shape};

    fn items() -> GeneratedItems {
        let shape = Shape { items: 500, levels: 3, vocab: 20 };
        GeneratedItems::new(shape, Distribution::Uniform, 4).expect("a sound shape")
    }

    fn index(items: &GeneratedItems) -> IndexEngine {
        let mut builder = IndexEngine::builder(items.shape());
        items.for_each_block(|rows| {
            rows.chunks_exact(3).for_each(|codes| IndexEngine::push(&mut builder, codes));
        });
        IndexEngine::build(builder).expect("an index")
    }

    #[test]
    fn beams_are_prefixes_of_items_and_differ_from_draw_to_draw() {
        let items = items();
        let index = index(&items);
        let mut beams = Beams::new(&items, 30, 1);
        let mut ranges = |level| -> Vec<_> {
            let states = beams.draw(&index, level).expect("items of the index");
            states.iter().map(|state| (state.ranks(), state.level())).collect()
        };
        let (first, second) = (ranges(2), ranges(2));
        assert_eq!(first.len(), 30);
        assert!(first.iter().all(|(ranks, level)| !ranks.is_empty() && *level == 2));
        assert_ne!(first, second);
        assert!(state_after(&index, &[19, 19, 19, 19]).unwrap_err().contains("[19, 19, 19, 19]"));
    }

    #[test]
    fn every_sample_is_a_sweep_and_two_steps_over_the_same_beams() {
        let sweep = Sweep::new(1 << 12);
        let mut drawn = 0;
        let mut seen: Vec<(u32, u32)> = Vec::new();
        let draw = || {
            drawn += 1;
            Ok(vec![drawn])
        };
        let prepare = |states: &[u32], out: &mut Vec<(u32, u32)>| out.push((states[0], 0));
        let touch = |out: &mut Vec<(u32, u32)>| out.push((0, 0));
        let step = |states: &[u32], out: &mut Vec<(u32, u32)>| out.push((states[0], 1));
        let mut num_done = 0;
        let times = time_steps(
            Sampling { sweep: &sweep, samples: 2 },
            &mut seen,
            draw,
            prepare,
            touch,
            step,
            |_| {
                num_done += 1;
            },
        )
        .unwrap();
        let sample = |n| [(n, 0), (0, 0), (n, 1), (n, 1)];
        assert_eq!(seen, [sample(1), sample(2)].concat());
        assert_eq!(num_done, 2);
        assert!(times.cold.min <= times.cold.p50 && times.cold.p50 <= times.cold.p99);
    }
}
