//! How much of what one recommender answers does another answer too?

use std::collections::HashSet;

use palmette_recommend::{Recommendations, Recommender, Request, WorkerOptions};
use serde::Serialize;

use crate::evaluate::{EvalError, EvalOptions, check_k, in_shares};
use crate::metrics::RankingMetrics;
use crate::split::Question;

/// The answers of two recommenders to the same questions: of a model, say, and of the same with rounded weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// Where the right items stood in the reference's answers.
    pub reference: RankingMetrics,
    /// Where they stood in the other's.
    pub changed: RankingMetrics,
    /// Beam width of both: the options' own, or `k` where that is more.
    pub beam_width: usize,
    /// One a question.
    answers: Vec<Answers>,
}

/// What both answered to a question: ranks, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answers {
    reference: Vec<u64>,
    changed: Vec<u64>,
}

/// How far the first `k` items agree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OverlapAt {
    /// How many items count.
    pub k: usize,
    /// The share of the reference's first `k` that is among the other's first `k`: the mean over questions, 1 for one
    /// to which the reference knew no answer.
    pub shared: f64,
    /// The share of questions whose first `k` are the same items in the same order.
    pub same_order: f64,
}

/// Asks both recommenders every question; `answered` is told how many have been, from several threads.
///
/// Both recommend from one catalog, whose ranks are compared. The result does not depend on the number of threads.
///
/// # Errors
/// When the options are unusable or a model fails.
///
/// # Panics
/// When the two have different catalogs.
pub fn overlap(
    reference: &Recommender,
    changed: &Recommender,
    questions: &[Question<'_>],
    options: &EvalOptions,
    answered: impl Fn(usize) + Sync,
) -> Result<Overlap, EvalError> {
    let catalogs = [reference.catalog(), changed.catalog()];
    assert!(std::ptr::eq(&**catalogs[0], &**catalogs[1]), "ranks of different catalogs");
    check_k(options.k)?;
    let EvalOptions { mode, k, include_seen, .. } = *options;
    let beam = WorkerOptions { beam_width: options.beam_width.max(k), threads: 1 };
    let parts = in_shares(questions, options.threads, answered, |questions, answered| {
        let mut reference = reference.worker_in(mode, beam)?;
        let mut changed = changed.worker_in(mode, beam)?;
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            let request = Request { history: question.history, k, include_seen, items: None };
            let ranks =
                |answer: Recommendations| answer.items.iter().map(|item| item.rank).collect();
            answers.push(Answers {
                reference: ranks(reference.recommend(&request, |_| {})?),
                changed: ranks(changed.recommend(&request, |_| {})?),
            });
            answered();
        }
        Ok(answers)
    })?;
    let answers = parts.concat();
    let metrics = |of: fn(&Answers) -> &[u64]| {
        let mut metrics = RankingMetrics::new(k);
        for (answers, question) in answers.iter().zip(questions) {
            metrics.add(of(answers).iter().position(|&rank| rank == question.target));
        }
        metrics
    };
    Ok(Overlap {
        reference: metrics(|answers| &answers.reference),
        changed: metrics(|answers| &answers.changed),
        beam_width: beam.beam_width,
        answers,
    })
}

impl Overlap {
    /// How far the first `k` items agree; everything agrees where nothing was asked.
    ///
    /// # Panics
    /// When `k` is 0.
    pub fn at(&self, k: usize) -> OverlapAt {
        assert!(k > 0, "the first 0 items agree in nothing");
        if self.answers.is_empty() {
            return OverlapAt { k, shared: 1.0, same_order: 1.0 };
        }
        let (mut shared, mut same) = (0.0, 0_usize);
        for answers in &self.answers {
            let (reference, changed) = answers.first(k);
            same += usize::from(reference == changed);
            let changed: HashSet<u64> = changed.iter().copied().collect();
            let found = reference.iter().filter(|rank| changed.contains(rank)).count();
            shared += match reference.len() {
                0 => 1.0,
                all => found as f64 / all as f64,
            };
        }
        let questions = self.answers.len() as f64;
        OverlapAt { k, shared: shared / questions, same_order: same as f64 / questions }
    }
}

impl Answers {
    /// The first `k` of both, or as many as there are.
    fn first(&self, k: usize) -> (&[u64], &[u64]) {
        let first = |ranks: &'_ [u64]| k.min(ranks.len());
        (&self.reference[..first(&self.reference)], &self.changed[..first(&self.changed)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let of = |pairs: &[(&[u64], &[u64])]| Overlap {
            reference: RankingMetrics::default(),
            changed: RankingMetrics::default(),
            beam_width: 4,
            answers: pairs
                .iter()
                .map(|(reference, changed)| Answers {
                    reference: reference.to_vec(),
                    changed: changed.to_vec(),
                })
                .collect(),
        };
        let overlap =
            of(&[(&[1, 2, 3, 4], &[1, 2, 4, 5]), (&[7, 8], &[8, 7, 9]), (&[], &[3]), (&[6], &[])]);
        let check = |k, shared, same_order| {
            assert_eq!(overlap.at(k), OverlapAt { k, shared, same_order }, "at {k}");
        };
        // 1 of 1, 0 of 1, 1 for nothing, 0 of 1; the same only in the first.
        check(1, 2.0 / 4.0, 0.25);
        // 2 of 2, 2 of 2 in another order.
        check(2, 3.0 / 4.0, 0.25);
        // 2 of 3; the second's 2 are still both there.
        check(3, (2.0 / 3.0 + 2.0) / 4.0, 0.0);
        check(9, (3.0 / 4.0 + 2.0) / 4.0, 0.0);
        assert_eq!(of(&[]).at(1), OverlapAt { k: 1, shared: 1.0, same_order: 1.0 });
    }
}
