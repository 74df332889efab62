//! Workers for many threads: a pool that lends them, and batches over several at once.

use std::sync::{Arc, Mutex, PoisonError};

use palmette_decode::{Control, run_on};

use crate::error::RecommendError;
use crate::question::CheckedQuestion;
use crate::recommender::Recommender;
use crate::request::{Recommendations, Request};
use crate::worker::Worker;

/// Workers of one recommender, lent to whatever thread asks. `'static` and shared by reference or
/// `Arc`.
///
/// A request takes an idle worker, one whose buffers have its shape if there is one, and makes a
/// new one where none is idle; so there are as many as were ever busy at once, of which some idle
/// ones are kept. Nobody waits.
#[derive(Debug)]
pub struct WorkerPool {
    recommender: Arc<Recommender>,
    threads: usize,
    max_idle: usize,
    idle: Mutex<Vec<Worker>>,
}

impl WorkerPool {
    /// Workers whose requests take `threads` rayon workers each; at most `max_idle` are kept while
    /// nobody uses them.
    pub fn new(recommender: Arc<Recommender>, threads: usize, max_idle: usize) -> Self {
        Self { recommender, threads, max_idle, idle: Mutex::default() }
    }

    /// The recommender.
    pub fn recommender(&self) -> &Arc<Recommender> {
        &self.recommender
    }

    /// Recommends items, as [`Worker::recommend`] does.
    ///
    /// # Errors
    /// As [`Worker::recommend`].
    pub fn recommend(
        &self,
        request: &Request<'_>,
        control: &mut Control<'_>,
    ) -> Result<Recommendations, RecommendError> {
        let mut worker = self.take(request);
        let answer = worker.recommend(request, control);
        // One that panicked is not given back.
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < self.max_idle {
            idle.push(worker);
        }
        answer
    }

    /// Answers a question, as [`Worker::answer`] does.
    ///
    /// # Errors
    /// As [`Worker::answer`].
    pub fn answer(
        &self,
        question: &CheckedQuestion,
        control: &mut Control<'_>,
    ) -> Result<Recommendations, RecommendError> {
        self.recommender.answer(question, false, |request| self.recommend(request, control))
    }

    fn take(&self, request: &Request<'_>) -> Worker {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let made = idle.iter().rposition(|worker| worker.is_made_for(request));
        match made.or(idle.len().checked_sub(1)) {
            Some(place) => idle.swap_remove(place),
            None => Worker::new(Arc::clone(&self.recommender), self.threads),
        }
    }
}

/// Answers requests side by side, on as many rayon workers as there are `workers`: each takes one
/// request after another. The answers are in the order of the requests, and each is to the bit what
/// any worker would give alone.
///
/// Rows of different requests do not share products: a request has rows enough, and one a processor
/// needs no waiting for others. Give each worker one thread.
///
/// # Panics
/// When there are requests and no workers.
pub fn recommend_all(
    workers: &mut [Worker],
    requests: &[Request<'_>],
) -> Vec<Result<Recommendations, RecommendError>> {
    side_by_side(workers, requests, |worker, request| worker.recommend(request, &mut run_on))
}

/// One answer after another by each worker, in the order of what is asked.
pub(crate) fn side_by_side<Q: Sync, A: Send>(
    workers: &mut [Worker],
    all: &[Q],
    answer: impl Fn(&mut Worker, &Q) -> A + Sync,
) -> Vec<A> {
    assert!(all.is_empty() || !workers.is_empty(), "requests need a worker");
    let mut answers: Vec<Option<A>> = all.iter().map(|_| None).collect();
    let left = Mutex::new(all.iter().zip(&mut answers));
    rayon::scope(|scope| {
        for worker in workers {
            scope.spawn(|_| {
                loop {
                    // A worker that panicked is passed on by the scope.
                    let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((one, place)) = next else { return };
                    *place = Some(answer(worker, one));
                }
            });
        }
    });
    answers.into_iter().map(|answer| answer.expect("the queue was emptied")).collect()
}
