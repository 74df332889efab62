//! A file of either format, opened.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::TableFormat;
use crate::arrow_file::ArrowFile;
use crate::error::{Fault, Kind};
use crate::format::Content;
#[cfg(feature = "parquet")]
use crate::parquet_file::ParquetFile;

/// Rows handed on at a time, and read of Parquet at a time.
pub(crate) const BATCH_ROWS: usize = 8192;

/// A table whose columns and number of rows are known.
pub(crate) enum Table {
    #[cfg(feature = "parquet")]
    Parquet(ParquetFile),
    Arrow(ArrowFile),
}

impl Table {
    /// Opens the file at a path; `None` for an empty one.
    pub(crate) fn open(path: &Path, format: TableFormat) -> Result<Option<Table>, Fault> {
        Table::of(File::open(path).map_err(Kind::Io)?, format)
    }

    /// The table in a file, from its first byte on; `None` for an empty one.
    pub(crate) fn of(mut file: File, format: TableFormat) -> Result<Option<Table>, Fault> {
        file.seek(SeekFrom::Start(0)).map_err(Kind::Io)?;
        let mut head = Vec::new();
        (&mut file).take(8).read_to_end(&mut head).map_err(Kind::Io)?;
        file.seek(SeekFrom::Start(0)).map_err(Kind::Io)?;
        if head.is_empty() {
            return Ok(None);
        }
        Ok(Some(match (format, Content::of(&head)) {
            #[cfg(feature = "parquet")]
            (TableFormat::Parquet, Some(Content::Parquet)) => {
                Table::Parquet(ParquetFile::open(file)?)
            }
            #[cfg(not(feature = "parquet"))]
            (TableFormat::Parquet, Some(Content::Parquet)) => return Err(Kind::NoParquet.into()),
            (TableFormat::Arrow, Some(content @ (Content::ArrowFile | Content::ArrowStream))) => {
                Table::Arrow(ArrowFile::open(file, content == Content::ArrowFile)?)
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
        }))
    }

    pub(crate) fn schema(&self) -> &Schema {
        match self {
            #[cfg(feature = "parquet")]
            Table::Parquet(file) => file.schema(),
            Table::Arrow(file) => file.schema(),
        }
    }

    /// Shows the rows, with the columns of these numbers (ascending), at most [`BATCH_ROWS`] at a time, each time with how many
    /// came before and how many there are in all.
    pub(crate) fn for_each_batch(
        self,
        columns: &[usize],
        show: &mut dyn FnMut(&RecordBatch, u64, u64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match self {
            #[cfg(feature = "parquet")]
            Table::Parquet(file) => {
                let num_rows = file.num_rows();
                show_all(file.batches(columns)?, num_rows, show)
            }
            Table::Arrow(file) => {
                let num_rows = file.num_rows();
                show_all(file.batches(columns), num_rows, show)
            }
        }
    }
}

fn show_all(
    batches: impl Iterator<Item = Result<RecordBatch, Kind>>,
    num_rows: u64,
    show: &mut dyn FnMut(&RecordBatch, u64, u64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut rows_read = 0;
    for batch in batches {
        let batch = batch?;
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let rows = batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
            show(&rows, rows_read, num_rows)?;
            rows_read += rows.num_rows() as u64;
        }
    }
    if rows_read != num_rows {
        let counts = format!("it says that it has {num_rows} rows, and has {rows_read}");
        return Err(Kind::Damaged(counts).into());
    }
    Ok(())
}
