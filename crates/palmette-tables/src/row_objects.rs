//! Rows of any table as JSON objects.

use std::ops::ControlFlow;
use std::path::Path;

use arrow_array::RecordBatch;
use serde_json::{Map, Value};

use crate::error::{Fault, Kind};
use crate::table::Table;
use crate::values::{Values, values};
use crate::{TableError, TableFormat};

/// A row of a table on its way to a reader.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    /// Its number, from 1.
    pub number: u64,
    /// Rows in all.
    pub of: u64,
    /// The columns that were chosen and are not null, as JSON.
    pub values: Map<String, Value>,
}

/// Says which columns are read, by the names of all; or in a sentence why none can be.
pub type ChooseColumns<'a> = dyn FnMut(&[&str]) -> Result<Vec<String>, String> + 'a;

/// Hands on the rows of a table in order, as objects of the columns that `choose` picks by the names of all; `each` ends
/// the reading by `Break`. An empty file has no rows.
///
/// # Errors
/// When the file cannot be read or is not of `format`; when nothing can be chosen, in the words of `choose`; when a
/// chosen column has a type, or a value, that JSON does not have.
pub fn read_rows(
    path: &Path,
    format: TableFormat,
    choose: &mut ChooseColumns<'_>,
    each: &mut dyn FnMut(TableRow) -> ControlFlow<()>,
) -> Result<(), TableError> {
    read(path, format, choose, each).map_err(|fault| TableError::new(path, fault))
}

fn read(
    path: &Path,
    format: TableFormat,
    choose: &mut ChooseColumns<'_>,
    each: &mut dyn FnMut(TableRow) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let Some(table) = Table::open(path, format)? else { return Ok(()) };
    let fields = table.schema().fields();
    let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    let chosen = choose(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let chosen = chosen.map_err(Kind::Columns)?;
    let used: Vec<usize> = (0..names.len()).filter(|&at| chosen.contains(&names[at])).collect();
    let names: Vec<&str> = used.iter().map(|&at| names[at].as_str()).collect();
    let mut ended = false;
    let read = table.for_each_batch(&used, &mut |rows, before, of| {
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
