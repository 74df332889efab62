//! After its first search, a search allocates nothing.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use palmette_core::{CommitError, Constraint, RollbackError, TokenId, Unconstrained, mask};
use palmette_decode::{
    BeamOptions, BeamSearch, DecodeError, Finish, GenerateOptions, Generator, HostBackend,
    LogitsSource, Sampler, SamplerOptions,
};
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
    check(&EveryPrefix::default(), BeamSearch::new(options()), WIDTH);
}

#[test]
fn a_second_search_allocates_nothing_with_widths_up_and_down() {
    let widths = [32, 128, 16, 100].map(|width| NonZeroUsize::new(width).unwrap());
    check(&EveryPrefix::default(), BeamSearch::with_widths(&widths), widths[3]);
}

#[test]
fn a_second_search_allocates_nothing_after_a_probe() {
    let constraint = EveryPrefix::default();
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

/// A text that is driven step by step: what the model is to read is lent out of the generator's own
/// list.
#[test]
fn a_second_generation_allocates_nothing() {
    let constraint = EveryPrefix { second: Some(TokenId(9)) };
    let options = SamplerOptions { temperature: 1.0, top_p: 0.9, ..SamplerOptions::default() };
    let mut sampler = Sampler::new(options).expect("the options are in range");
    let mut generator = Generator::new(GenerateOptions::new(MAX_TOKENS));
    let heard = &mut |_: palmette_decode::NewToken<'_>| ControlFlow::Continue(());
    let mut write = |model: &mut FixedLogits, read: &mut [usize; MAX_TOKENS]| {
        generator.start(&constraint);
        let mut passes = 0;
        let finish = loop {
            if let Some(finish) = generator.settle(&constraint, heard).expect("no limits") {
                break finish;
            }
            read[passes] = generator.take_unread().len();
            assert!(generator.unread().is_empty());
            passes += 1;
            generator
                .choose(&constraint, model.rows(1), &mut sampler, heard)
                .expect("the logits have distributions");
        };
        (finish, passes, generator.forced())
    };
    let (mut first, mut second) = (FixedLogits::new(1), FixedLogits::new(2));
    let mut read = [0; MAX_TOKENS];
    write(&mut first, &mut read);
    let before = allocations();
    let written = write(&mut second, &mut read);
    assert_eq!(allocations() - before, 0, "allocations of the second generation");
    assert_eq!(written, (Finish::Complete, 2, 2));
    assert_eq!(read[..2], [0, 2], "the chosen token and the forced one after it");
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
#[derive(Debug, Default)]
struct EveryPrefix {
    /// The only token at every second place.
    second: Option<TokenId>,
}

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
        let forced = self.second.filter(|_| position % 2 == 1);
        if forced.is_some_and(|only| only != token) {
            return Err(CommitError::NotAllowed { token, position });
        }
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
    /// Of the latest call.
    num_rows: usize,
}

impl FixedLogits {
    fn new(seed: u64) -> Self {
        let step = |&x: &u64| {
            Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        };
        let random = std::iter::successors(Some(seed), step).skip(1).map(|x| (x >> 48) as f32);
        let logit = |x: f32| if x < 200.0 { 14.0 + x / 200.0 } else { x / 65_536.0 };
        Self {
            table: random.map(logit).take(WIDTH.get() * NUM_TOKENS).collect(),
            steps: 0,
            num_rows: 0,
        }
    }

    fn rows(&mut self, beams: usize) -> &[f32] {
        self.steps += 1;
        self.num_rows = beams;
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

    fn logits(&mut self) -> Result<&[f32], DecodeError> {
        Ok(&self.table[..self.num_rows * NUM_TOKENS])
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
