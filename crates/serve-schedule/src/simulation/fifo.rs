//! First come, first served, as queues are written that predict nothing.

use std::collections::VecDeque;

use crate::event::{Action, BatchJob, Event, Jobs, StopReason};
use crate::job::{Job, Micros};
use crate::simulation::run::Policy;

/// Queue without a limit over streams of one job each: what a semaphore before the workers does.
#[derive(Clone, Debug)]
pub struct Fifo {
    queue: VecDeque<Job>,
    is_busy: Vec<bool>,
    threads: u32,
    drops_late: bool,
}

impl Fifo {
    /// A queue over streams that share threads. `drops_late` drops, when its turn comes, what is
    /// past its deadline.
    #[must_use]
    pub fn new(streams: u32, threads: u32, drops_late: bool) -> Self {
        let streams = streams.max(1);
        let is_busy = vec![false; streams as usize];
        Self { queue: VecDeque::new(), is_busy, threads: (threads / streams).max(1), drops_late }
    }
}

impl Policy for Fifo {
    fn step(&mut self, now: Micros, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Arrive(job) => self.queue.push_back(job),
            Event::Ended { stream, .. } => {
                if let Some(is_busy) = self.is_busy.get_mut(stream as usize) {
                    *is_busy = false;
                }
            }
            _ => {}
        }
        while let Some(stream) = self.is_busy.iter().position(|is_busy| !is_busy) {
            let Some(job) = self.queue.pop_front() else { return };
            if self.drops_late && job.deadline < now {
                actions.push(Action::Stop { job: job.id, why: StopReason::Deadline });
                continue;
            }
            self.is_busy[stream] = true;
            let jobs = Jobs::from_iter([BatchJob { job: job.id, narrowed: false }]);
            actions.push(Action::Start { stream: stream as u32, jobs, threads: self.threads });
        }
    }
}
