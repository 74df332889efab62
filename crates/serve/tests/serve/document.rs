//! The OpenAPI document: valid, and of forms that the server takes.

use std::collections::BTreeSet;

use palmette_catalog::Filter;
use palmette_recommend::Rules;
use palmette_serve::wire::filter;
use serde_json::{Map, Value, json};

use crate::shop::{config, shopping};

fn document() -> Value {
    serde_json::to_value(palmette_serve::openapi()).unwrap()
}

/// Operations with method and path.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let each = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    });
    each.collect()
}

/// Every reference in a value; a default that is null would be of no type.
fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(members) => {
            assert_ne!(members.get("default"), Some(&Value::Null), "{value}");
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn what_the_specification_demands_is_there() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let place = format!("{method} {path}");
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{place}: the operation id {id} stands twice");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{place}");
        for (status, response) in responses {
            let said = response["description"].as_str().unwrap_or_default();
            assert!(!said.is_empty(), "{place}: {status} has no description");
        }
        // Each parameter of the path is described, and no other.
        let named: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let described: BTreeSet<&str> = parameters
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| {
                assert_eq!(parameter["required"], true, "{place}");
                parameter["name"].as_str().unwrap()
            })
            .collect();
        assert_eq!(named, described, "{place}");
        let probes = ["/livez", "/readyz", "/healthz", "/metrics", "/openapi.json"];
        let needs_key = !probes.contains(&path);
        let keys = operation["security"].as_array().unwrap();
        assert_eq!(keys.iter().any(|way| way.get("key").is_some()), needs_key, "{place}");
        assert!(keys.contains(&json!({})), "{place}: a server may have no keys");
    }
    let scheme = &document["components"]["securitySchemes"]["key"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&json!("http"), &json!("bearer")));
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100);
    for reference in found {
        let place = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "nothing is at {reference}");
    }
}

/// Filters as people and programs write them.
const FILTERS: &[&str] = &[
    "{}",
    r#"{"must": [{"range": {"price": {"lt": 60}}}]}"#,
    r#"{"range": {"price": {"gte": 10, "lt": 20.5}}}"#,
    r#"{"match": {"brand": "Acme"}}"#,
    r#"{"match": {"brand": ["Acme", 3, true]}}"#,
    r#"{"must": {"match": {"brand": {"except": ["Acme"]}}}, "exclude": ["P0001", 7]}"#,
    r#"{"must_not": {"exists": "brand"}, "should": [{"ids": ["P1", 2]}, {"is_empty": "tags"}]}"#,
    r#"{"key": "tags", "values_count": {"gte": 2}}"#,
    r#"{"must": [{"key": "price", "range": {"gt": 1}}, {"key": "brand", "match": {"any": ["a"]}}, {"key": "x", "is_empty": true}]}"#,
    r#"{"nested": {"key": "variants", "filter": {"must": [{"match": {"color": "red"}}]}}}"#,
    r#"{"min_should": {"conditions": [{"match": {"a": 1}}, {"match": {"b": 2}}], "min_count": 1}}"#,
    r#"{"must": [{"must_not": [{"match": {"a": 1}}]}, {"bool": {"filter": [{"term": {"a": 1}}]}}, {"has_id": [1]}]}"#,
    r#"{"range": {"added": {"gte": "2026-01-01T00:00:00Z"}}}"#,
];

#[test]
fn filters_and_rules_have_the_forms_that_are_read() {
    for text in FILTERS {
        let typed: filter::Condition =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let written = serde_json::to_string(&typed).unwrap();
        let (one, other) = (Filter::parse(text), Filter::parse(&written));
        assert_eq!(one.unwrap(), other.unwrap(), "{text} became {written}");
    }
    let text = r#"{"at_most": [{"attribute": "brand", "items": 2}], "at_most_per_semantic_id": 1,
        "boosts": [{"filter": {"match": {"brand": "Acme"}}, "add": -0.5}, {"attribute": "margin", "weight": 0.1, "offset": 1}],
        "tie_break": {"attribute": "price", "order": "descending"}, "must_include": ["a"], "must_exclude": ["b"],
        "valid": {"from": "f", "to": "until", "now": 1.5}, "diversity": {"lambda": 0.25, "pool": 30}}"#;
    let typed: filter::Rules = serde_json::from_str(text).unwrap();
    let written = serde_json::to_string(&typed).unwrap();
    assert_eq!(Rules::parse(text).unwrap(), Rules::parse(&written).unwrap());
    let all = serde_json::from_str::<Map<String, Value>>(text).unwrap();
    let document = document();
    let known =
        document.pointer("/components/schemas/Rules/properties").unwrap().as_object().unwrap();
    assert_eq!(known.keys().collect::<BTreeSet<_>>(), all.keys().collect::<BTreeSet<_>>());
}

/// A few values of every type, each wrong for most members.
fn values() -> Vec<Value> {
    let text = r#"[null, true, 0, 7, -1, 2.5, 3.0, 1e30, "", "x", "7", [], [1], [[1]], ["a", {}], {}, {"x": 1}, {"codes": "x"}]"#;
    serde_json::from_str(text).unwrap()
}

/// Words of the language that the server is written in, which say nothing to its clients.
const OF_RUST: &[&str] = &[
    "struct ",
    "enum",
    "variant",
    "invalid type",
    "sequence",
    " map",
    "tuple",
    "usize",
    "u32",
    "u64",
    "i64",
    "f32",
    "f64",
    "Option",
    "Vec<",
    "RawValue",
    "untagged",
    "field `",
    "deserialize",
    "::",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_a_member_is_a_defect_or_answered_in_types_of_rust() {
    let shop = shopping(config());
    let document = document();
    let mut tried = 0;
    for (method, path, operation) in operations(&document) {
        let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let Some(body) = body.as_str().and_then(|place| document.pointer(&place[1..])) else {
            continue;
        };
        let Some(members) = body["properties"].as_object() else { continue };
        let path =
            path.replace("{c}", "items").replace("{alias}", "other").replace("{id}", "P0001");
        let method: axum::http::Method = method.to_ascii_uppercase().parse().unwrap();
        for name in members.keys() {
            for value in values() {
                let mut question = json!({name: value});
                if path.starts_with("/v1/recommend")
                    && name != "target"
                    && name != "requests"
                    && name != "defaults"
                {
                    question["target"] = json!("still");
                }
                let headers = [("content-type", "application/json")];
                let answer =
                    shop.send_with(method.clone(), &path, &headers, question.to_string()).await;
                let status = answer.status.as_u16();
                assert!(
                    status < 500 || status == 503,
                    "{method} {path} {question}: {}",
                    answer.body
                );
                // Routes of texts have OpenAI's statuses and form of errors.
                let of_text = answer.body["error"]["message"].as_str();
                assert!(status != 400 || of_text.is_some(), "{question} is JSON: {}", answer.body);
                // Where there are several targets, one has to be named.
                if value.is_null() && name != "target" {
                    let none = answer.body["errors"].as_array().into_iter().flatten();
                    let at = format!("/{name}");
                    assert!(
                        none.clone().all(|fault| fault["pointer"] != at),
                        "{question}: {}",
                        answer.body
                    );
                }
                let detail = answer.body["detail"].as_str().or(of_text).unwrap_or_default();
                let detail = detail.replace(name.as_str(), "");
                for word in OF_RUST {
                    assert!(!detail.contains(word), "{method} {path} {question}: {detail}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried} values were tried");
}
