//! Batches of rows from Parquet.

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::Kind;
use crate::guard::guard;
use crate::table::BATCH_ROWS;

pub(crate) struct ParquetFile {
    builder: ParquetRecordBatchReaderBuilder<File>,
}

impl ParquetFile {
    pub(crate) fn open(file: File) -> Result<ParquetFile, Kind> {
        Ok(ParquetFile { builder: guard(|| ParquetRecordBatchReaderBuilder::try_new(file))? })
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.builder.schema()
    }

    pub(crate) fn num_rows(&self) -> u64 {
        // The counts of all row groups, which the reader goes by; it takes none below zero.
        let groups = self.builder.metadata().row_groups().iter();
        groups
            .map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
            .fold(0, u64::saturating_add)
    }

    /// The rows, with the columns of these numbers.
    pub(crate) fn batches(
        self,
        columns: &[usize],
    ) -> Result<impl Iterator<Item = Result<RecordBatch, Kind>> + use<>, Kind> {
        let builder = self.builder;
        let columns = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        let builder = builder.with_projection(columns).with_batch_size(BATCH_ROWS);
        let mut reader = guard(|| builder.build())?;
        // Callers stop at the first error: after a panic the reader is not asked again.
        Ok(std::iter::from_fn(move || guard(|| reader.next().transpose()).transpose()))
    }
}
