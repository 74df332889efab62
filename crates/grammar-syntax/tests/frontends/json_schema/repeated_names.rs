//! Objects whose members are counted or come in any order: a repeated name is one property (RFC
//! 8259 §4).

use palmette_grammar_syntax::json_schema::{Escapes, JsonSchemaOptions, PropertyOrder, parse};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::keywords::{check, check_with};
use super::random::is_valid;
use palmette_testkit::grammar::Machine;
use palmette_testkit::json::dumps;
use palmette_testkit::json::{schemas, values};

fn in_order(order: PropertyOrder) -> JsonSchemaOptions {
    JsonSchemaOptions { order, ..JsonSchemaOptions::default() }
}

#[test]
fn names_that_are_not_declared_count_once() {
    let schema = r#"{"type":"object","additionalProperties":{"type":"boolean"},"minProperties":3}"#;
    let inside = [
        r#"{"x":true,"y":false,"z":true}"#,
        r#"{"":true," ":true,"é":true,"\u00e9e":true}"#,
        r#"{"xy":true,"x":true,"xyz":true}"#,
    ];
    let outside = [
        r#"{"x":true,"y":true}"#,
        r#"{"x":true,"y":true,"x":true}"#,
        r#"{"é":true,"\u00e9":true,"\u00E9":true}"#,
        r#"{"x":true,"x":true,"x":true,"y":true}"#,
    ];
    for order in [PropertyOrder::Any { max_tracked: 4 }, PropertyOrder::Schema] {
        check_with(&in_order(order), schema, &inside, &outside);
    }
    let any = JsonSchemaOptions { escapes: Escapes::Any, ..JsonSchemaOptions::default() };
    check_with(&any, schema, &inside, &[r#"{"x":true,"\u0078":true,"\u0058":true}"#]);
    check_with(&any, schema, &[r#"{"x":true,"\u0079":true,"\u0058":true}"#], &[]);
}

#[test]
fn names_that_a_pattern_lists_run_out() {
    let schema = r#"{"type":"object","patternProperties":{"^[pq]$":{"type":"null"},"^r":{"type":"null"}},
        "additionalProperties":false,"minProperties":2,"maxProperties":3}"#;
    let inside = [r#"{"p":null,"q":null}"#, r#"{"q":null,"r":null,"p":null}"#];
    let outside = [r#"{"p":null,"p":null}"#, r#"{"r":null,"r":null}"#, r#"{"p":null}"#];
    for order in [PropertyOrder::Any { max_tracked: 4 }, PropertyOrder::Schema] {
        check_with(&in_order(order), schema, &inside, &outside);
    }
    let none = r#"{"type":"object","propertyNames":{"enum":["k","l"]},"minProperties":3}"#;
    assert!(parse(none, &JsonSchemaOptions::default()).unwrap_err().is_empty());
}

#[test]
fn some_member_is_undone_by_its_namesake() {
    // Nothing but a declared name can be it, and each had its turn.
}

#[test]
fn required_members_come_in_any_order_however_many() {
    let names: Vec<String> = (0..30).map(|at| format!("m{at}")).collect();
    let members = names.iter().map(|name| (name.clone(), json!({"type": "integer"})));
    let text = |names: &[String]| {
        let members: Vec<String> = names.iter().map(|name| format!("{name:?}:1")).collect();
        format!("{{{}}}", members.join(","))
    };
    for closed in [false, true] {
        let schema = json!({"type": "object", "properties": Value::Object(members.clone().collect()),
            "required": &names[..20], "additionalProperties": !closed});
        let reversed: Vec<String> = names.iter().rev().cloned().collect();
        let turned = [&names[7..20], &names[..7]].concat();
        let twice = [&names[..], &names[3..4]].concat();
        let inside = [text(&names), text(&reversed), text(&turned)];
        let outside = [text(&names[1..]), text(&twice), text(&names[..19])];
        check(
            &schema.to_string(),
            &inside.each_ref().map(String::as_str),
            &outside.each_ref().map(String::as_str),
        );
    }
}

#[test]
fn optional_members_come_once_on_demand_however_many() {
    let names: Vec<String> = (0..30).map(|at| format!("m{at}")).collect();
    let text = |names: &[&String]| {
        let members: Vec<String> = names.iter().map(|name| format!("{name:?}:1")).collect();
        format!("{{{}}}", members.join(","))
    };
    let distinct = JsonSchemaOptions { distinct_members: true, ..JsonSchemaOptions::default() };
    for (closed, required) in [(false, 0), (true, 0), (false, 3), (true, 3), (true, 9)] {
        let members = names.iter().map(|name| (name.clone(), json!({"type": "integer"})));
        let schema = json!({"type": "object", "properties": Value::Object(members.collect()),
            "required": &names[..required], "additionalProperties": !closed});
        let all: Vec<&String> = names.iter().collect();
        let reversed: Vec<&String> = names.iter().rev().collect();
        let few = [&all[..required], &all[20..24]].concat();
        let twice = [&all[..], &all[17..18]].concat();
        let few_twice = [&few[..], &few[few.len() - 2..][..1]].concat();
        let inside = [text(&all), text(&reversed), text(&few)];
        let outside = [text(&twice), text(&few_twice)];
        let schema = schema.to_string();
        let outside = outside.each_ref().map(String::as_str);
        check_with(&distinct, &schema, &inside.each_ref().map(String::as_str), &outside);
        // The default lets the name come again where few are required.
        if required < 4 && !closed {
            check(&schema, &outside, &[]);
        }
    }
}

/// A value's text with its members in some order, some of them again, and whether any name came
/// again.
fn spelled(value: &Value, choices: &mut impl Iterator<Item = usize>) -> (String, bool) {
    let mut repeated = false;
    let mut inner = |value: &Value, choices: &mut _| {
        let (text, again) = spelled(value, choices);
        repeated |= again;
        text
    };
    let text = match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| inner(item, choices)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let mut parts: Vec<(&String, String)> = Vec::new();
            for (name, member) in members {
                let text = inner(member, choices);
                let at = choices.next().unwrap_or(0) % (parts.len() + 1);
                parts.insert(at, (name, text));
            }
            if choices.next().unwrap_or(0) % 2 == 1 && !parts.is_empty() {
                let from = choices.next().unwrap_or(0) % parts.len();
                let to = choices.next().unwrap_or(0) % (parts.len() + 1);
                let other = ["1", "\"a\"", "null", "{}"][choices.next().unwrap_or(0) % 4];
                parts.insert(to, (parts[from].0, other.to_owned()));
                repeated = true;
            }
            let parts: Vec<String> =
                parts.iter().map(|(name, text)| format!("{name:?}:{text}")).collect();
            format!("{{{}}}", parts.join(","))
        }
        other => dumps(other),
    };
    (text, repeated)
}

/// Objects of few names, and what is asked of all of their members.
fn counted() -> impl Strategy<Value = Value> {
    let kind = || {
        let kinds = ["integer", "string", "null", "object"];
        prop::sample::select(kinds.map(|kind| json!({"type": kind})).to_vec())
    };
    let value = || prop_oneof![3 => kind(), 1 => any::<bool>().prop_map(Value::from)];
    let names = ["a", "b", "ab", "c"];
    let properties =
        prop::collection::btree_map(prop::sample::select(names.to_vec()), value(), 0..4);
    let required = prop::sample::subsequence(names.to_vec(), 0..3);
    let condition = prop_oneof![
        Just(json!({})),
        value().prop_map(|value| json!({"not": {"additionalProperties": value}})),
        value().prop_map(|value| json!({"not": {"patternProperties": {"b": value}}})),
        Just(json!({"not": {"propertyNames": {"pattern": "b"}}})),
        Just(json!({"propertyNames": {"pattern": "^(a|b|ab)$"}})),
    ];
    (properties, required, value(), 0..4u32, prop::option::of(1..4u32), condition).prop_map(
        |(properties, required, others, min, max, condition)| {
            let mut schema = json!({"type": "object", "properties": properties, "required": required,
                "additionalProperties": others, "minProperties": min});
            if let Some(max) = max {
                schema["maxProperties"] = max.into();
            }
            json!({"allOf": [schema, condition]})
        },
    )
}

fn check_random(
    schema: &Value,
    values: Vec<(Value, Vec<usize>)>,
    order: PropertyOrder,
) -> Result<(), TestCaseError> {
    let machine = match parse(&schema.to_string(), &in_order(order)) {
        Ok(grammar) => Some(Machine::new(&grammar).expect("engines")),
        Err(error) if error.is_empty() => None,
        Err(error) if error.is_limit_exceeded() => return Ok(()),
        Err(error) if error.keyword() == Some("unevaluatedItems") => return Ok(()),
        Err(error) => panic!("{schema}: {error}"),
    };
    for (value, choices) in values {
        let (text, repeated) = spelled(&value, &mut choices.into_iter());
        if text.contains("e-") || text.contains("e+") {
            continue;
        }
        let accepted = machine.as_ref().is_some_and(|machine| machine.accepts(&text));
        // The last of several members with a name is the one that is read.
        let read: Value = serde_json::from_str(&text).expect("JSON");
        let valid = is_valid(schema, &read);
        prop_assert!(valid || !accepted, "{} {}", schema, text);
        if !repeated && order != PropertyOrder::Schema {
            prop_assert_eq!(accepted, valid, "{} {}", schema, text);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn texts_that_are_accepted_are_valid(
        schema in prop_oneof![schemas(), counted()],
        values in prop::collection::vec((values(), prop::collection::vec(0..60usize, 12)), 16),
        max_tracked in 0..5u32,
        in_order in prop::bool::weighted(0.2),
    ) {
        let any = PropertyOrder::Any { max_tracked };
        check_random(&schema, values, if in_order { PropertyOrder::Schema } else { any })?;
    }

    #[test]
    fn objects_with_counted_members(
        schema in counted(),
        values in prop::collection::vec((members(), prop::collection::vec(0..60usize, 12)), 24),
        max_tracked in 0..5u32,
    ) {
        check_random(&schema, values, PropertyOrder::Any { max_tracked })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn distinct_members_come_once(
        (declared, required) in prop::sample::subsequence(vec!["a", "b", "ab", "c", "bb"], 1..=5)
            .prop_flat_map(|names| (Just(names.clone()), prop::sample::subsequence(names.clone(), 0..=names.len()))),
        (min, max) in (0..3u32, 3..6u32),
        objects in prop::collection::vec((members(), prop::collection::vec(0..60usize, 12)), 24),
        max_tracked in 0..5u32,
    ) {
        let all: serde_json::Map<_, _> = declared.iter().map(|&name| (name.to_owned(), json!(true))).collect();
        let schema = json!({"type": "object", "properties": all, "required": required,
            "additionalProperties": false, "minProperties": min, "maxProperties": max});
        let order = PropertyOrder::Any { max_tracked };
        let options = JsonSchemaOptions { distinct_members: true, ..in_order(order) };
        let machine = match parse(&schema.to_string(), &options) {
            Ok(grammar) => Some(Machine::new(&grammar).expect("engines")),
            Err(error) => {
                prop_assert!(error.is_empty(), "{}: {}", schema, error);
                None
            }
        };
        for (value, choices) in objects {
            let (text, repeated) = spelled(&value, &mut choices.into_iter());
            let accepted = machine.as_ref().is_some_and(|machine| machine.accepts(&text));
            prop_assert_eq!(accepted, !repeated && is_valid(&schema, &value), "{} {}", schema, text);
        }
    }
}

fn members() -> impl Strategy<Value = Value> {
    let value = prop::sample::select(vec![json!(1), json!("a"), json!(null), json!({})]);
    let name = prop::sample::select(vec!["a", "b", "ab", "c", "bb"]);
    prop::collection::btree_map(name, value, 0..5).prop_map(|members| json!(members))
}
