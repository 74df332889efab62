//! Rows of any table as JSON objects.

use std::fmt;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use serde_json::{Map, Value};

use crate::error::{Fault, Kind};
use crate::layout::is_time;
use crate::table::Table;
use crate::values::{Values, values};
use crate::{TableError, TableFormat};

/// A row of a table on its way to a reader.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Number of the row, from 1.
    pub number: u64,
    /// Rows in all.
    pub of: u64,
    /// The columns that were chosen and are not null, as JSON.
    pub values: Map<String, Value>,
}

/// A table that is open: its columns and the number of its rows are known, and any run of them can
/// be read.
pub struct TableRows {
    path: PathBuf,
    /// `None` for an empty file, which has neither rows nor columns.
    table: Option<Table>,
}

impl fmt::Debug for TableRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableRows").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableRows {
    /// Opens a file, and reads what it says of itself.
    ///
    /// # Errors
    /// When the file cannot be read or is not of `format`.
    pub fn open(path: &Path, format: TableFormat) -> Result<Self, TableError> {
        let table = Table::open(path, format).map_err(|fault| TableError::new(path, fault))?;
        Ok(Self { path: path.to_owned(), table })
    }

    /// Opens a file that was opened before, from its first byte on; `name` is what errors call it.
    ///
    /// # Errors
    /// When the file cannot be read or is not of `format`.
    pub fn of(name: &Path, file: File, format: TableFormat) -> Result<Self, TableError> {
        let table = Table::of(file, format).map_err(|fault| TableError::new(name, fault))?;
        Ok(Self { path: name.to_owned(), table })
    }

    /// The names of all columns.
    pub fn column_names(&self) -> Vec<&str> {
        let fields = self.table.iter().flat_map(|table| table.schema().fields());
        fields.map(|field| field.name().as_str()).collect()
    }

    /// The names of the columns that are points in time.
    pub fn timestamp_names(&self) -> Vec<&str> {
        let fields = self.table.iter().flat_map(|table| table.schema().fields());
        let times = fields.filter(|field| is_time(field.data_type()));
        times.map(|field| field.name().as_str()).collect()
    }

    /// Rows in all.
    pub fn num_rows(&self) -> u64 {
        self.table.as_ref().map_or(0, Table::num_rows)
    }

    /// Ranges of the file's bytes that decide these rows: row groups or batches that have one of
    /// them, dictionaries, and what the file says of itself. Where these bytes are the same, so are
    /// the rows. Rows are counted from 0.
    ///
    /// # Errors
    /// When the file names places that there are not.
    pub fn bytes_of(&self, rows: &Range<u64>) -> Result<Vec<Range<u64>>, TableError> {
        let Some(table) = &self.table else { return Ok(Vec::new()) };
        table.bytes_of(rows).map_err(|fault| TableError::new(&self.path, fault))
    }

    /// Hands on these rows (counted from 0) in order, as objects of these columns; `each` ends the
    /// reading by `Break`. Row groups and batches that have none of them are not read. A
    /// [number](TableRow::number) is the row's in the whole table.
    ///
    /// # Errors
    /// When the file is damaged; when a column has a type, or a value, that JSON does not have.
    ///
    /// # Panics
    /// When the table has fewer rows.
    pub fn read(
        self,
        columns: &[String],
        rows: Range<u64>,
        each: &mut dyn FnMut(TableRow) -> ControlFlow<()>,
    ) -> Result<(), TableError> {
        let num_rows = self.num_rows();
        assert!(rows.start <= rows.end && rows.end <= num_rows, "rows {rows:?} of {num_rows}");
        let Some(table) = self.table else { return Ok(()) };
        read(table, columns, rows, each).map_err(|fault| TableError::new(&self.path, fault))
    }
}

fn read(
    table: Table,
    columns: &[String],
    rows: Range<u64>,
    each: &mut dyn FnMut(TableRow) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let fields = table.schema().fields();
    let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    let used: Vec<usize> = (0..names.len()).filter(|&at| columns.contains(&names[at])).collect();
    let names: Vec<&str> = used.iter().map(|&at| names[at].as_str()).collect();
    let mut ended = false;
    let read = table.show_rows(&used, rows, &mut |rows, before, of| {
        let flow = hand_on(rows, &names, before, of, each)?;
        ended = flow.is_break();
        if ended { Err(Kind::Ended.into()) } else { Ok(()) }
    });
    if ended { Ok(()) } else { read }
}

pub(crate) fn hand_on(
    rows: &RecordBatch,
    names: &[&str],
    before: u64,
    of: u64,
    each: &mut dyn FnMut(TableRow) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Fault> {
    let columns: Vec<(&str, Values<'_>)> = names
        .iter()
        .zip(rows.columns())
        .map(|(name, column)| {
            let read = values(&**column).map_err(|kind| Fault::of_column(name, kind))?;
            Ok((*name, read))
        })
        .collect::<Result<_, Fault>>()?;
    for index in 0..rows.num_rows() {
        let number = before + 1 + index as u64;
        let mut values = Map::with_capacity(columns.len());
        for (name, read) in &columns {
            let bad = |bad: crate::values::BadValue| bad.of_item(&format!("row {number}"));
            match read(index).map_err(|value| Fault::at(number, name, bad(value)))? {
                Value::Null => {}
                value => {
                    values.insert((*name).to_owned(), value);
                }
            }
        }
        if each(TableRow { number, of, values }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
