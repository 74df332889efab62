//! Kinds of columns, their widths, and what is said of rows that cannot be taken.

use std::collections::BTreeMap;

use palmette_catalog_filter::{ColumnKind, Columns, ColumnsBuilder, Filter};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn columns(rows: &[Value]) -> Columns {
    let mut builder = ColumnsBuilder::new();
    push(&mut builder, rows);
    builder.finish(None, |_, _| ())
}

fn push(builder: &mut ColumnsBuilder, rows: &[Value]) {
    rows.iter().for_each(|row| builder.push_row(object(row)).expect("a row"));
}

fn object(row: &Value) -> &Map<String, Value> {
    row.as_object().expect("an object")
}

#[test]
fn kinds_follow_from_values() {
    #[track_caller]
    fn check(values: &[Value], kind: ColumnKind) {
        let rows: Vec<Value> = values.iter().map(|value| json!({"a": value})).collect();
        let columns = columns(&rows);
        let found: Vec<ColumnKind> = columns.columns().map(|column| column.kind).collect();
        assert_eq!(found, [kind], "{values:?}");
        let back = (0..).zip(values).map(|(rank, value)| (columns.get(rank, "a"), value));
        for (found, value) in back {
            assert_eq!(found.unwrap_or_default(), *value);
        }
    }
    const EXACT: i64 = 1 << 53;
    check(&[json!("a"), Value::Null, json!("a\"\\\n")], ColumnKind::Keyword);
    check(&[json!(3), json!(-2), json!(EXACT), json!(-EXACT)], ColumnKind::Number);
    check(&[json!(3), json!(2.5), json!(1e300)], ColumnKind::Number);
    check(&[json!(3.0), json!(2.5), json!(0.1 + 0.2)], ColumnKind::Number);
    check(&[json!(true), json!(false)], ColumnKind::Boolean);
    check(&[json!([]), json!(["a", "b", "a"])], ColumnKind::Keywords);
    check(&[json!(3), json!(EXACT + 1), json!(u64::MAX)], ColumnKind::Json);
    check(&[json!(i64::MIN)], ColumnKind::Json);
    check(&[json!(3), json!(3.0), json!("3"), json!("\"3")], ColumnKind::Json);
    check(&[json!({"b": 1, "a": 0.1 + 0.2}), json!([1, "a"]), json!([null])], ColumnKind::Json);
}

#[test]
fn columns_come_in_the_order_of_their_first_value() {
    let mut builder = ColumnsBuilder::new();
    builder.declare("never", ColumnKind::Timestamp).expect("no column yet");
    builder.declare("late", ColumnKind::Keyword).expect("no column yet");
    push(&mut builder, &[json!({"b": 1, "null": null}), json!({"late": "x", "a": true, "b": 2})]);
    let mut steps = Vec::new();
    let columns = builder.finish(Some(&[1, 0]), |done, of| steps.push((done, of)));
    let found: Vec<_> =
        columns.columns().map(|c| (c.name, c.kind, c.num_distinct, c.num_missing)).collect();
    let expected = [
        ("b", ColumnKind::Number, 2, 0),
        ("late", ColumnKind::Keyword, 1, 1),
        ("a", ColumnKind::Boolean, 1, 1),
        ("never", ColumnKind::Timestamp, 0, 2),
    ];
    assert_eq!(found, expected);
    assert_eq!(steps, [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]);
    assert_eq!(columns.row(0), *object(&json!({"b": 2, "late": "x", "a": true})));
    assert_eq!(columns.row(1), *object(&json!({"b": 1})));
    assert_eq!(columns.check(), Ok(()));
}

#[test]
fn rows_that_have_no_rank_leave_nothing() {
    let mut builder = ColumnsBuilder::new();
    push(&mut builder, &[json!({"a": "x"}), json!({"a": "y"}), json!({"a": "z"})]);
    let columns = builder.finish(Some(&[2, 0]), |_, _| ());
    assert_eq!(columns.check(), Ok(()));
    assert_eq!(columns.columns().next().map(|column| column.num_distinct), Some(2));
    assert_eq!([0, 1].map(|rank| columns.get(rank, "a")), [Some(json!("z")), Some(json!("x"))]);
}

#[test]
fn every_width_gives_back_and_finds_its_values() {
    for num_values in [255_u32, 256, 65_535, 65_536] {
        let mut builder = ColumnsBuilder::new();
        for i in 0..num_values {
            // The first row has none, so that every code is taken.
            let row = if i == 0 { json!({}) } else { json!({"a": format!("{i:08}")}) };
            push(&mut builder, &[row]);
        }
        push(&mut builder, &[json!({"a": "00000000"})]);
        let columns = builder.finish(None, |_, _| ());
        assert_eq!(columns.check(), Ok(()));
        for i in [1, 254, num_values - 1] {
            let text = format!("{i:08}");
            let filter = Filter::from_value(&json!({"must": {"match": {"a": text}}}));
            let found = columns.select(&filter.expect("a filter"), &|_| None).expect("a set");
            assert!(found.iter().eq([u64::from(i)]));
            assert_eq!(columns.get(i.into(), "a"), Some(json!(text)));
        }
        let last = Filter::from_value(&json!({"must": {"range": {"a": {"gte": "00000000"}}}}));
        let found = columns.select(&last.expect("a filter"), &|_| None).expect("a set");
        assert_eq!(found.len(), u64::from(num_values));
    }
}

#[test]
fn a_row_that_cannot_be_taken_is_not() {
    #[track_caller]
    fn check(builder: &mut ColumnsBuilder, row: &Value, message: &str) {
        let error = builder.push_row(object(row)).expect_err("no row");
        assert_eq!(error.to_string(), message);
    }
    let mut builder = ColumnsBuilder::new();
    builder.declare("since", ColumnKind::Timestamp).expect("no column yet");
    builder.declare("brand", ColumnKind::Keyword).expect("no column yet");
    push(&mut builder, &[json!({"since": "2026-11-21", "n": 1})]);
    check(
        &mut builder,
        &json!({"n": "text", "since": "yesterday"}),
        "attribute \"since\" was declared timestamp and is \"yesterday\"; such a column takes a \
         date (2026-11-21) or date and time (2026-11-21T09:30:00Z, without a zone UTC) or seconds, not \
         milliseconds, since 1970, within the years 0 to 9999, or null where there is no value",
    );
    check(
        &mut builder,
        &json!({"brand": 3}),
        "attribute \"brand\" was declared keyword and is 3; such a column takes text, or null \
         where there is no value",
    );
    check(
        &mut builder,
        &json!({"long": "x".repeat(1 << 20)}),
        "attribute \"long\" takes 1048577 bytes as text, over the limit of 1048576; keep it \
         elsewhere and give its address",
    );
    let deep = (0..101).fold(json!(1), |inner, _| json!([inner]));
    check(
        &mut builder,
        &json!({"deep": deep}),
        "attribute \"deep\" is nested deeper than 100 lists or objects; give it as text",
    );
    let many: Map<String, Value> = (0..1022).map(|i| (format!("c{i}"), json!(1))).collect();
    check(
        &mut builder,
        &many.into(),
        "attribute \"c1021\" would be one more than 1024, the most there can be; gather those \
         that are never filtered on in one object",
    );
    let error = builder.declare("n", ColumnKind::Keyword).expect_err("too late");
    assert_eq!(
        error.to_string(),
        "attribute \"n\" cannot be declared keyword: it has values already; declare it before the \
         first row"
    );
    let error = builder.declare("brand", ColumnKind::Json).expect_err("another kind");
    assert!(error.to_string().ends_with("it was declared keyword; declare it once"), "{error}");
    // The text in the first of these rows would have made it a column of JSON.
    let columns = builder.finish(None, |_, _| ());
    assert_eq!(columns.num_ranks(), 1);
    let kinds: Vec<_> = columns.columns().map(|column| (column.name, column.kind)).collect();
    let expected = [
        ("since", ColumnKind::Timestamp),
        ("n", ColumnKind::Number),
        ("brand", ColumnKind::Keyword),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn filters_that_do_not_fit_are_errors_with_a_way_out() {
    let mut builder = ColumnsBuilder::new();
    builder.declare("since", ColumnKind::Timestamp).expect("no column yet");
    let row =
        json!({"brand": "Acme", "price": 3, "new": true, "tags": ["a"], "since": 0, "mixed": 1});
    push(&mut builder, &[row, json!({"mixed": "x"}), json!({"mixed": true})]);
    let columns = builder.finish(None, |_, _| ());
    let check = |condition: Value, message: &str| {
        let filter = Filter::from_value(&json!({"must": condition})).expect("a filter");
        let error = columns.select(&filter, &|_| None).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.is_unknown_column(), message.starts_with("no item has"));
        assert_ne!(error.is_unknown_column(), error.is_wrong_kind());
    };
    check(
        json!({"match": {"Brnad": "Acme"}}),
        "no item has the attribute \"Brnad\" (did you mean \"brand\"?); there are brand, price, new, \
         tags, since, mixed",
    );
    check(
        json!({"exists": "colour"}),
        "no item has the attribute \"colour\"; there are brand, price, new, tags, since, mixed",
    );
    check(
        json!({"match": {"price": "3"}}),
        "match with \"3\" does not fit the attribute \"price\", which is number; compare it with a \
         number, without quotes",
    );
    check(
        json!({"match": {"brand": ["Acme", 3]}}),
        "match with 3 does not fit the attribute \"brand\", which is keyword; compare it with text, in \
         quotes",
    );
    check(
        json!({"range": {"new": {"gt": false}}}),
        "range does not fit the attribute \"new\", which is boolean; use match",
    );
    check(
        json!({"range": {"tags": {"gt": 1}}}),
        "range with 1 does not fit the attribute \"tags\", which is keywords; compare it with one of the \
         texts in its lists",
    );
    check(
        json!({"nested": {"key": "brand", "filter": {}}}),
        "nested does not fit the attribute \"brand\", which is keyword; it asks for fields of objects, \
         and there are none",
    );
    check(
        json!({"match": {"brand.name": "x"}}),
        "no item has the attribute \"brand.name\": \"brand\" is keyword and has no fields; write \"brand\"",
    );
    check(
        json!({"term": {"_id": "x"}}),
        "no item has the attribute \"_id\"; ids are asked for by {\"ids\": [\"P1\", \"P2\"]}",
    );
    check(
        json!({"range": {"since": {"gt": "yesterday"}}}),
        "range with \"yesterday\" does not fit the attribute \"since\", which is timestamp; compare it \
         with a date (2026-11-21) or date and time (2026-11-21T09:30:00Z) or seconds since 1970, within \
         the years 0 to 9999",
    );
    check(
        json!({"match": {"mixed": 1}}),
        "match does not fit the attribute \"mixed\", which is json since it holds numbers and text; \
         only whether it exists or is empty can be asked of it; give it the same kind of value for all \
         items, or declare it json, to compare each value by its own kind",
    );
}

/// Values of every kind, few enough that some stand in many rows.
fn value() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        Value::Null,
        json!("x"),
        json!("y"),
        json!("2026-11-21"),
        json!(3),
        json!(3.0),
        json!(2.5),
        json!(u64::MAX),
        json!(true),
        json!(["x", "y"]),
        json!([1]),
        json!({"x": null}),
    ])
}

fn rows() -> impl Strategy<Value = Vec<Value>> {
    let column = |name| (Just(name), prop::collection::vec(value(), 1..3));
    // Few kinds a column, or all would be of JSON.
    (column("a"), column("b"), column("c")).prop_flat_map(|columns| {
        let (a, b, c) = columns;
        let one = |(name, values): (&'static str, Vec<Value>)| {
            prop::option::of(prop::sample::select(values)).prop_map(move |value| (name, value))
        };
        let row = (one(a), one(b), one(c)).prop_map(|(a, b, c)| {
            let given = [a, b, c].into_iter().filter_map(|(name, value)| Some((name, value?)));
            given.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
        });
        prop::collection::vec(row, 1..30)
    })
}

proptest! {
    #[test]
    fn rows_of_columns_are_those_rows(
        sources in prop::collection::vec((rows(), any::<u64>()), 1..4),
        between in rows(),
        is_declared: bool,
    ) {
        let (mut copied, mut pushed) = (ColumnsBuilder::new(), ColumnsBuilder::new());
        if is_declared {
            for builder in [&mut copied, &mut pushed] {
                builder.declare("b", ColumnKind::Json).expect("no column yet");
            }
        }
        for (source, seed) in &sources {
            let source = columns(source);
            let mut ranks: Vec<u64> = (0..source.num_ranks()).collect();
            ranks.sort_by_key(|rank| (rank + 1).wrapping_mul(seed | 1));
            ranks.truncate(1 + (seed % 30) as usize);
            copied.push_rows_of(&source, &ranks).expect("rows that were taken before");
            for &rank in &ranks {
                pushed.push_row(&source.row(rank)).expect("a row that was taken before");
            }
            for builder in [&mut copied, &mut pushed] {
                push(builder, &between);
            }
        }
        prop_assert_eq!(copied.num_rows(), pushed.num_rows());
        let (copied, pushed) =
            (copied.finish(None, |_, _| ()), pushed.finish(None, |_, _| ()));
        let named = |columns: &Columns| {
            let of = |c: palmette_catalog_filter::ColumnDescription<'_>| {
                (c.name.to_owned(), (c.kind, c.num_distinct, c.num_missing, c.bytes))
            };
            columns.columns().map(of).collect::<BTreeMap<_, _>>()
        };
        prop_assert_eq!(named(&copied), named(&pushed));
        prop_assert_eq!(copied.check(), Ok(()));
        for rank in 0..copied.num_ranks() {
            prop_assert_eq!(copied.row(rank), pushed.row(rank));
        }
    }
}

#[test]
fn rows_of_columns_that_do_not_fit_are_refused() {
    let source = columns(&[json!({"a": 1}), json!({"a": "x"}), json!({"a": 2})]);
    let mut builder = ColumnsBuilder::new();
    builder.declare("a", ColumnKind::Number).expect("no column yet");
    builder.push_rows_of(&source, &[2, 0]).expect("numbers");
    let error = builder.push_rows_of(&source, &[0, 1]).expect_err("text");
    assert!(error.to_string().contains("declared number and is \"x\""), "{error}");
}

/// The first value of another kind is told with its row, and what the column held before.
#[test]
fn conflicts_of_kinds_are_told() {
    #[track_caller]
    fn check(values: Value, expected: Option<(usize, Value, &str, usize, Value, &str)>) {
        let mut builder = ColumnsBuilder::new();
        for value in values.as_array().expect("a list") {
            push(&mut builder, &[json!({"a": value, "b": 1})]);
        }
        let conflicts: Vec<_> = builder.conflicts().collect();
        let found = conflicts.iter().map(|c| {
            assert_eq!(c.name, "a");
            let (value, first_value) = (c.value.clone(), c.first_value.clone());
            (c.row, value, &c.kind[..], c.first_row, first_value, &c.first_kind[..])
        });
        assert_eq!(found.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        let columns = builder.finish(None, |_, _| ());
        let kind = columns.columns().find(|column| column.name == "a").map(|column| column.kind);
        assert_eq!(kind == Some(ColumnKind::Json), !conflicts.is_empty() || values[0].is_object());
    }
    check(json!([1, 2.5, null]), None);
    check(json!([[], ["x"], []]), None);
    check(json!([{"x": 1}, [], [1]]), None);
    let text = json!("10.00");
    check(json!([null, 10, 11, text, "x", true]), Some((3, text, "text", 1, json!(10), "numbers")));
    check(json!([true, 1]), Some((1, json!(1), "numbers", 0, json!(true), "true or false")));
    check(
        json!([["x"], [1]]),
        Some((
            1,
            json!([1]),
            "objects or lists of other things than text",
            0,
            json!(["x"]),
            "lists of text",
        )),
    );
    check(
        json!([1, 1_u64 << 60]),
        Some((1, json!(1_u64 << 60), "integers outside ±2^53", 0, json!(1), "numbers")),
    );
    let mut builder = ColumnsBuilder::new();
    builder.declare("a", ColumnKind::Json).expect("no column yet");
    push(&mut builder, &[json!({"a": 1}), json!({"a": "x"})]);
    assert_eq!(builder.conflicts().count(), 0);
}
