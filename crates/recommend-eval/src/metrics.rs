//! HR@K, Recall@K and NDCG@K where one item is right.

use serde::Serialize;

/// Sums over questions, each with one right item.
///
/// With one right item HR@K and Recall@K are the same number: the share of questions whose item is
/// among the first K. NDCG@K weighs a hit at place r, from 0, by `1 / log2(r + 2)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankingMetrics {
    questions: usize,
    /// Number of right items at each place; the length is the largest K.
    hits_at: Vec<usize>,
}

/// The metrics at one K.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MetricsAt {
    /// Number of recommendations that count.
    pub k: usize,
    /// HR@K, which is Recall@K.
    pub hit_rate: f64,
    /// NDCG@K.
    pub ndcg: f64,
}

impl RankingMetrics {
    /// Counts for K up to `max_k`.
    pub fn new(max_k: usize) -> Self {
        Self { questions: 0, hits_at: vec![0; max_k] }
    }

    /// Adds a question whose right item stood at `place`, from 0, if it was recommended.
    pub fn add(&mut self, place: Option<usize>) {
        self.questions += 1;
        if let Some(count) = place.and_then(|place| self.hits_at.get_mut(place)) {
            *count += 1;
        }
    }

    /// Adds all of another's questions.
    pub fn merge(&mut self, other: &Self) {
        self.questions += other.questions;
        for (count, more) in self.hits_at.iter_mut().zip(&other.hits_at) {
            *count += more;
        }
    }

    /// Questions asked.
    pub fn questions(&self) -> usize {
        self.questions
    }

    /// The metrics at `k`; 0 where nothing was asked.
    ///
    /// # Panics
    /// When `k` is more than was counted.
    pub fn at(&self, k: usize) -> MetricsAt {
        let hits = &self.hits_at[..k];
        let share = |sum: f64| if self.questions == 0 { 0.0 } else { sum / self.questions as f64 };
        let gain = |(place, &count): (usize, &usize)| count as f64 / ((place + 2) as f64).log2();
        MetricsAt {
            k,
            hit_rate: share(hits.iter().sum::<usize>() as f64),
            ndcg: share(hits.iter().enumerate().map(gain).sum()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let mut metrics = RankingMetrics::new(10);
        for place in [Some(0), Some(2), Some(9), Some(30), None] {
            metrics.add(place);
        }
        assert_eq!(metrics.at(1).hit_rate, 0.2);
        assert_eq!(metrics.at(5).hit_rate, 0.4);
        assert_eq!(metrics.at(10).hit_rate, 0.6);
        assert!((metrics.at(5).ndcg - (1.0 + 0.5) / 5.0).abs() < 1e-12);
        assert!((metrics.at(10).ndcg - (1.5 + 1.0 / 11_f64.log2()) / 5.0).abs() < 1e-12);
        let mut twice = metrics.clone();
        twice.merge(&metrics);
        assert_eq!((twice.questions(), twice.at(5)), (10, metrics.at(5)));
        assert_eq!(RankingMetrics::new(5).at(5).hit_rate, 0.0);
    }
}
