//! Queue of admitted jobs, in the order in which they start.

use std::collections::VecDeque;

use crate::config::Order;
use crate::job::{Job, Micros, Shape};

/// Admitted job that has not started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) job: Job,
    /// The job's shape, or its narrower one.
    pub(crate) shape: Shape,
    pub(crate) narrowed: bool,
}

impl Queued {
    pub(crate) fn new(job: Job) -> Self {
        Self { job, shape: job.shape, narrowed: false }
    }

    /// Narrower shape of the job, where it has any and does not do it already.
    pub(crate) fn narrower(&self) -> Option<Self> {
        let shape = self.job.narrower.filter(|_| !self.narrowed)?;
        Some(Self { shape, narrowed: true, ..*self })
    }
}

/// Jobs sorted by (deadline, arrival, id), or by (arrival, id).
///
/// Insertion O(log n) comparisons and at most n/2 moves; from the front O(1).
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    order: Order,
    jobs: VecDeque<Queued>,
}

impl Queue {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, jobs: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Queued> {
        self.jobs.get(place)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queued> + Clone {
        self.jobs.iter()
    }

    /// The place that a job would have.
    pub(crate) fn place(&self, job: &Job) -> usize {
        let key = self.key(job);
        self.jobs.partition_point(|queued| self.key(&queued.job) < key)
    }

    pub(crate) fn push(&mut self, queued: Queued) {
        self.jobs.insert(self.place(&queued.job), queued);
    }

    pub(crate) fn replace_first(&mut self, queued: Queued) {
        if let Some(first) = self.jobs.front_mut() {
            *first = queued;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Queued> {
        self.jobs.pop_front()
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.jobs.iter().any(|queued| queued.job.id == id)
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Queued> {
        let place = self.jobs.iter().position(|queued| queued.job.id == id)?;
        self.jobs.remove(place)
    }

    /// Removes the first job, in order, whose deadline is before `now`. O(1) for those that are
    /// sorted by it, where none is.
    pub(crate) fn remove_expired(&mut self, now: Micros) -> Option<Queued> {
        let expired = |queued: &Queued| queued.job.deadline < now;
        let place = match self.order {
            Order::Deadline => self.jobs.front().filter(|first| expired(first)).map(|_| 0)?,
            Order::Arrival => self.jobs.iter().position(expired)?,
        };
        self.jobs.remove(place)
    }

    /// The earliest deadline.
    pub(crate) fn earliest(&self) -> Micros {
        let deadline = |queued: &Queued| queued.job.deadline;
        let earliest = match self.order {
            Order::Deadline => self.jobs.front().map(deadline),
            Order::Arrival => self.jobs.iter().map(deadline).min(),
        };
        earliest.unwrap_or(Micros::NEVER)
    }

    fn key(&self, job: &Job) -> (Micros, Micros, u64) {
        match self.order {
            Order::Deadline => (job.deadline, job.arrived, job.id),
            Order::Arrival => (job.arrived, Micros(0), job.id),
        }
    }
}
