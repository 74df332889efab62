//! Rows and filters at random, of few values, so that they meet.

use palmette_catalog_filter::{ColumnKind, ColumnsBuilder};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) type Row = Map<String, Value>;

/// The attributes that rows may have, and what values each may take.
fn values(name: &str) -> BoxedStrategy<Value> {
    let word = || prop::sample::select(vec!["", "a", "ab", "b", "é", "zebra \" \\ \n"]);
    match name {
        "brand" => word().prop_map(Value::from).boxed(),
        "title" => (0..100_000_u32).prop_map(|n| json!(format!("title {n}"))).boxed(),
        "stock" => (-3..300_i64).prop_map(Value::from).boxed(),
        "price" => prop_oneof![
            prop::sample::select(vec![0.0, -0.0, 0.1, 2.5, 1e300, -1e-300]).prop_map(Value::from),
            (0.0..10.0_f64).prop_map(Value::from),
            (-5..5_i64).prop_map(Value::from),
            Just(json!(1_u64 << 53)),
        ]
        .boxed(),
        "new" => any::<bool>().prop_map(Value::from).boxed(),
        "since" => prop_oneof![
            (0..5_i64).prop_map(Value::from),
            (0..5_i64).prop_map(|n| Value::from(n as f64 / 2.0)),
            (0..5_u32).prop_map(|n| json!(format!("1970-01-01T00:00:0{n}Z"))),
            (0..5_u32).prop_map(|n| json!(format!("1970-01-01T01:00:0{n}.5+01:00"))),
            (1..5_u32).prop_map(|n| json!(format!("1970-01-0{n}"))),
        ]
        .boxed(),
        "tags" => prop::collection::vec(word(), 0..4).prop_map(Value::from).boxed(),
        "mixed" => prop_oneof![values("brand"), values("price"), values("new")].boxed(),
        "object" => prop_oneof![
            word().prop_map(|word| json!({"a": word, "b": [1, null]})),
            any::<u64>().prop_map(|n| json!(n | 1 << 60)),
            Just(json!([1, "a"])),
        ]
        .boxed(),
        name => unreachable!("{name}"),
    }
}

const NAMES: [&str; 9] =
    ["brand", "title", "stock", "price", "new", "since", "tags", "mixed", "object"];

/// A builder that knows of the one column that must be declared.
pub(crate) fn builder() -> ColumnsBuilder {
    let mut builder = ColumnsBuilder::new();
    builder.declare("since", ColumnKind::Timestamp).expect("no column yet");
    builder
}

/// Rows in which attributes are missing or null, in any order.
pub(crate) fn rows(max: usize) -> impl Strategy<Value = Vec<Row>> {
    let entry = |name: &'static str| {
        let value = prop_oneof![4 => values(name), 1 => Just(Value::Null)];
        prop::option::weighted(0.7, value).prop_map(move |value| (name, value))
    };
    let entries: Vec<_> = NAMES.map(entry).to_vec();
    let row = (entries, any::<prop::sample::Index>()).prop_map(|(mut entries, start)| {
        entries.rotate_left(start.index(NAMES.len()));
        let present = entries.into_iter().filter_map(|(name, value)| Some((name, value?)));
        present.map(|(name, value)| (name.to_owned(), value)).collect()
    });
    prop::collection::vec(row, 0..max)
}

/// The id of a row.
pub(crate) fn id(row: usize) -> String {
    format!("P{row}")
}

fn ids(num_rows: usize) -> impl Strategy<Value = Value> {
    let ids = prop::collection::vec((0..num_rows + 3).prop_map(id), 0..num_rows / 2 + 2);
    ids.prop_map(Value::from)
}

/// Conditions of every spelling that fit the columns.
fn condition(num_rows: usize) -> impl Strategy<Value = Value> {
    let one = |names: &'static [&'static str]| {
        prop::sample::select(names).prop_flat_map(|name| (Just(name), values(name)))
    };
    let scalars = ["brand", "title", "stock", "price", "new", "since", "tags"];
    let value = |name: &'static str| values(if name == "tags" { "brand" } else { name });
    let some = prop::sample::select(scalars.to_vec())
        .prop_flat_map(move |name| (Just(name), prop::collection::vec(value(name), 0..12)));
    let equal = some.prop_map(|(name, values)| match values.first() {
        Some(value) if values.len() == 2 => json!({"match": {name: value}}),
        Some(value) if values.len() == 3 => json!({"term": {name: value}}),
        Some(value) if values.len() == 4 => json!({"key": name, "match": {"value": value}}),
        Some(_) if values.len() == 5 => json!({"key": name, "match": {"any": values}}),
        Some(_) if values.len() == 6 => json!({"terms": {name: values}}),
        Some(value) if values.len() == 7 => json!({"term": {name: {"value": value}}}),
        Some(_) if values.len() == 8 => json!({"key": name, "match": {"except": values}}),
        Some(_) if values.len() == 9 => json!({"match": {name: {"except": values}}}),
        _ => json!({"match": {name: values}}),
    });
    let ordered: &[&str] = &["brand", "title", "stock", "price", "since", "tags"];
    let range = one(ordered).prop_flat_map(|(name, first)| {
        let bound = values(if name == "tags" { "brand" } else { name });
        let first = if name == "tags" { values("brand") } else { Just(first).boxed() };
        (Just(name), first, bound, 0..8_u8)
    });
    let range = range.prop_map(|(name, first, second, spelling)| {
        let bounds = match spelling {
            0 => json!({"gt": first}),
            1 => json!({"gte": first}),
            2 => json!({"lt": first}),
            3 => json!({"lte": first}),
            4 => json!({"gt": first, "lt": second}),
            5 => json!({"gte": first, "lte": second}),
            6 => json!({"gt": first, "lte": second}),
            _ => json!({"gte": first, "lt": second}),
        };
        if spelling % 2 == 0 {
            json!({"range": {name: bounds}})
        } else {
            json!({"key": name, "range": bounds})
        }
    });
    let exists = (prop::sample::select(NAMES.to_vec()), any::<bool>());
    let exists = exists.prop_map(|(name, short)| {
        if short { json!({"exists": name}) } else { json!({"exists": {"field": name}}) }
    });
    let has_id = (ids(num_rows), 0..3_u8).prop_map(|(ids, spelling)| match spelling {
        0 => json!({"ids": ids}),
        1 => json!({"ids": {"values": ids}}),
        _ => json!({"has_id": ids}),
    });
    let empty = (prop::sample::select(NAMES.to_vec()), 0..3_u8);
    let empty = empty.prop_map(|(name, spelling)| match spelling {
        0 => json!({"is_empty": {"key": name}}),
        1 => json!({"key": name, "is_empty": true}),
        _ => json!({"key": name, "is_empty": false}),
    });
    let count = (prop::sample::select(NAMES.to_vec()), 0..4_u64, 0..4_u64, 0..4_u8);
    let count = count.prop_map(|(name, a, b, spelling)| {
        let bounds = match spelling {
            0 => json!({"gt": a}),
            1 => json!({"lt": a, "gt": null}),
            2 => json!({"gte": a, "lt": b}),
            _ => json!({"gte": a, "lte": b}),
        };
        json!({"key": name, "values_count": bounds})
    });
    prop_oneof![4 => equal, 4 => range, 1 => exists, 1 => has_id, 1 => empty, 1 => count]
}

/// Filters that fit the columns, of every shape.
pub(crate) fn filter(num_rows: usize) -> impl Strategy<Value = Value> {
    let condition = condition(num_rows).boxed();
    let leaf = condition.clone();
    let nested = leaf.prop_recursive(3, 20, 4, move |inner| {
        let list = || {
            let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
            prop::option::of(prop_oneof![3 => list, 1 => inner.clone()])
        };
        let exclude = prop::option::weighted(0.2, ids(num_rows));
        let some = (prop::collection::vec(inner.clone(), 0..4), 0..4_u64);
        let min_should = some
            .prop_map(|(conditions, count)| json!({"conditions": conditions, "min_count": count}));
        let min_should = prop::option::weighted(0.2, min_should);
        let all = (list(), list(), list(), exclude, min_should);
        all.prop_map(|(must, should, must_not, exclude, min_should)| {
            let entries = [
                ("must", must),
                ("should", should),
                ("must_not", must_not),
                ("exclude", exclude),
                ("min_should", min_should),
            ];
            let present = entries.into_iter().filter_map(|(key, value)| Some((key, value?)));
            present.map(|(key, value)| (key.to_owned(), value)).collect::<Row>().into()
        })
    });
    nested.prop_map(|condition: Value| match condition.get("must").or(condition.get("should")) {
        Some(_) => condition,
        None => json!({"must": condition}),
    })
}
