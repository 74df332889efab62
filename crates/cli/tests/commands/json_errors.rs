//! Failures under `--json`: one document, and nothing else.

use serde_json::Value;

use crate::command::{check_refused, palmette, write};
use crate::shop::{Shop, with_recommender};

/// A command that fails under `--json` prints one document on standard output and nothing else.
#[track_caller]
fn check_json_error(args: &[&str], words: &[&str]) {
    let output = palmette(&[args, &["--json"]].concat());
    assert!(!output.status.success(), "{args:?} passed");
    assert!(output.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    let message = document["error"].as_str().expect("a message");
    for word in words {
        assert!(message.contains(word), "{args:?} lacks {word:?}: {message}");
    }
    assert_eq!(document.as_object().unwrap().len(), 1);
}

#[test]
fn errors_under_json_are_documents() {
    let shop = Shop::get();
    let (model, palm) = (shop.path("model"), shop.path("shop.palm"));
    let of_shop = shop.recommender();
    let dir = tempfile::tempdir().unwrap();
    let grammar = write(dir.path(), "g.lark", "start: missing\n");
    check_json_error(
        &with_recommender("recommend", &of_shop, &["--history", "gone", "--unknown", "error"]),
        &["\"gone\""],
    );
    check_json_error(
        &with_recommender("recommend", &of_shop, &["--history", "", "-k", "0"]),
        &["k is 0"],
    );
    check_json_error(
        &with_recommender("eval", &of_shop, &["--histories", "none.json"]),
        &["none.json"],
    );
    check_json_error(&["catalog", "inspect", "none.palm"], &["none.palm"]);
    check_json_error(&["catalog", "inspect", &palm, "--item", "gone"], &["\"gone\""]);
    check_json_error(&["catalog", "filter", &palm, "{\"must\": 7}"], &["must"]);
    check_json_error(&["catalog", "build", "none.jsonl", "--out", "x.palm"], &["none.jsonl"]);
    check_json_error(&["catalog", "live", "merge", "none"], &["none"]);
    check_json_error(&["grammar", "check", &grammar], &["missing"]);
    check_json_error(&["vocabulary", "no_such_encoding"], &["no_such_encoding"]);
    // Arguments that make no command.
    check_json_error(&["recommend", "--model", &model, "--catalog", &palm], &["--history"]);
    check_json_error(&["recommend", "--no-such"], &["--no-such"]);
    // Without --json it is text on standard error.
    check_refused(
        &with_recommender("recommend", &of_shop, &["--history", "gone", "--unknown", "error"]),
        &["error: ", "\"gone\""],
    );
}

/// The report says what is wrong: it is the document, and there is no second one.
#[test]
fn a_report_of_failures_is_the_only_document() {
    let dir = tempfile::tempdir().unwrap();
    let grammar = write(dir.path(), "g.lark", "start: \"a\"\n");
    let text = write(dir.path(), "t.txt", "b");
    let output = palmette(&["grammar", "check", &grammar, "--text", &text, "--json"]);
    assert!(!output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(document["texts"][0]["accepted"], false);
}
