//! `palmette.Vocabulary`: the bytes of a model's tokens.

use std::path::PathBuf;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_vocabulary::{EndsFound, Format, LoadOptions, LoadedVocabulary};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString, PyType};

use super::compiled::statistics_of;
use crate::buffers::{IntMatrix, shown};
use crate::errors::{self, VocabularyError};
use crate::process;

/// The tokens of a model, and the grammars that were compiled over them. Frozen; threads share it.
///
/// ``tokens[t]`` are the bytes of token ``t``, ``None`` for a special token; ``ends`` are the
/// tokens by which the model stops. A mapping has the number of each token by its bytes; numbers
/// that it leaves out are special tokens. ``special_tokens`` gives special tokens the names by
/// which grammars may ask for them.
#[pyclass(module = "palmette", frozen)]
pub(crate) struct Vocabulary {
    pub(crate) inner: palmette::Vocabulary,
    notes: Vec<String>,
    cutting: Option<Cutting>,
    /// The `tokenizers.Tokenizer` that it was made of, which cuts text where this build does not.
    /// Copies in other processes are without it.
    backend: Option<Py<PyAny>>,
}

/// The source of the tokenizer, by which a copy in another process has it too.
#[derive(Clone)]
enum Cutting {
    Named(String),
    Content(Arc<[u8]>),
}

/// End tokens of the caller's: numbers, or names where a source has them.
#[derive(FromPyObject)]
enum End {
    Token(i64),
    Name(String),
}

/// All of a vocabulary but its tokenizer, as it is pickled.
type Pickled<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Vec<u32>,
    Vec<(String, u32)>,
    Vec<String>,
    Option<(bool, Bound<'py, PyBytes>)>,
);

impl Vocabulary {
    fn of(loaded: LoadedVocabulary, cutting: Option<Cutting>, mut notes: Vec<String>) -> Self {
        notes.extend(loaded.assumptions.iter().map(ToString::to_string));
        match &loaded.ends {
            EndsFound::WellKnownNames(names) => notes.push(format!(
                "end tokens taken by their well-known names: {}; give `ends` to say others",
                names.join(", ")
            )),
            EndsFound::None if loaded.vocabulary.ends().is_empty() => notes.push(
                "no end tokens: nothing ends a text; give `ends` to say by which tokens the model stops"
                    .to_owned(),
            ),
            _ => {}
        }
        Self { inner: loaded.into(), notes, cutting, backend: None }
    }

    /// A loaded vocabulary with other ends and another size.
    fn altered(
        mut loaded: LoadedVocabulary,
        num_tokens: Option<usize>,
        ends: Option<&[i64]>,
        notes: &mut Vec<String>,
    ) -> PyResult<LoadedVocabulary> {
        let found = loaded.vocabulary.num_tokens();
        let num_tokens = num_tokens.unwrap_or(found);
        if num_tokens > MAX_TOKENS {
            return Err(PyValueError::new_err(format!(
                "num_tokens is {num_tokens}; a vocabulary has at most {MAX_TOKENS} tokens"
            )));
        }
        if num_tokens < found {
            notes.push(format!(
                "the tokenizer has {found} tokens; those from {num_tokens} on are left out, as num_tokens says"
            ));
        }
        let ends = match ends {
            Some(ends) => {
                loaded.ends = EndsFound::Options;
                tokens_of(ends, num_tokens)?
            }
            None if num_tokens == found => return Ok(loaded),
            None => {
                let kept = loaded.vocabulary.ends().iter().copied();
                kept.filter(|end| end.index() < num_tokens).collect()
            }
        };
        let old = &loaded.vocabulary;
        let texts = (0..num_tokens as u32).map(TokenId).map(|token| {
            let text = (token.index() < found).then(|| old.text(token))?;
            (!text.is_empty() && !ends.contains(&token)).then_some(text)
        });
        let vocabulary = palmette_core::Vocabulary::new(texts, ends.iter().copied());
        let names = old.names().filter(|(_, token)| token.index() < num_tokens);
        let names = names.map(|(name, token)| (token, name.to_owned()));
        let vocabulary = vocabulary.and_then(|vocabulary| vocabulary.with_names(names));
        loaded.vocabulary =
            Arc::new(vocabulary.map_err(|error| VocabularyError::new_err(error.to_string()))?);
        Ok(loaded)
    }

    fn from_content(
        py: Python<'_>,
        name: &str,
        bytes: &[u8],
        num_tokens: Option<usize>,
        ends: Option<&[i64]>,
    ) -> PyResult<Self> {
        let loaded = process::detach_in_pool(py, || {
            palmette_vocabulary::load_bytes(name, bytes, &LoadOptions::default())
        });
        let loaded = loaded.map_err(|error| VocabularyError::new_err(error.to_string()))?;
        let mut notes = Vec::new();
        let loaded = Self::altered(loaded, num_tokens, ends, &mut notes)?;
        let cutting = Cutting::Content(bytes.into());
        Ok(process::detach_in_pool(py, || Self::of(loaded, Some(cutting), notes)))
    }

    fn from_parts(
        py: Python<'_>,
        vocabulary: palmette_core::Vocabulary,
        cutting: Option<Cutting>,
        notes: Vec<String>,
    ) -> Self {
        process::detach_in_pool(py, || {
            let options = LoadOptions::default();
            let source = match &cutting {
                Some(Cutting::Named(name)) => palmette_vocabulary::load_with(name, &options).ok(),
                Some(Cutting::Content(bytes)) => {
                    palmette_vocabulary::load_bytes("pickled", bytes, &options).ok()
                }
                None => None,
            };
            let inner = LoadedVocabulary {
                vocabulary: Arc::new(vocabulary),
                tokenizer: source.and_then(|source| source.tokenizer),
                name: String::new(),
                format: Format::Pieces,
                ends: EndsFound::Options,
                specials: Vec::new(),
                assumptions: Vec::new(),
            };
            Self { inner: inner.into(), notes, cutting, backend: None }
        })
    }

    /// The tokens of a text by its Python tokenizer, which must give the text back.
    fn encode_by(&self, backend: &Bound<'_, PyAny>, text: &str) -> PyResult<Vec<TokenId>> {
        let py = backend.py();
        let options = PyDict::new(py);
        options.set_item("add_special_tokens", false)?;
        // Batches are cut without the interpreter's lock, single texts with it.
        let batch = match backend.getattr_opt("encode_batch_fast")? {
            Some(batch) => Some(batch),
            None => backend.getattr_opt("encode_batch")?,
        };
        let cut = match batch {
            Some(batch) => batch.call(((text,),), Some(&options))?.get_item(0)?,
            None => backend.call_method("encode", (text,), Some(&options))?,
        };
        let cut = cut.getattr_opt("ids")?.unwrap_or(cut);
        let tokens: Vec<TokenId> = cut.extract::<Vec<u32>>()?.into_iter().map(TokenId).collect();
        if process::detach(py, || self.inner.decode(&tokens) == text.as_bytes()) {
            return Ok(tokens);
        }
        Err(VocabularyError::new_err(
            "the tokenizer changes this text: its tokens spell another (a space in front, a normal form, or special tokens \
             in it); cut the text by the tokenizer itself if that is meant",
        ))
    }

    /// The vocabulary of the engine crates.
    pub(crate) fn tokens(&self) -> &palmette_core::Vocabulary {
        self.inner.slices().vocabulary()
    }
}

/// Ids are 32 bits, and masks of more tokens than this would be megabytes.
const MAX_TOKENS: usize = 1 << 24;

/// Numbers as tokens.
///
/// # Errors
/// `VocabularyError` for a number that no token has.
pub(crate) fn tokens_of(numbers: &[i64], num_tokens: usize) -> PyResult<Vec<TokenId>> {
    numbers.iter().map(|&number| token_of(number, num_tokens)).collect()
}

/// The numbers of a list, an array or a tensor: tokens as callers have them.
///
/// # Errors
/// `TypeError` for what holds no whole numbers, `ValueError` for several rows.
pub(crate) fn numbers_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if !given.hasattr("shape")? {
        return given.try_iter()?.map(|token| token?.extract()).collect();
    }
    let array = IntMatrix::of(given, "tokens")?;
    let mut numbers = Vec::with_capacity(array.num_cols());
    match (array.num_rows(), array.shape()) {
        (_, &[0]) => {}
        (1, _) => array.read_row(0, &mut numbers),
        (_, shape) => {
            let shape = shown(shape);
            return Err(PyValueError::new_err(format!(
                "tokens have the shape {shape}; give those of one sequence, such as a row of them"
            )));
        }
    }
    Ok(numbers)
}

/// A number as a token.
///
/// # Errors
/// `VocabularyError` for a number that no token has.
pub(crate) fn token_of(number: i64, num_tokens: usize) -> PyResult<TokenId> {
    match u32::try_from(number) {
        Ok(token) if (token as usize) < num_tokens => Ok(TokenId(token)),
        _ => Err(errors::unknown_token(number, num_tokens)),
    }
}

#[pymethods]
impl Vocabulary {
    #[new]
    #[pyo3(signature = (tokens, ends=Vec::new(), *, special_tokens=None))]
    fn new(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        ends: Vec<i64>,
        special_tokens: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let names = special_tokens.map(named_tokens).transpose()?.unwrap_or_default();
        let texts = match tokens.cast::<PyMapping>() {
            Ok(ids) => texts_of_ids(ids, &ends, &names)?,
            Err(_) => texts_of(tokens)?,
        };
        let ends = tokens_of(&ends, texts.len())?;
        let vocabulary = palmette_core::Vocabulary::new(texts, ends);
        let vocabulary = vocabulary.and_then(|vocabulary| {
            vocabulary.with_names(names.into_iter().map(|(name, token)| (token, name)))
        });
        let vocabulary = vocabulary.map_err(|error| VocabularyError::new_err(error.to_string()))?;
        Ok(Self::from_parts(py, vocabulary, None, Vec::new()))
    }

    /// The vocabulary of a fast tokenizer of ``transformers``, of a ``tokenizers.Tokenizer``, or of
    /// a wrapper of one.
    ///
    /// ``num_tokens`` is the size of the model's logits (``model.config.vocab_size``), which are
    /// often padded: ids that no token has are never allowed. ``ends`` are the ids by which the
    /// model stops; left out, the tokenizer's ``eos_token_id``.
    #[classmethod]
    #[pyo3(signature = (tokenizer, num_tokens=None, ends=None))]
    fn from_tokenizer(
        cls: &Bound<'_, PyType>,
        tokenizer: &Bound<'_, PyAny>,
        num_tokens: Option<usize>,
        ends: Option<Vec<i64>>,
    ) -> PyResult<Self> {
        let py = cls.py();
        let backend = match tokenizer.getattr_opt("backend_tokenizer")? {
            Some(backend) if backend.hasattr("to_str")? => backend,
            _ => tokenizer.clone(),
        };
        let Some(to_str) = backend.getattr_opt("to_str")? else {
            return Err(PyTypeError::new_err(format!(
                "{} is no fast tokenizer: it has no backend_tokenizer.to_str(). Load it with use_fast=True, or give its file to \
                 Vocabulary.open, or a tiktoken encoding to Vocabulary.from_tiktoken",
                tokenizer.get_type().qualname()?
            )));
        };
        let text: String = to_str.call0()?.extract()?;
        let ends = match ends {
            Some(ends) => Some(ends),
            None => ends_of(tokenizer)?,
        };
        let made =
            Self::from_content(py, "tokenizer", text.as_bytes(), num_tokens, ends.as_deref())?;
        Ok(Self { backend: Some(backend.unbind()), ..made })
    }

    /// A file or folder: ``tokenizer.json``, ``tekken.json``, a SentencePiece model, a tiktoken
    /// file, or a list of pieces.
    ///
    /// ``special_tokens`` (names and ids) are added to those of the file. ``ends`` are ids or
    /// names; left out, they are looked for in the configuration files beside it.
    #[classmethod]
    #[pyo3(signature = (path, *, special_tokens=None, num_tokens=None, ends=None))]
    fn open(
        cls: &Bound<'_, PyType>,
        path: PathBuf,
        special_tokens: Option<&Bound<'_, PyAny>>,
        num_tokens: Option<usize>,
        ends: Option<Vec<End>>,
    ) -> PyResult<Self> {
        let py = cls.py();
        if let Err(error) = std::fs::metadata(&path) {
            return Err(errors::of_io(py, &error, Some(&path)));
        }
        let special_tokens = special_tokens.map(named_tokens).transpose()?.unwrap_or_default();
        let (mut end_tokens, mut end_numbers) = (Vec::new(), Vec::new());
        let given = ends.is_some();
        for end in ends.into_iter().flatten() {
            match end {
                End::Token(token) => end_numbers.push(token),
                End::Name(name) => end_tokens.push(name),
            }
        }
        let named = !end_tokens.is_empty();
        let options = LoadOptions { special_tokens, end_tokens, ..LoadOptions::default() };
        // A path never means an encoding, even where a file has its name.
        let inside = std::path::Path::new(".").join(&path);
        let path = if path.is_absolute() { path } else { inside };
        let loaded = process::detach_in_pool(py, || {
            let loaded = palmette_vocabulary::load_with(&path.to_string_lossy(), &options);
            (loaded, content_of(&path))
        });
        let loaded_content = loaded.1;
        let loaded = loaded.0.map_err(|error| VocabularyError::new_err(error.to_string()))?;
        if named {
            end_numbers.extend(loaded.vocabulary.ends().iter().map(|end| i64::from(end.0)));
        }
        let (mut notes, ends) = (Vec::new(), given.then_some(&end_numbers[..]));
        let loaded = Self::altered(loaded, num_tokens, ends, &mut notes)?;
        let cutting = loaded_content.map(|bytes| Cutting::Content(bytes.into()));
        Ok(process::detach_in_pool(py, || Self::of(loaded, cutting, notes)))
    }

    /// An encoding of tiktoken that is in the package, such as ``"o200k_base"``.
    #[classmethod]
    #[pyo3(signature = (name, num_tokens=None, ends=None))]
    fn encoding(
        cls: &Bound<'_, PyType>,
        name: &str,
        num_tokens: Option<usize>,
        ends: Option<Vec<i64>>,
    ) -> PyResult<Self> {
        let py = cls.py();
        if !palmette_vocabulary::encoding_names().any(|known| known == name) {
            let known = palmette_vocabulary::encoding_names().collect::<Vec<_>>().join(", ");
            return Err(VocabularyError::new_err(format!(
                "no encoding has the name {name:?}; there are {known}. Files are read by Vocabulary.open"
            )));
        }
        let loaded = process::detach_in_pool(py, || {
            palmette_vocabulary::load_with(name, &LoadOptions::default())
        });
        let loaded = loaded.map_err(|error| VocabularyError::new_err(error.to_string()))?;
        let mut notes = Vec::new();
        let loaded = Self::altered(loaded, num_tokens, ends.as_deref(), &mut notes)?;
        let cutting = Cutting::Named(name.to_owned());
        Ok(process::detach_in_pool(py, || Self::of(loaded, Some(cutting), notes)))
    }

    /// Deprecated: ``open``.
    #[classmethod]
    #[pyo3(signature = (path, *, special_tokens=None, num_tokens=None, ends=None))]
    fn from_file(
        cls: &Bound<'_, PyType>,
        path: PathBuf,
        special_tokens: Option<&Bound<'_, PyAny>>,
        num_tokens: Option<usize>,
        ends: Option<Vec<End>>,
    ) -> PyResult<Self> {
        errors::warn_renamed(cls.py(), "Vocabulary.from_file", "Vocabulary.open")?;
        Self::open(cls, path, special_tokens, num_tokens, ends)
    }

    /// Deprecated: ``encoding``.
    #[classmethod]
    #[pyo3(signature = (name, num_tokens=None, ends=None))]
    fn named(
        cls: &Bound<'_, PyType>,
        name: &str,
        num_tokens: Option<usize>,
        ends: Option<Vec<i64>>,
    ) -> PyResult<Self> {
        errors::warn_renamed(cls.py(), "Vocabulary.named", "Vocabulary.encoding")?;
        Self::encoding(cls, name, num_tokens, ends)
    }

    /// The vocabulary of a ``tiktoken.Encoding``, also of one of the caller's own. ``ends`` left
    /// out is its ``eot_token``.
    #[classmethod]
    #[pyo3(signature = (encoding, num_tokens=None, ends=None))]
    fn from_tiktoken(
        cls: &Bound<'_, PyType>,
        encoding: &Bound<'_, PyAny>,
        num_tokens: Option<usize>,
        ends: Option<Vec<i64>>,
    ) -> PyResult<Self> {
        let py = cls.py();
        let parts = (|| {
            let ranks = encoding.getattr("_mergeable_ranks")?;
            let special = encoding.getattr("_special_tokens")?;
            PyResult::Ok((ranks.cast_into::<PyDict>()?, special.cast_into::<PyDict>()?))
        })();
        let (ranks, special) = parts.map_err(|_| {
            PyTypeError::new_err(
                "this is no tiktoken.Encoding: it has no _mergeable_ranks and _special_tokens",
            )
        })?;
        let mut texts: Vec<Option<Vec<u8>>> = Vec::new();
        let mut put = |token: usize, text: Option<Vec<u8>>| {
            if token >= MAX_TOKENS {
                return Err(PyValueError::new_err(format!(
                    "token {token}: a vocabulary has at most {MAX_TOKENS} tokens"
                )));
            }
            texts.resize(texts.len().max(token + 1), None);
            texts[token] = text;
            Ok(())
        };
        for (text, token) in ranks.iter() {
            put(token.extract()?, Some(text.extract()?))?;
        }
        let mut names = Vec::new();
        for (name, token) in special.iter() {
            put(token.extract()?, None)?;
            names.push((TokenId(token.extract()?), name.extract::<String>()?));
        }
        let end = match ends {
            Some(ends) => ends,
            None => match encoding.getattr_opt("eot_token")? {
                Some(end) => vec![end.extract()?],
                None => Vec::new(),
            },
        };
        let size = num_tokens.unwrap_or(texts.len());
        texts.resize(size.min(MAX_TOKENS), None);
        let ends = tokens_of(&end, texts.len())?;
        for end in &ends {
            texts[end.index()] = None;
        }
        names.retain(|(token, _)| token.index() < texts.len());
        let vocabulary = palmette_core::Vocabulary::new(texts, ends);
        let vocabulary = vocabulary.and_then(|vocabulary| vocabulary.with_names(names));
        let vocabulary = vocabulary.map_err(|error| VocabularyError::new_err(error.to_string()))?;
        // The patterns by which text is cut are known for the encodings of this name.
        let name: Option<String> = encoding.getattr("name").and_then(|name| name.extract()).ok();
        let known = name.filter(|name| palmette_vocabulary::encoding_names().any(|it| it == name));
        Ok(Self::from_parts(py, vocabulary, known.map(Cutting::Named), Vec::new()))
    }

    /// The text of a ``tokenizer.json``, a ``tekken.json``, or a JSON list of pieces.
    #[classmethod]
    #[pyo3(signature = (text, num_tokens=None, ends=None))]
    fn from_json(
        cls: &Bound<'_, PyType>,
        text: &str,
        num_tokens: Option<usize>,
        ends: Option<Vec<i64>>,
    ) -> PyResult<Self> {
        Self::from_content(cls.py(), "text", text.as_bytes(), num_tokens, ends.as_deref())
    }

    /// Size of the vocabulary, special tokens included: masks have this many bits.
    #[getter]
    fn num_tokens(&self) -> usize {
        self.inner.num_tokens()
    }

    fn __len__(&self) -> usize {
        self.inner.num_tokens()
    }

    /// The tokens by which the model stops, ascending.
    #[getter]
    fn ends(&self) -> Vec<u32> {
        self.inner.ends().iter().map(|end| end.0).collect()
    }

    /// Statements that the source does not make and that were taken to hold, a sentence each.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// The special tokens that have names, by which grammars may ask for them.
    #[getter]
    fn special_tokens(&self) -> std::collections::BTreeMap<String, u32> {
        self.tokens().names().map(|(name, token)| (name.to_owned(), token.0)).collect()
    }

    /// The bytes of a token; empty for a special one.
    fn text<'py>(&self, py: Python<'py>, token: i64) -> PyResult<Bound<'py, PyBytes>> {
        let token = token_of(token, self.inner.num_tokens())?;
        Ok(PyBytes::new(py, self.inner.text(token)))
    }

    /// The bytes of several tokens, one after another.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        tokens: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let tokens = tokens_of(&numbers_of(tokens)?, self.inner.num_tokens())?;
        Ok(PyBytes::new(py, &self.inner.decode(&tokens)))
    }

    /// The tokens of a text, as the vocabulary's own tokenizer cuts it within a text: no special
    /// tokens, no space before it.
    fn encode(&self, py: Python<'_>, text: &str) -> PyResult<Vec<u32>> {
        let num_tokens = self.inner.num_tokens();
        let tokens = match (process::detach_in_pool(py, || self.inner.encode(text)), &self.backend)
        {
            (Ok(tokens), _) => tokens,
            (Err(error), Some(backend)) if error.is_left_out() => {
                self.encode_by(backend.bind(py), text)?
            }
            (Err(error), None) if error.is_left_out() => {
                return Err(VocabularyError::new_err(
                    "the package does not cut text as a tokenizer.json says; make the vocabulary of the tokenizer itself \
                     (Vocabulary.from_tokenizer), or cut the text by it: tokenizer.encode(text, add_special_tokens=False)",
                ));
            }
            (Err(error), _) => return Err(VocabularyError::new_err(error.to_string())),
        };
        match tokens.iter().find(|token| token.index() >= num_tokens) {
            Some(token) => Err(errors::unknown_token(token.0.into(), num_tokens)),
            None => Ok(tokens.into_iter().map(|token| token.0).collect()),
        }
    }

    /// Counters of the grammars that were compiled over it and are kept, as ``Compiler.statistics``
    /// has them: together at most ``max_bytes``, those that were not asked for longest being let go
    /// of first.
    #[getter]
    fn cache_statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        statistics_of(py, self.inner.cache())
    }

    /// Lets go of the grammars that are kept; who has one keeps it.
    fn clear_cache(&self) {
        self.inner.cache().clear();
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.tokens() == other.tokens()
    }

    fn __hash__(&self) -> u64 {
        let fingerprint = self.inner.slices().fingerprint().to_string();
        u64::from_str_radix(&fingerprint[..16], 16).unwrap_or_default()
    }

    fn __repr__(&self) -> String {
        format!("<palmette.Vocabulary of {} tokens, ends {:?}>", self.num_tokens(), self.ends())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let (py, this) = (slf.py(), slf.get());
        let tokens = this.tokens();
        let (mut texts, mut lengths) = (Vec::new(), Vec::new());
        for token in (0..tokens.num_tokens() as u32).map(TokenId) {
            let text = tokens.text(token);
            texts.extend_from_slice(text);
            lengths.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
        let names = tokens.names().map(|(name, token)| (name.to_owned(), token.0)).collect();
        let cutting = this.cutting.as_ref().map(|cutting| match cutting {
            Cutting::Named(name) => (true, PyBytes::new(py, name.as_bytes())),
            Cutting::Content(bytes) => (false, PyBytes::new(py, bytes)),
        });
        let parts = (
            PyBytes::new(py, &texts),
            PyBytes::new(py, &lengths),
            this.ends(),
            names,
            this.notes.clone(),
            cutting,
        );
        Ok((slf.get_type().getattr("_restore")?, parts))
    }

    #[classmethod]
    fn _restore(
        cls: &Bound<'_, PyType>,
        texts: &[u8],
        lengths: &[u8],
        ends: Vec<u32>,
        names: Vec<(String, u32)>,
        notes: Vec<String>,
        cutting: Option<(bool, Vec<u8>)>,
    ) -> PyResult<Self> {
        let damaged = || VocabularyError::new_err("this pickle of a vocabulary is damaged");
        let (lengths, []) = lengths.as_chunks::<4>() else { return Err(damaged()) };
        let (mut rest, mut tokens) = (texts, Vec::with_capacity(lengths.len()));
        for length in lengths {
            let length = u32::from_le_bytes(*length) as usize;
            let (text, after) = rest.split_at_checked(length).ok_or_else(damaged)?;
            tokens.push((length > 0).then_some(text));
            rest = after;
        }
        let ends = ends.into_iter().map(TokenId);
        let vocabulary = palmette_core::Vocabulary::new(tokens, ends);
        let vocabulary = vocabulary.and_then(|vocabulary| {
            vocabulary.with_names(names.into_iter().map(|(name, token)| (TokenId(token), name)))
        });
        let vocabulary = vocabulary.map_err(|error| VocabularyError::new_err(error.to_string()))?;
        let cutting = match cutting {
            Some((true, name)) => Some(Cutting::Named(String::from_utf8(name)?)),
            Some((false, bytes)) => Some(Cutting::Content(bytes.into())),
            None => None,
        };
        Ok(Self::from_parts(cls.py(), vocabulary, cutting, notes))
    }
}

/// The bytes of a file, or of the file of a folder that is loaded for it.
fn content_of(path: &std::path::Path) -> Option<Vec<u8>> {
    let files = ["tokenizer.json", "tekken.json", "tokenizer.model"].map(|file| path.join(file));
    let file = match path.is_dir() {
        true => files.into_iter().find(|file| file.exists())?,
        false => path.to_owned(),
    };
    std::fs::read(file).ok()
}

/// The end tokens that a tokenizer object says it has.
fn ends_of(tokenizer: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i64>>> {
    for name in ["eos_token_ids", "eos_token_id"] {
        let Some(ends) = tokenizer.getattr_opt(name)?.filter(|ends| !ends.is_none()) else {
            continue;
        };
        if let Ok(end) = ends.extract::<i64>() {
            return Ok(Some(vec![end]));
        }
        let ends: Vec<i64> = ends.try_iter()?.map(|end| end?.extract()).collect::<PyResult<_>>()?;
        if !ends.is_empty() {
            return Ok(Some(ends));
        }
    }
    Ok(None)
}

/// The bytes of each token, in order.
fn texts_of(tokens: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Vec<u8>>>> {
    let mut texts = Vec::new();
    for (token, text) in tokens.try_iter()?.enumerate() {
        let text = text?;
        texts.push(match text.is_none() {
            true => None,
            false => Some(bytes_of(&text, || format!("token {token}"))?),
        });
        check_size(texts.len())?;
    }
    Ok(texts)
}

/// The bytes of each token, from a mapping of them to their numbers. Numbers that nothing has are
/// special tokens.
fn texts_of_ids(
    ids: &Bound<'_, PyMapping>,
    ends: &[i64],
    names: &[(String, TokenId)],
) -> PyResult<Vec<Option<Vec<u8>>>> {
    let mut texts: Vec<Option<Vec<u8>>> = Vec::new();
    for pair in ids.items()?.iter() {
        let (text, token): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        let number = token.extract::<usize>().map_err(|_| {
            let kind = token.repr().map_or_else(|_| "?".into(), |text| text.to_string());
            PyTypeError::new_err(format!(
                "a mapping gives tokens their numbers, 0 or more; that of {text:?} is {kind}"
            ))
        })?;
        let text = bytes_of(&text, || format!("a key of the mapping, {text:?},"))?;
        check_size(number.saturating_add(1))?;
        texts.resize(texts.len().max(number + 1), None);
        if let Some(other) = texts[number].replace(text) {
            let (other, text) = (other.escape_ascii(), texts[number].as_deref());
            return Err(VocabularyError::new_err(format!(
                "token {number} is both b\"{other}\" and b\"{}\"; each number has one text",
                text.unwrap_or_default().escape_ascii()
            )));
        }
    }
    let named = names.iter().map(|(_, token)| token.index() + 1);
    let ended = ends.iter().filter_map(|&end| usize::try_from(end).ok()).map(|end| end + 1);
    let size = named.chain(ended).chain([texts.len()]).max().unwrap_or_default();
    check_size(size)?;
    texts.resize(size, None);
    Ok(texts)
}

fn bytes_of(text: &Bound<'_, PyAny>, name: impl Fn() -> String) -> PyResult<Vec<u8>> {
    let bytes = text.extract::<Vec<u8>>().ok().filter(|_| !text.is_instance_of::<PyString>());
    bytes.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{} is neither bytes nor None; give the bytes that it adds to a text (`text.encode()`), None for a special token. The \
             pieces of a tokenizer are not bytes: Vocabulary.from_tokenizer reads them",
            name()
        ))
    })
}

fn check_size(num_tokens: usize) -> PyResult<()> {
    match num_tokens > MAX_TOKENS {
        true => Err(PyValueError::new_err(format!("a vocabulary has at most {MAX_TOKENS} tokens"))),
        false => Ok(()),
    }
}

/// Names and ids, from a mapping or pairs.
fn named_tokens(given: &Bound<'_, PyAny>) -> PyResult<Vec<(String, TokenId)>> {
    let pairs: Vec<(String, u32)> = match given.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.extract()?,
        Err(_) => given.try_iter()?.map(|pair| pair?.extract()).collect::<PyResult<_>>()?,
    };
    Ok(pairs.into_iter().map(|(name, token)| (name, TokenId(token))).collect())
}
