//! Class `Recommender`: a model over a catalog.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use palmette_eval::HistoryOptions;
use palmette_live::{CatalogSource, CatalogView};
use palmette_recommend::{Mode, Verification};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::answer::{Answer, Found};
use super::answer_table::{self, AnswerTable};
use super::arrow::stream;
use super::build::{check_order, id_of, warn};
use super::errors::RecommendError;
use super::filter::filter_of;
use super::frozen::Catalog;
use super::live::{LiveCatalog, LiveReader};
use super::values::dict_to_json;
use crate::interrupt::interruptible;
use crate::process::{self, OfProcess, in_pool};

/// A model joined with the catalog it recommends from. Threads share it, and none waits for another.
#[pyclass(frozen, weakref, module = "palmette")]
#[derive(Debug)]
pub(crate) struct Recommender {
    recommender: palmette::Recommender,
    /// The process whose threads follow the catalog; `None` where nothing follows it.
    follows: Option<OfProcess<()>>,
}

/// Arguments that all requests of a call have in common.
pub(crate) struct Wishes {
    pub(crate) k: usize,
    pub(crate) beam_width: usize,
    pub(crate) mode: Mode,
    pub(crate) filter: Option<String>,
    pub(crate) exclude: Vec<String>,
    pub(crate) rules: Option<String>,
    pub(crate) include_seen: bool,
    prompt: PromptWishes,
}

/// Prompt fields of a request, for models whose prompts have places for them.
#[derive(Default)]
struct PromptWishes {
    query: Option<String>,
    /// A JSON object.
    user: Option<String>,
    think_tokens: Option<usize>,
}

impl Wishes {
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn of(
        k: usize,
        beam_width: usize,
        filter: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        rules: Option<&Bound<'_, PyAny>>,
        mode: &str,
        probe_width: Option<usize>,
        include_seen: bool,
        prompt: PromptWishes,
    ) -> PyResult<Self> {
        let mode = match (mode, probe_width) {
            ("auto", None) => Mode::Auto,
            ("beam", None | Some(0)) => Mode::Beam,
            ("auto" | "beam", Some(width)) => {
                Mode::Probed(NonZeroUsize::new(width).ok_or_else(|| {
                    PyValueError::new_err("probe_width is 0; a search has at least one beam")
                })?)
            }
            ("draft", None) => Mode::Draft(Verification::Masks),
            ("draft", Some(_)) => {
                return Err(PyValueError::new_err("probe_width goes with mode=\"beam\""));
            }
            (other, _) => {
                let message =
                    format!("mode is {other:?}; modes are \"auto\", \"beam\" and \"draft\"");
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(Self {
            k,
            beam_width,
            mode,
            filter: filter.map(|filter| filter_of(filter).map(|f| f.to_string())).transpose()?,
            exclude: exclude.map(ids_of).transpose()?.unwrap_or_default(),
            rules: rules.map(document).transpose()?,
            include_seen,
            prompt,
        })
    }
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
        history: &[String],
        wishes: &Wishes,
        cancelled: impl Fn() -> bool,
    ) -> Result<Found, palmette::RecommendError> {
        let view = self.recommender.view()?;
        let mut request = self.recommender.recommend(history);
        request = request.k(wishes.k).beam_width(wishes.beam_width).mode(wishes.mode);
        request = request.exclude(&wishes.exclude).cancel_when(cancelled);
        if let Some(filter) = &wishes.filter {
            request = request.filter(filter)?;
        }
        if let Some(rules) = &wishes.rules {
            request = request.rules(rules)?;
        }
        if wishes.include_seen {
            request = request.include_seen();
        }
        if let Some(query) = &wishes.prompt.query {
            request = request.query(query);
        }
        if let Some(user) = &wishes.prompt.user {
            request = request.user(user)?;
        }
        if let Some(tokens) = wishes.prompt.think_tokens {
            request = request.think(tokens);
        }
        let answer = request.at(view.clone()).run()?;
        Ok(Found::of(view.view(), answer))
    }
}

#[pymethods]
impl Recommender {
    /// Loads a model's directory and joins it with a `Catalog`, a `LiveCatalog` or a `LiveReader`.
    #[new]
    fn new(py: Python<'_>, model_dir: PathBuf, catalog: &Bound<'_, PyAny>) -> PyResult<Self> {
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
        let opened =
            process::detach_in_pool(py, || palmette::Recommender::open(&model_dir, source));
        Ok(Self {
            recommender: opened.map_err(|error| of_recommend(&error))?,
            follows: is_followed.then(|| OfProcess::new(())),
        })
    }

    /// The best items to follow a history of ids, oldest first. Ids that the catalog does not have are left out, and in the
    /// answer's `unknown`.
    #[pyo3(signature = (history, k=10, beam_width=128, filter=None, exclude=None, rules=None, mode="auto", probe_width=None, include_seen=false, *, query=None, user=None, think_tokens=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn recommend(
        &self,
        py: Python<'_>,
        history: &Bound<'_, PyAny>,
        k: usize,
        beam_width: usize,
        filter: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        rules: Option<&Bound<'_, PyAny>>,
        mode: &str,
        probe_width: Option<usize>,
        include_seen: bool,
        query: Option<String>,
        user: Option<&Bound<'_, PyAny>>,
        think_tokens: Option<usize>,
    ) -> PyResult<Answer> {
        self.check_process()?;
        let user = user.map(document).transpose()?;
        let prompt = PromptWishes { query, user, think_tokens };
        let history = history_of(history)?;
        let wishes = Wishes::of(
            k,
            beam_width,
            filter,
            exclude,
            rules,
            mode,
            probe_width,
            include_seen,
            prompt,
        )?;
        let answer = interruptible(py, |cancelled| {
            self.answer(&history, &wishes, || cancelled.load(Ordering::Relaxed))
        })?;
        answer.map_err(|error| of_recommend(&error))?.into_python(py)
    }

    /// `recommend` for many histories, side by side on so many threads; by default as many as there are processors.
    #[pyo3(signature = (histories, k=10, beam_width=128, filter=None, exclude=None, rules=None, mode="auto", probe_width=None, include_seen=false, threads=None, *, query=None, user=None, think_tokens=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn recommend_batch(
        &self,
        py: Python<'_>,
        histories: &Bound<'_, PyAny>,
        k: usize,
        beam_width: usize,
        filter: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        rules: Option<&Bound<'_, PyAny>>,
        mode: &str,
        probe_width: Option<usize>,
        include_seen: bool,
        threads: Option<NonZeroUsize>,
        query: Option<String>,
        user: Option<&Bound<'_, PyAny>>,
        think_tokens: Option<usize>,
    ) -> PyResult<Vec<Answer>> {
        self.check_process()?;
        let user = user.map(document).transpose()?;
        let prompt = PromptWishes { query, user, think_tokens };
        check_order(histories)?;
        let histories = histories.try_iter()?.map(|history| history_of(&history?));
        let histories = histories.collect::<PyResult<Vec<_>>>()?;
        let wishes = Wishes::of(
            k,
            beam_width,
            filter,
            exclude,
            rules,
            mode,
            probe_width,
            include_seen,
            prompt,
        )?;
        let answers = interruptible(py, |cancelled| {
            side_by_side(&histories, threads, |history| {
                self.answer(history, &wishes, || cancelled.load(Ordering::Relaxed))
            })
        })?;
        let answer = |(at, answer): (usize, Result<Found, palmette::RecommendError>)| {
            let found = answer
                .map_err(|error| RecommendError::new_err(format!("history {at}: {error}")))?;
            found.into_python(py)
        };
        answers.into_iter().enumerate().map(answer).collect()
    }

    /// Answers every row of a table of histories, as `palmette recommend --histories` does; gives a table.
    #[pyo3(signature = (table, k=10, beam_width=128, filter=None, exclude=None, rules=None, mode="auto", probe_width=None, include_seen=false, unknown="error", threads=None, *, layout=None, user_column=None, item_column=None, history_column=None, time_column=None, target_column=None, list_separator=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn recommend_table(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        k: usize,
        beam_width: usize,
        filter: Option<&Bound<'_, PyAny>>,
        exclude: Option<&Bound<'_, PyAny>>,
        rules: Option<&Bound<'_, PyAny>>,
        mode: &str,
        probe_width: Option<usize>,
        include_seen: bool,
        unknown: &str,
        threads: Option<NonZeroUsize>,
        layout: Option<&str>,
        user_column: Option<String>,
        item_column: Option<String>,
        history_column: Option<String>,
        time_column: Option<String>,
        target_column: Option<String>,
        list_separator: Option<String>,
    ) -> PyResult<AnswerTable> {
        self.check_process()?;
        let prompt = PromptWishes::default();
        let wishes = Wishes::of(
            k,
            beam_width,
            filter,
            exclude,
            rules,
            mode,
            probe_width,
            include_seen,
            prompt,
        )?;
        let unknown = unknown
            .parse()
            .map_err(|reason: String| PyValueError::new_err(format!("unknown is {reason}")))?;
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
            answer_table::answer(of, table, &wishes, unknown, options, threads, cancelled)
        })?;
        let (answers, notes) = answered.map_err(answer_table::Refused::into_exception)?;
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

/// Ids in a sequence, which text is not.
fn ids_of(ids: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if ids.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("ids are a list, not one text; put it in a list"));
    }
    ids.try_iter()?.map(|id| id_of(&id?)).collect()
}

/// Ids in their order, which a set has not.
fn history_of(history: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if !history.is_instance_of::<PyString>() {
        check_order(history)?;
    }
    ids_of(history)
}

/// A JSON document: text, or a dict.
fn document(rules: &Bound<'_, PyAny>) -> PyResult<String> {
    match rules.cast::<PyDict>() {
        Ok(rules) => Ok(Value::Object(dict_to_json(rules)?).to_string()),
        Err(_) => rules.extract(),
    }
}

fn next_of<'a, T>(all: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, all.get(at)?))
}

/// Does the same with each of many things, on so many threads, one a processor by default; what came of each, in order.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    threads: Option<NonZeroUsize>,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get).min(all.len()).max(1);
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
