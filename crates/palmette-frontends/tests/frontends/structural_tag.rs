//! Structural tags: the texts that they allow, and messages.

use palmette_frontends::structural_tag::{
    StructuralTagOptions, TOOL_FORMATS, ToolFormat, is_structural_tag, parse, structural_tag_of,
};
use palmette_parser::Grammar;
use palmette_testkit::grammar::Machine;

fn read(source: &str) -> Grammar {
    parse(source, &StructuralTagOptions::default())
        .unwrap_or_else(|error| panic!("{source}\n{error}"))
}

fn accepts(grammar: &Grammar, text: &str) -> bool {
    Machine::new(&grammar.clone().without_tokens()).unwrap().accepts(text)
}

#[track_caller]
fn check(source: &str, valid: &[&str], invalid: &[&str]) {
    let grammar = read(source);
    for text in valid {
        assert!(accepts(&grammar, text), "{text:?} is refused by\n{source}");
    }
    for text in invalid {
        assert!(!accepts(&grammar, text), "{text:?} is accepted by\n{source}");
    }
}

#[track_caller]
fn refused(source: &str, message: &str) {
    let error = parse(source, &StructuralTagOptions::default()).expect_err(source).to_string();
    assert!(error.contains(message), "{message:?} is not in:\n{error}");
}

const TIME: &str = r#"{"begin": "<f=time>", "content": {"type": "json_schema", "json_schema":
    {"type": "object", "properties": {"zone": {"enum": ["<f=", "cet"]}}, "required": ["zone"], "additionalProperties": false}}, "end": "</f>"}"#;
const RAIN: &str = r#"{"type": "tag", "begin": "<f=rain>", "content": {"type": "regex", "pattern": "[a-z]+"}, "end": ["</f>", "<f/>"]}"#;

fn triggered(more: &str) -> String {
    format!(
        r#"{{"type": "structural_tag", "format": {{"type": "triggered_tags", "triggers": ["<f="], "tags": [{TIME}, {RAIN}]{more}}}}}"#
    )
}

#[test]
fn text_is_free_until_a_trigger() {
    check(
        &triggered(""),
        &[
            "",
            "no call < at all <f",
            "so <f=time>{\"zone\": \"cet\"}</f> then",
            "<f=rain>oslo</f><f=rain>rome<f/>",
            "a <f=time>{\"zone\":\"<f=\"}</f>",
        ],
        &[
            "<f=",
            "see <f=time>",
            "<f=snow>x</f>",
            "<f=time>{}</f>",
            "<f=rain>Oslo</f>",
            "<f=rain>oslo</f> <f=",
        ],
    );
}

#[test]
fn one_tag_at_least_or_at_most() {
    let tag = "<f=rain>oslo</f>";
    let twice = format!("{tag}{tag}");
    let after = format!("{tag} done");
    let before = format!("so {tag}");
    check(&triggered(r#", "at_least_one": true"#), &[tag, &twice, &after], &["", "so", &before]);
    check(
        &triggered(r#", "stop_after_first": true"#),
        &["", "so", tag, &before],
        &[&twice, &after],
    );
    check(
        &triggered(r#", "at_least_one": true, "stop_after_first": true"#),
        &[tag],
        &["", &before, &after, &twice],
    );
    check(&triggered(r#", "excludes": ["bye"]"#), &["hello", &before], &["goodbye"]);
}

#[test]
fn the_older_form_is_read() {
    let older = r#"{"type": "structural_tag", "structures": [{"begin": "<a>", "schema": {"type": "null"}, "end": "</a>"}], "triggers": ["<a"]}"#;
    check(older, &["x", "x <a>null</a> y"], &["<a", "<a>1</a>"]);
    assert!(is_structural_tag(older) && !is_structural_tag("{\"type\": \"object\"}"));
}

/// A trigger that overlaps itself begins where it first stands.
#[test]
fn triggers_begin_where_they_first_stand() {
    let tag = r#"{"type": "triggered_tags", "triggers": ["aa"], "tags": [{"begin": "aab", "content": {"type": "const_string", "value": "x"}, "end": "."}]}"#;
    check(tag, &["a", "aabx.", "baabx.a"], &["aaabx.", "aa"]);
}

#[test]
fn formats_are_composed() {
    let thinking = r#"{"type": "sequence", "elements": [
        {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
        {"type": "optional", "content": {"type": "const_string", "value": "\n"}},
        {"type": "or", "elements": [{"type": "json_schema", "json_schema": {"type": "integer"}}, {"type": "const_string", "value": "none"}]}]}"#;
    check(
        thinking,
        &["<think></think>7", "<think>a < b\n</think>\nnone"],
        &["<think>7", "<think>a</think>b</think>7", "7"],
    );
    let list = r#"{"type": "tags_with_separator", "separator": ", ", "tags": [{"begin": "(", "content": {"type": "grammar", "grammar": "root ::= [0-9]+"}, "end": ")"}]}"#;
    check(list, &["", "(1)", "(1), (22)"], &["(1),(2)", "(a)", "(1), "]);
    let repeat = r#"{"type": "repeat", "min": 1, "max": 3, "content": {"type": "const_string", "value": "ab"}}"#;
    check(repeat, &["ab", "ababab"], &["", "abababab"]);
    check(&repeat.replace('3', "-1"), &["ab", "abababab"], &[""]);
    check(
        r#"{"type": "star", "content": {"type": "const_string", "value": "x"}}"#,
        &["", "xxx"],
        &["y"],
    );
    check(
        r#"{"type": "plus", "content": {"type": "const_string", "value": "x"}}"#,
        &["x", "xxx"],
        &[""],
    );
    check(
        r#"{"type": "any_text", "max_chars": 2, "excludes": ["b"]}"#,
        &["", "aé"],
        &["aaa", "ab"],
    );
}

#[test]
fn errors_name_the_part_and_the_rule() {
    refused("{\"type\": \"structural_tag\"}", "has a \"format\"");
    refused("{\"type\": \"tags\"}", "the format \"tags\" is not known");
    refused("[", "line 1");
    refused(&triggered("").replace("[\"<f=\"]", "[\"<g=\"]"), "no trigger begins this tag");
    refused(&triggered("").replace("[a-z]+", "[a-z"), "/format/tags/1/content");
    refused(r#"{"type": "json_schema", "json_schema": {"type": "text"}}"#, "in this schema");
    refused(
        r#"{"type": "tag", "begin": "<a>", "content": {"type": "any_text"}}"#,
        "\"end\" is missing",
    );
    refused(
        r#"{"type": "repeat", "min": 3, "max": 2, "content": {"type": "any_text"}}"#,
        "from \"min\" to \"max\"",
    );
    let deep = (0..100).fold("{\"type\": \"any_text\"}".to_owned(), |inner, _| {
        format!("{{\"type\": \"star\", \"content\": {inner}}}")
    });
    refused(&deep, "more than 64 deep");
}

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "time", "description": "now", "parameters": {"type": "object",
    "properties": {"zone": {"enum": ["cet"]}}, "required": ["zone"], "additionalProperties": false}}},
    {"name": "rain", "input_schema": {"type": "object", "properties": {"mm": {"type": "integer"}}, "additionalProperties": false}},
    {"name": "stop"}]"#;

#[track_caller]
fn calls(request: &str, format: &str, valid: &[&str], invalid: &[&str]) {
    let tag = structural_tag_of(request, ToolFormat::named(format).unwrap()).unwrap();
    check(&tag, valid, invalid);
}

fn request(more: &str) -> String {
    format!("{{\"tools\": {TOOLS}{more}}}")
}

const TIME_CALL: &str =
    "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"zone\": \"cet\"}}\n</tool_call>";
const RAIN_CALL: &str =
    "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"mm\": 3}}\n</tool_call>";

#[test]
fn calls_may_stand_in_words() {
    let both = format!("let me see {TIME_CALL}\n{RAIN_CALL}");
    let thought = format!("<think>hm</think>{TIME_CALL}");
    let wrong = TIME_CALL.replace("cet", "utc");
    let unknown = TIME_CALL.replace("time", "snow");
    calls(
        TOOLS,
        "hermes",
        &["", "hello", TIME_CALL, &both, &thought],
        &[&wrong, &unknown, "<tool_call>"],
    );
}

#[test]
fn a_choice_requires_forbids_or_names_calls() {
    let both = format!("{TIME_CALL}\n{RAIN_CALL}");
    calls(
        &request(", \"tool_choice\": \"required\""),
        "hermes",
        &[TIME_CALL, &both],
        &["", "hello"],
    );
    calls(
        &request(", \"tool_choice\": {\"type\": \"any\"}, \"parallel_tool_calls\": false"),
        "hermes",
        &[RAIN_CALL],
        &["", &both],
    );
    calls(
        &request(", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"rain\"}}"),
        "hermes",
        &[RAIN_CALL],
        &[TIME_CALL, "x"],
    );
    calls(
        &request(", \"tool_choice\": {\"type\": \"tool\", \"name\": \"time\"}"),
        "hermes",
        &[TIME_CALL],
        &[RAIN_CALL],
    );
    calls(&request(", \"tool_choice\": \"none\""), "hermes", &["words"], &[]);
}

#[test]
fn an_answer_without_a_call_has_the_response_format() {
    let format = r#", "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}"#;
    calls(&request(format), "hermes", &["7", TIME_CALL], &["seven", "{}"]);
    let alone = r#"{"type": "json_schema", "json_schema": {"schema": {"type": "integer"}}}"#;
    calls(alone, "llama3", &["7"], &["seven"]);
    calls("{\"response_format\": {\"type\": \"json_object\"}}", "llama3", &["{\"a\": 1}"], &["[]"]);
}

#[test]
fn formats_differ_in_the_texts_around_calls() {
    let arguments = "{\"zone\": \"cet\"}";
    for (format, call) in [
        ("llama3", format!("{{\"name\": \"time\", \"parameters\": {arguments}}}")),
        ("mistral", format!("[TOOL_CALLS]time[ARGS]{arguments}")),
        (
            "mistral-list",
            format!("[TOOL_CALLS] [{{\"name\": \"time\", \"arguments\": {arguments}}}]"),
        ),
        (
            "deepseek",
            format!(
                "<think>hm</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
            ),
        ),
        (
            "harmony",
            format!(
                "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.time <|constrain|>json<|message|>{arguments}"
            ),
        ),
    ] {
        let wrong = call.replace("cet", "utc");
        calls(TOOLS, format, &[&call], &[&wrong]);
        calls(&request(", \"tool_choice\": \"required\""), format, &[&call], &[&wrong, "words"]);
    }
    calls(TOOLS, "harmony", &["<|channel|>final<|message|>hello"], &["hello"]);
    assert_eq!(TOOL_FORMATS.len(), 6);
}

#[test]
fn a_request_that_is_none_says_the_rule() {
    let refused = |request: &str, rule: &str| {
        let error = structural_tag_of(request, &TOOL_FORMATS[0]).unwrap_err().to_string();
        assert!(error.contains(rule), "{request}: {error}");
    };
    refused("7", "tools are a list");
    refused("[{\"parameters\": {}}]", "a tool has a \"name\"");
    refused("[{\"name\": \"a\"}, {\"name\": \"a\"}]", "is there twice");
    refused(&request(", \"tool_choice\": \"maybe\""), "a choice is");
    refused(
        &request(", \"tool_choice\": {\"type\": \"tool\", \"name\": \"snow\"}"),
        "there are: time, rain, stop",
    );
    refused(&request(", \"response_format\": {\"type\": \"xml\"}"), "\"json_object\"");
    refused("{\"tools\": [], \"tool_choice\": \"required\"}", "there are no tools");
    refused("[{\"name\": \"a\\\"b\"}]", "no quotes");
}
