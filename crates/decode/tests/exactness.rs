//! The search against its definitions: results, order and scores, to the bit.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};

use palmette_core::{AnyConstraint, CommitError, Constraint, RollbackError, TokenId};
use palmette_decode::{
    BeamOptions, BeamSearch, DecodeError, Extension, Gains, HostBackend, Hypothesis, LogitsSource,
    Objective, Pass, SearchPlan, Stage, Step, StepBackend, TopK,
};
use palmette_testkit::logits::{TableLogits, TableSource};
use palmette_testkit::search::{
    Scored, exhaustive, naive_beam_search, naive_gaining_search, naive_scheduled_search,
};
use palmette_testkit::{SequenceSet, generate};
use proptest::prelude::*;

fn options(width: usize, max_tokens: usize) -> BeamOptions {
    BeamOptions { width: NonZeroUsize::new(width).expect("positive"), max_tokens }
}

fn beam_search(set: &SequenceSet, logits: &TableLogits, width: usize) -> Vec<Scored> {
    let mut search = BeamSearch::new(options(width, set.max_len()));
    run(&mut search, set, logits)
}

fn run(
    search: &mut BeamSearch<SequenceSet>,
    set: &SequenceSet,
    logits: &TableLogits,
) -> Vec<Scored> {
    search.run(set, &mut backend(logits)).expect("tables have distributions");
    results(search)
}

fn results(search: &BeamSearch<SequenceSet>) -> Vec<Scored> {
    search.results().map(|h| Scored { tokens: h.tokens.to_vec(), score: h.score }).collect()
}

fn backend(logits: &TableLogits) -> HostBackend<TableSource> {
    HostBackend::new(logits.source())
}

/// The best extensions of a search's next step.
fn select<C: Constraint>(
    search: &BeamSearch<C>,
    logits: &[f32],
    columns: Range<usize>,
) -> Result<Vec<Extension>, DecodeError> {
    let mut best = Vec::new();
    TopK::default().select(&search.step(), logits, columns, |_, _| true, &mut best)?;
    Ok(best)
}

/// A backend that counts the rows of every step.
struct Counted {
    backend: HostBackend<TableSource>,
    /// Of each step.
    rows: Vec<usize>,
    /// Of each search.
    totals: Vec<usize>,
}

impl Counted {
    fn over(backend: HostBackend<TableSource>) -> Self {
        Self { backend, rows: Vec::new(), totals: Vec::new() }
    }
}

impl StepBackend for Counted {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        self.backend.num_tokens()
    }

    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), DecodeError> {
        if pass.index == 0 {
            self.totals.push(0);
        }
        *self.totals.last_mut().expect("a search begins at step 0") += pass.rows();
        self.rows.push(pass.rows());
        self.backend.compute(pass)
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), DecodeError> {
        self.backend.select(step, best)
    }

    fn dropped_at_most(&self, step: &Step<'_>, best: &[Extension]) -> Option<f32> {
        self.backend.dropped_at_most(step, best)
    }
}

/// A backend that has the constraint where its logits are, and runs all steps of a search.
struct AtOnce<'a> {
    set: &'a SequenceSet,
    logits: &'a TableLogits,
    /// Changes what it found.
    spoil: fn(&mut Vec<Vec<Extension>>),
}

impl StepBackend for AtOnce<'_> {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        self.set.num_tokens()
    }

    fn compute(&mut self, _: &Pass<'_>) -> Result<(), DecodeError> {
        panic!("no step is asked for")
    }

    fn select(&mut self, _: &Step<'_>, _: &mut Vec<Extension>) -> Result<(), DecodeError> {
        panic!("no step is asked for")
    }

    fn search(
        &mut self,
        plan: &SearchPlan<'_>,
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<bool, DecodeError> {
        let (mut search, mut backend) =
            (BeamSearch::with_widths(plan.widths), backend(self.logits));
        search.start_above(plan.floor, self.set)?;
        steps.clear();
        while search.is_live() {
            let mut best = Vec::new();
            backend.compute(&search.step().pass)?;
            backend.select(&search.step(), &mut best)?;
            search.expand(self.set, &best)?;
            steps.push(best);
        }
        (self.spoil)(steps);
        Ok(true)
    }
}

/// What a search of the second width finds after a probe of the first, and the rows of logits of
/// each search.
fn probed(
    set: &SequenceSet,
    logits: &TableLogits,
    (narrow, wide): (usize, usize),
    k: usize,
) -> (Vec<Scored>, Vec<usize>) {
    let mut probe = BeamSearch::new(options(narrow, set.max_len()));
    let mut search = BeamSearch::new(options(wide, set.max_len()));
    let mut counted = Counted::over(backend(logits));
    let on = &mut |_| ControlFlow::Continue(());
    let found = search.run_after_probe(&mut probe, set, k, &mut counted, on);
    found.expect("sets have no limits");
    (results(&search), counted.totals)
}

/// Gains of whole sequences as a pure function, with their bounds by definition.
struct TableGains<'a> {
    set: &'a SequenceSet,
    seed: u64,
    /// Number of distinct values; 0 for none but 0.
    spread: u64,
}

impl TableGains<'_> {
    fn of(&self, tokens: &[TokenId]) -> f32 {
        let step = |hash: u64, token: &TokenId| {
            (hash ^ u64::from(token.0)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        let hash = tokens.iter().fold(self.seed | 1, step) >> 40;
        hash.checked_rem(self.spread)
            .map_or(0.0, |value| value as f32 * 6.0 / self.spread as f32 - 3.0)
    }
}

impl Gains<Vec<TokenId>> for TableGains<'_> {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn equals_naive_beam_search_at_any_width(
        set in generate::sequence_sets(),
        seed: u64,
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        width in prop_oneof![1_usize..8, 1_usize..100],
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        prop_assert_eq!(
            beam_search(&set, &logits, width),
            naive_beam_search(&set, &logits, width)
        );
    }

    #[test]
    fn a_schedule_equals_naive_search_with_its_widths(
        set in generate::sequence_sets(),
        seed: u64,
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        widths in prop::collection::vec(prop_oneof![1_usize..8, 1_usize..100], 1..7),
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        // One width a token, the drawn ones over and over.
        let steps = set.max_len().max(1);
        let widths: Vec<usize> = widths.into_iter().cycle().take(steps).collect();
        let given: Vec<NonZeroUsize> =
            widths.iter().map(|&width| NonZeroUsize::new(width).expect("positive")).collect();
        let mut search = BeamSearch::with_widths(&given);
        prop_assert_eq!(search.widths(), &given[..]);
        let expected = naive_scheduled_search(&set, &logits, &widths);
        prop_assert_eq!(&run(&mut search, &set, &logits), &expected);
        // And again, with what the first search left in the buffers.
        prop_assert_eq!(&run(&mut search, &set, &logits), &expected);

        let mut counted = Counted::over(backend(&logits));
        search.run(&set, &mut counted).expect("tables have distributions");
        let within = counted.rows.iter().skip(1).zip(&widths).all(|(rows, width)| rows <= width);
        prop_assert!(within, "{:?} rows, widths {:?}", counted.rows, widths);
    }

    #[test]
    fn gains_equal_naive_search_by_score_and_the_largest_gain_below(
        set in generate::sequence_sets(),
        seed: u64,
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        widths in prop::collection::vec(prop_oneof![1_usize..8, 1_usize..100], 1..7),
        spread in prop_oneof![Just(0), 1_u64..4, 1_u64..1000],
        probe in 1_usize..10,
        k in 1_usize..10,
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        let steps = set.max_len().max(1);
        let widths: Vec<usize> = widths.into_iter().cycle().take(steps).collect();
        let gains = TableGains { set: &set, seed, spread };
        let expected = naive_gaining_search(&set, &logits, &widths, &|tokens| gains.of(tokens));
        let given: Vec<NonZeroUsize> =
            widths.iter().map(|&width| NonZeroUsize::new(width).expect("positive")).collect();
        let objective = Objective { constraint: &set, gains: Some(&gains) };
        let found = |search: &BeamSearch<SequenceSet>| -> Vec<(Scored, f32)> {
            let scored = |h: Hypothesis<'_, Vec<TokenId>>| {
                (Scored { tokens: h.tokens.to_vec(), score: h.score }, h.gain)
            };
            search.results().map(scored).collect()
        };
        let mut search = BeamSearch::with_widths(&given);
        let on = &mut |_| ControlFlow::Continue(());
        search.run_controlled(objective, &mut backend(&logits), on).expect("sound");
        prop_assert_eq!(&found(&search), &expected);

        let mut narrow = BeamSearch::new(options(probe, set.max_len()));
        let backend = &mut backend(&logits);
        search.run_after_probe(&mut narrow, objective, k, backend, on).expect("sound");
        let found = found(&search);
        prop_assert_eq!(&found[..k.min(found.len())], &expected[..k.min(expected.len())]);

        // As wide as can be, it is all sequences by score and gain.
        let mut wide = BeamSearch::new(options(1000, set.max_len()));
        wide.run_controlled(objective, backend, on).expect("sound");
        let mut every: Vec<f32> =
            exhaustive(&set, &logits).iter().map(|s| s.score + gains.of(&s.tokens)).collect();
        every.sort_by(|a, b| b.total_cmp(a));
        prop_assert!(wide.results().map(|h| h.total()).eq(every));
    }

    #[test]
    fn a_probe_changes_none_of_the_first_results(
        set in generate::sequence_sets(),
        seed: u64,
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        widths in (1_usize..8, prop_oneof![1_usize..20, 1_usize..100]),
        k in 0_usize..12,
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        let (found, _) = probed(&set, &logits, widths, k);
        let expected = naive_beam_search(&set, &logits, widths.1);
        let first = |found: &[Scored]| found[..k.min(found.len())].to_vec();
        prop_assert_eq!(first(&found), first(&expected));
        // And no others than the search has.
        prop_assert!(found.len() <= expected.len() && found == expected[..found.len()]);
    }

    #[test]
    fn a_search_at_once_finds_what_one_of_steps_finds(
        set in generate::sequence_sets(),
        seed: u64,
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        width in 1_usize..9,
        k in 1_usize..5,
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        let mut at_once = AtOnce { set: &set, logits: &logits, spoil: |_| () };
        let mut search = BeamSearch::new(options(width, set.max_len()));
        search.run(&set, &mut at_once).expect("sets have no limits");
        prop_assert_eq!(results(&search), beam_search(&set, &logits, width));
        // After a probe, with a floor.
        let mut probe = BeamSearch::new(options(1, set.max_len()));
        let on = &mut |_| ControlFlow::Continue(());
        search.run_after_probe(&mut probe, &set, k, &mut at_once, on).expect("no limits");
        let (probed, _) = probed(&set, &logits, (1, width), k);
        prop_assert_eq!(results(&search), probed);
    }

    #[test]
    fn a_floor_leaves_out_what_is_below_it_and_nothing_else(
        set in generate::sequence_sets(),
        seed: u64,
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        width in prop_oneof![1_usize..8, 1_usize..100],
        floor in -20.0_f32..1.0,
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        let mut search = BeamSearch::new(options(width, set.max_len()));
        search.start_above(floor, &set).expect("sets have no limits");
        let (mut backend, mut best) = (backend(&logits), Vec::new());
        while search.is_live() {
            let step = search.step();
            backend.compute(&step.pass).expect("tables never fail");
            backend.select(&step, &mut best).expect("tables have distributions");
            search.expand(&set, &best).expect("masks are right");
        }
        let mut expected = naive_beam_search(&set, &logits, width);
        // The empty sequence is a result before any step.
        expected.retain(|result| result.score >= floor || result.tokens.is_empty());
        prop_assert_eq!(results(&search), expected);
    }

    #[test]
    fn equals_brute_force_when_as_wide_as_the_set(
        set in generate::sequence_sets(),
        seed: u64,
        grades in prop_oneof![2_u32..6, 1000_u32..2000],
        extra in 0_usize..80,
    ) {
        let logits = TableLogits { seed, num_tokens: set.num_tokens(), grades };
        let width = set.sequences().len().max(1) + extra;
        prop_assert_eq!(beam_search(&set, &logits, width), exhaustive(&set, &logits));
    }

    #[test]
    fn buffers_carry_nothing_from_one_search_to_the_next(
        sets in prop::collection::vec((generate::sequence_sets(), any::<u64>()), 2..5),
        width in 1_usize..20,
    ) {
        let mut reused = BeamSearch::new(options(width, 4));
        for (set, seed) in &sets {
            let logits = TableLogits { seed: *seed, num_tokens: set.num_tokens(), grades: 4 };
            prop_assert_eq!(run(&mut reused, set, &logits), beam_search(set, &logits, width));
        }
    }
}

#[test]
fn the_empty_set_has_no_results_and_asks_for_no_logits() {
    let set = SequenceSet::new(9, Vec::<Vec<u32>>::new());
    let mut source = TableLogits { seed: 1, num_tokens: 9, grades: 9 }.source();
    let mut search = BeamSearch::new(options(4, 3));
    search.run(&set, &mut HostBackend::new(&mut source)).unwrap();
    assert_eq!(search.results().len(), 0);
    assert_eq!(source.calls, 0);
}

#[test]
fn levels_take_one_logits_call_each() {
    let set = SequenceSet::new(9, [vec![1, 2, 3], vec![4, 5, 6]]);
    let mut source = TableLogits { seed: 1, num_tokens: 9, grades: 9 }.source();
    let mut search = BeamSearch::new(options(4, 3));
    search.run(&set, &mut HostBackend::new(&mut source)).unwrap();
    assert_eq!(search.results().len(), 2);
    assert_eq!(source.calls, 3, "the prompt's and two decode passes");
}

/// Whatever a backend finds at once, results are sequences of the constraint.
#[test]
fn a_backend_that_searches_at_once_is_held_to_the_constraint() {
    let set = SequenceSet::new(8, [[1, 2, 3], [1, 2, 4], [5, 6, 7]]);
    let logits = TableLogits { seed: 3, num_tokens: 8, grades: 1000 };
    let failure = |spoil| {
        let mut at_once = AtOnce { set: &set, logits: &logits, spoil };
        let mut search = BeamSearch::new(options(3, 3));
        search.run(&set, &mut at_once).expect_err("it was spoiled")
    };
    let missing = failure(|steps| _ = steps.pop());
    assert!(matches!(missing, DecodeError::BrokenBackend { step: 2, .. }), "{missing}");
    let unknown = failure(|steps| steps[1][0].token = TokenId(0));
    assert!(matches!(unknown, DecodeError::BrokenConstraint { step: 1, .. }), "{unknown}");
    let orphan = failure(|steps| steps[1][0].parent = 9);
    assert!(matches!(orphan, DecodeError::BrokenBackend { step: 1, .. }), "{orphan}");
}

#[test]
fn one_item_and_a_width_beyond_the_vocabulary() {
    let set = SequenceSet::new(3, [vec![2, 0]]);
    let logits = TableLogits { seed: 5, num_tokens: 3, grades: 7 };
    let results = beam_search(&set, &logits, 1000);
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].tokens, [TokenId(2), TokenId(0)]);
}

/// One fixed row for the prompt and none after.
struct OneRow(Vec<f32>);

impl LogitsSource for OneRow {
    type Error = DecodeError;
    fn num_tokens(&self) -> usize {
        self.0.len()
    }
    fn prompt_logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.0)
    }
    fn next_logits(&mut self, _: &[u32], _: &[TokenId]) -> Result<&[f32], DecodeError> {
        unreachable!("sequences of one token need one row")
    }
    fn logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.0)
    }
}

fn search_one_row(
    row: Vec<f32>,
    set: &SequenceSet,
    max_tokens: usize,
) -> Result<usize, DecodeError> {
    let mut search = BeamSearch::new(options(2, max_tokens));
    search.run(set, &mut HostBackend::new(OneRow(row))).map(|()| search.results().len())
}

#[test]
fn rows_without_a_distribution_are_errors() {
    let set = SequenceSet::new(3, [vec![0], vec![2]]);
    assert_eq!(search_one_row(vec![0.0, 1.0, f32::NEG_INFINITY], &set, 1), Ok(2));
    for bad in [vec![0.0, f32::NAN, 1.0], vec![f32::NEG_INFINITY; 3], vec![f32::INFINITY, 0.0, 0.0]]
    {
        let error = DecodeError::BadLogits { beam: 0, step: 0 };
        assert_eq!(search_one_row(bad, &set, 1), Err(error));
    }
}

#[test]
fn limits_are_errors_not_cuts() {
    let set = SequenceSet::new(3, [vec![0], vec![2]]);
    assert_eq!(search_one_row(vec![0.0; 3], &set, 0), Err(DecodeError::TooLong { max_tokens: 0 }));
    let mismatch = DecodeError::VocabularyMismatch { model: 4, constraint: 3 };
    assert_eq!(search_one_row(vec![0.0; 4], &set, 1), Err(mismatch));

    let mut search = BeamSearch::<SequenceSet>::new(options(2, 1));
    search.start(&set).unwrap();
    let shape = DecodeError::ShapeMismatch { beams: 1, num_tokens: 3, got: 2 };
    assert_eq!(select(&search, &[0.0; 2], 0..3).unwrap_err(), shape);
}

/// A set whose mask allows what it then refuses, as one read from a damaged file may.
#[derive(Debug)]
struct Broken {
    /// The only bit of its masks; past the vocabulary where 40 or more.
    allowed: u32,
}

impl Constraint for Broken {
    type State = ();
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        40
    }

    fn start(&self) {}

    fn fill_mask(&self, (): &(), (): &mut (), mask: &mut [u32]) -> Result<(), Infallible> {
        mask.fill(0);
        mask[self.allowed as usize / 32] |= 1 << (self.allowed % 32);
        Ok(())
    }

    fn successors(
        &self,
        (): &(),
        (): &mut (),
        _: impl FnMut(TokenId, ()),
    ) -> Result<(), Infallible> {
        Ok(())
    }

    fn commit(&self, (): &mut (), token: TokenId, (): &mut ()) -> Result<(), CommitError> {
        Err(CommitError::NotAllowed { token, position: 0 })
    }

    fn rollback(&self, (): &mut (), asked: usize) -> Result<(), RollbackError> {
        Err(RollbackError { asked, committed: 0 })
    }

    fn is_accepting(&self, (): &(), (): &mut ()) -> Result<bool, Infallible> {
        Ok(false)
    }
}

#[test]
fn a_broken_constraint_is_an_error() {
    for allowed in [3, 45] {
        let width = NonZeroUsize::new(2).unwrap();
        let mut search = BeamSearch::new(BeamOptions { width, max_tokens: 4 });
        let logits = TableLogits { seed: 1, num_tokens: 40, grades: 5 };
        let error = search.run(&Broken { allowed }, &mut backend(&logits)).unwrap_err();
        let expected = DecodeError::BrokenConstraint { token: TokenId(allowed), step: 0 };
        assert_eq!(error, expected);
    }
}

/// All sequences of three tokens below 4, but that a limit is exceeded after `[.., fails_after]` at
/// `fails_at`.
#[derive(Debug)]
struct Limited {
    fails_at: usize,
    fails_after: u32,
    /// Whether moving there fails, rather than the mask.
    in_commit: bool,
}

impl Limited {
    fn is_over(&self, state: &[TokenId]) -> bool {
        state.len() == self.fails_at && state.last().is_none_or(|last| last.0 == self.fails_after)
    }
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("too much after {0:?}")]
struct TooMuch(Vec<TokenId>);

impl Constraint for Limited {
    type State = Vec<TokenId>;
    type Scratch = ();
    type Error = TooMuch;

    fn num_tokens(&self) -> usize {
        4
    }

    fn start(&self) -> Vec<TokenId> {
        Vec::new()
    }

    fn fill_mask(
        &self,
        state: &Vec<TokenId>,
        (): &mut (),
        mask: &mut [u32],
    ) -> Result<(), TooMuch> {
        mask[0] = 0;
        if !self.in_commit && self.is_over(state) {
            return Err(TooMuch(state.clone()));
        }
        mask[0] = if state.len() == 3 { 0 } else { 0b1111 };
        Ok(())
    }

    fn successors(
        &self,
        state: &Vec<TokenId>,
        (): &mut (),
        _: impl FnMut(TokenId, Vec<TokenId>),
    ) -> Result<(), TooMuch> {
        Err(TooMuch(state.clone()))
    }

    fn commit(
        &self,
        state: &mut Vec<TokenId>,
        token: TokenId,
        (): &mut (),
    ) -> Result<(), CommitError<TooMuch>> {
        let position = state.len();
        state.push(token);
        if self.in_commit && self.is_over(state) {
            let error = TooMuch(state.clone());
            state.pop();
            return Err(CommitError::Failed { token, position, error });
        }
        Ok(())
    }

    fn rollback(&self, state: &mut Vec<TokenId>, asked: usize) -> Result<(), RollbackError> {
        state.truncate(state.len() - asked);
        Ok(())
    }

    fn is_accepting(&self, state: &Vec<TokenId>, (): &mut ()) -> Result<bool, TooMuch> {
        Ok(state.len() == 3)
    }
}

#[test]
fn a_limit_of_the_constraint_ends_the_search_with_an_error() {
    let run = |fails_at, fails_after, in_commit| {
        let set = Limited { fails_at, fails_after, in_commit };
        let logits = TableLogits { seed: 3, num_tokens: 4, grades: 5 };
        let mut search = BeamSearch::new(options(64, 3));
        search.run(&set, &mut backend(&logits)).map(|()| search.results().len())
    };
    assert_eq!(run(4, 0, false), Ok(64));
    for (step, why) in [(0, "too much after []"), (1, "too much after [TokenId(2)]")] {
        let error = DecodeError::Constraint { step, why: why.to_owned() };
        assert_eq!(run(step, 2, false), Err(error));
    }
    // The best hypothesis that ends in 1 fails first.
    let Err(DecodeError::Constraint { step: 1, why }) = run(2, 1, true) else {
        panic!("moving over a token fails at step 1: {:?}", run(2, 1, true));
    };
    assert!(why.starts_with("too much after [") && why.ends_with("TokenId(1)]"), "{why}");
}

/// Whatever a device answers, the search keeps its promises or says who broke them.
#[test]
fn extensions_that_the_step_did_not_ask_for_are_errors() {
    let set = SequenceSet::new(4, [[0], [1], [2]]);
    let extension =
        |score, parent, token| Extension { score, bound: 0.0, parent, token: TokenId(token) };
    let check = |best: &[Extension], why: &str| {
        let mut search = BeamSearch::new(options(2, 1));
        search.start_above(-9.0, &set).unwrap();
        let error = search.expand(&set, best).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    let [a, b, c] = [0, 1, 2].map(|token| extension(-1.0, 0, token));
    check(&[a, b, c], "3 extensions, at a width of 2");
    check(&[extension(-1.0, 1, 0)], "row 1, of 1 rows");
    check(&[b, a], "do not descend");
    check(&[a, a], "do not descend");
    check(&[extension(f32::NAN, 0, 0)], "no number");
    check(&[extension(-9.5, 0, 0)], "below the floor");
    check(&[extension(-1.0, 0, 3)], "token 3 at step 0 and then refuses it");
}

#[test]
fn a_control_ends_a_search_after_any_stage() {
    let set = SequenceSet::new(40, [[1, 2], [3, 4], [5, 6]]);
    let logits = TableLogits { seed: 2, num_tokens: 40, grades: 9 };
    let mut search = BeamSearch::new(options(2, 2));
    let mut stages = Vec::new();
    let mut heard = |stage| {
        stages.push(stage);
        ControlFlow::Continue(())
    };
    search.run_controlled(&set, &mut backend(&logits), &mut heard).unwrap();
    let round = |first| [first, Stage::Mask, Stage::TopK, Stage::Mask];
    let expected = [&[Stage::Mask][..], &round(Stage::Prefill), &round(Stage::Decode)].concat();
    assert_eq!(stages, expected);
    for last in 0..stages.len() {
        let mut left = last;
        let mut stop = |_| match left.checked_sub(1) {
            Some(less) => {
                left = less;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        };
        let ended = search.run_controlled(&set, &mut backend(&logits), &mut stop);
        let step = last.saturating_sub(1) / 4;
        assert_eq!(ended, Err(DecodeError::Cancelled { step }), "after {last} stages");
    }
    assert_eq!(run(&mut search, &set, &logits), beam_search(&set, &logits, 2));
}

/// Search over the erased constraint equals search over the typed one.
#[test]
fn any_constraint_is_searched_alike() {
    let set = SequenceSet::new(40, [vec![1, 2], vec![3], vec![3, 4, 1], vec![5, 6]]);
    let logits = TableLogits { seed: 4, num_tokens: 40, grades: 9 };
    let any: &dyn AnyConstraint = &set;
    let mut search = BeamSearch::<dyn AnyConstraint>::new(options(3, 3));
    search.run(any, &mut backend(&logits)).unwrap();
    let found: Vec<_> =
        search.results().map(|h| Scored { tokens: h.tokens.to_vec(), score: h.score }).collect();
    assert_eq!(found, beam_search(&set, &logits, 3));
    assert!(found.len() > 2);
}

#[test]
fn a_failed_search_leaves_nothing_to_the_next() {
    let set = SequenceSet::new(40, [[1, 2], [3, 4], [5, 6]]);
    let logits = TableLogits { seed: 2, num_tokens: 40, grades: 9 };
    let mut search = BeamSearch::new(options(2, 2));
    search.start(&set).unwrap();
    let best = select(&search, &[0.0; 40], 0..40).unwrap();
    search.expand(&set, &best).unwrap();
    let mut rows = [0.0; 80];
    rows[79] = f32::NAN;
    let bad = select(&search, &rows, 0..40).unwrap_err();
    assert_eq!(bad, DecodeError::BadLogits { beam: 1, step: 1 });
    assert_eq!(run(&mut search, &set, &logits), beam_search(&set, &logits, 2));
}

/// The columns of each step are one run of tokens, as with levels: the search over them equals a
/// naive one over tables whose other logits are −∞.
#[test]
fn a_level_may_be_the_whole() {
    let levels = [0..4_usize, 4..8, 8..12];
    let sequences = (0..40_u32).map(|n| vec![n % 4, 4 + n * 7 % 4, 8 + n * 5 / 3 % 4]);
    let set = SequenceSet::new(12, sequences.collect::<Vec<_>>());
    let row = |beam: usize, step: usize| -> Vec<f32> {
        (0..12).map(|token| ((beam * 31 + step * 17 + token * 13) % 23) as f32 / 7.0).collect()
    };
    for width in [1, 3, 64] {
        let mut some = BeamSearch::new(options(width, 3));
        let mut all = BeamSearch::new(options(width, 3));
        some.start(&set).unwrap();
        all.start(&set).unwrap();
        for (step, columns) in levels.iter().enumerate() {
            let rows: Vec<Vec<f32>> =
                (0..some.tokens().len()).map(|beam| row(beam, step)).collect();
            let given: Vec<f32> =
                rows.iter().flat_map(|row| row[columns.clone()].to_vec()).collect();
            let best_of_some = select(&some, &given, columns.clone()).unwrap();
            let hidden = |(token, logit): (usize, &f32)| {
                if columns.contains(&token) { *logit } else { f32::NEG_INFINITY }
            };
            let whole: Vec<f32> =
                rows.iter().flat_map(|row| row.iter().enumerate().map(hidden)).collect();
            let best_of_all = select(&all, &whole, 0..12).unwrap();
            some.expand(&set, &best_of_some).unwrap();
            all.expand(&set, &best_of_all).unwrap();
            assert_eq!((some.tokens(), some.parents()), (all.tokens(), all.parents()));
        }
        let found = |search: &BeamSearch<SequenceSet>| -> Vec<(Vec<TokenId>, f32)> {
            search.results().map(|h| (h.tokens.to_vec(), h.score)).collect()
        };
        let (some, all) = (found(&some), found(&all));
        assert!(!some.is_empty());
        assert_eq!(some.len(), all.len());
        for ((tokens, score), (want, wanted)) in some.iter().zip(&all) {
            assert_eq!(tokens, want);
            assert!((score - wanted).abs() < 1e-5);
        }
    }
}

#[test]
fn a_token_without_a_logit_is_an_error() {
    let set = SequenceSet::new(9, [vec![1], vec![5]]);
    let mut search = BeamSearch::<SequenceSet>::new(options(4, 1));
    for (columns, token) in [(0..5, 5), (2..9, 1)] {
        search.start(&set).unwrap();
        let logits = vec![0.0; columns.len()];
        let error = DecodeError::MissingLogit { token: TokenId(token), step: 0 };
        assert_eq!(select(&search, &logits, columns).unwrap_err(), error);
    }
}

#[test]
fn a_probe_saves_rows_where_the_model_knows_its_mind() {
    let pairs = (0..40).flat_map(|a| (0..40).map(move |b| vec![a, b]));
    let set = SequenceSet::new(40, pairs.collect::<Vec<_>>());
    let logits = TableLogits { seed: 3, num_tokens: 40, grades: 1000 };
    let (found, rows) = probed(&set, &logits, (2, 40), 1);
    assert_eq!(found[0], naive_beam_search(&set, &logits, 40)[0]);
    assert!(rows.len() == 2 && rows.iter().sum::<usize>() < 20, "{rows:?} of 41");
}

#[test]
fn what_a_wide_search_loses_and_its_probe_keeps_is_no_result() {
    // A seed is such a case where the wide search ran twice: found none above the probe's floor.
    let mut cases = 0;
    for seed in 0..3000 {
        let quads = (0..81).map(|n| vec![n / 27, n / 9 % 3, n / 3 % 3, n % 3]);
        let set = SequenceSet::new(3, quads.collect::<Vec<_>>());
        let logits = TableLogits { seed, num_tokens: 3, grades: 1000 };
        let (found, rows) = probed(&set, &logits, (1, 2), 1);
        assert_eq!(found[0], naive_beam_search(&set, &logits, 2)[0], "seed {seed}");
        cases += usize::from(rows.len() == 3);
    }
    assert!(cases > 0, "the seeds have no such case; take more");
}
