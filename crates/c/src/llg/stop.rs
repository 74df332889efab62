//! Stop controllers: text as it is written, up to tokens or an expression that end it.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::sync::Arc;

use palmette_grammar::{CacheLimits, PatternSearch};

use super::texts::write_text;
use super::tokenizer::{LlgTokenizer, Shared};
use crate::arguments::{array, needed, word};
use crate::border;
use crate::error::{Error, Status};

/// The text of tokens, held back where it may be the beginning of what ends it or of a character.
#[derive(Clone, Debug)]
pub struct LlgStopController {
    shared: Arc<Shared>,
    stop_tokens: Vec<u32>,
    search: Option<PatternSearch>,
    /// Text that was not given yet, and the bytes that were.
    held: Vec<u8>,
    num_given: usize,
    is_stopped: bool,
    /// Text that was given last, with NUL.
    output: Vec<u8>,
}

impl LlgStopController {
    /// The text that is sure by now.
    fn commit(&mut self, token: u32) -> Result<Vec<u8>, Error> {
        if self.is_stopped {
            return Ok(Vec::new());
        }
        if self.stop_tokens.contains(&token) {
            self.is_stopped = true;
            return Ok(self.give(self.held.len()));
        }
        let shared = Arc::clone(&self.shared);
        for &byte in shared.text(token) {
            self.held.push(byte);
            let search = self.search.as_mut();
            if let Some(begin) = search.map_or(Ok(None), |search| search.push(byte))? {
                self.is_stopped = true;
                let text = self.give(begin - self.num_given);
                self.held.clear();
                return Ok(text);
            }
        }
        let decided = self.search.as_ref().map(PatternSearch::num_decided);
        let decided = decided.map_or(self.held.len(), |decided| decided - self.num_given);
        let incomplete = incomplete_tail(&self.held[..decided]);
        Ok(self.give(decided - incomplete))
    }

    fn give(&mut self, num_bytes: usize) -> Vec<u8> {
        self.num_given += num_bytes;
        self.held.drain(..num_bytes).collect()
    }
}

/// Bytes at the end that begin a character and do not end it.
fn incomplete_tail(text: &[u8]) -> usize {
    let tail = &text[text.len().saturating_sub(3)..];
    let begins = tail.iter().rposition(|&byte| byte >= 0xC0).map(|at| &tail[at..]);
    let incomplete = begins.filter(|begun| {
        str::from_utf8(begun)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    });
    incomplete.map_or(0, <[u8]>::len)
}

/// Makes a controller that ends a text at any of these tokens, or where an expression matches; null
/// where it cannot be, with the reason in `error_string`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_stop_controller(
    tokenizer: Option<&LlgTokenizer>,
    stop_tokens: *const u32,
    stop_tokens_len: usize,
    stop_rx: *const c_char,
    error_string: *mut c_char,
    error_string_len: usize,
) -> *mut LlgStopController {
    let make = || -> Result<LlgStopController, Error> {
        let shared = Arc::clone(&needed(tokenizer, "tokenizer")?.shared);
        // SAFETY: the caller's promise.
        let (stop_tokens, pattern) = unsafe {
            (
                array(stop_tokens, stop_tokens_len, "stop_tokens")?.to_vec(),
                word(stop_rx, "stop_rx")?,
            )
        };
        let search = pattern.map(|pattern| {
            let search = PatternSearch::new(pattern, &CacheLimits::default());
            search.map_err(|error| Error::new(Status::Grammar, error.to_string()))
        });
        let (held, output) = (Vec::new(), Vec::new());
        let search = search.transpose()?;
        Ok(LlgStopController {
            shared,
            stop_tokens,
            search,
            held,
            num_given: 0,
            is_stopped: false,
            output,
        })
    };
    border::ask(std::ptr::null_mut(), || match make() {
        Ok(made) => Box::into_raw(Box::new(made)),
        Err(error) => {
            // SAFETY: the caller's promise.
            unsafe { write_text(error.message().as_bytes(), error_string, error_string_len) };
            std::ptr::null_mut()
        }
    })
}

/// Adds a token; gives the text that is sure by then, which ends with NUL and lives to the next
/// call, its length, and whether the text is at its end. Bytes that are no UTF-8 become U+FFFD.
/// Where a limit is exceeded the text is at its end, too.
#[unsafe(no_mangle)]
pub extern "C" fn llg_stop_commit_token(
    stop_ctrl: Option<&mut LlgStopController>,
    token: u32,
    output_len_p: Option<&mut MaybeUninit<usize>>,
    is_stopped_p: Option<&mut MaybeUninit<bool>>,
) -> *const c_char {
    let Some(controller) = stop_ctrl else { return std::ptr::null() };
    let text = border::ask(None, || controller.commit(token).ok());
    controller.is_stopped |= text.is_none();
    let mut output = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned().into_bytes();
    if let Some(length) = output_len_p {
        length.write(output.len());
    }
    if let Some(is_stopped) = is_stopped_p {
        is_stopped.write(controller.is_stopped);
    }
    output.push(0);
    controller.output = output;
    controller.output.as_ptr().cast()
}

/// Copies a controller.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_stop_controller(
    stop_ctrl: Option<&LlgStopController>,
) -> *mut LlgStopController {
    border::ask(std::ptr::null_mut(), || {
        let Some(controller) = stop_ctrl else { return std::ptr::null_mut() };
        Box::into_raw(Box::new(controller.clone()))
    })
}

/// Frees a controller.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_stop_controller(stop_ctrl: Option<Box<LlgStopController>>) {
    border::ask((), || drop(stop_ctrl));
}
