//! Training sequences from user histories.

use palmette_core::TokenId;
use palmette_recommend::PromptFormat;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::data::{Dataset, Example};

/// Variation of histories between epochs, so that small data is not learnt by heart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Augmentation {
    /// Share of examples that begin at a random item rather than at the first.
    pub crop: f32,
    /// Share of items left out of an example.
    pub drop_items: f32,
}

/// One example per history: the prompt of all its items, each code predicted from what is before.
///
/// A history longer than a prompt holds gives a random window of it in each epoch.
#[derive(Debug)]
pub struct HistoryDataset {
    /// Semantic IDs of each history, oldest item first; none is empty.
    histories: Vec<Vec<Vec<u32>>>,
    format: PromptFormat,
    augmentation: Augmentation,
    has_branches: bool,
}

impl HistoryDataset {
    /// The examples of `histories`, given as semantic IDs. Empty ones are left out.
    pub fn new(
        mut histories: Vec<Vec<Vec<u32>>>,
        format: PromptFormat,
        augmentation: Augmentation,
    ) -> Self {
        histories.retain(|history| !history.is_empty());
        Self { histories, format, augmentation, has_branches: false }
    }

    /// Adds a branch for every item, so that a draft head learns to say it.
    #[must_use]
    pub fn with_branches(self) -> Self {
        Self { has_branches: true, ..self }
    }

    /// The items of one example: a window, then what is dropped from it. At least one is left.
    fn draw<'a>(&self, history: &'a [Vec<u32>], source: &mut ChaCha8Rng) -> Vec<&'a [u32]> {
        let most = self.format.max_history_items;
        let latest_start = history.len().saturating_sub(most);
        let start = match chance(source, self.augmentation.crop) {
            // Leave at least two items where there are two, so that there is a history to read.
            true => below(source, history.len().saturating_sub(1).max(latest_start + 1)),
            false => below(source, latest_start + 1),
        };
        let window = &history[start..history.len().min(start + most)];
        let last = window.len() - 1;
        let keep = |&(place, _): &(usize, &'a Vec<u32>)| {
            !chance(source, self.augmentation.drop_items) || place == last
        };
        window.iter().enumerate().filter(keep).map(|(_, codes)| codes.as_slice()).collect()
    }
}

impl Dataset for HistoryDataset {
    fn num_examples(&self) -> usize {
        self.histories.len()
    }

    fn example(&self, seed: u64, epoch: u64, index: usize, example: &mut Example) {
        let stream = seed ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut source = ChaCha8Rng::seed_from_u64(stream ^ (index as u64).rotate_left(32));
        let items = self.draw(&self.histories[index], &mut source);
        let mut prompt = Vec::new();
        self.format.write_prompt(&items, &mut prompt);
        let tokens: Vec<u32> = prompt.into_iter().map(|TokenId(token)| token).collect();
        example.set_next_token(&tokens);
        if self.has_branches {
            let (levels, bos) =
                (self.format.levels.len(), usize::from(self.format.bos_token.is_some()));
            // A branch comes after a token.
            let first = usize::from(bos == 0);
            let after = |item: usize| (bos + item * levels) as u32;
            example.branches.targets.extend_from_slice(&tokens[after(first) as usize..]);
            example.branches.after.extend((first..items.len()).map(after));
        }
    }
}

/// True for a `share` of draws.
fn chance(source: &mut ChaCha8Rng, share: f32) -> bool {
    (source.next_u32() >> 8) as f32 / ((1 << 24) as f32) < share
}

fn below(source: &mut ChaCha8Rng, bound: usize) -> usize {
    ((u128::from(source.next_u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use palmette_recommend::LevelFormat;

    use super::*;

    fn dataset(len: u32, most: usize, augmentation: Augmentation) -> HistoryDataset {
        let level = |first_token| LevelFormat::run("a", first_token, 100);
        let format = PromptFormat {
            bos_token: Some(1),
            pad_token: Some(0),
            end_tokens: Vec::new(),
            levels: vec![level(2), level(102)],
            max_history_items: most,
            history_step: None,
            witnesses: Vec::new(),
        };
        let history = (0..len).map(|item| vec![item, item]).collect();
        HistoryDataset::new(vec![vec![], history], format, augmentation)
    }

    /// The first codes of an example's items, the last target included.
    fn items(data: &HistoryDataset, epoch: u64) -> Vec<u32> {
        let mut example = Example::default();
        data.example(3, epoch, 0, &mut example);
        assert_eq!(example.tokens[0], 1, "a prompt begins with its first token");
        example.targets.iter().step_by(2).map(|token| token - 2).collect()
    }

    #[test]
    fn whole_histories_are_the_same_every_epoch() {
        let data = dataset(5, 9, Augmentation { crop: 0.0, drop_items: 0.0 });
        assert_eq!(data.num_examples(), 1, "the empty history is left out");
        for epoch in 0..5 {
            assert_eq!(items(&data, epoch), [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn a_branch_says_what_comes_after_its_prefix() {
        let data = dataset(3, 9, Augmentation { crop: 0.0, drop_items: 0.0 }).with_branches();
        let mut example = Example::default();
        data.example(3, 0, 0, &mut example);
        assert_eq!(example.tokens, [1, 2, 102, 3, 103, 4]);
        assert_eq!(example.branches.after, [1, 3, 5]);
        assert_eq!(example.branches.targets, [2, 102, 3, 103, 4, 104]);
        // Without a token at the beginning nothing is before the first item.
        let mut data = data;
        data.format.bos_token = None;
        data.example(3, 0, 0, &mut example);
        assert_eq!(example.tokens, [2, 102, 3, 103, 4]);
        assert_eq!(example.branches.after, [2, 4]);
        assert_eq!(example.branches.targets, [3, 103, 4, 104]);
    }

    #[test]
    fn long_histories_give_every_window() {
        let data = dataset(5, 3, Augmentation { crop: 0.0, drop_items: 0.0 });
        let windows: BTreeSet<Vec<u32>> = (0..60).map(|epoch| items(&data, epoch)).collect();
        let all = [vec![0, 1, 2], vec![1, 2, 3], vec![2, 3, 4]];
        assert_eq!(windows, BTreeSet::from(all));
    }

    #[test]
    fn crops_and_dropped_items_keep_order_and_the_last_item() {
        let data = dataset(6, 9, Augmentation { crop: 0.5, drop_items: 0.3 });
        let drawn: BTreeSet<Vec<u32>> = (0..300).map(|epoch| items(&data, epoch)).collect();
        assert!(drawn.len() > 10);
        assert!(drawn.contains(&vec![0, 1, 2, 3, 4, 5]));
        for window in &drawn {
            assert!(window.is_sorted() && window.last() == Some(&5), "{window:?}");
        }
    }
}
