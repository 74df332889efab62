//! Admission: when each queued job would end, if nothing else came.

use crate::batch::{self, Limits, Predictor};
use crate::job::Micros;
use crate::queue::Queued;

/// Streams and memory as they will be: what a walk over the queue starts from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outlook {
    /// Times at which the streams that take work are idle, ascending.
    pub(crate) free: Vec<Micros>,
    /// Running batches: predicted end and bytes.
    pub(crate) running: Vec<(Micros, u64)>,
    pub(crate) memory: u64,
}

impl Outlook {
    /// The predicted ends of all jobs of a queue, in its order, into `ends`.
    ///
    /// The dispatcher's own rule, run ahead: the batch at the head of the queue goes to the stream
    /// that is idle first, once there is memory for it, and none overtakes. O(jobs × streams);
    /// where memory holds all jobs at once, O(jobs × log streams) and the moves of a sorted list.
    pub(crate) fn walk<'a>(
        &mut self,
        queue: impl Iterator<Item = &'a Queued> + Clone,
        limits: &Limits,
        predictor: &Predictor,
        ends: &mut Vec<Micros>,
    ) {
        ends.clear();
        let bytes = queue.clone().map(|queued| queued.shape.bytes);
        let all = bytes.fold(self.held(), u64::saturating_add);
        let is_scarce = all > self.memory;
        let mut rest = queue;
        // No batch starts before the one in front of it.
        let mut after = Micros(0);
        while let Some(first) = rest.clone().next() {
            let mut free = self.free.first().copied().unwrap_or(Micros::NEVER).max(after);
            let mut left = self.memory;
            if is_scarce {
                free = self.when_there_are(first.shape.bytes, free);
                left = self.memory.saturating_sub(self.held());
            }
            let Some(batch) = batch::head(rest.clone(), free, left, limits, predictor) else {
                break;
            };
            let end = batch.start.plus(predictor.promised(batch.expected));
            after = batch.start;
            if is_scarce {
                self.running.push((end, batch.bytes));
            }
            self.occupy(end);
            for _ in 0..batch.jobs {
                rest.next();
                ends.push(end);
            }
        }
    }

    /// First time, not before `from`, at which `bytes` bytes are free. Batches that have ended by
    /// then are forgotten.
    fn when_there_are(&mut self, bytes: u64, from: Micros) -> Micros {
        let mut time = from;
        loop {
            self.running.retain(|&(end, _)| end > time);
            if self.held().saturating_add(bytes) <= self.memory {
                return time;
            }
            match self.running.iter().map(|&(end, _)| end).min() {
                Some(end) => time = end,
                None => return time,
            }
        }
    }

    fn held(&self) -> u64 {
        self.running.iter().fold(0, |sum, &(_, bytes)| sum.saturating_add(bytes))
    }

    /// Gives the first stream work until `end`, and puts it in order again.
    fn occupy(&mut self, end: Micros) {
        let Some(first) = self.free.first_mut() else { return };
        *first = end;
        let place = self.free[1..].partition_point(|&free| free < end);
        self.free[..=place].rotate_left(1);
    }
}
