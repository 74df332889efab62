//! Schemas as programs around the standard write them: `nullable`, metaschemas, other files.

use std::collections::BTreeMap;

use palmette_frontends::json_schema::{JsonSchemaOptions, parse_with_warnings};

use super::keywords::{check, check_with};

fn warnings(schema: &str) -> Vec<String> {
    let read = parse_with_warnings(schema, &JsonSchemaOptions::default());
    let (_, warnings) = read.unwrap_or_else(|error| panic!("{schema}: {error}"));
    warnings.into_iter().map(|warning| format!("{} {}", warning.pointer, warning.message)).collect()
}

#[test]
fn nullable_beside_a_type_lets_null_in() {
    check(r#"{"type":"string","nullable":true}"#, &["\"a\"", "null"], &["1"]);
    check(r#"{"type":"integer","nullable":true,"minimum":3}"#, &["3", "null"], &["2"]);
    check(r#"{"type":"string","nullable":true,"enum":["a",null]}"#, &["\"a\"", "null"], &["\"b\""]);
    check(r#"{"type":"string","nullable":false}"#, &["\"a\""], &["null"]);
    check(
        r#"{"type":"object","nullable":true,"properties":{"a":{"type":"array","nullable":true,"items":{"type":"boolean"}}}}"#,
        &["null", "{\"a\": null}", "{\"a\": [true]}"],
        &["{\"a\": [null]}"],
    );
    check(r#"{"not":{"type":"string","nullable":true}}"#, &["1"], &["null", "\"a\""]);
    assert_eq!(warnings(r#"{"type":"string","nullable":true}"#), [""; 0]);
}

#[test]
fn nullable_without_effect_is_said() {
    let listed = r#"{"type":"string","nullable":true,"enum":["a"]}"#;
    check(listed, &["\"a\""], &["null"]);
    assert!(
        warnings(listed)[0]
            .contains("/nullable `nullable` has no effect: `enum` does not list null")
    );
    let alone = r##"{"properties":{"a":{"$ref":"#/$defs/b","nullable":true}},"$defs":{"b":{"type":"string"}}}"##;
    let said = warnings(alone);
    assert!(
        said[0].contains(
            "/properties/a/nullable `nullable` has no effect: it is read beside a `type`"
        ),
        "{said:?}"
    );
    let wrong =
        parse_with_warnings(r#"{"type":"string","nullable":"yes"}"#, &JsonSchemaOptions::default());
    assert!(wrong.unwrap_err().to_string().contains("must be true or false"));
}

#[test]
fn options_of_other_engines_are_not_passed_over() {
    let said =
        warnings(r#"{"type":"integer","x-guidance":{"whitespace_flexible":false},"x-order":1}"#);
    assert!(
        said.len() == 1 && said[0].starts_with("/x-guidance `x-guidance` has no effect"),
        "{said:?}"
    );
}

/// A schema whose values are schemas, by the drafts' own definitions.
#[test]
fn the_drafts_metaschemas_are_known() {
    for uri in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        check(
            &format!(
                r#"{{"type":"object","properties":{{"schema":{{"$ref":"{uri}"}}}},"additionalProperties":false}}"#
            ),
            &[
                r#"{"schema": {"type": "object", "properties": {"a": {"minLength": 1}}}}"#,
                r#"{"schema": {}}"#,
            ],
            &[
                r#"{"schema": {"type": "objekt"}}"#,
                r#"{"schema": {"properties": {"a": {"minLength": "x"}}}}"#,
                r#"{"schema": 1}"#,
            ],
        );
    }
    check(
        r#"{"$ref":"http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger"}"#,
        &["1"],
        &["-1", "{}"],
    );
}

#[test]
fn other_schemas_are_given_by_their_uris() {
    let schema = r#"{"$id":"https://shop.example/order.json","properties":{"a":{"$ref":"item.json#/$defs/name"}}}"#;
    let error = parse_with_warnings(schema, &JsonSchemaOptions::default()).unwrap_err();
    assert!(error.is_unresolved() && error.to_string().contains("--resource URI=FILE"), "{error}");
    let item = r#"{"$defs":{"name":{"enum":["x"]}}}"#;
    let resources =
        BTreeMap::from([("https://shop.example/item.json".to_owned(), item.to_owned())]);
    let options = JsonSchemaOptions { resources, ..JsonSchemaOptions::default() };
    check_with(&options, schema, &["{\"a\": \"x\"}"], &["{\"a\": \"y\"}"]);
}
