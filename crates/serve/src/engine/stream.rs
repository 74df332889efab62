//! Streams: threads that answer one batch after another, each with workers of its own.
//!
//! Requests of a batch are answered one after another, or side by side where the engine computes
//! their passes together; each reply leaves when its request ends.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
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
        answer_batch(&mut workers, jobs, threads, most);
        let worked = micros(began.elapsed());
        if ended.send(Message::Ended { stream, jobs: ids, worked }).is_err() {
            return;
        }
    }
}

/// Answers the requests of a batch and replies to each.
fn answer_batch(
    workers: &mut Vec<LeasedWorker>,
    jobs: Vec<BatchWork>,
    threads: usize,
    most: usize,
) {
    let together = |job: &BatchWork| job.work.recommender.engine().shares_passes();
    if jobs.len() < 2 || !jobs.iter().all(together) {
        for job in jobs {
            let worker = take(workers, &job.work, job.narrowed, most, MAX_WORKERS);
            workers.extend(answer(worker, job, threads));
        }
        return;
    }
    let room = MAX_WORKERS.max(jobs.len());
    let mut leased = Vec::with_capacity(jobs.len());
    for job in jobs {
        let room = room - leased.len();
        leased.push((take(workers, &job.work, job.narrowed, most, room), job));
    }
    thread::scope(|scope| {
        let run = |(worker, job)| scope.spawn(move || answer(worker, job, threads));
        let runs: Vec<_> = leased.into_iter().map(run).collect();
        // One that panicked outside of its search has lost its reply's sender, which its client
        // sees.
        workers.extend(runs.into_iter().filter_map(|run| run.join().ok().flatten()));
    });
}

/// Answers a request and replies to it; returns the worker where it is kept.
fn answer(worker: Worker, job: BatchWork, threads: usize) -> Option<LeasedWorker> {
    let (outcome, worker) = outcome(worker, &job, threads);
    // A client that has gone away is no error.
    _ = job.reply.send(outcome);
    // One that was admitted before its catalog was deleted is not kept; where that comes after this
    // look, an order follows.
    let is_over = &job.work.is_over;
    worker.filter(|_| !is_over.load(Ordering::Acquire)).map(|worker| (worker, Arc::clone(is_over)))
}

/// The end of a request; and the worker, unless its buffers may be half written.
fn outcome(mut worker: Worker, started: &BatchWork, threads: usize) -> (Outcome, Option<Worker>) {
    let BatchWork { work, stop, narrowed, queued, .. } = started;
    if let Some(why) = stop.get() {
        return (Outcome::Stopped(why), Some(worker));
    }
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
    let outcome = match found {
        Err(_) => return (Outcome::Panicked, None),
        Ok(Ok(found)) => {
            let narrowed = *narrowed;
            let cursor = work.question.cursor_after(&found);
            Outcome::Answered(Box::new(Answer { found, cursor, narrowed, timings }))
        }
        Ok(Err(RecommendError::Cancelled)) => {
            Outcome::Stopped(stop.get().unwrap_or(StopReason::Cancelled))
        }
        Ok(Err(error)) => Outcome::Failed(error),
    };
    (outcome, Some(worker))
}

/// The worker whose buffers serve the work, or a new one, for which those unused for longest go
/// where there would be more than `room`.
fn take(
    workers: &mut Vec<LeasedWorker>,
    work: &Work,
    narrowed: bool,
    threads: usize,
    room: usize,
) -> Worker {
    let is_of = |worker: &Worker| Arc::ptr_eq(worker.recommender(), &work.recommender);
    let made = work.question.with_request(narrowed, |request| {
        workers.iter().rposition(|(worker, _)| is_of(worker) && worker.is_made_for(request))
    });
    match made {
        Some(place) => workers.remove(place).0,
        None => {
            while workers.len() >= room.max(1) {
                workers.remove(0);
            }
            Worker::new(Arc::clone(&work.recommender), threads)
        }
    }
}
