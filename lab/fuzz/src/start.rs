//! Sound files and columns from which the fuzzer starts.

use palmette_catalog_filter::{ColumnKind, Columns, ColumnsBuilder};
use palmette_catalog::{BuildOptions, Catalog, Item};
use serde_json::{Map, Value, json};

use crate::random::Random;

/// A small catalog file: IDs of equal and of different lengths, codebooks of one code and of
/// hundreds, any number of dense levels, and attributes of every kind.
pub fn catalog_file(seed: u64) -> Vec<u8> {
    let random = &mut Random(seed);
    let num_items = [0, 1, 3, 12, 40, 90][random.below(6)];
    let num_levels = 1 + random.below(4);
    let sizes: Vec<usize> = (0..num_levels).map(|_| [1, 2, 5, 33, 300][random.below(5)]).collect();
    let ragged = random.below(3) == 0;
    let with_attributes = random.below(2) == 0;
    let items = (0..num_items).map(|number| {
        let len = if ragged { 1 + random.below(num_levels) } else { num_levels };
        let codes = sizes[..len].iter().map(|&size| random.below(size) as u32).collect();
        let attributes = if with_attributes { row(number) } else { Map::new() };
        Item { id: row_id(number), codes, attributes }
    });
    let items: Vec<Item> = items.collect();
    let mut options = BuildOptions {
        columns: vec![("since".to_owned(), ColumnKind::Timestamp)],
        ..Default::default()
    };
    if random.below(2) == 0 {
        options.codes_per_level = Some(sizes.iter().map(|&size| size as u32).collect());
    }
    options.dense_levels = [None, Some(0), Some(1), Some(2)][random.below(4)];
    let catalog = Catalog::build(items.clone().into(), &options).or_else(|_| {
        // Some ID ends within the dense levels that were drawn.
        Catalog::build(items.into(), &BuildOptions { dense_levels: None, ..options })
    });
    catalog.expect("sound items").to_bytes()
}

/// Columns of every kind, with missing values.
pub fn columns() -> Columns {
    let mut builder = ColumnsBuilder::new();
    builder.declare("since", ColumnKind::Timestamp).expect("no column yet");
    (0..24).for_each(|number| builder.push_row(&row(number)).expect("a sound row"));
    builder.finish(None, |_, _| ())
}

/// The id of the item or row with this number.
pub fn row_id(number: usize) -> String {
    format!("P{number}")
}

fn row(number: usize) -> Map<String, Value> {
    let words = ["oak", "elm", "", "é"];
    let mut row = Map::new();
    let every = |n: usize| number.is_multiple_of(n);
    let mut add = |name: &str, present: bool, value: Value| {
        if present {
            row.insert(name.to_owned(), value);
        }
    };
    add("brand", !every(5), words[number % 4].into());
    add("price", !every(3), json!(number as f64 / 2.0 - 3.0));
    add("new", !every(2), json!(number % 4 == 1));
    add("since", !every(4), json!(number as u64 * 86_400));
    add("tags", !every(7), json!(&words[number % 4..]));
    add("mixed", true, if every(2) { json!({"a": number}) } else { json!(number) });
    row
}
