//! Attributes of items as columns in rank order.

mod builder;
pub(crate) mod codes;
pub(crate) mod column;
pub(crate) mod dictionary;
mod error;
pub(crate) mod fields;
mod freeze;
mod interner;
pub(crate) mod kind;
pub(crate) mod lists;
mod reader;
mod spans;
pub(crate) mod texts;
pub(crate) mod timestamp;

use palmette_mapped::{SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::filter::{FilterError, FilterErrorKind, split_path};
use crate::message_values::{nearest, shown_names};

pub use builder::{ColumnConflict, ColumnsBuilder};
pub use column::ColumnDescription;
use column::{Column, ColumnMeta};
pub use error::AttributeError;
pub use kind::{ColumnKind, UnknownKind, id_text, whole, whole_number};
pub use reader::{ColumnReader, SortKey};
pub use timestamp::{date_of_digits, parse_instant};

/// The most columns there can be.
const MAX_COLUMNS: usize = 1024;
/// The most rows there can be: codes are at most a u32, and 0 is none.
const MAX_ROWS: usize = u32::MAX as usize;
/// The most bytes of a value as text. As JSON text it may grow sixfold, which still is a piece of
/// [`spans::Spans`].
const MAX_VALUE_BYTES: usize = 1 << 20;
const _: () = assert!(MAX_VALUE_BYTES * 6 + 2 <= spans::MAX_PIECE);
/// Depth to which lists and objects may nest.
/// Readers of JSON allow 128: a value that is read back may be nested in something else.
const MAX_NESTING: usize = 100;

/// The attributes of all items, in rank order.
///
/// A column is a dictionary of its distinct values in ascending order and one code of 1, 2 or 4
/// bytes a rank. Loaded from a mapped file, nothing is read until it is asked for.
///
/// Values come back as they were given, but for null, which is as if the attribute were missing;
/// zero, which loses its sign; timestamps, which come back as RFC 3339 text in UTC; and whole
/// numbers of a column that holds both `3` and `3.0`, which come back as `3.0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    num_ranks: u64,
    columns: Vec<Column>,
}

impl Columns {
    fn new(num_ranks: u64, columns: Vec<Column>) -> Self {
        Self { num_ranks, columns }
    }

    /// No columns, of so many items.
    pub fn empty(num_ranks: u64) -> Self {
        Self::new(num_ranks, Vec::new())
    }

    /// The number of items.
    pub fn num_ranks(&self) -> u64 {
        self.num_ranks
    }

    /// All attributes of an item, in the order of the columns; none past the last rank.
    pub fn row(&self, rank: u64) -> Map<String, Value> {
        let value = |column: &Column| column.dictionary.value(column.codes.get(rank));
        let entry = |column: &Column| Some((column.name.clone(), value(column)?));
        self.columns.iter().filter_map(entry).collect()
    }

    /// One attribute of an item; `None` when the item has no such attribute.
    pub fn get(&self, rank: u64, name: &str) -> Option<Value> {
        let column = self.column(name)?;
        column.dictionary.value(column.codes.get(rank))
    }

    /// Describes each column, in their order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = ColumnDescription<'_>> {
        self.columns.iter().map(Column::description)
    }

    /// Bytes of all columns, in memory and in a file.
    pub fn bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.bytes() as u64).sum()
    }

    /// Adds the arrays to a file; [`load`](Self::load) finds them by what is returned.
    pub fn save(&self, out: &mut SectionsOut) -> ColumnsMeta {
        let columns = self.columns.iter().map(|column| column.save(out)).collect();
        ColumnsMeta { num_ranks: self.num_ranks, columns }
    }

    /// Columns that [`save`](Self::save) put into a file. Only lengths are looked at: where the
    /// contents are damaged, accessors and filters answer something wrong, but do not panic;
    /// [`check`](Self::check) finds it.
    ///
    /// # Errors
    /// When `meta` asks for something that the file has not.
    pub fn load(meta: &ColumnsMeta, sections: &SectionsIn) -> Result<Self, String> {
        let ColumnsMeta { num_ranks, ref columns } = *meta;
        if num_ranks > MAX_ROWS as u64 || columns.len() > MAX_COLUMNS {
            let (columns, ranks) = (columns.len(), num_ranks);
            return Err(format!("{columns} columns of {ranks} ranks are over the limit"));
        }
        let load = |column: &ColumnMeta| {
            let load = Column::load(column, sections, num_ranks);
            load.map_err(|problem| format!("column {:?}: {problem}", column.name))
        };
        Ok(Self { num_ranks, columns: columns.iter().map(load).collect::<Result<_, _>>()? })
    }

    /// Checks all that [`load`](Self::load) takes for granted. Cost: reads everything once.
    ///
    /// # Errors
    /// Names the column and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        for (index, column) in self.columns.iter().enumerate() {
            let problem = |problem: &str| format!("column {:?}: {problem}", column.name);
            if self.columns[..index].iter().any(|other| other.name == column.name) {
                return Err(problem("there are two of this name"));
            }
            column.check().map_err(|error| problem(&error))?;
        }
        Ok(())
    }

    /// True for the name of a field within a column of JSON, such as `variants.color`.
    pub fn is_field(&self, name: &str) -> bool {
        let found = split_path(name, |name| self.column(name).is_some());
        found.is_some_and(|(column, fields)| {
            let column = self.column(column).expect("it was found");
            !fields.is_empty() && column.dictionary.kind() == ColumnKind::Json
        })
    }

    /// The error of a filter that names an attribute, or a field within one, that no item has.
    pub fn unknown_name(&self, name: &str) -> FilterError {
        let names = || self.columns().map(|column| column.name);
        let of_column = split_path(name, |name| self.column(name).is_some())
            .and_then(|(column, _)| self.column(column))
            .filter(|column| column.dictionary.kind() != ColumnKind::Json);
        if let Some(column) = of_column {
            let (name, column, kind) =
                (name.to_owned(), column.name.clone(), column.dictionary.kind());
            return FilterErrorKind::NoFields { name, column, kind }.into();
        }
        if name == "_id" {
            return FilterErrorKind::IdAsAttribute.into();
        }
        let nearest = nearest(name, names()).map(str::to_owned);
        let (column, columns) = (name.to_owned(), shown_names(names()));
        FilterErrorKind::UnknownColumn { column, nearest, columns }.into()
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// Serialised place of [`Columns`] in a file. Made by [`Columns::save`]; what it looks like when
/// serialised is part of the file's format.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ColumnsMeta {
    num_ranks: u64,
    columns: Vec<ColumnMeta>,
}
