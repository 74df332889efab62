//! One question at a time: items by id and by codes, and options that go with files.

use serde_json::{Value, json};

use crate::command::{check_refused, run, run_json};
use crate::shop::{Shop, with_recommender};

#[test]
fn options_of_files_go_with_files() {
    let shop = Shop::get().recommender();
    let alone = |rest: &[&str], words: &[&str]| {
        let args = [&["--history", "P0001"], rest].concat();
        check_refused(&with_recommender("recommend", &shop, &args), words);
    };
    alone(&["--out", "o.jsonl"], &["--out o.jsonl goes with --histories"]);
    alone(&["--allow-empty"], &["--histories"]);
    alone(&["--time-column", "date"], &["--histories", "leave them out"]);
    alone(&["--where", "a=b"], &["--histories"]);
    alone(&["--layout", "netflix"], &["\"netflix\"", "movielens, amazon2018"]);
    check_refused(&with_recommender("recommend", &shop, &["--out", "o.jsonl"]), &["--histories"]);
}

#[test]
fn counts_that_are_none_say_their_rule() {
    let shop = Shop::get().recommender();
    for k in ["-1", "2.5", "x"] {
        let args = with_recommender("recommend", &shop, &["--history", "", "-k", k]);
        check_refused(&args, &[k, "-k <K>", "a whole number, at least 1"]);
    }
    let width = ["--history", "", "--beam-width", "-4"];
    let args = with_recommender("recommend", &shop, &width);
    check_refused(&args, &["'-4'", "--beam-width", "a whole number, 0 or more"]);
    // An id may look like a number.
    let named = ["--history", "-5", "--unknown", "error"];
    let args = with_recommender("recommend", &shop, &named);
    check_refused(&args, &["item \"-5\" is not in the catalog"]);
}

#[test]
fn unknown_items_and_items_by_codes() {
    let shop = Shop::get().recommender();
    let recommend = |rest: &[&str]| run_json(&with_recommender("recommend", &shop, rest));
    let by_id = recommend(&["--history", "P0086,P0074"]);
    let by_codes = recommend(&["--history", "0-2-4-0,0-2-0-0"]);
    assert_eq!(by_id["items"], by_codes["items"]);
    assert_eq!(by_codes["history"][0], json!({"codes": [0, 2, 4, 0], "items": ["P0086"]}));
    let as_lists = recommend(&["--history", "[[0, 2, 4, 0], [0, 2, 0, 0]]"]);
    assert_eq!(as_lists, by_codes);
    assert!(by_id["items"][0]["attributes"]["price"].is_number());
    assert_eq!((&by_id["fewer"], &by_id["k"]), (&Value::Null, &10.into()));

    let strict = ["--history", "P0086,gone", "--unknown", "error"];
    let unknown = with_recommender("recommend", &shop, &strict);
    check_refused(&unknown, &["--history: item \"gone\"", "not in the catalog"]);
    let skipped = recommend(&["--history", "P0086,gone,0-99-0-0"]);
    assert_eq!(skipped["unknown"], json!(["gone", "0-99-0-0"]));
    assert_eq!(skipped["items"], recommend(&["--history", "P0086"])["items"]);
    let wrong =
        with_recommender("recommend", &shop, &["--history", "0-99-0-0", "--unknown", "error"]);
    check_refused(&wrong, &["code 99 at level 1"]);
}

#[test]
fn the_reason_why_fewer_came() {
    let shop = Shop::get().recommender();
    let filter = r#"{"must": {"ids": ["P0001", "P0002", "P0003"]}}"#;
    let rest = ["--history", "P0001,P0002,P0099", "--filter", filter, "-k", "5"];
    let args = with_recommender("recommend", &shop, &rest);
    let fewer = &run_json(&args)["fewer"];
    assert_eq!(fewer["asked"], 5);
    assert_eq!((&fewer["found"], &fewer["matching"]), (&1.into(), &3.into()));
    assert_eq!(fewer["seen"], 2);
    let text = run(&args);
    let why = "only 1 items may be recommended: 3 match the filter, of which 2 are in the history (--include-seen recommends them too)";
    assert!(text.contains(why), "{text}");
}
