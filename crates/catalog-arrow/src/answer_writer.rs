//! Writer of recommendations: records of answers to a Parquet or Arrow file.

use std::fmt;
use std::fs::File;
use std::io::BufWriter;

use arrow_ipc::writer::FileWriter;
use arrow_schema::ArrowError;
use palmette_recommend::offline::AnswerRecord;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::TableFormat;
use crate::answers::{answer_batch, answer_schema};

/// Rows of a row group: what a writer keeps in memory, and a reader takes at once.
const GROUP_ROWS: usize = 1 << 17;

/// An answer that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot be written: {0}")]
pub struct WriteError(String);

impl From<ParquetError> for WriteError {
    fn from(error: ParquetError) -> Self {
        Self(error.to_string())
    }
}

impl From<ArrowError> for WriteError {
    fn from(error: ArrowError) -> Self {
        Self(error.to_string())
    }
}

/// Writes answers, some thousands at a time, in [the columns of answers](answer_schema).
pub struct AnswerWriter {
    file: Writer,
}

enum Writer {
    Parquet(Box<ArrowWriter<File>>),
    Arrow(Box<FileWriter<BufWriter<File>>>),
}

impl fmt::Debug for AnswerWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerWriter").finish_non_exhaustive()
    }
}

impl AnswerWriter {
    /// A writer to an empty file. Parquet is compressed with Snappy, in row groups of 131,072
    /// answers.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn new(file: File, format: TableFormat) -> Result<Self, WriteError> {
        let schema = answer_schema();
        let file = match format {
            TableFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(GROUP_ROWS))
                    .build();
                Writer::Parquet(Box::new(ArrowWriter::try_new(file, schema, Some(properties))?))
            }
            TableFormat::Arrow => {
                Writer::Arrow(Box::new(FileWriter::try_new_buffered(file, &schema)?))
            }
        };
        Ok(Self { file })
    }

    /// Writes answers. The lists of one with an error are null.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, answers: &[AnswerRecord]) -> Result<(), WriteError> {
        let batch = answer_batch(answers);
        match &mut self.file {
            Writer::Parquet(file) => file.write(&batch)?,
            Writer::Arrow(file) => file.write(&batch)?,
        }
        Ok(())
    }

    /// Writes what a file ends with.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> Result<(), WriteError> {
        match self.file {
            Writer::Parquet(file) => file.close().map(drop)?,
            Writer::Arrow(mut file) => file.finish()?,
        }
        Ok(())
    }
}
