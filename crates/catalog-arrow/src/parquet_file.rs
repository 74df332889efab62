//! Batches of rows from Parquet.

use std::fs::File;
use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::Kind;
use crate::guard::guard;
use crate::table::BATCH_ROWS;

pub(crate) struct ParquetFile {
    builder: ParquetRecordBatchReaderBuilder<File>,
    /// Bytes of the file.
    len: u64,
}

impl ParquetFile {
    pub(crate) fn open(file: File) -> Result<ParquetFile, Kind> {
        let len = file.metadata()?.len();
        Ok(ParquetFile { builder: guard(|| ParquetRecordBatchReaderBuilder::try_new(file))?, len })
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.builder.schema()
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.groups().last().map_or(0, |rows| rows.end)
    }

    /// The rows of each row group, by the counts that the reader goes by; it takes none below zero.
    fn groups(&self) -> Vec<Range<u64>> {
        let mut end: u64 = 0;
        let groups = self.builder.metadata().row_groups().iter();
        groups
            .map(|group| {
                let start = end;
                end = start.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
                start..end
            })
            .collect()
    }

    /// Numbers of the row groups that have one of these rows.
    fn groups_of(&self, rows: &Range<u64>) -> Vec<usize> {
        let groups = self.groups().into_iter().enumerate();
        let used = groups.filter(|(_, own)| own.start < rows.end && rows.start < own.end);
        used.map(|(group, _)| group).collect()
    }

    /// Ranges of bytes: these rows' row groups, and what comes after the last of all, the footer.
    pub(crate) fn bytes_of(&self, rows: &Range<u64>) -> Result<Vec<Range<u64>>, Kind> {
        let metadata = self.builder.metadata();
        let mut last = 0;
        let mut groups = Vec::with_capacity(metadata.num_row_groups());
        for group in metadata.row_groups() {
            let (mut start, mut end) = (u64::MAX, 0);
            for column in group.columns() {
                // It panics on a place below zero.
                let (from, bytes) = guard(|| Ok::<_, std::fmt::Error>(column.byte_range()))?;
                (start, end) = (start.min(from), end.max(from.saturating_add(bytes)));
            }
            groups.push(start.min(end)..end);
            last = end.max(last);
        }
        let mut bytes: Vec<Range<u64>> =
            self.groups_of(rows).into_iter().map(|group| groups[group].clone()).collect();
        bytes.push(last.min(self.len)..self.len);
        Ok(bytes)
    }

    /// These rows, with the columns of these numbers. Row groups that have none of them are not
    /// read.
    pub(crate) fn batches(
        self,
        columns: &[usize],
        rows: Range<u64>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, Kind>> + use<>, Kind> {
        let (groups, own) = (self.groups_of(&rows), self.groups());
        let before = groups.first().map_or(0, |&first| rows.start.saturating_sub(own[first].start));
        let builder = self.builder;
        let columns = ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied());
        let builder = builder.with_projection(columns).with_batch_size(BATCH_ROWS);
        let builder = match rows == (0..own.last().map_or(0, |rows| rows.end)) {
            true => builder,
            false => builder
                .with_row_groups(groups)
                .with_offset(usize::try_from(before).unwrap_or(usize::MAX))
                .with_limit(usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX)),
        };
        let mut reader = guard(|| builder.build())?;
        // Callers stop at the first error: after a panic the reader is not asked again.
        Ok(std::iter::from_fn(move || guard(|| reader.next().transpose()).transpose()))
    }
}
