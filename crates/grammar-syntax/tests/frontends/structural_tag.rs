//! Structural tags: the texts that they allow, and messages.

use palmette_grammar_parser::{Budget, Grammar};
use palmette_grammar_syntax::structural_tag::{
    StructuralTagOptions, is_structural_tag, parse, parse_with_budget,
};
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
fn the_older_form_is_known_without_its_type() {
    let older =
        r#"{"structures": [{"begin": "<f>", "schema": {}, "end": "</f>"}], "triggers": ["<f>"]}"#;
    assert!(is_structural_tag(older));
    assert!(!is_structural_tag(r#"{"type": "object", "structures": [], "triggers": []}"#));
    assert!(!is_structural_tag(r#"{"properties": {}}"#));
}

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
    check(r#"{"type": "any_text", "max_tokens": 0}"#, &[""], &["a"]);
    check(r#"{"type": "any_text", "max_chars": 0, "max_tokens": 3}"#, &[""], &["a"]);
}

#[test]
fn errors_name_the_part_and_the_rule() {
    refused("{\"type\": \"structural_tag\"}", "has a \"format\"");
    refused("{\"type\": \"tags\"}", "the format \"tags\" is not known");
    refused("[", "line 1");
    refused(&triggered("").replace("[\"<f=\"]", "[\"<g=\"]"), "no trigger begins this tag");
    refused(&triggered("").replace("[a-z]+", "[a-z"), "/format/tags/1/content");
    refused(
        r#"{"type": "json_schema", "json_schema": {"type": "text"}}"#,
        "line 1, column 49: at \"/json_schema/type\": `type`",
    );
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

/// The warnings of a document, by pointer.
fn warned(source: &str) -> Vec<(String, String)> {
    let options = StructuralTagOptions::default();
    let read = parse_with_budget(source, &options, &mut Budget::unlimited());
    let (_, warnings) = read.unwrap_or_else(|error| panic!("{source}\n{error}"));
    warnings.into_iter().map(|warning| (warning.pointer, warning.message)).collect()
}

#[test]
fn null_is_as_if_a_member_were_absent() {
    check(
        r#"{"type": "structural_tag", "x": null, "format": {"type": "sequence", "elements": [
            {"type": "any_text", "excludes": null, "max_tokens": null, "max_chars": null},
            {"type": "tag", "begin": "<c>", "end": "</c>", "content": {"type": "json_schema", "json_schema": {"const": null},
                "style": null, "any_order": null, "max_whitespace_cnt": null, "excludes": []}}]}}"#,
        &["<c>null</c>", "hi <c>null</c>"],
        &["hi", "<c></c>"],
    );
    check(&triggered(r#", "at_least_one": null, "excludes": null"#), &["", "hello"], &["<f="]);
    refused(r#"{"type": "regex", "pattern": null}"#, "\"pattern\" is missing");
}

#[test]
fn members_that_are_not_read_are_said_by_name() {
    for (member, meant) in [
        ("at_least_onee", "at_least_one"),
        ("atLeastOne", "at_least_one"),
        ("stop_after_frist", "stop_after_first"),
        ("exclude", "excludes"),
    ] {
        refused(
            &triggered(&format!(", \"{member}\": true")),
            &format!(
                "/format/{member}\": the format \"triggered_tags\" has no member \"{member}\" (did you mean \"{meant}\"?)"
            ),
        );
    }
    refused(
        r#"{"type": "tag", "begins": "<a>", "begin": "<a>", "content": {"type": "any_text"}, "end": "<b>"}"#,
        "did you mean \"begin\"?",
    );
    refused(r#"{"type": "json_shema", "json_schema": {}}"#, "did you mean \"json_schema\"?");
    let tag = r#"{"type": "structural_tag", "format": {"type": "tag", "begin": "<a>", "end": "</a>", "temperature": 1,
        "content": {"type": "json_schema", "json_schema": {"items": {"tipe": "string"}}, "colour": true}}}"#;
    let found = warned(tag);
    let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    let expected =
        ["/format/temperature", "/format/content/colour", "/format/content/json_schema/items/tipe"];
    assert_eq!(pointers, expected, "{found:?}");
    assert!(found[0].1.contains("\"temperature\" has no effect"), "{found:?}");
}

#[test]
fn order_and_blanks_of_a_schema_are_the_tags() {
    let tag = |more: &str| {
        format!(
            r#"{{"type": "json_schema", "json_schema": {{"properties": {{"a": {{"const": 1}}, "b": {{"const": 2}}}},
                "type": "object", "required": ["a", "b"], "additionalProperties": false}}{more}}}"#
        )
    };
    let (straight, turned) = (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#);
    check(&tag(""), &[straight, turned], &[]);
    check(&tag(r#", "any_order": true"#), &[straight, turned], &["{\"a\":1}"]);
    check(&tag(r#", "any_order": false"#), &[straight], &[turned]);
    check(
        &tag(r#", "max_whitespace_cnt": 1"#),
        &[straight, "{ \"a\": 1,\n\"b\": 2}"],
        &["{  \"a\":1,\"b\":2}"],
    );
    refused(&tag(r#", "any_order": "yes""#), "\"any_order\" must be true or false");
    refused(&tag(r#", "max_whitespace_cnt": -1"#), "must be a whole number");
    refused(&tag(r#", "excludes": ["x"]"#), "not known in this format");
    refused(&tag(r#", "max_whitespace": 1"#), "did you mean \"max_whitespace_cnt\"?");
}

#[test]
fn a_pattern_dispatches_to_the_format_after_it() {
    let dispatch = |more: &str| {
        format!(
            r##"{{"type": "dispatch", "rules": [["#", {{"type": "regex", "pattern": "[0-9]"}}], ["@", {{"type": "const_string", "value": "me"}}]]{more}}}"##
        )
    };
    check(&dispatch(""), &["", "a #1 b @me", "#1#2"], &["#", "@you"]);
    check(
        &dispatch(r#", "loop": false, "excludes": ["!"]"#),
        &["a", "a #1"],
        &["#1#2", "!", "#1 b"],
    );
    refused(
        r##"{"type": "dispatch", "rules": ["#"]}"##,
        "a rule is a list of a text and the format",
    );
}

/// An answer to a request with tools is a format among others.
#[test]
fn tools_are_a_format() {
    let tag = |more: &str| {
        format!(
            r##"{{"type": "sequence", "elements": [{{"type": "const_string", "value": "# "}}, {{"type": "tools", "tool_format": "hermes",
                "request": {{"tools": [{{"name": "f", "parameters": {{"type": "object", "properties": {{"a": {{"const": 1}}, "b": {{"const": 2}}}},
                "required": ["a", "b"], "additionalProperties": false}}}}], "tool_choice": "required"}}{more}}}]}}"##
        )
    };
    let call = |arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"f\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    let straight = call(r#"{"a": 1, "b": 2}"#);
    let turned = call(r#"{"b": 2, "a": 1}"#);
    let [plain, other] = [&straight, &turned].map(|call| format!("# {call}"));
    let thought = format!("# <think>Hm.</think>{straight}");
    let begun = format!("# Hm.</think>{straight}");
    check(&tag(""), &[&plain, &other, &thought], &["# Words.", &straight, &begun]);
    let over = tag(r#", "reasoning": "over", "any_order": false"#);
    check(&over, &[&plain], &[&other, &thought, &begun]);
    check(&tag(r#", "reasoning": "begun""#), &[&begun], &[&plain]);
    refused(&tag(r#", "reasoning": true"#), "\"reasoning\" must be a text");
    refused(&tag(r#", "reasoning": "on""#), "reasoning is \"begun\" or \"over\", not \"on\"");
    refused(r#"{"type": "tools", "tool_format": "hermes"}"#, "\"request\" is missing here");
    refused(
        r#"{"type": "tools", "tool_format": "hermse", "request": []}"#,
        "did you mean \"hermes\"?",
    );
    let choice = r#"{"type": "tools", "tool_format": "hermes", "request": {"tools": [], "tool_choice": "required"}}"#;
    refused(choice, "at \"/request/tool_choice\": a call is required");
}
