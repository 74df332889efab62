//! Semantic IDs in a model's tokens against their spellings in a sorted map.

use std::collections::BTreeMap;
use std::sync::Arc;

use palmette_catalog::{
    BuildOptions, Catalog, CodeTokens, Filter, Item, LevelSpelling, LevelTokens, TokenTable,
};
use palmette_catalog_live::{
    CatalogView, LiveCatalog, LiveOptions, MergePolicy, SyncPolicy, Update,
};
use palmette_catalog_members::{CatalogFields, CodeSet};
use palmette_core::{MemberId, MemberSet, TokenId, VocabularyTrie};
use palmette_testkit::member_sets::{NaiveSet, assert_equal_sets};
use proptest::prelude::*;
use serde_json::json;

const NUM_TOKENS: usize = 70_000;
const FILTERS: [&str; 5] = [
    "{}",
    r#"{"range": {"stock": {"lt": 2}}}"#,
    r#"{"exclude": ["i1", "i4", "nobody"]}"#,
    r#"{"ids": ["i0", "i7", "i8"]}"#,
    r#"{"match": {"stock": 9}}"#,
];

/// Levels that share tokens, as runs and as a table whose tokens descend.
fn tokens() -> Arc<CodeTokens> {
    let run = |first_token, num_codes| LevelTokens { first_token, num_codes }.into();
    let table = TokenTable::new([Some(66_000), Some(3), Some(300), None, Some(2)]);
    let levels: Vec<LevelSpelling> = vec![run(254, 4), table.into(), run(255, 3)];
    Arc::new(CodeTokens::new(levels, NUM_TOKENS).expect("tokens of the vocabulary"))
}

/// Numbers of tokens, some of no code, and texts that begin, end and go on as numbers do.
fn trie() -> VocabularyTrie {
    let number = |token: u32| TokenId(token).to_spelling().to_vec();
    let numbers = [0, 2, 3, 254, 255, 256, 257, 300, 66_000, 69_999];
    let mut texts: Vec<(Vec<u8>, TokenId)> =
        numbers.iter().map(|&token| (number(token), TokenId(token))).collect();
    let other = [
        b"a".to_vec(),
        vec![0xFF],
        vec![0xFF, 0, 0],
        vec![0xFF, 0, 1, 1],
        vec![0, 0, 1],
        vec![1, 1, 0xFF],
        [number(254), number(3)].concat(),
        [number(254), vec![0xFF, 0]].concat(),
        [number(255), b"a".to_vec()].concat(),
    ];
    texts.extend(other.into_iter().zip((100..).map(TokenId)));
    VocabularyTrie::from_texts(texts.iter().map(|(text, token)| (&text[..], *token)))
}

fn set(view: &CatalogView, filter: &Filter) -> CodeSet {
    CatalogFields::new(view.clone()).codes(Some(filter), &tokens()).expect("codes with tokens")
}

/// Compares the set under every filter with the spellings of the items that match.
fn check(view: &CatalogView) {
    let (trie, tokens) = (trie(), tokens());
    for filter in FILTERS {
        let filter = Filter::parse(filter).expect("a filter");
        // An empty live catalog has no attributes.
        let Ok(matching) = view.filter(&filter) else { continue };
        let set = set(view, &filter);
        let mut by_codes = BTreeMap::<Vec<u32>, Vec<u64>>::new();
        for number in view.numbers_in(&matching) {
            by_codes.entry(view.codes(number)).or_default().push(number);
        }
        let members = by_codes.iter().map(|(codes, numbers)| {
            let member = set.find(codes).expect("a member");
            assert_eq!(set.codes(member), *codes);
            assert_eq!(set.items(member).collect::<Vec<_>>(), *numbers);
            let token = |(level, &code)| tokens.token(level, code).expect("a token");
            let spelled: Vec<TokenId> = codes.iter().enumerate().map(token).collect();
            assert_eq!(set.find_tokens(&spelled), Some(member));
            let spelled = spelled.into_iter();
            let text: Vec<String> = codes.iter().map(u32::to_string).collect();
            let spelled = spelled.flat_map(TokenId::to_spelling).collect();
            (member.0, spelled, text.join("-").into_bytes())
        });
        let expected = NaiveSet::spelled(members);
        assert_eq!(set.num_items(), matching.len());
        let all: Vec<u32> = (0..trie.num_nodes() as u32).collect();
        assert_equal_sets(&set, &expected, &trie, &all, 100);
        assert_eq!(set.find(&[9, 9]), None);
    }
}

fn item() -> impl Strategy<Value = Item> {
    let table = prop::sample::select(vec![0_u32, 1, 2, 4]);
    let codes = prop_oneof![
        (0..4_u32).prop_map(|a| vec![a]),
        (0..4_u32, table.clone()).prop_map(|(a, b)| vec![a, b]),
        (0..4_u32, table, 0..3_u32).prop_map(|(a, b, c)| vec![a, b, c]),
    ];
    (0..12_u32, codes, 0..4_u32).prop_map(|(id, codes, stock)| {
        let attributes = json!({"stock": stock}).as_object().expect("one").clone();
        Item { id: format!("i{id}"), codes, attributes }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn codes_of_a_frozen_catalog_are_the_spellings(
        items in prop::collection::vec(item(), 1..14),
        is_dense: bool,
    ) {
        let unique: BTreeMap<String, Item> =
            items.into_iter().map(|item| (item.id.clone(), item)).collect();
        let dense_levels = Some(usize::from(is_dense));
        let options = BuildOptions { dense_levels, ..BuildOptions::default() };
        let items: Vec<Item> = unique.into_values().collect();
        check(&Catalog::build(items.into(), &options).expect("sound").into());
    }

    #[test]
    fn codes_of_a_view_are_those_of_its_items(
        batches in prop::collection::vec(prop::collection::vec(
            prop_oneof![
                4 => item().prop_map(Update::Upsert),
                1 => (0..12_u32).prop_map(|id| Update::Delete(format!("i{id}"))),
            ],
            1..8,
        ), 1..8),
        memory_items in 1_usize..6,
        merges: bool,
    ) {
        let dir = tempfile::tempdir().expect("a folder");
        let merging = if merges { MergePolicy::Always } else { MergePolicy::Never };
        let options =
            LiveOptions { memory_items, merging, sync: SyncPolicy::Never, ..LiveOptions::default() };
        let live = LiveCatalog::create_with(dir.path(), None, None, options).expect("a new catalog");
        let mut views = Vec::new();
        for batch in &batches {
            let _ = live.apply(batch);
            views.push(live.view());
        }
        // A view is what it was, whatever came after it.
        views.iter().for_each(check);
    }
}

#[test]
fn what_has_no_codes_or_no_tokens_is_refused() {
    let of = |codes: &[u32]| {
        let item = Item { id: "i0".into(), codes: codes.to_vec(), attributes: Default::default() };
        let catalog = Catalog::build(vec![item].into(), &BuildOptions::default()).expect("sound");
        CatalogFields::new(catalog.into()).codes(None, &tokens()).map(|set| set.len())
    };
    assert_eq!(of(&[0, 4, 2]).expect("tokens"), 1);
    for (codes, words) in [
        (&[0, 3][..], "code 3 at level 1 (item \"i0\"), which has no token"),
        (&[4], "tokens for codes below 4"),
        (&[0, 0, 0, 0], "semantic IDs of 4 codes, the model spells 3 levels"),
    ] {
        let error = of(codes).expect_err("no token").to_string();
        assert!(error.contains(words), "{error}");
    }
    let lexicon = palmette_lexicon::Lexicon::from_sorted(["a", "b"]).expect("sorted");
    let fields = CatalogFields::from_lexicon(Arc::new(lexicon));
    let error = fields.codes(None, &tokens()).expect_err("no codes").to_string();
    assert!(error.contains("no semantic IDs"), "{error}");
}

#[test]
fn items_that_share_an_id_are_one_member() {
    let item = |id: &str, stock| {
        let attributes = json!({"stock": stock}).as_object().expect("one").clone();
        Item { id: id.into(), codes: vec![1, 1], attributes }
    };
    let items = vec![item("a", 0), item("b", 5), item("c", 7)];
    let catalog = Catalog::build(items.into(), &BuildOptions::default()).expect("sound");
    let view = CatalogView::from(catalog);
    let in_stock = Filter::parse(r#"{"range": {"stock": {"gt": 0}}}"#).expect("a filter");
    let set = set(&view, &in_stock);
    let member = set.find(&[1, 1]).expect("a member");
    assert_eq!((set.len(), set.num_items(), set.num_levels()), (1, 2, 2));
    assert_eq!(set.items(member).map(|at| view.id(at)).collect::<Vec<_>>(), ["b", "c"]);
    let mut text = Vec::new();
    set.text(MemberId(member.0), &mut text);
    assert_eq!(text, b"1-1");
}
