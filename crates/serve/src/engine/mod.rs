//! The engine: a scheduler thread and streams that answer what it starts.
//!
//! Handlers [`submit`](Engine::submit) work; one thread drives the [`Scheduler`] with the events of
//! all, in the order in which they come to it, and so decides alone. A stream is a thread with
//! workers of its own; between two stages of a request it looks at the stop flag, so that work
//! nobody waits for ends within one pass.
//!
//! Invariant: each submission is replied to exactly once, whatever ends it. Cost: one channel
//! message to the scheduler and one to a stream a request; no lock is shared by streams.

mod calibrate;
mod driver;
mod stream;
mod work;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use palmette_serve_schedule::{Class, Config, CostModel, Job, Micros, Shape};
use tokio::sync::oneshot;

pub(crate) use calibrate::calibrate;
use driver::{Driver, Message};
pub(crate) use work::{Outcome, Work};
use work::{Stop, Submission};

/// Handle of the scheduler thread and its streams. Dropping it ends them once all is replied to.
#[derive(Debug)]
pub(crate) struct Engine {
    messages: mpsc::Sender<Message>,
    began: Instant,
    next_id: AtomicU64,
    threads: Vec<JoinHandle<()>>,
}

/// Registrar of targets with the scheduler: leases for their workers, costs of their models.
#[derive(Clone, Debug)]
pub(crate) struct Registrar(mpsc::Sender<Message>);

/// Right of a recommender to have workers kept for it. Dropping the lease makes streams let go of
/// them, idle ones too: they hold the catalog's memory.
#[derive(Debug)]
pub(crate) struct Lease {
    is_over: Arc<AtomicBool>,
    messages: mpsc::Sender<Message>,
}

/// Work that was handed in. Dropping the ticket cancels it.
#[derive(Debug)]
pub(crate) struct Ticket {
    id: u64,
    reply: oneshot::Receiver<Outcome>,
    messages: mpsc::Sender<Message>,
}

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no thread to give or the record cannot be made.
    pub(crate) fn start(config: Config, record: Option<&Path>) -> std::io::Result<Self> {
        let began = Instant::now();
        let (messages, received) = mpsc::channel();
        let mut threads = Vec::new();
        let mut streams = Vec::new();
        for index in 0..config.streams.max(1) {
            let (runs, received) = mpsc::channel();
            let ended = messages.clone();
            let most = config.threads as usize;
            let run = move || stream::run(index, most, &received, &ended);
            let thread = thread::Builder::new().name(format!("stream-{index}")).spawn(run)?;
            threads.push(thread);
            streams.push(runs);
        }
        let driver = Driver::new(config, streams, received, began, record)?;
        threads.push(thread::Builder::new().name("scheduler".into()).spawn(|| driver.run())?);
        Ok(Self { messages, began, next_id: AtomicU64::new(1), threads })
    }

    /// The registrar of this engine.
    pub(crate) fn registrar(&self) -> Registrar {
        Registrar(self.messages.clone())
    }

    /// The time of the scheduler's clock.
    pub(crate) fn time_of(&self, at: Instant) -> Micros {
        micros(at.saturating_duration_since(self.began))
    }

    /// Hands in work that arrived and is due at these times; `deadline` `None` for whenever.
    pub(crate) fn submit(
        &self,
        work: Work,
        class: Class,
        arrived: Instant,
        deadline: Option<Instant>,
        (shape, narrower): (Shape, Option<Shape>),
    ) -> Ticket {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let deadline = deadline.map_or(Micros::NEVER, |at| self.time_of(at));
        let arrived = self.time_of(arrived);
        let job = Job { id, class, arrived, deadline, shape, narrower };
        let (reply, received) = oneshot::channel();
        let submission =
            Submission { job, work: Arc::new(work), reply, stop: Arc::new(Stop::default()) };
        // Where the scheduler is gone the reply's sender is dropped with the message, which the
        // ticket sees.
        _ = self.messages.send(Message::Submit(Box::new(submission)));
        Ticket { id, reply: received, messages: self.messages.clone() }
    }

    /// Refuses what comes from now on; what was admitted continues. A second call stops what is
    /// left.
    pub(crate) fn drain(&self) {
        _ = self.messages.send(Message::Drain);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        _ = self.messages.send(Message::End);
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to end.
            _ = thread.join();
        }
    }
}

impl Registrar {
    pub(crate) fn lease(&self) -> Lease {
        Lease { is_over: Arc::default(), messages: self.0.clone() }
    }

    /// Makes a model's cost known: its index in shapes.
    pub(crate) fn set_costs(&self, model: u32, costs: CostModel) {
        _ = self.0.send(Message::Costs { model, costs });
    }
}

impl Lease {
    /// A flag that is set when the lease is over.
    pub(crate) fn is_over(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_over)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Before the message: a stream that looks at the flag after it has been told, or before it
        // keeps a worker, misses nothing.
        self.is_over.store(true, Ordering::Release);
        _ = self.messages.send(Message::LeaseOver);
    }
}

impl Ticket {
    /// Waits for the end of the work.
    pub(crate) async fn outcome(mut self) -> Outcome {
        (&mut self.reply).await.unwrap_or(Outcome::Ended)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // For one that was replied to, the scheduler knows no such job any more.
        if self.reply.try_recv().is_err() && !self.reply.is_terminated() {
            _ = self.messages.send(Message::Cancel(self.id));
        }
    }
}

pub(crate) fn micros(time: std::time::Duration) -> Micros {
    Micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
