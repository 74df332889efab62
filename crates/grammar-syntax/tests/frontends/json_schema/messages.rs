//! Errors and warnings about a schema, each with the place that it is about.

use palmette_grammar_syntax::json_schema::{
    JsonSchemaError, JsonSchemaLimits, JsonSchemaOptions, parse, parse_with_warnings,
};

use palmette_testkit::grammar::Machine;

#[track_caller]
fn error(schema: &str, options: &JsonSchemaOptions) -> JsonSchemaError {
    parse(schema, options).expect_err(schema)
}

/// The pointers of all warnings that no value is valid; the schema itself can be used.
#[track_caller]
fn impossible(schema: &str) -> Vec<String> {
    let read = parse_with_warnings(schema, &JsonSchemaOptions::default());
    let (grammar, warnings) = read.unwrap_or_else(|error| panic!("{schema}: {error}"));
    Machine::new(&grammar).expect("engines");
    let analysis = palmette_grammar_parser::analyse(
        &grammar,
        &palmette_grammar_parser::TableLimits::default(),
        &mut palmette_grammar_parser::Budget::unlimited(),
    );
    assert!(analysis.diagnostics.is_empty(), "{schema}: {:?}", analysis.diagnostics);
    let mut pointers = Vec::new();
    for warning in warnings {
        assert!(warning.message.starts_with("no value is valid for this schema"), "{warning}");
        pointers.push(warning.pointer);
    }
    pointers
}

#[test]
fn schemas_for_which_no_value_is_valid_are_warnings() {
    let missing = r#"{"type":"object","properties":{"x":false},"required":["x"]}"#;
    assert_eq!(impossible(&format!(r#"{{"anyOf":[{missing},{{"type":"null"}}]}}"#)), ["/anyOf/0"]);
    assert_eq!(impossible(&format!(r#"{{"properties":{{"a":{missing}}}}}"#)), ["/properties/a"]);
    assert_eq!(impossible(&format!(r#"{{"items":{missing}}}"#)), ["/items"]);
    assert_eq!(
        impossible(r#"{"type":"object","properties":{"a":{"enum":[1],"type":"string"}}}"#),
        ["/properties/a"]
    );
    assert_eq!(
        impossible(r#"{"oneOf":[{"type":"array","items":false,"minItems":1},{"type":"string"}]}"#),
        ["/oneOf/0"]
    );
    let endless = r##"{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],
        "$defs":{"a":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"required":["a"]}}}"##;
    assert_eq!(impossible(endless), ["/$defs/a"]);
    assert_eq!(impossible(r#"{"properties":{"a":false,"b":{"not":{}}}}"#), [""; 0]);
}

/// Each the commonest form of its contradiction.
#[test]
fn the_reason_that_there_is_no_value_is_said() {
    for (schema, why) in [
        (
            r#"{"allOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"type":"object","properties":{"b":{}},"required":["b"]}]}"#,
            "`b` is required and not allowed",
        ),
        (
            r#"{"type":"object","properties":{"a":{}},"allOf":[{"required":["b"]}],"unevaluatedProperties":false}"#,
            "`b` is required and not allowed",
        ),
        (
            r#"{"type":"object","patternProperties":{"^b":false},"required":["b"]}"#,
            "a pattern of `patternProperties`",
        ),
        (
            r#"{"type":"object","required":["a","b"],"maxProperties":1}"#,
            "more members than `maxProperties`",
        ),
        (
            r#"{"type":"string","minLength":5,"maxLength":2}"#,
            "`minLength` is more than `maxLength`",
        ),
        (r#"{"type":"integer","minimum":5,"maximum":2}"#, "no number is within all of its bounds"),
        (r#"{"type":"string","enum":[1,2]}"#, "each value of `enum` and what stands beside it"),
        (r#"{"type":"integer","const":"x"}"#, "`const` and what stands beside it"),
        (r#"{"allOf":[{"type":"string"},{"type":"integer"}]}"#, "the parts of `allOf`"),
        (r#"{"enum":[]}"#, "`enum` is an empty list"),
        (
            r#"{"type":"object","properties":{"a":{"type":"integer","minimum":5,"maximum":1}},"required":["a"]}"#,
            "at \"/properties/a\", no number is within",
        ),
    ] {
        let error = error(schema, &JsonSchemaOptions::default());
        assert!(error.is_empty() && error.to_string().contains(why), "{schema}: {error}");
    }
}

#[test]
fn a_required_member_that_is_not_allowed_is_named() {
    let closed = |required: &str| {
        format!(
            r#"{{"type":"object","properties":{{"a":{{"type":"string"}},"c":false}},"required":[{required}],"additionalProperties":false}}"#
        )
    };
    let said = |schema: &str| error(schema, &JsonSchemaOptions::default()).to_string();
    let message = said(&closed(r#""a","b""#));
    assert!(
        message.contains("no value is valid for this schema: `b` is required and not allowed: `properties` does not declare it"),
        "{message}"
    );
    let message = said(&closed(r#""c""#));
    assert!(message.contains("`c` is required and its schema allows no value"), "{message}");
    // Within a member that must be there, its place is said.
    let inner = closed(r#""b""#);
    let message =
        said(&format!(r#"{{"type":"object","properties":{{"x":{inner}}},"required":["x"]}}"#));
    assert!(message.contains("at \"/properties/x\", `b` is required and not allowed"), "{message}");
    // In two schemas of one value.
    let message = said(
        r#"{"type":"object","allOf":[{"required":["b"]},{"properties":{"a":{}},"additionalProperties":false}]}"#,
    );
    assert!(message.contains("no value is valid"), "{message}");
    // In an alternative it is a warning.
    let (_, warnings) = parse_with_warnings(
        &format!(r#"{{"anyOf":[{inner},{{"type":"null"}}]}}"#),
        &JsonSchemaOptions::default(),
    )
    .unwrap();
    assert!(warnings[0].message.contains("`b` is required and not allowed"), "{warnings:?}");
}

#[test]
fn limits_name_the_schema_that_passes_them() {
    let limits = JsonSchemaLimits { max_states: 8, ..JsonSchemaLimits::default() };
    let options = JsonSchemaOptions { limits, ..JsonSchemaOptions::default() };
    for (schema, pointer) in [
        (r#"{"items":{"type":"object","minProperties":20}}"#, "/items"),
        (
            r##"{"$defs":{"o":{"type":"object","minProperties":20}},"items":{"$ref":"#/$defs/o"}}"##,
            "/$defs/o",
        ),
    ] {
        let error = error(schema, &options);
        assert!(error.is_limit_exceeded(), "{error}");
        assert_eq!(error.pointer(), pointer, "{error}");
    }
}

#[test]
fn tool_definitions_and_response_formats_are_told() {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}}}"#;
    for (document, what, pointer) in [
        (
            r#"{"type":"json_schema","json_schema":{"name":"w","strict":true,"schema":@}}"#,
            "response format",
            "/json_schema/schema",
        ),
        (r#"{"type":"json_schema","name":"w","schema":@}"#, "text format", "/schema"),
        (r#"{"name":"w","strict":true,"schema":@}"#, "response format", "/schema"),
        (
            r#"{"type":"function","function":{"name":"w","description":"d","parameters":@}}"#,
            "tool definition (OpenAI)",
            "/function/parameters",
        ),
        (
            r#"{"type":"function","name":"w","parameters":@,"strict":true}"#,
            "tool definition (OpenAI)",
            "/parameters",
        ),
        (r#"{"name":"w","description":"d","parameters":@}"#, "function definition", "/parameters"),
        (r#"{"name":"w","description":"d","input_schema":@}"#, "Anthropic", "/input_schema"),
        (r#"{"name":"w","title":"t","inputSchema":@}"#, "MCP", "/inputSchema"),
        (
            r#"[{"name":"w","input_schema":@},{"name":"v","input_schema":@}]"#,
            "list",
            "/0/input_schema",
        ),
    ] {
        let error = error(&document.replace('@', schema), &JsonSchemaOptions::default());
        assert_eq!(error.schema_inside(), Some(pointer), "{error}");
        let message = error.to_string();
        assert!(message.contains(what) && message.contains(&format!("{pointer:?}")), "{message}");
    }
}

#[test]
fn schemas_that_look_like_them_are_schemas() {
    for schema in [
        r#"{"type":"object","name":"w","parameters":{}}"#,
        r#"{"name":"w","input_schema":{},"properties":{}}"#,
        r#"{"name":"w","parameters":"none"}"#,
        r#"{"parameters":{}}"#,
        r#"{"properties":{"name":{"type":"string"},"parameters":{"type":"object"}}}"#,
    ] {
        assert!(parse(schema, &JsonSchemaOptions::default()).is_ok(), "{schema}");
    }
    let error = error(r#"{"type":"function"}"#, &JsonSchemaOptions::default());
    assert_eq!((error.keyword(), error.schema_inside()), (Some("type"), None));
}
