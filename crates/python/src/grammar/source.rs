//! `palmette.Grammar`: a grammar as its author wrote it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::frontends::json_schema::{
    Digits, Draft, Escapes, Inexpressible, JsonSchemaOptions, PropertyOrder, Separators, Whitespace,
};
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::frontends::regex::RegexOptions;
use palmette_grammar::frontends::structural_tag::{StructuralTagOptions, ToolFormat, check_tools};
use palmette_grammar::{GrammarSource, Lexing, SourceError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString, PyType};

use super::compiled::{Ahead, CompiledGrammar, Limits, compile};
use super::vocabulary::Vocabulary;
use crate::errors;

/// A grammar in one of the languages that are read, with its options. Frozen; equal grammars are
/// equal.
///
/// Nothing is read before ``check`` or ``compile``.
#[pyclass(module = "palmette", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Grammar {
    pub(crate) source: GrammarSource,
}

/// A choice among words.
fn one_of<T: Copy>(name: &str, given: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(word, _)| *word == given);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let words: Vec<_> = known.iter().map(|(word, _)| format!("{word:?}")).collect();
        PyValueError::new_err(format!("{name} is {given:?}; it is one of {}", words.join(", ")))
    })
}

/// The word of a choice.
fn word_of<T: PartialEq>(value: T, known: &[(&'static str, T)]) -> &'static str {
    known.iter().find(|(_, it)| *it == value).map_or("", |(word, _)| word)
}

const WHITESPACE: [(&str, Whitespace); 4] = [
    ("bounded", Whitespace::Bounded),
    ("flexible", Whitespace::Flexible),
    ("compact", Whitespace::Compact),
    ("spaced", Whitespace::Spaced),
];
const DIGITS: [(&str, Digits); 2] = [("bounded", Digits::Bounded), ("any", Digits::Any)];
const ESCAPES: [(&str, Escapes); 2] = [("needed", Escapes::Needed), ("any", Escapes::Any)];
const ON_PARTIAL: [(&str, Inexpressible); 3] = [
    ("accept", Inexpressible::Approximated),
    ("strict", Inexpressible::Refused),
    ("relax", Inexpressible::Ignored),
];
const LEXING: [(&str, Lexing); 3] =
    [("contextual", Lexing::Contextual), ("longest", Lexing::Longest), ("any", Lexing::Any)];

/// The options of JSON Schema by their names in Python, which are also those of structural tags and
/// tools.
///
/// Options are passed as a dict so that their names, defaults and meanings stand in one place.
fn schema_options(given: Option<&Bound<'_, PyDict>>) -> PyResult<JsonSchemaOptions> {
    let mut options = JsonSchemaOptions::default();
    let Some(given) = given else { return Ok(options) };
    let mut max_tracked = None;
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        let word = || {
            value
                .extract::<String>()
                .map_err(|_| PyTypeError::new_err(format!("{name} is a word (str), not {value}")))
        };
        let truth = || {
            value
                .extract::<bool>()
                .map_err(|_| PyTypeError::new_err(format!("{name} is True or False, not {value}")))
        };
        let number = || {
            value.extract::<usize>().map_err(|_| {
                PyTypeError::new_err(format!("{name} is a whole number from 0, not {value}"))
            })
        };
        let limits = &mut options.limits;
        match &*name {
            "order" => {
                let any = options.order;
                let orders = [("any", any), ("schema", PropertyOrder::Schema)];
                options.order = one_of(&name, &word()?, &orders)?;
            }
            "whitespace" => {
                options.whitespace = match value.extract::<(String, String)>() {
                    Ok((comma, colon)) => {
                        let separators = Separators::new(&comma, &colon);
                        let separators =
                            separators.map_err(|error| PyValueError::new_err(error.to_string()))?;
                        Whitespace::Separators(separators)
                    }
                    Err(_) => one_of(&name, &word()?, &WHITESPACE)?,
                };
            }
            "digits" => options.digits = one_of(&name, &word()?, &DIGITS)?,
            "escapes" => options.escapes = one_of(&name, &word()?, &ESCAPES)?,
            "on_partial" => options.inexpressible = one_of(&name, &word()?, &ON_PARTIAL)?,
            "draft" => {
                let draft = value.str()?;
                options.draft = one_of(&name, &draft.to_string_lossy(), &Draft::NAMES)?;
            }
            "formats" => options.formats = truth()?,
            "distinct_members" => options.distinct_members = truth()?,
            "closed_objects" => options.closed_objects = truth()?,
            "integer_fractions" => options.integer_fractions = truth()?,
            "resources" => {
                if value.is_none() {
                    continue;
                }
                let resources = value.cast::<PyDict>().map_err(|_| {
                    PyTypeError::new_err("resources are a dict from URIs to schemas")
                })?;
                let texts =
                    resources.iter().map(|(uri, schema)| Ok((uri.extract()?, json_text(&schema)?)));
                options.resources = texts.collect::<PyResult<BTreeMap<String, String>>>()?;
            }
            "max_tracked" => {
                let count = number()?;
                max_tracked = Some(u32::try_from(count).unwrap_or(u32::MAX));
            }
            "max_listed" => options.max_listed = number()?,
            "max_listed_bytes" => options.max_listed_bytes = number()?,
            "max_string_tokens" => {
                if value.is_none() {
                    continue;
                }
                let tokens = value.extract().ok().and_then(NonZeroU32::new);
                let tokens = tokens.ok_or_else(|| {
                    PyTypeError::new_err(format!(
                        "max_string_tokens is a whole number from 1 to 2**32 - 1, or None for any number, not {value}"
                    ))
                })?;
                options.max_string_tokens = Some(tokens);
            }
            "max_depth" => limits.max_depth = number()?,
            "max_nesting" => limits.max_nesting = number()?,
            "max_cases" => limits.max_cases = number()?,
            "max_states" => limits.max_states = number()?,
            "max_rules" => limits.max_rules = number()?,
            "max_work" => limits.max_work = number()?,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "there is no option {name:?}; there are order, whitespace, digits, escapes, on_partial, draft, formats, \
                     distinct_members, closed_objects, integer_fractions, resources, max_tracked, max_listed, max_listed_bytes, max_string_tokens, \
                     max_depth, max_nesting, max_cases, max_states, max_rules and max_work"
                )));
            }
        }
    }
    if let (Some(count), PropertyOrder::Any { max_tracked }) = (max_tracked, &mut options.order) {
        *max_tracked = count;
    }
    Ok(options)
}

/// The options that are not the default ones, as [`schema_options`] reads them.
fn shown_options<'py>(
    py: Python<'py>,
    options: &JsonSchemaOptions,
) -> PyResult<Bound<'py, PyDict>> {
    let (shown, default) = (PyDict::new(py), JsonSchemaOptions::default());
    let put = |name: &str, other: bool, value: Bound<'py, PyAny>| match other {
        true => shown.set_item(name, value),
        false => Ok(()),
    };
    let word = |word: &str| PyString::new(py, word).into_any();
    let truth = |truth: bool| PyBool::new(py, truth).to_owned().into_any();
    match options.order {
        PropertyOrder::Schema => shown.set_item("order", "schema")?,
        order @ PropertyOrder::Any { max_tracked } if order != default.order => {
            shown.set_item("max_tracked", max_tracked)?;
        }
        PropertyOrder::Any { .. } => {}
    }
    let whitespace = match options.whitespace {
        Whitespace::Separators(of) => (of.comma(), of.colon()).into_pyobject(py)?.into_any(),
        named => word(word_of(named, &WHITESPACE)),
    };
    put("whitespace", options.whitespace != default.whitespace, whitespace)?;
    put("digits", options.digits != default.digits, word(word_of(options.digits, &DIGITS)))?;
    put("escapes", options.escapes != default.escapes, word(word_of(options.escapes, &ESCAPES)))?;
    let on_partial = word(word_of(options.inexpressible, &ON_PARTIAL));
    put("on_partial", options.inexpressible != default.inexpressible, on_partial)?;
    put("draft", options.draft != default.draft, word(word_of(options.draft, &Draft::NAMES)))?;
    put("formats", options.formats != default.formats, truth(options.formats))?;
    let distinct = options.distinct_members;
    put("distinct_members", distinct != default.distinct_members, truth(distinct))?;
    let closed = options.closed_objects;
    put("closed_objects", closed != default.closed_objects, truth(closed))?;
    let fractions = options.integer_fractions;
    put("integer_fractions", fractions != default.integer_fractions, truth(fractions))?;
    if !options.resources.is_empty() {
        shown.set_item("resources", options.resources.clone())?;
    }
    if let Some(tokens) = options.max_string_tokens {
        shown.set_item("max_string_tokens", tokens.get())?;
    }
    let (limits, usual) = (&options.limits, &default.limits);
    for (name, limit, usual) in [
        ("max_listed", options.max_listed, default.max_listed),
        ("max_listed_bytes", options.max_listed_bytes, default.max_listed_bytes),
        ("max_depth", limits.max_depth, usual.max_depth),
        ("max_nesting", limits.max_nesting, usual.max_nesting),
        ("max_cases", limits.max_cases, usual.max_cases),
        ("max_states", limits.max_states, usual.max_states),
        ("max_rules", limits.max_rules, usual.max_rules),
        ("max_work", limits.max_work, usual.max_work),
    ] {
        if limit != usual {
            shown.set_item(name, limit)?;
        }
    }
    Ok(shown)
}

/// A JSON document as text: text as it is, other values by `json.dumps`, models of pydantic by
/// their schema.
fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    let py = value.py();
    let model = match value.getattr_opt("model_json_schema")? {
        Some(schema) => Some(schema.call0()?),
        None if !value.is_instance_of::<PyDict>() => match value.getattr_opt("json_schema")? {
            Some(schema) => Some(schema.call0()?),
            None => None,
        },
        None => None,
    };
    let document = model.as_ref().unwrap_or(value);
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    options.set_item("allow_nan", false)?;
    let text = py.import("json")?.call_method("dumps", (document,), Some(&options));
    match text {
        Ok(text) => Ok(text.cast_into::<PyString>()?.to_str()?.to_owned()),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            Err(PyTypeError::new_err(format!(
                "this is no JSON: {error}; give a str, what json.loads gives, or a pydantic model"
            )))
        }
        Err(error) => Err(error),
    }
}

/// A text in which every character stands for itself within a regular expression.
fn escaped(text: &str) -> String {
    let special = |c: char| r"\.+*?()|[]{}^$#&-~/ ".contains(c) && !matches!(c, ' ' | '/');
    text.chars().fold(String::new(), |mut all, c| {
        if special(c) {
            all.push('\\');
        }
        all.push(c);
        all
    })
}

#[pymethods]
impl Grammar {
    /// The JSON texts that a JSON Schema validates. ``schema`` is its text, a dict, a bool, or a
    /// pydantic model or TypeAdapter.
    ///
    /// Options are keywords: see the stub ``_palmette.pyi`` or the package's documentation.
    #[staticmethod]
    #[pyo3(signature = (schema, **options))]
    fn from_json_schema(
        schema: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (text, options) = (json_text(schema)?, schema_options(options)?);
        Ok(Self { source: GrammarSource::JsonSchema { text, options } })
    }

    /// The texts of a grammar in Lark's language, from the rule ``start``.
    #[staticmethod]
    #[pyo3(signature = (text, *, lexing=None, start="start"))]
    fn from_lark(text: String, lexing: Option<&str>, start: &str) -> PyResult<Self> {
        let mut options = LarkOptions::from_rule(start);
        options.lexing = lexing.map(|lexing| one_of("lexing", lexing, &LEXING)).transpose()?;
        Ok(Self { source: GrammarSource::Lark { text, options } })
    }

    /// The texts of a grammar in the EBNF of llama.cpp and XGrammar, from the rule ``root``.
    #[staticmethod]
    #[pyo3(signature = (text, *, root="root"))]
    fn from_gbnf(text: String, root: &str) -> Self {
        let options = GbnfOptions { root: root.to_owned() };
        Self { source: GrammarSource::Gbnf { text, options } }
    }

    /// The texts that a regular expression matches from beginning to end.
    #[staticmethod]
    fn from_regex(pattern: String) -> Self {
        let options = RegexOptions::default();
        Self { source: GrammarSource::Regex { text: pattern, options } }
    }

    /// One of these texts.
    #[staticmethod]
    fn from_choices(choices: &Bound<'_, PyAny>) -> PyResult<Self> {
        if choices.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "choices are a list of texts; this is one text: put it in a list",
            ));
        }
        let choices = choices.try_iter()?.map(|choice| choice?.extract());
        let choices = choices.collect::<PyResult<Vec<String>>>()?;
        if choices.is_empty() {
            return Err(PyValueError::new_err("there are no choices; give at least one text"));
        }
        let texts: Vec<_> = choices.iter().map(|choice| escaped(choice)).collect();
        let options = RegexOptions::default();
        Ok(Self { source: GrammarSource::Regex { text: texts.join("|"), options } })
    }

    /// Free text in which triggers begin regions that schemas or grammars hold, as XGrammar and
    /// vLLM take it: the text of the document or a dict. Options are those of ``from_json_schema``,
    /// for the schemas in it.
    #[staticmethod]
    #[pyo3(signature = (document, **options))]
    fn from_structural_tag(
        document: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = StructuralTagOptions { json_schema: schema_options(options)? };
        let text = json_text(document)?;
        Ok(Self { source: GrammarSource::StructuralTag { text, options } })
    }

    /// Answers to a request with tools: tools alone, a list of them, or a request of OpenAI's or
    /// Anthropic's interface (``tools``, ``tool_choice``, ``parallel_tool_calls``,
    /// ``lax_tools``, ``response_format``). ``format`` is the way in which the model writes calls,
    /// such as ``hermes`` (Qwen3), ``qwen_xml`` (Qwen3-Coder, Qwen3.5), ``kimi_k2`` or ``harmony``
    /// (gpt-oss).
    #[staticmethod]
    #[pyo3(signature = (request, format, **options))]
    fn from_tools(
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        format: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let format = ToolFormat::of_name(format)
            .map_err(|error| PyValueError::new_err(format!("format: {error}")))?;
        let options = StructuralTagOptions { json_schema: schema_options(options)? };
        let text = json_text(request)?;
        check_tools(&text, format)
            .map_err(|error| errors::of_source(py, &SourceError::StructuralTag(error), &text))?;
        Ok(Self { source: GrammarSource::Tools { text, format: *format, options } })
    }

    /// The grammar's text: of choices the regular expression, of tools the request.
    #[getter]
    fn text(&self) -> &str {
        self.source.text()
    }

    /// The language it is in: ``json_schema``, ``lark``, ``gbnf``, ``regex``, ``structural_tag`` or
    /// ``tools``.
    #[getter]
    fn language(&self) -> &'static str {
        self.source.language()
    }

    /// The options that are not the default ones, as the constructor takes them.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shown = PyDict::new(py);
        match &self.source {
            GrammarSource::JsonSchema { options, .. } => return shown_options(py, options),
            GrammarSource::StructuralTag { options, .. } => {
                return shown_options(py, &options.json_schema);
            }
            GrammarSource::Tools { format, options, .. } => {
                let shown = shown_options(py, &options.json_schema)?;
                shown.set_item("format", format.name)?;
                return Ok(shown);
            }
            GrammarSource::Lark { options, .. } => {
                if let Some(lexing) = options.lexing {
                    shown.set_item("lexing", word_of(lexing, &LEXING))?;
                }
                if options.start != LarkOptions::default().start {
                    shown.set_item("start", &options.start)?;
                }
            }
            GrammarSource::Gbnf { options, .. } => {
                if options.root != GbnfOptions::default().root {
                    shown.set_item("root", &options.root)?;
                }
            }
            GrammarSource::Regex { .. } => {}
        }
        Ok(shown)
    }

    /// Reads the grammar and gives what ``compile(...).notes`` would: parts without effect, and
    /// what is not enforced. Of ``limits`` the steps are those of reading.
    #[pyo3(signature = (*, limits=None))]
    fn check(&self, py: Python<'_>, limits: Option<Limits>) -> PyResult<Vec<String>> {
        let (source, steps) = (&self.source, limits.unwrap_or_default().steps());
        let read = crate::interrupt::interruptible(py, |cancelled| {
            let mut budget = palmette_grammar::Budget::cancellable(steps, cancelled);
            source.parse_with_budget(&mut budget).map(|(_, warnings)| warnings)
        })?;
        let warnings = read.map_err(|error| errors::of_source(py, &error, source.text()))?;
        Ok(warnings.iter().map(ToString::to_string).collect())
    }

    /// Makes the grammar ready to mask a vocabulary's tokens. Without the interpreter's lock;
    /// Ctrl-C ends it.
    ///
    /// Equal grammars are compiled once a vocabulary. ``ahead`` finds masks out before they are
    /// asked for: ``True`` on a thread of its own, a number for at most so many seconds here and
    /// then on its own. ``limits`` are those of this grammar alone, which then is not kept for
    /// others.
    #[pyo3(signature = (vocabulary, *, ahead=None, limits=None))]
    fn compile(
        slf: &Bound<'_, Self>,
        vocabulary: &Bound<'_, Vocabulary>,
        ahead: Option<Ahead>,
        limits: Option<Limits>,
    ) -> PyResult<CompiledGrammar> {
        compile(slf, vocabulary, None, ahead, limits)
    }

    fn __repr__(&self) -> String {
        const SHOWN: usize = 60;
        let text = self.source.text();
        let start: String = text.chars().take(SHOWN).collect();
        let more = if start.len() < text.len() { "…" } else { "" };
        format!("<palmette.Grammar in {}: {start:?}{more}>", self.language())
    }

    #[allow(clippy::type_complexity, reason = "a pickle's parts")]
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (&'static str, String, Bound<'py, PyDict>))> {
        let this = slf.get();
        let parts = (this.language(), this.text().to_owned(), this.options(slf.py())?);
        Ok((slf.get_type().getattr("_restore")?, parts))
    }

    #[classmethod]
    fn _restore<'py>(
        cls: &Bound<'py, PyType>,
        language: &str,
        text: &Bound<'py, PyAny>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let maker = match language {
            "json_schema" | "lark" | "gbnf" | "structural_tag" | "regex" | "tools" => {
                format!("from_{language}")
            }
            _ => return Err(PyValueError::new_err(format!("no language is called {language:?}"))),
        };
        cls.call_method(maker.as_str(), (text,), Some(options))
    }
}
