//! From a file to a sink.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use arrow_array::RecordBatch;
use palmette_catalog::readers::{CheckedSink, ItemSink, Place, ReadSummary};

use crate::arrow_file::ArrowFile;
use crate::error::{Fault, Kind};
use crate::format::Content;
use crate::layout::Layout;
use crate::parquet_file::ParquetFile;
use crate::rows::push_rows;
use crate::{TableError, TableFormat};

/// Rows handed on between two calls of `progress`, and read of Parquet at a time.
pub(crate) const BATCH_ROWS: usize = 8192;

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
    read(path, format, attributes, sink, progress).map_err(|fault| TableError::new(path, fault))
}

fn read(
    path: &Path,
    format: TableFormat,
    attributes: Option<&[String]>,
    sink: &mut impl ItemSink,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ReadSummary, Fault> {
    let mut file = File::open(path).map_err(Kind::Io)?;
    let mut head = Vec::new();
    (&mut file).take(8).read_to_end(&mut head).map_err(Kind::Io)?;
    file.seek(SeekFrom::Start(0)).map_err(Kind::Io)?;
    if head.is_empty() {
        return Ok(ReadSummary::default());
    }

    let mut sink = CheckedSink::new(sink, Place::Row);
    match (format, Content::of(&head)) {
        (TableFormat::Parquet, Some(Content::Parquet)) => {
            let file = ParquetFile::open(file)?;
            let layout = Layout::of(file.schema(), attributes)?;
            let num_rows = file.num_rows();
            pass(file.batches(&layout)?, &layout, num_rows, &mut sink, progress)?;
        }
        (TableFormat::Arrow, Some(content @ (Content::ArrowFile | Content::ArrowStream))) => {
            let file = ArrowFile::open(file, content == Content::ArrowFile)?;
            let layout = Layout::of(file.schema(), attributes)?;
            let num_rows = file.num_rows();
            pass(file.batches(&layout), &layout, num_rows, &mut sink, progress)?;
        }
        (TableFormat::Parquet, Some(Content::ArrowFile)) => {
            let found = TableFormat::Arrow;
            return Err(Kind::OtherFormat { expected: format, found }.into());
        }
        (TableFormat::Arrow, Some(Content::Parquet)) => {
            let found = TableFormat::Parquet;
            return Err(Kind::OtherFormat { expected: format, found }.into());
        }
        (_, Some(Content::FeatherV1)) => return Err(Kind::FeatherV1.into()),
        (_, Some(Content::EncryptedParquet)) => return Err(Kind::Encrypted.into()),
        _ => return Err(Kind::OtherContent { expected: format, head }.into()),
    }
    Ok(sink.finish())
}

fn pass<S: ItemSink>(
    batches: impl Iterator<Item = Result<RecordBatch, Kind>>,
    layout: &Layout,
    num_rows: u64,
    sink: &mut CheckedSink<'_, S>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Fault> {
    if !layout.timestamps.is_empty() {
        sink.timestamps(&layout.timestamps);
    }
    let mut rows_read = 0;
    for batch in batches {
        let batch = batch?;
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let rows = batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
            push_rows(&rows, layout, rows_read + 1, sink)?;
            rows_read += rows.num_rows() as u64;
            progress(rows_read, num_rows);
        }
    }
    if rows_read != num_rows {
        let counts = format!("it says that it has {num_rows} rows, and has {rows_read}");
        return Err(Kind::Damaged(counts).into());
    }
    Ok(())
}
