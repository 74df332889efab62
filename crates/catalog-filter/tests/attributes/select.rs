//! What a filter selects is held to its definition, asked of each row.

use palmette_catalog_filter::{Columns, Filter};
use palmette_mapped::{Check, Format, SectionsIn, SectionsOut};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::tables::{Row, builder, filter, id, rows};

const FORMAT: Format = Format { magic: *b"TESTING\0", version: 1 };

fn columns(rows: &[Row], order: Option<&[u32]>) -> Columns {
    let mut builder = builder();
    rows.iter().for_each(|row| builder.push_row(row).expect("a row"));
    builder.finish(order, |_, _| ())
}

fn saved_and_loaded(columns: &Columns) -> Columns {
    let mut out = SectionsOut::default();
    let meta = serde_json::to_string(&columns.save(&mut out)).expect("a description");
    let sections = SectionsIn::from_bytes(out.to_bytes(FORMAT).into(), FORMAT, Check::Whole);
    let meta = serde_json::from_str(&meta).expect("the same description");
    Columns::load(&meta, &sections.expect("a file")).expect("what was saved")
}

/// A row as columns give it back.
fn canonical(row: &Row, columns: &Columns) -> Row {
    let kind = |name: &str| columns.columns().find(|column| column.name == name).map(|c| c.kind);
    let value = |name: &str| match (kind(name), row.get(name)?) {
        (_, Value::Null) => None,
        (Some(palmette_catalog_filter::ColumnKind::Number), value) => {
            // Compared as numbers: 3 and 3.0 are the same, 0 has no sign.
            Some(Value::from(value.as_f64()? + 0.0))
        }
        (_, value) => Some(value.clone()),
    };
    let names = columns.columns().map(|column| column.name);
    names.filter_map(|name| Some((name.to_owned(), value(name)?))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn selects_what_matches(
        (rows, filters, order) in rows(80).prop_flat_map(|rows| {
            let filters = prop::collection::vec(filter(rows.len()), 1..6);
            let order: Vec<u32> = (0..rows.len() as u32).collect();
            (Just(rows), filters, Just(order).prop_shuffle())
        }),
    ) {
        let built = columns(&rows, Some(&order));
        prop_assert_eq!(built.check(), Ok(()));
        let loaded = saved_and_loaded(&built);
        prop_assert_eq!(&loaded, &built);
        prop_assert_eq!(loaded.check(), Ok(()));

        let kind = |name: &str| built.columns().find(|column| column.name == name).map(|c| c.kind);
        let ranks: std::collections::HashMap<String, u64> =
            order.iter().enumerate().map(|(rank, &row)| (id(row as usize), rank as u64)).collect();
        let parsed: Vec<Filter> =
            filters.iter().map(Filter::from_value).collect::<Result<_, _>>()?;
        for (one, other) in parsed.iter().zip(parsed.iter().skip(1)) {
            let both = one.and(other);
            prop_assert_eq!(&Filter::parse(&both.to_string())?, &both);
            for (row, attributes) in rows.iter().enumerate() {
                let matches = |filter: &Filter| filter.matches(&id(row), attributes, &kind);
                prop_assert_eq!(matches(&both), matches(one) && matches(other), "{} {}", one, other);
            }
        }
        for json in filters {
            let filter = Filter::from_value(&json).map_err(|e| TestCaseError::fail(format!("{e}: {json}")))?;
            prop_assert_eq!(&Filter::parse(&filter.to_string())?, &filter);
            let found = match loaded.select(&filter, &|id| ranks.get(id).copied()) {
                Ok(found) => found,
                // A column appears with its first value: in few rows not all do.
                Err(error) => {
                    prop_assert!(error.is_unknown_column(), "{error}: {json}");
                    continue;
                }
            };
            for (rank, &row) in order.iter().enumerate() {
                let matches = filter.matches(&id(row as usize), &rows[row as usize], &kind);
                prop_assert_eq!(found.contains(rank as u64), matches, "{}: {:?}", json, rows[row as usize]);
            }
        }
    }

    #[test]
    fn gives_back_what_was_pushed(rows in rows(40)) {
        let columns = columns(&rows, None);
        prop_assert_eq!(columns.num_ranks(), rows.len() as u64);
        for (rank, row) in rows.iter().enumerate() {
            let found = columns.row(rank as u64);
            let mut expected = canonical(row, &columns);
            if let Some(time) = expected.get_mut("since") {
                // A point in time comes back in one spelling; it must be the same point.
                let mut builder = builder();
                for value in [&*time, &found["since"]] {
                    let row = Row::from_iter([("since".to_owned(), value.clone())]);
                    builder.push_row(&row)?;
                }
                let both = builder.finish(None, |_, _| ());
                prop_assert_eq!(both.columns().next().map(|column| column.num_distinct), Some(1));
                prop_assert_eq!(both.get(0, "since"), Some(found["since"].clone()));
                *time = found["since"].clone();
            }
            prop_assert_eq!(&canonical(&found, &columns), &expected);
            prop_assert!(found.keys().eq(expected.keys()));
            for (name, value) in &found {
                prop_assert_eq!(columns.get(rank as u64, name), Some(value.clone()));
            }
        }
        prop_assert!(columns.row(rows.len() as u64).is_empty());
    }
}

/// Replaces each name of an attribute by that of a field.
fn within_object(filter: &Value) -> Value {
    let renamed = |name: &str| format!("o.{name}");
    match filter {
        Value::Array(values) => values.iter().map(within_object).collect(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| match (&key[..], value) {
                ("key" | "field" | "exists", Value::String(name)) => {
                    (key.clone(), renamed(name).into())
                }
                ("match" | "term" | "terms" | "range", Value::Object(inner))
                    if !fields.contains_key("key") =>
                {
                    let inner = inner.iter().map(|(name, value)| (renamed(name), value.clone()));
                    (key.clone(), Value::Object(inner.collect()))
                }
                _ => (key.clone(), within_object(value)),
            };
            fields.iter().map(field).collect()
        }
        value => value.clone(),
    }
}

/// True of filters that ask for what an object keeps otherwise than a column does: points in time,
/// and values of several kinds.
fn is_of_columns(filter: &Value) -> bool {
    let text = filter.to_string();
    !["since", "mixed", "object"].iter().any(|name| text.contains(&format!("\"{name}\"")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Columns are compared by their codes, fields of objects by their values: two ways to one set.
    #[test]
    fn fields_of_objects_are_as_columns(
        (rows, filters) in rows(40).prop_flat_map(|rows| {
            let filters = prop::collection::vec(filter(rows.len()), 1..6);
            (Just(rows), filters)
        }),
    ) {
        let wrapped: Vec<Row> =
            rows.iter().map(|row| Row::from_iter([("o".to_owned(), Value::from(row.clone()))])).collect();
        let (flat, wrapped) = (columns(&rows, None), columns(&wrapped, None));
        let rank_of = |id: &str| id.strip_prefix('P')?.parse().ok().filter(|&r| r < rows.len() as u64);
        for json in filters.iter().filter(|filter| is_of_columns(filter)) {
            let filter = Filter::from_value(json).expect("a filter");
            let within = Filter::from_value(&within_object(json)).expect("a filter");
            let Ok(expected) = flat.select(&filter, &rank_of) else { continue };
            match wrapped.select(&within, &rank_of) {
                Ok(found) => prop_assert!(found.iter().eq(expected.iter()), "{json} {within}"),
                Err(error) => prop_assert!(error.is_wrong_kind(), "{error}: {within}"),
            }
        }
    }
}

/// Conditions as Elasticsearch and Qdrant take them, and the items that those find.
#[test]
fn spellings_of_other_engines_mean_what_they_mean_there() {
    let rows = [
        json!({"brand": "Acme", "price": 10, "tags": ["x", "y"], "sizes": [38, 39],
            "geo": {"lat": 52.5, "lon": 13.4}, "new": true,
            "variants": [{"color": "red", "stock": 3}, {"color": "blue", "stock": 0}]}),
        json!({"brand": "Zeta", "price": 20, "tags": [], "sizes": [], "geo": null, "variants": []}),
        json!({"brand": "Bolt", "tags": ["y"], "sizes": [41, null],
            "geo": {"lat": 48.1}, "variants": [{"color": "red", "stock": 0}, {"note": ["", null]}]}),
        json!({"price": 5, "sizes": 40, "new": null, "variants": {"color": "blue", "stock": 7}}),
    ];
    let rows: Vec<Row> = rows.iter().map(|row| row.as_object().unwrap().clone()).collect();
    let mut builder = palmette_catalog_filter::ColumnsBuilder::new();
    builder.declare("sizes", palmette_catalog_filter::ColumnKind::Json).unwrap();
    rows.iter().for_each(|row| builder.push_row(row).unwrap());
    let columns = builder.finish(None, |_, _| ());
    let check = |json: Value, expected: &[u64]| {
        let filter = Filter::from_value(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(Filter::parse(&filter.to_string()), Ok(filter.clone()), "{json}");
        let rank = |id: &str| id.strip_prefix('P')?.parse().ok();
        let found =
            columns.select(&filter, &rank).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{json}");
    };
    // Null is no condition, as in Qdrant's requests.
    check(
        json!({"must": null, "should": null, "must_not": null, "min_should": null}),
        &[0, 1, 2, 3],
    );
    check(
        json!({"must": {"key": "price", "match": null, "range": {"gt": 6, "lt": null}}}),
        &[0, 1],
    );
    // Elasticsearch.
    check(json!({"term": {"brand": {"value": "Acme", "boost": 2.0}}}), &[0]);
    check(json!({"query": {"bool": {"filter": [{"term": {"brand": "Acme"}}]}}}), &[0]);
    check(json!({"terms": {"brand": ["Acme", "Bolt"], "boost": 1}}), &[0, 2]);
    check(json!({"match": {"brand": {"query": "Bolt"}}}), &[2]);
    check(json!({"constant_score": {"filter": {"exists": {"field": "price"}}}}), &[0, 1, 3]);
    check(json!({"match_all": {}}), &[0, 1, 2, 3]);
    check(json!({"match_none": {}}), &[]);
    check(json!({"must_not": {"match_all": {}}}), &[]);
    let red_or_cheap = json!([{"term": {"variants.color": "red"}}, {"range": {"price": {"lt": 8}}},
        {"exists": "brand"}]);
    check(json!({"bool": {"should": red_or_cheap}}), &[0, 1, 2, 3]);
    for (minimum, expected) in [
        (json!(2), &[0, 2][..]),
        (json!("2"), &[0, 2]),
        (json!(-1), &[0, 2]),
        (json!("70%"), &[0, 2]),
        (json!("-40%"), &[0, 2]),
        (json!(3), &[]),
        (json!(0), &[0, 1, 2, 3]),
        (json!(9), &[]),
    ] {
        let filter = json!({"bool": {"should": red_or_cheap, "minimum_should_match": minimum}});
        check(filter, expected);
    }
    // Beside must, should only ranks there; in a filter of ours it is a condition.
    let (must, should) = (json!({"exists": "brand"}), json!({"match": {"price": 20}}));
    check(json!({"bool": {"must": must, "should": should}}), &[0, 1, 2]);
    check(json!({"must": must, "should": should}), &[1]);
    check(json!({"filter": must, "should": should}), &[1]);
    // A condition counts as often as it stands there.
    check(json!({"bool": {"should": [should, should], "minimum_should_match": 2}}), &[1]);
    check(json!({"exists": {"field": "tags"}}), &[0, 2]);
    check(json!({"exists": {"field": "sizes"}}), &[0, 2, 3]);
    check(json!({"exists": {"field": "geo"}}), &[0, 2]);
    check(json!({"exists": "variants.note"}), &[2]);
    check(json!({"term": {"sizes": 39}}), &[0]);
    check(json!({"range": {"sizes": {"gte": 40}}}), &[2, 3]);
    check(json!({"range": {"sizes": {"gt": 38, "lt": 39}}}), &[]);
    check(json!({"range": {"geo.lat": {"gte": 50}}}), &[0]);
    check(
        json!({"bool": {"must": [{"term": {"variants.color": "red"}}, {"term": {"variants.stock": 0}}]}}),
        &[0, 2],
    );
    check(
        json!({"nested": {"path": "variants", "query": {"bool": {"must": [
            {"term": {"variants.color": "red"}}, {"term": {"variants.stock": 0}}]}}}}),
        &[2],
    );
    // Qdrant.
    check(json!({"must": [{"key": "brand", "match": {"except": ["Acme", "Zeta"]}}]}), &[2]);
    check(json!({"key": "tags", "match": {"except": ["y"]}}), &[0]);
    check(json!({"key": "sizes", "match": {"except": [38, 41]}}), &[0, 3]);
    check(json!({"is_empty": {"key": "tags"}}), &[1, 3]);
    check(json!({"key": "sizes", "is_empty": true}), &[1]);
    check(json!({"must_not": {"is_empty": {"key": "geo"}}}), &[0, 2]);
    check(json!({"is_empty": {"key": "geo.lon"}}), &[1, 2, 3]);
    check(json!({"key": "tags", "values_count": {"gte": 2}}), &[0]);
    // What is missing has no count, be it 0.
    check(json!({"key": "tags", "values_count": {"lt": 1}}), &[1]);
    check(json!({"key": "geo.lon", "values_count": {"gte": 0}}), &[0]);
    // A bool without clauses matches all.
    check(json!({"bool": {"should": [], "minimum_should_match": 1}}), &[0, 1, 2, 3]);
    check(json!({"bool": {"minimum_should_match": "50%"}}), &[0, 1, 2, 3]);
    check(json!({"bool": {"must": must, "should": [], "minimum_should_match": 1}}), &[]);
    check(json!({"bool": {"must_not": must, "minimum_should_match": 1}}), &[]);
    // A text's field of its whole.
    check(json!({"term": {"brand.keyword": "Acme"}}), &[0]);
    check(json!({"terms": {"tags.keyword": ["x", "z"]}}), &[0]);
    check(json!({"term": {"variants.color.keyword": "blue"}}), &[0, 3]);
    check(json!({"exists": {"field": "brand.keyword"}}), &[0, 1, 2]);
    check(json!({"key": "sizes", "values_count": {"gt": 0, "lte": 1}}), &[3]);
    check(json!({"key": "sizes", "values_count": {"gt": 1}}), &[0, 2]);
    check(json!({"key": "brand", "values_count": {"gte": 1}}), &[0, 1, 2]);
    check(json!({"min_should": {"min_count": 2, "conditions": red_or_cheap}}), &[0, 2]);
    check(
        json!({"min_should": {"min_count": 1, "conditions": red_or_cheap}, "must": should}),
        &[1],
    );
    check(json!({"key": "variants[].color", "match": {"value": "blue"}}), &[0, 3]);
    let in_stock = json!({"must": [{"key": "color", "match": {"value": "red"}}, {"key": "stock", "range": {"gt": 0}}]});
    check(json!({"nested": {"key": "variants", "filter": in_stock}}), &[0]);
    check(
        json!({"nested": {"key": "variants[]", "filter": {"must_not": {"exists": "color"}}}}),
        &[2],
    );
}

/// More ranks than fit one chunk, and a last chunk that is not full.
#[test]
fn selects_what_matches_in_every_chunk_on_any_number_of_threads() {
    const NUM_ROWS: u32 = 100_001;
    let row = |i: u32| {
        // Long stretches without a match, so that chunks are empty, full and between.
        let stretch = ["a", "b", "c"][i as usize / 20_000 % 3];
        let random = i.wrapping_mul(2_654_435_761) >> 16;
        let tags: &[&str] = if random.is_multiple_of(5) { &["x", "y"] } else { &["z"] };
        let row = json!({
            "stretch": stretch, "small": random % 7, "wide": i, "even": random & 1 == 0, "tags": tags,
        });
        row.as_object().expect("an object").clone()
    };
    let rows: Vec<Row> = (0..NUM_ROWS).map(row).collect();
    let columns = columns(&rows, None);
    let rank_of =
        |id: &str| id.strip_prefix('P')?.parse().ok().filter(|&rank| rank < NUM_ROWS.into());
    for json in [
        json!({}),
        json!({"must": {"match": {"stretch": "a"}}}),
        json!({"must": [{"match": {"stretch": ["a", "c"]}}, {"match": {"small": [1, 3, 5]}}]}),
        json!({"must": {"range": {"wide": {"gt": 32_766, "lte": 65_536}}}, "exclude": ["P32768"]}),
        json!({"must_not": [{"match": {"stretch": "b"}}, {"match": {"even": true}}]}),
        json!({"should": [{"ids": ["P0", "P65535", "P100000", "P100001"]}, {"match": {"wide": 70_000}}]}),
        json!({"should": [{"match": {"tags": ["x"]}}, {"must_not": {"exists": "small"}}],
            "must": {"range": {"stretch": {"gte": "b"}}}}),
        json!({"must": {"match": {"wide": (0..NUM_ROWS).step_by(1001).collect::<Vec<_>>()}}}),
    ] {
        let filter = Filter::from_value(&json).expect("a filter");
        let expected: Vec<u64> = (0..NUM_ROWS as usize)
            .filter(|&row| filter.matches(&id(row), &rows[row], &|_| None))
            .map(|row| row as u64)
            .collect();
        assert!(!expected.is_empty(), "{json}");
        for num_threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build();
            let set = pool.expect("threads").install(|| columns.select(&filter, &rank_of));
            assert!(
                set.expect("columns of its kind").iter().eq(expected.iter().copied()),
                "{json}"
            );
        }
    }
}
