//! Streams: threads that answer one batch after another, each with workers of its own.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use palmette_decode::Stage;
use palmette_recommend::{RecommendError, Worker};
use palmette_serve_schedule::{Micros, StopReason};
use tokio::sync::oneshot;

use super::driver::Message;
use super::micros;
use super::work::{Answer, Outcome, Stop, Work};
use crate::wire::Timings;

/// Workers that a stream keeps, each with the buffers of one shape of request over one recommender.
const MAX_WORKERS: usize = 4;

/// A worker, and the flag that is set when nobody asks its recommender any more.
type LeasedWorker = (Worker, Arc<AtomicBool>);

/// Orders of the scheduler's thread to a stream.
#[derive(Debug)]
pub(crate) enum Order {
    Run(Run),
    /// Let go of workers whose recommender is not asked any more.
    LetGo,
}

/// A batch to answer.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) jobs: Vec<BatchWork>,
    pub(crate) threads: usize,
}

/// A job of a batch.
#[derive(Debug)]
pub(crate) struct BatchWork {
    pub(crate) job: u64,
    pub(crate) narrowed: bool,
    pub(crate) work: Arc<Work>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) reply: oneshot::Sender<Outcome>,
    /// From arrival to here.
    pub(crate) queued: Micros,
}

/// Answers batches until there are no more to come.
pub(crate) fn run(stream: u32, most: usize, orders: &Receiver<Order>, ended: &Sender<Message>) {
    let mut workers = Vec::new();
    while let Ok(order) = orders.recv() {
        let Run { jobs, threads } = match order {
            Order::Run(run) => run,
            Order::LetGo => {
                workers.retain(|(_, is_over): &LeasedWorker| !is_over.load(Ordering::Acquire));
                continue;
            }
        };
        let began = Instant::now();
        let ids = jobs.iter().map(|started| started.job).collect();
        for started in jobs {
            let outcome = answer(&mut workers, &started, threads, most);
            // A client that has gone away is no error.
            _ = started.reply.send(outcome);
        }
        let worked = micros(began.elapsed());
        if ended.send(Message::Ended { stream, jobs: ids, worked }).is_err() {
            return;
        }
    }
}

fn answer(
    workers: &mut Vec<LeasedWorker>,
    started: &BatchWork,
    threads: usize,
    most: usize,
) -> Outcome {
    let BatchWork { work, stop, narrowed, queued, .. } = started;
    if let Some(why) = stop.get() {
        return Outcome::Stopped(why);
    }
    let mut worker = take(workers, work, *narrowed, most);
    worker.use_threads(threads);
    let began = Instant::now();
    let mut last = began;
    let queue = queued.as_ms();
    let mut timings = Timings { queue, ..Timings::default() };
    let mut control = |stage| {
        let now = Instant::now();
        let part = match stage {
            Stage::Prefill => &mut timings.prefill,
            Stage::Decode => &mut timings.decode,
            Stage::Mask => &mut timings.mask,
            Stage::TopK => &mut timings.topk,
        };
        *part += (now - last).as_secs_f64() * 1e3;
        last = now;
        match stop.get() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    };
    let found =
        catch_unwind(AssertUnwindSafe(|| worker.answer(&work.question, *narrowed, &mut control)));
    timings.total = queue + began.elapsed().as_secs_f64() * 1e3;
    timings.round();
    let found = match found {
        Ok(found) => found,
        // Its buffers may be half written: the worker goes.
        Err(_) => return Outcome::Panicked,
    };
    // One that was admitted before its catalog was deleted is not kept; where that comes after this
    // look, an order follows.
    if !work.is_over.load(Ordering::Acquire) {
        workers.push((worker, Arc::clone(&work.is_over)));
    }
    match found {
        Ok(found) => {
            let narrowed = *narrowed;
            Outcome::Answered(Box::new(Answer { found, narrowed, timings }))
        }
        Err(RecommendError::Cancelled) => {
            Outcome::Stopped(stop.get().unwrap_or(StopReason::Cancelled))
        }
        Err(error) => Outcome::Failed(error),
    }
}

/// The worker whose buffers serve the work, or one of its recommender, or a new one in place of the
/// one unused for longest.
fn take(workers: &mut Vec<LeasedWorker>, work: &Work, narrowed: bool, threads: usize) -> Worker {
    let is_of = |worker: &Worker| Arc::ptr_eq(worker.recommender(), &work.recommender);
    let made = work.question.with_request(narrowed, |request| {
        workers.iter().rposition(|(worker, _)| is_of(worker) && worker.is_made_for(request))
    });
    match made {
        Some(place) => workers.remove(place).0,
        None => {
            while workers.len() >= MAX_WORKERS {
                workers.remove(0);
            }
            Worker::new(Arc::clone(&work.recommender), threads)
        }
    }
}
