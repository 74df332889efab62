//! JSON Schema against its definition: a validator that walks schema and value, on random pairs.

use std::collections::BTreeSet;

use palmette_grammar_syntax::json_schema::{JsonSchemaOptions, PropertyOrder, parse};
use proptest::prelude::*;
use serde_json::Value;

use palmette_testkit::grammar::Machine;
use palmette_testkit::json::dumps;
use palmette_testkit::json::{schemas, values};

/// Whether `value` is valid for `schema`, by the standard's words, for the keywords that
/// [`schemas`] makes.
pub(crate) fn is_valid(schema: &Value, value: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return *schema == true };
    let sub = |name: &str| schema.get(name);
    let list = |name: &str| schema.get(name).and_then(Value::as_array);
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    let mut valid = true;
    if let Some(kind) = sub("type") {
        valid &= match kind.as_str().expect("one type") {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            _ => value.is_object(),
        };
    }
    valid &= list("enum").is_none_or(|values| values.contains(value));
    if let Some(size) = value.as_f64() {
        valid &= number("minimum").is_none_or(|bound| size >= bound);
        valid &= number("exclusiveMaximum").is_none_or(|bound| size < bound);
        valid &= number("multipleOf").is_none_or(|divisor| (size / divisor).fract() == 0.0);
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as f64;
        valid &= number("minLength").is_none_or(|min| length >= min);
        valid &= number("maxLength").is_none_or(|max| length <= max);
        valid &= sub("pattern").is_none_or(|pattern| match pattern.as_str() {
            Some("^a") => text.starts_with('a'),
            Some("^(a|b|ab)$") => ["a", "b", "ab"].contains(&text),
            _ => text.contains('b'),
        });
    }
    if let Some(items) = value.as_array() {
        let count = items.len() as f64;
        valid &= number("minItems").is_none_or(|min| count >= min);
        valid &= number("maxItems").is_none_or(|max| count <= max);
        let prefix = list("prefixItems").map_or(&[][..], Vec::as_slice);
        valid &= prefix.iter().zip(items).all(|(schema, item)| is_valid(schema, item));
        let rest = items.iter().skip(prefix.len());
        valid &= sub("items").is_none_or(|schema| rest.clone().all(|item| is_valid(schema, item)));
        valid &= sub("contains").is_none_or(|schema| {
            let found = items.iter().filter(|item| is_valid(schema, item)).count() as f64;
            found >= number("minContains").unwrap_or(1.0)
                && number("maxContains").is_none_or(|max| found <= max)
        });
    }
    if let Some(members) = value.as_object() {
        let count = members.len() as f64;
        valid &= number("minProperties").is_none_or(|min| count >= min);
        valid &= number("maxProperties").is_none_or(|max| count <= max);
        let required = list("required").map_or(&[][..], Vec::as_slice);
        valid &= required.iter().all(|name| members.contains_key(name.as_str().expect("a name")));
        valid &= sub("propertyNames").is_none_or(|schema| {
            members.keys().all(|name| is_valid(schema, &Value::String(name.clone())))
        });
        for (name, member) in members {
            let mut known = false;
            if let Some(schema) = sub("properties").and_then(|properties| properties.get(name)) {
                known = true;
                valid &= is_valid(schema, member);
            }
            if let Some(schema) = sub("patternProperties").and_then(|patterns| patterns.get("b"))
                && name.contains('b')
            {
                known = true;
                valid &= is_valid(schema, member);
            }
            if let Some(schema) = sub("additionalProperties") {
                valid &= known || is_valid(schema, member);
            }
            let dependent = sub("dependentSchemas").and_then(|schemas| schemas.get(name));
            valid &= dependent.is_none_or(|schema| is_valid(schema, value));
        }
    }
    let counted = |name: &str| {
        list(name).map(|schemas| {
            (schemas.iter().filter(|schema| is_valid(schema, value)).count(), schemas.len())
        })
    };
    valid &= counted("allOf").is_none_or(|(valid, all)| valid == all);
    valid &= counted("anyOf").is_none_or(|(valid, _)| valid > 0);
    valid &= counted("oneOf").is_none_or(|(valid, _)| valid == 1);
    valid &= sub("not").is_none_or(|schema| !is_valid(schema, value));
    if let Some(condition) = sub("if") {
        let branch = if is_valid(condition, value) { "then" } else { "else" };
        valid &= sub(branch).is_none_or(|schema| is_valid(schema, value));
    }
    let seen = seen_by_others(schema, value);
    if let (Some(schema), Some(members)) = (sub("unevaluatedProperties"), value.as_object()) {
        let left = members.iter().filter(|(name, _)| !seen.names.contains(*name));
        valid &= left.into_iter().all(|(_, member)| is_valid(schema, member));
    }
    if let (Some(schema), Some(items)) = (sub("unevaluatedItems"), value.as_array()) {
        let left = items.iter().enumerate().filter(|(at, _)| !seen.items.contains(at));
        valid &= left.into_iter().all(|(_, item)| is_valid(schema, item));
    }
    valid
}

/// Members and items that a schema has looked at.
#[derive(Default)]
struct Seen {
    names: BTreeSet<String>,
    items: BTreeSet<usize>,
}

impl Seen {
    fn all(value: &Value) -> Self {
        let names = value.as_object().into_iter().flat_map(|members| members.keys().cloned());
        let items = 0..value.as_array().map_or(0, Vec::len);
        Self { names: names.collect(), items: items.collect() }
    }

    fn add(&mut self, more: Self) {
        self.names.extend(more.names);
        self.items.extend(more.items);
    }
}

/// What a schema has looked at in a value if that is valid for it, and nothing otherwise.
fn seen(schema: &Value, value: &Value) -> Seen {
    let Some(members) = schema.as_object() else { return Seen::default() };
    if !is_valid(schema, value) {
        return Seen::default();
    }
    let mut seen = seen_by_others(members, value);
    let all = Seen::all(value);
    if members.contains_key("unevaluatedProperties") {
        seen.names = all.names;
    }
    if members.contains_key("unevaluatedItems") {
        seen.items = all.items;
    }
    seen
}

/// The same, of all keywords but the two that ask for it.
fn seen_by_others(schema: &serde_json::Map<String, Value>, value: &Value) -> Seen {
    let mut found = Seen::default();
    if let Some(members) = value.as_object() {
        let declared = schema.get("properties").and_then(Value::as_object);
        for name in members.keys() {
            let own = declared.is_some_and(|declared| declared.contains_key(name))
                || schema.contains_key("patternProperties") && name.contains('b')
                || schema.contains_key("additionalProperties");
            if own {
                found.names.insert(name.clone());
            }
            if let Some(schema) = schema.get("dependentSchemas").and_then(|all| all.get(name)) {
                found.add(seen(schema, value));
            }
        }
    }
    if let Some(items) = value.as_array() {
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        let contains = schema.get("contains");
        for (at, item) in items.iter().enumerate() {
            let contained = contains.is_some_and(|schema| is_valid(schema, item));
            if at < prefix || schema.contains_key("items") || contained {
                found.items.insert(at);
            }
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for schema in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            found.add(seen(schema, value));
        }
    }
    if let Some(condition) = schema.get("if") {
        found.add(seen(condition, value));
        let branch = if is_valid(condition, value) { "then" } else { "else" };
        if let Some(schema) = schema.get(branch) {
            found.add(seen(schema, value));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn acceptance_is_validity(schema in schemas(), values in prop::collection::vec(values(), 12)) {
        let order = PropertyOrder::Any { max_tracked: 6 };
        let options = JsonSchemaOptions { order, ..JsonSchemaOptions::default() };
        let machine = match parse(&schema.to_string(), &options) {
            Ok(grammar) => Some(Machine::new(&grammar).expect("engines")),
            Err(error) if error.is_empty() => None,
            // Small as they are, denials multiply.
            Err(error) if error.is_limit_exceeded() => return Ok(()),
            // Items that several schemas may contain.
            Err(error) if error.keyword() == Some("unevaluatedItems") => return Ok(()),
            Err(error) => panic!("{schema}: {error}"),
        };
        for value in values {
            let text = dumps(&value);
            // A number beside a condition on integers or divisors is not spelled with an exponent.
            if text.contains("e-") || text.contains("e+") {
                continue;
            }
            let accepted = machine.as_ref().is_some_and(|machine| machine.accepts(&text));
            prop_assert_eq!(accepted, is_valid(&schema, &value), "{} {}", schema, text);
        }
    }
}
