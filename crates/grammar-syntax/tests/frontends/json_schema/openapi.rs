//! Schemas as programs around the standard write them: `nullable`, metaschemas, other files.

use std::collections::BTreeMap;

use palmette_grammar_syntax::json_schema::{JsonSchemaOptions, PropertyOrder, parse_with_warnings};

use super::keywords::{check, check_with};

fn warnings(schema: &str) -> Vec<String> {
    let read = parse_with_warnings(schema, &JsonSchemaOptions::default());
    let (_, warnings) = read.unwrap_or_else(|error| panic!("{schema}: {error}"));
    warnings.into_iter().map(|warning| format!("{} {}", warning.pointer, warning.message)).collect()
}

#[test]
fn nullable_beside_a_type_lets_null_in() {
    assert_eq!(warnings(r#"{"type":"string","nullable":true}"#), [""; 0]);
}

#[test]
fn nullable_without_effect_is_said() {
    let listed = r#"{"type":"string","nullable":true,"enum":["a"]}"#;
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

/// Google's interface writes types in capitals and counts in quotes, and says the order of members.
#[test]
fn the_words_of_gemini_are_read() {
    let schema = r#"{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true},"b":{"type":"ARRAY","items":{"type":"INTEGER"},
        "minItems":"1","maxItems":"2"}},"required":["a","b"],"propertyOrdering":["b","a"]}"#;
    assert!(warnings(schema)[0].contains("/propertyOrdering `propertyOrdering` has no effect"));
    let ordered =
        JsonSchemaOptions { order: PropertyOrder::Schema, ..JsonSchemaOptions::default() };
    check_with(&ordered, schema, &[r#"{"b": [1, 2], "a": "x"}"#], &[r#"{"a": "x", "b": [1]}"#]);
    for (word, meant) in
        [("String", "string"), ("int", "integer"), ("dict", "object"), ("strnig", "string")]
    {
        let error =
            parse_with_warnings(&format!(r#"{{"type":"{word}"}}"#), &JsonSchemaOptions::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&format!("did you mean {meant:?}?")), "{error}");
    }
}

#[test]
fn formats_of_integers_are_bounds() {
    for (format, least, most, below, above) in [
        ("int32", "-2147483648", "2147483647", "-2147483649", "2147483648"),
        (
            "int64",
            "-9223372036854775808",
            "9223372036854775807",
            "-9223372036854775809",
            "9223372036854775808",
        ),
        ("uint8", "0", "255", "-1", "256"),
        ("uint64", "0", "18446744073709551615", "-1", "18446744073709551616"),
    ] {
        check(
            &format!(r#"{{"type":"integer","format":"{format}"}}"#),
            &[least, most],
            &[below, above],
        );
        check(&format!(r#"{{"format":"{format}"}}"#), &["\"a\"", "7"], &["1.5", above]);
    }
    assert_eq!(warnings(r#"{"type":"number","format":"double"}"#), [""; 0]);
    assert!(warnings(r#"{"format":"int33"}"#)[0].contains("unknown format"));
}

/// Programs write members that are not set as null.
#[test]
fn null_is_as_if_a_keyword_were_absent_and_is_said() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","enum":null,"pattern":null,"default":null,"$ref":null,"anyOf":null}},
        "required":null,"additionalProperties":null,"not":null,"items":null}"#;
    let said = warnings(schema);
    assert_eq!(said.len(), 8, "{said:?}");
    assert!(said[0].contains("enum `enum` is null: read as if it were not there"), "{said:?}");
}

#[test]
fn what_has_no_effect_where_it_stands_is_said() {
    for (schema, words) in [
        (r#"{"then":{"minLength":1}}"#, "/then `then` has no effect without `if`"),
        (r#"{"if":{"minLength":1}}"#, "/if `if` has no effect without `then` or `else`"),
        (r#"{"minContains":2}"#, "/minContains `minContains` has no effect without `contains`"),
        (r#"{"items":{},"additionalItems":false}"#, "`items` is no list beside it"),
        (
            r##"{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{}},"$ref":"#/definitions/a","maxLength":2}"##,
            "/maxLength `maxLength` has no effect: up to draft 7 nothing beside `$ref` is read",
        ),
        (r#"{"contentEncoding":"base64"}"#, "/contentEncoding not enforced: no grammar"),
        (
            r#"{"properties":{"a":{"type":"string"},"a":{}}}"#,
            "/properties/a this member has no effect: its name comes again",
        ),
        (r#"{"minlength":2}"#, "it has no effect (did you mean `minLength`?)"),
        (r#"{"additional_properties":false}"#, "(did you mean `additionalProperties`?)"),
        (
            r#"{"x-guidance":{"lenient":true}}"#,
            "`lenient` (what no grammar expresses is left out by --relax)",
        ),
    ] {
        let said = warnings(schema);
        assert!(said.len() == 1 && said[0].contains(words), "{schema}: {said:?}");
    }
    let old = parse_with_warnings(
        r#"{"properties":{"a":{"required":true}}}"#,
        &JsonSchemaOptions::default(),
    );
    assert!(old.unwrap_err().to_string().contains("which stands beside `properties`"));
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
