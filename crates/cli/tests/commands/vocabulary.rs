//! `palmette vocabulary`, and the options of commands that load one.

use serde_json::{Value, json};

use crate::command::{check_refused, palmette, run, run_json};
use crate::grammar::Files;

/// A byte-level vocabulary of `"`, `a` and two added tokens that are marked as text.
fn marked_as_text(files: &Files) -> String {
    let added = |id: u32, content: &str| {
        json!({"id": id, "content": content, "special": false,
        "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
    };
    let file = json!({
        "added_tokens": [added(2, "<think>"), added(3, "aa")],
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {"\"": 0, "a": 1}, "merges": []},
    });
    files.write("tokenizer.json", &file.to_string())
}

fn mask(files: &Files, vocab: &str, more: &[&str]) -> Value {
    let schema = files.write("text.json", r#"{"type": "string"}"#);
    let args = ["grammar", "mask", &schema, "--vocab", vocab, "--prefix", "\"a"];
    run_json(&[&args[..], more].concat())
}

#[test]
fn angle_tokens_are_special_or_text() {
    let files = Files::new();
    let vocab = marked_as_text(&files);
    let special = mask(&files, &vocab, &[]);
    assert_eq!(special["tokens"], json!([0, 1, 3]));
    let assumed = special["vocabulary"]["assumed"][0].as_str().unwrap();
    assert!(assumed.contains("1 token marked as text") && assumed.contains("<think>"), "{assumed}");
    let text = mask(&files, &vocab, &["--angle-tokens", "text"]);
    assert_eq!(text["tokens"], json!([0, 1, 2, 3]));
    assert_eq!(text["vocabulary"]["assumed"], json!([]));

    let schema = files.write("text.json", r#"{"type": "string"}"#);
    let (stats, pmg) = (["grammar", "stats", &schema], files.write("text.pmg", ""));
    let compile = ["grammar", "compile", &schema, "-o", &pmg];
    for command in [&stats[..], &compile] {
        let report = run_json(&[command, &["--vocab", &vocab]].concat());
        assert_eq!(report["vocabulary"]["assumed"], special["vocabulary"]["assumed"]);
    }
    let output = palmette(&["grammar", "mask", &schema, "--vocab", &vocab]);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.starts_with("note: ") && notes.contains("--angle-tokens"), "{notes}");
}

#[test]
fn special_and_end_tokens_are_named() {
    let files = Files::new();
    let vocab = marked_as_text(&files);
    let args = ["vocabulary", &vocab, "--special-token", "<|stop|>=7", "--end-token", "<|stop|>"];
    let report = run_json(&args);
    assert_eq!(report["ends"], json!([7]));
    assert_eq!(report["ends_found"], "by the options of loading");
    assert_eq!(report["num_tokens"], 8);
    let specials = json!([{"id": 2, "name": "<think>"}, {"id": 7, "name": "<|stop|>"}]);
    assert_eq!(report["special_tokens"], specials);
    let shown = run(&args);
    assert!(shown.contains("end tokens 7, by the options of loading"), "{shown}");
    assert!(shown.contains("assumed: 1 token marked as text"), "{shown}");

    check_refused(&["vocabulary", &vocab, "--end-token", "<|go|>"], &["<|go|>", "4 tokens"]);
    check_refused(&["vocabulary", &vocab, "--special-token", "7"], &["NAME=ID"]);
}
