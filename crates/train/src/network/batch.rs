//! Sequences of different lengths, packed one after another.

use std::ops::Range;

/// In a list of targets: nothing is to be predicted at this position.
pub const NO_TARGET: u32 = u32::MAX;

/// Rows that a row sees: those before `prefix`, and from `own` to itself. They are counted from the
/// sequence's first row. In a plain sequence that is `0` and `0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisibleRows {
    pub(crate) prefix: u32,
    pub(crate) own: u32,
}

impl VisibleRows {
    /// The position of row `row` of the sequence.
    pub(crate) fn position(self, row: usize) -> usize {
        self.prefix as usize + row - self.own as usize
    }
}

/// An item to be drafted: what a draft head is to say after the first tokens of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch<'a> {
    /// The row of the last token before it.
    pub(crate) after: usize,
    /// The row of its first placeholder, where it has any.
    pub(crate) placeholders: usize,
    /// The token of each level.
    pub(crate) targets: &'a [u32],
}

/// Several sequences, concatenated. Positions restart at each; none sees another.
///
/// Sequence `s` owns tokens `starts[s]..starts[s + 1]`: its own, then, for each of its branches,
/// the placeholders, which see the tokens before the branch and each other.
#[derive(Clone, Debug)]
pub struct PackedBatch {
    tokens: Vec<u32>,
    targets: Vec<u32>,
    seen: Vec<VisibleRows>,
    starts: Vec<usize>,
    /// Rows after which a branch comes and where its placeholders begin, counted from the start of
    /// the whole batch.
    branches: Vec<(usize, usize)>,
    /// The branches of sequence `s` are `branch_starts[s]..branch_starts[s + 1]`.
    branch_starts: Vec<usize>,
    /// `branch_levels` for each branch.
    branch_targets: Vec<u32>,
    branch_levels: usize,
}

impl Default for PackedBatch {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            targets: Vec::new(),
            seen: Vec::new(),
            starts: vec![0],
            branches: Vec::new(),
            branch_starts: vec![0],
            branch_targets: Vec::new(),
            branch_levels: 0,
        }
    }
}

impl PackedBatch {
    /// Forgets the sequences and keeps the memory.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.targets.clear();
        self.seen.clear();
        self.starts.truncate(1);
        self.branches.clear();
        self.branch_starts.truncate(1);
        self.branch_targets.clear();
    }

    /// Appends a sequence; `targets[i]` is the token to predict after `tokens[..=i]`, or
    /// [`NO_TARGET`].
    ///
    /// # Panics
    /// When the two lengths differ.
    pub fn push(&mut self, tokens: &[u32], targets: &[u32]) {
        self.push_with_branches(tokens, targets, &Branches::default(), 0..0);
    }

    /// Appends a sequence and its branches; each gets these `placeholders`, numbers from the
    /// vocabulary's end on, or none.
    ///
    /// # Panics
    /// When the two lengths differ, or a branch comes after no token or after more than there are.
    pub(crate) fn push_with_branches(
        &mut self,
        tokens: &[u32],
        targets: &[u32],
        branches: &Branches,
        placeholders: Range<u32>,
    ) {
        assert_eq!(tokens.len(), targets.len(), "one target per token");
        let first = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        self.targets.extend_from_slice(targets);
        self.seen.extend(tokens.iter().map(|_| VisibleRows { prefix: 0, own: 0 }));
        for &after in &branches.after {
            assert!(
                (1..=tokens.len() as u32).contains(&after),
                "after {after} of {}",
                tokens.len()
            );
            let own = self.tokens.len();
            self.branches.push((first + after as usize - 1, own));
            self.tokens.extend(placeholders.clone());
            self.targets.resize(self.tokens.len(), NO_TARGET);
            let seen = VisibleRows { prefix: after, own: (own - first) as u32 };
            self.seen.resize(self.tokens.len(), seen);
        }
        self.branch_targets.extend_from_slice(&branches.targets);
        if !branches.after.is_empty() {
            self.branch_levels = branches.targets.len() / branches.after.len();
        }
        self.branch_starts.push(self.branches.len());
        self.starts.push(self.tokens.len());
    }

    /// Number of tokens that branches are to say.
    pub(crate) fn num_branch_targets(&self) -> usize {
        self.branch_targets.len()
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
        let branches = self.branch_starts[range.start]..self.branch_starts[range.end];
        let levels = self.branch_levels;
        BatchView {
            tokens: &self.tokens[at.clone()],
            targets: &self.targets[at.clone()],
            seen: &self.seen[at],
            starts: &self.starts[range.start..=range.end],
            first_sequence: range.start,
            branch_targets: &self.branch_targets[branches.start * levels..branches.end * levels],
            branches: &self.branches[branches],
        }
    }
}

/// The branches of one sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Branches {
    /// Number of tokens of the sequence before each branch.
    pub after: Vec<u32>,
    /// Targets of each branch: as many tokens for one as for another.
    pub targets: Vec<u32>,
}

impl Branches {
    /// Forgets them and keeps the memory.
    pub fn clear(&mut self) {
        self.after.clear();
        self.targets.clear();
    }
}

/// Neighbouring sequences of a [`PackedBatch`].
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    /// `[N]`
    pub(crate) tokens: &'a [u32],
    /// `[N]`
    pub(crate) targets: &'a [u32],
    /// `[N]`
    seen: &'a [VisibleRows],
    /// Counted from the start of the whole batch.
    starts: &'a [usize],
    first_sequence: usize,
    branches: &'a [(usize, usize)],
    branch_targets: &'a [u32],
}

impl<'a> BatchView<'a> {
    /// Each sequence's number in the whole batch and the places of its tokens in this view.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        let (base, first) = (self.starts[0], self.first_sequence);
        let windows = self.starts.windows(2).enumerate();
        windows.map(move |(i, w)| (first + i, w[0] - base..w[1] - base))
    }

    /// Rows that each row sees of its sequence, `[N]`.
    pub(crate) fn seen(&self) -> &'a [VisibleRows] {
        self.seen
    }

    /// Number of branches.
    pub(crate) fn num_branches(&self) -> usize {
        self.branches.len()
    }

    /// The branches of all sequences, by rows of this view.
    pub(crate) fn branches(&self) -> impl ExactSizeIterator<Item = Branch<'a>> + 'a {
        let (base, branches) = (self.starts[0], self.branches);
        let levels = self.branch_targets.len() / branches.len().max(1);
        let targets = self.branch_targets;
        branches.iter().enumerate().map(move |(i, &(after, placeholders))| Branch {
            after: after - base,
            placeholders: placeholders - base,
            targets: &targets[i * levels..(i + 1) * levels],
        })
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
