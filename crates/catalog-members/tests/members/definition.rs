//! Items with attributes of every kind, and the sets of their fields by definition.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_catalog::{ColumnKind, Filter, Item};
use palmette_catalog_live::CatalogView;
use palmette_catalog_members::CatalogFields;
use palmette_core::{MemberSet, MemberSpelling, Vocabulary, VocabularyTrie};
use palmette_testkit::member_sets::{NaiveSet, assert_equal_sets};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) const FIELDS: [&str; 7] = ["id", "brand", "tags", "price", "new", "added", "ean"];
const FILTERS: [&str; 8] = [
    "{}",
    r#"{"match": {"brand": ["ab", "a\"b"]}}"#,
    r#"{"range": {"price": {"lt": 3}}}"#,
    r#"{"must": {"match": {"new": true}}, "exclude": ["a0", "b1", "a\"2"]}"#,
    r#"{"must_not": {"exists": "tags"}}"#,
    r#"{"exclude": ["ab3", "a1", "nobody"]}"#,
    r#"{"exclude": ["b1"]}"#,
    r#"{"ids": ["a0", "a1", "ab3", "nobody"]}"#,
];

/// Kinds that values do not show.
pub(crate) fn declared() -> Vec<(String, ColumnKind)> {
    vec![("added".to_owned(), ColumnKind::Timestamp), ("ean".to_owned(), ColumnKind::Json)]
}

pub(crate) fn id() -> impl Strategy<Value = String> {
    ("(a|ab|b|a\")", 0..8_u8).prop_map(|(begin, number)| format!("{begin}{number}"))
}

pub(crate) fn attributes() -> impl Strategy<Value = Map<String, Value>> {
    let word = || prop::sample::select(vec!["", "a", "ab", "abc", "a\"b", "é\n", "Acme"]);
    let maybe = |value: BoxedStrategy<Value>| prop::option::weighted(0.8, value);
    let price =
        prop::sample::select(vec![json!(1), json!(10), json!(2.5), json!(-3), json!(1e300)]);
    let time = prop::sample::select(vec!["2026-11-28", "2026-11-28T09:30:00.5Z", "1969-01-01"]);
    let ean = prop::sample::select(vec![
        json!(9_007_199_254_740_993_u64),
        json!("ab"),
        json!(true),
        json!(["a", "7"]),
        json!(7),
        json!([]),
    ]);
    let values = (
        maybe(word().prop_map(Value::from).boxed()),
        maybe(prop::collection::vec(word(), 0..3).prop_map(Value::from).boxed()),
        maybe(price.boxed()),
        maybe(any::<bool>().prop_map(Value::from).boxed()),
        maybe(time.prop_map(Value::from).boxed()),
        maybe(ean.boxed()),
    );
    values.prop_map(|(brand, tags, price, new, added, ean)| {
        let values = [brand, tags, price, new, added, ean];
        let named = FIELDS[1..].iter().zip(values);
        named.filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect()
    })
}

pub(crate) fn item() -> impl Strategy<Value = Item> {
    let codes = prop::collection::vec(0..3_u32, 2);
    (id(), codes, attributes()).prop_map(|(id, codes, attributes)| Item { id, codes, attributes })
}

/// Texts that an item has in a field.
fn texts(item: &Item, field: &str) -> Vec<String> {
    if field == "id" {
        return vec![item.id.clone()];
    }
    let of_one = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let texts: Vec<String> = match item.attributes.get(field) {
        None => Vec::new(),
        Some(Value::Array(values)) => values.iter().map(of_one).collect(),
        Some(value) => vec![of_one(value)],
    };
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}

fn trie() -> VocabularyTrie {
    let tokens = [
        "a", "b", "ab", "\\\"", "\"", "\",", "0", "1\"", "abc\" ", "tru", "9007", "-", "2.5", "\n",
    ];
    VocabularyTrie::new(&Vocabulary::new(tokens.map(Some), []).expect("no token ends a text"))
}

/// Compares every field under every filter and spelling with the items of the view that match.
pub(crate) fn check(view: &CatalogView) {
    let fields = CatalogFields::new(view.clone());
    let trie = trie();
    let kind = |name: &str| view.kind_of(name).ok();
    for field in fields.names().into_iter().map(str::to_owned).collect::<Vec<_>>() {
        for filter in FILTERS {
            let filter = Filter::parse(filter).expect("a filter");
            let matches = |number: &u64| {
                let item = view.item(*number);
                filter.matches(&item.id, &item.attributes, &kind)
            };
            // A filter may name an attribute that no item has.
            let Ok(matching) = view.filter(&filter) else { continue };
            assert!(view.numbers_in(&matching).eq(view.numbers().filter(matches)));
            let items: Vec<Item> = view.numbers().filter(matches).map(|at| view.item(at)).collect();
            let of_items = items.iter().map(|item| texts(item, &field));
            let num_items = of_items.clone().filter(|texts| !texts.is_empty()).count() as u64;
            let values: BTreeSet<String> = of_items.flatten().collect();
            for spelling in [MemberSpelling::Raw, MemberSpelling::JsonString] {
                let set = fields.set(&field, Some(&filter), spelling).expect("a field");
                assert_eq!(set.num_items(), num_items, "{field} under {filter}");
                let member = |text: &String| {
                    let member = set.find(text).expect("a member");
                    (member.0, text.clone().into_bytes())
                };
                let members = values.iter().map(member);
                let expected = match spelling {
                    MemberSpelling::Raw => NaiveSet::raw(members),
                    MemberSpelling::JsonString => NaiveSet::json_strings(members),
                };
                assert_equal_sets(&set, &expected, &trie, &[0, 1, 5], 5_000);
                assert!(set.find("").is_none() && set.find("nobody").is_none());
                if field == "id" {
                    for id in &values {
                        assert_eq!(set.item(set.find(id).expect("a member")), view.find(id));
                    }
                }
                if let Some(first) = values.first() {
                    assert_eq!(&set.nearest(first, 1)[0], first);
                }
            }
        }
    }
    let set: Arc<dyn MemberSet> =
        Arc::new(fields.set("id", None, MemberSpelling::Raw).expect("a field"));
    assert_eq!(set.len(), view.num_items());
}
