//! Several requests at once.

use std::sync::{Mutex, PoisonError};

use crate::error::RecommendError;
use crate::worker::{Recommendations, Request, Worker};

/// Answers requests side by side, on as many rayon workers as there are `workers`: each takes one request after
/// another. The answers are in the order of the requests, and each is to the bit what any worker would give alone.
///
/// Rows of different requests do not share products: a request has rows enough, and one a processor needs no waiting for
/// others. Give each worker one thread.
///
/// # Panics
/// When there are requests and no workers.
pub fn recommend_all(
    workers: &mut [Worker<'_>],
    requests: &[Request<'_>],
) -> Vec<Result<Recommendations, RecommendError>> {
    assert!(requests.is_empty() || !workers.is_empty(), "requests need a worker");
    let mut answers: Vec<_> = requests.iter().map(|_| None).collect();
    let left = Mutex::new(requests.iter().zip(&mut answers));
    rayon::scope(|scope| {
        for worker in workers {
            scope.spawn(|_| {
                loop {
                    // A worker that panicked is passed on by the scope.
                    let next = left.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((request, answer)) = next else { return };
                    *answer = Some(worker.recommend(request, |_| {}));
                }
            });
        }
    });
    answers.into_iter().map(|answer| answer.expect("the queue was emptied")).collect()
}
