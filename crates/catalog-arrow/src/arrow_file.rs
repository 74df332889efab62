//! Batches of rows from Arrow's IPC format.

use std::collections::HashMap;
use std::fs::File;
use std::iter::once;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{Endianness, MessageHeader};
use arrow_schema::Schema;

use crate::error::Kind;
use crate::frames::{Frame, FrameFile, check_buffers, message};
use crate::guard::guard;

/// An Arrow file or stream whose messages have been found and counted.
pub(crate) struct ArrowFile {
    file: FrameFile,
    schema: Arc<Schema>,
    /// Dictionaries and batches, dictionaries before the batches that use them.
    frames: Vec<CountedFrame>,
    num_rows: u64,
}

/// A frame, and the rows that are in it; `None` for a dictionary, which any row may use.
#[derive(Clone, Debug)]
struct CountedFrame {
    frame: Frame,
    rows: Option<Range<u64>>,
}

impl CountedFrame {
    /// True where one of these rows needs it.
    fn is_of(&self, rows: &Range<u64>) -> bool {
        self.rows.as_ref().is_none_or(|own| own.start < rows.end && rows.start < own.end)
    }
}

impl ArrowFile {
    /// `is_file`: with a footer, which names the messages; a stream's follow one another.
    pub(crate) fn open(file: File, is_file: bool) -> Result<ArrowFile, Kind> {
        let mut file = FrameFile::new(file)?;
        let (schema, frames) = if is_file { of_file(&mut file)? } else { of_stream(&mut file)? };
        let mut num_rows: u64 = 0;
        let mut counted = Vec::with_capacity(frames.len());
        for frame in frames {
            let header = file.header(frame)?;
            let mut rows = None;
            if let Some(batch) = message(&header)?.header_as_record_batch() {
                let count = u64::try_from(batch.length())
                    .map_err(|_| Kind::Damaged(format!("a batch of {} rows", batch.length())))?;
                let end = num_rows.saturating_add(count);
                rows = Some(num_rows..end);
                num_rows = end;
            }
            counted.push(CountedFrame { frame, rows });
        }
        Ok(ArrowFile { file, schema, frames: counted, num_rows })
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// Ranges of bytes: these rows' batches, dictionaries, the schema and the footer.
    pub(crate) fn bytes_of(&self, rows: &Range<u64>) -> Vec<Range<u64>> {
        let places = self.frames.iter().map(|counted| counted.frame.bytes());
        let first = places.clone().map(|bytes| bytes.start).min().unwrap_or(0);
        let last = places.map(|bytes| bytes.end).max().unwrap_or(first);
        let used = self.frames.iter().filter(|counted| counted.is_of(rows));
        let used = used.map(|counted| counted.frame.bytes());
        once(0..first).chain(used).chain(once(last..self.file.len())).collect()
    }

    /// These rows, with the columns of these numbers. Batches that have none of them are not
    /// decoded.
    pub(crate) fn batches(
        self,
        columns: &[usize],
        rows: Range<u64>,
    ) -> impl Iterator<Item = Result<RecordBatch, Kind>> {
        let ArrowFile { mut file, schema, frames, .. } = self;
        let mut dictionaries = HashMap::new();
        frames.into_iter().filter_map(move |counted| {
            if !counted.is_of(&rows) {
                return None;
            }
            let batch = decode(&mut file, counted.frame, &schema, &mut dictionaries, columns)
                .transpose()?;
            Some(batch.map(|batch| match counted.rows {
                Some(own) => part_of(&batch, own, &rows),
                None => batch,
            }))
        })
    }
}

/// The rows of a batch that are among `rows`.
fn part_of(batch: &RecordBatch, own: Range<u64>, rows: &Range<u64>) -> RecordBatch {
    // A batch has the rows that its header says, which fit in memory.
    let end = own.end.min(rows.end);
    let start = own.start.max(rows.start).min(end);
    batch.slice((start - own.start) as usize, (end - start) as usize)
}

/// The batch of rows in a frame, if it is not a dictionary.
fn decode(
    file: &mut FrameFile,
    frame: Frame,
    schema: &Arc<Schema>,
    dictionaries: &mut HashMap<i64, ArrayRef>,
    used: &[usize],
) -> Result<Option<RecordBatch>, Kind> {
    let header = file.header(frame)?;
    let message = message(&header)?;
    let version = message.version();
    if let Some(batch) = message.header_as_record_batch() {
        let body = file.body(frame)?;
        check_buffers(batch, &body)?;
        let batch = guard(|| {
            RecordBatchDecoder::try_new(&body, batch, schema.clone(), dictionaries, &version)?
                .with_projection(Some(used))
                .read_record_batch()
        })?;
        return Ok(Some(batch));
    }
    if let Some(dictionary) = message.header_as_dictionary_batch() {
        let body = file.body(frame)?;
        if let Some(batch) = dictionary.data() {
            check_buffers(batch, &body)?;
        }
        guard(|| read_dictionary(&body, dictionary, schema, dictionaries, &version))?;
        return Ok(None);
    }
    let found = message.header_type();
    Err(Kind::Damaged(format!("a message of kind {found:?} among the rows")))
}

fn of_file(file: &mut FrameFile) -> Result<(Arc<Schema>, Vec<Frame>), Kind> {
    let footer = file.footer()?;
    let footer =
        arrow_ipc::root_as_footer(&footer).map_err(|error| Kind::Damaged(error.to_string()))?;
    let schema = schema(footer.schema())?;
    let blocks = footer.dictionaries().into_iter().flatten();
    let blocks = blocks.chain(footer.recordBatches().into_iter().flatten());
    let frames = blocks.map(|block| file.frame(block)).collect::<Result<_, _>>()?;
    Ok((schema, frames))
}

fn of_stream(file: &mut FrameFile) -> Result<(Arc<Schema>, Vec<Frame>), Kind> {
    let mut frames = file.walk()?;
    if frames.is_empty() {
        return Err(Kind::Damaged("it does not begin with a schema".into()));
    }
    let header = file.header(frames.remove(0))?;
    let message = message(&header)?;
    match message.header_type() {
        MessageHeader::Schema => Ok((schema(message.header_as_schema())?, frames)),
        _ => Err(Kind::Damaged("it does not begin with a schema".into())),
    }
}

fn schema(schema: Option<arrow_ipc::Schema<'_>>) -> Result<Arc<Schema>, Kind> {
    let schema = schema.ok_or_else(|| Kind::Damaged("it has no schema".into()))?;
    if schema.endianness() != Endianness::Little {
        return Err(Kind::BigEndian);
    }
    Ok(Arc::new(guard(|| arrow_ipc::convert::try_fb_to_schema(schema))?))
}
