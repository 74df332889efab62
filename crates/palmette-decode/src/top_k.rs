//! The best extensions of all beams, kept in a bounded heap.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use palmette_core::TokenId;

/// One allowed extension of one live hypothesis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extension {
    /// Sum of log-probabilities including `token`'s.
    pub(crate) score: f32,
    /// Row of the hypothesis it extends.
    pub(crate) parent: u32,
    pub(crate) token: TokenId,
}

impl Eq for Extension {}

/// Greater is better: by score, then lower parent, then lower token.
impl Ord for Extension {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.parent.cmp(&self.parent))
            .then(other.token.cmp(&self.token))
    }
}

impl PartialOrd for Extension {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Keeps the best `capacity` of the extensions offered.
#[derive(Debug)]
pub(crate) struct TopK {
    /// The worst kept one on top.
    heap: BinaryHeap<Reverse<Extension>>,
    capacity: usize,
}

impl TopK {
    /// Takes no more memory as long as no more than `most` are kept.
    pub(crate) fn new(most: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(most), capacity: most }
    }

    /// Forgets what was offered, and keeps the best `capacity` from now on.
    pub(crate) fn begin(&mut self, capacity: usize) {
        self.heap.clear();
        self.capacity = capacity;
    }

    /// Whether an extension of this score could still be kept, offered in order.
    pub(crate) fn would_take(&self, score: f32) -> bool {
        self.heap.len() < self.capacity
            || self.heap.peek().is_some_and(|worst| score > worst.0.score)
    }

    /// Offers one. They must come in order of parent and token, so that one that only equals the
    /// worst kept score can never displace it.
    #[inline]
    pub(crate) fn offer(&mut self, extension: Extension) {
        if self.heap.len() < self.capacity {
            self.heap.push(Reverse(extension));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && extension.score > worst.0.score
        {
            *worst = Reverse(extension);
        }
    }

    /// Moves the kept ones into `best`, best first; none are left.
    pub(crate) fn drain_into(&mut self, best: &mut Vec<Extension>) {
        best.clear();
        best.extend(self.heap.drain().map(|Reverse(extension)| extension));
        best.sort_unstable_by(|a, b| b.cmp(a));
    }
}
