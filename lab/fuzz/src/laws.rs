//! Laws of a catalog whose file was checked whole, on which decoding relies.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_catalog_filter::RankSet;
use palmette_catalog::index::{CatalogState, ItemSet};
use palmette_catalog::{Catalog, CatalogConstraint, Check, CodeTokens, LevelTokens};
use palmette_core::{TokenId, mask};
use palmette_testkit::laws;

use crate::ask::filters;

/// Bits of the masks that are compared; larger codes are asked for one by one.
const BITS: u32 = 1024;

/// # Panics
/// Where the catalog breaks a law.
pub fn check_laws(catalog: Catalog) {
    let subset: Vec<u64> = (0..catalog.num_items()).filter(|rank| rank % 3 == 1).collect();
    let ranks = RankSet::from_ranks(catalog.num_items(), subset.iter().copied());
    let some = catalog.index().item_set(ranks);
    let mut removed = catalog.all_items();
    for rank in (0..catalog.num_items()).filter(|rank| rank % 3 != 1) {
        assert!(removed.remove(catalog.index(), rank));
    }
    assert_eq!(removed, some, "taking items out one by one");
    let mut open = vec![catalog.start()];
    while let Some(state) = open.pop() {
        check_state(&catalog, &state, &some);
        open.extend(catalog.children(&state).into_iter().map(|(_, child)| child));
    }
    for rank in 0..catalog.num_items() {
        assert!(catalog.find(&catalog.codes(rank)).contains(&rank), "codes of rank {rank}");
        assert_eq!(catalog.rank_of(catalog.id(rank)), Some(rank), "id of rank {rank}");
    }
    check_filters(&catalog);
    let stats = catalog.stats();
    assert_eq!(stats.lengths.iter().sum::<u64>(), catalog.num_items());
    let again = Catalog::from_bytes("again", catalog.to_bytes(), Check::Whole);
    assert_eq!(again.expect("its own file"), catalog);
    check_tokens(catalog);
}

/// Children partition what the items that end here leave; and mask, successors and children agree.
fn check_state(catalog: &Catalog, state: &CatalogState, some: &ItemSet) {
    let (within, here) = (state.ranks(), catalog.items_at(state));
    assert_eq!(here.start, within.start);
    assert!(here.end <= within.end && (state.level() > 0 || here.is_empty()), "an empty ID");
    let children = catalog.children(state);
    let mut end = here.end;
    for (code, child) in &children {
        assert_eq!(child.ranks().start, end, "a gap before code {code}");
        assert!(!child.ranks().is_empty(), "code {code} leads nowhere");
        assert!(*code < catalog.index().code_bounds()[state.level()], "code {code}");
        assert_eq!(catalog.child(state, *code), Some(*child), "committing {code}");
        end = child.ranks().end;
    }
    assert_eq!(end, within.end, "items that nothing leads to");
    assert!(children.is_sorted_by_key(|(code, _)| *code));
    let codes: BTreeSet<u32> = children.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes.len(), children.len());
    check_masks(catalog, state, None, &codes);
    let kept = children.iter().filter(|(_, child)| some.ranks().any_in(child.ranks()));
    let kept: BTreeSet<u32> = kept.map(|(code, _)| *code).collect();
    check_masks(catalog, state, Some(some), &kept);
    for code in (0..64).chain(codes.iter().flat_map(|&code| [code.wrapping_sub(1), code + 1])) {
        assert_eq!(catalog.child(state, code).is_some(), codes.contains(&code), "code {code}");
    }
}

fn check_masks(
    catalog: &Catalog,
    state: &CatalogState,
    items: Option<&ItemSet>,
    expected: &BTreeSet<u32>,
) {
    for first_bit in [0, 5] {
        let words = mask::num_words((BITS + first_bit) as usize);
        let mut row = vec![u32::MAX; words];
        let first_bits = vec![first_bit; catalog.num_levels()];
        catalog.index().fill_masks(&[*state], items, &first_bits, words, &mut row);
        let shifted =
            |token: TokenId| token.0.checked_sub(first_bit).expect("not before the first bit");
        let found: Vec<u32> = mask::iter(&row).map(shifted).filter(|&code| code < BITS).collect();
        let expected: Vec<u32> = expected.iter().copied().filter(|&code| code < BITS).collect();
        if state.level() < catalog.num_levels() {
            assert_eq!(found, expected, "mask with items: {}", items.is_some());
        }
    }
    let mut visited = BTreeSet::new();
    catalog.index().successors(&[*state], items, |_, code, _| assert!(visited.insert(code)));
    assert_eq!(visited, *expected, "successors with items: {}", items.is_some());
}

fn check_filters(catalog: &Catalog) {
    let kind = |name: &str| catalog.columns().columns().find(|c| c.name == name).map(|c| c.kind);
    for filter in filters(catalog) {
        let Ok(selected) = catalog.select(&filter) else { continue };
        for rank in 0..catalog.num_items() {
            let matches = filter.matches(catalog.id(rank), &catalog.attributes(rank), &kind);
            assert_eq!(selected.contains(rank), matches, "{filter} on rank {rank}");
        }
    }
}

fn check_tokens(catalog: Catalog) {
    let mut first_token = 3;
    let levels = catalog.index().code_bounds().iter().map(|&num_codes| {
        let level = LevelTokens { first_token, num_codes };
        first_token = first_token.saturating_add(num_codes);
        level
    });
    let levels: Vec<LevelTokens> = levels.collect();
    // The laws ask about every token at every state.
    if first_token > BITS {
        return;
    }
    let max_steps = levels.len() + 1;
    let tokens = CodeTokens::new(levels, first_token as usize).expect("within the vocabulary");
    let constraint = CatalogConstraint::new(Arc::new(catalog), tokens).expect("codes have tokens");
    laws::check(&constraint, 1, 2, max_steps);
}
