//! Class `Recommender`: a model over a catalog.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use palmette_catalog_live::{CatalogSource, CatalogView};
use palmette_recommend::{NamedItem, RecommendQuestion};
use palmette_recommend_eval::HistoryOptions;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Map, Value};

use super::answer::{Answer, AnswerParts};
use super::answer_table::{self, AnswerTable};
use super::arrow::stream;
use super::build::{check_order, id_of, warn};
use super::errors::RecommendError;
use super::filter::filter_of;
use super::frozen::Catalog;
use super::live::{LiveCatalog, LiveReader};
use super::values::to_json;
use crate::interrupt::interruptible;
use crate::process::{self, OfProcess, in_pool};

/// A model joined with the catalog it recommends from. Threads share it, and none waits for
/// another.
#[pyclass(frozen, weakref, module = "palmette")]
#[derive(Debug)]
pub(crate) struct Recommender {
    recommender: palmette::Recommender,
    /// The process whose threads follow the catalog; `None` where nothing follows it.
    follows: Option<OfProcess<()>>,
}

impl Recommender {
    /// Refuses a catalog that changes, in a forked child, where nothing would tell of its changes.
    fn check_process(&self) -> PyResult<()> {
        match self.follows.as_ref().is_some_and(|follows| follows.get().is_none()) {
            false => Ok(()),
            true => Err(RecommendError::new_err(
                "the recommender's live catalog was opened before this process was forked, and is not followed here: make the \
                 recommender in this process, over LiveReader.open of the directory or a snapshot",
            )),
        }
    }

    fn answer(
        &self,
        question: RecommendQuestion,
        cancelled: impl Fn() -> bool,
    ) -> Result<AnswerParts, palmette::RecommendError> {
        let view = self.recommender.view()?;
        let request = self.recommender.ask(question).now(now()).cancel_when(cancelled);
        let answer = request.at(view.clone()).run()?;
        Ok(AnswerParts::of(view.view(), answer))
    }
}

#[pymethods]
impl Recommender {
    /// Loads a model's directory and joins it with a `Catalog`, a `LiveCatalog` or a `LiveReader`.
    #[new]
    #[pyo3(signature = (model_dir, catalog, *, prompt_cache_mb=0))]
    fn new(
        py: Python<'_>,
        model_dir: PathBuf,
        catalog: &Bound<'_, PyAny>,
        prompt_cache_mb: u32,
    ) -> PyResult<Self> {
        let source: CatalogSource = if let Ok(catalog) = catalog.cast::<Catalog>() {
            match &catalog.get().view {
                CatalogView::Frozen(filters) => CatalogSource::Frozen(filters.clone()),
                CatalogView::Snapshot(snapshot) => CatalogSource::Snapshot(snapshot.clone()),
            }
        } else if let Ok(live) = catalog.cast::<LiveCatalog>() {
            CatalogSource::Live(live.get().live()?)
        } else if let Ok(reader) = catalog.cast::<LiveReader>() {
            CatalogSource::Reader(reader.get().reader(py)?)
        } else {
            let kind = catalog.get_type().name()?;
            let message =
                format!("{kind} is no catalog; give a Catalog, LiveCatalog or LiveReader");
            return Err(PyTypeError::new_err(message));
        };
        let is_followed = matches!(source, CatalogSource::Live(_) | CatalogSource::Reader(_));
        let prompt_memory = (prompt_cache_mb as usize) << 20;
        let opened = process::detach_in_pool(py, || {
            palmette::Recommender::open_with(&model_dir, source, prompt_memory)
        });
        Ok(Self {
            recommender: opened.map_err(|error| of_recommend(&error))?,
            follows: is_followed.then(|| OfProcess::new(())),
        })
    }

    /// The best items to follow a history, oldest first. Items that the catalog never had are left
    /// out, and in the answer's `unknown`.
    #[pyo3(signature = (history, k=None, **question))]
    fn recommend(
        &self,
        py: Python<'_>,
        history: &Bound<'_, PyAny>,
        k: Option<&Bound<'_, PyAny>>,
        question: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Answer> {
        self.check_process()?;
        let question =
            RecommendQuestion { history: history_of(history)?, ..question_of(k, question)? };
        let answer = interruptible(py, |cancelled| {
            self.answer(question, || cancelled.load(Ordering::Relaxed))
        })?;
        answer.map_err(|error| of_recommend(&error))?.into_python(py)
    }

    /// `recommend` for many histories, side by side on so many threads; by default as many as there
    /// are processors.
    #[pyo3(signature = (histories, k=None, threads=None, **question))]
    fn recommend_batch(
        &self,
        py: Python<'_>,
        histories: &Bound<'_, PyAny>,
        k: Option<&Bound<'_, PyAny>>,
        threads: Option<NonZeroUsize>,
        question: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<Answer>> {
        self.check_process()?;
        let question = question_of(k, question)?;
        check_order(histories)?;
        let histories = histories.try_iter()?.map(|history| history_of(&history?));
        let histories = histories.collect::<PyResult<Vec<_>>>()?;
        let answers = interruptible(py, |cancelled| {
            side_by_side(&histories, threads, |history| {
                let history = history.clone();
                let question = RecommendQuestion { history, ..question.clone() };
                self.answer(question, || cancelled.load(Ordering::Relaxed))
            })
        })?;
        let answer = |(at, answer): (usize, Result<AnswerParts, palmette::RecommendError>)| {
            let found = answer
                .map_err(|error| RecommendError::new_err(format!("history {at}: {error}")))?;
            found.into_python(py)
        };
        answers.into_iter().enumerate().map(answer).collect()
    }

    /// Answers every row of a table of histories, as `palmette recommend --histories` does; gives a
    /// table.
    #[pyo3(signature = (table, k=None, threads=None, *, layout=None, user_column=None, item_column=None, history_column=None, time_column=None, target_column=None, list_separator=None, **question))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn recommend_table(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        k: Option<&Bound<'_, PyAny>>,
        threads: Option<NonZeroUsize>,
        layout: Option<&str>,
        user_column: Option<String>,
        item_column: Option<String>,
        history_column: Option<String>,
        time_column: Option<String>,
        target_column: Option<String>,
        list_separator: Option<String>,
        question: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<AnswerTable> {
        self.check_process()?;
        let question = question_of(k, question)?;
        let options = HistoryOptions {
            layout: layout.map(str::parse).transpose().map_err(PyValueError::new_err)?,
            user_column,
            item_column,
            history_column,
            time_column,
            target_column,
            list_separator,
            ..HistoryOptions::default()
        };
        let table = stream(table)?;
        let answered = interruptible(py, |cancelled| {
            let (of, options) = (&self.recommender, &options);
            answer_table::answer(of, table, question, options, threads, cancelled)
        })?;
        let (answers, notes) = answered.map_err(answer_table::TableRefusal::into_exception)?;
        warn(py, &notes)?;
        Ok(answers)
    }

    /// The items as a request sees them now.
    #[getter]
    fn catalog(&self) -> PyResult<Catalog> {
        self.check_process()?;
        let view = self.recommender.view().map_err(|error| of_recommend(&error))?;
        Ok(Catalog::of_view(view.view().clone()))
    }

    fn __repr__(&self) -> String {
        match self.recommender.view() {
            Ok(view) => format!("<Recommender of {} items>", view.view().num_items()),
            Err(error) => format!("<Recommender: {error}>"),
        }
    }
}

fn of_recommend(error: &palmette::RecommendError) -> PyErr {
    RecommendError::new_err(error.to_string())
}

/// The moment of rules of validity that name none, in seconds since 1970.
fn now() -> f64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |since| since.as_secs_f64())
}

/// A history, whose items have an order, which a set has not.
fn history_of(history: &Bound<'_, PyAny>) -> PyResult<Vec<NamedItem>> {
    if !history.is_instance_of::<PyString>() {
        check_order(history)?;
    }
    named_items(history)
}

/// The items of a list: ids, or semantic IDs as lists of codes. Text is no sequence.
fn named_items(items: &Bound<'_, PyAny>) -> PyResult<Vec<NamedItem>> {
    if items.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("ids are a list, not one text; put it in a list"));
    }
    let item = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        let is_id = item.is_instance_of::<PyString>() || !item.hasattr("__len__")?;
        if is_id {
            return id_of(&item).map(NamedItem::Id);
        }
        let value = to_json(&item)?;
        serde_json::from_value(value).map_err(|error| {
            let shown = item.repr().map_or_else(|_| String::new(), |text| text.to_string());
            PyTypeError::new_err(format!("{shown} is no item: {error}"))
        })
    };
    items.try_iter()?.map(item).collect()
}

/// A question of keyword arguments, whose names are those of the document's members.
fn question_of(
    k: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<RecommendQuestion> {
    let mut members = Map::new();
    if let Some(k) = k {
        members.insert("k".to_owned(), to_json(k)?);
    }
    for (name, value) in keywords.into_iter().flat_map(|keywords| keywords.iter()) {
        let name: String = name.extract()?;
        let known = palmette_document::member_names::<RecommendQuestion>();
        if name == "history" || !known.contains(&name.as_str()) {
            let known = known.iter().filter(|name| **name != "history").copied();
            let known: Vec<&str> = known.collect();
            return Err(PyTypeError::new_err(format!(
                "a question has no {name:?}; it has {}",
                known.join(", ")
            )));
        }
        if value.is_none() {
            continue;
        }
        let value = match name.as_str() {
            "filter" => json_of(&filter_of(&value)?.to_string())?,
            // Documents may come as their text.
            "rules" | "user" => match value.cast::<PyString>() {
                Ok(text) => json_of(&text.to_cow()?)?,
                Err(_) => to_json(&value)?,
            },
            "exclude" => {
                let ids = named_items(&value)?;
                ids.iter().map(|id| Value::from(id.to_text())).collect()
            }
            _ => to_json(&value)?,
        };
        members.insert(name, value);
    }
    let text = Value::Object(members).to_string();
    RecommendQuestion::from_json(&text).map_err(|error| RecommendError::new_err(error.to_string()))
}

fn json_of(text: &str) -> PyResult<Value> {
    serde_json::from_str(text)
        .map_err(|error| RecommendError::new_err(format!("{text:?} is no JSON: {error}")))
}

fn next_of<'a, T>(all: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, all.get(at)?))
}

/// Number of threads that answer histories: those asked for, by default one a processor, and no
/// more than there are histories.
pub(crate) fn threads_for(num_histories: usize, threads: Option<NonZeroUsize>) -> usize {
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    threads.map_or(1, NonZeroUsize::get).min(num_histories).max(1)
}

/// Maps many things on several threads, in order.
fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    threads: Option<NonZeroUsize>,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads_for(all.len(), threads);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(all.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((at, one)) = next_of(all, &next) {
                    let result = in_pool(|| work(one));
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
