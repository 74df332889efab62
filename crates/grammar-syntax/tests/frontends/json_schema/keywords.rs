//! JSON Schema, keyword by keyword: texts that its grammar accepts and texts that it does not.

use palmette_grammar_syntax::json_schema::{
    Escapes, Inexpressible, JsonSchemaError, JsonSchemaOptions, PropertyOrder, Separators,
    Whitespace, parse, parse_with_warnings,
};

use palmette_testkit::grammar::Machine;

#[track_caller]
pub(crate) fn check_with(
    options: &JsonSchemaOptions,
    schema: &str,
    inside: &[&str],
    outside: &[&str],
) {
    let grammar = parse(schema, options).unwrap_or_else(|error| panic!("{schema}: {error}"));
    let machine = Machine::new(&grammar).expect("engines");
    for text in inside {
        assert!(machine.accepts(text), "{schema} must accept {text}");
    }
    for text in outside {
        assert!(!machine.accepts(text), "{schema} must not accept {text}");
    }
}

#[track_caller]
pub(crate) fn check(schema: &str, inside: &[&str], outside: &[&str]) {
    check_with(&JsonSchemaOptions::default(), schema, inside, outside);
}

#[track_caller]
pub(crate) fn error(schema: &str) -> JsonSchemaError {
    parse(schema, &JsonSchemaOptions::default()).expect_err(schema)
}

#[test]
fn any_value_with_any_whitespace() {
    let inside = [
        " \n{ \"a\" :[ 1 , -0.5e+3 ,null,true , false ] , \"b\":{} } \t",
        "[]",
        "\"\\ud83d\\ude00\"",
        "0",
    ];
    let outside =
        ["", "[1,]", "{\"a\" 1}", "01", "+1", "1.", "\"", "nul", "[1 2]", "{,}", "\"\\ud83d\""];
    let flexible =
        JsonSchemaOptions { whitespace: Whitespace::Flexible, ..JsonSchemaOptions::default() };
    check_with(&flexible, "{}", &inside, &outside);
    check_with(&flexible, "true", &inside, &outside);
}

/// The layouts that programs write, and no floods of blanks.
#[test]
fn whitespace_is_bounded_by_default() {
    let deep = format!("{{\r\n{}\"a\": 1\r\n}}", " ".repeat(40));
    let inside = [
        "{\"a\":[1,2]}",
        "{\"a\": [1, 2]}",
        "{ \"a\" : [ 1 , 2 ] }",
        "{\n  \"a\": [\n    1,\n    2\n  ]\n}",
        "{\n\t\"a\": {}\n}",
        "\n{\"a\":\t1}",
        &deep,
    ];
    let long = format!("{{{}\"a\":1}}", " ".repeat(2));
    let far = format!("{{\n{}\"a\":1}}", " ".repeat(41));
    let outside =
        ["\n\n{}", "{}\n", "{} ", "{\n\n\"a\":1}", "{ \n\"a\":1}", "{\r\"a\":1}", &long, &far];
    check("{}", &inside, &outside);
    check("{\"type\": \"object\"}", &inside, &outside);
}

/// Where the text of a string is free, all escapes of RFC 8259 are, and where it is not, those that
/// are needed.
#[test]
fn free_strings_may_hold_any_escape() {
    let texts = [r#""\u003cb\u003e \u0026""#, r#""\u0027""#, r#""\u002B""#, r#""\u0041""#];
    check("{\"type\":\"string\",\"maxLength\":2}", &texts[1..], &[r#""\u0041bc""#]);
    check("{\"additionalProperties\":{\"type\":\"string\"}}", &[r#"{"\u0041":"\u0041"}"#], &[]);
}

#[test]
fn whitespace_is_a_choice() {
    let schema = r#"{"type":"object","properties":{"a":{"items":{"type":"null"}}}}"#;
    let texts = [
        r#"{"a":[null,null],"b":1}"#,
        r#"{"a": [null, null], "b": 1}"#,
        r#"{ "a":[null,null],"b":1}"#,
    ];
    let with = |whitespace| JsonSchemaOptions { whitespace, ..JsonSchemaOptions::default() };
    check_with(&with(Whitespace::Flexible), schema, &texts, &[]);
    check_with(&with(Whitespace::Compact), schema, &texts[..1], &texts[1..]);
    check_with(&with(Whitespace::Spaced), schema, &texts[1..2], &[texts[0], texts[2]]);
    let separators = |comma, colon| {
        let separators = Separators::new(comma, colon).unwrap();
        with(Whitespace::Separators(separators))
    };
    check_with(&separators(",", ":"), schema, &texts[..1], &texts[1..]);
    check_with(&separators(", ", ": "), schema, &texts[1..2], &[texts[0], texts[2]]);
    let wide = texts[0].replace(',', " ,\n").replace(':', " : ");
    check_with(&separators(" ,\n", " : "), schema, &[&wide], &texts);
}

#[test]
fn names_are_names_however_they_are_spelled() {
    let schema = r#"{"properties":{"a/é":{"type":"null"}}}"#;
    let options = JsonSchemaOptions { escapes: Escapes::Any, ..JsonSchemaOptions::default() };
    let spellings = [r#""a/é""#, r#""a\/\u00e9""#, r#""\u0061/\u00E9""#];
    for name in spellings {
        check_with(&options, schema, &[&format!("{{{name}:null}}")], &[&format!("{{{name}:1}}")]);
    }
}

#[test]
fn properties_in_any_order() {
    let schema = r#"{"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},
        "required":["a","c"],"additionalProperties":false}"#;
    let inside = [
        r#"{"a":1,"c":3}"#,
        r#"{"c":3,"a":1}"#,
        r#"{"b":2,"c":3,"a":1}"#,
        r#"{"c":3,"b":2,"a":1}"#,
    ];
    let outside = [
        "{}",
        r#"{"a":1}"#,
        r#"{"a":1,"c":3,"a":1}"#,
        r#"{"a":1,"c":3,"d":1}"#,
        r#"{"a":1,"c":2}"#,
    ];
    // Beyond the tracked ones, optional properties may come again, unless more than that are
    // required.
    let any = |max_tracked| JsonSchemaOptions {
        order: PropertyOrder::Any { max_tracked },
        ..JsonSchemaOptions::default()
    };
    check_with(&any(2), schema, &inside, &outside);
    check_with(&any(2), schema, &[r#"{"b":2,"a":1,"b":2,"c":3}"#], &[]);
    let outside = [&outside[..], &[r#"{"b":2,"a":1,"b":2,"c":3}"#]].concat();
    check_with(&any(0), schema, &inside, &outside);
}

#[test]
fn properties_in_the_order_of_the_schema() {
    let schema = r#"{"properties":{"b":{"const":2},"a":{"const":1}},"required":["z","a"]}"#;
    let options =
        JsonSchemaOptions { order: PropertyOrder::Schema, ..JsonSchemaOptions::default() };
    let inside = [r#"{"a":1,"z":0}"#, r#"{"b":2,"a":1,"z":{},"y":1,"x":2}"#];
    let outside =
        [r#"{"a":1}"#, r#"{"a":1,"b":2,"z":0}"#, r#"{"z":0,"a":1}"#, r#"{"a":1,"z":0,"b":2}"#];
    check_with(&options, schema, &inside, &outside);
}

#[test]
fn five_hundred_optional_properties() {
    let properties: Vec<String> =
        (0..500).map(|at| format!(r#""p{at}":{{"const":{at}}}"#)).collect();
    let schema =
        format!(r#"{{"properties":{{{}}},"additionalProperties":false}}"#, properties.join(","));
    for order in [PropertyOrder::Schema, PropertyOrder::Any { max_tracked: 4 }] {
        let options = JsonSchemaOptions { order, ..JsonSchemaOptions::default() };
        let grammar = parse(&schema, &options).expect("a grammar");
        assert!(grammar.rules().len() < 5_000, "{}", grammar.rules().len());
        check_with(
            &options,
            &schema,
            &[r#"{"p3":3,"p499":499}"#, "{}"],
            &[r#"{"p3":4}"#, r#"{"p500":500}"#],
        );
    }
}

#[test]
fn patterns_and_names() {
    let patterns: Vec<String> =
        (0..20).map(|at| format!(r#""^p{at}-":{{"minimum":{at}}}"#)).collect();
    check(
        &format!(
            r#"{{"patternProperties":{{{}}},"additionalProperties":false}}"#,
            patterns.join(",")
        ),
        &["{}", r#"{"p0-":0,"p1-x":1,"p19-":19}"#, r#"{"p10-":10,"p1-":1}"#],
        &[r#"{"p20-":1}"#, r#"{"p10-":1}"#, r#"{"p1":1}"#],
    );
}

#[test]
fn counted_strings_and_items() {
    let list = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    let texts: Vec<String> = [0, 2, 3, 70, 199, 1000, 1234, 1235].map(list).to_vec();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    check(
        r#"{"type":"array","minItems":3,"maxItems":1234}"#,
        &texts[2..7],
        &[texts[0], texts[1], texts[7]],
    );
    check(r#"{"type":"array","minItems":199}"#, &texts[4..], &texts[..4]);
}

/// Only patterns tell that no object is of two of them, and what is no object is of all of them;
/// their combinations would be far too many.
#[test]
fn alternatives_that_patterns_tell_apart_are_not_combined() {
    let alternatives: Vec<String> = (0..40)
        .map(|at| {
            format!(
                r#"{{"required":["type"],"properties":{{"type":{{"type":"string","pattern":"^(kind|type){at}$"}},"x":{{}},"y":{{}},"z{at}":{{}}}},
                "additionalProperties":false,"anyOf":[{{"not":{{"required":["x"]}}}},{{"not":{{"required":["y"]}}}},{{"required":["z{at}"]}}]}}"#
            )
        })
        .collect();
    check(
        &format!(r#"{{"oneOf":[{}]}}"#, alternatives.join(",")),
        &[r#"{"type":"kind7","x":1}"#, r#"{"y":1,"x":2,"z39":3,"type":"type39"}"#],
        &[
            r#"{"type":"kind7","x":1,"y":2}"#,
            r#"{"type":"kind7","z8":1}"#,
            r#"{"type":"kind40"}"#,
            "[]",
            "5",
        ],
    );
    // Without a type, only a property of its own tells of which alternative an object is.
    let alternatives: Vec<String> = (0..20)
        .map(|at| {
            format!(
                r#"{{"type":"object","properties":{{"type":{{"const":"t{at}"}},"p{at}":{{"type":"string"}}}},"additionalProperties":false}}"#
            )
        })
        .collect();
    check(
        &format!(r#"{{"oneOf":[{}]}}"#, alternatives.join(",")),
        &[r#"{"type":"t3"}"#, r#"{"p3":""}"#, r#"{"p19":"","type":"t19"}"#],
        &[
            "{}",
            r#"{"type":"t20"}"#,
            r#"{"p3":"","type":"t4"}"#,
            r#"{"p3":"","p4":""}"#,
            r#"{"p3":1}"#,
        ],
    );
}

#[test]
fn references() {
    let mut options = JsonSchemaOptions::default();
    options.resources.insert(
        "http://example.org/x".into(),
        r##"{"$defs":{"n":{"$anchor":"n","type":"null"}}}"##.into(),
    );
    let schema = r##"{"$id":"http://example.org/y","items":{"$ref":"x#n"},"contains":{"$ref":"x#/$defs/n"}}"##;
    check_with(&options, schema, &["[null,null]"], &["[]", "[1]"]);
    let unresolved = error(schema);
    assert!(unresolved.is_unresolved(), "{unresolved}");
    assert!(error(r##"{"$ref":"#"}"##).to_string().contains("refers to itself"));
    assert!(
        error(r##"{"anyOf":[{"$ref":"#"},{"type":"null"}]}"##)
            .to_string()
            .contains("refers to itself")
    );
}

#[test]
fn what_no_other_part_has_looked_at() {
    // Of many conditions at most one holds.
    let conditions: Vec<String> = (0..30)
        .map(|at| {
            format!(
                r#"{{"if":{{"properties":{{"type":{{"const":"t{at}"}}}}}},"then":{{"properties":{{"p{at}":{{"type":"null"}}}}}}}}"#
            )
        })
        .collect();
    check(
        &format!(
            r#"{{"properties":{{"type":{{"type":"string"}}}},"required":["type"],"allOf":[{}],"unevaluatedProperties":false}}"#,
            conditions.join(",")
        ),
        &[r#"{"type":"t3"}"#, r#"{"p29":null,"type":"t29"}"#, r#"{"type":"other"}"#, "[1]"],
        &[
            "{}",
            r#"{"type":"t3","p3":1}"#,
            r#"{"type":"t3","p4":null}"#,
            r#"{"type":"other","p3":null}"#,
        ],
    );
}

#[test]
fn dynamic_references() {
    // A tree, and a strict one that extends it: below the strict root, children are strict.
    let tree = r##"{"$id":"http://example.org/tree","$dynamicAnchor":"node","type":"object",
        "properties":{"data":true,"children":{"items":{"$dynamicRef":"#node"}}}}"##;
    let strict = r##"{"$id":"http://example.org/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false}"##;
    let mut options = JsonSchemaOptions::default();
    options.resources.insert("http://example.org/tree".into(), tree.into());
    let (inside, misspelled) = (r#"{"children":[{"data":1}]}"#, r#"{"children":[{"daat":1}]}"#);
    check_with(&options, strict, &[inside], &[misspelled]);
    check_with(&options, tree, &[inside, misspelled], &["1"]);
    // Both meanings in one schema.
    let both = r#"{"properties":{"loose":{"$ref":"http://example.org/tree"},"strict":{"$ref":"http://example.org/strict"}}}"#;
    options.resources.insert("http://example.org/strict".into(), strict.into());
    let member = |name: &str| format!(r#"{{"{name}":{misspelled}}}"#);
    check_with(&options, both, &[&member("loose")], &[&member("strict")]);
    // The same in draft 2019-09.
    let recursive = |schema: &str| {
        schema
            .replace(r##""$dynamicAnchor":"node""##, r##""$recursiveAnchor":true"##)
            .replace(r##""$dynamicRef":"#node""##, r##""$recursiveRef":"#""##)
            .replacen('{', r#"{"$schema":"https://json-schema.org/draft/2019-09/schema","#, 1)
    };
    options.resources.insert("http://example.org/tree".into(), recursive(tree));
    check_with(&options, &recursive(strict), &[inside], &[misspelled]);
}

#[test]
fn errors_name_the_keyword_and_its_place() {
    let schema = "{\"properties\": {\n  \"a/b\": {\"uniqueItems\": true}}}";
    let unsupported = parse(schema, &with(Inexpressible::Refused)).expect_err(schema);
    assert_eq!(unsupported.keyword(), Some("uniqueItems"));
    assert_eq!(unsupported.pointer(), "/properties/a~1b/uniqueItems");
    assert_eq!(unsupported.span().map(|span| (span.line, span.column)), Some((2, 26)));
    assert!(unsupported.is_unsupported());
    for (schema, keyword) in [
        (r#"{"type":"strnig"}"#, "type"),
        (r#"{"minLength":-1}"#, "minLength"),
        (r#"{"required":"a"}"#, "required"),
        (r#"{"pattern":"("}"#, "pattern"),
        (r#"{"properties":[]}"#, "properties"),
        (r#"{"multipleOf":0}"#, "multipleOf"),
        (r##"{"$ref":"#/$defs/missing"}"##, "$ref"),
    ] {
        assert_eq!(error(schema).keyword(), Some(keyword), "{schema}");
    }
    assert!(error("{").to_string().starts_with("line 1, column 2"));
    assert!(error("false").is_empty());
    assert!(error(r#"{"type":"object","required":["a"],"properties":{"a":false}}"#).is_empty());
}

#[test]
fn what_has_no_effect_is_listed() {
    let schema = r#"{"title":"t","propertis":{},"format":"slug","x-vendor":1}"#;
    let (_, warnings) = parse_with_warnings(schema, &JsonSchemaOptions::default()).expect(schema);
    let pointers: Vec<&str> = warnings.iter().map(|warning| &*warning.pointer).collect();
    assert_eq!(pointers, ["/propertis", "/format"]);
    let (_, warnings) =
        parse_with_warnings(r#"{"uniqueItems":true}"#, &JsonSchemaOptions::default())
            .expect("relaxed");
    assert_eq!(warnings[0].pointer, "/uniqueItems");
    assert_eq!(warnings.len(), 1);
}

#[test]
fn limits_are_errors() {
    let deep = format!("{}{}", "{\"not\":".repeat(300), "{}".to_owned() + &"}".repeat(300));
    assert!(error(&deep).is_limit_exceeded());
    let chain: Vec<String> = (0..5_000)
        .map(|at| {
            format!(r##""d{at}":{{"allOf":[{{"$ref":"#/$defs/d{}"}}],"minLength":1}}"##, at + 1)
        })
        .collect();
    let chain =
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d5000":{{}}}}}}"##, chain.join(","));
    assert!(error(&chain).is_limit_exceeded());
    let mut options = JsonSchemaOptions::default();
    options.limits.max_rules = 10;
    assert!(parse("{}", &options).expect_err("few rules").is_limit_exceeded());
    let all: Vec<String> = (0..20)
        .map(|at| format!(r#"{{"anyOf":[{{"required":["a{at}"]}},{{"required":["b{at}"]}}]}}"#))
        .collect();
    let all = format!(r#"{{"allOf":[{}]}}"#, all.join(","));
    assert!(error(&all).is_limit_exceeded());
}

fn with(inexpressible: Inexpressible) -> JsonSchemaOptions {
    JsonSchemaOptions { inexpressible, ..JsonSchemaOptions::default() }
}

#[test]
fn what_no_grammar_can_express_is_refused_approximated_or_ignored() {
    let format = |name| format!(r#"{{"type":"string","format":"{name}"}}"#);
    let encoded = |draft| {
        let schema = r#"{"$schema":"DRAFT","type":"string","contentEncoding":"base64"}"#;
        schema.replace("DRAFT", draft)
    };
    let (old, new) =
        ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema");
    // How many warnings there are, or none where it is an error: strict, usual, relaxed.
    for (schema, strict, usual, relaxed) in [
        (format("idn-hostname"), None, None, Some(1)),
        (format("hostname"), None, Some(0), Some(0)),
        (format("regex"), None, Some(0), Some(0)),
        (format("what"), None, Some(1), Some(1)),
        (format("int32"), Some(0), Some(0), Some(0)),
        (format("date"), Some(0), Some(0), Some(0)),
        (r#"{"uniqueItems":true}"#.to_owned(), None, Some(1), Some(1)),
        (encoded(old), None, Some(1), Some(1)),
        (encoded(new), Some(1), Some(1), Some(1)),
    ] {
        let ways = [Inexpressible::Refused, Inexpressible::Approximated, Inexpressible::Ignored];
        for (way, expected) in ways.into_iter().zip([strict, usual, relaxed]) {
            match parse_with_warnings(&schema, &with(way)) {
                Ok((_, warnings)) => assert_eq!(Some(warnings.len()), expected, "{schema} {way:?}"),
                Err(error) => {
                    assert!(
                        expected.is_none() && error.is_unsupported(),
                        "{schema} {way:?}: {error}"
                    );
                    assert!(error.to_string().contains("--relax"), "{error}");
                }
            }
        }
    }
    let options = JsonSchemaOptions { formats: false, ..with(Inexpressible::Refused) };
    parse_with_warnings(&format("idn-hostname"), &options).expect("an annotation");
}

#[test]
fn formats() {
    for (format, inside, outside) in [
        (
            "date",
            &["2024-02-29", "2000-02-29", "2023-12-31"][..],
            &["2023-02-29", "1900-02-29", "2023-04-31", "2023-1-01"][..],
        ),
        (
            "time",
            &["23:59:60Z", "01:29:60+01:30", "12:00:00.5-07:00"],
            &["22:59:60Z", "24:00:00Z", "12:00:00"],
        ),
        ("date-time", &["2024-02-29T00:00:00z"], &["2024-02-30T00:00:00Z", "2024-02-29 00:00:00Z"]),
        ("duration", &["P1Y2M", "PT1H", "P3W"], &["P", "P1YT", "PT1D", "P1Y1D"]),
        ("email", &["a.b@c.d", "\\\"x y\\\"@[127.0.0.1]"], &["a..b@c", "a@-b", "a"]),
        ("hostname", &["a-b.c", "xn--4gbwdl.x"], &["-a", "a-.b", "a..b", "ab--cd", "a."]),
        (
            "ipv6",
            &["::", "1::2", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8"],
            &["1::2::3", ":1", "1:2:3:4:5:6:7:8:9"],
        ),
        ("uri", &["http://a.b/c?d#e", "urn:x"], &["//a", "a b:c", "http://[1]"]),
        (
            "regex",
            &["^(a|b)+$", "[^\\\\]]{2,3}?", "(?<n>x)\\\\k<n>"],
            &["[", "(", "a)", "*", "\\\\a", "(?P<n>x)"],
        ),
        ("uuid", &["01234567-89ab-cdef-0123-456789ABCDEF"], &["0123456789abcdef0123456789abcdef"]),
        ("json-pointer", &["", "/a~0~1/"], &["a", "/~2"]),
    ] {
        let schema = format!(r#"{{"type":"string","format":"{format}"}}"#);
        let quoted =
            |texts: &[&str]| texts.iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>();
        let (inside, outside) = (quoted(inside), quoted(outside));
        let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
        let outside: Vec<&str> = outside.iter().map(String::as_str).collect();
        check(&schema, &inside, &outside);
    }
}
