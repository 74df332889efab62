//! Class `AnswerTable`: a table of histories answered row by row, as engines of tables hand it over
//! and take it back.
//!
//! Rows are read as those of files are (`palmette-recommend-eval`), answered by the command's run
//! (`palmette_recommend::offline`), and answers have the columns of its files
//! (`palmette-catalog-arrow`), so that a row is the same whichever way it went.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::ArrowError;
use palmette_catalog_arrow::{TableError, answer_batch, read_batch_rows};
use palmette_recommend::offline::{NamedHistory, OfflineError, OfflineRun};
use palmette_recommend::{PromptFields, QuestionLimits, RecommendQuestion};
use palmette_recommend_eval::{
    BadRecord, HistoryOptions, HistoryRecord, HistoryRows, Progress, ReadNotes, unread_fields,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::arrow::TABLE;
use super::errors::RecommendError;
use super::recommender::threads_for;

/// Answers as a table, for whatever reads Arrow streams: `pyarrow.table(answers)`,
/// `polars.DataFrame(answers)`.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct AnswerTable {
    rows: RecordBatch,
}

#[pymethods]
impl AnswerTable {
    /// Hands the rows over, as the Arrow PyCapsule interface has it; a requested schema is passed
    /// over.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // What cannot be met is left to whoever asks, by the interface.
        let _ = requested_schema;
        let rows = [Ok::<_, ArrowError>(self.rows.clone())];
        let rows = RecordBatchIterator::new(rows, self.rows.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(rows));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<AnswerTable of {} rows>", self.rows.num_rows())
    }
}

/// Cause of a table that is not answered at all.
pub(crate) enum TableRefusal {
    Table(TableError),
    Columns(String),
    Request(String),
    Cancelled,
}

impl TableRefusal {
    pub(crate) fn into_exception(self) -> PyErr {
        match self {
            Self::Table(error) => PyValueError::new_err(error.to_string()),
            Self::Columns(reason) => PyValueError::new_err(format!("{TABLE}: {reason}")),
            Self::Request(reason) => RecommendError::new_err(reason),
            // The exception of the signal is raised in its place.
            Self::Cancelled => RecommendError::new_err("the request was cancelled"),
        }
    }

    fn request(error: impl std::fmt::Display) -> Self {
        Self::Request(error.to_string())
    }
}

impl From<OfflineError> for TableRefusal {
    fn from(error: OfflineError) -> Self {
        match error {
            OfflineError::Cancelled => Self::Cancelled,
            // Answers stay in memory: no file is read or written.
            error => Self::request(error),
        }
    }
}

/// Answers every row by one generation. A row that cannot be answered has the reason.
pub(crate) fn answer(
    recommender: &palmette::Recommender,
    table: RecordBatchStreamReader,
    question: RecommendQuestion,
    options: &HistoryOptions,
    threads: Option<NonZeroUsize>,
    cancelled: &AtomicBool,
) -> Result<(AnswerTable, Vec<String>), TableRefusal> {
    let (histories, notes) = histories(table, options)?;
    let view = recommender.view().map_err(TableRefusal::request)?;
    let pool = recommender.pool();
    // What is wrong with all is said once, and not in each row. A table is answered alike whenever
    // it is, so that rules of validity name their moment.
    let limits = QuestionLimits::default();
    let question = question.check(pool.recommender(), &view, &limits, None);
    let question = question.map_err(TableRefusal::request)?;
    let num_workers = threads_for(histories.len(), threads);
    let run = OfflineRun::new(pool.recommender(), question, num_workers)
        .map_err(TableRefusal::request)?;
    let is_cancelled = || cancelled.load(Ordering::Relaxed);
    let mut run = run.cancel_when(&is_cancelled);
    let mut answers = Vec::with_capacity(histories.len());
    for history in histories {
        run.push(history, &mut answers)?;
    }
    let notes = notes.sentences().into_iter().chain(unread_fields(run.unread_fields())).collect();
    run.finish(&mut answers)?;
    Ok((AnswerTable { rows: answer_batch(&answers) }, notes))
}

/// Histories of a table, and what is to be said of it.
type Histories = (Vec<NamedHistory>, ReadNotes);

/// The rows as histories; one that cannot be read says why.
fn histories(
    table: RecordBatchStreamReader,
    options: &HistoryOptions,
) -> Result<Histories, TableRefusal> {
    let schema = table.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let columns = options.columns(&names).map_err(TableRefusal::Columns)?;
    if columns.is_events() {
        return Err(TableRefusal::Columns(
            "a row is one thing that a user did, and the user's others may be in another batch; group them first, into a history a row"
                .to_owned(),
        ));
    }
    let used: Vec<usize> =
        (0..names.len()).filter(|&at| columns.names().contains(&names[at])).collect();
    let damaged = |error: ArrowError| TableRefusal::Columns(error.to_string());
    let read = schema.project(&used).map_err(damaged)?;
    let batches = table.map(|batch| batch.and_then(|batch| batch.project(&used)));
    let mut histories = Vec::new();
    let each = &mut |record: Result<HistoryRecord, BadRecord>, _: Progress| {
        histories.push(match record {
            Ok(HistoryRecord { user, items, fields, .. }) => {
                NamedHistory { user, fields, items: Ok(items) }
            }
            // A table's row has its place already.
            Err(bad) => {
                let (fields, items) = (PromptFields::default(), Err(bad.reason().to_owned()));
                NamedHistory { user: bad.user, fields, items }
            }
        });
        ControlFlow::Continue(())
    };
    let mut rows = HistoryRows::new("row", each);
    rows.note_columns(&names, &columns);
    read_batch_rows(TABLE, &read, batches, &mut |row| {
        let pushed = rows.push(row.number, &columns, row.values, Progress::default());
        pushed.expect("rows of histories are handed on one by one")
    })
    .map_err(TableRefusal::Table)?;
    let notes = rows.finish();
    Ok((histories, notes))
}
