//! Batches of rows in memory, such as those that another library streams.

use std::ops::ControlFlow;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use palmette_catalog::readers::{CheckedSink, ItemSink, Place, ReadSummary, SourceOptions};

use crate::error::{Fault, Kind};
use crate::layout::{Layout, is_time};
use crate::row_objects::hand_on;
use crate::rows::push_rows;
use crate::{TableError, TableRow};

/// Reads the items of batches of one schema into a sink, in order; `source_name` is what errors
/// call them, `options` say how they name their columns and spell their codes.
///
/// # Errors
/// As [`read_into`](crate::read_into), and when a batch is an error or of another schema.
pub fn read_batches_into(
    source_name: &str,
    schema: &Schema,
    batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    options: &SourceOptions,
    sink: &mut impl ItemSink,
) -> Result<ReadSummary, TableError> {
    let mut sink = CheckedSink::new(sink, Place::Row).with_options(options);
    let read = || {
        let layout = Layout::of(schema, options, None)?;
        if !layout.timestamps.is_empty() {
            sink.timestamps(&layout.timestamps);
        }
        let mut rows_before = 0;
        for batch in batches {
            let batch = batch.and_then(|batch| batch.project(&layout.used)).map_err(damaged)?;
            push_rows(&batch, &layout, rows_before + 1, &mut sink)?;
            rows_before += batch.num_rows() as u64;
        }
        Ok(())
    };
    read().map_err(|fault: Fault| TableError::new(Path::new(source_name), fault))?;
    Ok(sink.finish())
}

/// Hands on the rows of batches of one schema in order, as objects of all their columns; `each`
/// ends the reading by `Break`. `of` is 0 in rows of batches whose number is not known beforehand.
///
/// # Errors
/// When a column has a type, or a value, that JSON does not have, or a batch is an error.
pub fn read_batch_rows(
    source_name: &str,
    schema: &Schema,
    batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    each: &mut dyn FnMut(TableRow) -> ControlFlow<()>,
) -> Result<(), TableError> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let read = || {
        let mut rows_before = 0;
        for batch in batches {
            let batch = batch.map_err(damaged)?;
            if hand_on(&batch, &names, rows_before, 0, each)?.is_break() {
                break;
            }
            rows_before += batch.num_rows() as u64;
        }
        Ok(())
    };
    read().map_err(|fault: Fault| TableError::new(Path::new(source_name), fault))
}

/// The names of columns that are points in time.
pub fn time_columns(schema: &Schema) -> Vec<String> {
    let fields = schema.fields().iter().filter(|field| is_time(field.data_type()));
    fields.map(|field| field.name().clone()).collect()
}

fn damaged(error: ArrowError) -> Fault {
    Kind::Damaged(error.to_string()).into()
}
