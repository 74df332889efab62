//! Batches of rows from Arrow's IPC format.

use std::collections::HashMap;
use std::fs::File;
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
    frames: Vec<Frame>,
    num_rows: u64,
}

impl ArrowFile {
    /// `is_file`: with a footer, which names the messages; a stream's follow one another.
    pub(crate) fn open(file: File, is_file: bool) -> Result<ArrowFile, Kind> {
        let mut file = FrameFile::new(file)?;
        let (schema, frames) = if is_file { of_file(&mut file)? } else { of_stream(&mut file)? };
        let mut num_rows: u64 = 0;
        for &frame in &frames {
            let header = file.header(frame)?;
            if let Some(batch) = message(&header)?.header_as_record_batch() {
                let rows = u64::try_from(batch.length())
                    .map_err(|_| Kind::Damaged(format!("a batch of {} rows", batch.length())))?;
                num_rows = num_rows.saturating_add(rows);
            }
        }
        Ok(ArrowFile { file, schema, frames, num_rows })
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn num_rows(&self) -> u64 {
        self.num_rows
    }

    /// The rows, with the columns of these numbers.
    pub(crate) fn batches(
        self,
        columns: &[usize],
    ) -> impl Iterator<Item = Result<RecordBatch, Kind>> {
        let ArrowFile { mut file, schema, frames, .. } = self;
        let mut dictionaries = HashMap::new();
        frames.into_iter().filter_map(move |frame| {
            decode(&mut file, frame, &schema, &mut dictionaries, columns).transpose()
        })
    }
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
