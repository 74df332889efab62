//! Closed objects: a schema with `properties` and nothing about other members has no others.

use palmette_grammar_syntax::json_schema::{JsonSchemaOptions, PropertyOrder, parse};
use palmette_testkit::grammar::Machine;
use palmette_testkit::json::{dumps, schemas, values};
use proptest::prelude::*;

use super::keywords::check_with;
use super::random::is_valid;

fn closed() -> JsonSchemaOptions {
    JsonSchemaOptions { closed_objects: true, ..JsonSchemaOptions::default() }
}

#[track_caller]
fn check(schema: &str, inside: &[&str], outside: &[&str]) {
    check_with(&closed(), schema, inside, outside);
    // Whatever is closed, what was not valid does not become so, and what is left out was valid.
    check_with(&JsonSchemaOptions::default(), schema, inside, &[]);
}

#[test]
fn declared_members_are_all() {
    let person = r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}"#;
    check(
        person,
        &[r#"{"name": "a", "age": 1}"#, r#"{"name": ""}"#],
        &[r#"{"name": "a", "x": 1}"#, r#"{"age": 1}"#],
    );
    // An empty list of properties is a list, and no list is none.
    check(r#"{"type": "object", "properties": {}}"#, &["{}"], &[r#"{"a": 1}"#]);
    check(r#"{"type": "object"}"#, &["{}", r#"{"a": 1}"#], &["1"]);
    check(
        r#"{"properties": {"a": {"properties": {"b": {}}}}}"#,
        &[r#"{"a": {"b": {"c": 1}}}"#, "7"],
        &[r#"{"a": {"c": 1}}"#],
    );
    check(r#"{"items": {"properties": {"a": {}}}}"#, &[r#"[{"a": 1}, {}]"#], &[r#"[{"b": 1}]"#]);
}

#[test]
fn a_schema_that_says_what_others_may_be_is_believed() {
    let rest = r#"{"properties": {"a": {}}, "REST": true}"#;
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        check(&rest.replace("REST", keyword), &[r#"{"a": 1, "b": 2}"#], &[]);
    }
    check(
        r#"{"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}"#,
        &[r#"{"b": 2}"#],
        &[r#"{"b": "2"}"#],
    );
    // Names that match a pattern are known, as those are that must be there.
    check(
        r#"{"properties": {"a": {}}, "patternProperties": {"^x": {}}, "required": ["z"]}"#,
        &[r#"{"a": 1, "z": 2, "xy": 3}"#],
        &[r#"{"z": 2, "b": 1}"#],
    );
    check(r#"{"patternProperties": {"^x": {"type": "null"}}}"#, &[r#"{"b": 1}"#], &[r#"{"x": 1}"#]);
}

#[test]
fn parts_of_a_schema_are_closed_together() {
    let both = &[r#"{"a": 1, "b": 2}"#, r#"{"a": 1}"#][..];
    let neither = &[r#"{"a": 1, "c": 2}"#][..];
    for schema in [
        r#"{"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]}"#,
        r##"{"$ref": "#/$defs/base", "properties": {"b": {}}, "$defs": {"base": {"properties": {"a": {}}, "required": ["a"]}}}"##,
        r#"{"properties": {"a": {}}, "required": ["a"], "if": {"required": ["a"]}, "then": {"properties": {"b": {}}}}"#,
        r#"{"properties": {"a": {}}, "required": ["a"], "dependentSchemas": {"a": {"properties": {"b": {}}}}}"#,
        r#"{"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["a", "b"]}]}"#,
        r#"{"properties": {"a": {}, "b": {}}, "required": ["a"], "not": {"required": ["c"]}}"#,
    ] {
        check(schema, both, neither);
    }
    // Members of members, too.
    check(
        r#"{"allOf": [{"properties": {"p": {"properties": {"a": {}}}}}, {"properties": {"p": {"properties": {"b": {}}}}}]}"#,
        &[r#"{"p": {"a": 1, "b": 2}}"#],
        &[r#"{"p": {"c": 1}}"#],
    );
}

#[test]
fn alternatives_are_closed_each_for_itself() {
    let union = r#"{"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}, {"type": "null"}]}"#;
    check(
        union,
        &[r#"{"a": 1}"#, r#"{"b": 1}"#, "null"],
        &[r#"{"a": 1, "c": 1}"#, r#"{"a": 1, "b": 1}"#, "{}"],
    );
    // The one that is a special case of the other, openly.
    let derived = r#"{"anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}]}"#;
    check(derived, &[r#"{"a": 1}"#, r#"{"a": 1, "b": 1}"#], &[r#"{"a": 1, "c": 1}"#]);
    // A model or any object.
    check(
        r#"{"anyOf": [{"properties": {"a": {}}}, {"type": "object"}]}"#,
        &[r#"{"a": 1}"#, r#"{"b": 1}"#],
        &[],
    );
    let kinds = r#"{"oneOf": [
        {"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind"]},
        {"properties": {"kind": {"const": "dog"}, "barks": {"type": "boolean"}}, "required": ["kind"]}]}"#;
    check(
        kinds,
        &[r#"{"kind": "cat", "lives": 9}"#, r#"{"kind": "dog", "barks": true}"#],
        &[r#"{"kind": "cat", "barks": true}"#, r#"{"kind": "dog", "x": 1}"#],
    );
    let conditional = r#"{"properties": {"kind": {"enum": ["a", "b"]}}, "required": ["kind"],
        "if": {"properties": {"kind": {"const": "a"}}}, "then": {"properties": {"x": {}}, "required": ["x"]}, "else": {"properties": {"y": {}}}}"#;
    check(
        conditional,
        &[r#"{"kind": "a", "x": 1}"#, r#"{"kind": "b", "y": 1}"#, r#"{"kind": "b"}"#],
        &[r#"{"kind": "a", "x": 1, "y": 1}"#, r#"{"kind": "b", "x": 1}"#],
    );
}

/// Closing what nothing would be left of leaves it open.
#[test]
fn closing_never_empties_a_schema() {
    for (schema, inside) in [
        (r#"{"properties": {"a": {}}, "minProperties": 2}"#, r#"{"a": 1, "b": 2}"#),
        (
            r#"{"oneOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"b": {"type": "null"}}}], "type": "object"}"#,
            r#"{"a": 1}"#,
        ),
        (
            r#"{"properties": {"a": {}}, "propertyNames": {"const": "b"}, "required": ["b"]}"#,
            r#"{"b": 1}"#,
        ),
        (
            r#"{"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}], "required": ["a", "b"]}"#,
            r#"{"a": 1, "b": 1}"#,
        ),
    ] {
        check(schema, &[inside], &[]);
    }
}

/// A recursive schema, and the order of members of parts.
#[test]
fn closing_keeps_the_order_of_the_schema() {
    let options = JsonSchemaOptions { order: PropertyOrder::Schema, ..closed() };
    check_with(
        &options,
        r##"{"properties": {"z": {"type": "integer"}, "next": {"$ref": "#"}, "a": {"type": "integer"}}, "required": ["z", "a"]}"##,
        &[r#"{"z": 1, "next": {"z": 1, "a": 2}, "a": 2}"#],
        &[r#"{"a": 1, "z": 2}"#, r#"{"z": 1, "a": 2, "b": 3}"#],
    );
    check_with(
        &options,
        r#"{"required": ["c"], "allOf": [{"properties": {"b": {}, "c": {}}}], "properties": {"a": {}}}"#,
        &[r#"{"a": 1, "b": 1, "c": 1}"#],
        &[],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Closed objects are fewer, all of them valid, and there are some wherever there were.
    #[test]
    fn closed_texts_are_valid_ones(schema in schemas(), candidates in prop::collection::vec(values(), 8)) {
        let text = schema.to_string();
        let Ok(_) = parse(&text, &JsonSchemaOptions::default()) else { return Ok(()) };
        let grammar = match parse(&text, &closed()) {
            Ok(grammar) => grammar,
            Err(error) if error.is_limit_exceeded() => return Ok(()),
            Err(error) => panic!("{text}: {error}"),
        };
        let machine = Machine::new(&grammar).expect("engines");
        for value in &candidates {
            if machine.accepts(&dumps(value)) {
                prop_assert!(is_valid(&schema, value), "{} {}", text, value);
            }
        }
    }
}
