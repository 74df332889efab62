//! What a filter selects is held to its definition, asked of each row.

use palmette_attributes::{Columns, Filter};
use palmette_storage::{Check, Format, SectionsIn, SectionsOut};
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
        (Some(palmette_attributes::ColumnKind::Number), value) => {
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
