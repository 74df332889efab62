//! Sets from sets, chunk by chunk.

use std::sync::Arc;

use super::RankSet;
use super::chunk::{self, Chunk};

impl RankSet {
    /// The ranks in both sets.
    ///
    /// Cost of this and its like: a pointer a chunk, and 4 KiB for each chunk that is neither that
    /// of an operand nor empty or full.
    ///
    /// # Panics
    /// When the sets are over different numbers of ranks; so do the others.
    pub fn and(&self, other: &Self) -> Self {
        self.zip(other, |a, b| match (a, b) {
            (a, b) if a.is_empty() || b.is_full() => a.clone(),
            (a, b) if b.is_empty() || a.is_full() => b.clone(),
            (a, b) => word_by_word(a, b, |a, b| a & b),
        })
    }

    /// The ranks in either set.
    pub fn or(&self, other: &Self) -> Self {
        self.zip(other, |a, b| match (a, b) {
            (a, b) if a.is_full() || b.is_empty() => a.clone(),
            (a, b) if b.is_full() || a.is_empty() => b.clone(),
            (a, b) => word_by_word(a, b, |a, b| a | b),
        })
    }

    /// The ranks in this set that are not in `other`.
    pub fn and_not(&self, other: &Self) -> Self {
        self.zip(other, |a, b| match (a, b) {
            (a, b) if a.is_empty() || b.is_empty() => a.clone(),
            (_, b) if b.is_full() => chunk::empty(),
            (a, b) => word_by_word(a, b, |a, b| a & !b),
        })
    }

    /// The ranks below [`num_ranks`](Self::num_ranks) that are not in this set.
    #[allow(clippy::should_implement_trait, reason = "one of four; operators would hide the cost")]
    pub fn not(&self) -> Self {
        Self::full(self.num_ranks).and_not(self)
    }

    fn zip(&self, other: &Self, op: impl Fn(&Arc<Chunk>, &Arc<Chunk>) -> Arc<Chunk>) -> Self {
        let (ours, theirs) = (self.num_ranks, other.num_ranks);
        assert_eq!(ours, theirs, "sets over different numbers of ranks");
        let pairs = self.chunks.iter().zip(&other.chunks);
        Self::from_chunks(self.num_ranks, pairs.map(|(a, b)| op(a, b)).collect())
    }
}

/// A chunk computed word by word; one of the operands where it equals it.
fn word_by_word(a: &Arc<Chunk>, b: &Arc<Chunk>, op: impl Fn(u64, u64) -> u64) -> Arc<Chunk> {
    let mut words = a.words;
    words.iter_mut().zip(&b.words).for_each(|(a, &b)| *a = op(*a, b));
    if words == a.words {
        a.clone()
    } else if words == b.words {
        b.clone()
    } else {
        chunk::from_words(&words)
    }
}
