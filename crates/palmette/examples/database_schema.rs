//! Database schema: tables, and columns of the table that was chosen, in SQL that is JSON.
//!
//! `cargo run --release -p palmette --example database_schema`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;

use palmette::{Bindings, Catalog, CompiledGrammar, Item, Vocabulary};

const TABLES: [(&str, &[&str]); 3] = [
    ("customers", &["id", "name", "city", "joined"]),
    ("orders", &["id", "customer", "placed", "total"]),
    ("parcels", &["id", "order", "sent", "weight_g"]),
];

/// Each column is an item: a record is a table and a column that the table has.
fn schema() -> Result<Catalog, Box<dyn Error>> {
    let columns =
        TABLES.iter().flat_map(|(table, columns)| columns.iter().map(move |of| (table, of)));
    let item = |(number, (table, column)): (u32, (&&str, &&str))| Item {
        id: format!("{table}.{column}"),
        codes: [number].into(),
        attributes: [("table", *table), ("column", *column)]
            .map(|(name, value)| (name.to_owned(), value.into()))
            .into_iter()
            .collect(),
    };
    Ok(Catalog::from_items((0..).zip(columns).map(item))?)
}

const QUERY: &str = r#"{
    "type": "object", "required": ["select"], "additionalProperties": false, "properties": {
        "select": {"type": "array", "minItems": 1, "maxItems": 6, "items": {
            "type": "object", "x-record": "db", "required": ["table", "column"], "additionalProperties": false,
            "properties": {
                "table": {"type": "string", "x-catalog": "db.table"},
                "column": {"type": "string", "x-catalog": "db.column"}
            }}}}}"#;

fn may_begin(grammar: &CompiledGrammar, text: &str) -> bool {
    grammar.matcher().commit_bytes(text.as_bytes()).is_ok()
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let tokens = Vocabulary::encoding("o200k_base")?;
    let grammar = tokens.json_schema(QUERY)?;
    let bound = grammar.bind(&Bindings::new().catalog("db", schema()?))?;

    let of_orders = r#"{"select": [{"table": "orders", "column": ""#;
    for column in TABLES.iter().flat_map(|(_, columns)| columns.iter()) {
        let may = may_begin(&bound, &format!("{of_orders}{column}\""));
        println!("orders.{column}: {}", if may { "may follow" } else { "no column of it" });
        assert_eq!(may, TABLES[1].1.contains(column), "{column}");
    }
    // In any order: the column first, and only tables that have it may follow.
    let total = r#"{"select": [{"column": "total", "table": ""#;
    assert!(!may_begin(&bound, &format!("{total}customers")));
    assert!(may_begin(&bound, &format!("{total}orders\"")));
    Ok(())
}
