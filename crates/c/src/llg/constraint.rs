//! Constraints: masks and commits of one text, with an error that stays.

use std::ffi::{CString, c_char};
use std::fmt::Write;

use palmette_core::{Constraint, TokenId, mask};

use super::grammar::{LlgConstraintInit, source};
use crate::arguments::{needed, word};
use crate::border;
use crate::error::{Error, c_text};
use crate::matcher::Matcher;

/// A text being written under a grammar, by the calls of llguidance.
#[derive(Debug, Default)]
pub struct LlgConstraint {
    pub(super) matcher: Option<Matcher>,
    error: Option<CString>,
    mask: Vec<u32>,
    /// Tokens of the last commit.
    tokens: Vec<u32>,
    forced_too: bool,
    pub(super) is_stopped: bool,
    log_level: u32,
    log: String,
    flushed: CString,
}

/// Mask of a step.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LlgMaskResult {
    /// The mask; null where the text is at its end. It lives to the next call.
    pub sample_mask: *const u32,
    /// Temperature, which no grammar here sets.
    pub temperature: f32,
    /// True when the text is at its end.
    pub is_stop: bool,
}

/// Tokens of a commit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LlgCommitResult {
    /// The tokens to append. They live to the next call.
    pub tokens: *const u32,
    /// Number of them.
    pub n_tokens: u32,
    /// True when the text was at its end.
    pub is_stop: bool,
}

/// Bytes of a log that nobody asks for; more are dropped.
const MAX_LOG: usize = 64 << 10;
/// Tokens that are committed after one where they must follow.
pub(super) const MAX_FORCED: usize = 256;

/// True when a mask has tokens besides those that end the text.
pub(super) fn goes_on(words: &[u32], ends: &[TokenId]) -> bool {
    mask::iter(words).any(|token| !ends.contains(&token))
}

impl LlgConstraint {
    fn fail(&mut self, message: &str) {
        self.matcher = None;
        self.error.get_or_insert_with(|| c_text(message));
    }

    /// Runs a call; an error stays.
    pub(super) fn run(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Error>) -> i32 {
        if self.error.is_none() {
            match border::ask(None, || Some(work(self))) {
                Some(Ok(())) => {}
                Some(Err(error)) => self.fail(error.message()),
                None => self.fail("a fault of this library, please report it"),
            }
        }
        if self.error.is_some() { -1 } else { 0 }
    }

    pub(super) fn matcher(&mut self) -> Result<&mut Matcher, Error> {
        needed(self.matcher.as_mut(), "the constraint's grammar")
    }

    fn note(&mut self, level: u32, args: std::fmt::Arguments<'_>) {
        if self.log_level >= level && self.log.len() < MAX_LOG {
            // A `String` takes whatever is written.
            let _ = writeln!(self.log, "{args}");
        }
    }

    fn compute_mask(&mut self) -> Result<LlgMaskResult, Error> {
        let mut row = std::mem::take(&mut self.mask);
        let matcher = self.matcher()?;
        row.resize(mask::num_words(matcher.constraint.num_tokens()), 0);
        let filled = matcher.fill(&mut row, None);
        let is_stop = !goes_on(&row, matcher.constraint.ends());
        self.mask = row;
        filled?;
        self.is_stopped = is_stop;
        let sample_mask = if is_stop { std::ptr::null() } else { self.mask.as_ptr() };
        Ok(LlgMaskResult { sample_mask, temperature: 0.0, is_stop })
    }

    fn commit(&mut self, token: u32) -> Result<LlgCommitResult, Error> {
        self.tokens.clear();
        let is_stop = self.is_stopped;
        if !is_stop {
            let forced_too = self.forced_too;
            let matcher = self.matcher()?;
            matcher.commit_all(&[TokenId(token)])?;
            let forced = match forced_too && !matcher.state.ended() {
                true => matcher.forced()?,
                false => Vec::new(),
            };
            self.tokens.push(token);
            self.tokens.extend(forced.iter().map(|token| token.0));
            self.note(2, format_args!("commit_token({token})"));
        }
        let tokens = if is_stop { std::ptr::null() } else { self.tokens.as_ptr() };
        Ok(LlgCommitResult { tokens, n_tokens: self.tokens.len() as u32, is_stop })
    }
}

impl Matcher {
    /// Commits the tokens that must follow, but for those that end the text.
    fn forced(&mut self) -> Result<Vec<TokenId>, Error> {
        let mut forced = self.forced_ahead(MAX_FORCED)?;
        if forced.last().is_some_and(|last| self.constraint.ends().contains(last)) {
            forced.pop();
        }
        self.commit_all(&forced)?;
        Ok(forced)
    }

    pub(super) fn forced_ahead(&mut self, limit: usize) -> Result<Vec<TokenId>, Error> {
        Ok(self
            .with(|constraint, state, scratch| constraint.forced_tokens(state, limit, scratch))?)
    }
}

/// A constraint of a type's name and its text.
///
/// # Safety
/// The texts are null or end with NUL, and the tokenizer of `init` is null or alive.
unsafe fn make(
    init: Option<&LlgConstraintInit>,
    kind: impl FnOnce() -> Result<String, Error>,
    data: *const c_char,
) -> *mut LlgConstraint {
    let mut made = Box::<LlgConstraint>::default();
    made.run(|made| {
        let (init, kind) = (needed(init, "init")?, kind()?);
        // SAFETY: the caller's promise.
        let data = needed(unsafe { word(data, "data")? }, "data")?;
        // SAFETY: the caller's promise.
        let grammar = unsafe { init.compile(source(&kind, data)?)? };
        made.forced_too = init.ff_tokens_ok;
        made.log_level = init.log_buffer_level;
        if !grammar.notes().is_empty() {
            made.note(1, format_args!("{}", grammar.notes()));
        }
        made.matcher = Some(Matcher::new(grammar.constraint));
        Ok(())
    });
    Box::into_raw(made)
}

/// Makes a constraint of a list of grammars or a Lark grammar; its error is asked for by
/// llg_get_error().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_constraint(
    init: Option<&LlgConstraintInit>,
    llguidance: *const c_char,
) -> *mut LlgConstraint {
    // SAFETY: the caller's promise.
    unsafe { make(init, || Ok("llguidance".to_owned()), llguidance) }
}

/// Makes a constraint of a regular expression.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_constraint_regex(
    init: Option<&LlgConstraintInit>,
    regex: *const c_char,
) -> *mut LlgConstraint {
    // SAFETY: the caller's promise.
    unsafe { make(init, || Ok("regex".to_owned()), regex) }
}

/// Makes a constraint of a JSON Schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_constraint_json(
    init: Option<&LlgConstraintInit>,
    json_schema: *const c_char,
) -> *mut LlgConstraint {
    // SAFETY: the caller's promise.
    unsafe { make(init, || Ok("json_schema".to_owned()), json_schema) }
}

/// Makes a constraint of a Lark grammar.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_constraint_lark(
    init: Option<&LlgConstraintInit>,
    lark: *const c_char,
) -> *mut LlgConstraint {
    // SAFETY: the caller's promise.
    unsafe { make(init, || Ok("lark".to_owned()), lark) }
}

/// Makes a constraint of a type by its name: "regex", "json", "json_schema", "json_object", "lark",
/// "llguidance" or "guidance".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_constraint_any(
    init: Option<&LlgConstraintInit>,
    constraint_type: *const c_char,
    data: *const c_char,
) -> *mut LlgConstraint {
    // SAFETY: the caller's promise.
    unsafe {
        let kind = || {
            let kind = needed(word(constraint_type, "constraint_type")?, "constraint_type")?;
            Ok(kind.to_owned())
        };
        make(init, kind, data)
    }
}

/// The first error, or null. It lives as long as the constraint.
#[unsafe(no_mangle)]
pub extern "C" fn llg_get_error(cc: Option<&LlgConstraint>) -> *const c_char {
    match cc {
        None => c"the constraint is NULL".as_ptr(),
        Some(cc) => cc.error.as_ref().map_or(std::ptr::null(), |error| error.as_ptr()),
    }
}

/// The temperature, which is 0: no grammar here sets one.
#[unsafe(no_mangle)]
pub extern "C" fn llg_get_temperature(_cc: Option<&LlgConstraint>) -> f32 {
    0.0
}

/// True when the last mask found the text at its end, or after an error.
#[unsafe(no_mangle)]
pub extern "C" fn llg_is_stopped(cc: Option<&LlgConstraint>) -> bool {
    cc.is_none_or(|cc| cc.is_stopped || cc.matcher.is_none())
}

/// Computes the mask of the next token; 0, or -1 after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_compute_mask(
    cc: Option<&mut LlgConstraint>,
    res_p: *mut LlgMaskResult,
) -> i32 {
    cc.map_or(-1, |cc| {
        cc.run(|cc| {
            let result = cc.compute_mask()?;
            let place = needed(std::ptr::NonNull::new(res_p), "res_p")?;
            // SAFETY: it is not null, and the caller's promise.
            unsafe { place.write(result) };
            Ok(())
        })
    })
}

/// Commits a token that the mask allows; 0, or -1 after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_commit_token(
    cc: Option<&mut LlgConstraint>,
    token: u32,
    res_p: *mut LlgCommitResult,
) -> i32 {
    cc.map_or(-1, |cc| {
        cc.run(|cc| {
            let place = needed(std::ptr::NonNull::new(res_p), "res_p")?;
            let result = cc.commit(token)?;
            // SAFETY: it is not null, and the caller's promise.
            unsafe { place.write(result) };
            Ok(())
        })
    })
}

/// Copies a constraint.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_constraint(cc: Option<&LlgConstraint>) -> *mut LlgConstraint {
    border::ask(std::ptr::null_mut(), || {
        let Some(cc) = cc else { return std::ptr::null_mut() };
        Box::into_raw(Box::new(LlgConstraint {
            matcher: cc.matcher.as_ref().map(Matcher::fork),
            error: cc.error.clone(),
            forced_too: cc.forced_too,
            is_stopped: cc.is_stopped,
            log_level: cc.log_level,
            ..LlgConstraint::default()
        }))
    })
}

/// The log since it was asked for last. It lives to the next call.
#[unsafe(no_mangle)]
pub extern "C" fn llg_flush_logs(cc: Option<&mut LlgConstraint>) -> *const c_char {
    border::ask(std::ptr::null(), || {
        cc.map_or(std::ptr::null(), |cc| {
            cc.flushed = c_text(&std::mem::take(&mut cc.log));
            cc.flushed.as_ptr()
        })
    })
}

/// Frees a constraint.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_constraint(cc: Option<Box<LlgConstraint>>) {
    border::ask((), || drop(cc));
}
