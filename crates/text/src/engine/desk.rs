//! The desk between callers, the thread that runs the model, and the threads that make masks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::searching::BeamAsk;
use super::spent::Spent;
use super::updates::{EngineError, EngineStatistics, Sink, SubmitError, Update, tell};
use crate::sequence::TextSequence;

/// A text, and who hears of it.
pub(super) struct Writing {
    pub(super) text: TextSequence,
    pub(super) sink: Sink,
    /// True when nobody wants it any more.
    pub(super) is_dropped: Arc<AtomicBool>,
    pub(super) spent: Spent,
}

impl Writing {
    pub(super) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Relaxed)
    }

    /// Tells the failure that ends the text.
    pub(super) fn fail(&mut self, error: EngineError) {
        if !self.is_dropped() {
            (self.sink)(Update::Failed(error));
        }
    }

    /// Makes the mask of the next choice. True where the text has ended instead.
    fn settle(&mut self) -> Result<bool, EngineError> {
        let Self { text, sink, is_dropped, spent } = self;
        let began = Instant::now();
        let so_far = || Spent { masks: spent.masks + began.elapsed(), ..*spent };
        let settled = catch_unwind(AssertUnwindSafe(|| {
            let ended = text.settle(&mut |event| tell(sink, is_dropped, event, so_far));
            ended.map(|ended| ended.is_some())
        }));
        *spent = so_far();
        Ok(settled.map_err(|_| EngineError::Panicked)??)
    }
}

/// A request that waits for a place.
pub(super) struct Waiting {
    pub(super) writing: Box<Writing>,
    pub(super) since: Instant,
}

/// A text that a thread is to make the mask of, by the number of its row.
pub(super) struct Job {
    pub(super) row: u64,
    pub(super) writing: Box<Writing>,
}

/// A text with its mask.
pub(super) struct Settled {
    pub(super) row: u64,
    pub(super) writing: Box<Writing>,
    /// True where it has ended.
    pub(super) outcome: Result<bool, EngineError>,
}

#[derive(Default)]
struct Papers {
    waiting: VecDeque<Waiting>,
    jobs: VecDeque<Job>,
    settled: Vec<Settled>,
    /// Messages of the search that is made.
    beams: Vec<BeamAsk>,
    statistics: EngineStatistics,
    is_closed: bool,
    is_stopping: bool,
}

pub(super) struct Desk {
    papers: Mutex<Papers>,
    /// Signal that something came for the thread that runs the model.
    for_runner: Condvar,
    /// A job came, or the end.
    for_masks: Condvar,
    max_waiting: usize,
}

/// Message to the thread that runs the model.
pub(super) struct Arrivals {
    pub(super) waiting: Vec<Waiting>,
    pub(super) settled: Vec<Settled>,
    pub(super) beams: Vec<BeamAsk>,
    /// True where all texts are to end.
    pub(super) is_stopping: bool,
}

impl Desk {
    pub(super) fn new(max_waiting: usize, free_pages: usize) -> Self {
        let statistics = EngineStatistics { free_pages, ..Default::default() };
        Self {
            papers: Mutex::new(Papers { statistics, ..Papers::default() }),
            for_runner: Condvar::new(),
            for_masks: Condvar::new(),
            max_waiting,
        }
    }

    fn papers(&self) -> MutexGuard<'_, Papers> {
        // Nothing here panics halfway.
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn submit(&self, request: Waiting) -> Result<(), SubmitError> {
        let mut papers = self.papers();
        if papers.is_closed {
            return Err(SubmitError::Closed);
        }
        // Those that nobody waits for any more hold no place.
        papers.waiting.retain(|waiting| !waiting.writing.is_dropped());
        let waiting = papers.waiting.len();
        if waiting >= self.max_waiting.max(1) {
            papers.statistics.refused += 1;
            return Err(SubmitError::Full { waiting });
        }
        papers.waiting.push_back(request);
        self.for_runner.notify_one();
        Ok(())
    }

    pub(super) fn close(&self) {
        self.papers().is_closed = true;
    }

    pub(super) fn stop(&self) {
        let mut papers = self.papers();
        (papers.is_closed, papers.is_stopping) = (true, true);
        // Who waits for an answer to one hears that none comes.
        papers.beams.clear();
        self.for_runner.notify_all();
        self.for_masks.notify_all();
    }

    pub(super) fn statistics(&self) -> EngineStatistics {
        let papers = self.papers();
        EngineStatistics { waiting: papers.waiting.len(), ..papers.statistics }
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut EngineStatistics)) {
        change(&mut self.papers().statistics);
    }

    /// Hands a text over to be settled.
    pub(super) fn hand_over(&self, job: Job) {
        self.papers().jobs.push_back(job);
        self.for_masks.notify_one();
    }

    /// Hands over a message of the search that is made, unless the end has come.
    pub(super) fn ask(&self, ask: BeamAsk) {
        let mut papers = self.papers();
        if !papers.is_stopping {
            papers.beams.push(ask);
            self.for_runner.notify_one();
        }
    }

    /// Hands a text back that has broken off.
    pub(super) fn hand_back(&self, settled: Settled) {
        self.papers().settled.push(settled);
    }

    /// Takes what came, requests for at most so many places. Waits for something where `is_idle`;
    /// else no longer than `grace`, and only for the `away` texts that are being settled.
    pub(super) fn take(
        &self,
        places: usize,
        is_idle: bool,
        away: usize,
        grace: Duration,
    ) -> Arrivals {
        let mut papers = self.papers();
        if is_idle {
            while papers.settled.is_empty()
                && papers.beams.is_empty()
                && !papers.is_stopping
                && (places == 0 || papers.waiting.is_empty())
            {
                papers = self.for_runner.wait(papers).unwrap_or_else(PoisonError::into_inner);
            }
        } else if !grace.is_zero() {
            let until = Instant::now() + grace;
            while papers.settled.len() < away && !papers.is_stopping {
                let Some(left) = until.checked_duration_since(Instant::now()) else { break };
                let waited = self.for_runner.wait_timeout(papers, left);
                papers = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        let Papers { waiting, settled, beams, is_stopping, .. } = &mut *papers;
        let places = places.min(waiting.len());
        Arrivals {
            waiting: waiting.drain(..places).collect(),
            settled: std::mem::take(settled),
            beams: std::mem::take(beams),
            is_stopping: *is_stopping,
        }
    }

    /// Work of a thread that makes masks: settles texts until the end.
    pub(super) fn settle_texts(&self) {
        loop {
            let mut papers = self.papers();
            let mut job = loop {
                if papers.is_stopping {
                    return;
                }
                match papers.jobs.pop_front() {
                    Some(job) => break job,
                    None => {
                        let waited = self.for_masks.wait(papers);
                        papers = waited.unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(papers);
            let began = Instant::now();
            let outcome = job.writing.settle();
            let took = began.elapsed();
            let mut papers = self.papers();
            papers.statistics.mask_seconds += took.as_secs_f64();
            papers.settled.push(Settled { row: job.row, writing: job.writing, outcome });
            self.for_runner.notify_one();
        }
    }
}
