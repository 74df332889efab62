//! Filters: what parses prints as an equal filter, and selects what it matches row by row.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use palmette_catalog_filter::{Columns, Filter};
use palmette_fuzz::{columns, row_id};

static COLUMNS: LazyLock<Columns> = LazyLock::new(columns);

fuzz_target!(|text: &str| {
    let Ok(filter) = Filter::parse(text) else { return };
    let shown = filter.to_string();
    let again = Filter::parse(&shown);
    assert_eq!(again.as_ref(), Ok(&filter), "printed as {shown}");
    let mut without = filter.without_excluded();
    assert!(without.excluded().is_empty());
    if filter.excluded().is_empty() {
        assert_eq!(without, filter);
    } else {
        assert_ne!(without, filter);
    }
    without = Filter::default();
    assert_eq!(filter.is_match_all(), filter == without);

    let num_rows = COLUMNS.num_ranks() as usize;
    let rank_of = |id: &str| (0..num_rows).find(|&row| row_id(row) == id).map(|row| row as u64);
    let kind = |name: &str| COLUMNS.columns().find(|column| column.name == name).map(|c| c.kind);
    if let Ok(selected) = COLUMNS.select(&filter, &rank_of) {
        for row in 0..num_rows {
            let matches = filter.matches(&row_id(row), &COLUMNS.row(row as u64), &kind);
            assert_eq!(selected.contains(row as u64), matches, "{filter} on row {row}");
        }
    }
});
