//! Everything there is to ask of a catalog, within a bounded number of questions.

use palmette_catalog_filter::RankSet;
use palmette_catalog::{Catalog, Filter};
use std::sync::Arc;

use palmette_catalog::{CatalogConstraint, CodeTokens, LevelTokens};
use palmette_core::{Constraint, TokenId};

const MAX_STATES: usize = 200;
const MAX_CHILDREN: usize = 1000;
const MAX_RANKS: u64 = 60;
const WORDS: usize = 10;

/// Asks a catalog of which only the frame was checked: answers may be wrong, but there are answers.
pub fn ask_everything(catalog: Catalog) {
    let index = catalog.index();
    let mut all = catalog.all_items();
    let some = RankSet::from_ranks(catalog.num_items(), (0..catalog.num_items()).step_by(3));
    let some = index.item_set(some);
    let mut masks = vec![0; WORDS];
    let mut open = vec![catalog.start()];
    let mut num_states = 0;
    while let Some(state) = open.pop() {
        num_states += 1;
        for items in [None, Some(&all), Some(&some)] {
            index.fill_masks(&[state], items, &[3, 10], WORDS, &mut masks);
            let mut num_children = 0;
            index.successors(&[state], items, |_, code, child| {
                num_children += 1;
                if num_children < MAX_CHILDREN {
                    _ = catalog.child(&state, code);
                    _ = catalog.child(&state, code ^ 1);
                    if open.len() + num_states < MAX_STATES {
                        open.push(child);
                    }
                }
            });
        }
        let items = catalog.items_at(&state);
        assert!(items.start <= items.end && items.end <= catalog.num_items());
        items.take(5).for_each(|rank| _ = catalog.id(rank));
    }
    for rank in (0..catalog.num_items()).take(MAX_RANKS as usize) {
        _ = catalog.find(&catalog.codes(rank));
        catalog.attributes(rank);
        catalog.title(rank);
        catalog.rank_of(catalog.id(rank));
        all.remove(index, rank);
    }
    for level in 0..catalog.num_levels() {
        index.largest_code(level);
        index.level_shape(level);
    }
    for filter in filters(&catalog) {
        _ = catalog.item_set(&filter);
    }
    ask_tokens(catalog);
}

/// Some filters on every column, whatever it is.
pub(crate) fn filters(catalog: &Catalog) -> Vec<Filter> {
    let mut filters = vec![r#"{"must": {"ids": ["P1", "P2"]}, "exclude": ["P2"]}"#.to_owned()];
    for column in catalog.columns().columns() {
        let name = serde_json::Value::from(column.name);
        filters.push(format!(r#"{{"must": {{"exists": {name}}}}}"#));
        for value in ["\"oak\"", "0", "-1.5", "true", "86400"] {
            filters.push(format!(r#"{{"should": {{"match": {{{name}: {value}}}}}}}"#));
            filters.push(format!(r#"{{"must_not": {{"range": {{{name}: {{"gte": {value}}}}}}}}}"#));
        }
    }
    filters.iter().map(|text| Filter::parse(text).expect("a filter")).collect()
}

/// Asks a catalog for codes as tokens: none is past the vocabulary.
fn ask_tokens(catalog: Catalog) {
    const NUM_CODES: u32 = 45;
    let levels = (0..catalog.num_levels() as u32)
        .map(|level| LevelTokens { first_token: 3 + level * NUM_CODES, num_codes: NUM_CODES });
    let levels: Vec<LevelTokens> = levels.collect();
    let num_tokens = 3 + levels.len() * NUM_CODES as usize;
    let tokens = CodeTokens::new(levels, num_tokens).expect("within the vocabulary");
    let Ok(constraint) = CatalogConstraint::new(Arc::new(catalog), tokens) else { return };
    let (mut open, mut num_states) = (vec![constraint.start()], 0);
    while let Some(state) = open.pop() {
        num_states += 1;
        let Ok(()) = constraint.successors(&state, &mut (), |token, next| {
            assert!(token.index() < num_tokens, "token {token} of {num_tokens}");
            if open.len() + num_states < MAX_STATES {
                open.push(next);
            }
        });
        let mut next = state;
        _ = constraint.commit(&mut next, TokenId(3), &mut ());
        _ = constraint.rollback(&mut next, 1);
        _ = constraint.is_accepting(&state, &mut ());
    }
}
