//! A step over a catalog, over some of its items, and over a snapshot of several segments allocates
//! nothing once its buffers are warm.

use std::sync::Arc;

use palmette_catalog::{BuildOptions, Catalog, CatalogConstraint, CodeTokens, Item, LevelTokens};
use palmette_catalog_filter::RankSet;
use palmette_catalog_live::{LiveCatalog, LiveOptions, MergePolicy, SnapshotConstraint, Update};
use palmette_core::{Constraint, TokenId, mask};
use palmette_testkit::allocations::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LEVELS: u32 = 3;
const NUM_CODES: u32 = 20;

/// `count` items from number `first` on; their IDs are of all forms, and share prefixes.
fn items(first: u32, count: u32) -> Vec<Item> {
    let item = |n: u32| {
        let mixed = n.wrapping_mul(2_654_435_761);
        let code = |level: u32| (mixed >> (9 * level)) % NUM_CODES;
        Item {
            id: n.to_string(),
            codes: (0..LEVELS).map(code).collect(),
            attributes: Default::default(),
        }
    };
    (first..first + count).map(item).collect()
}

fn tokens() -> CodeTokens {
    let level = |l: u32| LevelTokens { first_token: 1 + l * NUM_CODES, num_codes: NUM_CODES };
    CodeTokens::new((0..LEVELS).map(level).collect(), 61).expect("within the vocabulary")
}

/// Walks all beams of a level to the next, several at once, as a search does.
fn walk<C: Constraint>(constraint: &C, scratch: &mut C::Scratch, buffers: &mut Buffers<C::State>) {
    let words = mask::num_words(constraint.num_tokens());
    buffers.states.clear();
    buffers.states.push(constraint.start());
    for _ in 0..=LEVELS {
        let masks = &mut buffers.masks[..buffers.states.len() * words];
        constraint.fill_masks(&buffers.states, scratch, masks).expect("no limits");
        buffers.next.clear();
        for (state, row) in buffers.states.iter().zip(masks.chunks_exact(words)) {
            let mut last = None;
            let visit = |token, _| last = Some(token);
            constraint.successors(state, scratch, visit).expect("no limits");
            for token in mask::iter(row).take(4) {
                let mut next = state.clone();
                constraint.commit(&mut next, token, scratch).expect("the mask allows it");
                buffers.next.push(next);
            }
            assert_eq!(last.is_some(), !mask::is_empty(row));
            buffers.steps += 1;
        }
        std::mem::swap(&mut buffers.states, &mut buffers.next);
    }
}

struct Buffers<S> {
    states: Vec<S>,
    next: Vec<S>,
    masks: Vec<u32>,
    steps: usize,
}

#[track_caller]
fn check<C: Constraint>(constraint: &C) {
    let mut scratch = C::Scratch::default();
    let mut buffers = Buffers {
        states: Vec::with_capacity(256),
        next: Vec::with_capacity(256),
        masks: vec![0; 256 * mask::num_words(constraint.num_tokens())],
        steps: 0,
    };
    walk(constraint, &mut scratch, &mut buffers);
    let before = allocations();
    walk(constraint, &mut scratch, &mut buffers);
    assert_eq!(allocations() - before, 0, "allocations of the second walk");
    assert!(buffers.steps > 2 * 16, "it took {} steps", buffers.steps);
}

#[test]
fn a_catalog_and_some_of_its_items() {
    for dense_levels in [Some(0), Some(2), None] {
        let options = BuildOptions { dense_levels, ..BuildOptions::default() };
        let catalog =
            Arc::new(Catalog::build(items(0, 3000).into(), &options).expect("sound items"));
        let constraint = CatalogConstraint::new(catalog.clone(), tokens()).expect("they fit");
        check(&constraint);
        let some = RankSet::from_ranks(catalog.num_items(), (0..catalog.num_items()).step_by(3));
        check(&constraint.with_items(Arc::new(catalog.index().item_set(some))));
    }
}

#[test]
fn a_snapshot_of_several_segments() {
    let dir = tempfile::tempdir().expect("a folder");
    let base =
        Catalog::build(items(0, 2000).into(), &BuildOptions::default()).expect("sound items");
    let options =
        LiveOptions { memory_items: 64, merging: MergePolicy::Never, ..LiveOptions::default() };
    let live =
        LiveCatalog::create_with(dir.path(), Some(base), None, options).expect("an empty folder");
    for batch in 0..4 {
        let upserts = items(2000 + batch * 70, 70).into_iter().map(Update::Upsert);
        let deletes = (batch * 50..batch * 50 + 20).map(|n| Update::Delete(n.to_string()));
        live.apply(&upserts.chain(deletes).collect::<Vec<Update>>()).expect("sound updates");
    }
    let snapshot = live.snapshot();
    assert!(snapshot.segments().len() > 2);
    check(&SnapshotConstraint::new(snapshot, Arc::new(tokens())).expect("they fit"));
}

/// The counter sees what it is there to see.
#[test]
fn allocations_are_counted() {
    let before = allocations();
    let tokens: Vec<TokenId> = (0..100).map(TokenId).collect();
    assert!(allocations() > before, "{tokens:?}");
}
