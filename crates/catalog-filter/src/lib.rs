//! Attribute columns in rank order, and filters over them as sets of ranks.
//!
//! Items have attributes: a brand, a price, whether they are in stock. Where items are kept in some
//! fixed order, an item is its **rank**, its place in that order. This crate keeps the attributes
//! as columns in rank order ([`Columns`]), reads what a request asks of them ([`Filter`]), and
//! answers with the set of ranks that match ([`RankSet`]). What the order is it does not know.
//!
//! ```
//! use palmette_catalog_filter::{ColumnKind, ColumnsBuilder, Filter};
//! use serde_json::json;
//!
//! let mut builder = ColumnsBuilder::new();
//! builder.declare("added", ColumnKind::Timestamp)?;
//! for row in [
//!     json!({"brand": "Acme", "price": 12, "tags": ["oak", "small"], "added": "2026-11-01"}),
//!     json!({"brand": "Zeta", "price": 7.5, "in_stock": true}),
//!     json!({"brand": "Acme", "price": 30, "in_stock": true, "tags": []}),
//! ] {
//!     builder.push_row(row.as_object().unwrap())?;
//! }
//! // Rank 0 is the second row, and so on; `None` would keep the order of the rows.
//! let columns = builder.finish(Some(&[1, 2, 0]), |_, _| ());
//! assert_eq!(columns.get(0, "price"), Some(json!(7.5)));
//! assert_eq!(columns.row(2)["added"], "2026-11-01T00:00:00Z");
//!
//! let rank_of = |id: &str| ["zeta-1", "acme-2", "acme-1"].iter().position(|&x| x == id);
//! let select = |filter: &str| {
//!     let filter = Filter::parse(filter)?;
//!     let set = columns.select(&filter, &|id| rank_of(id).map(|rank| rank as u64))?;
//!     Ok::<Vec<u64>, palmette_catalog_filter::FilterError>(set.iter().collect())
//! };
//! assert_eq!(select(r#"{"must": {"match": {"brand": "Acme"}}}"#)?, [1, 2]);
//! assert_eq!(select(r#"{"must": {"range": {"price": {"gte": 10, "lt": 20}}}}"#)?, [2]);
//! assert_eq!(select(r#"{"must": {"match": {"in_stock": true}}, "exclude": ["acme-2"]}"#)?, [0]);
//! assert_eq!(select(r#"{"must_not": {"match": {"tags": "oak"}}}"#)?, [0, 1]);
//! assert_eq!(
//!     select(r#"{"must": {"match": {"bramd": "Acme"}}}"#).unwrap_err().to_string(),
//!     "no item has the attribute \"bramd\" (did you mean \"brand\"?); \
//!      there are brand, price, tags, added, in_stock",
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Columns
//!
//! Every column is a sorted dictionary of its distinct values, and for each rank the number of its
//! value there, in 1, 2 or 4 bytes. What a column's values are decides its [`ColumnKind`]; where
//! they are of several kinds it is [`ColumnKind::Json`], which gives its values back but cannot be
//! filtered on. Columns are saved to and loaded from the files of [`palmette_mapped`]; loaded from
//! a mapped file they take no memory until they are read.
//!
//! # Filters
//!
//! [`Filter`] says how they are written and what they mean; [`Filter::matches`] is that meaning in
//! code. [`Columns::select`] looks each value up once and then compares codes, 64 at a time: three
//! conditions over 20 million items take 7 ms on one thread
//! (`cargo bench -p palmette-catalog-filter`). In a [`RankSet`] it is then a matter of nanoseconds
//! whether any item in a range of ranks matches.
//!
//! # Limits
//!
//! 1024 columns, 2^32 − 1 rows, 1 MiB a value as text, nested 100 deep; filters 16 deep with 1024
//! conditions and 65,536 values and ids. Beyond them there is an error that says so.
#![forbid(unsafe_code)]

mod columns;
mod filter;
mod message_values;
mod select;
mod unique_keys;

pub use columns::{
    AttributeError, ColumnConflict, ColumnDescription, ColumnKind, ColumnReader, Columns,
    ColumnsBuilder, ColumnsMeta, SortKey, UnknownKind, date_of_digits, id_text, parse_instant,
    whole, whole_number,
};
pub use filter::{Filter, FilterError, Moment, NoMoment};
pub use message_values::{grouped, nearest};
pub use palmette_mapped::{Members, RankSet};
pub use unique_keys::{UniqueValue, parse_unique};
