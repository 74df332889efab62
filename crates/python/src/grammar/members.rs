//! Sets for the names of grammars, and the members that texts have of them: `palmette.Lexicon`,
//! `palmette.Substrings`, `palmette.Member`.

use std::path::PathBuf;
use std::sync::Arc;

use palmette_bindings::{BindingError, Bindings, SetSource};
use palmette_catalog::Filter as CatalogFilter;
use palmette_catalog_live::CatalogView;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use serde_json::json;

use crate::catalog::errors::{CatalogError, of_filter};
use crate::catalog::filter::ItemSet;
use crate::catalog::frozen::Catalog;
use crate::catalog::live::{LiveCatalog, LiveReader};
use crate::errors::{GrammarError, of_io};
use crate::process;

/// Texts without semantic IDs or attributes, millions of them, one of which a grammar may ask for
/// by name. Frozen; threads share it.
#[pyclass(module = "palmette", frozen)]
#[derive(Debug)]
pub(crate) struct Lexicon {
    lexicon: Arc<palmette_lexicon::Lexicon>,
}

#[pymethods]
impl Lexicon {
    /// A lexicon of these texts; those that stand twice count once.
    #[new]
    fn new(py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        let values = texts(values, "values")?;
        let built = process::detach_in_pool(py, || palmette_lexicon::Lexicon::from_texts(&values));
        let lexicon = built.map_err(|error| CatalogError::new_err(error.to_string()))?;
        Ok(Self { lexicon: Arc::new(lexicon) })
    }

    /// Opens a file of ``palmette lexicon build`` or ``save``. Everything in it is checked.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        if let Err(error) = std::fs::metadata(&path) {
            return Err(of_io(py, &error, Some(&path)));
        }
        let opened = process::detach_in_pool(py, || palmette_lexicon::Lexicon::open(&path));
        let lexicon = opened.map_err(|error| CatalogError::new_err(error.to_string()))?;
        Ok(Self { lexicon: Arc::new(lexicon) })
    }

    /// Writes it to a file, which ``open`` and the command line read.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let saved = process::detach_in_pool(py, || self.lexicon.write(&path));
        saved.map_err(|error| CatalogError::new_err(error.to_string()))
    }

    fn __len__(&self) -> usize {
        self.lexicon.len()
    }

    fn __contains__(&self, text: &str) -> bool {
        self.lexicon.rank(text.as_bytes()).is_some()
    }

    fn __repr__(&self) -> String {
        format!("<palmette.Lexicon of {} texts>", self.lexicon.len())
    }
}

/// Documents that a grammar quotes; how, it says itself (``x-substring``).
#[pyclass(module = "palmette", frozen)]
#[derive(Debug)]
pub(crate) struct Substrings {
    source: SetSource,
    count: usize,
}

#[pymethods]
impl Substrings {
    /// Documents, 4 MiB together: a list of texts.
    #[new]
    fn new(texts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let texts = self::texts(texts, "documents")?;
        let count = texts.len();
        Ok(Self { source: SetSource::from_documents(texts), count })
    }

    fn __len__(&self) -> usize {
        self.count
    }

    fn __repr__(&self) -> String {
        format!("<palmette.Substrings of {} documents>", self.count)
    }
}

/// A member of a set that a text has.
#[pyclass(module = "palmette", frozen, get_all, eq)]
#[derive(Debug, PartialEq)]
pub(crate) struct Member {
    /// Name of the set in the grammar.
    set: String,
    /// ``id`` or an attribute; of documents the unit that is quoted.
    field: String,
    /// The value, which may be spelled otherwise in the text.
    value: String,
    /// Id of the item, where one is meant.
    id: Option<String>,
    /// Begin and end of its spelling, in bytes of the text.
    span: (usize, usize),
    /// Number of the document that has the quote first, from 0.
    document: Option<usize>,
    /// Begin and end of the quote, in bytes of that document.
    place: Option<(usize, usize)>,
}

#[pymethods]
impl Member {
    fn __repr__(&self) -> String {
        let Self { set, field, value, span: (begin, end), .. } = self;
        format!("<palmette.Member {set}.{field} {value:?} at {begin}:{end}>")
    }
}

impl From<palmette_bindings::Member> for Member {
    fn from(of: palmette_bindings::Member) -> Self {
        let palmette_bindings::Member { set, field, value, id, span, place, .. } = of;
        let span = (span.start, span.end);
        let (document, place) = place.map(|at| (at.document, (at.span.start, at.span.end))).unzip();
        Self { set, field, value, id, span, document, place }
    }
}

/// Texts of a list, or of any other iterable; one text is none.
fn texts(given: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<String>> {
    if given.is_instance_of::<PyString>() {
        let message = format!("{what} are a list of texts; this is one text: put it in a list");
        return Err(PyTypeError::new_err(message));
    }
    given.try_iter()?.map(|text| text?.extract()).collect()
}

/// The sets of keywords, by name.
pub(crate) fn bindings_of(given: Option<&Bound<'_, PyDict>>) -> PyResult<Bindings> {
    let mut bindings = Bindings::new();
    for (name, value) in given.into_iter().flat_map(|given| given.iter()) {
        let name: String = name.extract()?;
        let source = source_of(&name, &value)?;
        bindings = bindings.source(name, source);
    }
    Ok(bindings)
}

fn source_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<SetSource> {
    if let Ok(catalog) = value.cast::<Catalog>() {
        return Ok(SetSource::from_catalog(catalog.get().view.clone()));
    }
    if let Ok(items) = value.cast::<ItemSet>() {
        return of_items(name, items.get());
    }
    // Pinned as they are now.
    if let Ok(live) = value.cast::<LiveCatalog>() {
        let view: CatalogView = live.get().live()?.snapshot().into();
        return Ok(SetSource::from_catalog(view));
    }
    if let Ok(reader) = value.cast::<LiveReader>() {
        let view: CatalogView = reader.get().reader(value.py())?.snapshot().into();
        return Ok(SetSource::from_catalog(view));
    }
    if let Ok(lexicon) = value.cast::<Lexicon>() {
        return Ok(SetSource::from_lexicon(Arc::clone(&lexicon.get().lexicon)));
    }
    if let Ok(documents) = value.cast::<Substrings>() {
        return Ok(documents.get().source.clone());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let values = texts(value, name)?;
        let source = process::detach_in_pool(value.py(), || SetSource::from_values(&values));
        return source.map_err(|error| CatalogError::new_err(format!("{name}: {error}")));
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{name} is bound to a Catalog, an ItemSet, a LiveCatalog or LiveReader, a Lexicon, a list of texts, or Substrings, not {kind}"
    )))
}

/// Subset of a catalog's items: by the filter that found them, or else by their ids.
fn of_items(name: &str, items: &ItemSet) -> PyResult<SetSource> {
    let all = SetSource::from_catalog(items.view.clone());
    if let Some(filter) = &items.filter {
        return Ok(all.matching(filter));
    }
    let filter = CatalogFilter::from_value(&json!({"must": [{"ids": items.ids()}]}));
    let filter = filter.map_err(|error| {
        PyValueError::new_err(format!(
            "{name}: {} items that no single filter found: {error}",
            items.items.len()
        ))
    })?;
    Ok(all.matching(&filter))
}

/// The exception of sets that do not fit a grammar.
pub(crate) fn of_binding(error: &BindingError) -> PyErr {
    match error {
        BindingError::Filter { error: of, .. } => of_filter(of),
        BindingError::Value { .. }
        | BindingError::Documents { .. }
        | BindingError::Field { .. } => CatalogError::new_err(error.to_string()),
        BindingError::Unbound { .. }
        | BindingError::Unused { .. }
        | BindingError::Unfiltered { .. }
        | BindingError::Kind { .. }
        | BindingError::SlotFilter { .. }
        | BindingError::NoCodeTokens { .. }
        | BindingError::OtherVocabulary { .. }
        | BindingError::NoText(_)
        | BindingError::Short(_)
        | BindingError::Scope { .. }
        | BindingError::Compile(_) => GrammarError::new_err(error.to_string()),
    }
}
