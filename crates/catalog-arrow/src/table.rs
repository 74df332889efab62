//! A file of either format, opened.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
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

    pub(crate) fn num_rows(&self) -> u64 {
        match self {
            #[cfg(feature = "parquet")]
            Table::Parquet(file) => file.num_rows(),
            Table::Arrow(file) => file.num_rows(),
        }
    }

    /// Ranges of the file's bytes that decide these rows.
    pub(crate) fn bytes_of(&self, rows: &Range<u64>) -> Result<Vec<Range<u64>>, Fault> {
        match self {
            #[cfg(feature = "parquet")]
            Table::Parquet(file) => Ok(file.bytes_of(rows)?),
            Table::Arrow(file) => Ok(file.bytes_of(rows)),
        }
    }

    /// Shows all rows, as [`show_rows`](Self::show_rows).
    pub(crate) fn for_each_batch(
        self,
        columns: &[usize],
        show: &mut dyn FnMut(&RecordBatch, u64, u64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let all = 0..self.num_rows();
        self.show_rows(columns, all, show)
    }

    /// Shows these rows, with the columns of these numbers (ascending), at most [`BATCH_ROWS`] at a
    /// time, each time with how many of the table came before and how many it has in all.
    pub(crate) fn show_rows(
        self,
        columns: &[usize],
        rows: Range<u64>,
        show: &mut dyn FnMut(&RecordBatch, u64, u64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let num_rows = self.num_rows();
        match self {
            #[cfg(feature = "parquet")]
            Table::Parquet(file) => {
                show_all(file.batches(columns, rows.clone())?, rows, num_rows, show)
            }
            Table::Arrow(file) => {
                show_all(file.batches(columns, rows.clone()), rows, num_rows, show)
            }
        }
    }
}

fn show_all(
    batches: impl Iterator<Item = Result<RecordBatch, Kind>>,
    rows: Range<u64>,
    num_rows: u64,
    show: &mut dyn FnMut(&RecordBatch, u64, u64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut rows_read = 0;
    for batch in batches {
        let batch = batch?;
        for start in (0..batch.num_rows()).step_by(BATCH_ROWS) {
            let part = batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
            show(&part, rows.start + rows_read, num_rows)?;
            rows_read += part.num_rows() as u64;
        }
    }
    let said = rows.end - rows.start;
    if rows_read != said {
        let counts = format!("it says that it has {said} rows, and has {rows_read}");
        return Err(Kind::Damaged(counts).into());
    }
    Ok(())
}
