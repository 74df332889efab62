//! What does a request's filter cost before the first token?
//!
//! ```text
//! cargo bench -p palmette-catalog-filter
//! ```
//!
//! Measured: [`Columns::select`] over 20 million items on one and on two threads, by filter; what
//! the answer costs afterwards (`any_in`, as asked for each child of a prefix); and, printed
//! before, the time to build the columns and their bytes.
//!
//! Data: from a fixed seed, a region of 25 (u8 codes), stock for nine items of ten (u8), a price
//! in cents below 50.00 (u16), one of 1 million sellers (u32), and up to three of 200 tags.
//!
//! Baseline, `row_by_row`: the definition, [`Filter::matches`], for one item in a thousand, so its
//! times must be multiplied by 1000.

use std::sync::LazyLock;
use std::time::Instant;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use palmette_catalog_filter::{Columns, ColumnsBuilder, Filter, RankSet};
use serde_json::{Map, Value, json};

const NUM_RANKS: u64 = 20_000_000;

const FILTERS: [(&str, &str); 8] = [
    (
        "three",
        r#"{"must": [{"match": {"region": "SE"}}, {"match": {"in_stock": true}},
            {"range": {"price": {"gte": 10, "lt": 20}}}]}"#,
    ),
    ("u8", r#"{"must": {"match": {"region": "SE"}}}"#),
    ("u16", r#"{"must": {"range": {"price": {"gte": 10, "lt": 20}}}}"#),
    ("u32", r#"{"must": {"match": {"seller": 4711}}}"#),
    (
        "u8_any_of_12",
        r#"{"must": {"match": {"region": ["AA", "AC", "AE", "BB", "BD", "CA", "CC", "CE", "DB", "DD", "EA", "SE"]}}}"#,
    ),
    ("tags", r#"{"must": {"match": {"tags": "tag 17"}}}"#),
    (
        "must_not",
        r#"{"must": {"match": {"in_stock": true}}, "must_not": {"match": {"region": "SE"}}}"#,
    ),
    (
        "ids",
        r#"{"must": {"ids": ["5", "70000", "19999999"]}, "must_not": {"match": {"region": "SE"}}}"#,
    ),
];

static COLUMNS: LazyLock<Columns> = LazyLock::new(columns);

fn main() {
    LazyLock::force(&COLUMNS);
    divan::main();
}

#[divan::bench(args = FILTERS.map(|(name, _)| name), consts = [1, 2])]
fn select<const THREADS: usize>(bencher: Bencher, name: &str) {
    let filter = filter(name);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(THREADS).build().expect("threads");
    bencher.bench_local(|| pool.install(|| selected(black_box(&filter))));
}

/// The definition, for one item in a thousand.
#[divan::bench(args = FILTERS.map(|(name, _)| name), sample_count = 10)]
fn row_by_row(bencher: Bencher, name: &str) {
    let filter = filter(name);
    let kind = |name: &str| COLUMNS.columns().find(|column| column.name == name).map(|c| c.kind);
    bencher.bench_local(|| {
        let ranks = (0..NUM_RANKS).step_by(1000);
        ranks.filter(|&rank| filter.matches(&rank.to_string(), &COLUMNS.row(rank), &kind)).count()
    });
}

/// Whether any of the ranks of a prefix matches, for 4096 prefixes of some length.
#[divan::bench(args = [1, 40, 5_000, 1_000_000])]
fn any_in(bencher: Bencher, num_ranks: u64) {
    let set = selected(&filter("three"));
    let mut random = 1;
    let starts: Vec<u64> = (0..4096).map(|_| next(&mut random) % (NUM_RANKS - num_ranks)).collect();
    bencher.counter(ItemsCount::new(starts.len())).bench_local(|| {
        starts.iter().filter(|&&start| set.any_in(start..start + num_ranks)).count()
    });
}

fn filter(name: &str) -> Filter {
    let json = FILTERS.iter().find(|(other, _)| *other == name).expect("a filter").1;
    Filter::parse(json).expect("a filter")
}

fn selected(filter: &Filter) -> RankSet {
    COLUMNS.select(filter, &|id| id.parse().ok()).expect("columns of its kind")
}

#[allow(clippy::print_stdout, reason = "what the bench is for")]
fn columns() -> Columns {
    let regions: Vec<Value> = (0..25_u8)
        .map(|i| json!(format!("{}{}", (b'A' + i / 5) as char, (b'A' + i % 5) as char)))
        .collect();
    let mut builder = ColumnsBuilder::new();
    let mut random = 1;
    let start = Instant::now();
    let mut row = Map::new();
    for _ in 0..NUM_RANKS {
        let region = next(&mut random) % 25;
        let region = if region == 24 { json!("SE") } else { regions[region as usize].clone() };
        row.insert("region".to_owned(), region);
        row.insert("in_stock".to_owned(), json!(next(&mut random) % 10 < 9));
        row.insert("price".to_owned(), json!((next(&mut random) % 5000) as f64 / 100.0));
        row.insert("seller".to_owned(), json!(next(&mut random) % 1_000_000));
        let tags: Vec<Value> = (0..next(&mut random) % 4)
            .map(|_| json!(format!("tag {}", next(&mut random) % 200 * (next(&mut random) % 2))))
            .collect();
        row.insert("tags".to_owned(), tags.into());
        builder.push_row(&row).expect("a row");
    }
    println!("pushed {NUM_RANKS} rows in {:.1?}", start.elapsed());
    let start = Instant::now();
    let columns = builder.finish(None, |_, _| ());
    println!("finished in {:.1?}", start.elapsed());
    for column in columns.columns() {
        println!("{column:?}");
    }
    columns
}

/// Pseudo-random numbers below 2^31.
fn next(random: &mut u64) -> u64 {
    *random =
        random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}
