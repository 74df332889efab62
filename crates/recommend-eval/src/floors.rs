//! Recommenders without a model: what a trained one has to beat.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

/// A recommender that needs no training beyond counting.
pub trait Floor {
    /// Name in reports.
    fn name(&self) -> &'static str;

    /// The best `k` items after `history`, those of it among them only if `include_seen`; fewer if
    /// it knows no more.
    ///
    /// `own` is what was counted of the user whose history it is, where that knows what came after:
    /// of it no more than `history` counts. Empty where nothing is to be taken out.
    fn recommend(&self, history: &[u64], own: &[u64], k: usize, include_seen: bool) -> Vec<u64>;
}

/// The most bought items, the same for everybody.
#[derive(Clone, Debug)]
pub struct Popularity {
    /// All items and how often they were bought, most first; ties by number.
    by_count: Vec<(u64, u32)>,
}

impl Popularity {
    /// Counts histories; `numbers` are those of all items of their view, and no others are ever
    /// recommended.
    pub fn fit<'a>(
        histories: impl Iterator<Item = &'a [u64]>,
        numbers: impl Iterator<Item = u64>,
    ) -> Self {
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for &item in histories.flatten() {
            *counts.entry(item).or_insert(0) += 1;
        }
        let with_count = |item: u64| (item, counts.get(&item).copied().unwrap_or(0));
        let mut by_count: Vec<(u64, u32)> = numbers.map(with_count).collect();
        by_count.sort_unstable_by_key(|&(item, count)| (Reverse(count), item));
        Self { by_count }
    }
}

impl Floor for Popularity {
    fn name(&self) -> &'static str {
        "popularity"
    }

    fn recommend(&self, history: &[u64], own: &[u64], k: usize, include_seen: bool) -> Vec<u64> {
        let seen: HashSet<u64> = history.iter().copied().collect();
        let is_allowed = |item: u64| include_seen || !seen.contains(&item);
        // How often the user bought an item later.
        let mut own_later: HashMap<u64, u32> = HashMap::new();
        for &item in own.iter().filter(|&&item| is_allowed(item)) {
            *own_later.entry(item).or_insert(0) += 1;
        }
        for item in history {
            own_later.entry(*item).and_modify(|count| *count = count.saturating_sub(1));
        }
        own_later.retain(|_, count| *count > 0);
        let allowed = self.by_count.iter().filter(|&&(item, _)| is_allowed(item));
        // Counts only fall, so the first `k` of those that keep theirs and all others hold the
        // best.
        let (mut best, mut kept) = (Vec::new(), 0);
        for &(item, count) in allowed {
            match own_later.get(&item) {
                Some(&later) => best.push((item, count.saturating_sub(later))),
                None if kept < k => {
                    kept += 1;
                    best.push((item, count));
                }
                None if best.len() - kept == own_later.len() => break,
                None => {}
            }
        }
        best.sort_unstable_by_key(|&(item, count)| (Reverse(count), item));
        best.into_iter().take(k).map(|(item, _)| item).collect()
    }
}

/// Item-item collaborative filtering: items that the same users bought, by cosine similarity, with
/// older items of the history counting less.
///
/// `similarity(a, b) = users with both / sqrt(users with a · users with b)`; an item's score is the
/// sum of its similarities to the history's items, each times [`DECAY`](Self::DECAY) to the power
/// of its age in items. Ties by number.
#[derive(Clone, Debug)]
pub struct ItemItem {
    /// Per item: users that have it.
    counts: Vec<u32>,
    /// Per item: others, and users that have both.
    neighbours: Vec<Vec<(u64, u32)>>,
}

impl ItemItem {
    /// Factor by which an item counts less than the one after it.
    pub const DECAY: f32 = 0.7;

    /// Limit on the items of one user that are paired: the most recent distinct ones. Pairs grow
    /// with the square, and a history of tens of thousands of items says little about any two.
    pub const MAX_PAIRED: usize = 1000;

    /// Counts users and pairs over a view whose item numbers are less than `num_numbers`; only
    /// items that some history has are ever recommended. Cost: the sum of the squares of the
    /// histories' lengths, up to `MAX_PAIRED`.
    pub fn fit<'a>(histories: impl Iterator<Item = &'a [u64]> + Clone, num_numbers: u64) -> Self {
        let mut counts = vec![0_u32; num_numbers as usize];
        let mut pairs: Vec<HashMap<u64, u32>> = vec![HashMap::new(); num_numbers as usize];
        for history in histories {
            let items = Self::paired(history);
            for (at, &a) in items.iter().enumerate() {
                counts[a as usize] += 1;
                for &b in &items[at + 1..] {
                    *pairs[a as usize].entry(b).or_insert(0) += 1;
                    *pairs[b as usize].entry(a).or_insert(0) += 1;
                }
            }
        }
        let sorted = |others: HashMap<u64, u32>| {
            let mut others: Vec<(u64, u32)> = others.into_iter().collect();
            others.sort_unstable_by_key(|&(item, _)| item);
            others
        };
        Self { counts, neighbours: pairs.into_iter().map(sorted).collect() }
    }

    /// The items of a history that are paired, each once, the most recent first.
    fn paired(history: &[u64]) -> Vec<u64> {
        let mut seen = HashSet::new();
        let distinct = history.iter().rev().filter(|&&item| seen.insert(item));
        distinct.take(Self::MAX_PAIRED).copied().collect()
    }
}

impl Floor for ItemItem {
    fn name(&self) -> &'static str {
        "item-item"
    }

    fn recommend(&self, history: &[u64], own: &[u64], k: usize, include_seen: bool) -> Vec<u64> {
        let seen: HashSet<u64> = history.iter().copied().collect();
        let own: HashSet<u64> = Self::paired(own).into_iter().collect();
        let mut scores: HashMap<u64, f32> = HashMap::new();
        let mut weight = 1.0;
        for &item in history.iter().rev() {
            for &(other, both) in &self.neighbours[item as usize] {
                let is_seen = seen.contains(&other);
                if is_seen && !include_seen {
                    continue;
                }
                // The user has the other one, but only later.
                let is_later = !is_seen && own.contains(&other);
                let both = both - u32::from(is_later && own.contains(&item));
                if both == 0 {
                    continue;
                }
                let count = self.counts[other as usize] - u32::from(is_later);
                let product = f64::from(self.counts[item as usize]) * f64::from(count);
                let similarity = (f64::from(both) / product.sqrt()) as f32;
                *scores.entry(other).or_insert(0.0) += weight * similarity;
            }
            weight *= Self::DECAY;
        }
        let mut scored: Vec<(u64, f32)> = scores.into_iter().collect();
        scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.into_iter().take(k).map(|(item, _)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORIES: [&[u64]; 4] = [&[0, 1, 2], &[0, 1], &[3, 4], &[0, 2, 1]];

    #[test]
    fn the_most_bought_unseen_items() {
        let popularity = Popularity::fit(HISTORIES.into_iter(), 0..6);
        assert_eq!(popularity.recommend(&[], &[], 10, false), [0, 1, 2, 3, 4, 5]);
        assert_eq!(popularity.recommend(&[1, 3], &[], 3, false), [0, 2, 4]);
        assert_eq!(popularity.recommend(&[1, 3], &[], 3, true), [0, 1, 2]);
        // Numbers of items that are gone are skipped, and the others need not come in order.
        let sparse = Popularity::fit(HISTORIES.into_iter(), [9, 3, 1, 7].into_iter());
        assert_eq!(sparse.recommend(&[], &[], 10, false), [1, 3, 7, 9]);
    }

    #[test]
    fn similar_items_by_hand() {
        let floor = ItemItem::fit(HISTORIES.into_iter(), 6);
        // 0 and 1 together 3 of 3 times; 0 and 2 twice of 3 and 2.
        assert_eq!(floor.recommend(&[0], &[], 10, false), [1, 2]);
        // After 3 then 0: 4 is wholly similar to 3, but 3 is one item older: 1.0, 0.816, 0.7.
        assert_eq!(floor.recommend(&[3, 0], &[], 10, false), [1, 2, 4]);
        assert_eq!(floor.recommend(&[0, 3], &[], 10, false), [4, 1, 2]);
        assert!(floor.recommend(&[5], &[], 10, false).is_empty());
        // 3 and 4 are each other's only neighbour.
        assert_eq!(floor.recommend(&[3, 4], &[], 10, true), [3, 4]);
    }

    #[test]
    fn a_user_counts_once_however_often_they_bought() {
        let again: [&[u64]; 3] = [&[0, 0, 1, 1, 0], &[0, 2], &[0, 2]];
        let floor = ItemItem::fit(again.into_iter(), 3);
        // 0 and 2: 2 / sqrt(3 · 2) = 0.82; 0 and 1: 1 / sqrt(3 · 1) = 0.58.
        assert_eq!(floor.recommend(&[0], &[], 2, false), [2, 1]);
    }
}
