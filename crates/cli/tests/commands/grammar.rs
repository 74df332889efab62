//! `palmette grammar` as a user types it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::command::{check_refused, palmette, palmette_with_input, run, run_json, write};

pub(crate) const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {"size": {"enum": ["S", "M"]}, "count": {"type": "integer", "minimum": 1, "maximum": 20}},
  "required": ["size", "count"],
  "additionalProperties": false
}"#;

pub(crate) const LARK: &str = "start: NAME \"=\" sum\nsum: NUMBER (\"+\" NUMBER)*\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore \" \"\n";

const GBNF: &str = "root ::= \"(\" root \")\" | [0-9]+\n";

/// A vocabulary of pieces: every character of the texts here, a few longer ones, and an end.
fn vocabulary(dir: &Path) -> String {
    let mut pieces: Vec<String> = (' '..='~').map(String::from).collect();
    let longer = ["\": ", "{\"", "size", "count", "\", \"", "12", "<|endoftext|>"];
    pieces.extend(longer.map(String::from));
    write(dir, "pieces.json", &serde_json::to_string(&pieces).unwrap())
}

/// The ids of these characters and pieces in [`vocabulary`].
pub(crate) fn tokens(pieces: &[&str]) -> Vec<usize> {
    let longer = ["\": ", "{\"", "size", "count", "\", \"", "12", "<|endoftext|>"];
    let id = |piece: &&str| match longer.iter().position(|known| known == piece) {
        Some(place) => 95 + place,
        None => usize::from(piece.as_bytes()[0] - b' '),
    };
    pieces.iter().map(id).collect()
}

/// Files of a test, in a folder that goes away with it.
pub(crate) struct Files(pub(crate) tempfile::TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        write(self.0.path(), name, text)
    }

    pub(crate) fn vocabulary(&self) -> String {
        vocabulary(self.0.path())
    }
}

#[test]
fn check_reads_every_syntax() {
    let files = Files::new();
    let cases = [
        ("order.json", SCHEMA, "json_schema", r#"{"size": "S", "count": 7}"#),
        ("sum.lark", LARK, "lark", "x = 1 + 22"),
        ("parens.gbnf", GBNF, "gbnf", "((12))"),
        ("date.regex", "[0-9]{4}-[0-9]{2}\n", "regex", "2026-11"),
    ];
    for (name, source, syntax, text) in cases {
        let (grammar, text) = (files.write(name, source), files.write("text", text));
        let report = run_json(&["grammar", "check", &grammar, "--text", &text]);
        assert_eq!(report["syntax"], syntax);
        assert_eq!(report["texts"], json!([{"file": text, "accepted": true}]), "{name}");
        let shown = run(&["grammar", "check", &grammar, "--text", &text]);
        assert!(shown.contains("terminals") && shown.contains("in the language"), "{shown}");
    }
}

#[test]
fn check_says_where_a_text_is_refused() {
    let files = Files::new();
    let grammar = files.write("sum.lark", LARK);
    let (good, bad) = (files.write("good", "x = 1"), files.write("bad", "x =\n 1"));
    let short = files.write("short", "x = 1 +");
    let args = ["grammar", "check", &grammar, "--text", &good, "--text", &bad, "--text", &short];
    let output = palmette(&args);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).unwrap();
    let refused =
        r"bad: not in the language: unexpected `\n` at line 1, column 4; expected `0` to `9`";
    assert!(shown.contains(refused), "{shown}");
    let ended = "short: not in the language: unexpected end of the text; expected `0` to `9`";
    assert!(shown.contains(ended), "{shown}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("2 of 3 texts are not in the language"), "{errors}");

    let output = palmette(&[&args[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let place = json!({"offset": 3, "line": 1, "column": 4});
    let expected = ["`0` to `9`"];
    let refused =
        json!({"file": bad, "accepted": false, "refused_at": place, "expected": expected});
    assert_eq!(report["texts"][1], refused);
    assert_eq!(report["texts"][2], json!({"file": short, "accepted": false, "expected": expected}));
}

/// What editors and `echo` write at the end of a file is told from what is wrong.
#[test]
fn a_line_end_that_is_too_much_is_said_so() {
    let files = Files::new();
    let schema = files.write("order.json", SCHEMA);
    let order = r#"{"size": "S", "count": 7}"#;
    for end in ["\n", "\r\n"] {
        let text = files.write("text", &format!("{order}{end}"));
        let check = ["grammar", "check", &schema, "--text", &text];
        let output = palmette(&check);
        assert_eq!(output.status.code(), Some(1));
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(
            shown.contains("expected the end of the text: the line end is all that is too much"),
            "{shown}"
        );
        let report = palmette(&[&check[..], &["--json"]].concat());
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["texts"][0]["only_line_end"], json!(true));
    }
    let text = files.write("text", &format!("{order}\nx"));
    let shown = palmette(&["grammar", "check", &schema, "--text", &text]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("expected the end of the text\n"), "{shown}");
    // Where more could have come, both are said.
    let lark = files.write("sum.lark", LARK);
    let text = files.write("text", "x = 1;");
    let shown = palmette(&["grammar", "check", &lark, "--text", &text]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(", or the end of the text"), "{shown}");
}

#[test]
fn schemas_that_others_refer_to_are_given_by_uri() {
    let files = Files::new();
    let schema = files.write("order.json", r#"{"$ref": "https://shop.example/size.json"}"#);
    let size = files.write("size.json", r#"{"enum": ["S", "M"]}"#);
    let text = files.write("text", "\"M\"");
    let check = ["grammar", "check", &schema, "--text", &text];
    check_refused(&check, &["https://shop.example/size.json", "--resource URI=FILE"]);
    let given = format!("https://shop.example/size.json={size}");
    assert!(run(&[&check[..], &["--resource", &given]].concat()).contains(": in the language"));
    check_refused(&[&check[..], &["--resource", "size.json"]].concat(), &["URI=FILE"]);
    check_refused(
        &[&check[..], &["--resource", &given, "--resource", &given]].concat(),
        &["twice"],
    );
    let known = files.write("meta.json", r#"{"$ref": "http://json-schema.org/draft-07/schema#"}"#);
    let text = files.write("text", r#"{"type": "object"}"#);
    assert!(run(&["grammar", "check", &known, "--text", &text]).contains(": in the language"));
}

#[test]
fn numbers_are_bounded_unless_asked() {
    let files = Files::new();
    let schema = files.write("n.json", r#"{"type": "integer"}"#);
    let text = files.write("text", &"7".repeat(300));
    let check = ["grammar", "check", &schema, "--text", &text];
    let shown = String::from_utf8(palmette(&check).stdout).unwrap();
    assert!(shown.contains("not in the language: unexpected `7` at line 1, column 41"), "{shown}");
    assert!(run(&[&check[..], &["--digits", "any"]].concat()).contains(": in the language"));
}

/// A mask that would take minutes and gigabytes ends within its budget, and says what to do.
#[test]
fn a_mask_has_a_budget() {
    let files = Files::new();
    let grammar = files.write("pairs.lark", "start: e\ne: e e | \"a\" | \"b\"");
    let vocab = files.vocabulary();
    let mask = ["grammar", "mask", &grammar, "--vocab", &vocab, "--prefix", "abab"];
    run(&mask);
    check_refused(
        &[&mask[..], &["--mask-steps", "10"]].concat(),
        &["budget of 10 steps", "less ambiguous", "--mask-steps"],
    );
}

/// A schema that can be used is no error, and its warnings are where the output is.
#[test]
fn warnings_about_a_schema_are_in_the_document() {
    let files = Files::new();
    let schema = r#"{"anyOf": [{"type": "object", "properties": {"a": false}, "required": ["a"]}, {"type": "string", "minimun": 3}]}"#;
    let (schema, vocab) = (files.write("part.json", schema), files.vocabulary());
    let output = palmette(&["grammar", "check", &schema, "--json"]);
    assert!(output.status.success() && output.stderr.is_empty());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pointers = |warnings: &Value| -> Vec<Value> {
        let warnings = warnings.as_array().unwrap();
        warnings.iter().map(|warning| warning["pointer"].clone()).collect()
    };
    let expected = [json!("/anyOf/0"), json!("/anyOf/1/minimun")];
    assert_eq!(pointers(&report["diagnostics"]), expected);
    assert_eq!(report["diagnostics"][0]["severity"], "warning");
    let message =
        "no value is valid for this schema: `a` is required and its schema allows no value";
    assert_eq!(report["diagnostics"][0]["message"], message);
    let mask = run_json(&["grammar", "mask", &schema, "--vocab", &vocab]);
    assert_eq!(pointers(&mask["warnings"]), expected);
    assert_eq!(pointers(&run_json(&["grammar", "stats", &schema])["warnings"]), expected);
    let output = palmette(&["grammar", "check", &schema]);
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && shown.contains("at \"/anyOf/0\": no value"), "{shown}");
}

#[test]
fn stats_tell_and_draw_the_automaton_of_masks() {
    let files = Files::new();
    let (grammar, vocab) = (files.write("sum.lark", LARK), files.vocabulary());
    let text = files.write("sum.txt", "a = 1+22");
    let drawing = files.0.path().join("masks.dot");
    let drawn = drawing.to_str().unwrap();
    let args = ["grammar", "stats", &grammar, "--vocab", &vocab, "--text", &text, "--dot", drawn];
    let report = run_json(&args);
    let masks = &report["masks"];
    assert!(masks["masks"].as_u64() > Some(3) && masks["walked"] == 0, "{masks}");
    assert!(masks["nodes"].as_u64() >= masks["deepest"].as_u64(), "{masks}");
    assert!(masks["deepest"].as_u64() >= Some(1), "{masks}");
    let drawing = std::fs::read_to_string(drawn).unwrap();
    let nodes = drawing.lines().filter(|line| line.starts_with("  n") && !line.contains("->"));
    assert_eq!(nodes.count() as u64, masks["nodes"].as_u64().unwrap(), "{drawing}");
    for part in ["digraph masks {", "NUMBER", " tokens", "->"] {
        assert!(drawing.contains(part), "{part}: {drawing}");
    }
    assert!(drawing.ends_with("}\n"));
    let output = palmette(&["grammar", "stats", &grammar, "--dot", drawn]);
    assert!(!output.status.success(), "a drawing is over a vocabulary");
}

#[test]
fn check_reports_what_is_remarkable() {
    let files = Files::new();
    let grammar = files.write("double.gbnf", "root ::= root root | \"a\" root \"b\" | \"c\"\n");
    let report = run_json(&["grammar", "check", &grammar]);
    assert!(report["conflicts"].as_u64().unwrap() > 0, "{report}");
    assert!(!report["diagnostics"].as_array().unwrap().is_empty(), "{report}");
}

#[test]
#[cfg(feature = "encodings")]
fn grammars_that_cannot_be_read_are_errors_with_a_place() {
    let files = Files::new();
    let cases = [
        ("a.gbnf", "root ::= \"a\"\n  | [z-a]\n", "line 2, column"),
        ("b.gbnf", "root ::= missing\n", "missing"),
        ("a.lark", "start: A\nA: /(/\n", "line 2, column"),
        ("b.lark", "start: missing\n", "missing"),
        ("a.json", "{\"type\": \"objekt\"}", "line 1, column"),
        ("b.json", "{\"type\":\n \"object\"", "line 2, column"),
        ("c.json", "{\"$ref\": \"other.json\"}", "other.json"),
        ("d.json", "{\"format\": \"idn-hostname\"}", "idn-hostname"),
        (
            "e.json",
            r#"{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}"#,
            "the schema is inside it, at \"/function/parameters\"",
        ),
        ("a.regex", "[0-9", "at byte 0"),
    ];
    for (name, source, place) in cases {
        let grammar = files.write(name, source);
        check_refused(&["grammar", "check", &grammar], &[name, place]);
        check_refused(&["grammar", "mask", &grammar], &[name, place]);
        check_refused(&["grammar", "stats", &grammar], &[name, place]);
    }
}

#[test]
fn bad_arguments_are_errors() {
    let files = Files::new();
    let (schema, lark) = (files.write("order.json", SCHEMA), files.write("sum.lark", LARK));
    let unknown = files.write("sum.txt", LARK);
    check_refused(&["grammar", "check", &unknown], &["its ending", "--syntax"]);
    check_refused(&["grammar", "check", &schema, "--start", "root"], &["--start", "leave it out"]);
    check_refused(&["grammar", "check", &lark, "--start", "nothing"], &["nothing"]);
    check_refused(&["grammar", "check", "no such file.lark"], &["no such file.lark"]);
    check_refused(&["grammar", "check", &lark, "--budget", "3"], &["budget of 3 steps"]);
    check_refused(&["grammar", "mask", &lark, "--vocab", "no_such_base"], &["no_such_base"]);
    // With --syntax the ending does not matter.
    run(&["grammar", "check", &unknown, "--syntax", "lark"]);
    run(&["grammar", "check", &lark, "--start", "sum"]);
}

#[test]
fn mask_lists_what_may_follow() {
    let files = Files::new();
    let (schema, vocab) = (files.write("order.json", SCHEMA), files.vocabulary());
    let mask = |prefix: &str| {
        run_json(&["grammar", "mask", &schema, "--vocab", &vocab, "--prefix", prefix])
    };
    let start = mask("");
    assert_eq!(start["tokens"], json!(tokens(&[" ", "{", "{\""])));
    assert_eq!([&start["accepting"], &start["num_tokens"]], [&json!(false), &json!(102)]);
    assert_eq!([&start["in_progress"], &start["forced"]], [&json!([]), &json!("")]);

    let name = mask("{\"si");
    assert_eq!(name["tokens"], json!(tokens(&["z"])));
    assert_eq!(name["forced"], "ze\"");
    assert_eq!([&name["in_progress"], &name["next"]], [&json!(["\"size\":"]), &json!([])]);

    let count = mask("{\"size\": \"S\", \"count\": 1");
    let mut allowed = tokens(&[" ", ".", "}"]);
    allowed.extend(tokens(&["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]));
    let found: Vec<usize> = serde_json::from_value(count["tokens"].clone()).unwrap();
    assert!(allowed.iter().all(|token| found.contains(token)), "{found:?}");
    assert!(!found.contains(&tokens(&["12"])[0]), "112 is more than 20");
    assert_eq!(count["next"], json!(["}"]));

    let done = mask("{\"size\": \"S\", \"count\": 1}");
    assert_eq!(done["tokens"], json!(tokens(&["<|endoftext|>"])));
    assert_eq!([&done["accepting"], &done["allowed"]], [&json!(true), &json!(1)]);
}

#[test]
fn mask_shows_a_table() {
    let files = Files::new();
    let (schema, vocab) = (files.write("order.json", SCHEMA), files.vocabulary());
    let prefix = files.write("prefix", "{\"size\": \"");
    let args = ["grammar", "mask", &schema, "--vocab", &vocab, "--prefix-file", &prefix];
    let shown = run(&[&args[..], &["--show", "1"]].concat());
    for words in ["2 of 102 tokens may follow; the text may not end here", "\"M\"", "and 1 more"] {
        assert!(shown.contains(words), "lacks {words:?}:\n{shown}");
    }
}

#[test]
fn a_prefix_that_does_not_fit_is_an_error() {
    let files = Files::new();
    let (schema, vocab) = (files.write("order.json", SCHEMA), files.vocabulary());
    let args = ["grammar", "mask", &schema, "--vocab", &vocab, "--prefix", "{\"sort"];
    check_refused(&args, &["the prefix", "offset 3"]);
}

#[test]
fn a_grammar_is_read_from_standard_input() {
    let files = Files::new();
    let text = files.write("text", "[true]");
    let source = "{\"items\": {\"type\": \"boolean\"}}";
    let check = ["grammar", "check", "-", "--text", &text];
    let read = |args: &[&str]| palmette_with_input(&[&check[..], args].concat(), source);
    let output = read(&["--syntax", "json-schema"]);
    assert!(output.status.success(), "{output:?}");
    let output = read(&[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("say --syntax lark, gbnf"), "{errors}");
    let shown = palmette_with_input(
        &["grammar", "check", &files.write("a.json", source), "--text", "-"],
        "[1]",
    );
    assert!(String::from_utf8_lossy(&shown.stdout).contains("-: not in the language"), "{shown:?}");
}

#[test]
fn rarer_options_of_schemas_are_named() {
    let files = Files::new();
    let schema = files
        .write("a.json", "{\"type\": \"integer\", \"minimum\": 1, \"exclusiveMinimum\": true}");
    let text = files.write("text", "2.0");
    let check = |options: &[&str]| {
        let given = options.iter().flat_map(|&option| ["--option", option]);
        let args: Vec<&str> =
            ["grammar", "check", &schema, "--text", &text].into_iter().chain(given).collect();
        String::from_utf8_lossy(&palmette(&args).stdout).into_owned()
    };
    assert!(check(&["draft=4"]).contains(": in the language"));
    assert!(check(&["draft=4", "integer_fractions=false"]).contains("not in the language"));
    for (option, words) in [
        ("draft=5", ["there is no draft \"5\"", "2019-09, 2020-12"]),
        ("formats=no", ["formats is true or false", "\"no\""]),
        ("max_states=many", ["max_states is a whole number", "\"many\""]),
        ("colour=red", ["there is no option \"colour\"", "max_cases"]),
        ("draft", ["NAME=VALUE", "draft"]),
    ] {
        check_refused(&["grammar", "check", &schema, "--option", option], &words);
    }
    let limits = ["grammar", "check", &schema, "--option", "draft=4", "--option", "max_rules=0"];
    check_refused(&limits, &["max_rules"]);
    let lark = files.write("a.lark", "start: \"a\"");
    check_refused(
        &["grammar", "check", &lark, "--option", "draft=4"],
        &["--option is for JSON Schema"],
    );
}

#[test]
fn special_and_end_tokens_of_a_vocabulary_are_given() {
    let files = Files::new();
    let lark = files.write("a.lark", "start: \"a\" <|tool|>");
    let vocab = files.write("ranks.tiktoken", "YQ== 0\nYg== 1\n");
    let mask = ["grammar", "mask", &lark, "--vocab", &vocab, "--prefix", "a"];
    let given =
        ["--special-token", "<|tool|>=3", "--special-token", "<|end|>=4", "--end-token", "<|end|>"];
    let found = run_json(&[&mask[..], &given].concat());
    assert_eq!([&found["tokens"], &found["num_tokens"]], [&json!([3]), &json!(5)]);
    check_refused(&mask, &["<|tool|>"]);
    check_refused(&[&mask[..], &["--special-token", "<|tool|>"]].concat(), &["NAME=ID"]);
    check_refused(
        &[&mask[..], &["--end-token", "<|no|>"]].concat(),
        &["<|no|>", "vocabulary of 2 tokens"],
    );
}

#[test]
fn tools_are_read_in_the_format_of_a_model() {
    let files = Files::new();
    let tools = files.write(
        "tools.json",
        r#"[{"name": "now", "input_schema": {"type": "object", "additionalProperties": false}}]"#,
    );
    let call = files.write("call", "{\"name\": \"now\", \"parameters\": {}}");
    let check = ["grammar", "check", &tools, "--tools", "llama3", "--text"];
    assert!(run(&[&check[..], &[&call]].concat()).contains("in the language"));
    check_refused(&["grammar", "check", &tools, "--tools", "gpt"], &["hermes", "llama3, llama4"]);
    let hosted = files.write("hosted.json", r#"{"tools": [{"type": "web_search"}], "mode": 1}"#);
    let output = palmette(&["grammar", "check", &hosted, "--tools", "qwen_xml"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("at \"/mode\": \"mode\" has no effect"), "{errors}");
    assert!(errors.contains("at \"/tools/0\": left out: \"web_search\""), "{errors}");
    let tag = files.write(
        "tag.json",
        r#"{"type": "structural_tag", "format": {"type": "any_text", "max_chrs": 3}}"#,
    );
    check_refused(
        &["grammar", "check", &tag],
        &["/format/max_chrs", "did you mean \"max_chars\"?"],
    );
    let grammar = files.write("call.lark", "start: <call> \"a\"");
    run(&["grammar", "check", &grammar]);
    let vocab = files.vocabulary();
    check_refused(
        &["grammar", "mask", &grammar, "--vocab", &vocab],
        &["token <call>", "none of this name"],
    );
}

#[test]
fn stats_count_what_texts_take() {
    let files = Files::new();
    let (grammar, text) = (files.write("sum.lark", LARK), files.write("text", "x = 1 + 2"));
    // Where all terminals compete, no state is looked at before a text is read.
    let longest = ["grammar", "stats", &grammar, "--lexing", "longest"];
    let before = run_json(&longest);
    let after = run_json(&[&longest[..], &["--text", &text]].concat());
    // NAME, =, NUMBER, + and the blank.
    assert_eq!(before["terminals"], 5);
    assert_eq!(before["rules"], after["rules"]);
    assert!(before["lexer_states"].as_u64() < after["lexer_states"].as_u64(), "{before} {after}");
    let shown = run(&["grammar", "stats", &grammar, "--text", &text]);
    for words in ["grammar: 5 terminals", "parser: ", "lexer: ", "memory: "] {
        assert!(shown.contains(words), "lacks {words:?}:\n{shown}");
    }
    let masks =
        run_json(&[&longest[..], &["--text", &text, "--vocab", &files.vocabulary()]].concat());
    assert!(masks["masks"]["masks"].as_u64() > Some(2), "{masks}");
}

#[cfg(feature = "bench")]
#[test]
fn stats_count_the_rows_of_a_mask_store() {
    let files = Files::new();
    let (grammar, text) = (files.write("sum.lark", LARK), files.write("text", "x = 1 + 2"));
    let vocab = files.vocabulary();
    let args = ["grammar", "stats", &grammar, "--lexing", "any", "--vocab", &vocab, "--store"];
    let rows = |args: &[&str]| {
        let report = run_json(args);
        let steps = report["store"]["steps"].as_array().unwrap().clone();
        let rows: Vec<u64> = steps.iter().map(|step| step["rows"].as_u64().unwrap()).collect();
        assert_eq!(steps.len(), 7, "none, the four that are published and two more: {report}");
        assert!(rows.is_sorted_by(|more, fewer| more >= fewer), "{report}");
        (report["store"]["states"].as_u64().unwrap(), rows)
    };
    let ((states, at_start), (more, along)) =
        (rows(&args), rows(&[&args[..], &["--text", &text]].concat()));
    assert!(states >= 1 && more > states && along[0] > at_start[0], "{states} {more}");
    let shown = run(&args);
    assert!(shown.contains("mask store: ") && shown.contains("distinct"), "{shown}");
    check_refused(&["grammar", "stats", &grammar, "--store"], &["--vocab"]);
    let limited = files.write("name.lark", "start: name \")\"\nname[max_tokens=3]: /[a-z]+/");
    let limited = ["grammar", "stats", &limited, "--lexing", "any", "--vocab", &vocab, "--store"];
    check_refused(&limited, &["limits on the tokens of lexemes"]);
}

#[test]
fn a_compiled_grammar_is_asked_like_its_source() {
    let files = Files::new();
    let (grammar, vocab) = (files.write("order.json", SCHEMA), files.vocabulary());
    let compiled = files.0.path().join("order.pmg").display().to_string();
    let args = ["grammar", "compile", &grammar, "--vocab", &vocab, "--output", &compiled];
    let report = run_json(&[&args[..], &["--ahead"]].concat());
    assert_eq!(report["ahead"]["open"], 0, "{report}");
    assert!(report["ahead"]["positions"].as_u64() > Some(20), "{report}");
    assert_eq!(report["file_bytes"], std::fs::metadata(&compiled).unwrap().len());

    let ask = |file: &str| {
        let mut report =
            run_json(&["grammar", "mask", file, "--vocab", &vocab, "--prefix", "{\"size\": "]);
        report["mask_us"] = 0.into();
        report
    };
    assert_eq!(ask(&compiled), ask(&grammar));
    let text = files.write("text", r#"{"size": "S", "count": 7}"#);
    let checked = run_json(&["grammar", "check", &compiled, "--text", &text]);
    assert_eq!(
        [&checked["syntax"], &checked["texts"][0]["accepted"]],
        [&json!("compiled"), &json!(true)]
    );
    let shown = run(&["grammar", "stats", &compiled, "--vocab", &vocab, "--ahead=5"]);
    assert!(shown.contains("ahead: ") && shown.contains("all that were found"), "{shown}");
    let shown = run(&args);
    assert!(shown.contains("order.pmg") && !shown.contains("ahead"), "{shown}");

    let other = files.write("other.json", r#"["a", "{", "<|endoftext|>"]"#);
    check_refused(&["grammar", "mask", &compiled, "--vocab", &other], &["another vocabulary"]);
    check_refused(&["grammar", "check", &compiled, "--start", "x"], &["--start"]);
    check_refused(&["grammar", "stats", &compiled, "--ahead"], &["--vocab"]);
    let mut bytes = std::fs::read(&compiled).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&compiled, bytes).unwrap();
    check_refused(&["grammar", "mask", &compiled, "--vocab", &vocab], &["order.pmg", "damaged"]);
}

/// Lists in which no item comes twice, records of one item, and few of a group.
#[test]
fn scopes_bind_what_comes_later() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| drop(write(dir.path(), name, text));
    write(
        "items.jsonl",
        "{\"item_id\": \"P1\", \"codes\": [0, 0], \"title\": \"Tent\", \"brand\": \"a\"}\n\
         {\"item_id\": \"P2\", \"codes\": [0, 1], \"title\": \"Mat\", \"brand\": \"a\"}\n\
         {\"item_id\": \"Q3\", \"codes\": [1, 0], \"title\": \"Lamp\", \"brand\": \"b\"}\n",
    );
    let schema = |min: usize| {
        format!(
            r#"{{"type": "array", "minItems": {min}, "x-distinct": "shop", "x-at-most": [{{"attribute": "brand", "items": 1}}],
                "items": {{"type": "object", "x-record": "shop", "required": ["sku"], "properties": {{
                    "sku": {{"type": "string", "x-catalog": "shop"}}, "title": {{"type": "string", "x-catalog": "shop.title"}}}}}}}}"#
        )
    };
    write("list.json", &schema(1));
    write("long.json", &schema(3));
    write("right.txt", r#"[{"sku": "P2", "title": "Mat"}, {"title": "Lamp", "sku": "Q3"}]"#);
    write("other.txt", r#"[{"sku": "P2", "title": "Tent"}]"#);
    write("brand.txt", r#"[{"sku": "P2"}, {"sku": "P1"}]"#);
    let run = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palmette"));
        let run = command.args(arguments.split(' ')).current_dir(dir.path()).output().expect("it");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (run.status.success(), text(run.stdout), text(run.stderr))
    };
    assert!(run("catalog build items.jsonl --out shop.palm").0);
    let check = |grammar: &str, text: &str| {
        run(&format!("grammar check {grammar} --catalog shop=shop.palm --text {text}"))
    };
    let (ok, out, err) = check("list.json", "right.txt");
    assert!(ok && out.contains("shop.title Lamp"), "{out}{err}");
    write("twice.txt", r#"[{"sku": "P2"}, {"sku": "P2"}]"#);
    for (wrong, words) in [
        ("other.txt", "\"Tent\" is left out by what was written before it (x-record \"shop\")"),
        ("brand.txt", "\"P1\" is left out by what was written before it"),
        ("twice.txt", "\"P2\" is there already (x-distinct \"shop\")"),
    ] {
        let (ok, out, _) = check("list.json", wrong);
        assert!(!ok && out.contains(words), "{out}");
    }
    // An item that has been written whole is not what is wrong.
    write("behind.txt", r#"[{"sku": "P2"x"#);
    let (ok, out, _) = check("list.json", "behind.txt");
    assert!(!ok && out.contains("not in the language: unexpected `x`"), "{out}");
    // What is bound is checked without a text, too.
    let (ok, _, err) = run("grammar check list.json --catalog shop=none.palm");
    assert!(!ok && err.contains("none.palm"), "{err}");
    let (ok, _, err) =
        run("grammar check list.json --catalog shop=shop.palm --filter shop={\"match\":{\"x\":1}}");
    assert!(!ok && err.contains("no item has the attribute \"x\""), "{err}");
    let (ok, _, err) = check("long.json", "right.txt");
    assert!(!ok && err.contains("x-distinct \"shop\" needs 3, and 2 may be written"), "{err}");
    vocabulary(dir.path());
    let arguments =
        "grammar mask list.json --vocab pieces.json --catalog shop=shop.palm --json --prefix";
    let mut command = Command::new(env!("CARGO_BIN_EXE_palmette"));
    let prefix = r#"[{"title": "Mat", "sku": "P"#;
    let run = command.args(arguments.split(' ')).arg(prefix).current_dir(dir.path()).output();
    let report: serde_json::Value = serde_json::from_slice(&run.expect("it").stdout).expect("JSON");
    assert!(report["allowed"].as_u64().is_some_and(|allowed| allowed > 0), "{report}");
}

/// A schema whose strings are ids and titles of a catalog's items, and a list of texts in a file.
#[test]
fn catalogs_fill_what_a_grammar_leaves_open() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| drop(write(dir.path(), name, text));
    write(
        "items.jsonl",
        "{\"item_id\": \"P1\", \"codes\": [0, 0], \"title\": \"Tent\", \"stock\": 1, \"tags\": [\"a\", \"b\"]}\n\
         {\"item_id\": \"P2\", \"codes\": [0, 1], \"title\": \"Mat, \\\"soft\\\"\", \"stock\": 0}\n\
         {\"item_id\": \"Q3\", \"codes\": [1, 0], \"title\": \"Lamp\", \"stock\": 2}\n",
    );
    write("units.txt", "kg\nlb\n");
    write(
        "answer.json",
        r#"{"type": "object", "required": ["sku", "title", "unit"], "additionalProperties": false, "properties": {
            "sku": {"type": "string", "x-catalog": "shop.id"}, "title": {"type": "string", "x-catalog": "shop.title"},
            "unit": {"type": "string", "x-catalog": "units"}}}"#,
    );
    write("right.txt", r#"{"sku": "P2", "title": "Mat, \"soft\"", "unit": "lb"}"#);
    write("wrong.txt", r#"{"sku": "P9", "title": "Tent", "unit": "kg"}"#);
    write("cut.txt", r#"{"sku": "P1", "titel"#);
    let run = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palmette"));
        let run = command.args(arguments.split(' ')).current_dir(dir.path()).output().expect("it");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (run.status.success(), text(run.stdout), text(run.stderr))
    };
    assert!(run("catalog build items.jsonl --out shop.palm").0);
    let both = "--catalog shop=shop.palm --catalog units=units.txt";
    let (ok, out, err) = run(&format!("grammar check answer.json {both} --text right.txt"));
    assert!(ok, "{err}");
    assert!(out.contains("right.txt: in the language"), "{out}");
    assert!(out.contains("shop.id P2, bytes 9 to 11"), "{out}");
    assert!(out.contains("units.id lb, bytes"), "{out}");
    let (ok, out, _) = run(&format!("grammar check answer.json {both} --text wrong.txt"));
    let words = "line 1, column 10: \"P9\" is no id of catalog shop; the nearest are P1, P2";
    assert!(!ok && out.contains(words), "{out}");
    let (_, out, _) =
        run(&format!("grammar check answer.json {both} --text wrong.txt --text cut.txt --json"));
    let report: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    let refused = &report["texts"][0]["refused_member"];
    assert_eq!((&refused["text"], &refused["field"]), (&"P9".into(), &"id".into()), "{report}");
    assert_eq!(refused["begins_at"]["offset"], 9);
    // What is refused outside of members, or cut off within one, is told as ever.
    assert_eq!(report["texts"][1].get("refused_member"), None);
    // Filters narrow the items, ids and titles alike.
    let stock = "--filter shop={\"range\":{\"stock\":{\"gt\":0}}}";
    let (ok, out, _) = run(&format!("grammar check answer.json {both} {stock} --text right.txt"));
    assert!(!ok && out.contains("no item that has it matches the filter"), "{out}");
    // The directory of a live catalog, and a lexicon.
    assert!(run("catalog live init live --from shop.palm").0);
    assert!(run("lexicon build units.txt --out units.palm").0);
    let live = "--catalog shop=live --catalog units=units.palm";
    let (ok, _, err) = run(&format!("grammar check answer.json {live} --text right.txt"));
    assert!(ok, "{err}");
    for (arguments, words) in [
        ("--catalog shop=shop.palm", "say which it is: --catalog units=FILE"),
        (&*format!("{both} --catalog other=units.txt"), "it names shop, units"),
        (&*format!("{both} --catalog shop=shop.palm"), "--catalog shop is given twice"),
        (
            &*format!("{both} --filter shop={{\"match\":{{\"title\":\"none\"}}}}"),
            "shop: 0 of 3 match",
        ),
        (
            &*format!("{both} --filter units={{\"match\":{{\"a\":1}}}}"),
            "no item has the attribute \"a\"",
        ),
        (
            "--catalog shop=units.txt --catalog units=units.txt",
            "field \"title\" is not there; the only one is \"id\"",
        ),
        ("--catalog shop=shop.palm --catalog units=missing.txt", "missing.txt"),
        ("--catalog shop", "expected NAME=VALUE"),
    ] {
        let (ok, _, err) = run(&format!("grammar check answer.json {arguments} --text right.txt"));
        assert!(!ok && err.contains(words), "{arguments}: {err}");
    }
    vocabulary(dir.path());
    write("plain.lark", "start: \"a\"");
    let (ok, _, err) = run("grammar mask plain.lark --vocab pieces.json --catalog shop=shop.palm");
    assert!(!ok && err.contains("the grammar names no catalog"), "{err}");
    write("open.lark", "start: \"<\" sku \">\"\nsku: %catalog {\"name\": \"shop\"}");
    let (ok, out, err) = run(
        "grammar mask open.lark --vocab pieces.json --catalog shop=shop.palm --prefix <P --json",
    );
    assert!(ok, "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(
        report["allowed"].as_u64().is_some_and(|allowed| (2..10).contains(&allowed)),
        "{report}"
    );
}

/// A schema whose strings are quotes of documents in files.
#[test]
fn documents_are_quoted_word_by_word() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| drop(write(dir.path(), name, text));
    write("page1.txt", "The dog sleeps.\nIt says \"woof\".\n");
    write("page2.txt", "Later we see how the quick brown fox jumps. The dog sleeps on.");
    write("none.txt", " ");
    write(
        "quote.json",
        r#"{"type": "object", "required": ["quote"], "additionalProperties": false, "properties": {
            "quote": {"type": "string", "x-substring": {"of": "doc", "min": 8}}}}"#,
    );
    write("right.txt", r#"{"quote": "the quick brown fox"}"#);
    write("escaped.txt", r#"{"quote": "sleeps.\nIt says \"woof\"."}"#);
    let run = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_palmette"));
        let run = command.args(arguments.split(' ')).current_dir(dir.path()).output().expect("it");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        (run.status.success(), text(run.stdout), text(run.stderr))
    };
    let both = "--document doc=page1.txt --document doc=page2.txt";
    let texts = "--text right.txt --text escaped.txt";
    let (ok, out, err) = run(&format!("grammar check quote.json {both} {texts}"));
    assert!(ok, "{out}{err}");
    assert!(
        out.contains(
            "  doc the quick brown fox, bytes 11 to 30, first in page2.txt at bytes 17 to 36"
        ),
        "{out}"
    );
    assert!(out.contains("first in page1.txt at bytes 8 to 31"), "{out}");
    let (ok, out, _) = run(&format!("grammar check quote.json {both} --text right.txt --json"));
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let first = &report["texts"][0]["members"][0];
    assert!(ok && first["first"]["file"] == "page2.txt" && first.get("field").is_none(), "{first}");
    for wrong in
        ["the quick brown fo", "the quick brown ", "quick", "sleeps. Later we", "woof\\nIt"]
    {
        write("wrong.txt", &format!(r#"{{"quote": "{wrong}"}}"#));
        let (ok, out, _) = run(&format!("grammar check quote.json {both} --text wrong.txt"));
        assert!(!ok && out.contains("wrong.txt: not in the language"), "{out}");
    }
    for (arguments, words) in [
        ("", "say which they are: --document doc=FILE"),
        ("--catalog doc=page1.txt", "give them as --document doc=FILE"),
        ("--document other=page1.txt", "it quotes doc"),
        ("--document doc=none.txt", "none of its 1 documents has words of at least 8 characters"),
        ("--document doc", "expected NAME=VALUE"),
        ("--document doc=gone.txt", "gone.txt"),
    ] {
        let (ok, _, err) =
            run(format!("grammar check quote.json --text right.txt {arguments}").trim_end());
        assert!(!ok && err.contains(words), "{arguments}: {err}");
    }
    vocabulary(dir.path());
    write(
        "open.lark",
        "start: \"<\" quote \">\"\nquote: %substring {\"of\": \"doc\", \"unit\": \"chars\"}",
    );
    let (ok, out, err) =
        run(&format!("grammar mask open.lark --vocab pieces.json {both} --prefix <T --json"));
    assert!(ok, "{err}");
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert!(report["allowed"].as_u64().is_some_and(|allowed| allowed > 0), "{report}");
    write("shop.lark", "start: \"<\" sku \">\"\nsku: %catalog {\"name\": \"shop\"}");
    let (ok, _, err) = run("grammar mask shop.lark --vocab pieces.json --document shop=page1.txt");
    assert!(!ok && err.contains("give it as --catalog shop=page1.txt"), "{err}");
}
