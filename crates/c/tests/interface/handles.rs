//! Handles as a program would wrap them, so that tests are about what they do.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ptr;

use palmette_c::*;

/// A failure as its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
    pub(crate) pointer: Option<String>,
    pub(crate) place: (u32, u32),
    pub(crate) row: Option<usize>,
}

/// A handle that is freed by a function of its kind.
pub(crate) struct Handle<T> {
    pub(crate) raw: *mut T,
    free: fn(Option<Box<T>>),
}

impl<T> Handle<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: it is alive until it is dropped.
        unsafe { self.raw.as_ref() }
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: it is alive until it is dropped, and nobody else has it.
        unsafe { self.raw.as_mut() }
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: the library made it, as a box.
        (self.free)(Some(unsafe { Box::from_raw(self.raw) }));
    }
}

/// Runs a call with a place for its error.
pub(crate) fn run(
    call: impl FnOnce(Option<&mut MaybeUninit<*mut Error>>) -> Status,
) -> Result<(), Failure> {
    let mut error = MaybeUninit::uninit();
    let status = call(Some(&mut error));
    // SAFETY: every call writes it.
    let raw = unsafe { error.assume_init() };
    assert_eq!(raw.is_null(), status == Status::Ok, "an error where, and only where, it failed");
    if raw.is_null() {
        return Ok(());
    }
    let error = Handle { raw, free: |error| palmette_error_free(error) };
    let error = error.get();
    assert_eq!(palmette_error_status(error), status);
    let text = |text: *const std::ffi::c_char| {
        // SAFETY: null, or a text of the error's.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
    };
    let row = palmette_error_row(error);
    Err(Failure {
        status,
        message: text(palmette_error_message(error)).unwrap(),
        pointer: text(palmette_error_pointer(error)),
        place: (palmette_error_line(error), palmette_error_column(error)),
        row: (row != usize::MAX).then_some(row),
    })
}

/// Runs a call that answers through a pointer.
pub(crate) fn answer<T>(
    call: impl FnOnce(Option<&mut MaybeUninit<T>>, Option<&mut MaybeUninit<*mut Error>>) -> Status,
) -> Result<T, Failure> {
    let mut place = MaybeUninit::uninit();
    run(|error| call(Some(&mut place), error))?;
    // SAFETY: a call that succeeds writes it.
    Ok(unsafe { place.assume_init() })
}

pub(crate) fn vocabulary(texts: &[Option<Vec<u8>>], ends: &[u32]) -> Handle<Vocabulary> {
    let tokens: Vec<_> = texts
        .iter()
        .map(|text| Token {
            bytes: text.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            num_bytes: text.as_ref().map_or(0, Vec::len),
            name: ptr::null(),
        })
        .collect();
    let raw = answer(|place, error| {
        // SAFETY: both arrays are alive.
        unsafe {
            palmette_vocabulary_from_tokens(
                tokens.as_ptr(),
                tokens.len(),
                ends.as_ptr(),
                ends.len(),
                place,
                error,
            )
        }
    });
    Handle { raw: raw.unwrap(), free: |vocabulary| palmette_vocabulary_free(vocabulary) }
}

/// Every byte is a token, and so are some longer texts; then the end.
pub(crate) fn texts() -> (Vec<Option<Vec<u8>>>, u32) {
    let longer =
        ["{\"", "\": ", ", \"", "\":", "true", "null", "[]", "{}", "ab", "12", "a\": 1", "\"}"];
    let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte]));
    let longer = longer.iter().map(|text| Some(text.as_bytes().to_vec()));
    let texts: Vec<_> = bytes.chain(longer).chain([None]).collect();
    let end = texts.len() as u32 - 1;
    (texts, end)
}

pub(crate) fn grammar(
    vocabulary: &Handle<Vocabulary>,
    language: &str,
    text: &str,
    options: Option<&str>,
    limits: Option<&str>,
) -> Result<Handle<Grammar>, Failure> {
    let word = |text: &str| CString::new(text).unwrap();
    let (language, options, limits) = (word(language), options.map(word), limits.map(word));
    let pointer = |of: &Option<CString>| of.as_ref().map_or(ptr::null(), |of| of.as_ptr());
    let raw = answer(|place, error| {
        // SAFETY: all texts are alive.
        unsafe {
            palmette_grammar_compile(
                vocabulary.get(),
                language.as_ptr(),
                text.as_ptr().cast(),
                text.len(),
                pointer(&options),
                pointer(&limits),
                None,
                place,
                error,
            )
        }
    })?;
    Ok(Handle { raw, free: |grammar| palmette_grammar_free(grammar) })
}

pub(crate) fn matcher(grammar: &Handle<Grammar>, ends: &[u32]) -> Result<Handle<Matcher>, Failure> {
    let raw = answer(|place, error| {
        // SAFETY: the array is alive.
        unsafe { palmette_matcher_new(grammar.get(), ends.as_ptr(), ends.len(), place, error) }
    })?;
    Ok(of_matcher(raw))
}

pub(crate) fn of_matcher(raw: *mut Matcher) -> Handle<Matcher> {
    Handle { raw, free: |matcher| palmette_matcher_free(matcher) }
}

pub(crate) fn fork(matcher: &Handle<Matcher>) -> Handle<Matcher> {
    of_matcher(answer(|place, error| palmette_matcher_fork(matcher.get(), place, error)).unwrap())
}

pub(crate) fn mask(
    matcher: &mut Handle<Matcher>,
    lengths: Option<LengthsLeft>,
) -> Result<Vec<u32>, Failure> {
    // Wider than it need be, and full of something else.
    let mut row = vec![u32::MAX; palmette_matcher_mask_words(matcher.get()) + 1];
    run(|error| {
        // SAFETY: the row is alive.
        unsafe {
            palmette_matcher_fill_mask(
                matcher.get_mut(),
                row.as_mut_ptr(),
                row.len(),
                lengths.as_ref(),
                error,
            )
        }
    })?;
    assert_eq!(row.pop(), Some(0), "words past the vocabulary are 0");
    Ok(row)
}

pub(crate) fn commit(matcher: &mut Handle<Matcher>, token: u32) -> Result<(), Failure> {
    run(|error| palmette_matcher_commit(matcher.get_mut(), token, error))
}

pub(crate) fn batch(threads: usize) -> Handle<Batch> {
    let raw = answer(|place, error| palmette_batch_new(threads, place, error)).unwrap();
    Handle { raw, free: |batch| palmette_batch_free(batch) }
}

/// Rows of a batch, and the status of each.
pub(crate) fn fill(
    batch: &mut Handle<Batch>,
    matchers: &[Option<&Handle<Matcher>>],
    row_words: usize,
    lengths: Option<&[LengthsLeft]>,
) -> (Result<(), Failure>, Vec<u32>, Vec<i32>) {
    let pointers: Vec<_> =
        matchers.iter().map(|of| of.map_or(ptr::null(), |of| of.raw.cast_const())).collect();
    let mut words = vec![u32::MAX; row_words * matchers.len()];
    let mut statuses = vec![-1; matchers.len()];
    let result = run(|error| {
        // SAFETY: all arrays are alive.
        unsafe {
            palmette_batch_fill(
                batch.get_mut(),
                pointers.as_ptr(),
                pointers.len(),
                words.as_mut_ptr(),
                row_words,
                lengths.map_or(ptr::null(), <[_]>::as_ptr),
                statuses.as_mut_ptr(),
                error,
            )
        }
    });
    (result, words, statuses)
}
