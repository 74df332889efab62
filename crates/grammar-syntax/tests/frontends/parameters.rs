//! Parameters between marks: styles of arguments that are not JSON.

use palmette_grammar_syntax::structural_tag::{
    PARAMETER_STYLES, StructuralTagOptions, ToolFormat, parse, parse_tools,
};
use palmette_testkit::grammar::Machine;

#[track_caller]
fn check(style: &str, schema: &str, valid: &[&str], invalid: &[&str]) {
    let tag = format!(r#"{{"type": "json_schema", "style": "{style}", "json_schema": {schema}}}"#);
    let grammar = parse(&tag, &StructuralTagOptions::default());
    let grammar = grammar.unwrap_or_else(|error| panic!("{tag}\n{error}")).without_tokens();
    let machine = Machine::new(&grammar).unwrap();
    for text in valid {
        assert!(machine.accepts(text), "{text:?} is refused by\n{tag}");
    }
    for text in invalid {
        assert!(!machine.accepts(text), "{text:?} is accepted by\n{tag}");
    }
}

const WEATHER: &str = r#"{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"], "additionalProperties": false}"#;

fn qwen(name: &str, value: &str) -> String {
    format!("<parameter={name}>\n{value}\n</parameter>")
}

#[test]
fn texts_are_as_they_are_and_other_values_in_json() {
    let city = qwen("city", "New \"York\" <b>\n\\n");
    let days = qwen("days", "3");
    check(
        "qwen_xml",
        WEATHER,
        &[
            &city,
            &format!("{city}\n{days}"),
            &format!("{days}\n{city}\n"),
            &format!("\n{city}"),
            "<parameter=city>Oslo</parameter>",
            "<parameter=city>\n\n</parameter>",
            "<parameter=city></parameter>",
        ],
        &[
            "",
            &days,
            &qwen("town", "Oslo"),
            &format!("{city}{}", qwen("days", "few")),
            &format!("{city}{}", qwen("days", "\"3\"")),
            &format!("{city}{city}"),
            "{\"city\": \"Oslo\"}",
            "<parameter=city>a</parameter>b</parameter>",
        ],
    );
}

#[test]
fn styles_differ_in_their_marks() {
    for (style, city, days) in [
        ("qwen_xml", "<parameter=city>\nOslo\n</parameter>", "<parameter=days>\n3\n</parameter>"),
        (
            "minimax_xml",
            "<parameter name=\"city\">Oslo</parameter>",
            "<parameter name=\"days\">3</parameter>",
        ),
        (
            "deepseek_xml",
            "<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>",
            "<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>",
        ),
        (
            "glm_xml",
            "<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>",
            "<arg_key>days</arg_key>\n<arg_value>3</arg_value>",
        ),
    ] {
        let both = format!("{city}\n{days}\n");
        let few = both.replace('3', "few");
        check(style, WEATHER, &[city, &both], &["", days, &few]);
    }
    let swapped = "<｜DSML｜parameter name=\"city\" string=\"false\">Oslo</｜DSML｜parameter>";
    check("deepseek_xml", WEATHER, &[], &[swapped]);
    assert_eq!(PARAMETER_STYLES.len(), 14);
    let unknown = r#"{"type": "json_schema", "style": "yaml", "json_schema": {}}"#;
    let error = parse(unknown, &StructuralTagOptions::default()).unwrap_err().to_string();
    assert!(error.contains("json, qwen_xml, minimax_xml, deepseek_xml, glm_xml"), "{error}");
}

/// Cohere's marks stand around the members of objects and the items of lists, too.
#[test]
fn nested_marks_say_of_what_kind_a_value_is() {
    let schema = r#"{"type": "object", "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"], "additionalProperties": false},
        "c": {"type": "array", "items": {"type": ["integer", "array"], "items": {"type": "string"}}, "maxItems": 2},
        "d": {}}, "additionalProperties": false}"#;
    let named = |name: &str, kind: &str, value: &str| {
        format!("<cofl:value name=\"{name}\" type=\"{kind}\">{value}</cofl:value>")
    };
    let item =
        |kind: &str, value: &str| format!("<cofl:value type=\"{kind}\">{value}</cofl:value>");
    let object = named("a", "dict", &named("b", "raw", "x \"y\""));
    let list = |items: &[String]| named("c", "list", &items.concat());
    let (one, inner) = (item("json", "1"), item("list", &item("raw", "x")));
    let valid = [
        String::new(),
        object.clone(),
        list(&[]),
        list(&[one.clone(), inner.clone()]),
        object + "\n" + &list(std::slice::from_ref(&one)) + &named("d", "json", "[\"x\", {}]"),
    ];
    let invalid = [
        named("a", "dict", ""),
        named("a", "json", "{\"b\": \"x\"}"),
        named("a", "dict", &named("b", "json", "\"x\"")),
        list(&[item("raw", "1")]),
        list(&[one.clone(), inner, one]),
        list(&[named("0", "json", "1")]),
        named("c", "list", "[1]"),
        named("d", "raw", "x"),
    ];
    let [valid, invalid] =
        [&valid[..], &invalid].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
    check("cohere_xml", schema, &valid, &invalid);
    let tag = |schema: &str| {
        format!(r#"{{"type": "json_schema", "style": "cohere_xml", "json_schema": {schema}}}"#)
    };
    let unique =
        r#"{"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true}}}"#;
    let error = parse(&tag(unique), &StructuralTagOptions::default()).unwrap_err().to_string();
    assert!(error.contains("where items stand between marks"), "{error}");
    // Values within values within values, and so on.
    let recursive = r##"{"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false}"##;
    let next = named("next", "dict", &named("next", "dict", ""));
    check("cohere_xml", recursive, &["", &next], &[&named("next", "json", "{}")]);
}

#[test]
fn conditions_hold_for_texts_as_for_strings() {
    let schema = |of: &str| {
        format!(r#"{{"type": "object", "properties": {{"a": {of}}}, "required": ["a"]}}"#)
    };
    let one = |value: &str| qwen("a", value);
    let check = |of: &str, valid: &[&str], invalid: &[&str]| {
        let [valid, invalid] =
            [valid, invalid].map(|texts| texts.iter().map(|text| one(text)).collect::<Vec<_>>());
        let [valid, invalid] =
            [&valid, &invalid].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
        check("qwen_xml", &schema(of), &valid, &invalid);
    };
    check(
        r#"{"enum": ["x y", "\"", 3, null, [1]]}"#,
        &["x y", "\"", "3", "null", "[1]"],
        &["\"x y\"", "z", "[2]"],
    );
    check(r#"{"type": "string", "pattern": "^[ab]+$"}"#, &["ab"], &["c", ""]);
    check(r#"{"type": "string", "maxLength": 2}"#, &["ab", "é\u{1F600}"], &["abcde"]);
    check(r#"{"type": ["string", "null"], "const": "yes"}"#, &["yes"], &["null", "no"]);
    check(
        r#"{"type": "object", "properties": {"b": {"type": "string"}}}"#,
        &["{\"b\": \"c\"}"],
        &["b", "{\"b\": 1}"],
    );
    check(r#"{"type": "array", "items": {"type": "string"}}"#, &["[\"a\"]", "[]"], &["a", "[1]"]);
    check(r#"{"type": "boolean"}"#, &["true"], &["yes"]);
}

#[test]
fn many_parameters_come_in_the_schemas_order() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let properties = names.map(|name| format!("\"{name}\": {{\"type\": \"integer\"}}")).join(", ");
    let schema = format!(
        r#"{{"type": "object", "properties": {{{properties}}}, "required": ["a", "h"], "additionalProperties": false}}"#
    );
    let of =
        |names: &[&str]| names.iter().map(|name| qwen(name, "1")).collect::<Vec<_>>().join("\n");
    check("qwen_xml", &schema, &[&of(&names), &of(&["a", "h"])], &[&of(&["h", "a"]), &of(&["a"])]);
}

#[test]
fn other_names_are_free_where_the_schema_lets_them() {
    let schema = r#"{"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": {"type": "integer"}}"#;
    check(
        "qwen_xml",
        schema,
        &["", &qwen("a", "1"), &qwen("b", "2")],
        &[&qwen("a", "2"), &qwen("b>c", "2"), &qwen("", "2")],
    );
    let counted = r#"{"type": "json_schema", "style": "qwen_xml", "json_schema": {"type": "object", "minProperties": 3}}"#;
    let error = parse(counted, &StructuralTagOptions::default()).unwrap_err().to_string();
    assert!(error.contains("minProperties counts parameters"), "{error}");
}

#[test]
fn calls_of_tools_are_written_in_styles() {
    let tools = format!(r#"[{{"name": "weather", "parameters": {WEATHER}}}, {{"name": "now"}}]"#);
    for (format, call, none) in [
        (
            "qwen_xml",
            "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
            "<tool_call>\n<function=now>\n</function>\n</tool_call>",
        ),
        (
            "glm-xml",
            "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
            "<tool_call>now</tool_call>",
        ),
        (
            "minimax_xml",
            "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Oslo</parameter>\n</invoke>\n</minimax:tool_call>",
            "<minimax:tool_call>\n<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>",
        ),
        (
            "deepseek_xml",
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        ),
    ] {
        let format = ToolFormat::named(format).unwrap();
        let grammar = parse_tools(&tools, format, &StructuralTagOptions::default()).unwrap();
        let machine = Machine::new(&grammar.without_tokens()).unwrap();
        for text in ["hello", call, none] {
            assert!(machine.accepts(text), "{}: {text:?}", format.name);
        }
        assert!(!machine.accepts(&call.replace("city", "town")), "{}", format.name);
        assert!(!machine.accepts(&call.replace("weather", "snow")), "{}", format.name);
    }
}

/// MiniMax's marks repeat a parameter's name after its value: names are declared ones, and what
/// could be taken for something else is JSON.
#[test]
fn marks_that_repeat_a_name_close_what_they_open() {
    let schema = r#"{"type": "object", "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "string"}, "item": {"type": "integer"}}, "required": ["b"]},
        "c": {"type": "array", "items": {"type": ["integer", "null"]}, "maxItems": 2},
        "d": {"type": ["string", "array"], "items": {"type": "integer"}}, "e": {"type": "object"}, "f": {}}}"#;
    let named =
        |name: &str, value: &str| format!("]<]minimax[>[<{name}>{value}]<]minimax[>[</{name}>");
    let valid = [
        String::new(),
        named("a", &named("b", "x <y> ]<]")),
        named("a", &(named("b", "") + &named("item", "3"))),
        named("c", ""),
        named("c", &(named("item", "1") + &named("item", "null"))),
        named("d", "x"),
        named("d", "[1, 2]"),
        named("e", "{\"x\": 1}"),
        named("f", "any text") + &named("d", ""),
        named("f", "[1, {}]"),
    ];
    let invalid = [
        named("a", ""),
        named("a", "{\"b\": \"x\"}"),
        named("c", "[1]"),
        named("c", &named("item", "x")),
        named("c", &(named("item", "1") + &named("item", "2") + &named("item", "3"))),
        named("d", &named("item", "1")),
        named("d", "[x"),
        named("g", "1"),
        "]<]minimax[>[<f>x]<]minimax[>[</d>".to_owned(),
        named("f", "a]<]minimax[>[<b"),
    ];
    let [valid, invalid] =
        [&valid[..], &invalid].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
    check("minimax_m3_xml", schema, &valid, &invalid);
}

/// Names in attributes of XML, and types where a schema asks for none.
#[test]
fn names_are_escaped_in_attributes() {
    let named = |name: &str, kind: &str, value: &str| {
        format!(
            "<|open|>argument key=\"{name}\" type=\"{kind}\"<|sep|>{value}<|close|>argument<|sep|>"
        )
    };
    let schema = r#"{"type": "object", "properties": {"a\"b&c": {"type": "integer"}}, "required": ["a\"b&c"]}"#;
    let escaped = named("a&quot;b&amp;c", "number", "3");
    let more = escaped.clone() + &named("k", "integer", "3");
    let invalid = [
        named("a\"b&c", "number", "3"),
        named("a&quot;b&amp;c", "integer", "3"),
        escaped.clone() + &named("k&amp;l", "string", "x"),
        escaped.clone() + &named("k", "integer", "3.5"),
    ];
    let invalid: Vec<&str> = invalid.iter().map(String::as_str).collect();
    check("kimi_k3_xml", schema, &[&escaped, &more], &invalid);
}
