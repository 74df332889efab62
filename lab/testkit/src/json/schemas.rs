//! Random JSON Schemas, and values that may be valid for them.

use proptest::prelude::*;
use serde_json::{Value, json};

/// Small values over few names and texts.
pub fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i32..8).prop_map(Value::from),
        prop::sample::select(vec![0.5, 1.5, -0.25, 1e-7, 2e20]).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "b", "ab", "é", "a\"b"]).prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        let name = prop::sample::select(vec!["a", "b", "ab", "c"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

/// Small schemas over names and values that [`values`] makes, too.
pub fn schemas() -> impl Strategy<Value = Value> {
    let small = 0..3u32;
    let kind = prop::sample::select(vec![
        "null", "boolean", "integer", "number", "string", "array", "object",
    ]);
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        kind.prop_map(|kind| json!({"type": kind})),
        prop::collection::vec(values(), 1..3).prop_map(|values| json!({"enum": values})),
        (-2..4i32).prop_map(|bound| json!({"minimum": bound})),
        (-2..4i32).prop_map(|bound| json!({"type": "number", "exclusiveMaximum": bound})),
        prop::sample::select(vec![2.0, 0.5, 3.0]).prop_map(|of| json!({"multipleOf": of})),
        (small.clone(), small.clone())
            .prop_map(|(min, max)| json!({"minLength": min, "maxLength": max})),
        prop::sample::select(vec!["^a", "b", "^(a|b|ab)$"])
            .prop_map(|pattern| json!({"pattern": pattern})),
        (small.clone(), small.clone())
            .prop_map(|(min, max)| json!({"minItems": min, "maxItems": max})),
        (small.clone(), small.clone())
            .prop_map(|(min, max)| json!({"minProperties": min, "maxProperties": max})),
        prop::sample::subsequence(vec!["a", "b", "c"], 1..3)
            .prop_map(|names| json!({"required": names})),
    ];
    leaf.prop_recursive(3, 16, 3, move |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        let one = inner.clone();
        let two = (inner.clone(), inner.clone());
        let how = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "if"]);
        let unevaluated = (inner.clone(), list.clone(), how, any::<bool>()).prop_map(
            |(rest, schemas, how, members)| {
                let keyword = if members { "unevaluatedProperties" } else { "unevaluatedItems" };
                let mut schema = match how {
                    "if" => json!({"if": schemas[0], "then": schemas.last(), "contains": true, "minContains": 0}),
                    _ => json!({how: schemas, "properties": {"c": true}}),
                };
                if members {
                    schema[keyword] = rest;
                } else {
                    // Beside `contains`, no other schema can be asked for.
                    schema[keyword] = false.into();
                }
                schema
            },
        );
        prop_oneof![
            two.clone().prop_map(|(a, b)| json!({"properties": {"a": a, "ab": b}})),
            two.clone().prop_map(
                |(a, b)| json!({"properties": {"a": a, "c": b}, "additionalProperties": false})
            ),
            two.clone().prop_map(
                |(a, b)| json!({"properties": {"a": a}, "required": ["b"], "additionalProperties": b})
            ),
            two.clone().prop_map(
                |(a, b)| json!({"patternProperties": {"b": a}, "additionalProperties": b, "properties": {"ab": true}})
            ),
            one.clone().prop_map(|names| json!({"type": "object", "propertyNames": names})),
            one.clone().prop_map(|schema| json!({"dependentSchemas": {"a": schema}})),
            two.clone().prop_map(|(a, b)| json!({"prefixItems": [a], "items": b})),
            (one.clone(), small.clone(), small.clone()).prop_map(|(schema, min, max)| {
                json!({"type": "array", "contains": schema, "minContains": min, "maxContains": max})
            }),
            one.clone().prop_map(|schema| json!({"contains": schema})),
            one.prop_map(|schema| json!({"not": schema})),
            list.clone().prop_map(|schemas| json!({"allOf": schemas})),
            list.clone().prop_map(|schemas| json!({"anyOf": schemas})),
            list.prop_map(|schemas| json!({"oneOf": schemas})),
            (two, inner).prop_map(|((a, b), c)| json!({"if": a, "then": b, "else": c})),
            unevaluated,
        ]
    })
}
