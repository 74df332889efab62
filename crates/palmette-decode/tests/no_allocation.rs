//! After its first search, a search allocates nothing.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use palmette_core::{CommitError, Constraint, RollbackError, TokenId, Unconstrained, mask};
use palmette_decode::{BeamOptions, BeamSearch, DecodeError, HostBackend, LogitsSource};
use palmette_testkit::allocations::{Counting, allocations};

const NUM_TOKENS: usize = 1026;
const MAX_TOKENS: usize = 4;
const WIDTH: NonZeroUsize = NonZeroUsize::new(128).unwrap();

#[test]
fn a_second_search_allocates_nothing_where_every_token_is_allowed() {
    check(&Unconstrained::new(NUM_TOKENS, MAX_TOKENS), BeamSearch::new(options()), WIDTH);
}

#[test]
fn a_second_search_allocates_nothing_where_every_prefix_is_a_result() {
    check(&EveryPrefix, BeamSearch::new(options()), WIDTH);
}

#[test]
fn a_second_search_allocates_nothing_with_widths_up_and_down() {
    let widths = [32, 128, 16, 100].map(|width| NonZeroUsize::new(width).unwrap());
    check(&EveryPrefix, BeamSearch::with_widths(&widths), widths[3]);
}

#[test]
fn a_second_search_allocates_nothing_after_a_probe() {
    let constraint = EveryPrefix;
    let narrow = BeamOptions { width: NonZeroUsize::new(16).unwrap(), max_tokens: MAX_TOKENS };
    let (mut probe, mut search) = (BeamSearch::new(narrow), BeamSearch::new(options()));
    let mut run = |backend: &mut HostBackend<FixedLogits>| {
        let on = &mut |_| ControlFlow::Continue(());
        let found = search.run_after_probe(&mut probe, &constraint, 10, backend, on);
        found.expect("the logits have distributions");
        assert!(search.results().len() >= 10);
    };
    let mut backend = HostBackend::new(FixedLogits::new(1));
    run(&mut backend);
    *backend.source_mut() = FixedLogits::new(2);
    let before = allocations();
    run(&mut backend);
    assert_eq!(allocations() - before, 0, "allocations of the second search");
    let steps = backend.source_mut().steps;
    assert!(steps > 1, "it took {steps} steps");
}

/// The counter sees what it is there to see.
#[test]
fn making_a_search_does_allocate() {
    let before = allocations();
    let search = BeamSearch::<Unconstrained>::new(options());
    assert!(allocations() > before, "{search:?}");
}

#[track_caller]
fn check<C: Constraint>(constraint: &C, mut search: BeamSearch<C>, num_results: NonZeroUsize) {
    let (mut backend, second) = (HostBackend::new(FixedLogits::new(1)), FixedLogits::new(2));
    search.run(constraint, &mut backend).expect("the logits have distributions");
    let first_scores: Vec<f32> = search.results().map(|r| r.score).collect();

    *backend.source_mut() = second;
    let before = allocations();
    search.run(constraint, &mut backend).expect("the logits have distributions");
    let during = allocations() - before;
    let second = backend.source_mut();

    assert_eq!(during, 0, "allocations of the second search");
    assert!(second.steps > 1, "it took {} steps", second.steps);
    let second_scores: Vec<f32> = search.results().map(|r| r.score).collect();
    assert_eq!(second_scores.len(), num_results.get());
    assert_ne!(first_scores, second_scores, "the second search was another");
}

fn options() -> BeamOptions {
    BeamOptions { width: WIDTH, max_tokens: MAX_TOKENS }
}

/// All sequences of 1 to `MAX_TOKENS` tokens. Every hypothesis of every step is a result, so that
/// the pool of results overflows and is cut.
struct EveryPrefix;

/// The tokens so far; places past `len` hold 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prefix {
    tokens: [TokenId; MAX_TOKENS],
    len: usize,
}

impl Constraint for EveryPrefix {
    type State = Prefix;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        NUM_TOKENS
    }

    fn start(&self) -> Prefix {
        Prefix { tokens: [TokenId(0); MAX_TOKENS], len: 0 }
    }

    fn fill_mask(&self, state: &Prefix, (): &mut (), words: &mut [u32]) -> Result<(), Infallible> {
        words.fill(0);
        self.successors(state, &mut (), |token, _| mask::insert(words, token))
    }

    fn successors(
        &self,
        state: &Prefix,
        (): &mut (),
        mut visit: impl FnMut(TokenId, Prefix),
    ) -> Result<(), Infallible> {
        for token in (0..NUM_TOKENS as u32).map(TokenId) {
            let mut next = *state;
            if self.commit(&mut next, token, &mut ()).is_ok() {
                visit(token, next);
            }
        }
        Ok(())
    }

    fn commit(&self, state: &mut Prefix, token: TokenId, (): &mut ()) -> Result<(), CommitError> {
        if token.index() >= NUM_TOKENS {
            return Err(CommitError::UnknownToken { token, num_tokens: NUM_TOKENS });
        }
        let position = state.len;
        let place = state.tokens.get_mut(position);
        *place.ok_or(CommitError::NotAllowed { token, position })? = token;
        state.len += 1;
        Ok(())
    }

    fn rollback(&self, state: &mut Prefix, num_tokens: usize) -> Result<(), RollbackError> {
        state.len = RollbackError::remaining(state.len, num_tokens)?;
        state.tokens[state.len..].fill(TokenId(0));
        Ok(())
    }

    fn is_accepting(&self, state: &Prefix, (): &mut ()) -> Result<bool, Infallible> {
        Ok(state.len > 0)
    }
}

/// Row `b` of every step is row `b` of one table, made beforehand. A few tokens have nearly all the
/// probability, as with a trained model, so that longer sequences displace shorter ones.
struct FixedLogits {
    table: Vec<f32>,
    steps: usize,
}

impl FixedLogits {
    fn new(seed: u64) -> Self {
        let step = |&x: &u64| {
            Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        };
        let random = std::iter::successors(Some(seed), step).skip(1).map(|x| (x >> 48) as f32);
        let logit = |x: f32| if x < 200.0 { 14.0 + x / 200.0 } else { x / 65_536.0 };
        Self { table: random.map(logit).take(WIDTH.get() * NUM_TOKENS).collect(), steps: 0 }
    }

    fn rows(&mut self, beams: usize) -> &[f32] {
        self.steps += 1;
        &self.table[..beams * NUM_TOKENS]
    }
}

impl LogitsSource for FixedLogits {
    type Error = DecodeError;

    fn num_tokens(&self) -> usize {
        NUM_TOKENS
    }

    fn prompt_logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(self.rows(1))
    }

    fn next_logits(&mut self, parents: &[u32], _: &[TokenId]) -> Result<&[f32], DecodeError> {
        Ok(self.rows(parents.len()))
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
