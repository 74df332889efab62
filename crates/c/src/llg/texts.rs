//! Text and tokens of a tokenizer: cutting, decoding, and tokens as people read them.

use std::ffi::c_char;
use std::fmt::Write;
use std::ptr;

use palmette_core::TokenId;

use super::tokenizer::{LlgTokenizer, Shared};
use crate::arguments::array;
use crate::border;

/// Names of special tokens are part of the text.
const INCLUDE_SPECIAL: u32 = 1;
/// Bytes that are no UTF-8 become U+FFFD.
const VALID_UTF8: u32 = 2;

/// Writes as much of a text as there is room for, and NUL; gives the bytes that it takes with NUL.
///
/// # Safety
/// `output` is null or has room for `output_len` bytes.
pub(super) unsafe fn write_text(text: &[u8], output: *mut c_char, output_len: usize) -> usize {
    if !output.is_null() && output_len > 0 {
        let written = text.len().min(output_len - 1);
        // SAFETY: there is room for one byte more than is written.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr(), output.cast(), written);
            output.add(written).write(0);
        }
    }
    text.len() + 1
}

/// Writes as many tokens as there is room for; gives their number.
///
/// # Safety
/// `output` is null or has room for `output_len` tokens.
unsafe fn write_tokens(tokens: &[u32], output: *mut u32, output_len: usize) -> usize {
    if !output.is_null() {
        // SAFETY: there is room for as many.
        unsafe { ptr::copy_nonoverlapping(tokens.as_ptr(), output, tokens.len().min(output_len)) };
    }
    tokens.len()
}

/// Cuts bytes in one of two ways; gives the number of tokens, of which as many as there is room for
/// are written.
///
/// # Safety
/// Both pointers are null or have as many values as their lengths say.
unsafe fn tokenize(
    tok: Option<&LlgTokenizer>,
    (bytes, bytes_len): (*const u8, usize),
    (output, output_len): (*mut u32, usize),
    cut: fn(&Shared, &[u8]) -> Vec<u32>,
) -> usize {
    border::ask(0, || {
        // SAFETY: the caller's promise.
        let bytes = unsafe { array(bytes, bytes_len, "bytes").unwrap_or_default() };
        let tokens = tok.map(|tok| cut(&tok.shared, bytes)).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { write_tokens(&tokens, output, output_len) }
    })
}

impl Shared {
    /// Cuts text in which 0xFF begins the name of a special token, `<…>`, or its number, `[…]`.
    fn cut_marked(&self, bytes: &[u8]) -> Vec<u32> {
        const MARK: u8 = 0xFF;
        let (mut tokens, mut rest, mut plain) = (Vec::new(), bytes, 0);
        while let Some(&first) = rest.get(plain) {
            match (first == MARK).then(|| self.marked(&rest[plain + 1..])).flatten() {
                Some((token, length)) => {
                    tokens.extend(self.cut(&rest[..plain]));
                    tokens.push(token);
                    (rest, plain) = (&rest[plain + 1 + length..], 0);
                }
                None => plain += 1,
            }
        }
        tokens.extend(self.cut(rest));
        tokens
    }

    /// The token that a marked name or number is, and the length of that.
    fn marked(&self, name: &[u8]) -> Option<(u32, usize)> {
        let close = match name.first()? {
            b'[' => b']',
            b'<' => b'>',
            _ => return None,
        };
        let length = name.iter().position(|&byte| byte == close)? + 1;
        let name = str::from_utf8(&name[..length]).ok()?;
        let tokens = self.vocabulary.tokens();
        let number = name.strip_prefix('[').and_then(|number| number.strip_suffix(']'));
        let token = match number {
            Some(number) => {
                number.parse().ok().filter(|&at: &u32| (at as usize) < tokens.num_tokens())?
            }
            None => tokens.named(name)?.0,
        };
        Some((token, length))
    }

    /// The name of a special token, or its number where it has none.
    fn special_name(&self, token: u32) -> String {
        let mut names = self.vocabulary.tokens().names();
        let named = names.find(|(_, named)| named.0 == token);
        named.map_or_else(|| format!("<[{token}]>"), |(name, _)| name.to_owned())
    }

    pub(super) fn text(&self, token: u32) -> &[u8] {
        let tokens = self.vocabulary.tokens();
        if (token as usize) < tokens.num_tokens() { tokens.text(TokenId(token)) } else { &[] }
    }

    fn decode(&self, tokens: &[u32], flags: u32) -> Vec<u8> {
        let mut text = Vec::new();
        for &token in tokens {
            match self.text(token) {
                [] if flags & INCLUDE_SPECIAL != 0 => {
                    text.extend_from_slice(self.special_name(token).as_bytes());
                }
                bytes => text.extend_from_slice(bytes),
            }
        }
        match flags & VALID_UTF8 {
            0 => text,
            _ => String::from_utf8_lossy(&text).into_owned().into_bytes(),
        }
    }

    /// Tokens one after another as people read them, with their bounds.
    fn shown(&self, tokens: &[u32]) -> String {
        let mut shown = String::new();
        for &token in tokens {
            let mark = if shown.is_empty() { "" } else { "‧" };
            // A `String` takes whatever is written.
            let _ = match self.text(token) {
                [] => write!(shown, "{mark}{}", self.special_name(token)),
                bytes => write!(shown, "{mark}{}", bytes.escape_ascii()),
            };
        }
        format!("⟦{shown}⟧")
    }
}

/// Cuts bytes into tokens; gives the number of all, of which as many as there is room for are
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_tokenize_bytes(
    tok: Option<&LlgTokenizer>,
    bytes: *const u8,
    bytes_len: usize,
    output_tokens: *mut u32,
    output_tokens_len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { tokenize(tok, (bytes, bytes_len), (output_tokens, output_tokens_len), Shared::cut) }
}

/// Cuts bytes in which 0xFF begins the name of a special token, or its number in brackets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_tokenize_bytes_marker(
    tok: Option<&LlgTokenizer>,
    bytes: *const u8,
    bytes_len: usize,
    output_tokens: *mut u32,
    output_tokens_len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        tokenize(tok, (bytes, bytes_len), (output_tokens, output_tokens_len), Shared::cut_marked)
    }
}

/// Writes tokens as people read them, and NUL; gives the bytes that it takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_stringify_tokens(
    tok: Option<&LlgTokenizer>,
    tokens: *const u32,
    n_tokens: usize,
    output: *mut c_char,
    output_len: usize,
) -> usize {
    border::ask(0, || {
        // SAFETY: the caller's promise.
        let tokens = unsafe { array(tokens, n_tokens, "tokens").unwrap_or_default() };
        let shown = tok.map(|tok| tok.shared.shown(tokens)).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { write_text(shown.as_bytes(), output, output_len) }
    })
}

/// Writes the text of tokens, and NUL; gives the bytes that it takes. `flags` are the sum of
/// LLG_DECODE_INCLUDE_SPECIAL and LLG_DECODE_VALID_UTF8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_decode_tokens(
    tok: Option<&LlgTokenizer>,
    tokens: *const u32,
    n_tokens: usize,
    output: *mut c_char,
    output_len: usize,
    flags: u32,
) -> usize {
    border::ask(0, || {
        // SAFETY: the caller's promise.
        let tokens = unsafe { array(tokens, n_tokens, "tokens").unwrap_or_default() };
        let text = tok.map(|tok| tok.shared.decode(tokens, flags)).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe { write_text(&text, output, output_len) }
    })
}

/// The version: that of llguidance whose names these are, and ours. It lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn llg_get_version() -> *const c_char {
    const VERSION: &str = concat!("llguidance@1.9.1-by-palmette@", env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
