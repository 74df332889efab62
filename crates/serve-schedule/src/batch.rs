//! Formation of batches: the jobs at the head of a queue that start together.

use crate::config::Config;
use crate::correction::{Corrections, Margins};
use crate::cost::{CostModel, Work};
use crate::job::{Micros, Shape};
use crate::queue::Queued;

/// Predictions: cost models, their corrections, and the margin.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    pub(crate) costs: Vec<CostModel>,
    pub(crate) corrections: Corrections,
    pub(crate) margins: Margins,
}

impl Predictor {
    /// Expected time on a stream's own threads. `shape` names the model and the search, which are
    /// those of all the jobs.
    pub(crate) fn expected(&self, shape: &Shape, work: &Work, threads: u32) -> Micros {
        rounded_up(self.modelled(shape, work, threads) * self.corrections.of(shape, work))
    }

    /// Expected time on the threads of several streams.
    pub(crate) fn expected_joined(&self, shape: &Shape, work: &Work, threads: u32) -> Micros {
        let correction = self.corrections.of(shape, work) * self.corrections.of_threads(threads);
        rounded_up(self.modelled(shape, work, threads) * correction)
    }

    /// The time that is promised: the expected one and the margin.
    pub(crate) fn promised(&self, expected: Micros) -> Micros {
        rounded_up(expected.0 as f64 * self.margins.factor())
    }

    /// The model's time, without corrections.
    fn modelled(&self, shape: &Shape, work: &Work, threads: u32) -> f64 {
        let costs = self.costs.get(shape.model as usize).copied().unwrap_or_default();
        costs.of(work) / speedup(threads)
    }
}

/// Speed of several threads over one, as measured of a recommendation on two (1.87 to 1.95 times).
/// 5% of what each thread beyond the first adds is lost.
pub(crate) fn speedup(threads: u32) -> f64 {
    let threads = f64::from(threads.max(1));
    threads / (1.0 + 0.05 * (threads - 1.0))
}

fn rounded_up(micros: f64) -> Micros {
    // Products of exact numbers stay exact: what is a millionth above a whole number is rounding.
    Micros((micros - 1e-6).ceil().max(0.0) as u64)
}

/// Batch at the head of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// The number of jobs.
    pub(crate) jobs: usize,
    pub(crate) work: Work,
    pub(crate) bytes: u64,
    /// The work's expected time on a stream's own threads.
    pub(crate) expected: Micros,
    /// Start, if nobody else comes and a stream is idle: later than now where it waits for others.
    pub(crate) start: Micros,
}

/// Sizes that a batch must keep to: those of the configuration, and the memory that is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    jobs: usize,
    tokens: u64,
    rows: u64,
    quota: Micros,
    threads: u32,
}

impl Limits {
    pub(crate) fn new(config: &Config, threads: u32) -> Self {
        Self {
            jobs: config.batch_jobs.max(1) as usize,
            tokens: config.batch_tokens.into(),
            rows: config.batch_rows.into(),
            quota: config.quota,
            threads,
        }
    }
}

/// Takes the batch at the head of a queue, on a stream that is idle from `free`.
///
/// Jobs are taken in order while they are of the head's model and search and fit into tokens, rows
/// and memory; the first that does not ends the batch, since letting those behind it overtake would
/// undo what it was promised. Nor does a job join that would make the batch late for one of its
/// jobs. A batch that may still grow waits until its oldest job has waited for the quota, or until
/// it must start; one that is full, or ended by a job that does not fit, starts at once.
pub(crate) fn head<'a>(
    mut queue: impl Iterator<Item = &'a Queued>,
    free: Micros,
    memory: u64,
    limits: &Limits,
    predictor: &Predictor,
) -> Option<Batch> {
    let first = queue.next()?;
    let shape = &first.shape;
    let promised = |work: &Work| {
        let expected = predictor.expected(shape, work, limits.threads);
        (expected, predictor.promised(expected))
    };
    let mut work = Work::of(shape);
    let (mut expected, mut lasts) = promised(&work);
    let mut batch = (1, shape.bytes, u64::from(shape.widest));
    let (mut deadline, mut oldest) = (first.job.deadline, first.job.arrived);
    let mut may_grow = limits.jobs > 1;
    while batch.0 < limits.jobs {
        let Some(next) = queue.next() else { break };
        let mut with = work;
        with.add(&next.shape);
        let bytes = batch.1.saturating_add(next.shape.bytes);
        let rows = batch.2 + u64::from(next.shape.widest);
        let alike = (next.shape.model, next.shape.mode) == (shape.model, shape.mode);
        let fits = with.tokens() <= limits.tokens && rows <= limits.rows && bytes <= memory;
        let (with_expected, with_lasts) = promised(&with);
        let with_deadline = deadline.min(next.job.deadline);
        // Where the margin is gone already, what is expected must do.
        let in_time = free.plus(with_lasts) <= with_deadline
            || (free.plus(lasts) > deadline && free.plus(with_expected) <= with_deadline);
        if !(alike && fits && in_time) {
            may_grow = false;
            break;
        }
        batch = (batch.0 + 1, bytes, rows);
        (work, expected, lasts, deadline) = (with, with_expected, with_lasts, with_deadline);
        oldest = oldest.min(next.job.arrived);
    }
    may_grow &= batch.0 < limits.jobs;
    let waits_until = match may_grow {
        true => oldest.plus(limits.quota).min(deadline.since(lasts)),
        false => free,
    };
    let (jobs, bytes, _) = batch;
    Some(Batch { jobs, work, bytes, expected, start: waits_until.max(free) })
}
