//! Sources of sequences: data sets by epoch and place.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::network::{Branches, NO_TARGET};

/// One sequence and what to predict along it; filled again and again, so that it keeps its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Example {
    /// Tokens that the model reads.
    pub tokens: Vec<u32>,
    /// `targets[i]` is to be predicted after `tokens[..=i]`; [`NO_TARGET`] for nothing.
    pub targets: Vec<u32>,
    /// Targets of a draft head, and after which tokens; none without a draft head.
    pub branches: Branches,
}

impl Example {
    /// Makes this the usual example of a sequence: every token is predicted from those before it.
    pub fn set_next_token(&mut self, sequence: &[u32]) {
        self.clear();
        if let Some((_, targets)) = sequence.split_first() {
            self.tokens.extend_from_slice(&sequence[..targets.len()]);
            self.targets.extend_from_slice(targets);
        }
    }

    /// Makes this an example that only predicts the tokens of `sequence` from `from` on.
    pub fn set_next_token_from(&mut self, sequence: &[u32], from: usize) {
        self.set_next_token(sequence);
        let context = from.saturating_sub(1).min(self.targets.len());
        self.targets[..context].fill(NO_TARGET);
    }

    /// Forgets the sequence and keeps the memory.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.targets.clear();
        self.branches.clear();
    }
}

/// The examples of a run.
///
/// Laws: all methods are functions of their arguments alone, since a resumed run asks again and
/// must get the same answers; [`Dataset::order`] gives every example exactly once.
pub trait Dataset {
    /// Number of examples of an epoch.
    fn num_examples(&self) -> usize;

    /// Replaces `order` by the order in which an epoch goes through the examples.
    ///
    /// As given: a shuffle that depends on seed and epoch.
    fn order(&self, seed: u64, epoch: u64, order: &mut Vec<u32>) {
        shuffled(seed, epoch, self.num_examples(), order);
    }

    /// Replaces `example` by number `index`; a crop or an augmentation may depend on the epoch.
    fn example(&self, seed: u64, epoch: u64, index: usize, example: &mut Example);
}

/// Replaces `order` by the numbers below `count` in an order that depends on seed and epoch.
pub(crate) fn shuffled(seed: u64, epoch: u64, count: usize, order: &mut Vec<u32>) {
    order.clear();
    order.extend(0..count as u32);
    let mut source = ChaCha8Rng::seed_from_u64(seed ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for i in (1..order.len()).rev() {
        let other = (u128::from(source.next_u64()) * (i as u128 + 1)) >> 64;
        order.swap(i, other as usize);
    }
}

impl<D: Dataset + ?Sized> Dataset for &D {
    fn num_examples(&self) -> usize {
        (**self).num_examples()
    }

    fn order(&self, seed: u64, epoch: u64, order: &mut Vec<u32>) {
        (**self).order(seed, epoch, order);
    }

    fn example(&self, seed: u64, epoch: u64, index: usize, example: &mut Example) {
        (**self).example(seed, epoch, index, example);
    }
}

/// Examples held in memory, the same in every epoch.
///
/// ```
/// use palmette_train::{Dataset, Example, VecDataset};
///
/// let data = VecDataset::next_token(&[vec![1, 2, 3], vec![4, 5]]);
/// let mut example = Example::default();
/// data.example(0, 0, 0, &mut example);
/// assert_eq!((example.tokens, example.targets), (vec![1, 2], vec![2, 3]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct VecDataset {
    examples: Vec<Example>,
}

impl VecDataset {
    /// These examples.
    pub fn new(examples: Vec<Example>) -> Self {
        Self { examples }
    }

    /// One example per sequence: every token is predicted from those before it.
    pub fn next_token<S: AsRef<[u32]>>(sequences: &[S]) -> Self {
        let example = |sequence: &S| {
            let mut example = Example::default();
            example.set_next_token(sequence.as_ref());
            example
        };
        Self { examples: sequences.iter().map(example).collect() }
    }
}

impl Dataset for VecDataset {
    fn num_examples(&self) -> usize {
        self.examples.len()
    }

    fn example(&self, _seed: u64, _epoch: u64, index: usize, example: &mut Example) {
        let source = &self.examples[index];
        example.clear();
        example.tokens.extend_from_slice(&source.tokens);
        example.targets.extend_from_slice(&source.targets);
        example.branches.after.extend_from_slice(&source.branches.after);
        example.branches.targets.extend_from_slice(&source.branches.targets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_holds_every_example_once_in_its_own_order() {
        let data = VecDataset::next_token(&vec![[1, 2]; 50]);
        let order = |seed, epoch| {
            let mut order = vec![7; 3];
            data.order(seed, epoch, &mut order);
            order
        };
        let mut sorted = order(1, 0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<_>>());
        assert_eq!(order(1, 0), order(1, 0));
        assert_ne!(order(1, 0), order(1, 1));
        assert_ne!(order(1, 0), order(2, 0));
    }

    #[test]
    fn targets_may_begin_late() {
        let mut example = Example::default();
        example.set_next_token_from(&[5, 6, 7, 8], 2);
        assert_eq!(example.tokens, [5, 6, 7]);
        assert_eq!(example.targets, [NO_TARGET, 7, 8]);
        example.set_next_token(&[]);
        assert_eq!(example, Example::default());
    }
}
