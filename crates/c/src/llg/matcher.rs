//! Matchers: masks, commits and what is asked ahead, with an error that stays.

use std::ffi::{CString, c_char};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use palmette_core::{Constraint, mask};

use super::constraint::goes_on;
use super::grammar::{LlgConstraintInit, source};
use crate::arguments::{array_mut, invalid, needed, tokens, word};
use crate::border;
use crate::error::{Error, Status, c_text};
use crate::matcher::Matcher;

/// A text being followed under a grammar, by the calls of llguidance.
#[derive(Debug, Default)]
pub struct LlgMatcher {
    matcher: Option<Matcher>,
    error: Option<CString>,
    mask: Vec<u32>,
    has_mask: bool,
    is_stopped: bool,
    num_words: usize,
    cancelled: Option<Arc<AtomicBool>>,
}

/// A wish that a matcher works no more. It may outlive the matcher.
#[derive(Debug)]
pub struct LlgCancellationHandle {
    flag: Arc<AtomicBool>,
}

impl LlgMatcher {
    fn was_cancelled(&self) -> bool {
        let flag = self.cancelled.as_ref();
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn fail(&mut self, message: &str) {
        self.matcher = None;
        self.error.get_or_insert_with(|| c_text(message));
    }

    /// Runs a call with the matcher; an error stays.
    fn run<T>(
        &mut self,
        work: impl FnOnce(&mut Matcher, &mut Self) -> Result<T, Error>,
    ) -> Option<T> {
        self.has_mask = false;
        if self.was_cancelled() {
            self.fail("the matcher was cancelled");
        }
        let mut matcher = self.matcher.take()?;
        match border::ask(None, || Some(work(&mut matcher, self))) {
            Some(Ok(answer)) => {
                self.matcher = Some(matcher);
                Some(answer)
            }
            Some(Err(error)) => {
                self.fail(error.message());
                None
            }
            None => {
                self.fail("a fault of this library, please report it");
                None
            }
        }
    }

    /// [`run`](Self::run) for calls that move: the text may be at its end then.
    fn step(&mut self, work: impl FnOnce(&mut Matcher) -> Result<(), Error>) -> i32 {
        let moved = self.run(|matcher, this| {
            work(matcher)?;
            this.is_stopped = this.is_at_end(matcher)?;
            Ok(())
        });
        moved.map_or(-1, |()| 0)
    }

    /// True when nothing may follow but an end token.
    fn is_at_end(&mut self, matcher: &mut Matcher) -> Result<bool, Error> {
        if matcher.state.ended() {
            return Ok(true);
        }
        let is_accepting =
            matcher.with(|constraint, state, scratch| constraint.is_accepting(state, scratch))?;
        if !is_accepting {
            return Ok(false);
        }
        let mut row = std::mem::take(&mut self.mask);
        let filled = self.fill(matcher, &mut row);
        let goes_on = goes_on(&row, matcher.constraint.ends());
        self.mask = row;
        filled?;
        Ok(!goes_on)
    }

    fn fill(&self, matcher: &mut Matcher, row: &mut Vec<u32>) -> Result<(), Error> {
        row.resize(self.num_words, 0);
        let mut work = matcher.mask_budget();
        work.cancelled = self.cancelled.as_deref();
        Ok(matcher.fill_within(row, None, &work)?)
    }

    /// The mask, or the end tokens of a text at its end.
    fn mask_or_ends(&mut self) -> bool {
        let mut row = std::mem::take(&mut self.mask);
        let filled = self.run(|matcher, this| {
            this.fill(matcher, &mut row)?;
            if this.is_stopped {
                row.fill(0);
                matcher.constraint.ends().iter().for_each(|&end| mask::insert(&mut row, end));
            }
            Ok(())
        });
        self.mask = row;
        filled.is_some()
    }
}

/// Makes a matcher of a type's name and its text; its error is asked for by
/// llg_matcher_get_error().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_matcher(
    init: Option<&LlgConstraintInit>,
    constraint_type: *const c_char,
    data: *const c_char,
) -> *mut LlgMatcher {
    let mut made = Box::<LlgMatcher>::default();
    let compile = || -> Result<Matcher, Error> {
        let init = needed(init, "init")?;
        // SAFETY: the caller's promise.
        let (kind, data) = unsafe {
            (
                needed(word(constraint_type, "constraint_type")?, "constraint_type")?,
                needed(word(data, "data")?, "data")?,
            )
        };
        // SAFETY: the caller's promise.
        let grammar = unsafe { init.compile(source(kind, data)?)? };
        Ok(Matcher::new(grammar.constraint))
    };
    match border::ask(None, || Some(compile())) {
        Some(Ok(matcher)) => {
            made.num_words = mask::num_words(matcher.constraint.num_tokens());
            made.matcher = Some(matcher);
            made.step(|_| Ok(()));
        }
        Some(Err(error)) => made.fail(error.message()),
        None => made.fail("a fault of this library, please report it"),
    }
    Box::into_raw(made)
}

/// Writes the mask of the next token into a buffer of as many bytes as
/// llg_matcher_get_mask_byte_size() says; 0, or -1 after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_compute_mask_into(
    matcher: Option<&mut LlgMatcher>,
    mask_dest: *mut u32,
    mask_byte_len: usize,
) -> i32 {
    let Some(matcher) = matcher else { return -1 };
    if !matcher.mask_or_ends() {
        return -1;
    }
    let written = matcher.run(|_, this| {
        let needed = this.num_words * 4;
        if mask_byte_len != needed {
            let rule = format!("mask_byte_len is {mask_byte_len}, and a mask has {needed} bytes");
            return Err(invalid(rule));
        }
        // SAFETY: the caller's promise.
        unsafe { array_mut(mask_dest, this.num_words, "mask_dest")? }.copy_from_slice(&this.mask);
        Ok(())
    });
    written.map_or(-1, |()| 0)
}

/// Computes the mask of the next token; 0, or -1 after an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_compute_mask(matcher: Option<&mut LlgMatcher>) -> i32 {
    matcher.map_or(-1, |matcher| {
        matcher.has_mask = matcher.mask_or_ends();
        if matcher.has_mask { 0 } else { -1 }
    })
}

/// The mask that was computed, or null. It lives to the next call.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_get_mask(matcher: Option<&mut LlgMatcher>) -> *const u32 {
    let matcher = matcher.filter(|matcher| matcher.has_mask && !matcher.was_cancelled());
    matcher.map_or(std::ptr::null(), |matcher| matcher.mask.as_ptr())
}

/// Bytes of a mask.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_get_mask_byte_size(matcher: Option<&LlgMatcher>) -> usize {
    matcher.map_or(0, |matcher| matcher.num_words * 4)
}

/// A handle by which any thread calls off the matcher's work.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_get_cancellation_handle(
    matcher: Option<&mut LlgMatcher>,
) -> *mut LlgCancellationHandle {
    border::ask(std::ptr::null_mut(), || {
        let Some(matcher) = matcher else { return std::ptr::null_mut() };
        let flag = Arc::clone(matcher.cancelled.get_or_insert_default());
        Box::into_raw(Box::new(LlgCancellationHandle { flag }))
    })
}

/// Another handle of the same wish.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_cancellation_handle(
    handle: Option<&LlgCancellationHandle>,
) -> *mut LlgCancellationHandle {
    border::ask(std::ptr::null_mut(), || {
        let Some(handle) = handle else { return std::ptr::null_mut() };
        let flag = Arc::clone(&handle.flag);
        Box::into_raw(Box::new(LlgCancellationHandle { flag }))
    })
}

/// Calls the matcher's work off for good.
#[unsafe(no_mangle)]
pub extern "C" fn llg_cancel(handle: Option<&LlgCancellationHandle>) {
    if let Some(handle) = handle {
        handle.flag.store(true, Ordering::Relaxed);
    }
}

/// Frees a handle of a cancellation.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_cancellation_handle(handle: Option<Box<LlgCancellationHandle>>) {
    border::ask((), || drop(handle));
}

/// True when the matcher was called off before another error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_is_cancelled(matcher: Option<&LlgMatcher>) -> bool {
    matcher.is_some_and(LlgMatcher::was_cancelled)
}

/// Moves over a token; 0, or -1 after an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_consume_token(matcher: Option<&mut LlgMatcher>, token: u32) -> i32 {
    let token = [palmette_core::TokenId(token)];
    matcher.map_or(-1, |matcher| matcher.step(|matcher| matcher.commit_all(&token)))
}

/// Moves over tokens; 0, or -1 after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_consume_tokens(
    matcher: Option<&mut LlgMatcher>,
    tokens: *const u32,
    n_tokens: usize,
) -> i32 {
    matcher.map_or(-1, |matcher| {
        // SAFETY: the caller's promise.
        matcher.step(|matcher| matcher.commit_all(unsafe { self::tokens(tokens, n_tokens)? }))
    })
}

/// The first error, or null. It lives as long as the matcher.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_get_error(matcher: Option<&mut LlgMatcher>) -> *const c_char {
    let Some(matcher) = matcher else { return c"the matcher is NULL".as_ptr() };
    if matcher.was_cancelled() {
        matcher.fail("the matcher was cancelled");
    }
    matcher.error.as_ref().map_or(std::ptr::null(), |error| error.as_ptr())
}

/// True after an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_is_error(matcher: Option<&LlgMatcher>) -> bool {
    matcher.is_none_or(|matcher| matcher.error.is_some() || matcher.was_cancelled())
}

/// Frees a matcher.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_matcher(matcher: Option<Box<LlgMatcher>>) {
    border::ask((), || drop(matcher));
}

/// Takes back tokens; 0, or -1 after an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_rollback(matcher: Option<&mut LlgMatcher>, num_tokens: usize) -> i32 {
    matcher.map_or(-1, |matcher| {
        matcher.step(|matcher| Ok(matcher.constraint.rollback(&mut matcher.state, num_tokens)?))
    })
}

/// Begins again; 0, or -1 after an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_reset(matcher: Option<&mut LlgMatcher>) -> i32 {
    matcher.map_or(-1, |matcher| {
        matcher.step(|matcher| {
            matcher.begin_again();
            Ok(())
        })
    })
}

/// True when the text may end here.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_is_accepting(matcher: Option<&mut LlgMatcher>) -> bool {
    let accepting = matcher.and_then(|matcher| {
        matcher.run(|matcher, _| {
            let asked =
                matcher.with(|constraint, state, scratch| constraint.is_accepting(state, scratch));
            Ok(asked?)
        })
    });
    accepting.unwrap_or(false)
}

/// True when nothing follows but an end token, or after an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_matcher_is_stopped(matcher: Option<&LlgMatcher>) -> bool {
    let stopped = |of: &LlgMatcher| of.is_stopped || of.error.is_some() || of.was_cancelled();
    matcher.is_none_or(stopped)
}

/// Number of tokens that could be consumed; -1 after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_validate_tokens(
    matcher: Option<&mut LlgMatcher>,
    tokens: *const u32,
    n_tokens: usize,
) -> i32 {
    let count = matcher.and_then(|matcher| {
        matcher.run(|matcher, _| {
            // SAFETY: the caller's promise.
            let draft = unsafe { self::tokens(tokens, n_tokens)? };
            let num_tokens = matcher.constraint.num_tokens();
            let known = draft.iter().take_while(|token| token.index() < num_tokens).count();
            let asked = matcher.with(|constraint, state, scratch| {
                constraint.accepted_prefix(state, &draft[..known], scratch)
            });
            Ok(asked?)
        })
    });
    count.map_or(-1, |count| i32::try_from(count).unwrap_or(i32::MAX))
}

/// Writes the tokens that must follow; gives their number, -1 after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_matcher_compute_ff_tokens(
    matcher: Option<&mut LlgMatcher>,
    output: *mut u32,
    output_len: usize,
) -> i32 {
    let Some(matcher) = matcher.filter(|_| !output.is_null()) else { return -1 };
    let count = matcher.run(|matcher, _| {
        // SAFETY: the caller's promise.
        let room = unsafe { array_mut(output, output_len, "output")? };
        let mut forced = matcher.forced_ahead(room.len())?;
        forced.retain(|token| !matcher.constraint.ends().contains(token));
        room.iter_mut().zip(&forced).for_each(|(to, token)| *to = token.0);
        i32::try_from(forced.len()).map_err(|_| {
            Error::new(Status::LimitExceeded, "more tokens are forced than a number of 32 bits")
        })
    });
    count.unwrap_or(-1)
}

/// Copies a matcher.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_matcher(matcher: Option<&LlgMatcher>) -> *mut LlgMatcher {
    border::ask(std::ptr::null_mut(), || {
        let Some(matcher) = matcher else { return std::ptr::null_mut() };
        // A wish for one of them is none for the other from here on.
        let cancelled = matcher.was_cancelled().then(|| Arc::new(AtomicBool::new(true)));
        Box::into_raw(Box::new(LlgMatcher {
            matcher: matcher.matcher.as_ref().map(Matcher::fork),
            error: matcher.error.clone(),
            mask: Vec::new(),
            has_mask: false,
            is_stopped: matcher.is_stopped,
            num_words: matcher.num_words,
            cancelled,
        }))
    })
}
