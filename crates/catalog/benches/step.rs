//! What does a catalog cost a decoder at each step, and does that grow with the catalog?
//!
//! ```text
//! cargo bench -p palmette-catalog
//! cargo bench -p palmette-catalog -- fill_mask
//! ```
//!
//! Measured: `fill_mask`, `successors`, `commit` and `rollback` of one token, each for 128 beams,
//! by number of items and by level; and, printed before, the time to build and the bytes of the
//! index. Level 0 is where all beams stand at the start. A beam of level `l` has `l` codes:
//! `fill_mask` and `successors` list its next codes, `commit` adds one of them, and `rollback`
//! takes that one back.
//!
//! Data: items with 4 codes below 256, uniform from a fixed seed. Beams are the prefixes of 128 of
//! them, drawn at random; 256 such sets take turns, since a decoder does not ask about the same
//! beams again while the answer is in the nearest cache. How many codes may follow depends on the
//! number of items, so it is printed too: compare costs per code, or at level 0, where it is always
//! 256.
//!
//! Baseline, `PrefixTrie`: a hash map from each prefix to the set of codes that may follow. It is
//! held to the same masks before anything is timed.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use divan::{Bencher, black_box};
use palmette_catalog::{BuildOptions, Catalog, CatalogConstraint, CodeTokens, Item, LevelTokens};
use palmette_core::{CommitError, Constraint, RollbackError, TokenId, mask};

const NUM_LEVELS: usize = 4;
const NUM_CODES: u32 = 256;
/// Begin and padding, before the first level's codes.
const OTHER_TOKENS: u32 = 2;
const NUM_TOKENS: usize = OTHER_TOKENS as usize + NUM_LEVELS * NUM_CODES as usize;
const NUM_BEAMS: usize = 128;
const NUM_BEAM_SETS: usize = 256;

const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];
const LEVELS: [usize; NUM_LEVELS] = [0, 1, 2, 3];

type Codes = [u32; NUM_LEVELS];

static FIXTURES: LazyLock<[Fixture; SIZES.len()]> = LazyLock::new(|| SIZES.map(Fixture::new));

fn main() {
    FIXTURES.iter().for_each(Fixture::print);
    divan::main();
}

#[divan::bench(types = [CatalogConstraint, PrefixTrie], consts = SIZES, args = LEVELS)]
fn fill_mask<C: Case, const N: usize>(bencher: Bencher, level: usize) {
    let constraint = C::of(fixture(N));
    let sets = states::<C>(fixture(N), level);
    let words_per_row = mask::num_words(NUM_TOKENS);
    let mut masks = vec![0; NUM_BEAMS * words_per_row];
    let mut scratch = C::Scratch::default();
    bencher.with_inputs(in_turn(&sets)).bench_local_values(|states| {
        for (state, words) in states.iter().zip(masks.chunks_mut(words_per_row)) {
            constraint.fill_mask(state, &mut scratch, words).expect("no limits");
        }
        black_box(&mut masks);
    });
}

#[divan::bench(types = [CatalogConstraint, PrefixTrie], consts = SIZES, args = LEVELS)]
fn successors<C: Case, const N: usize>(bencher: Bencher, level: usize) {
    let constraint = C::of(fixture(N));
    let sets = states::<C>(fixture(N), level);
    let mut scratch = C::Scratch::default();
    bencher.with_inputs(in_turn(&sets)).bench_local_values(|states| {
        for state in states {
            let visit = |token, next| _ = black_box((token, next));
            constraint.successors(state, &mut scratch, visit).expect("no limits");
        }
    });
}

#[divan::bench(types = [CatalogConstraint, PrefixTrie], consts = SIZES, args = LEVELS)]
fn commit<C: Case, const N: usize>(bencher: Bencher, level: usize) {
    let constraint = C::of(fixture(N));
    let tokens_of = |beams: &Vec<Codes>| -> Vec<TokenId> {
        beams.iter().map(|codes| token(level, codes[level])).collect()
    };
    let tokens = fixture(N).beam_sets.iter().map(tokens_of);
    let sets: Vec<_> = states::<C>(fixture(N), level).into_iter().zip(tokens).collect();
    let mut next_set = in_turn(&sets);
    let mut scratch = C::Scratch::default();
    bencher.with_inputs(|| next_set().clone()).bench_local_refs(|(states, tokens)| {
        for (state, &mut token) in states.iter_mut().zip(tokens) {
            constraint.commit(state, token, &mut scratch).expect("a code of an item");
        }
    });
}

#[divan::bench(types = [CatalogConstraint, PrefixTrie], consts = SIZES, args = LEVELS)]
fn rollback<C: Case, const N: usize>(bencher: Bencher, level: usize) {
    let constraint = C::of(fixture(N));
    let sets = states::<C>(fixture(N), level + 1);
    let mut next_set = in_turn(&sets);
    bencher.with_inputs(|| next_set().clone()).bench_local_refs(|states| {
        for state in states {
            constraint.rollback(state, 1).expect("at least one code");
        }
    });
}

fn in_turn<'a, T>(sets: &'a [T]) -> impl FnMut() -> &'a T {
    let mut sets = sets.iter().cycle();
    move || sets.next().expect("there are sets")
}

/// Positions of the beams of each set after `level` codes.
fn states<C: Case>(fixture: &Fixture, level: usize) -> Vec<Vec<C::State>> {
    let constraint = C::of(fixture);
    let walk = |codes: &Codes| {
        let (mut state, mut scratch) = (constraint.start(), C::Scratch::default());
        for (at, &code) in codes.iter().enumerate().take(level) {
            constraint
                .commit(&mut state, token(at, code), &mut scratch)
                .expect("a prefix of an item");
        }
        state
    };
    fixture.beam_sets.iter().map(|beams| beams.iter().map(walk).collect()).collect()
}

fn token(level: usize, code: u32) -> TokenId {
    TokenId(OTHER_TOKENS + level as u32 * NUM_CODES + code)
}

/// The same items both ways, and where the beams stand.
struct Fixture {
    catalog: CatalogConstraint,
    trie: PrefixTrie,
    beam_sets: Vec<Vec<Codes>>,
    catalog_time: Duration,
    trie_time: Duration,
}

fn fixture(num_items: usize) -> &'static Fixture {
    let place = SIZES.iter().position(|&size| size == num_items).expect("one of SIZES");
    &FIXTURES[place]
}

/// A constraint of a fixture.
trait Case: Constraint<State: Sync> {
    fn of(fixture: &Fixture) -> &Self;
}

impl Case for CatalogConstraint {
    fn of(fixture: &Fixture) -> &Self {
        &fixture.catalog
    }
}

impl Case for PrefixTrie {
    fn of(fixture: &Fixture) -> &Self {
        &fixture.trie
    }
}

impl Fixture {
    fn new(num_items: usize) -> Self {
        let mut random = Random(num_items as u64);
        let codes: Vec<Codes> = (0..num_items)
            .map(|_| std::array::from_fn(|_| random.below(NUM_CODES as usize) as u32))
            .collect();
        let mut beams = || (0..NUM_BEAMS).map(|_| codes[random.below(num_items)]).collect();
        let beam_sets = (0..NUM_BEAM_SETS).map(|_| beams()).collect();

        let (catalog, catalog_time) = median_of_three(|| items(&codes), build_catalog);
        let (trie, trie_time) = median_of_three(|| (), |()| PrefixTrie::new(&codes));
        let level = |l| LevelTokens { first_token: token(l, 0).0, num_codes: NUM_CODES };
        let tokens = CodeTokens::new(LEVELS.map(level).to_vec(), NUM_TOKENS).expect("they fit");
        let catalog = CatalogConstraint::new(Arc::new(catalog), tokens).expect("they fit");
        let fixture = Self { catalog, trie, beam_sets, catalog_time, trie_time };
        LEVELS.iter().for_each(|&level| fixture.assert_same_masks(level));
        fixture
    }

    fn assert_same_masks(&self, level: usize) {
        assert_eq!(masks::<CatalogConstraint>(self, level), masks::<PrefixTrie>(self, level));
    }

    fn print(&self) {
        let catalog = self.catalog.catalog();
        let num_items = catalog.num_items() as f64;
        let per_item = |time: Duration| time.as_nanos() as f64 / num_items;
        let (ours, theirs) = (catalog.index().bytes(), self.trie.least_bytes());
        eprintln!("{num_items} items");
        eprintln!(
            "  build: CatalogConstraint {:.0} ns an item, PrefixTrie {:.0} ns",
            per_item(self.catalog_time),
            per_item(self.trie_time)
        );
        eprintln!(
            "  index: CatalogConstraint {:.2} bytes an item, PrefixTrie at least {:.0}",
            ours as f64 / num_items,
            theirs as f64 / num_items
        );
        for level in LEVELS {
            let masks = masks::<PrefixTrie>(self, level);
            let allowed: usize = masks.iter().map(|words| mask::count(words)).sum();
            let mean = allowed as f64 / masks.len() as f64;
            eprintln!("  level {level}: {mean:.2} codes may follow a beam");
        }
    }
}

fn masks<C: Case>(fixture: &Fixture, level: usize) -> Vec<Vec<u32>> {
    let fill = |state: &C::State| {
        let mut words = vec![u32::MAX; mask::num_words(NUM_TOKENS)];
        let filled = C::of(fixture).fill_mask(state, &mut C::Scratch::default(), &mut words);
        filled.expect("no limits");
        words
    };
    states::<C>(fixture, level).iter().flatten().map(fill).collect()
}

/// Items as short as they can be: a number as id, no attributes.
fn items(codes: &[Codes]) -> Vec<Item> {
    let item = |(number, codes): (usize, &Codes)| Item {
        id: number.to_string(),
        codes: codes.to_vec(),
        attributes: Default::default(),
    };
    codes.iter().enumerate().map(item).collect()
}

fn build_catalog(items: Vec<Item>) -> Catalog {
    Catalog::build(items.into(), &BuildOptions::default()).expect("the codes are within limits")
}

/// Makes the same thing three times. What `prepare` does is not timed.
fn median_of_three<I, T>(prepare: impl Fn() -> I, make: impl Fn(I) -> T) -> (T, Duration) {
    let timed = || {
        let input = prepare();
        let start = Instant::now();
        let made = make(input);
        (made, start.elapsed())
    };
    let mut times = [timed().1, timed().1, Duration::ZERO];
    let (made, last) = timed();
    times[2] = last;
    times.sort_unstable();
    (made, times[1])
}

/// A hash map from each prefix to the codes that may follow it.
struct PrefixTrie {
    next_codes: HashMap<Vec<u32>, BTreeSet<u32>>,
}

/// The codes so far, without an allocation of their own; places past `len` hold 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prefix {
    codes: Codes,
    len: usize,
}

impl Prefix {
    fn codes(&self) -> &[u32] {
        &self.codes[..self.len]
    }

    fn then(mut self, code: u32) -> Self {
        self.codes[self.len] = code;
        self.len += 1;
        self
    }
}

impl PrefixTrie {
    fn new(items: &[Codes]) -> Self {
        let mut next_codes: HashMap<Vec<u32>, BTreeSet<u32>> = HashMap::new();
        for codes in items {
            for (level, &code) in codes.iter().enumerate() {
                let prefix = &codes[..level];
                match next_codes.get_mut(prefix) {
                    Some(codes) => _ = codes.insert(code),
                    None => _ = next_codes.insert(prefix.to_vec(), BTreeSet::from([code])),
                }
            }
        }
        Self { next_codes }
    }

    /// The map's entries with one byte each of its own, the keys' codes, and 4 bytes a code in the
    /// sets: what cannot be saved, leaving out spare places, links and the allocator's own.
    fn least_bytes(&self) -> usize {
        let entry = size_of::<(Vec<u32>, BTreeSet<u32>)>() + 1;
        self.next_codes.iter().map(|(prefix, codes)| entry + 4 * (prefix.len() + codes.len())).sum()
    }

    fn codes(&self, state: &Prefix) -> impl Iterator<Item = u32> {
        self.next_codes.get(state.codes()).into_iter().flatten().copied()
    }
}

impl Constraint for PrefixTrie {
    type State = Prefix;
    type Scratch = ();
    type Error = Infallible;

    fn num_tokens(&self) -> usize {
        NUM_TOKENS
    }

    fn start(&self) -> Prefix {
        Prefix { codes: [0; NUM_LEVELS], len: 0 }
    }

    fn fill_mask(&self, state: &Prefix, (): &mut (), words: &mut [u32]) -> Result<(), Infallible> {
        words.fill(0);
        self.codes(state).for_each(|code| mask::insert(words, token(state.len, code)));
        Ok(())
    }

    fn successors(
        &self,
        state: &Prefix,
        (): &mut (),
        mut visit: impl FnMut(TokenId, Prefix),
    ) -> Result<(), Infallible> {
        self.codes(state).for_each(|code| visit(token(state.len, code), state.then(code)));
        Ok(())
    }

    fn commit(&self, state: &mut Prefix, token: TokenId, (): &mut ()) -> Result<(), CommitError> {
        let num_tokens = NUM_TOKENS;
        if token.index() >= num_tokens {
            return Err(CommitError::UnknownToken { token, num_tokens });
        }
        let codes = self.next_codes.get(state.codes());
        let code = token.0.wrapping_sub(self::token(state.len, 0).0);
        if !codes.is_some_and(|codes| codes.contains(&code)) {
            return Err(CommitError::NotAllowed { token, position: state.len });
        }
        *state = state.then(code);
        Ok(())
    }

    fn rollback(&self, state: &mut Prefix, num_tokens: usize) -> Result<(), RollbackError> {
        state.len = RollbackError::remaining(state.len, num_tokens)?;
        state.codes[state.len..].fill(0);
        Ok(())
    }

    fn is_accepting(&self, state: &Prefix, (): &mut ()) -> Result<bool, Infallible> {
        Ok(state.len == NUM_LEVELS)
    }
}

/// A 64-bit linear congruential generator; its upper bits are the random ones.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        const STEP: u64 = 6_364_136_223_846_793_005;
        self.0 = self.0.wrapping_mul(STEP).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) as usize * bound) >> 32
    }
}
