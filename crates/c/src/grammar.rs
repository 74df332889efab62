//! Grammars, compiled over a vocabulary.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::Constraint;
use palmette_grammar::{CacheLimits, GrammarCache, GrammarConstraint, GrammarSource};

use crate::arguments::{invalid, needed, text, word};
use crate::border;
use crate::cancellation::Cancellation;
use crate::error::{Error, Status, c_text};
use crate::vocabulary::Vocabulary;

/// A grammar made ready to mask the tokens of a vocabulary. Threads share it.
#[derive(Debug)]
pub struct Grammar {
    pub(crate) constraint: Arc<GrammarConstraint>,
    pub(crate) source: GrammarSource,
    notes: CString,
}

impl Grammar {
    pub(crate) fn new(
        constraint: GrammarConstraint,
        source: GrammarSource,
        notes: &[String],
    ) -> Self {
        Self { constraint: Arc::new(constraint), source, notes: c_text(&notes.join("\n")) }
    }

    #[cfg(feature = "llguidance")]
    pub(crate) fn notes(&self) -> &str {
        self.notes.to_str().unwrap_or_default()
    }

    /// Compiles in the vocabulary's own cache, or, under limits of its own, in none.
    pub(crate) fn compile(
        vocabulary: &Vocabulary,
        source: GrammarSource,
        limits: Option<CacheLimits>,
        cancelled: &AtomicBool,
    ) -> Result<Self, Error> {
        let own = limits.map(GrammarCache::new);
        let cache = own.as_ref().unwrap_or(&vocabulary.cache);
        let found = cache.get(&source, &vocabulary.slices, cancelled);
        let found = found.map_err(|error| Error::of_compilation(&error, source.text()))?.grammar;
        Ok(Self::new(found.constraint.clone(), source, &found.notes()))
    }
}

/// Limits by their names, of a JSON object from names to whole numbers; `None` where there are
/// none.
fn limits_of(text: Option<&str>) -> Result<Option<CacheLimits>, Error> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let mut limits = CacheLimits::default();
    let named: BTreeMap<String, u64> = serde_json::from_str(text).map_err(|error| {
        invalid(format!("limits: {error}; give an object such as {{\"steps\": 1000000000}}"))
    })?;
    for (name, number) in named {
        limits.set(&name, number).map_err(|error| invalid(error.to_string()))?;
    }
    Ok(Some(limits))
}

/// Compiles a grammar, or finds it where an equal one was compiled over the vocabulary before.
///
/// `language` is "json_schema", "json_object" (which takes no text), "lark", "gbnf", "regex",
/// "structural_tag" or "tools". `options` are those of the language, a JSON object up to NUL, such
/// as {"whitespace": "compact"}; of tools {"format": "hermes"} at least. NULL is none. `limits` is
/// a JSON object of limits of this grammar alone, such as {"steps": 1000000000}, which then is not
/// kept for others; NULL is the default ones. `cancellation` calls the work off; NULL is nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_grammar_compile(
    vocabulary: Option<&Vocabulary>,
    language: *const c_char,
    text: *const c_char,
    num_bytes: usize,
    options: *const c_char,
    limits: *const c_char,
    cancellation: Option<&Cancellation>,
    grammar: Option<&mut MaybeUninit<*mut Grammar>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let vocabulary = needed(vocabulary, "vocabulary")?;
        let grammar = needed(grammar, "grammar")?;
        // SAFETY: the caller's promise.
        let (language, text, options, limits) = unsafe {
            (
                needed(word(language, "language")?, "language")?,
                self::text(text, num_bytes, "text")?,
                word(options, "options")?.unwrap_or_default(),
                limits_of(word(limits, "limits")?)?,
            )
        };
        let source = GrammarSource::in_language(language, text.to_owned(), options)?;
        let nobody = AtomicBool::new(false);
        let cancelled = cancellation.map_or(&nobody, |cancellation| &cancellation.flag);
        let compiled = Grammar::compile(vocabulary, source, limits, cancelled)?;
        grammar.write(Box::into_raw(Box::new(compiled)));
        Ok(())
    })
}

/// Parts of the grammar that have no effect, or are enforced in part only: a line each, with its
/// place; empty where there are none, NULL for NULL. It is the grammar's and lives as long.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_grammar_notes(grammar: Option<&Grammar>) -> *const c_char {
    grammar.map_or(std::ptr::null(), |grammar| grammar.notes.as_ptr())
}

/// Size of the grammar's vocabulary: masks have a bit for each token. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_grammar_num_tokens(grammar: Option<&Grammar>) -> usize {
    grammar.map_or(0, |grammar| grammar.constraint.num_tokens())
}

/// About how much memory it takes by now, without the vocabulary: masks that were asked for are
/// kept. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_grammar_memory(grammar: Option<&Grammar>) -> usize {
    border::ask(0, || grammar.map_or(0, |grammar| grammar.constraint.bytes()))
}

/// Frees a grammar; matchers of it keep what they need. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_grammar_free(grammar: Option<Box<Grammar>>) {
    border::ask((), || drop(grammar));
}
