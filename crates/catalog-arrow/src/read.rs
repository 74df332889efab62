//! Items from a file to a sink.

use std::fs::File;
use std::path::Path;

use palmette_catalog::readers::{CheckedSink, ItemSink, Place, ReadSummary, SourceOptions};

use crate::error::Fault;
use crate::layout::Layout;
use crate::rows::push_rows;
use crate::table::Table;
use crate::{TableError, TableFormat};

/// Reads the items of a table into a sink, in order.
///
/// `attributes` names the attributes to read; `None` reads them all. `progress(rows, of)` is called
/// every 8,192 rows or fewer with the rows read and the rows in all. An empty file has no items.
///
/// # Errors
/// When the file cannot be read or is not of `format`; when the columns of IDs or codes are missing
/// or a column has a type that cannot be used; for the first row without an ID, with a code that is
/// negative or above [`MAX_CODE`](palmette_catalog::index::MAX_CODE), or with a value that JSON
/// cannot hold; and when the sink refuses an item. The sink then has the items before it.
pub fn read_into(
    path: &Path,
    format: TableFormat,
    attributes: Option<&[String]>,
    sink: &mut impl ItemSink,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ReadSummary, TableError> {
    let options = SourceOptions::default();
    Table::open(path, format)
        .and_then(|table| read(table, &options, attributes, sink, progress))
        .map_err(|fault| TableError::new(path, fault))
}

/// Reads the items of a table that is open, from its first byte on; `source_name` is what errors
/// call it, `options` say how it names its columns and spells its codes.
///
/// # Errors
/// As [`read_into`].
pub fn read_file_into(
    source_name: &Path,
    file: File,
    format: TableFormat,
    options: &SourceOptions,
    sink: &mut impl ItemSink,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ReadSummary, TableError> {
    Table::of(file, format)
        .and_then(|table| read(table, options, None, sink, progress))
        .map_err(|fault| TableError::new(source_name, fault))
}

fn read(
    table: Option<Table>,
    options: &SourceOptions,
    attributes: Option<&[String]>,
    sink: &mut impl ItemSink,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ReadSummary, Fault> {
    let Some(table) = table else { return Ok(ReadSummary::default()) };
    let mut sink = CheckedSink::new(sink, Place::Row).with_options(options);
    let schema = table.schema();
    let layout = Layout::of(schema, options, attributes)?;
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    sink.columns(&names);
    pass(table, &layout, &mut sink, progress)?;
    Ok(sink.finish())
}

fn pass<S: ItemSink>(
    table: Table,
    layout: &Layout,
    sink: &mut CheckedSink<'_, S>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Fault> {
    if !layout.timestamps.is_empty() {
        sink.timestamps(&layout.timestamps);
    }
    table.for_each_batch(&layout.used, &mut |rows, rows_before, num_rows| {
        push_rows(rows, layout, rows_before + 1, sink)?;
        progress(rows_before + rows.num_rows() as u64, num_rows);
        Ok(())
    })
}
