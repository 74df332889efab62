//! Classes `Answer` and `Recommendation`: what a recommender found.

use palmette_catalog_live::CatalogView;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PySlice};
use serde_json::Value;

use super::values::object_to_python;

/// Items found for one history, best first: a sequence, with what there is to say of the history.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct Answer {
    items: Vec<Py<Recommendation>>,
    unknown: Vec<String>,
    history_used: usize,
    missed_at_most: Option<f32>,
    cursor: Option<String>,
    generation: Option<u64>,
    thought: Option<String>,
    explanations: Vec<String>,
    levels: Vec<Vec<(Vec<u32>, f32)>>,
}

/// An answer that has been made without the interpreter.
pub(crate) struct AnswerParts {
    items: Vec<Recommendation>,
    unknown: Vec<String>,
    history_used: usize,
    missed_at_most: Option<f32>,
    cursor: Option<String>,
    generation: Option<u64>,
    thought: Option<String>,
    explanations: Vec<String>,
    levels: Vec<Vec<(Vec<u32>, f32)>>,
}

/// An item of an answer.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct Recommendation {
    item: palmette::Recommendation,
    title: Option<String>,
    attributes: serde_json::Map<String, Value>,
}

impl AnswerParts {
    pub(crate) fn of(view: &CatalogView, answer: palmette::Answer) -> Self {
        let items = answer.items.into_iter();
        let beam = |of: palmette::TracedBeam| (of.codes, of.score);
        let level = |beams: Vec<palmette::TracedBeam>| beams.into_iter().map(beam).collect();
        Self {
            items: items.map(|item| Recommendation::of(view, item)).collect(),
            unknown: answer.unknown,
            history_used: answer.history_used,
            missed_at_most: answer.missed_at_most,
            cursor: answer.cursor,
            generation: answer.generation,
            thought: answer.thought,
            explanations: answer.explanations,
            levels: answer.levels.into_iter().map(level).collect(),
        }
    }

    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Answer> {
        let Self { items, unknown, history_used, missed_at_most, cursor, .. } = self;
        let Self { generation, thought, explanations, levels, .. } = self;
        let items = items.into_iter().map(|item| Py::new(py, item)).collect::<PyResult<_>>()?;
        Ok(Answer {
            items,
            unknown,
            history_used,
            missed_at_most,
            cursor,
            generation,
            thought,
            explanations,
            levels,
        })
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
impl Answer {
    /// Ids of the history that the catalog does not have, in its order: the model read the others.
    #[getter]
    fn unknown(&self) -> Vec<String> {
        self.unknown.clone()
    }

    /// Number of the most recent items of the history that the model read.
    #[getter]
    fn history_used(&self) -> usize {
        self.history_used
    }

    /// True where the items are those of scoring every item that may be recommended.
    #[getter]
    fn proven(&self) -> bool {
        self.missed_at_most.is_none()
    }

    /// Bound on the scores of items that belong into the answer and are not in it; `None` where it
    /// is proven.
    #[getter]
    fn missed_at_most(&self) -> Option<f32> {
        self.missed_at_most
    }

    /// Cursor of the items that come next, with ``paged`` or ``cursor``; ``None`` where none do.
    #[getter]
    fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The generation of a live catalog that was answered by; `None` for one that never changes.
    #[getter]
    fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Text that the model wrote before the item, with `think_tokens`.
    #[getter]
    fn thought(&self) -> Option<&str> {
        self.thought.as_deref()
    }

    /// Texts that the model wrote after the first items, with `explain_items`.
    #[getter]
    fn explanations(&self) -> Vec<String> {
        self.explanations.clone()
    }

    /// Beams kept after each level but the last, best first, as codes and score, with `trace`.
    #[getter]
    fn levels(&self) -> Vec<Vec<(Vec<u32>, f32)>> {
        self.levels.clone()
    }

    fn __len__(&self) -> usize {
        self.items.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let list = PyList::new(py, self.items.iter().map(|item| item.bind(py)))?;
            return list.as_any().get_item(slice);
        }
        let index: isize = index.extract()?;
        let place = if index < 0 { index + self.items.len() as isize } else { index };
        let item = usize::try_from(place).ok().and_then(|place| self.items.get(place));
        match item {
            Some(item) => Ok(item.bind(py).clone().into_any()),
            None => Err(PyIndexError::new_err(format!(
                "place {index} of an answer of {} items",
                self.items.len()
            ))),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.items.iter().map(|item| item.bind(py)))?.try_iter()
    }

    fn __repr__(&self) -> String {
        let items: Vec<String> = self.items.iter().map(|item| item.get().__repr__()).collect();
        match self.unknown.is_empty() {
            true => format!("Answer([{}])", items.join(", ")),
            false => format!("Answer([{}], unknown={:?})", items.join(", "), self.unknown),
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

    /// Attributes of the item.
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
