//! Overlap of the answers of two recommenders.

use std::collections::HashSet;
use std::sync::Arc;

use palmette_decode::run_on;
use palmette_recommend::{History, Recommendations, Recommender, Request, SpelledView, Worker};
use serde::Serialize;

use crate::evaluate::{EvalError, EvalOptions, check_k, in_shares};
use crate::metrics::RankingMetrics;
use crate::split::Question;

/// The answers of two recommenders to the same questions: of a model, say, and of the same with
/// rounded weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlap {
    /// Metrics of the right items in the reference's answers.
    pub reference: RankingMetrics,
    /// Metrics of the right items in the other's answers.
    pub changed: RankingMetrics,
    /// Beam width of both: the options' own, or `k` where that is more.
    pub beam_width: usize,
    /// One a question.
    answers: Vec<Answers>,
}

/// Answers of both to one question: numbers of the view, best first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answers {
    reference: Vec<u64>,
    changed: Vec<u64>,
}

/// Agreement of the first `k` items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OverlapAt {
    /// Number of items that count.
    pub k: usize,
    /// The share of the reference's first `k` that is among the other's first `k`: the mean over
    /// questions, 1 for one to which the reference knew no answer.
    pub shared: f64,
    /// The share of questions whose first `k` are the same items in the same order.
    pub same_order: f64,
}

/// Asks both recommenders every question; `answered` is told how many have been, from several
/// threads.
///
/// Both recommend from one view, whose numbers are compared and are those of the questions' items.
/// The result does not depend on the number of threads.
///
/// # Errors
/// When the options are unusable or a model fails.
///
/// # Panics
/// When the two spell semantic IDs by different formats.
pub fn overlap(
    reference: &Arc<Recommender>,
    changed: &Arc<Recommender>,
    view: &Arc<SpelledView>,
    questions: &[Question<'_>],
    options: &EvalOptions,
    answered: impl Fn(usize) + Sync,
) -> Result<Overlap, EvalError> {
    assert_eq!(reference.format(), changed.format(), "semantic IDs are spelled alike");
    check_k(options.k)?;
    let EvalOptions { mode, k, include_seen, .. } = *options;
    let beam_width = options.beam_width.max(k);
    let parts = in_shares(questions, options.threads, answered, |questions, answered| {
        let mut reference = Worker::new(Arc::clone(reference), 1);
        let mut changed = Worker::new(Arc::clone(changed), 1);
        let mut answers = Vec::with_capacity(questions.len());
        for question in questions {
            let request = Request {
                beam_width,
                mode,
                include_seen,
                view: Some(view),
                fields: question.fields,
                ..Request::new(History::Numbers(question.history), k)
            };
            let numbers =
                |answer: Recommendations| answer.items.iter().map(|item| item.number).collect();
            answers.push(Answers {
                reference: numbers(reference.recommend(&request, &mut run_on)?),
                changed: numbers(changed.recommend(&request, &mut run_on)?),
            });
            answered();
        }
        Ok(answers)
    })?;
    let answers = parts.concat();
    let metrics = |of: fn(&Answers) -> &[u64]| {
        let mut metrics = RankingMetrics::new(k);
        for (answers, question) in answers.iter().zip(questions) {
            metrics.add(of(answers).iter().position(|&number| number == question.target));
        }
        metrics
    };
    Ok(Overlap {
        reference: metrics(|answers| &answers.reference),
        changed: metrics(|answers| &answers.changed),
        beam_width,
        answers,
    })
}

impl Overlap {
    /// Agreement of the first `k` items; complete where nothing was asked.
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
            let found = reference.iter().filter(|number| changed.contains(number)).count();
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
        let first = |numbers: &'_ [u64]| k.min(numbers.len());
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
