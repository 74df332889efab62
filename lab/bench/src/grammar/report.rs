//! Report over many cases.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CaseOutcome, Floor};
use crate::machine::Machine;

/// Correctness, times and sizes over all cases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrammarReport {
    /// Cases.
    pub schemas: usize,
    /// Cases whose grammar could be made ready.
    pub compiled: usize,
    /// Cases whose grammar could not.
    pub unsupported: usize,
    /// Reasons of the latter, most frequent first.
    pub unsupported_reasons: Vec<Reason>,
    /// Valid texts of compiled grammars.
    pub valid: usize,
    /// Valid texts that were refused. A constraint must have none.
    pub valid_rejected: usize,
    /// Invalid texts of compiled grammars.
    pub invalid: usize,
    /// Invalid texts all of whose tokens and the end were allowed.
    pub invalid_accepted: usize,
    /// The cases with such texts.
    pub wrong: Vec<String>,
    /// Compilation.
    pub compile_ms: Option<Percentiles>,
    /// Finding masks out ahead.
    pub ahead_ms: Option<Percentiles>,
    /// Masks of first walks.
    pub mask_us_cold: Option<Percentiles>,
    /// Masks, the fastest of all walks.
    pub mask_us: Option<Percentiles>,
    /// Commits, the fastest of all walks.
    pub commit_us: Option<Percentiles>,
    /// Mask and commit, the fastest of all walks.
    pub step_us: Option<Percentiles>,
    /// Memory of a compiled grammar after its walks.
    pub bytes: Option<Percentiles>,
    /// Masks of first walks that were found by walking the vocabulary; `None` where no case tells.
    pub walked: Option<u64>,
    /// Rows of a mask store after the walks of a grammar; `None` where masks come from elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Percentiles>,
    /// Times of copying a row.
    pub floor: Floor,
    /// Number of times that each text was followed.
    pub walks: usize,
    /// Machine of the measurement.
    pub machine: Machine,
}

/// A reason why grammars are not supported, with its frequency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The message.
    pub reason: String,
    /// Number of grammars.
    pub cases: usize,
}

/// A distribution: each value is one of those measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Number of values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Half are no greater.
    pub p50: f64,
    /// 90 of 100 are no greater.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1,000.
    pub p999: f64,
    /// 9,999 of 10,000.
    pub p9999: f64,
    /// The greatest.
    pub max: f64,
}

impl GrammarReport {
    /// Sums up texts that were followed `walks` times with masks of `num_words` words, and measures
    /// the floor.
    pub fn new(outcomes: &[CaseOutcome], walks: usize, num_words: usize) -> Self {
        let compiled = || outcomes.iter().filter(|outcome| outcome.compiled);
        let texts = |valid: bool| {
            let texts = compiled().flat_map(|outcome| &outcome.texts);
            texts.filter(move |text| text.valid == valid)
        };
        let wrong = compiled()
            .filter(|outcome| outcome.texts.iter().any(|text| text.accepted != text.valid));
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for error in outcomes.iter().filter_map(|outcome| outcome.error.as_deref()) {
            *reasons.entry(error).or_default() += 1;
        }
        let mut unsupported_reasons: Vec<_> = reasons
            .into_iter()
            .map(|(reason, cases)| Reason { reason: reason.to_owned(), cases })
            .collect();
        unsupported_reasons.sort_by_key(|reason| std::cmp::Reverse(reason.cases));
        let column = |values: fn(&CaseOutcome) -> &[f64]| {
            Percentiles::of(compiled().flat_map(values).copied().collect())
        };
        // Peers may not know.
        let bytes = compiled().map(|outcome| outcome.bytes as f64).filter(|&bytes| bytes > 0.0);
        Self {
            schemas: outcomes.len(),
            compiled: compiled().count(),
            unsupported: outcomes.iter().filter(|outcome| !outcome.compiled).count(),
            unsupported_reasons,
            valid: texts(true).count(),
            valid_rejected: texts(true).filter(|text| !text.accepted).count(),
            invalid: texts(false).count(),
            invalid_accepted: texts(false).filter(|text| text.accepted).count(),
            wrong: wrong.map(|outcome| outcome.name.clone()).collect(),
            compile_ms: Percentiles::of(compiled().map(|outcome| outcome.compile_ms).collect()),
            ahead_ms: Percentiles::of(compiled().map(|outcome| outcome.ahead_ms).collect()),
            mask_us_cold: column(|outcome| &outcome.mask_us_cold),
            mask_us: column(|outcome| &outcome.mask_us),
            commit_us: column(|outcome| &outcome.commit_us),
            step_us: column(|outcome| &outcome.step_us),
            bytes: Percentiles::of(bytes.collect()),
            walked: compiled()
                .filter_map(|outcome| outcome.walked)
                .fold(None, |all, walked| Some(all.unwrap_or(0) + walked)),
            rows: Percentiles::of(compiled().filter_map(|of| Some(of.rows? as f64)).collect()),
            floor: Floor::measure(num_words),
            walks,
            machine: Machine::here(),
        }
    }
}

impl Percentiles {
    /// Percentiles of `values`; `None` without any.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let max = *values.last()?;
        let at = |share: f64| values[((share * count as f64).ceil() as usize).clamp(1, count) - 1];
        Some(Self {
            count,
            mean: values.iter().sum::<f64>() / count as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Percentiles;

    #[test]
    fn percentiles_are_values() {
        let percentiles = Percentiles::of((1..=1000).rev().map(f64::from).collect()).unwrap();
        assert_eq!((percentiles.p50, percentiles.p99, percentiles.p999), (500.0, 990.0, 999.0));
        assert_eq!((percentiles.p9999, percentiles.max, percentiles.count), (1000.0, 1000.0, 1000));
        assert_eq!(Percentiles::of(Vec::new()), None);
        assert_eq!(Percentiles::of(vec![3.0]).unwrap().p50, 3.0);
    }
}
