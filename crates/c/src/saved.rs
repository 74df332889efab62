//! Compiled grammars as files and bytes.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

use palmette_grammar::{Budget, CacheLimits, ReopenError, SavedGrammar};

use crate::arguments::{array, needed, word};
use crate::border;
use crate::error::{Error, Status};
use crate::grammar::Grammar;
use crate::vocabulary::Vocabulary;

/// Bytes that the library made.
#[derive(Debug)]
pub struct Bytes(Vec<u8>);

impl Grammar {
    fn reopen(
        vocabulary: &Vocabulary,
        what: &str,
        opened: Result<SavedGrammar, ReopenError>,
    ) -> Result<Self, Error> {
        let limits = CacheLimits::default();
        let mut budget = Budget::new(limits.steps);
        let reopened = opened.and_then(|saved| {
            let reopened = saved.compile(&vocabulary.slices, &limits.recognizer, &mut budget)?;
            Ok((reopened, saved.source().clone()))
        });
        let (reopened, source) = reopened.map_err(|error| Error::of_reopen(&error, what))?;
        let notes: Vec<_> = reopened.warnings.iter().map(ToString::to_string).collect();
        Ok(Self::new(reopened.constraint, source, &notes))
    }
}

/// Writes a grammar to a file with the masks that are known by now; palmette_grammar_load() reads
/// it, and so do Python and the command line.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_grammar_save(
    grammar: Option<&Grammar>,
    path: *const c_char,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let grammar = needed(grammar, "grammar")?;
        // SAFETY: the caller's promise.
        let path = needed(unsafe { word(path, "path")? }, "path")?;
        let saved = grammar.constraint.save(&grammar.source, Path::new(path));
        saved.map_err(|error| Error::of_save(&error, path))
    })
}

/// Reads a grammar that was written to a file, over the vocabulary that it was compiled for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_grammar_load(
    vocabulary: Option<&Vocabulary>,
    path: *const c_char,
    grammar: Option<&mut MaybeUninit<*mut Grammar>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let vocabulary = needed(vocabulary, "vocabulary")?;
        let grammar = needed(grammar, "grammar")?;
        // SAFETY: the caller's promise.
        let path = needed(unsafe { word(path, "path")? }, "path")?;
        std::fs::metadata(path)
            .map_err(|error| Error::new(Status::Io, format!("{path}: {error}")))?;
        let reopened = Grammar::reopen(vocabulary, path, SavedGrammar::open(Path::new(path)))?;
        grammar.write(Box::into_raw(Box::new(reopened)));
        Ok(())
    })
}

/// The bytes of the file that palmette_grammar_save() writes.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_grammar_to_bytes(
    grammar: Option<&Grammar>,
    bytes: Option<&mut MaybeUninit<*mut Bytes>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let (grammar, bytes) = (needed(grammar, "grammar")?, needed(bytes, "bytes")?);
        let written = grammar.constraint.to_bytes(&grammar.source);
        let written = written.map_err(|error| Error::of_save(&error, "bytes of a grammar"))?;
        bytes.write(Box::into_raw(Box::new(Bytes(written))));
        Ok(())
    })
}

/// Reads a grammar from the bytes of its file, which are not kept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_grammar_from_bytes(
    vocabulary: Option<&Vocabulary>,
    bytes: *const u8,
    num_bytes: usize,
    grammar: Option<&mut MaybeUninit<*mut Grammar>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let vocabulary = needed(vocabulary, "vocabulary")?;
        let grammar = needed(grammar, "grammar")?;
        // SAFETY: the caller's promise.
        let bytes = unsafe { array(bytes, num_bytes, "bytes")? };
        let opened = SavedGrammar::from_bytes(bytes.to_vec().into());
        let reopened = Grammar::reopen(vocabulary, "bytes of a grammar", opened)?;
        grammar.write(Box::into_raw(Box::new(reopened)));
        Ok(())
    })
}

/// The first of the bytes, and their number. They live as long as their handle.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_bytes_data(
    bytes: Option<&Bytes>,
    num_bytes: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    let bytes = bytes.map_or(&[][..], |bytes| &bytes.0);
    if let Some(num_bytes) = num_bytes {
        num_bytes.write(bytes.len());
    }
    bytes.as_ptr()
}

/// Frees bytes. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_bytes_free(bytes: Option<Box<Bytes>>) {
    border::ask((), || drop(bytes));
}
