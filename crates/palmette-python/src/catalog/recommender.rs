//! Class `Recommender`: a model over a catalog.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use palmette_live::{CatalogSource, CatalogView};
use palmette_recommend::{Mode, Verification};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;

use super::build::id_of;
use super::errors::RecommendError;
use super::filter::filter_of;
use super::frozen::Catalog;
use super::live::{LiveCatalog, LiveReader};
use super::values::{dict_to_json, object_to_python};
use crate::interrupt::interruptible;

/// A model joined with the catalog it recommends from. Threads share it, and none waits for another.
#[pyclass(frozen, weakref, module = "palmette")]
#[derive(Debug)]
pub(crate) struct Recommender {
    recommender: palmette::Recommender,
}

/// An item of an answer.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct Recommendation {
    item: palmette::Recommendation,
    title: Option<String>,
    attributes: serde_json::Map<String, Value>,
}

/// Arguments that all requests of a call have in common.
struct Wishes {
    k: usize,
    beam_width: usize,
    mode: Mode,
    filter: Option<String>,
    exclude: Vec<String>,
    rules: Option<String>,
    include_seen: bool,
    prompt: PromptWishes,
}

/// What a request tells the prompts of a model that has places for it.
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
            ("beam", None) => Mode::Beam,
            ("beam", Some(width)) => Mode::Probed(NonZeroUsize::new(width).ok_or_else(|| {
                PyValueError::new_err("probe_width is 0; a search has at least one beam")
            })?),
            ("draft", None) => Mode::Draft(Verification::Masks),
            ("draft", Some(_)) => {
                return Err(PyValueError::new_err("probe_width goes with mode=\"beam\""));
            }
            (other, _) => {
                let message = format!("mode is {other:?}; modes are \"beam\" and \"draft\"");
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
    fn answer(
        &self,
        history: &[String],
        wishes: &Wishes,
        cancelled: impl Fn() -> bool,
    ) -> Result<Vec<Recommendation>, palmette::RecommendError> {
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
        let items = answer.items.into_iter();
        Ok(items.map(|item| Recommendation::of(view.view(), item)).collect())
    }
}

impl Recommendation {
    fn of(view: &CatalogView, item: palmette::Recommendation) -> Self {
        let place = view.find(&item.id).map(|number| view.place(number));
        let title = place.and_then(|(catalog, rank)| catalog.title(rank));
        let attributes = place.map(|(catalog, rank)| catalog.attributes(rank));
        Self { item, title, attributes: attributes.unwrap_or_default() }
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
            CatalogSource::Reader(reader.get().reader.clone())
        } else {
            let kind = catalog.get_type().name()?;
            let message =
                format!("{kind} is no catalog; give a Catalog, LiveCatalog or LiveReader");
            return Err(PyTypeError::new_err(message));
        };
        let opened = py.detach(|| palmette::Recommender::open(&model_dir, source));
        Ok(Self { recommender: opened.map_err(|error| of_recommend(&error))? })
    }

    /// The best items to follow a history of ids, oldest first. Ids that the catalog does not have are left out.
    #[pyo3(signature = (history, k=10, beam_width=128, filter=None, exclude=None, rules=None, mode="beam", probe_width=None, include_seen=false, *, query=None, user=None, think_tokens=None))]
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
    ) -> PyResult<Vec<Recommendation>> {
        let user = user.map(document).transpose()?;
        let prompt = PromptWishes { query, user, think_tokens };
        let history = ids_of(history)?;
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
        answer.map_err(|error| of_recommend(&error))
    }

    /// `recommend` for many histories, side by side on so many threads; by default as many as there are processors.
    #[pyo3(signature = (histories, k=10, beam_width=128, filter=None, exclude=None, rules=None, mode="beam", probe_width=None, include_seen=false, threads=None, *, query=None, user=None, think_tokens=None))]
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
    ) -> PyResult<Vec<Vec<Recommendation>>> {
        let user = user.map(document).transpose()?;
        let prompt = PromptWishes { query, user, think_tokens };
        let histories = histories.try_iter()?.map(|history| ids_of(&history?));
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
        let threads = threads.or_else(|| std::thread::available_parallelism().ok());
        let threads = threads.map_or(1, NonZeroUsize::get).min(histories.len()).max(1);
        let answers = interruptible(py, |cancelled| {
            let next = AtomicUsize::new(0);
            let answers = Mutex::new(Vec::with_capacity(histories.len()));
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        loop {
                            let at = next.fetch_add(1, Ordering::Relaxed);
                            let Some(history) = histories.get(at) else { break };
                            let stop = || cancelled.load(Ordering::Relaxed);
                            let answer = self.answer(history, &wishes, stop);
                            let mut answers = answers.lock().unwrap_or_else(|e| e.into_inner());
                            answers.push((at, answer));
                        }
                    });
                }
            });
            answers.into_inner().unwrap_or_else(|e| e.into_inner())
        })?;
        let mut answers = answers;
        answers.sort_by_key(|(at, _)| *at);
        let answer = |(at, answer): (usize, Result<_, palmette::RecommendError>)| {
            answer.map_err(|error| RecommendError::new_err(format!("history {at}: {error}")))
        };
        answers.into_iter().map(answer).collect()
    }

    /// The items as a request sees them now.
    #[getter]
    fn catalog(&self) -> PyResult<Catalog> {
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

#[pymethods]
impl Recommendation {
    /// Id of the item.
    #[getter]
    fn id(&self) -> &str {
        &self.item.id
    }

    /// Sum of the log-probabilities of its codes, plus its boost.
    #[getter]
    fn score(&self) -> f32 {
        self.item.score
    }

    /// The part of the score that boosts added.
    #[getter]
    fn boost(&self) -> f32 {
        self.item.boost
    }

    /// True for an item that was to be included.
    #[getter]
    fn pinned(&self) -> bool {
        self.item.pinned
    }

    /// Semantic ID of the item.
    #[getter]
    fn codes(&self) -> Vec<u32> {
        self.item.codes.clone()
    }

    /// The attribute `title`, where it has one that is text.
    #[getter]
    fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Its attributes.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        object_to_python(py, &self.attributes)
    }

    fn __repr__(&self) -> String {
        let palmette::Recommendation { id, score, .. } = &self.item;
        match &self.title {
            Some(title) => format!("Recommendation(id={id:?}, score={score:.4}, title={title:?})"),
            None => format!("Recommendation(id={id:?}, score={score:.4})"),
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

/// A JSON document: text, or a dict.
fn document(rules: &Bound<'_, PyAny>) -> PyResult<String> {
    match rules.cast::<PyDict>() {
        Ok(rules) => Ok(Value::Object(dict_to_json(rules)?).to_string()),
        Err(_) => rules.extract(),
    }
}
