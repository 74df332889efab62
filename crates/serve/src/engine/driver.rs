//! The scheduler's thread: messages become events, actions become runs and replies.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use palmette_serve_schedule::{
    Action, BatchJob, Config, CostModel, Event, Job, Micros, Record, Refusal, Scheduler, Shape,
    StopReason,
};
use tokio::sync::oneshot;

use super::micros;
use super::stream::{BatchWork, Order, Run};
use super::work::{Outcome, Stop, Submission, Work};

/// Messages to the scheduler's thread.
#[derive(Debug)]
pub(crate) enum Message {
    Submit(Box<Submission>),
    Cancel(u64),
    Ended {
        stream: u32,
        jobs: Vec<u64>,
        worked: Micros,
    },
    Costs {
        model: u32,
        costs: CostModel,
    },
    /// A lease is over: workers that were kept by it go.
    LeaseOver,
    Drain,
    /// The handle is gone: what was submitted is replied to, then threads end.
    End,
}

pub(crate) struct Driver {
    scheduler: Scheduler,
    streams: Vec<Sender<Order>>,
    messages: Receiver<Message>,
    began: Instant,
    jobs: HashMap<u64, Submitted>,
    /// Cost models by model, as they were fitted.
    costs: HashMap<u32, CostModel>,
    record: Option<BufWriter<File>>,
    wake_at: Option<Micros>,
    is_ending: bool,
}

/// A job that has not ended; its reply goes to the stream that starts it.
struct Submitted {
    work: Arc<Work>,
    stop: Arc<Stop>,
    arrived: Micros,
    shape: Shape,
    /// Threads that it was started with.
    threads: u32,
    reply: Option<oneshot::Sender<Outcome>>,
}

impl Driver {
    pub(crate) fn new(
        config: Config,
        streams: Vec<Sender<Order>>,
        messages: Receiver<Message>,
        began: Instant,
        record: Option<&Path>,
    ) -> std::io::Result<Self> {
        let record = record.map(File::create).transpose()?.map(BufWriter::new);
        let mut driver = Self {
            scheduler: Scheduler::new(config, Vec::new()),
            streams,
            messages,
            began,
            jobs: HashMap::new(),
            costs: HashMap::new(),
            record,
            wake_at: None,
            is_ending: false,
        };
        driver.note(&Record::Begin { config, costs: Vec::new() });
        Ok(driver)
    }

    pub(crate) fn run(mut self) {
        let mut actions = Vec::new();
        self.publish();
        while !(self.is_ending && self.jobs.is_empty()) {
            let Some(event) = self.next_event() else { continue };
            let now = micros(self.began.elapsed());
            self.scheduler.step(now, event.clone(), &mut actions);
            if self.record.is_some() {
                self.note(&Record::Event { now, event });
                self.note(&Record::Actions { actions: actions.clone() });
            }
            for action in actions.drain(..) {
                self.act(action);
            }
            self.publish();
        }
    }

    /// Waits for something to happen; `None` where it concerns no scheduler.
    fn next_event(&mut self) -> Option<Event> {
        let message = match self.wake_at {
            None => self.messages.recv().unwrap_or(Message::End),
            Some(at) => {
                let left = at.since(micros(self.began.elapsed()));
                match self.messages.recv_timeout(Duration::from_micros(left.0)) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => {
                        self.wake_at = None;
                        return Some(Event::Wake);
                    }
                    Err(RecvTimeoutError::Disconnected) => Message::End,
                }
            }
        };
        match message {
            Message::Submit(submission) => {
                let Submission { job, work, reply, stop } = *submission;
                let Job { arrived, shape, .. } = job;
                let reply = Some(reply);
                let submitted = Submitted { work, stop, arrived, shape, threads: 0, reply };
                self.jobs.insert(job.id, submitted);
                Some(Event::Arrive(job))
            }
            Message::Cancel(job) if !self.jobs.contains_key(&job) => None,
            Message::Cancel(job) => Some(Event::Cancel { job }),
            Message::Ended { stream, jobs, worked } => {
                for job in jobs {
                    if let Some(ended) = self.jobs.remove(&job) {
                        self.note_cost(&ended, worked);
                    }
                }
                Some(Event::Ended { stream, worked })
            }
            Message::Costs { model, costs } => {
                self.costs.insert(model, costs);
                Some(Event::Costs { model, costs })
            }
            Message::LeaseOver => {
                for stream in &self.streams {
                    // A stream ends after its sender only.
                    _ = stream.send(Order::LetGo);
                }
                None
            }
            Message::Drain => Some(Event::Drain),
            Message::End => {
                self.is_ending = true;
                Some(Event::Drain)
            }
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Start { stream, jobs, threads } => {
                let tokens = jobs.iter().filter_map(|started| self.jobs.get(&started.job));
                let tokens: u64 = tokens.map(|of| u64::from(of.shape.computed_tokens())).sum();
                metrics::histogram!("palmette_batch_requests").record(jobs.len() as f64);
                metrics::histogram!("palmette_batch_tokens").record(tokens as f64);
                let start = |BatchJob { job, narrowed }| {
                    let submitted = self.jobs.get_mut(&job)?;
                    submitted.threads = threads;
                    Some(BatchWork {
                        job,
                        narrowed,
                        work: Arc::clone(&submitted.work),
                        stop: Arc::clone(&submitted.stop),
                        reply: submitted.reply.take()?,
                        queued: micros(self.began.elapsed()).since(submitted.arrived),
                    })
                };
                let jobs = jobs.iter().filter_map(start).collect();
                // A stream ends after its sender only.
                let run = Run { jobs, threads: threads as usize };
                _ = self.streams[stream as usize].send(Order::Run(run));
            }
            Action::Refuse { job, why, finish, retry_after } => {
                let reason = match why {
                    Refusal::Late => "late",
                    Refusal::Memory => "memory",
                    Refusal::Draining => "draining",
                };
                metrics::counter!("palmette_recommend_shed_total", "reason" => reason).increment(1);
                self.reply(job, Outcome::Refused { why, finish, retry_after });
            }
            Action::Stop { job, why } => {
                let reason = match why {
                    StopReason::Deadline => "deadline",
                    StopReason::Cancelled => "cancelled",
                    StopReason::Drained => "draining",
                };
                metrics::counter!("palmette_recommend_stopped_total", "reason" => reason)
                    .increment(1);
                match self.jobs.get(&job) {
                    Some(Submitted { reply: None, stop, .. }) => stop.set(why),
                    _ => self.reply(job, Outcome::Stopped(why)),
                }
            }
            Action::WakeAt(at) => self.wake_at = Some(at).filter(|&at| at < Micros::NEVER),
        }
    }

    /// Ends a job that no stream has.
    fn reply(&mut self, job: u64, outcome: Outcome) {
        if let Some(Submitted { reply: Some(reply), .. }) = self.jobs.remove(&job) {
            // A client that has gone away is no error.
            _ = reply.send(outcome);
        }
    }

    /// Notes how long work took beside what its costs say. Only that of one thread, uninterrupted,
    /// is what was measured.
    fn note_cost(&self, ended: &Submitted, worked: Micros) {
        let predicted = self.costs.get(&ended.shape.model).map(|of| of.predict(&ended.shape));
        let is_whole = ended.threads == 1 && ended.stop.get().is_none();
        if let Some(predicted) = predicted.filter(|&of| of > 0.0 && is_whole) {
            metrics::histogram!("palmette_cost_ratio").record(worked.0 as f64 / predicted);
        }
    }

    fn publish(&self) {
        let status = self.scheduler.status();
        metrics::gauge!("palmette_queue_requests").set((status.queued + status.queued_bulk) as f64);
        metrics::gauge!("palmette_queue_work_seconds").set(status.queued_work.0 as f64 / 1e6);
        let (busy, all) = (status.busy as f64, self.streams.len() as f64);
        metrics::gauge!("palmette_streams", "state" => "busy").set(busy);
        metrics::gauge!("palmette_streams", "state" => "idle").set(all - busy);
    }

    /// Writes a line; a failure ends the record, and not the server.
    fn note(&mut self, line: &Record) {
        let Some(record) = &mut self.record else { return };
        let written = serde_json::to_writer(&mut *record, line).map_err(std::io::Error::from);
        let written = written.and_then(|()| record.write_all(b"\n")).and_then(|()| record.flush());
        if let Err(error) = written {
            tracing::error!(%error, "the record of the scheduler cannot be written and ends here");
            self.record = None;
        }
    }
}
