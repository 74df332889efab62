//! Tokenizers: a vocabulary, and the caller's way to cut text.

use std::ffi::{c_char, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::sync::Arc;

use palmette_core::{TokenId, Vocabulary as Tokens};
use palmette_vocabulary::{LoadOptions, LongestTokens};

use super::texts::write_text;
use crate::arguments::{array, invalid, needed, word};
use crate::border;
use crate::error::{Error, Status};
use crate::vocabulary::Vocabulary;

/// Cutting of bytes into tokens by the caller: writes as many tokens as there is room for, and
/// gives the number of all. Threads call it at once.
pub type LlgTokenizeFn = Option<
    extern "C" fn(
        user_data: *const c_void,
        bytes: *const u8,
        bytes_len: usize,
        output_tokens: *mut u32,
        output_tokens_len: usize,
    ) -> usize,
>;

/// Parameters of a tokenizer, first version; zeroed before members are set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LlgTokenizerInit {
    /// Number of tokens.
    pub vocab_size: u32,
    /// Token that ends a text.
    pub tok_eos: u32,
    /// Lengths of the tokens.
    pub token_lens: *const u32,
    /// Bytes of the tokens, one after another; those of special tokens begin with 0xFF.
    pub token_bytes: *const u8,
    /// Content of a tokenizer.json instead of the two, up to NUL.
    pub tokenizer_json: *const c_char,
    /// True when `tokenize_fn` takes UTF-8 alone.
    pub tokenize_assumes_string: bool,
    /// Cutting of bytes into tokens.
    pub tokenize_fn: LlgTokenizeFn,
    /// True when text may be cut by the longest token first, where there is no `tokenize_fn`.
    pub use_approximate_greedy_tokenize_fn: bool,
    /// First argument of `tokenize_fn`.
    pub tokenize_user_data: *const c_void,
    /// Parts of the vocabulary by regular expressions; not read.
    pub slices: *const *const c_char,
}

/// Parameters of a tokenizer with several end tokens; `struct_size` bytes of it are read.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LlgTokenizerInitV2 {
    /// Size of the structure as the caller knows it.
    pub struct_size: usize,
    /// Number of tokens.
    pub vocab_size: u32,
    /// Token that ends a text.
    pub tok_eos: u32,
    /// Lengths of the tokens.
    pub token_lens: *const u32,
    /// Bytes of the tokens, one after another; those of special tokens begin with 0xFF.
    pub token_bytes: *const u8,
    /// Content of a tokenizer.json instead of the two, up to NUL.
    pub tokenizer_json: *const c_char,
    /// True when `tokenize_fn` takes UTF-8 alone.
    pub tokenize_assumes_string: bool,
    /// Cutting of bytes into tokens.
    pub tokenize_fn: LlgTokenizeFn,
    /// True when text may be cut by the longest token first, where there is no `tokenize_fn`.
    pub use_approximate_greedy_tokenize_fn: bool,
    /// First argument of `tokenize_fn`.
    pub tokenize_user_data: *const c_void,
    /// Parts of the vocabulary by regular expressions; not read.
    pub slices: *const *const c_char,
    /// More tokens that end a text.
    pub tok_eos_extra: *const u32,
    /// Number of those.
    pub tok_eos_extra_count: u32,
}

/// A vocabulary and its tokenizer, shared by constraints and threads.
#[derive(Clone, Debug)]
pub struct LlgTokenizer {
    pub(super) shared: Arc<Shared>,
}

/// The part of a tokenizer that its clones share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) vocabulary: Vocabulary,
    cutting: Cutting,
}

/// The way in which text is cut.
#[derive(Debug)]
enum Cutting {
    Caller { function: CallerFunction, assumes_string: bool, longest: LongestTokens },
    Longest(LongestTokens),
}

/// The caller's function with its first argument.
#[derive(Debug)]
struct CallerFunction {
    function: extern "C" fn(*const c_void, *const u8, usize, *mut u32, usize) -> usize,
    user_data: *const c_void,
}

// SAFETY: the interface demands that the function may be called by any threads at once with this
// argument, which nothing else here reads.
unsafe impl Send for CallerFunction {}
// SAFETY: as above.
unsafe impl Sync for CallerFunction {}

/// No end token.
const NO_TOKEN: u32 = u32::MAX;
/// The first byte of a special token's bytes; its name follows.
const SPECIAL: u8 = 0xFF;

impl CallerFunction {
    /// The tokens, asked for again where there was not room for all; no more than bytes, and some.
    fn cut(&self, bytes: &[u8]) -> Vec<u32> {
        const MORE: usize = 64;
        let mut tokens = vec![0; bytes.len() / 4 + 5];
        let mut count = self.write(bytes, &mut tokens);
        if count > tokens.len() {
            tokens.resize(count.min(bytes.len() + MORE), 0);
            count = self.write(bytes, &mut tokens);
        }
        tokens.truncate(count);
        tokens
    }

    fn write(&self, bytes: &[u8], room: &mut [u32]) -> usize {
        let (to, from) = (room.as_mut_ptr(), bytes.as_ptr());
        (self.function)(self.user_data, from, bytes.len(), to, room.len())
    }
}

impl Shared {
    /// The tokens of bytes; where the caller's function takes text alone, those that are none are
    /// cut by the longest token first.
    pub(super) fn cut(&self, bytes: &[u8]) -> Vec<u32> {
        let longest = |longest: &LongestTokens, bytes: &[u8]| {
            let tokens = longest.cut(bytes).unwrap_or_default();
            tokens.into_iter().map(|token| token.0).collect::<Vec<_>>()
        };
        match &self.cutting {
            Cutting::Longest(tokens) => longest(tokens, bytes),
            Cutting::Caller { function, assumes_string: false, .. } => function.cut(bytes),
            Cutting::Caller { function, longest: tokens, .. } => {
                let parts = bytes.utf8_chunks().flat_map(|chunk| {
                    let valid = Some(chunk.valid()).filter(|text| !text.is_empty());
                    let valid = valid.map(|text| function.cut(text.as_bytes()));
                    valid.unwrap_or_default().into_iter().chain(longest(tokens, chunk.invalid()))
                });
                parts.collect()
            }
        }
    }
}

impl LlgTokenizerInit {
    fn with_more_ends(&self) -> LlgTokenizerInitV2 {
        LlgTokenizerInitV2 {
            struct_size: size_of::<LlgTokenizerInitV2>(),
            vocab_size: self.vocab_size,
            tok_eos: self.tok_eos,
            token_lens: self.token_lens,
            token_bytes: self.token_bytes,
            tokenizer_json: self.tokenizer_json,
            tokenize_assumes_string: self.tokenize_assumes_string,
            tokenize_fn: self.tokenize_fn,
            use_approximate_greedy_tokenize_fn: self.use_approximate_greedy_tokenize_fn,
            tokenize_user_data: self.tokenize_user_data,
            slices: self.slices,
            tok_eos_extra: std::ptr::null(),
            tok_eos_extra_count: 0,
        }
    }
}

/// Bytes of each token and names of special ones.
type TokenList = (Vec<Option<Vec<u8>>>, Vec<(TokenId, String)>);

/// Tokens of an array of lengths and one of bytes.
///
/// # Safety
/// The arrays are as long as they say.
unsafe fn tokens_of_arrays(init: &LlgTokenizerInitV2) -> Result<TokenList, Error> {
    if init.token_lens.is_null() || init.token_bytes.is_null() {
        return Err(invalid("token_lens and token_bytes must be set".to_owned()));
    }
    // SAFETY: the caller's promise.
    let lengths = unsafe { array(init.token_lens, init.vocab_size as usize, "token_lens")? };
    let total: usize = lengths.iter().map(|&length| length as usize).sum();
    // SAFETY: the caller's promise.
    let mut bytes = unsafe { array(init.token_bytes, total, "token_bytes")? };
    let (mut texts, mut names) = (Vec::with_capacity(lengths.len()), Vec::new());
    for (id, &length) in (0..).zip(lengths) {
        let (token, rest) = bytes.split_at(length as usize);
        bytes = rest;
        match token {
            [SPECIAL, name @ ..] if !name.is_empty() => {
                names.push((TokenId(id), String::from_utf8_lossy(name).into_owned()));
                texts.push(None);
            }
            [] => texts.push(None),
            text => texts.push(Some(text.to_vec())),
        }
    }
    Ok((texts, names))
}

/// Tokens of the content of a tokenizer.json, and more without bytes up to the size given.
fn tokens_of_json(content: &str, size: usize) -> Result<TokenList, Error> {
    let loaded = palmette_vocabulary::load_bytes(
        "tokenizer_json",
        content.as_bytes(),
        &LoadOptions::default(),
    );
    let loaded = loaded.map_err(|error| Error::new(Status::Vocabulary, error.to_string()))?;
    let tokens = &loaded.vocabulary;
    let ids = (0..tokens.num_tokens() as u32).map(TokenId);
    let texts = ids.map(|token| Some(tokens.text(token)).filter(|text| !text.is_empty()));
    let mut texts: Vec<_> = texts.map(|text| text.map(<[u8]>::to_vec)).collect();
    texts.resize(texts.len().max(size), None);
    Ok((texts, tokens.names().map(|(name, token)| (token, name.to_owned())).collect()))
}

/// # Safety
/// Pointers of `init` are as its members say.
unsafe fn make(init: &LlgTokenizerInitV2) -> Result<LlgTokenizer, Error> {
    if init.tokenize_fn.is_none() && !init.use_approximate_greedy_tokenize_fn {
        let rule = "Either tokenize_fn or use_approximate_greedy_tokenize_fn must be set";
        return Err(invalid(rule.to_owned()));
    }
    // SAFETY: the caller's promise.
    let (mut texts, mut names) = match unsafe { word(init.tokenizer_json, "tokenizer_json")? } {
        Some(content) => tokens_of_json(content, init.vocab_size as usize)?,
        // SAFETY: the caller's promise.
        None => unsafe { tokens_of_arrays(init)? },
    };
    let num_more = if init.tok_eos_extra.is_null() { 0 } else { init.tok_eos_extra_count };
    // SAFETY: the caller's promise.
    let more = unsafe { array(init.tok_eos_extra, num_more as usize, "tok_eos_extra")? };
    let ends: Vec<_> = std::iter::once(&init.tok_eos)
        .filter(|&&end| end != NO_TOKEN)
        .chain(more)
        .map(|&end| TokenId(end))
        .collect();
    for &end in &ends {
        let num_tokens = texts.len();
        let text = texts.get_mut(end.index()).ok_or_else(|| {
            invalid(format!("EOS token ID {end} is out of range: there are {num_tokens} tokens"))
        })?;
        // Bytes of an end token are its name: no text has them.
        let name = text.take().map(|name| String::from_utf8_lossy(&name).into_owned());
        if let Some(name) = name.filter(|name| names.iter().all(|(_, other)| other != name)) {
            names.push((end, name));
        }
    }
    let made = Tokens::new(texts, ends).and_then(|tokens| tokens.with_names(names));
    let made = made.map_err(|error| Error::new(Status::Vocabulary, error.to_string()))?;
    let vocabulary = Vocabulary::of(Arc::new(made), None, &[]);
    let longest = LongestTokens::new(Arc::clone(vocabulary.slices.vocabulary()));
    let cutting = match init.tokenize_fn {
        None => Cutting::Longest(longest),
        Some(function) => Cutting::Caller {
            function: CallerFunction { function, user_data: init.tokenize_user_data },
            assumes_string: init.tokenize_assumes_string,
            longest,
        },
    };
    Ok(LlgTokenizer { shared: Arc::new(Shared { vocabulary, cutting }) })
}

/// The handle, or null with the message in the caller's buffer.
///
/// # Safety
/// The buffer is null or as long as it says.
unsafe fn give(
    made: impl FnOnce() -> Result<LlgTokenizer, Error>,
    error_string: *mut c_char,
    error_string_len: usize,
) -> *mut LlgTokenizer {
    let (mut error, mut tokenizer) = (MaybeUninit::uninit(), std::ptr::null_mut());
    border::call(Some(&mut error), || {
        tokenizer = Box::into_raw(Box::new(made()?));
        Ok(())
    });
    // SAFETY: `call` writes it, and it is null or the handle of a box.
    let error = unsafe {
        let error: *mut Error = error.assume_init();
        (!error.is_null()).then(|| Box::from_raw(error))
    };
    if let Some(error) = error {
        // SAFETY: the caller's promise.
        unsafe { write_text(error.message().as_bytes(), error_string, error_string_len) };
    }
    tokenizer
}

/// Makes a tokenizer; null where it cannot be, with the reason in `error_string`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_tokenizer(
    tok_init: Option<&LlgTokenizerInit>,
    error_string: *mut c_char,
    error_string_len: usize,
) -> *mut LlgTokenizer {
    // SAFETY: the caller's promise.
    unsafe {
        let made = || make(&needed(tok_init, "tok_init")?.with_more_ends());
        give(made, error_string, error_string_len)
    }
}

/// Makes a tokenizer with several end tokens; null where it cannot be, with the reason in
/// `error_string`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llg_new_tokenizer_v2(
    tok_init: *const LlgTokenizerInitV2,
    error_string: *mut c_char,
    error_string_len: usize,
) -> *mut LlgTokenizer {
    let made = || {
        if tok_init.is_null() {
            return Err(invalid("tok_init is NULL".to_owned()));
        }
        // SAFETY: it is not null, and begins with its size.
        let size = unsafe { (&raw const (*tok_init).struct_size).read() };
        let least = offset_of!(LlgTokenizerInitV2, token_lens);
        if size < least {
            return Err(invalid(format!("struct_size is {size}, and must be at least {least}")));
        }
        let mut init = MaybeUninit::<LlgTokenizerInitV2>::zeroed();
        let known = size.min(size_of::<LlgTokenizerInitV2>());
        // SAFETY: the structure of the caller has so many bytes, and ours no fewer; members that
        // are not copied are zero, which each may be.
        unsafe {
            std::ptr::copy_nonoverlapping(tok_init.cast::<u8>(), init.as_mut_ptr().cast(), known);
            make(init.assume_init_ref())
        }
    };
    // SAFETY: the caller's promise.
    unsafe { give(made, error_string, error_string_len) }
}

/// Another handle of a tokenizer.
#[unsafe(no_mangle)]
pub extern "C" fn llg_clone_tokenizer(tok: Option<&LlgTokenizer>) -> *mut LlgTokenizer {
    border::ask(std::ptr::null_mut(), || {
        tok.map_or(std::ptr::null_mut(), |tok| Box::into_raw(Box::new(tok.clone())))
    })
}

/// Frees a tokenizer; constraints of it keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn llg_free_tokenizer(tok: Option<Box<LlgTokenizer>>) {
    border::ask((), || drop(tok));
}
