//! Top-k over the allowed extensions of all beams, in a bounded heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use palmette_core::TokenId;

use crate::error::DecodeError;
use crate::log_softmax::max_and_log_sum_exp;
use crate::step::{Extension, Step, larger};

/// The best extensions of a step, chosen from logits in this processor's memory. Made once and
/// reused: no step allocates once the heap has held the widest.
///
/// Exact: equal to scoring every allowed extension and sorting, to the bit.
#[derive(Debug, Default)]
pub struct TopK {
    /// The worst kept one on top.
    heap: BinaryHeap<Reverse<Extension>>,
    capacity: usize,
    largest_dropped: Option<f32>,
}

impl TopK {
    /// With room for steps of this width.
    pub fn with_capacity(width: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(width), capacity: width, largest_dropped: None }
    }

    /// The largest total among the allowed extensions that the latest selection did not keep;
    /// `None` where it kept all. Those that `accepts` refused are not allowed; of those that it was
    /// not asked about all count.
    pub fn largest_dropped(&self) -> Option<f32> {
        self.largest_dropped
    }

    /// Writes the best extensions of a step over `best`, best first.
    ///
    /// `logits`: `[rows, columns]`, those of some tokens of the vocabulary. Probabilities are over
    /// these columns, and the masks must allow no other tokens. Where a level's tokens are known
    /// beforehand, the model need not compute the rest. `accepts` is given a hypothesis' tokens and
    /// the next, and asked only about extensions that would otherwise be kept: it verifies what
    /// masks leave open, such as whole sequences at the last step.
    ///
    /// # Errors
    /// When the shape is wrong, a row has no distribution, or a mask allows a token that is not
    /// among the columns.
    pub fn select(
        &mut self,
        step: &Step<'_>,
        logits: &[f32],
        columns: Range<usize>,
        mut accepts: impl FnMut(&[TokenId], TokenId) -> bool,
        best: &mut Vec<Extension>,
    ) -> Result<(), DecodeError> {
        let (beams, num_columns) = (step.rows(), columns.len());
        if beams * num_columns != logits.len() {
            let (num_tokens, got) = (num_columns, logits.len());
            return Err(DecodeError::ShapeMismatch { beams, num_tokens, got });
        }
        // A step that failed may have left extensions of its own.
        self.begin(step.width);
        for (beam, row) in logits.chunks_exact(num_columns.max(1)).enumerate() {
            let (max, normaliser) = max_and_log_sum_exp(row);
            if !normaliser.is_finite() {
                return Err(DecodeError::BadLogits { beam, step: step.pass.index });
            }
            let parent_score = step.pass.scores[beam];
            // Adding 0 turns −0 into +0, which `total_cmp` would tell apart.
            let score = |logit: f32| parent_score + (logit - normaliser) + 0.0;
            let row_bound = step.bounds[beam];
            // Rounding keeps order, so no extension has more than this. Source: xGR, arXiv
            // 2512.11529, §6.2; there a beam's extensions are sorted and the first that loses ends
            // it.
            if self.is_settled(score(max) + row_bound, step.floor) {
                continue;
            }
            let sequence = step.pass.sequence(beam);
            for token in step.masks.allowed(beam) {
                let place = token.index().checked_sub(columns.start);
                let Some(&logit) = place.and_then(|place| row.get(place)) else {
                    return Err(no_logit(step, token));
                };
                let score = score(logit);
                if self.is_settled(score + row_bound, step.floor) {
                    continue;
                }
                let bound = step.bound(beam, token);
                let extension = Extension { score, bound, parent: beam as u32, token };
                if !self.may_take(extension.total(), step.floor) {
                    self.drop_one(extension.total());
                } else if accepts(sequence, token) {
                    self.take(extension);
                }
            }
        }
        self.drain_into(best);
        Ok(())
    }

    /// Forgets what was offered, and keeps the best `capacity` from now on.
    fn begin(&mut self, capacity: usize) {
        self.heap.clear();
        self.capacity = capacity;
        self.largest_dropped = None;
    }

    /// True where an extension of this total could still be kept, offered in order.
    fn may_take(&self, total: f32, floor: f32) -> bool {
        total >= floor
            && (self.heap.len() < self.capacity
                || self.heap.peek().is_some_and(|worst| total > worst.0.total()))
    }

    /// True where an extension of at most this total changes nothing: it cannot be kept, and one as
    /// good was dropped before.
    fn is_settled(&self, total: f32, floor: f32) -> bool {
        !self.may_take(total, floor) && self.largest_dropped.is_some_and(|most| total <= most)
    }

    fn drop_one(&mut self, total: f32) {
        self.largest_dropped = larger(self.largest_dropped, Some(total));
    }

    /// Keeps one that [may be taken](Self::may_take). They must come in order of parent and token,
    /// so that one that only equals the worst kept total can never displace it.
    #[inline]
    fn take(&mut self, extension: Extension) {
        if self.heap.len() < self.capacity {
            self.heap.push(Reverse(extension));
        } else {
            let replace = |mut worst: PeekMut<'_, Reverse<Extension>>| {
                std::mem::replace(&mut *worst, Reverse(extension)).0
            };
            let dropped = self.heap.peek_mut().map_or(extension, replace);
            self.drop_one(dropped.total());
        }
    }

    /// Moves the kept ones into `best`, best first; none are left.
    fn drain_into(&mut self, best: &mut Vec<Extension>) {
        best.clear();
        best.extend(self.heap.drain().map(|Reverse(extension)| extension));
        best.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// A token that is allowed and has no logit: past the vocabulary, or not asked for.
#[cold]
fn no_logit(step: &Step<'_>, token: TokenId) -> DecodeError {
    let (index, past) = (step.pass.index, token.index() >= step.num_tokens);
    match past {
        true => DecodeError::BrokenConstraint { token, step: index },
        false => DecodeError::MissingLogit { token, step: index },
    }
}
