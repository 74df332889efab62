//! Bounds on what searches missed, against exhaustive search.

use std::num::NonZeroUsize;

use palmette_core::{Constraint, TokenId};
use palmette_decode::{
    BeamSearch, DecodeError, Extension, Gains, HostBackend, LogitsSource, Objective, Pass, Step,
    StepBackend, run_on,
};
use palmette_testkit::logits::{TableLogits, TableSource};
use palmette_testkit::search::{Scored, exhaustive_with_gains};
use palmette_testkit::{SequenceSet, generate};
use proptest::prelude::*;

/// A backend that tells of a selection what it kept, as one on a device does.
struct KeptAlone(HostBackend<TableSource>);

impl StepBackend for KeptAlone {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        self.0.num_tokens()
    }

    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), DecodeError> {
        self.0.compute(pass)
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), DecodeError> {
        self.0.select(step, best)
    }
}

/// Gains of whole sequences, of a few values, with their bounds by definition.
struct FewGains<'a> {
    set: &'a SequenceSet,
    seed: u64,
    spread: u64,
}

impl FewGains<'_> {
    fn of(&self, tokens: &[TokenId]) -> f32 {
        let mix = |hash: u64, token: &TokenId| {
            (hash ^ u64::from(token.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        let hash = tokens.iter().fold(self.seed | 1, mix) >> 40;
        hash.checked_rem(self.spread).map_or(0.0, |value| value as f32 - 1.0)
    }
}

impl Gains<Vec<TokenId>> for FewGains<'_> {
    fn bound(&self, prefix: &Vec<TokenId>) -> f32 {
        let begun = self.set.sequences().filter(|tokens| tokens.starts_with(prefix));
        begun.map(|tokens| self.of(tokens)).fold(f32::NEG_INFINITY, f32::max)
    }

    fn gain(&self, state: &Vec<TokenId>) -> f32 {
        self.of(state)
    }

    fn least(&self) -> f32 {
        self.set.sequences().map(|tokens| self.of(tokens)).fold(f32::INFINITY, f32::min)
    }
}

fn found(search: &BeamSearch<SequenceSet>) -> Vec<(Scored, f32)> {
    let scored = search.results().map(|h| {
        let scored = Scored { tokens: h.tokens.to_vec(), score: h.score };
        (scored, h.total())
    });
    scored.collect()
}

/// Holds a search that has ended to the exhaustive one: what it missed is within its bound, and
/// what is above the bound is the beginning of all sequences in order.
fn check(
    search: &BeamSearch<SequenceSet>,
    all: &[(Scored, f32)],
    one_length: bool,
) -> Result<(), TestCaseError> {
    let (found, bound) = (found(search), search.missed_at_most());
    let missed = all.iter().filter(|one| !found.contains(one));
    for (sequence, total) in missed {
        prop_assert!(
            bound.is_some_and(|bound| *total <= bound),
            "{sequence:?} of {total} is missed, the bound is {bound:?}"
        );
    }
    let is_certain = |total: f32| match bound {
        None => true,
        Some(bound) => total > bound || (one_length && total == bound),
    };
    let certain = found.iter().take_while(|(_, total)| is_certain(*total)).count();
    prop_assert_eq!(&found[..certain], &all[..certain]);
    Ok(())
}

/// Sets of sequences of one length, as semantic IDs are.
fn of_one_length() -> impl Strategy<Value = SequenceSet> {
    let ids = |length: usize| prop::collection::vec(prop::collection::vec(0_u32..5, length), 1..40);
    (1_usize..5).prop_flat_map(ids).prop_map(|ids| SequenceSet::new(6, ids))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_missed_is_within_the_bound(
        (set, one_length) in prop_oneof![
            generate::sequence_sets().prop_map(|set| (set, false)),
            of_one_length().prop_map(|set| (set, true)),
        ],
        seed: u64,
        grades in prop_oneof![1_u32..6, 1000_u32..2000],
        widths in prop::collection::vec(prop_oneof![1_usize..4, 1_usize..20], 1..7),
        spread in prop_oneof![Just(0), 1_u64..4],
        (probe, k) in (1_usize..6, 1_usize..6),
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        let steps = set.max_len().max(1);
        let widths = widths.iter().cycle().take(steps);
        let widths: Vec<NonZeroUsize> =
            widths.map(|&width| NonZeroUsize::new(width).expect("positive")).collect();
        let gains = FewGains { set: &set, seed, spread };
        let all = exhaustive_with_gains(&set, &logits, &|tokens| gains.of(tokens));
        let gains = (spread > 0).then_some(&gains as &dyn Gains<Vec<TokenId>>);
        let objective = Objective { constraint: &set, gains };
        let mut search = BeamSearch::with_widths(&widths);

        let mut exact = HostBackend::new(logits.source());
        search.run_controlled(objective, &mut exact, &mut run_on).expect("sound");
        check(&search, &all, one_length)?;
        let closest = search.missed_at_most();
        let mut kept_alone = KeptAlone(HostBackend::new(logits.source()));
        search.run_controlled(objective, &mut kept_alone, &mut run_on).expect("sound");
        check(&search, &all, one_length)?;
        // What is kept tells less than what is dropped.
        prop_assert!(closest <= search.missed_at_most());

        let mut narrow = BeamSearch::with_widths(&vec![NonZeroUsize::new(probe).unwrap(); steps]);
        search.run_after_probe(&mut narrow, objective, k, &mut exact, &mut run_on).expect("sound");
        check(&search, &all, one_length)?;
        let found = search.results().nth(k - 1).map(|found| found.total());
        let on = &mut run_on;
        search.run_after_probe(&mut narrow, objective, k, &mut kept_alone, on).expect("sound");
        check(&search, &all, one_length)?;
        prop_assert_eq!(search.results().nth(k - 1).map(|found| found.total()), found);
    }

    #[test]
    fn a_search_as_wide_as_the_set_misses_nothing(
        set in generate::sequence_sets(),
        seed: u64,
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades: 3 };
        let width = NonZeroUsize::new(set.sequences().len().max(1)).unwrap();
        let mut search = BeamSearch::with_widths(&vec![width; set.max_len().max(1)]);
        search.run(&set, &mut HostBackend::new(logits.source())).expect("sound");
        // It may end before hypotheses that lead to nothing better.
        let missed = search.results().len() < set.sequences().len();
        prop_assert!(search.missed_at_most().is_none() || missed);
    }
}

/// Where the model is sure of the first code, a beam of one is proven; where the second is as
/// likely, it is not.
#[test]
fn a_greedy_search_is_proven_by_what_it_let_go() {
    let set = SequenceSet::new(4, [[0, 0], [0, 1], [1, 2]]);
    let mut search = BeamSearch::with_widths(&[NonZeroUsize::MIN; 2]);
    let mut missed_at_most = |first: [f32; 4]| {
        let rows = TwoRows { first, second: [2.0, 0.0, 0.0, 0.0] };
        search.run(&set, &mut HostBackend::new(rows)).expect("sound");
        let best = search.results().next().expect("one is found").total();
        (best, search.missed_at_most().expect("two are missed"))
    };
    let (best, missed) = missed_at_most([9.0, 0.0, 0.0, 0.0]);
    assert!(best > missed, "{best} {missed}");
    let (best, missed) = missed_at_most([9.0, 9.0, 0.0, 0.0]);
    assert!(best < missed, "{best} {missed}");
}

/// Logits of two rows: one after the prompt, one after every other prefix.
struct TwoRows {
    first: [f32; 4],
    second: [f32; 4],
}

impl LogitsSource for TwoRows {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        4
    }

    fn prompt_logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.first)
    }

    fn next_logits(&mut self, _: &[u32], _: &[TokenId]) -> Result<&[f32], DecodeError> {
        self.first = self.second;
        Ok(&self.second)
    }

    fn logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.first)
    }
}
