//! Recommendations as rows of a Parquet or Arrow file.

use std::fmt;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use arrow_array::builder::{Float32Builder, ListBuilder, StringBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::TableFormat;

/// One user's recommendations, or the reason why there are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The user.
    pub user: Option<String>,
    /// Ids of the items, best first.
    pub items: Vec<String>,
    /// Score of each.
    pub scores: Vec<f32>,
    /// Semantic ID of each.
    pub codes: Vec<Vec<u32>>,
    /// Items of the history that were unknown and left out.
    pub skipped: u32,
    /// The reason.
    pub error: Option<String>,
}

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

/// Writes answers, some thousands at a time: `user` (text), `items` (list of texts), `scores` (list of 32-bit floats),
/// `codes` (list of lists of 32-bit integers), `skipped` (32-bit integer), `error` (text).
pub struct AnswerWriter {
    schema: Arc<Schema>,
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
    /// A writer to an empty file. Parquet is compressed with Snappy.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn new(file: File, format: TableFormat) -> Result<Self, WriteError> {
        let list = |of| DataType::List(Arc::new(Field::new_list_field(of, true)));
        let schema = Arc::new(Schema::new(vec![
            Field::new("user", DataType::Utf8, true),
            Field::new("items", list(DataType::Utf8), true),
            Field::new("scores", list(DataType::Float32), true),
            Field::new("codes", list(list(DataType::UInt32)), true),
            Field::new("skipped", DataType::UInt32, false),
            Field::new("error", DataType::Utf8, true),
        ]));
        let file = match format {
            TableFormat::Parquet => {
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
                let properties = Some(properties.build());
                Writer::Parquet(Box::new(ArrowWriter::try_new(
                    file,
                    Arc::clone(&schema),
                    properties,
                )?))
            }
            TableFormat::Arrow => {
                Writer::Arrow(Box::new(FileWriter::try_new_buffered(file, &schema)?))
            }
        };
        Ok(Self { schema, file })
    }

    /// Writes answers. The lists of one with an error are null.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn push(&mut self, answers: &[Answer]) -> Result<(), WriteError> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns(answers))?;
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

fn columns(answers: &[Answer]) -> Vec<ArrayRef> {
    let (mut users, mut errors) = (StringBuilder::new(), StringBuilder::new());
    let mut items = ListBuilder::new(StringBuilder::new());
    let mut scores = ListBuilder::new(Float32Builder::new());
    let mut codes = ListBuilder::new(ListBuilder::new(UInt32Builder::new()));
    let mut skipped = UInt32Builder::new();
    for answer in answers {
        let is_answered = answer.error.is_none();
        users.append_option(answer.user.as_deref());
        errors.append_option(answer.error.as_deref());
        skipped.append_value(answer.skipped);
        answer.items.iter().for_each(|id| items.values().append_value(id));
        items.append(is_answered);
        answer.scores.iter().for_each(|score| scores.values().append_value(*score));
        scores.append(is_answered);
        for id in &answer.codes {
            id.iter().for_each(|code| codes.values().values().append_value(*code));
            codes.values().append(true);
        }
        codes.append(is_answered);
    }
    vec![
        Arc::new(users.finish()),
        Arc::new(items.finish()),
        Arc::new(scores.finish()),
        Arc::new(codes.finish()),
        Arc::new(skipped.finish()),
        Arc::new(errors.finish()),
    ]
}
