//! `palmette bench grammar` as a user types it.

use serde_json::{Value, json};

use crate::command::{check_refused, run, run_json};
use crate::grammar::{Files, LARK, SCHEMA, tokens};

/// Two cases: a schema with a text that is valid, one that is not and one that is said to be valid
/// wrongly, and a grammar that cannot be read.
fn cases(files: &Files) -> String {
    let texts = [
        (true, tokens(&["{\"", "size", "\": ", "\"", "S", "\", \"", "count", "\": ", "12", "}"])),
        (false, tokens(&["{\"", "size", "\": ", "1", "2"])),
        (true, tokens(&["{\"", "count", "\": ", "\""])),
    ];
    let texts: Vec<_> =
        texts.iter().map(|(valid, tokens)| json!({"valid": valid, "tokens": tokens})).collect();
    let good = json!({"name": "order", "kind": "json_schema", "grammar": SCHEMA, "texts": texts});
    let bad = json!({"name": "broken", "kind": "gbnf", "grammar": "root ::= (", "texts": []});
    files.write("cases.jsonl", &format!("{good}\n{bad}\n"))
}

#[test]
fn bench_counts_right_and_wrong() {
    let files = Files::new();
    let (cases, vocab) = (cases(&files), files.vocabulary());
    let args = ["bench", "grammar", "--cases", &cases, "--vocab", &vocab];
    let report = run_json(&[&args[..], &["--walks", "2"]].concat());
    assert_eq!([&report["schemas"], &report["compiled"]], [2, 1], "{report}");
    assert_eq!([&report["valid"], &report["valid_rejected"]], [2, 1], "{report}");
    assert_eq!([&report["invalid"], &report["invalid_accepted"]], [1, 0], "{report}");
    assert_eq!(report["walks"], 2);
    let shown = run(&args);
    for words in
        ["1 of 2 grammars compiled", "1 of 2 valid texts rejected", "mask us", "not compiled"]
    {
        assert!(shown.contains(words), "lacks {words:?}:\n{shown}");
    }
    let first = run_json(&[&args[..], &["--limit", "1"]].concat());
    assert_eq!([&first["schemas"], &first["compiled"]], [1, 1]);
    let ahead = run_json(&[&args[..], &["--ahead", "10000"]].concat());
    assert!(ahead["ahead_ms"]["max"].as_f64() > Some(0.0), "{ahead}");
    for counted in ["schemas", "compiled", "valid", "valid_rejected", "invalid", "invalid_accepted"]
    {
        assert_eq!(ahead[counted], report[counted], "{counted}");
    }
    check_refused(&[&args[..], &["--skip", "2"]].concat(), &["no cases"]);
    check_refused(&[&args[..], &["--walks", "0"]].concat(), &["--walks"]);
}

#[test]
fn bench_prints_a_line_a_case() {
    let files = Files::new();
    let (cases, vocab) = (cases(&files), files.vocabulary());
    let args = ["bench", "grammar", "--cases", &cases, "--vocab", &vocab, "--lines"];
    let lines: Vec<Value> =
        run(&args).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!([&lines[0]["name"], &lines[1]["name"]], ["order", "broken"]);
    assert_eq!([&lines[0]["compiled"], &lines[1]["compiled"]], [true, false]);
    let accepted = |text: &Value| text["accepted"].as_bool().unwrap();
    let texts = lines[0]["texts"].as_array().unwrap();
    assert_eq!(texts.iter().map(accepted).collect::<Vec<_>>(), [true, false, false]);
    assert!(lines[1]["error"].as_str().unwrap().contains("line 1"), "{}", lines[1]);
}

#[test]
fn bench_runs_other_engines_over_the_same_cases() {
    let files = Files::new();
    let (cases, vocab) = (cases(&files), files.vocabulary());
    let args = ["bench", "grammar", "--cases", &cases, "--vocab", &vocab, "--walks", "1"];
    let program = env!("CARGO_BIN_EXE_palmette");
    let walk = format!("walk='{program}' bench grammar --vocab '{vocab}' --engine walk --lines");
    let lines = files.0.path().display().to_string();
    let peers = ["--peer", &walk, "--peer", "fails=false", "--keep-lines", &lines];
    let report = run_json(&[&args[..], &peers].concat());
    let [same, fails] = report["peers"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!([&same["engine"], &fails["engine"]], ["walk", "fails"]);
    for counted in ["schemas", "compiled", "valid", "valid_rejected", "invalid", "invalid_accepted"]
    {
        assert_eq!(same[counted], report[counted], "{counted}");
    }
    assert_eq!([&fails["schemas"], &fails["compiled"]], [2, 0]);
    let reason = fails["unsupported_reasons"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("fails ended"), "{reason}");
    for engine in ["palmette", "walk", "fails"] {
        let kept = files.0.path().join(format!("{engine}.jsonl"));
        assert_eq!(std::fs::read_to_string(kept).unwrap().lines().count(), 2, "{engine}");
    }
    let shown = run(&[&args[..], &peers].concat());
    for words in ["compile ms p50", "walk", "1 of 2"] {
        assert!(shown.contains(words), "lacks {words:?}:\n{shown}");
    }

    let as_walk = run_json(&[&args[..], &peers, &["--ahead-as", "walk"]].concat());
    for counted in ["schemas", "compiled", "valid", "valid_rejected", "invalid", "invalid_accepted"]
    {
        assert_eq!(as_walk[counted], report[counted], "{counted}");
    }
    assert!(as_walk["ahead_ms"]["max"].is_number(), "{as_walk}");

    let refused = |more: &[&str], words: &[&str]| check_refused(&[&args[..], more].concat(), words);
    refused(&["--peer", "x=false", "--ahead-as", "y"], &["--ahead-as y", "[\"x\"]"]);
    refused(&["--peer", "x=false", "--ahead-as", "x", "--pace", "1"], &["--ahead-as", "--pace"]);
    refused(&["--peer", "x=no such program"], &["--peer x", "no"]);
    refused(&["--peer", "x=echo nonsense"], &["--peer x", "nonsense"]);
    refused(&["--peer", "false"], &["NAME=COMMAND"]);
    refused(&["--peer", "x='"], &["quotation mark"]);
    refused(&["--peer", "x="], &["no command"]);
    refused(&["--peer", "a/b=false"], &["`a/b`"]);
    refused(&["--peer", "palmette=false"], &["two engines are called palmette"]);
    refused(&["--peer", "x=false", "--peer-seconds", "0"], &["--peer-seconds is 0"]);
    refused(&["--peers", &lines], &["o200k_base", "--vocab"]);
    check_refused(
        &["bench", "grammar", "--cases", &cases, "--peers", &lines],
        &["none of the programs"],
    );
}

#[test]
fn bench_cuts_instances_into_tokens() {
    let files = Files::new();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let tests = json!([
        {"valid": true, "data": {"size": "M", "count": 3}},
        {"valid": false, "data": {"size": "M", "count": 21}},
    ]);
    let line = json!({"name": "order", "schema": schema, "tests": tests}).to_string();
    let schemas = files.write("schemas.jsonl", &line);
    let vocab = files.vocabulary();
    let args = ["bench", "grammar", "--schemas", &schemas, "--vocab", &vocab];
    let report = run_json(&[&args[..], &["--walks", "1"]].concat());
    assert_eq!([&report["valid"], &report["valid_rejected"]], [1, 0], "{report}");
    assert_eq!([&report["invalid"], &report["invalid_accepted"]], [1, 0], "{report}");

    let broken = files.write("broken.jsonl", &format!("{line}\n{{\"name\": 1}}\n"));
    let args = ["bench", "grammar", "--schemas", &broken, "--vocab", &vocab];
    check_refused(&args, &["broken.jsonl", "line 2"]);
}

#[test]
fn bench_follows_the_texts_of_a_grammar() {
    let files = Files::new();
    let (grammar, vocab) = (files.write("sum.lark", LARK), files.vocabulary());
    let (good, bad) = (files.write("good", "x = 1 + 12"), files.write("bad", "x = y"));
    let args = ["bench", "grammar", "--vocab", &vocab, "--grammar", &grammar, "--text", &good];
    let report = run_json(&[&args[..], &["--text", &bad]].concat());
    assert_eq!([&report["schemas"], &report["compiled"]], [1, 1], "{report}");
    assert_eq!([&report["valid"], &report["valid_rejected"]], [2, 1], "{report}");
    check_refused(&args[..6], &["--text"]);
    let missing = ["bench", "grammar", "--grammar", &grammar, "--text", "no such text"];
    check_refused(&[&missing[..], &["--vocab", &vocab]].concat(), &["no such text"]);
}

/// A mask store after each number of steps, beside the automaton.
#[test]
fn bench_measures_the_mask_store() {
    let files = Files::new();
    let (cases, vocab) = (cases(&files), files.vocabulary());
    let args = ["bench", "grammar", "--cases", &cases, "--vocab", &vocab, "--walks", "1"];
    let store = |more: &[&'static str]| [&args[..], &["--engine", "store"], more].concat();
    let report = run_json(&store(&["--steps", "0..4"]));
    let stores = report["stores"].as_array().unwrap();
    let steps: Vec<u64> = stores.iter().map(|of| of["steps"].as_u64().unwrap()).collect();
    assert_eq!(steps, [0, 1, 2, 3, 4]);
    for of in stores {
        for counted in ["schemas", "compiled", "valid", "valid_rejected", "invalid_accepted"] {
            assert_eq!(of[counted], report[counted], "{counted} after {} steps", of["steps"]);
        }
        assert_eq!(of["walked"], 0);
        assert!(of["bytes"]["max"].as_f64() > Some(0.0), "{of}");
    }
    let rows = |of: &Value| of["rows"]["max"].as_f64().unwrap();
    assert!(stores.iter().map(rows).is_sorted_by(|more, fewer| more >= fewer), "{report}");
    assert!(rows(&stores[4]) >= 1.0 && report["rows"].is_null(), "{report}");
    assert_eq!(run_json(&store(&[]))["stores"].as_array().unwrap().len(), 5);
    let shown = run(&store(&["--steps", "2..6"]));
    for words in ["palmette", "store-2", "store-6", "rows p50 / max", "walked", "memory p50"] {
        assert!(shown.contains(words), "lacks {words:?}:\n{shown}");
    }
    let line = run(&store(&["--steps", "4", "--lines"]));
    let line: Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    assert_eq!([&line["compiled"], &line["walked"]], [&json!(true), &json!(0)]);
    assert!(line["rows"].as_u64() > Some(0), "{line}");

    let limited = "start: name \")\"\nname[max_tokens=3]: /[a-z]+/";
    let case = json!({"name": "limited", "kind": "lark", "grammar": limited, "texts": []});
    let limited = files.write("limited.jsonl", &case.to_string());
    let limited = ["bench", "grammar", "--cases", &limited, "--vocab", &vocab, "--lexing", "any"];
    let shown = run(&[&limited[..], &["--engine", "store", "--steps", "1"]].concat());
    assert!(shown.contains("store-1: 1 not compiled: the mask store does not read"), "{shown}");

    check_refused(&store(&["--steps", "7"]), &["`7`", "0 to 6"]);
    check_refused(&store(&["--steps", "4..2"]), &["4 is more than 2"]);
    check_refused(&store(&["--steps", "all"]), &["`all`"]);
    check_refused(&store(&["--lines"]), &["--lines", "--steps 4"]);
    check_refused(&store(&["--mask-steps", "5"]), &["--mask-steps", "no budget"]);
    check_refused(&store(&["--peer", "store-2=false"]), &["--peer store-2"]);
    check_refused(&[&args[..], &["--steps", "2"]].concat(), &["--engine store"]);
}

/// Masks that were found by walking the vocabulary are counted, those of the first walk.
#[test]
fn bench_counts_walked_masks() {
    let files = Files::new();
    let (cases, vocab) = (cases(&files), files.vocabulary());
    let args = ["bench", "grammar", "--cases", &cases, "--vocab", &vocab, "--walks", "2"];
    let report = run_json(&args);
    assert_eq!(report["walked"], 0, "the automaton finds these: {report}");
    let walk = [&args[..], &["--engine", "walk"]].concat();
    let report = run_json(&walk);
    assert_eq!(report["walked"], report["mask_us_cold"]["count"], "{report}");
    let (shown, walked) = (run(&walk), report["walked"].as_u64().unwrap());
    let words = format!("{walked} of {walked} masks of the first walks found by walking");
    assert!(walked > 10 && shown.contains(&words), "{shown}");
    let line = run(&[&walk[..], &["--lines", "--limit", "1"]].concat());
    let line: Value = serde_json::from_str(line.trim()).unwrap();
    assert_eq!(line["walked"], walked, "{line}");
}
