//! The whole measurement: build, check, time, and the same for the other engines.

use crate::engines::{Engine, IndexEngine};
use crate::generate::GeneratedItems;
use crate::machine::{Machine, available_memory, last_level_cache_bytes, peak_resident_bytes};
use crate::measure::Sweep;
use crate::report::Report;
use crate::steps::{Steps, cold, cold_on_own_core, hot};
use crate::timed_build::build;

/// Measurement of a catalog: its items, its index, and the steps to time.
#[derive(Clone, Debug)]
pub struct CatalogBench {
    /// The items.
    pub items: GeneratedItems,
    /// Dense levels of the index; without it, as the index chooses.
    pub dense: Option<usize>,
    /// Beams of a step.
    pub beams: usize,
    /// Steps timed for each figure of the index.
    pub samples: usize,
    /// Steps timed for each figure of another engine; `None` leaves them out.
    pub peer_samples: Option<usize>,
    /// Share of the ranks that the filter keeps.
    pub filter_share: f64,
    /// Seed of the beams and the filter.
    pub seed: u64,
    /// Bytes read through before each cold step; without it, twice the last-level cache, or
    /// 64 MiB where its size is not known.
    pub sweep_bytes: Option<usize>,
    /// Threads of the build; without it, one a processor.
    pub threads: Option<usize>,
}

/// A measurement that could not be made. The message names the value and the rule, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BenchError(String);

impl BenchError {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

/// Hears how far a measurement has come.
pub trait Progress {
    /// A stage of `steps` steps begins.
    fn begin(&mut self, stage: &str, steps: u64);
    /// Some of its steps are done.
    fn advance(&mut self, steps: u64);
}

impl CatalogBench {
    /// Builds and measures.
    ///
    /// # Errors
    /// For nothing to measure, a filter share that is none, more memory than there is, and
    /// an engine whose masks are not what it promises.
    pub fn run(&self, progress: &mut dyn Progress) -> Result<Report, BenchError> {
        self.check().and_then(|()| self.measure(progress)).map_err(BenchError)
    }

    fn check(&self) -> Result<(), String> {
        let counts = [
            ("beams", Some(self.beams)),
            ("samples", Some(self.samples)),
            ("peer samples", self.peer_samples),
            ("threads", self.threads),
        ];
        for (what, count) in counts {
            if count == Some(0) {
                return Err(format!("0 {what}: there is nothing to measure; at least 1 is needed"));
            }
        }
        if !(self.filter_share > 0.0 && self.filter_share <= 1.0) {
            let share = self.filter_share;
            return Err(format!("a filter share of {share}: it is above 0 and at most 1"));
        }
        let (shape, levels) = (self.items.shape(), self.items.shape().levels);
        if let Some(dense) = self.dense.filter(|&dense| dense > levels) {
            return Err(format!("{dense} dense levels of {levels} levels: at most all are dense"));
        }
        let masks = 4 * (self.beams as u64).saturating_mul(shape.mask_words() as u64);
        let (sweep, index) = (self.sweep_bytes() as u64, IndexEngine::peak_bytes(shape));
        let needed = index.saturating_add(masks).saturating_add(sweep);
        match available_memory() {
            Some(available) if needed > available => Err(format!(
                "this needs about {} of memory ({} for the build, {} for mask rows, {} to sweep \
                 the caches) and {} are available; take fewer items, codes or beams",
                gigabytes(needed),
                gigabytes(index),
                gigabytes(masks),
                gigabytes(sweep),
                gigabytes(available)
            )),
            _ => Ok(()),
        }
    }

    fn sweep_bytes(&self) -> usize {
        const UNKNOWN_CACHE: usize = 32 << 20;
        let twice_the_cache = || 2 * last_level_cache_bytes().unwrap_or(UNKNOWN_CACHE);
        self.sweep_bytes.unwrap_or_else(twice_the_cache)
    }

    fn measure(&self, progress: &mut dyn Progress) -> Result<Report, String> {
        let shape = *self.items.shape();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads.unwrap_or(0)).build();
        let pool = pool.map_err(|error| format!("no threads to build with: {error}"))?;
        let builder = IndexEngine::builder_with(&shape, self.dense);
        let built = build::<IndexEngine>(&self.items, builder, Some(&pool), progress)?;
        let peak_bytes = peak_resident_bytes();

        let index = &built.engine;
        let sweep = Sweep::new(self.sweep_bytes());
        let mut steps = Steps { bench: self, sweep: &sweep, samples: self.samples, progress };
        let (times, branching) = steps.masks(index)?;
        let line_reads_us = steps.line_reads(index.bytes())?;
        let kept_rows_us = steps.kept_rows(index)?;
        let successors = steps.successors(index)?;
        let (filtered_step_us, filter_set) = steps.filtered(index)?.unzip();
        let peers = match self.peer_samples {
            Some(samples) => Some(Steps { samples, ..steps }.peers(index)?),
            None => None,
        };
        Ok(Report {
            items: shape.items,
            distinct_ids: index.num_ids(),
            levels: shape.levels,
            vocab: shape.vocab,
            dense: index.num_dense_levels(),
            beams: self.beams,
            distribution: self.items.distribution().to_string(),
            seed: self.seed,
            samples: self.samples,
            filter_share: self.filter_share,
            bytes_per_item: index.bytes() as f64 / shape.items as f64,
            index_bytes: index.bytes(),
            build_cpu_s: built.cpu_s,
            build_wall_s: built.wall_s,
            peak_bytes,
            step_us: cold(&times),
            step_own_core_us: cold_on_own_core(&times),
            line_reads_us,
            step_hot_us: hot(&times),
            kept_rows_us,
            successors_us: cold(&successors),
            successors_own_core_us: cold_on_own_core(&successors),
            filtered_step_us,
            filter_set,
            branching,
            sweep_bytes: self.sweep_bytes(),
            machine: Machine::here(),
            peers,
        })
    }
}

/// A byte count for messages about memory.
pub(crate) fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}
