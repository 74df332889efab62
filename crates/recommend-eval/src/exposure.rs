//! Spread of recommendations over the catalog: coverage, the Gini coefficient, and the share of
//! chosen items.

use std::collections::HashMap;

/// Exposure: times that each item is among the first K recommendations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    counts: HashMap<u64, u64>,
    num_items: u64,
}

impl Exposure {
    /// Counts the first `k` of each list, over a catalog of `num_items` items.
    pub fn of<'a>(lists: impl Iterator<Item = &'a [u64]>, k: usize, num_items: u64) -> Self {
        let mut counts = HashMap::new();
        for item in lists.flat_map(|list| &list[..k.min(list.len())]) {
            *counts.entry(*item).or_insert(0) += 1;
        }
        Self { counts, num_items }
    }

    /// The share of the catalog's items that are recommended to anyone: catalog coverage. 0 for an
    /// empty catalog.
    pub fn coverage(&self) -> f64 {
        self.counts.len() as f64 / self.num_items.max(1) as f64
    }

    /// The Gini coefficient of how often each item of the catalog is recommended: 0 where all are
    /// equally often, near 1 where everything recommended is one item. 0 where nothing is.
    ///
    /// With the counts `x_1 ≤ … ≤ x_n` it is `2 Σ i·x_i / (n Σ x_i) − (n + 1)/n`.
    pub fn gini(&self) -> f64 {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        counts.sort_unstable();
        let all: f64 = counts.iter().map(|&count| count as f64).sum();
        if all == 0.0 {
            return 0.0;
        }
        // Items that are never recommended come first and add nothing.
        let n = self.num_items.max(counts.len() as u64) as f64;
        let before = n - counts.len() as f64;
        let weighted = |(at, &count): (usize, &u64)| (before + at as f64 + 1.0) * count as f64;
        let weighted: f64 = counts.iter().enumerate().map(weighted).sum();
        2.0 * weighted / (n * all) - (n + 1.0) / n
    }

    /// The share of recommendations that are chosen items; 0 where there are no recommendations.
    pub fn share(&self, is_chosen: impl Fn(u64) -> bool) -> f64 {
        let all: u64 = self.counts.values().sum();
        let chosen = self.counts.iter().filter(|&(&item, _)| is_chosen(item));
        chosen.map(|(_, &count)| count).sum::<u64>() as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposure(lists: &[&[u64]], k: usize, num_items: u64) -> Exposure {
        Exposure::of(lists.iter().copied(), k, num_items)
    }

    #[test]
    fn by_hand() {
        // Of four items, 7 is first twice and 8 once.
        let lists: [&[u64]; 3] = [&[7, 8], &[7], &[8, 9]];
        let first = exposure(&lists, 1, 4);
        assert_eq!(first.coverage(), 0.5);
        assert_eq!(first.share(|item| item == 7), 2.0 / 3.0);
        // Counts 0, 0, 1, 2: 2·(3·1 + 4·2)/(4·3) − 5/4.
        assert!((first.gini() - (22.0 / 12.0 - 1.25)).abs() < 1e-12);
        assert_eq!(exposure(&lists, 2, 4).coverage(), 0.75);

        let even = exposure(&[&[1, 2], &[3, 4]], 2, 4);
        assert_eq!((even.coverage(), even.gini()), (1.0, 0.0));
        let nothing = exposure(&[], 5, 3);
        assert_eq!((nothing.coverage(), nothing.gini(), nothing.share(|_| true)), (0.0, 0.0, 0.0));
        let one: Vec<&[u64]> = vec![&[5]; 1000];
        assert!((exposure(&one, 1, 1000).gini() - 0.999).abs() < 1e-12);
    }

    /// Half the relative mean difference of all pairs, the coefficient's definition.
    #[test]
    fn gini_is_the_mean_difference() {
        let lists: [&[u64]; 4] = [&[1, 2, 3], &[1, 2], &[1, 9], &[9, 4, 1]];
        let counts = [4.0_f64, 2.0, 1.0, 2.0, 1.0, 0.0, 0.0];
        let differences: f64 = counts.iter().flat_map(|a| counts.map(|b| (a - b).abs())).sum();
        let expected = differences / (2.0 * 7.0 * counts.iter().sum::<f64>());
        assert!((exposure(&lists, 3, 7).gini() - expected).abs() < 1e-12);
    }
}
