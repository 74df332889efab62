//! Filters on the command line, held to the shop's own file of items.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::command::{check_refused, run, run_json, write};
use crate::shop::{Shop, with_recommender};

/// The items of the shop, as its file has them.
fn items() -> Vec<Value> {
    let text = fs::read_to_string(Shop::get().path("items.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn price(item: &Value) -> f64 {
    item["price"].as_f64().unwrap()
}

fn id(item: &Value) -> &str {
    item["item_id"].as_str().unwrap()
}

/// A filter and the same by hand.
type Case = (&'static str, fn(&Value) -> bool);

const CASES: [Case; 8] = [
    ("{}", |_| true),
    (r#"{"must": {"match": {"category": "Camping"}}}"#, |item| item["category"] == "Camping"),
    (
        r#"{"must": [{"match": {"category": ["Hiking", "Running"]}}, {"range": {"price": {"gte": 10, "lt": 20}}}]}"#,
        |item| {
            ["Hiking", "Running"].iter().any(|name| item["category"] == *name)
                && (10.0..20.0).contains(&price(item))
        },
    ),
    (
        r#"{"should": [{"range": {"stock": {"lte": 0}}}, {"range": {"price": {"gt": 150}}}]}"#,
        |item| item["stock"] == 0 || price(item) > 150.0,
    ),
    (
        r#"{"must": {"match": {"category": "Camping"}}, "must_not": {"match": {"stock": 0}}, "exclude": ["P0001", "P0074"]}"#,
        |item| {
            item["category"] == "Camping"
                && item["stock"] != 0
                && !["P0001", "P0074"].contains(&id(item))
        },
    ),
    (r#"{"must": {"ids": ["P0001", "P0060", "nothing"]}}"#, |item| {
        ["P0001", "P0060"].contains(&id(item))
    }),
    (r#"{"must": {"match": {"category": "Spaceflight"}}}"#, |_| false),
    (
        r#"{"must": {"should": [{"term": {"brand": "Pebbleway"}}, {"key": "price", "range": {"lt": 5}}]}}"#,
        |item| item["brand"] == "Pebbleway" || price(item) < 5.0,
    ),
];

#[test]
fn filters_keep_what_a_filter_by_hand_keeps() {
    let shop = Shop::get();
    let catalog = shop.path("shop.palm");
    let items = items();
    let dir = tempfile::tempdir().unwrap();
    for (filter, holds) in CASES {
        let expected: BTreeSet<&str> = items.iter().filter(|item| holds(item)).map(id).collect();
        let args = ["catalog", "filter", &catalog, filter, "--limit", "1000000"];
        let found = run_json(&args);
        assert_eq!(found["matching"], expected.len(), "{filter}");
        assert_eq!(found["items"], items.len());
        let listed = found["first"].as_array().unwrap();
        let ids: BTreeSet<&str> = listed.iter().map(|item| item["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "{filter}");
        assert_eq!(listed.len(), expected.len(), "each once");

        // What is printed as the filter means the same, and so does a file of it.
        let again = run_json(&["catalog", "filter", &catalog, &found["filter"].to_string()]);
        assert_eq!(again["matching"], found["matching"]);
        let file = format!("@{}", write(dir.path(), "filter.json", &format!("{filter}\n")));
        let few = run_json(&["catalog", "filter", &catalog, &file, "--limit", "3"]);
        assert_eq!(few["matching"], found["matching"]);
        assert_eq!(few["first"].as_array().unwrap()[..], listed[..listed.len().min(3)]);

        let text = run(&["catalog", "filter", &catalog, filter, "--limit", "2"]);
        let last = text.lines().last().unwrap();
        let count = last.split_once(" of 4,034 items match").expect("the count").0;
        assert_eq!(count.replace(',', ""), expected.len().to_string(), "{text}");
        let listed = text.lines().count() - 1;
        assert_eq!(listed, if expected.is_empty() { 0 } else { 1 + expected.len().min(2) });
    }
}

#[test]
fn listed_items_have_their_attributes() {
    let catalog = Shop::get().path("shop.palm");
    let found = run_json(&["catalog", "filter", &catalog, r#"{"must": {"ids": ["P0002"]}}"#]);
    let mut expected = items().swap_remove(1);
    let codes = expected.as_object_mut().unwrap().shift_remove("codes").unwrap();
    let id = expected.as_object_mut().unwrap().shift_remove("item_id").unwrap();
    assert_eq!(found["first"], json!([{"id": id, "codes": codes, "attributes": expected}]));
}

#[test]
fn filters_that_cannot_be_are_refused() {
    let shop = Shop::get();
    let (catalog, recommender) = (shop.path("shop.palm"), shop.recommender());
    let dir = tempfile::tempdir().unwrap();
    let broken = format!("@{}", write(dir.path(), "broken.json", r#"{"must": "#));
    let missing = format!("@{}", dir.path().join("missing.json").display());
    for (filter, words) in [
        (
            r#"{"must": {"match": {"pric": 3}}}"#,
            &["\"pric\"", "did you mean \"price\"", "stock"][..],
        ),
        (r#"{"must": {"match": {"price": "x"}}}"#, &["\"price\"", "number"]),
        (r#"{"must": {"range": {"price": {"from": 3}}}}"#, &["must.range.price.from", "gte"]),
        (r#"{"musst": {}}"#, &["musst", "must, should, must_not and exclude"]),
        (r#"{"must": "#, &["this is none", "column 9"]),
        ("", &["this is none"]),
        ("[]", &["the filter: [] cannot stand here"]),
        (&broken, &["broken.json", "this is none"]),
        (&missing, &["missing.json", "the filter cannot be read", "No such file"]),
        ("@", &["@ is followed by the name of a file"]),
    ] {
        check_refused(&["catalog", "filter", &catalog, filter], words);
        let rest = ["--history", "P0001", "--filter", filter];
        check_refused(&with_recommender("recommend", &recommender, &rest), words);
    }
    check_refused(&["catalog", "filter", "nowhere.palm", "{}"], &["nowhere.palm"]);
}

/// A catalog of the matching items alone allows just what the filter allows.
#[test]
fn recommending_under_a_filter_is_recommending_from_the_matching_items() {
    let shop = Shop::get();
    let (recommender, model) = (shop.recommender(), shop.path("model"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("some.palm");
    let out = out.to_str().unwrap();
    let items = items();
    for (filter, holds) in CASES {
        let some: Vec<&Value> = items.iter().filter(|item| holds(item)).collect();
        if some.is_empty() {
            continue;
        }
        let lines: String = some.iter().map(|item| format!("{item}\n")).collect();
        let file = write(dir.path(), "some.jsonl", &lines);
        run(&["catalog", "build", &file, "--out", out]);
        // The history must be of items that both catalogs have; a new user's is.
        let mut histories = vec![String::new()];
        histories.extend(some.iter().step_by(1 + some.len() / 3).map(|item| id(item).to_owned()));
        for history in &histories {
            let k = ["--history", history, "-k", "25"];
            let filtered = [&k[..], &["--filter", filter]].concat();
            let filtered = run_json(&with_recommender("recommend", &recommender, &filtered));
            let alone = ["recommend", "--model", &model, "--catalog", out];
            let alone = run_json(&[&alone[..], &k].concat());
            assert_eq!(filtered["items"], alone["items"], "{filter} after {history:?}");
            let recommended = filtered["items"].as_array().unwrap();
            let seen = usize::from(!history.is_empty());
            assert_eq!(recommended.len(), 25.min(some.len() - seen), "{filter}");
            for item in recommended {
                assert!(
                    some.iter().any(|other| other["item_id"] == item["id"]),
                    "{filter}: {item}"
                );
            }
        }
    }
}

#[test]
fn a_filter_that_nothing_matches_recommends_nothing() {
    let recommender = Shop::get().recommender();
    let nothing = r#"{"must": {"match": {"category": "Spaceflight"}}}"#;
    let rest = ["--history", "P0001", "--filter", nothing];
    let found = run_json(&with_recommender("recommend", &recommender, &rest));
    assert_eq!(found["items"], json!([]));
    let text = run(&with_recommender("recommend", &recommender, &rest));
    assert!(text.contains("only 0 items may be recommended"), "{text}");
}
