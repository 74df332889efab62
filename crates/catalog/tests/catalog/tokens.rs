//! Levels spelled by tables of tokens, against runs and plain sets.

use std::sync::Arc;

use palmette_catalog::index::MaskRows;
use palmette_catalog::{
    BuildOptions, Catalog, CatalogConstraint, CatalogState, CodeTokens, Item, LevelSpelling,
    LevelTokens, TokenTable, TokensError,
};
use palmette_catalog_filter::RankSet;
use palmette_core::{Constraint, TokenId, TokenMask, mask};
use palmette_testkit::{SequenceSet, laws};
use proptest::prelude::*;

const NUM_CODES: u32 = 6;
const MAX_LEVELS: usize = 4;
const NUM_TOKENS: usize = 70;

fn build(ids: &[Vec<u32>]) -> Arc<Catalog> {
    let item = |(n, codes): (usize, &Vec<u32>)| Item {
        id: n.to_string(),
        codes: codes.clone(),
        attributes: Default::default(),
    };
    let items: Vec<Item> = ids.iter().enumerate().map(item).collect();
    Arc::new(Catalog::build(items.into(), &BuildOptions::default()).expect("sound items"))
}

fn ids() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let fixed = prop::collection::vec(0..NUM_CODES, 3);
    let ragged = prop::collection::vec(0..NUM_CODES, 1..=MAX_LEVELS);
    prop_oneof![prop::collection::vec(fixed, 0..60), prop::collection::vec(ragged, 0..60)]
}

/// Spellings of levels, each a run or tokens in any order, of the whole vocabulary: levels share
/// tokens.
fn levels() -> impl Strategy<Value = Vec<LevelSpelling>> {
    let run = (0..NUM_TOKENS as u32 - NUM_CODES)
        .prop_map(|first_token| LevelTokens { first_token, num_codes: NUM_CODES }.into());
    let tokens = prop::sample::subsequence((0..NUM_TOKENS as u32).collect::<Vec<_>>(), 6);
    let table = tokens
        .clone()
        .prop_shuffle()
        .prop_map(|tokens| TokenTable::new(tokens.into_iter().map(Some)).into());
    let ascending = tokens.prop_map(|tokens| TokenTable::new(tokens.into_iter().map(Some)).into());
    prop::collection::vec(prop_oneof![run, table, ascending], MAX_LEVELS)
}

/// Successors, with the items of each position.
type Children = Vec<(TokenId, CatalogState)>;

fn successors(constraint: &CatalogConstraint, state: &CatalogState) -> Children {
    let mut found = Vec::new();
    let Ok(()) = constraint.successors(state, &mut (), |token, next| found.push((token, next)));
    found
}

proptest! {
    #[test]
    fn tables_obey_the_laws(ids in ids(), levels in levels(), seed: u64, every in 1..4_usize) {
        let catalog = build(&ids);
        let tokens = CodeTokens::new(levels, NUM_TOKENS).unwrap();
        let all = CatalogConstraint::new(Arc::clone(&catalog), tokens).unwrap();
        laws::check(&all, seed, 4, 6);
        let some = (0..catalog.num_items()).step_by(every);
        let some = RankSet::from_ranks(catalog.num_items(), some);
        laws::check(&all.with_items(Arc::new(catalog.index().item_set(some))), seed, 4, 6);
    }

    #[test]
    fn masks_by_tables_equal_the_definition(ids in ids(), levels in levels()) {
        let catalog = build(&ids);
        let tokens = CodeTokens::new(levels, NUM_TOKENS).unwrap();
        let spelled = |codes: &Vec<u32>| -> Vec<u32> {
            let codes = codes.iter().enumerate();
            codes.map(|(level, &code)| tokens.token(level, code).unwrap().0).collect()
        };
        let set = SequenceSet::new(NUM_TOKENS, ids.iter().map(spelled));
        let constraint = CatalogConstraint::new(catalog, tokens.clone()).unwrap();
        let mut rows = MaskRows::new(mask::num_words(NUM_TOKENS));
        let mut open = vec![(constraint.start(), set.start())];
        while let Some((state, prefix)) = open.pop() {
            let mut want = TokenMask::new(NUM_TOKENS);
            let Ok(()) = set.fill_mask(&prefix, &mut (), want.as_words_mut());
            constraint.fill_mask_rows(&[state, constraint.start()], &mut rows);
            prop_assert_eq!(rows.row(0), want.as_words(), "after {:?}", prefix);
            for (token, next) in successors(&constraint, &state) {
                let mut prefix = prefix.clone();
                set.commit(&mut prefix, token, &mut ()).unwrap();
                open.push((next, prefix));
            }
        }
    }

    /// Renaming tokens renames what follows, and nothing else.
    #[test]
    fn tables_and_runs_agree(ids in ids(), levels in levels()) {
        let catalog = build(&ids);
        let run = LevelTokens { first_token: 0, num_codes: NUM_CODES };
        let runs = CodeTokens::new(vec![run; MAX_LEVELS], NUM_TOKENS).unwrap();
        let runs = CatalogConstraint::new(Arc::clone(&catalog), runs).unwrap();
        let tokens = CodeTokens::new(levels, NUM_TOKENS).unwrap();
        let tables = CatalogConstraint::new(catalog, tokens.clone()).unwrap();
        let mut open = vec![runs.start()];
        while let Some(state) = open.pop() {
            let mut want: Children = successors(&runs, &state);
            open.extend(want.iter().map(|&(_, next)| next));
            for (token, _) in &mut want {
                *token = tokens.token(state.level(), token.0).unwrap();
            }
            want.sort_by_key(|&(token, _)| token);
            prop_assert_eq!(successors(&tables, &state), want);
        }
    }
}

fn table(tokens: impl IntoIterator<Item = i64>) -> LevelSpelling {
    TokenTable::new(tokens.into_iter().map(|token| u32::try_from(token).ok())).into()
}

#[test]
fn tokens_in_a_row_are_a_run() {
    let run = LevelTokens { first_token: 4, num_codes: 3 };
    assert_eq!(table([4, 5, 6]), LevelSpelling::Run(run));
    assert!(matches!(table([4, 6, 5]), LevelSpelling::Table(_)));
    assert!(matches!(table([-1, 0]), LevelSpelling::Table(_)));
    assert_eq!(table([]).num_codes(), 0);
}

#[test]
fn wrong_tables_are_named() {
    let join = |levels: Vec<LevelSpelling>| CodeTokens::new(levels, 10);
    let past = TokensError::TokenPastVocabulary { level: 1, code: 0, token: 10, num_tokens: 10 };
    assert_eq!(join(vec![table([1]), table([10, 2])]), Err(past));
    let twice = TokensError::RepeatedToken { level: 0, first: 0, second: 2, token: 7 };
    assert_eq!(join(vec![table([7, 3, 7])]), Err(twice));
    // Levels may share tokens.
    assert!(join(vec![table([7, 3]), table([7, 3])]).is_ok());
}

#[test]
fn codes_in_use_need_a_token() {
    let catalog = build(&[vec![0, 5], vec![1, 2], vec![3, 2]]);
    let join = |levels: Vec<LevelSpelling>| {
        let tokens = CodeTokens::new(levels, 40).unwrap();
        CatalogConstraint::new(Arc::clone(&catalog), tokens).map(|_| ())
    };
    let second = || table([-1, -1, 9, -1, -1, 8]);
    assert_eq!(join(vec![table([5, 3, -1, 1]), second()]), Ok(()));
    let gap =
        |level, code, item: &str| TokensError::UnspelledCode { level, code, item: item.into() };
    assert_eq!(join(vec![table([5, -1, 4, -1]), second()]), Err(gap(0, 1, "1")));
    assert_eq!(
        join(vec![table([5, 3, 4, 1]), table([-1, -1, -1, -1, -1, 8])]),
        Err(gap(1, 2, "1"))
    );
    let past = TokensError::CodeWithoutToken { level: 1, code: 5, num_codes: 3, item: "0".into() };
    assert_eq!(join(vec![table([5, 3, 4, 1]), table([3, 9, 2])]), Err(past));
}
