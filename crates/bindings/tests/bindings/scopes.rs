//! Scopes over the items of catalogs, frozen and live: random texts checked by plain loops over the
//! items, and what does not fit.

use std::path::Path;
use std::sync::Arc;

use palmette_bindings::{BindingError, Bindings, BoundGrammar};
use palmette_catalog::{BuildOptions, Catalog, Item};
use palmette_catalog_live::{
    CatalogView, LiveCatalog, LiveOptions, MergePolicy, SyncPolicy, Update,
};
use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions, Whitespace};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
};
use serde_json::{Map, Value, json};

/// Items with a brand each but the last few, titles that some share, and tags.
fn items(count: usize) -> Vec<Item> {
    let item = |at: usize| {
        let mut attributes = Map::new();
        attributes.insert("title".into(), json!(format!("T{}", at * 7 % 11 / 2)));
        attributes.insert("stock".into(), json!(at % 5));
        attributes.insert("tags".into(), json!(["a", format!("t{}", at % 3)]));
        if at % 9 != 8 {
            attributes.insert("brand".into(), json!(format!("B{}", at % 4)));
        }
        Item { id: format!("P{at}"), codes: vec![at as u32], attributes }
    };
    (0..count).map(item).collect()
}

fn catalog(items: &[Item]) -> Catalog {
    Catalog::build(items.to_vec().into(), &BuildOptions::default()).expect("sound items")
}

/// The items in segments of three, in an order of their own.
fn segments(dir: &Path, items: &[Item]) -> CatalogView {
    let (merging, sync) = (MergePolicy::Never, SyncPolicy::Never);
    let options = LiveOptions { memory_items: 3, merging, sync, ..LiveOptions::default() };
    let live = LiveCatalog::create_with(dir, None, None, options).expect("a new catalog");
    let mut order: Vec<&Item> = items.iter().collect();
    order.sort_by_key(|item| std::cmp::Reverse(item.codes[0] % 7));
    for batch in order.chunks(7) {
        let batch: Vec<Update> = batch.iter().map(|item| Update::Upsert((*item).clone())).collect();
        live.apply(&batch).expect("sound");
    }
    live.view()
}

const TOKENS: [&str; 44] = [
    "{", "}", "[", "]", "\"", ":", ",", "P", "T", "B", "0", "1", "2", "3", "4", "5", "6", "7", "8",
    "9", "i", "d", "t", "l", "e", "b", "r", "a", "n", "s", "k", "o", "c", "[\"", "\",\"", "\"]",
    "{\"", "\":\"", "\"},{\"", "P1", "\"P", "1\",\"", "w", "y",
];

fn grammar(schema: &Value) -> GrammarConstraint {
    let texts = TOKENS.iter().map(Some).chain([None]);
    let vocabulary = Vocabulary::new(texts, [TokenId(TOKENS.len() as u32)]).expect("texts");
    let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
    let options = JsonSchemaOptions { whitespace: Whitespace::Compact, ..Default::default() };
    let grammar = json_schema::parse(&schema.to_string(), &options).expect("a schema");
    let limits = RecognizerLimits::default();
    let ready = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    GrammarConstraint::new(Arc::new(ready.expect("sound")), vocabulary)
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}

/// A text that tokens chosen at random write: each mask has a token until the text may end.
fn write(bound: &BoundGrammar, random: &mut Random) -> Value {
    let (constraint, scratch) = (bound.constraint(), &mut GrammarScratch::default());
    let (mut state, mut text) = (constraint.start(), String::new());
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    for _ in 0..2_000 {
        constraint.fill_mask(&state, scratch, &mut row).expect("small");
        let allowed: Vec<TokenId> = mask::iter(&row).collect();
        assert!(!allowed.is_empty(), "a dead end after {text}");
        let token = allowed[random.below(allowed.len())];
        let Some(written) = TOKENS.get(token.index()) else {
            return serde_json::from_str(&text).expect("JSON");
        };
        text.push_str(written);
        constraint.commit(&mut state, token, scratch).expect("allowed");
    }
    panic!("no end of {text}");
}

fn record(required: &[&str], optional: &[&str]) -> Value {
    let field = |name: &&&str| {
        let schema = json!({"type": "string", "x-catalog": format!("shop.{name}")});
        ((**name).to_owned(), schema)
    };
    let properties: Map<String, Value> =
        required.iter().chain(optional).collect::<Vec<_>>().iter().map(field).collect();
    json!({"type": "object", "x-record": "shop", "required": required, "properties": properties,
        "additionalProperties": false})
}

fn attribute<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    match name {
        "id" => Some(&item.id),
        _ => item.attributes.get(name).and_then(Value::as_str),
    }
}

/// Checks a list of records or ids: items that are there, each once, with all fields of the record,
/// and no more of a brand than `most`.
fn check_list(items: &[Item], list: &Value, fields: &[&str], most: Option<usize>) {
    let mut written: Vec<&Item> = Vec::new();
    for entry in list.as_array().expect("a list") {
        let id = entry.as_str().or_else(|| entry["id"].as_str()).expect("an id");
        let item = items.iter().find(|item| item.id == id).expect("an item");
        assert!(written.iter().all(|other| other.id != id), "{id} twice in {list}");
        for field in fields {
            assert!(attribute(item, field).is_some(), "{id} has no {field}");
        }
        for (name, value) in entry.as_object().into_iter().flatten() {
            assert_eq!(attribute(item, name), value.as_str(), "{name} of {id} in {list}");
        }
        written.push(item);
    }
    for item in &written {
        let same = |other: &&&Item| attribute(other, "brand") == attribute(item, "brand");
        let count = written.iter().filter(same).count();
        let limited = attribute(item, "brand").is_some();
        assert!(!limited || most.is_none_or(|most| count <= most), "{list}");
    }
}

#[test]
fn lists_over_catalogs_hold_what_they_promise() {
    let random = &mut Random(7);
    for (count, is_live) in [(1, false), (2, true), (5, false), (12, true), (40, false), (40, true)]
    {
        let items = items(count);
        let dir = tempfile::tempdir().expect("a folder");
        let shop = match is_live {
            false => Bindings::new().catalog("shop", catalog(&items)),
            true => Bindings::new().catalog("shop", segments(dir.path(), &items)),
        };
        for (entry, fields) in [
            (json!({"type": "string", "x-catalog": "shop"}), &[][..]),
            (record(&["id", "brand"], &["title"]), &["id", "brand", "title"][..]),
            (record(&["title", "id"], &[]), &["id", "title"][..]),
        ] {
            for (min, max, most) in
                [(0, 6, None), (2, 4, Some(1)), (3, 12, None), (0, 9, Some(2)), (5, 5, Some(1))]
            {
                let mut schema = json!({"type": "array", "x-distinct": "shop", "items": entry,
                    "minItems": min, "maxItems": max});
                if let Some(most) = most {
                    schema["x-at-most"] = json!([{"attribute": "brand", "items": most}]);
                }
                let eligible =
                    |item: &&Item| fields.iter().all(|field| attribute(item, field).is_some());
                let eligible: Vec<&Item> = items.iter().filter(eligible).collect();
                let of_brand = |brand: &str| {
                    let own = |item: &&&Item| attribute(item, "brand") == Some(brand);
                    eligible.iter().filter(own).count()
                };
                let limited: usize = match most {
                    None => eligible.len(),
                    Some(most) => {
                        let brands =
                            ["B0", "B1", "B2", "B3"].map(|brand| of_brand(brand).min(most));
                        let free =
                            eligible.iter().filter(|item| attribute(item, "brand").is_none());
                        brands.iter().sum::<usize>() + free.count()
                    }
                };
                match shop.bind(&grammar(&schema)) {
                    Ok(bound) => {
                        assert!(limited >= min, "{schema}: {limited} of {min}");
                        for _ in 0..12 {
                            let list = write(&bound, random);
                            let length = list.as_array().expect("a list").len();
                            assert!((min..=max).contains(&length), "{list}");
                            check_list(&items, &list, fields, most);
                        }
                    }
                    Err(BindingError::Short(short)) => {
                        assert!(limited < min, "{schema}: {limited} of {min}");
                        // A record without eligible items is told, too.
                        let of_list = short.iter().find(|short| short.scope.contains("distinct"));
                        let told = of_list.map(|short| (short.eligible, short.needed));
                        let expected = (limited as u64, min as u64);
                        assert!(told.is_none_or(|told| told == expected), "{told:?}");
                    }
                    Err(error) => panic!("{schema}: {error}"),
                }
            }
        }
    }
}

/// Filters of the request and of the grammar count for scopes, too.
#[test]
fn scopes_are_of_the_items_that_match() {
    let items = items(20);
    let shop = Bindings::new().catalog("shop", catalog(&items));
    let shop = shop.filter("shop", r#"{"range": {"stock": {"gte": 3}}}"#).expect("a filter");
    let entry = |min: usize| {
        json!({"type": "array", "x-distinct": "shop", "minItems": min, "maxItems": 9,
            "items": record(&["id"], &["title"])})
    };
    let bound = shop.bind(&grammar(&entry(8))).expect("eight are in stock");
    let list = write(&bound, &mut Random(3));
    assert_eq!(list.as_array().expect("a list").len(), 8);
    for entry in list.as_array().expect("a list") {
        let item = items.iter().find(|item| entry["id"] == *item.id).expect("an item");
        assert!(item.attributes["stock"].as_u64() >= Some(3));
    }
    let error = shop.bind(&grammar(&entry(9))).expect_err("eight are in stock").to_string();
    assert!(error.contains("x-distinct \"shop\" needs 9, and 8 may be written there"), "{error}");
}

/// A member's title leaves the ids of items that have it, and the other way round.
#[test]
fn a_record_is_one_item_in_any_order() {
    let items = items(20);
    let bound = Bindings::new().catalog("shop", catalog(&items));
    let bound = bound.bind(&grammar(&record(&["id", "title"], &[]))).expect("it fits");
    for item in &items {
        for other in &items {
            let (id, title) = (&*item.id, attribute(other, "title").expect("a title"));
            let is_one = attribute(item, "title") == Some(title);
            for text in [
                format!(r#"{{"id":"{id}","title":"{title}"}}"#),
                format!(r#"{{"title":"{title}","id":"{id}"}}"#),
            ] {
                let read = bound.members(text.as_bytes()).expect("small");
                assert_eq!(read.is_some(), is_one, "{text}");
            }
        }
    }
}

#[test]
fn scopes_that_do_not_fit_what_is_bound() {
    let shop = Bindings::new().catalog("shop", catalog(&items(5)));
    let list = Bindings::new().values("shop", ["P1", "P2"]).expect("short");
    let schema = |attribute: &str| {
        json!({"type": "array", "x-distinct": "shop", "items": {"type": "string", "x-catalog": "shop"},
            "x-at-most": [{"attribute": attribute, "items": 1}]})
    };
    for (bindings, schema, words) in [
        (&shop, schema("tags"), "may have several values an item"),
        (&shop, schema("brnad"), "brand"),
        (&list, schema("brand"), "bind a catalog"),
        (&list, record(&["id"], &[]), "bind a catalog"),
    ] {
        let error = bindings.bind(&grammar(&schema)).expect_err(words).to_string();
        assert!(error.contains(words) && error.starts_with("x-"), "{error}");
    }
    // A list of texts is enough where only what was written counts.
    let schema = json!({"type": "array", "uniqueItems": true, "minItems": 2, "maxItems": 5,
        "items": {"type": "string", "x-catalog": "shop"}});
    let bound = list.bind(&grammar(&schema)).expect("two");
    let written = write(&bound, &mut Random(1));
    assert!(written == json!(["P1", "P2"]) || written == json!(["P2", "P1"]));
}
