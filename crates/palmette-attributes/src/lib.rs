//! Attribute columns in rank order, and filters over them as sets of ranks.
#![forbid(unsafe_code)]

mod columns;
mod filter;
mod rank_set;
mod select;
mod shown;

pub use columns::{
    AttributeError, ColumnDescription, ColumnKind, Columns, ColumnsBuilder, ColumnsMeta,
};
pub use filter::{Filter, FilterError};
pub use rank_set::{Members, RankSet};
