//! Sequences of different lengths, packed one after another.

use std::ops::Range;

/// In a list of targets: nothing is to be predicted at this position.
pub const NO_TARGET: u32 = u32::MAX;

/// Several sequences, concatenated. Positions restart at each; none sees another.
///
/// Sequence `s` owns tokens `starts[s]..starts[s + 1]`.
#[derive(Clone, Debug)]
pub struct PackedBatch {
    tokens: Vec<u32>,
    targets: Vec<u32>,
    starts: Vec<usize>,
}

impl Default for PackedBatch {
    fn default() -> Self {
        Self { tokens: Vec::new(), targets: Vec::new(), starts: vec![0] }
    }
}

impl PackedBatch {
    /// Forgets the sequences and keeps the memory.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.targets.clear();
        self.starts.truncate(1);
    }

    /// Appends a sequence; `targets[i]` is the token to predict after `tokens[..=i]`, or [`NO_TARGET`].
    ///
    /// # Panics
    /// When the two lengths differ.
    pub fn push(&mut self, tokens: &[u32], targets: &[u32]) {
        assert_eq!(tokens.len(), targets.len(), "one target per token");
        self.tokens.extend_from_slice(tokens);
        self.targets.extend_from_slice(targets);
        self.starts.push(self.tokens.len());
    }

    /// Number of sequences.
    pub fn num_sequences(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of tokens, over all sequences.
    pub fn num_tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Number of positions that have a target.
    pub fn num_targets(&self) -> usize {
        self.targets.iter().filter(|&&target| target != NO_TARGET).count()
    }

    /// All sequences.
    pub fn view(&self) -> BatchView<'_> {
        self.sequences(0..self.num_sequences())
    }

    /// Shard `index` of `count`: neighbouring sequences of about `1 / count` of the tokens.
    ///
    /// The cut depends on the lengths alone. A shard may be empty.
    pub fn shard(&self, index: usize, count: usize) -> BatchView<'_> {
        // A sequence belongs to the shard in which its middle token lies.
        let first_in = |shard: usize| {
            let mut places = self.starts.windows(2);
            places
                .position(|w| (w[0] + w[1]) * count >= 2 * shard * self.num_tokens())
                .unwrap_or(self.num_sequences())
        };
        let end = if index + 1 == count { self.num_sequences() } else { first_in(index + 1) };
        self.sequences(first_in(index)..end)
    }

    fn sequences(&self, range: Range<usize>) -> BatchView<'_> {
        let at = self.starts[range.start]..self.starts[range.end];
        BatchView {
            tokens: &self.tokens[at.clone()],
            targets: &self.targets[at],
            starts: &self.starts[range.start..=range.end],
            first_sequence: range.start,
        }
    }
}

/// Neighbouring sequences of a [`PackedBatch`].
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    /// `[N]`
    pub(crate) tokens: &'a [u32],
    /// `[N]`
    pub(crate) targets: &'a [u32],
    /// Counted from the start of the whole batch.
    starts: &'a [usize],
    first_sequence: usize,
}

impl<'a> BatchView<'a> {
    /// Each sequence's number in the whole batch and the places of its tokens in this view.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        let (base, first) = (self.starts[0], self.first_sequence);
        let windows = self.starts.windows(2).enumerate();
        windows.map(move |(i, w)| (first + i, w[0] - base..w[1] - base))
    }

    /// Σ T², the attention weights of one head.
    pub(crate) fn sum_of_squares(&self) -> usize {
        self.starts.windows(2).map(|w| (w[1] - w[0]) * (w[1] - w[0])).sum()
    }

    /// Tokens of the longest sequence.
    pub(crate) fn longest(&self) -> usize {
        self.starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_hold_every_sequence_once_in_order() {
        for lengths in [vec![3, 1, 4, 1, 5, 9, 2, 6], vec![7], vec![1, 1], vec![100, 1, 1, 1]] {
            let mut batch = PackedBatch::default();
            for &length in &lengths {
                batch.push(&vec![1; length], &vec![NO_TARGET; length]);
            }
            for count in 1..6 {
                let mut seen = Vec::new();
                for index in 0..count {
                    let shard = batch.shard(index, count);
                    seen.extend(shard.sequences().map(|(s, at)| (s, at.len())));
                }
                let all: Vec<_> = lengths.iter().copied().enumerate().collect();
                assert_eq!(seen, all, "{lengths:?} in {count}");
            }
        }
    }

    #[test]
    fn shards_of_equal_sequences_are_equal() {
        let mut batch = PackedBatch::default();
        (0..64).for_each(|_| batch.push(&[1; 32], &[NO_TARGET; 32]));
        for index in 0..4 {
            assert_eq!(batch.shard(index, 4).tokens.len(), 16 * 32);
        }
    }
}
