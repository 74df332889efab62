//! A snapshot against a catalog built from the list that it should hold.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette_catalog::{
    BuildOptions, Catalog, CatalogConstraint, CatalogState, CodeTokens, ColumnKind, Filter, Item,
    LevelSpelling, LevelTokens, TokenTable,
};
use palmette_catalog_live::{
    CatalogView, Snapshot, SnapshotConstraint, SnapshotState, Update, ViewItems,
};
use palmette_core::{Constraint, TokenId, TokenMask};
use palmette_decode::{BeamOptions, BeamSearch, HostBackend};
use palmette_testkit::laws;
use palmette_testkit::logits::TableLogits;
use serde_json::json;

pub(crate) const MAX_LEVELS: usize = 4;
pub(crate) const NUM_CODES: u32 = 6;
const FIRST_TOKEN: u32 = 3;
const NUM_TOKENS: usize = FIRST_TOKEN as usize + MAX_LEVELS * NUM_CODES as usize + 2;

/// The contents of a live catalog, by definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Model {
    pub(crate) items: Vec<Item>,
    /// Codes of items that were deleted, by id.
    pub(crate) departed: BTreeMap<String, Vec<u32>>,
}

impl Model {
    pub(crate) fn apply(&mut self, updates: &[Update]) {
        for update in updates {
            assert!(self.apply_one(update), "{update:?} is sound");
        }
    }

    /// Applies one update; true where it could be.
    pub(crate) fn apply_one(&mut self, update: &Update) -> bool {
        let place = self.items.iter().position(|item| item.id == update.id());
        match (update, place) {
            (Update::Upsert(item), place) => {
                place.map(|place| self.items.remove(place));
                self.departed.remove(&item.id);
                self.items.push(item.clone());
            }
            (Update::Patch { attributes, .. }, Some(place)) => {
                let mut item = self.items[place].clone();
                item.attributes.extend(attributes.clone());
                item.attributes.retain(|_, value| !value.is_null());
                self.items[place] = item;
            }
            (Update::Patch { .. }, None) => return false,
            (Update::Delete(_), Some(place)) => {
                let item = self.items.remove(place);
                self.departed.insert(item.id, item.codes);
            }
            (Update::Delete(_), None) => {}
        }
        true
    }

    /// Deletes what is over at a moment; the number of items.
    pub(crate) fn expire(&mut self, now: &str) -> u64 {
        let is_over = |item: &Item| {
            item.attributes.get("until").is_some_and(|until| until.as_str().expect("a time") <= now)
        };
        let over: Vec<Item> = self.items.extract_if(.., |item| is_over(item)).collect();
        let count = over.len() as u64;
        self.departed.extend(over.into_iter().map(|item| (item.id, item.codes)));
        count
    }
}

/// Kinds of attributes that their values do not show.
pub(crate) fn build_options() -> BuildOptions {
    let columns = vec![("until".to_owned(), ColumnKind::Timestamp)];
    BuildOptions { columns, ..BuildOptions::default() }
}

pub(crate) fn item(id: u32, codes: &[u32], colour: Option<u8>, price: Option<f64>) -> Item {
    let mut attributes = serde_json::Map::new();
    attributes.extend(colour.map(|colour| ("colour".to_owned(), json!(format!("c{colour}")))));
    attributes.extend(price.map(|price| ("price".to_owned(), json!(price))));
    Item { id: format!("item{id}"), codes: codes.to_vec(), attributes }
}

pub(crate) fn tokens() -> Arc<CodeTokens> {
    // Runs that begin at odd bits, so that masks are shifted.
    let level = |l| LevelTokens { first_token: FIRST_TOKEN + l * NUM_CODES, num_codes: NUM_CODES };
    let levels = (0..MAX_LEVELS as u32).map(level).collect();
    Arc::new(CodeTokens::new(levels, NUM_TOKENS).expect("in range"))
}

/// Tokens in another order than codes, for every other level a table.
fn tables() -> Arc<CodeTokens> {
    let level = |level: u32| -> LevelSpelling {
        let first_token = FIRST_TOKEN + level * NUM_CODES;
        match level % 2 {
            0 => {
                let tokens =
                    (0..NUM_CODES).map(|code| Some(first_token + (5 * code + 2) % NUM_CODES));
                TokenTable::new(tokens).into()
            }
            _ => LevelTokens { first_token, num_codes: NUM_CODES }.into(),
        }
    };
    let levels: Vec<LevelSpelling> = (0..MAX_LEVELS as u32).map(level).collect();
    Arc::new(CodeTokens::new(levels, NUM_TOKENS).expect("in range"))
}

/// Whether a snapshot holds exactly the model's items: each one by its id, all masks, all orders,
/// and the results of a search, with and without a filter.
#[track_caller]
pub(crate) fn check(snapshot: &Arc<Snapshot>, model: &Model, filter: Option<&Filter>, seed: u64) {
    let mut found: Vec<Item> = snapshot.items().map(|at| snapshot.item(at)).collect();
    let mut wanted = model.items.clone();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    wanted.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(found, wanted, "items of generation {}", snapshot.generation());
    assert_eq!(snapshot.num_items(), wanted.len() as u64);
    for item in &wanted {
        let at = snapshot.find(&item.id).expect("it is found by its id");
        assert_eq!(snapshot.item(at), *item);
    }
    assert_eq!(snapshot.find("nothing"), None);
    for (id, codes) in &model.departed {
        assert_eq!(snapshot.departed(id).as_ref(), Some(codes), "{id} departed");
    }
    for id in wanted.iter().map(|item| item.id.as_str()).chain(["nothing"]) {
        assert_eq!(snapshot.departed(id), None, "{id} is there or never was");
    }

    let rebuilt = Catalog::build(model.items.clone().into(), &build_options());
    let rebuilt = Arc::new(rebuilt.expect("sound items"));
    check_order(&CatalogView::from(snapshot.clone()), &rebuilt, filter, seed);
    let expected = CatalogConstraint::new(rebuilt.clone(), (*tokens()).clone()).expect("they fit");
    let found = SnapshotConstraint::new(snapshot.clone(), tokens()).expect("they fit");
    check_constraint(&found, &expected, seed);
    if seed.is_multiple_of(4) {
        let expected = CatalogConstraint::new(rebuilt.clone(), tables()).expect("they fit");
        let found = SnapshotConstraint::new(snapshot.clone(), tables()).expect("they fit");
        check_constraint(&found, &expected, seed);
    }
    if let Some(filter) = filter {
        match (found.with_filter(filter), rebuilt.item_set(filter)) {
            (Ok(found), Ok(items)) => {
                check_constraint(&found, &expected.with_items(Arc::new(items)), seed);
            }
            // Attributes outlive their last item.
            (_, Err(e)) if e.is_unknown_column() && has_more_columns(snapshot, &rebuilt) => {}
            // Of several faults either may be told.
            (Err(_), Err(_)) => {}
            (found, expected) => panic!("{filter}: {found:?} and {expected:?}"),
        }
    }
}

/// Items come in the order of the rebuilt catalog's ranks, from the first and from after any.
#[track_caller]
fn check_order(view: &CatalogView, rebuilt: &Catalog, filter: Option<&Filter>, seed: u64) {
    let ids = |items: &ViewItems, after: Option<&str>| -> Vec<String> {
        let after = after.map(|id| view.find(id).expect("it is there"));
        view.in_order(items, after).map(|number| view.id(number).to_owned()).collect()
    };
    let wanted = |of: &dyn Fn(u64) -> bool| -> Vec<String> {
        let ranks = (0..rebuilt.num_items()).filter(|&rank| of(rank));
        ranks.map(|rank| rebuilt.id(rank).to_owned()).collect()
    };
    assert_eq!(ids(&view.all_items(), None), wanted(&|_| true));
    let chosen = filter.map(|filter| (view.filter(filter), rebuilt.select(filter)));
    let (items, is_chosen): (_, Box<dyn Fn(u64) -> bool>) = match chosen {
        Some((Ok(items), Ok(ranks))) => (items, Box::new(move |rank| ranks.contains(rank))),
        _ => (view.all_items(), Box::new(|_| true)),
    };
    if rebuilt.num_items() > 0 {
        let after = seed % rebuilt.num_items();
        let rest = wanted(&|rank| rank > after && is_chosen(rank));
        assert_eq!(ids(&items, Some(rebuilt.id(after))), rest, "after {after}");
    }
}

fn has_more_columns(snapshot: &Snapshot, rebuilt: &Catalog) -> bool {
    let is_gone = |name: &str| rebuilt.columns().columns().all(|column| column.name != name);
    snapshot.schema().columns.iter().any(|(name, _)| is_gone(name))
}

#[track_caller]
fn check_constraint(found: &SnapshotConstraint, expected: &CatalogConstraint, seed: u64) {
    laws::check(found, seed, 3, MAX_LEVELS + 1);
    let mut open = vec![(found.start(), expected.start())];
    let mut scratch = Default::default();
    while !open.is_empty() {
        check_masks(found, &open, &mut scratch);
        let mut next = Vec::new();
        for (state, wanted) in open {
            check_state(found, expected, &state, &wanted);
            let mut wanted_next = Vec::new();
            let Ok(()) = expected
                .successors(&wanted, &mut (), |token, state| wanted_next.push((token, state)));
            let mut found_next = Vec::new();
            let Ok(()) = found
                .successors(&state, &mut scratch, |token, state| found_next.push((token, state)));
            let tokens = |next: &[(TokenId, CatalogState)]| -> Vec<TokenId> {
                next.iter().map(|(token, _)| *token).collect()
            };
            assert_eq!(
                found_next.iter().map(|(token, _)| *token).collect::<Vec<_>>(),
                tokens(&wanted_next)
            );
            next.extend(found_next.iter().zip(&wanted_next).map(|(a, b)| (a.1, b.1)));
        }
        open = next;
    }
    let logits = TableLogits { seed, num_tokens: NUM_TOKENS, grades: 3 + (seed % 50) as u32 };
    for width in [1, 4, 50] {
        let results = (search(found, &logits, width), search(expected, &logits, width));
        let (found_results, expected_results) = results;
        assert_eq!(found_results.len(), expected_results.len());
        for (a, b) in found_results.iter().zip(&expected_results) {
            assert_eq!((&a.0, a.1.to_bits()), (&b.0, b.1.to_bits()));
            check_state(found, expected, &a.2, &b.2);
        }
    }
}

/// The masks of all states at once, and each alone, equal the definition.
#[track_caller]
fn check_masks(
    found: &SnapshotConstraint,
    states: &[(SnapshotState, CatalogState)],
    scratch: &mut <SnapshotConstraint as Constraint>::Scratch,
) {
    let words = NUM_TOKENS.div_ceil(32);
    let states: Vec<SnapshotState> = states.iter().map(|(state, _)| *state).collect();
    let mut masks = vec![u32::MAX; states.len() * words];
    let Ok(()) = found.fill_masks(&states, scratch, &mut masks);
    for (state, row) in states.iter().zip(masks.chunks(words)) {
        let mut mask = TokenMask::new(NUM_TOKENS);
        let Ok(()) = found.successors(state, scratch, |token, _| mask.insert(token));
        assert_eq!(row, mask.as_words());
    }
}

#[track_caller]
fn check_state(
    found: &SnapshotConstraint,
    expected: &CatalogConstraint,
    state: &SnapshotState,
    wanted: &CatalogState,
) {
    let ids = |at| found.snapshot().id(at).to_owned();
    let found_items: Vec<String> = found.items_at(state).map(ids).collect();
    let items = expected.items_at(wanted).map(|rank| expected.catalog().id(rank).to_owned());
    assert_eq!(found_items, items.collect::<Vec<_>>());
    assert_eq!(
        found.is_accepting(state, &mut Default::default()),
        expected.is_accepting(wanted, &mut ())
    );
    assert_eq!(state.level(), wanted.level());
}

type Found<S> = (Vec<TokenId>, f32, S);

fn search<C: Constraint>(
    constraint: &C,
    logits: &TableLogits,
    width: usize,
) -> Vec<Found<C::State>> {
    let width = NonZeroUsize::new(width).expect("positive");
    let mut search = BeamSearch::new(BeamOptions { width, max_tokens: MAX_LEVELS });
    let mut backend = HostBackend::new(logits.source());
    search.run(constraint, &mut backend).expect("tables have distributions");
    search.results().map(|h| (h.tokens.to_vec(), h.score, h.state.clone())).collect()
}
