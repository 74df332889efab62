//! What is a filter, what is not, and what is said of it.

use palmette_catalog_filter::Filter;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any JSON, of words that filters know.
fn any_json() -> impl Strategy<Value = Value> {
    let keys = || {
        prop::sample::select(vec![
            "must",
            "should",
            "must_not",
            "exclude",
            "match",
            "range",
            "ids",
            "exists",
            "key",
            "value",
            "any",
            "values",
            "field",
            "term",
            "terms",
            "has_id",
            "gt",
            "gte",
            "lt",
            "lte",
            "price",
            "",
            "filter",
            "bool",
            "query",
            "min_should",
            "conditions",
            "min_count",
            "except",
            "is_empty",
            "values_count",
            "nested",
            "path",
            "minimum_should_match",
            "match_none",
        ])
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3..3_i64).prop_map(Value::from),
        keys().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(7, 60, 4, move |inner| {
        let entry = (keys().prop_map(str::to_owned), inner.clone());
        prop_oneof![
            2 => prop::collection::vec(entry, 0..3)
                .prop_map(|entries| entries.into_iter().collect::<serde_json::Map<_, _>>().into()),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_json_is_a_filter_or_an_error(json in any_json()) {
        if let Ok(filter) = Filter::from_value(&json) {
            prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter.clone()));
            let read: Filter = serde_json::from_value(serde_json::to_value(&filter)?)?;
            prop_assert_eq!(read, filter);
        }
    }

    #[test]
    fn any_text_is_a_filter_or_an_error(text in "\\PC{0,60}") {
        let _ = Filter::parse(&text);
    }
}

#[test]
fn spellings_are_one_filter() {
    #[track_caller]
    fn check(spellings: &[Value], canonical: &str) {
        for spelling in spellings {
            let filter = Filter::from_value(spelling).expect("a filter");
            assert_eq!(filter.to_string(), canonical, "{spelling}");
        }
    }
    check(
        &[
            json!({"must": {"match": {"brand": "Acme"}}}),
            json!({"must": [{"match": {"brand": ["Acme", "Acme"]}}]}),
            json!({"must": [{"term": {"brand": "Acme"}}]}),
            json!({"must": [{"terms": {"brand": ["Acme"]}}, {"term": {"brand": "Acme"}}]}),
            json!({"must": {"key": "brand", "match": {"value": "Acme"}}, "should": []}),
            json!({"must": {"key": "brand", "match": {"any": ["Acme"]}}, "exclude": []}),
        ],
        r#"{"must":[{"match":{"brand":"Acme"}}]}"#,
    );
    check(
        &[
            json!({"should": [{"range": {"price": {"gte": 10, "lt": 20.5}}}]}),
            json!({"should": {"key": "price", "range": {"lt": 20.5, "gte": 10.0}}}),
        ],
        r#"{"should":[{"range":{"price":{"gte":10,"lt":20.5}}}]}"#,
    );
    check(
        &[
            json!({"must_not": [{"ids": ["b", "a", "b", 7]}], "exclude": ["z", "y"]}),
            json!({"must_not": {"ids": {"values": ["7", "a", "b"]}}, "exclude": ["y", "z"]}),
            json!({"exclude": ["y", "z"], "must_not": {"has_id": ["b", 7, "a"]}}),
        ],
        r#"{"must_not":[{"ids":["7","a","b"]}],"exclude":["y","z"]}"#,
    );
    check(
        &[json!({"must": {"exists": {"field": "a"}}}), json!({"must": [{"exists": "a"}]})],
        r#"{"must":[{"exists":"a"}]}"#,
    );
    check(&[json!({}), json!({"must": []})], "{}");
    assert!(Filter::parse("{}").expect("a filter").is_match_all());
    assert!(!Filter::parse(r#"{"exclude":["a"]}"#).expect("a filter").is_match_all());
}

#[test]
fn errors_name_the_place_and_what_may_stand_there() {
    #[track_caller]
    fn check(text: &str, message: &str) {
        assert_eq!(Filter::parse(text).unwrap_err().to_string(), message);
    }
    check(
        "[]",
        "the filter: [] cannot stand here; a filter is an object with any of must, should, must_not and exclude",
    );
    check(
        "{",
        "a filter is a JSON object, and this is none: EOF while parsing an object at line 1 column 1",
    );
    check(
        r#"{"must": [], "must": []}"#,
        "a filter is a JSON object, and this is none: the key \"must\" appears twice at line 1 column 19",
    );
    check(
        r#"{"musst": []}"#,
        "musst: [] cannot stand here; a filter is an object with any of must, should, must_not and exclude",
    );
    check(
        r#"{"must": [{"exists": "a"}, {"range": {"price": {"above": 3}}}]}"#,
        "must[1].range.price.above: 3 cannot stand here; a range is an object with gt or gte, and lt or lte, or one of them",
    );
    check(
        r#"{"must": {"range": {"price": {"gt": 1, "gte": 1}}}}"#,
        "must.range.price.gte: 1 cannot stand here; a range is an object with gt or gte, and lt or lte, or one of them",
    );
    check(
        r#"{"must": {"range": {"price": {}}}}"#,
        "must.range.price: {} cannot stand here; a range is an object with gt or gte, and lt or lte, or one of them",
    );
    check(
        r#"{"must": {"match": {"a": 1, "b": 2}}}"#,
        "must.match: {\"a\":1,\"b\":2} cannot stand here; it takes an object with the name of one attribute; several attributes are several conditions",
    );
    check(
        r#"{"must": {"match": {"a": null}}}"#,
        "must.match.a: null cannot stand here; an attribute is compared with text, a number, or true or false; one that is missing is found by must_not and exists",
    );
    check(
        r#"{"must": {"match": {"a": [1, 9007199254740993]}}}"#,
        "must.match.a: 9007199254740993 cannot stand here; integers outside ±2^53 are never compared, since they would lose digits",
    );
    check(
        r#"{"should": {"key": "a", "match": {"text": "x"}}}"#,
        "should.match: {\"text\":\"x\"} cannot stand here; text is compared whole and not searched; give match the whole text or a list of them, or keep the words that are asked for as a list of text",
    );
    check(
        r#"{"exclude": "a"}"#,
        "exclude: \"a\" cannot stand here; ids are a list of texts or integers",
    );
    check(
        r#"{"must": {"ids": {"value": []}}}"#,
        "must.ids: {\"value\":[]} cannot stand here; it takes an object with values and nothing else",
    );
}

#[test]
fn what_other_engines_offer_besides_is_told_with_a_way_out() {
    #[track_caller]
    fn check(filter: Value, place: &str, way_out: &str) {
        let message = Filter::from_value(&filter).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{place}: ")), "{message}");
        assert!(message.contains(way_out), "{message}");
    }
    const TEXT: &str = "text is compared whole and not searched; give match the whole text";
    let circle = json!({"center": {"lat": 1, "lon": 2}, "radius": 5});
    check(
        json!({"must": [{"key": "geo", "geo_radius": circle}]}),
        "must[0].geo_radius",
        "ranges of the coordinates",
    );
    check(
        json!({"geo_distance": {"distance": "5km"}}),
        "geo_distance",
        "ranges of the coordinates",
    );
    check(json!({"must": {"match_phrase": {"title": "red shoe"}}}), "must.match_phrase", TEXT);
    check(
        json!({"match": {"title": {"query": "red shoe", "operator": "and"}}}),
        "match.title",
        TEXT,
    );
    check(json!({"key": "title", "match": {"text": "red"}}), "match", TEXT);
    check(json!({"must": {"wildcard": {"title": "re*"}}}), "must.wildcard", TEXT);
    check(json!({"must": {"prefix": {"title": "re"}}}), "must.prefix", "give a range of text");
    check(json!({"must": {"is_null": {"key": "a"}}}), "must.is_null", "ask {\"is_empty\"");
    check(json!({"must": {"key": "a", "is_null": true}}), "must.is_null", "ask {\"is_empty\"");
    check(
        json!({"range": {"a": {"gte": 1, "time_zone": "+01:00"}}}),
        "range.a.time_zone",
        "RFC 3339",
    );
    check(json!({"range": {"a": {"from": 1}}}), "range.a.from", "write gt or gte");
    check(json!({"should": [], "minimum_should_match": 1}), "minimum_should_match", "within bool");
    check(json!({"must": {"script": {}}}), "must.script", "keep their result as an attribute");
    check(json!({"min_should": {"conditions": []}}), "min_should", "min_count, a whole number");
    check(
        json!({"nested": {"path": "a", "query": {"exists": "b"}}}),
        "nested",
        "within nested, names begin with its path",
    );
    check(
        json!({"bool": {"should": [], "minimum_should_match": "2<75%"}}),
        "bool.minimum_should_match",
        "a percentage",
    );
}

#[test]
fn limits_are_errors() {
    let nested = |depth: usize| {
        let inner = (1..depth).fold("{}".to_owned(), |inner, _| format!(r#"{{"must":{inner}}}"#));
        Filter::parse(&inner)
    };
    assert!(nested(16).is_ok());
    let message = nested(17).unwrap_err().to_string();
    assert!(
        message.ends_with("filters nest deeper than 16; use lists of conditions instead"),
        "{message}"
    );
    let conditions =
        |num: usize| Filter::from_value(&json!({"should": vec![json!({"exists": "a"}); num]}));
    assert!(conditions(1024).is_ok());
    assert_eq!(
        conditions(1025).unwrap_err().to_string(),
        "should[1024]: the filter has more than 1024 conditions; give match a list of values, or mark such items with an attribute, and match that"
    );
    let values = |num: usize| Filter::from_value(&json!({"exclude": vec!["a"; num]}));
    assert!(values(65_536).is_ok());
    assert_eq!(
        values(65_537).unwrap_err().to_string(),
        "exclude: the filter has more than 65536 values and ids; mark such items with an attribute, and match that"
    );
}
