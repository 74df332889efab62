//! What published schemas hold: patterns of other dialects, patterns that exclude one another,
//! definitions that are only themselves.

use palmette_grammar_syntax::json_schema::{JsonSchemaOptions, parse_with_warnings};

use super::keywords::{check, error};

/// Of other dialects than ECMAScript's what it has nothing for, and lookarounds within what is
/// repeated.
#[test]
fn patterns_of_other_dialects() {
    for (pattern, inside, outside) in [
        (r"^\\p{Print}+$", &["ab c", "~"][..], &["\\u0001", "é"][..]),
        (r"^\\p{Graph}{2}$", &["a!"], &["a ", "é1"]),
        (r"(?i)^ab$", &["AB", "aB"], &["abc"]),
        (r"\\Aab\\Z", &["ab"], &["abc"]),
        (r"^[a-z&&[^aeiou]]+$", &["bcd"], &["a", "b]"]),
        (
            r"^([a-z\\d]|[a-z\\d]([a-z\\d-](?!--))*[a-z\\d])$",
            &["a", "a-b", "ab1", "a--b"],
            &["-a", "a-", "a---b"],
        ),
        (r"^((?!foo).)*x$", &["abx", "fox"], &["ab", "afoox"]),
        (r"(?<=a\\/)b", &["a/b", "xa\\/b"], &["ab", "a\\\\/b"]),
        (r"^(\\b[a-z]+\\b ?)+$", &["a b"], &["a  b"]),
    ] {
        let quoted = |texts: &[&str]| texts.iter().map(|text| format!("\"{text}\"")).collect();
        let (inside, outside): (Vec<String>, Vec<String>) = (quoted(inside), quoted(outside));
        let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
        let outside: Vec<&str> = outside.iter().map(String::as_str).collect();
        for limits in ["", ", \"maxLength\": 40", ", \"not\": {\"const\": \"zz\"}"] {
            check(
                &format!(r#"{{"type": "string", "pattern": "{pattern}"{limits}}}"#),
                &inside,
                &outside,
            );
        }
    }
    let schema = r#"{"pattern": "^[a-z&&[^aeiou]]+$"}"#;
    let (_, warnings) = parse_with_warnings(schema, &JsonSchemaOptions::default()).expect(schema);
    assert!(warnings[0].to_string().contains("is an operation on sets"), "{warnings:?}");
    assert_eq!(warnings[0].pointer, "/pattern");
}

/// Of eleven patterns no two of which match one name there are twelve kinds of names, not two
/// thousand.
#[test]
fn patterns_of_names_that_exclude_one_another() {
    let operators = [
        "StringEquals",
        "StringLike",
        "NumericEquals",
        "NumericLess",
        "DateEquals",
        "DateLess",
        "Bool",
        "Null",
        "IpAddress",
        "ArnEquals",
        "ArnLike",
        "BinaryEquals",
        "StringNotLike",
    ];
    let member =
        |operator: &&str| format!(r#""^(Any:|All:)?{operator}(IfExists)?$": {{"type": "object"}}"#);
    let members: Vec<String> = operators.iter().map(member).collect();
    let schema = format!(
        r#"{{"type": "object", "patternProperties": {{{}}}, "additionalProperties": false}}"#,
        members.join(", ")
    );
    check(
        &schema,
        &[r#"{"StringEquals": {}, "Any:BoolIfExists": {}}"#, "{}", r#"{"All:Null": {}}"#],
        &[r#"{"StringEqual": {}}"#, r#"{"Bool": 1}"#, r#"{"Any:All:Bool": {}}"#],
    );
}

/// Parts that patterns of one string decide: the patterns exclude one another, so they do not
/// multiply, and the length is counted once.
#[test]
fn parts_by_the_beginning_of_a_string() {
    let services = ["lambda", "sqs", "sns", "kinesis", "states", "events", "ecs", "batch"];
    let properties: Vec<String> = services.iter().map(|of| format!(r#""{of}": {{}}"#)).collect();
    let parts: Vec<String> = services
        .iter()
        .map(|of| {
            format!(r#""{of}": {{"properties": {{"target": {{"pattern": "^arn:[^:]*:{of}:"}}}}}}"#)
        })
        .collect();
    let schema = format!(
        r#"{{"type": "object", "properties": {{"target": {{"type": "string", "pattern": "^arn:", "maxLength": 1600}}, {}}},
        "required": ["target"], "dependentSchemas": {{{}}}, "additionalProperties": false}}"#,
        properties.join(", "),
        parts.join(", ")
    );
    check(
        &schema,
        &[
            r#"{"target": "arn:aws:sqs:x", "sqs": {}}"#,
            r#"{"target": "arn:aws:sqs:x"}"#,
            r#"{"sns": 1, "target": "arn::sns:"}"#,
        ],
        &[
            r#"{"target": "arn:aws:sns:x", "sqs": {}}"#,
            r#"{"target": "arn:aws:sqs:x", "sqs": {}, "sns": {}}"#,
            r#"{"sqs": {}}"#,
        ],
    );
}

/// That a schema holds if it holds and more does says no more than that.
#[test]
fn definitions_that_are_only_themselves_add_nothing() {
    let named = |defs: &str| {
        format!(
            r##"{{"type": "object", "$defs": {{{defs}}}, "properties": {{"name": {{"type": "string"}}, "vm": {{"$ref": "#/$defs/vm"}}}},
            "required": ["name"], "additionalProperties": false}}"##
        )
    };
    for (defs, inside, outside) in [
        (
            r##""vm": {"allOf": [{"$ref": "#/$defs/vm"}, {"type": "object"}]}"##,
            r#"{"name": "a", "vm": {}}"#,
            r#"{"name": "a", "vm": 1}"#,
        ),
        (r##""vm": {"$ref": "#/$defs/vm"}"##, r#"{"name": "a", "vm": 1}"#, "{}"),
        (
            r##""vm": {"$ref": "#/$defs/a", "type": "object"}, "a": {"allOf": [{"$ref": "#/$defs/vm"}], "minProperties": 1}"##,
            r#"{"vm": {"x": 1}, "name": "a"}"#,
            r#"{"vm": {}, "name": "a"}"#,
        ),
    ] {
        let schema = named(defs);
        check(&schema, &[r#"{"name": "a"}"#, inside], &["{}", outside]);
        let (_, warnings) =
            parse_with_warnings(&schema, &JsonSchemaOptions::default()).expect("read");
        let warning = warnings.iter().find(|warning| warning.message.contains("adds nothing"));
        assert!(
            warning.is_some_and(|warning| warning.pointer.starts_with("/$defs/")),
            "{warnings:?}"
        );
    }
    for defs in [
        r##""vm": {"anyOf": [{"$ref": "#/$defs/vm"}, {"type": "object"}]}"##,
        r##""vm": {"not": {"$ref": "#/$defs/vm"}}"##,
    ] {
        let refused = error(&named(defs)).to_string();
        assert!(refused.contains("refers to itself"), "{refused}");
    }
}
