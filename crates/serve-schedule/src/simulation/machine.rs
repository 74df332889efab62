//! Machine of a simulation: cores, and the time that work really takes on them.

use crate::batch::speedup;
use crate::cost::{CostModel, Work};
use crate::job::{Micros, Shape};

/// Cores and the law of their work.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Threads that can run at once. Where batches have more together, all become slower alike.
    pub cores: u32,
    /// Time of a batch.
    pub service: Service,
}

/// Time of a batch on one thread, before noise.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// Cost model, the one that predictions are made with.
    Cost(CostModel),
    /// Time by number of jobs: sizes, ascending, and microseconds. Between them on straight lines,
    /// beyond them on the last one.
    Batches(Vec<(u32, f64)>),
}

impl Service {
    /// Batches of 1, 2, 4 and 8 requests of a model with 0.6 billion parameters on an accelerator,
    /// as its vendor published them.
    #[must_use]
    pub fn accelerator() -> Self {
        Self::Batches(vec![(1, 17_600.0), (2, 27_800.0), (4, 47_700.0), (8, 93_200.0)])
    }

    /// The cost model for predictions: this one, or a line through the times of batches of such
    /// jobs.
    #[must_use]
    pub fn costs(&self, job: &Shape) -> CostModel {
        match self {
            Self::Cost(costs) => *costs,
            Self::Batches(batches) => {
                let rows = |jobs: u32| {
                    Work::of(&Shape { rows: job.rows.saturating_mul(jobs), ..Shape::default() })
                };
                let measured = batches
                    .iter()
                    .map(|&(jobs, micros)| (rows(jobs), Micros(micros.round().max(1.0) as u64)));
                CostModel::fit(&measured.collect::<Vec<_>>())
            }
        }
    }

    /// Time of a batch on `threads` threads.
    pub(crate) fn micros(&self, work: &Work, threads: u32) -> f64 {
        let alone = match self {
            Self::Cost(costs) => costs.of(work),
            Self::Batches(batches) => interpolated(batches, work.jobs() as f64),
        };
        alone / speedup(threads)
    }

    /// The share of a lone job's time that is its prompt's.
    pub(crate) fn prompt_share(&self, shape: &Shape) -> f64 {
        let Self::Cost(costs) = self else { return 0.5 };
        let prompt = costs.predict(&Shape { passes: 0, rows: 0, widest: 0, ..*shape });
        let all = costs.predict(shape);
        if all > 0.0 { prompt / all } else { 0.5 }
    }
}

fn interpolated(batches: &[(u32, f64)], jobs: f64) -> f64 {
    let mut places = batches.windows(2).filter(|pair| f64::from(pair[0].0) <= jobs);
    match (places.next_back(), batches.first()) {
        (Some(&[(size, micros), (next_size, next)]), _) => {
            let share = (jobs - f64::from(size)) / f64::from(next_size.saturating_sub(size).max(1));
            micros + share * (next - micros)
        }
        (_, Some(&(_, micros))) => micros,
        _ => 0.0,
    }
}

impl Machine {
    /// Requests a second that it can do without a pause: each by itself on one thread, or in the
    /// largest batches.
    #[must_use]
    pub fn capacity<'a>(&self, shapes: impl Iterator<Item = &'a Shape>) -> f64 {
        match &self.service {
            Service::Cost(costs) => {
                let (count, micros) = shapes.fold((0.0, 0.0), |(count, sum), shape| {
                    (count + 1.0, sum + costs.predict(shape))
                });
                if micros > 0.0 { f64::from(self.cores) * count * 1e6 / micros } else { 0.0 }
            }
            Service::Batches(batches) => {
                let rates = batches.iter().map(|&(jobs, micros)| f64::from(jobs) * 1e6 / micros);
                rates.filter(|rate| rate.is_finite()).fold(0.0, f64::max)
            }
        }
    }
}
