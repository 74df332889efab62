//! `palmette.CompiledGrammar`: a grammar over a vocabulary; and `palmette.Compiler`, a cache of
//! them with limits.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use palmette_bindings::BoundGrammar;
use palmette_grammar::{
    BackgroundPrecompute, Budget, CacheError, CacheLimits, FolderLimits, GrammarCache,
    GrammarConstraint, GrammarFolder, PrecomputeLimits, ReopenError, Reopened, SavedGrammar,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyType};

use super::matcher::Matcher;
use super::members::{bindings_of, of_binding};
use super::source::Grammar;
use super::vocabulary::{Vocabulary, tokens_of};
use crate::errors;
use crate::interrupt::interruptible;
use crate::process::{self, AtWork, OfProcess};

/// A grammar made ready to mask the tokens of a vocabulary. Frozen; threads share it.
#[pyclass(module = "palmette", frozen)]
pub(crate) struct CompiledGrammar {
    pub(crate) constraint: Arc<GrammarConstraint>,
    notes: Vec<String>,
    vocabulary: Py<Vocabulary>,
    grammar: Py<Grammar>,
    ahead: Mutex<Option<OfProcess<BackgroundPrecompute>>>,
    /// Sets of its names, and the grammar that leaves them open.
    bound: Option<(BoundGrammar, Py<CompiledGrammar>)>,
}

/// Masks found out before they are asked for: not, on a thread of its own, or waited for as many
/// seconds.
#[derive(Clone, Copy, FromPyObject)]
pub(crate) enum Ahead {
    Whether(bool),
    Seconds(f64),
}

/// Time that is waited at once, between two looks at signals.
const AT_ONCE: Duration = Duration::from_millis(10);

/// Limits of compiling, by their names in messages.
#[derive(Default)]
pub(crate) struct Limits(CacheLimits);

impl Limits {
    /// The work that reading or compiling a grammar may take.
    pub(crate) fn steps(&self) -> u64 {
        self.0.steps
    }
}

impl<'py> FromPyObject<'_, 'py> for Limits {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let mut limits = CacheLimits::default();
        let given = given
            .cast::<PyDict>()
            .map_err(|_| PyTypeError::new_err("limits are a dict, such as {\"steps\": 10**9}"))?;
        for (name, value) in given.iter() {
            let name: String = name.extract()?;
            let number: u64 = value.extract().map_err(|_| {
                PyTypeError::new_err(format!("limit {name} is a whole number from 0, not {value}"))
            })?;
            limits.set(&name, number).map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        Ok(Self(limits))
    }
}

/// Compiles in the vocabulary's own cache, in another, or, under limits of its own, in none.
pub(crate) fn compile(
    grammar: &Bound<'_, Grammar>,
    vocabulary: &Bound<'_, Vocabulary>,
    cache: Option<&GrammarCache>,
    ahead: Option<Ahead>,
    limits: Option<Limits>,
) -> PyResult<CompiledGrammar> {
    let (py, source) = (grammar.py(), &grammar.get().source);
    let seconds = seconds_of(ahead)?;
    let shared = &vocabulary.get().inner;
    let compiled = interruptible(py, |cancelled| {
        if cache.is_none() && limits.is_none() {
            return match shared.compile_unless(source, cancelled) {
                Ok(compiled) => Ok((compiled.constraint().clone(), compiled.warnings().collect())),
                Err(error) => Err(error),
            };
        }
        let own = limits.map(|limits| GrammarCache::new(limits.0));
        let cache = own.as_ref().or(cache);
        let found = cache.map(|cache| cache.get(source, shared.slices(), cancelled));
        let found = found.ok_or(CacheError::Cancelled)??.grammar;
        Ok((found.constraint.clone(), found.notes()))
    })?;
    let (constraint, notes) =
        compiled.map_err(|error| errors::of_compilation(py, &error, source.text()))?;
    let compiled = CompiledGrammar {
        constraint: Arc::new(constraint),
        notes,
        vocabulary: vocabulary.clone().unbind(),
        grammar: grammar.clone().unbind(),
        ahead: Mutex::default(),
        bound: None,
    };
    if let Some(seconds) = seconds {
        compiled.begin_ahead(py, seconds)?;
    }
    Ok(compiled)
}

/// The time that work ahead is waited for; `None` where there is none.
fn seconds_of(ahead: Option<Ahead>) -> PyResult<Option<Duration>> {
    match ahead {
        None | Some(Ahead::Whether(false)) => Ok(None),
        Some(Ahead::Whether(true)) => Ok(Some(Duration::ZERO)),
        Some(Ahead::Seconds(seconds)) => {
            Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| {
                PyValueError::new_err(format!(
                    "ahead is {seconds}; give True, False, or a number of seconds from 0"
                ))
            })
        }
    }
}

impl CompiledGrammar {
    /// The grammar with its sets, where they are bound.
    pub(crate) fn bound(&self) -> Option<&BoundGrammar> {
        self.bound.as_ref().map(|(bound, _)| bound)
    }

    /// The grammar as it was compiled, for files and pickles, which hold no sets.
    fn as_compiled(&self) -> &GrammarConstraint {
        self.bound.as_ref().map_or(&self.constraint, |(_, open)| &open.get().constraint)
    }

    /// Finds out masks on a thread of its own, which is waited for at most so long.
    fn begin_ahead(&self, py: Python<'_>, seconds: Duration) -> PyResult<()> {
        let limits = PrecomputeLimits::default();
        let mut at_work = None;
        let begun =
            self.constraint.precompute_in_background_pausing(limits, move || match at_work {
                None => at_work = Some(AtWork::begin()),
                Some(_) => process::pause(),
            });
        let begun = begun.map_err(|error| errors::of_io(py, &error, None))?;
        let mut ahead = self.ahead.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        *ahead = Some(OfProcess::new(begun));
        drop(ahead);
        if !seconds.is_zero() {
            self.wait_until(py, Instant::now().checked_add(seconds))?;
        }
        Ok(())
    }

    /// True when the work ahead is at its end by then; `None` waits for it. A forked child begins
    /// it anew.
    fn wait_until(&self, py: Python<'_>, until: Option<Instant>) -> PyResult<bool> {
        let ahead = self.ahead.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let is_of_parent = ahead.as_ref().is_some_and(|ahead| ahead.get().is_none());
        drop(ahead);
        if is_of_parent {
            self.begin_ahead(py, Duration::ZERO)?;
        }
        interruptible(py, |cancelled| {
            loop {
                let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                let ended = {
                    let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(ahead) = ahead.as_ref().and_then(OfProcess::get) else { return true };
                    ahead.wait(left.map_or(AT_ONCE, |left| left.min(AT_ONCE)))
                };
                if ended {
                    return true;
                }
                if left.is_some_and(|left| left.is_zero()) || cancelled.load(Ordering::Relaxed) {
                    return false;
                }
                process::pause();
            }
        })
    }

    fn reopened(
        vocabulary: &Bound<'_, Vocabulary>,
        what: &str,
        open: impl FnOnce() -> Result<SavedGrammar, ReopenError> + Send,
    ) -> PyResult<Self> {
        let (py, slices) = (vocabulary.py(), vocabulary.get().inner.slices());
        let reopened = interruptible(py, |cancelled: &AtomicBool| {
            let mut budget = Budget::cancellable(Limits::default().steps(), cancelled);
            let saved = open()?;
            let reopened = saved.compile(slices, &Default::default(), &mut budget)?;
            Ok((reopened, saved.source().clone()))
        })?;
        let (reopened, source) = reopened.map_err(|error| errors::of_reopen(py, &error, what))?;
        let Reopened { constraint, warnings, .. } = reopened;
        let dead_ends = constraint.recognizer().dead_end_notes().into_iter();
        let notes = warnings.iter().map(ToString::to_string).chain(dead_ends.map(|(_, note)| note));
        Ok(Self {
            notes: notes.collect(),
            constraint: Arc::new(constraint),
            vocabulary: vocabulary.clone().unbind(),
            grammar: Py::new(py, Grammar { source })?,
            ahead: Mutex::default(),
            bound: None,
        })
    }
}

#[pymethods]
impl CompiledGrammar {
    /// Follows one sequence from its beginning. ``ends`` are the tokens that end this one instead
    /// of the vocabulary's: ids of special or ordinary tokens.
    #[pyo3(signature = (ends=None))]
    pub(crate) fn matcher(slf: &Bound<'_, Self>, ends: Option<Vec<i64>>) -> PyResult<Matcher> {
        let this = slf.get();
        let num_tokens = this.constraint.vocabulary().num_tokens();
        let ends = ends.map(|ends| tokens_of(&ends, num_tokens)).transpose()?;
        let other = ends.map(|ends| this.constraint.with_ends(ends));
        // The same ends share what is known of tokens.
        let constraint = match other.filter(|other| other.ends() != this.constraint.ends()) {
            Some(other) => Arc::new(other),
            None => Arc::clone(&this.constraint),
        };
        Ok(Matcher::new(slf.clone().unbind(), constraint))
    }

    /// The grammar with sets for the names that it leaves open (``x-catalog``, ``%catalog``,
    /// ``<catalog:…>``, ``x-substring``): for one request, pinned as they are now. Nothing is
    /// compiled again. What was bound before is bound anew.
    #[pyo3(signature = (**sets))]
    fn bind(slf: &Bound<'_, Self>, sets: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (py, this) = (slf.py(), slf.get());
        let bindings = bindings_of(sets)?;
        let open = match &this.bound {
            Some((_, open)) => open.clone_ref(py),
            None => slf.clone().unbind(),
        };
        let constraint = &open.get().constraint;
        let bound = process::detach_in_pool(py, || bindings.bind(constraint));
        let bound = bound.map_err(|error| of_binding(&error))?;
        Ok(Self {
            constraint: Arc::new(bound.constraint().clone()),
            notes: this.notes.clone(),
            vocabulary: this.vocabulary(py),
            grammar: this.grammar(py),
            ahead: Mutex::default(),
            bound: Some((bound, open)),
        })
    }

    /// Names of the sets that the grammar leaves open, ascending.
    #[getter]
    fn names(&self) -> Vec<String> {
        let slots = self.as_compiled().slots().iter();
        let mut names: Vec<String> = slots.map(|slot| slot.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Sources that its names are bound to, by name: the ``generation`` of a live catalog, and the
    /// number of items or quotes that are ``eligible``. Empty where nothing is bound.
    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shown = PyDict::new(py);
        for source in self.bound().map_or(&[][..], BoundGrammar::sources) {
            let entry = PyDict::new(py);
            entry.set_item("generation", source.generation)?;
            entry.set_item("eligible", source.eligible)?;
            shown.set_item(&source.name, entry)?;
        }
        Ok(shown)
    }

    /// Parts of the grammar that have no effect, or are enforced in part only: a sentence each,
    /// with its place.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// The vocabulary.
    #[getter]
    pub(crate) fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// The grammar.
    #[getter]
    fn grammar(&self, py: Python<'_>) -> Py<Grammar> {
        self.grammar.clone_ref(py)
    }

    /// Size of the vocabulary: masks have this many bits.
    #[getter]
    fn num_tokens(&self) -> usize {
        self.constraint.vocabulary().num_tokens()
    }

    /// About how much memory it takes by now, without the vocabulary: masks that were asked for are
    /// kept.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> usize {
        process::detach_in_pool(py, || self.constraint.bytes())
    }

    /// Waits until the masks that ``ahead`` asked for are found out; tells whether they are.
    /// ``None`` waits for as long as it takes.
    #[pyo3(signature = (seconds=None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<bool> {
        let until = match seconds {
            Some(seconds) => {
                let wait = seconds_of(Some(Ahead::Seconds(seconds)))?.unwrap_or_default();
                Instant::now().checked_add(wait)
            }
            None => None,
        };
        self.wait_until(py, until)
    }

    /// Writes it to a file, with the masks that are known by now: ``palmette.load`` reads it, and
    /// so does the command line. Limits of the grammar are not written: one that needs greater ones
    /// than the default is refused.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let saved = process::detach_in_pool(py, || {
            self.as_compiled().save(&self.grammar.get().source, &path)
        });
        saved.map_err(|error| errors::of_save(py, &error, Some(&path)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let of = self.grammar.bind(py).repr().map_or("a grammar".to_owned(), |of| of.to_string());
        format!("<palmette.CompiledGrammar of {of} over {} tokens>", self.num_tokens())
    }

    #[allow(clippy::type_complexity, reason = "a pickle's parts")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Py<Vocabulary>, Bound<'py, PyBytes>))> {
        let (py, this) = (slf.py(), slf.get());
        if this.bound.is_some() {
            return Err(PyTypeError::new_err(
                "a grammar with sets is of one process; pickle the grammar that was bound, and bind it there",
            ));
        }
        let bytes =
            process::detach_in_pool(py, || this.constraint.to_bytes(&this.grammar.get().source));
        let bytes = bytes.map_err(|error| errors::of_save(py, &error, None))?;
        let parts = (this.vocabulary(py), PyBytes::new(py, &bytes));
        Ok((slf.get_type().getattr("_restore")?, parts))
    }

    #[classmethod]
    fn _restore(
        _cls: &Bound<'_, PyType>,
        vocabulary: &Bound<'_, Vocabulary>,
        bytes: Vec<u8>,
    ) -> PyResult<Self> {
        let open = || SavedGrammar::from_bytes(bytes.into());
        Self::reopened(vocabulary, "this pickle of a grammar", open)
    }
}

/// Opens a compiled grammar that ``CompiledGrammar.save`` or ``palmette grammar compile`` wrote,
/// over the vocabulary that it was compiled for.
#[pyfunction]
pub(crate) fn load(path: PathBuf, vocabulary: &Bound<'_, Vocabulary>) -> PyResult<CompiledGrammar> {
    let py = vocabulary.py();
    if let Err(error) = std::fs::metadata(&path) {
        return Err(errors::of_io(py, &error, Some(&path)));
    }
    let what = path.display().to_string();
    let at: &Path = &path;
    CompiledGrammar::reopened(vocabulary, &what, || SavedGrammar::open(at))
}

/// The counters of a cache, after a look at how large its grammars have become.
pub(crate) fn statistics_of<'py>(
    py: Python<'py>,
    cache: &GrammarCache,
) -> PyResult<Bound<'py, PyDict>> {
    let counted = process::detach(py, || {
        cache.trim();
        cache.statistics()
    });
    let shown = PyDict::new(py);
    shown.set_item("grammars", counted.grammars)?;
    shown.set_item("bytes", counted.bytes)?;
    shown.set_item("max_bytes", cache.limits().max_bytes)?;
    shown.set_item("hits", counted.hits)?;
    shown.set_item("waited", counted.waited)?;
    shown.set_item("built", counted.built)?;
    shown.set_item("failed", counted.failed)?;
    shown.set_item("evicted", counted.evicted)?;
    shown.set_item("too_large", counted.too_large)?;
    if let Some(folder) = cache.folder() {
        let counted = folder.statistics();
        shown.set_item("opened", counted.opened)?;
        shown.set_item("saved", counted.saved)?;
        shown.set_item("refused", counted.refused)?;
    }
    Ok(shown)
}

/// Compiles grammars over one vocabulary and keeps them, within so much memory and under limits of
/// its own.
///
/// Grammars that were not asked for longest are let go of first; who still has one keeps it.
///
/// With a ``folder`` processes of a machine share what is known of masks: each compiles a grammar,
/// one finds its masks ahead of time and writes them to a file, the others read it. Nobody waits
/// for that, and answers are the same without it. Files take at most ``folder_bytes``, a gibibyte
/// unless told otherwise; those written first go first.
#[pyclass(module = "palmette", frozen)]
pub(crate) struct Compiler {
    cache: GrammarCache,
    vocabulary: Py<Vocabulary>,
}

#[pymethods]
impl Compiler {
    #[new]
    #[pyo3(signature = (vocabulary, *, cache_bytes=None, limits=None, folder=None, folder_bytes=None))]
    fn new(
        py: Python<'_>,
        vocabulary: Py<Vocabulary>,
        cache_bytes: Option<usize>,
        limits: Option<Limits>,
        folder: Option<PathBuf>,
        folder_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let mut limits = limits.map_or_else(CacheLimits::default, |limits| limits.0);
        limits.max_bytes = cache_bytes.unwrap_or(limits.max_bytes);
        let mut cache = GrammarCache::new(limits);
        if let Some(path) = folder {
            let mut limits = FolderLimits::default();
            limits.max_bytes = folder_bytes.unwrap_or(limits.max_bytes);
            let folder = GrammarFolder::open(&path, limits);
            let folder = folder.map_err(|error| errors::of_io(py, &error, Some(&path)))?;
            cache = cache.with_folder(folder.with_host(Arc::new(process::Interpreter)));
        } else if folder_bytes.is_some() {
            return Err(PyTypeError::new_err(
                "folder_bytes bounds the files of a folder: give folder, too",
            ));
        }
        Ok(Self { cache, vocabulary })
    }

    /// The grammar over the vocabulary; compiled once as long as it is kept.
    #[pyo3(signature = (grammar, *, ahead=None))]
    fn compile(
        &self,
        grammar: &Bound<'_, Grammar>,
        ahead: Option<Ahead>,
    ) -> PyResult<CompiledGrammar> {
        let vocabulary = self.vocabulary.bind(grammar.py());
        compile(grammar, vocabulary, Some(&self.cache), ahead, None)
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    /// Counters: ``grammars`` and ``bytes`` held of at most ``max_bytes``, and by now ``hits``,
    /// ``waited`` (for another thread's compilation), ``built``, ``failed``, ``evicted`` and
    /// ``too_large``. With a folder also ``opened`` (grammars whose masks were read from a file),
    /// ``saved`` and ``refused``.
    #[getter]
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        statistics_of(py, &self.cache)
    }

    /// Lets go of all grammars that are kept; who has one keeps it.
    fn clear(&self) {
        self.cache.clear();
    }

    /// Waits until nothing more is to be found or written for the folder; tells whether that is so.
    #[pyo3(signature = (seconds))]
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let seconds = seconds_of(Some(Ahead::Seconds(seconds)))?.unwrap_or_default();
        let until = Instant::now().checked_add(seconds);
        interruptible(py, |cancelled| {
            let Some(folder) = self.cache.folder() else { return true };
            loop {
                let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                let at_once = left.map_or(AT_ONCE, |left| left.min(AT_ONCE));
                if folder.wait(at_once) {
                    return true;
                }
                if left.is_some_and(|left| left.is_zero()) || cancelled.load(Ordering::Relaxed) {
                    return false;
                }
                process::pause();
            }
        })
    }

    /// Reports of the folder since this was asked last, such as of a file that was refused or a
    /// folder that cannot be written: a sentence each.
    fn take_reports(&self) -> Vec<String> {
        self.cache.folder().map(GrammarFolder::take_reports).unwrap_or_default()
    }

    fn __repr__(&self) -> String {
        format!("<palmette.Compiler with {} grammars>", self.cache.statistics().grammars)
    }
}
