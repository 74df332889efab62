//! Vocabularies: the bytes of a model's tokens.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;

use palmette_core::{TokenId, mask};
use palmette_grammar::{CacheLimits, GrammarCache, PreparedVocabulary};
use palmette_vocabulary::{EndsFound, LoadOptions, LoadedVocabulary, Tokenizer};

use crate::arguments::{array, array_mut, invalid, needed, text, tokens, word, write_all};
use crate::border;
use crate::error::{Error, Status, c_text};

/// The tokens of a model, and the grammars that were compiled over them. Threads share it.
#[derive(Debug)]
pub struct Vocabulary {
    pub(crate) slices: Arc<PreparedVocabulary>,
    pub(crate) cache: GrammarCache,
    tokenizer: Option<Tokenizer>,
    notes: CString,
}

/// A token of a vocabulary that is given token by token.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Bytes that it spells; NULL for a special token, which no text holds.
    pub bytes: *const u8,
    /// Number of those bytes.
    pub num_bytes: usize,
    /// Name by which grammars may ask for a special token, up to NUL; NULL for none.
    pub name: *const c_char,
}

impl Vocabulary {
    fn new(loaded: LoadedVocabulary) -> Self {
        let mut notes: Vec<String> = loaded.assumptions.iter().map(ToString::to_string).collect();
        if loaded.ends != EndsFound::Options {
            notes.push(format!("end tokens: {}", loaded.ends));
        }
        Self::of(loaded.vocabulary, loaded.tokenizer, &notes)
    }

    pub(crate) fn of(
        vocabulary: Arc<palmette_core::Vocabulary>,
        tokenizer: Option<Tokenizer>,
        notes: &[String],
    ) -> Self {
        let slices = Arc::new(PreparedVocabulary::new(vocabulary));
        let cache = GrammarCache::new(CacheLimits::default());
        Self { slices, cache, tokenizer, notes: c_text(&notes.join("\n")) }
    }

    pub(crate) fn tokens(&self) -> &palmette_core::Vocabulary {
        self.slices.vocabulary()
    }

    /// The tokens of a text.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        let refused = |message: String| Error::new(Status::Vocabulary, message);
        let tokenizer = self.tokenizer.as_ref().ok_or_else(|| {
            refused(
                "this vocabulary says what tokens spell, not how text is cut into them: open a tokenizer's file or an encoding"
                    .to_owned(),
            )
        })?;
        tokenizer.encode(text).map_err(|error| refused(error.to_string()))
    }
}

/// Writes a handle.
fn give(
    loaded: Result<Vocabulary, impl ToString>,
    vocabulary: &mut MaybeUninit<*mut Vocabulary>,
) -> Result<(), Error> {
    let loaded = loaded.map_err(|error| Error::new(Status::Vocabulary, error.to_string()))?;
    vocabulary.write(Box::into_raw(Box::new(loaded)));
    Ok(())
}

/// Options of loading with these end tokens.
///
/// # Safety
/// As `arguments::array`, and each is a text up to NUL.
unsafe fn load_options(
    end_tokens: *const *const c_char,
    num_end_tokens: usize,
) -> Result<LoadOptions, Error> {
    // SAFETY: the caller's promise.
    let given = unsafe { array(end_tokens, num_end_tokens, "end_tokens")? };
    let names = given.iter().map(|&end| {
        // SAFETY: the caller's promise.
        let name = unsafe { word(end, "an end token")? };
        needed(name, "an end token").map(str::to_owned)
    });
    Ok(LoadOptions { end_tokens: names.collect::<Result<_, _>>()?, ..LoadOptions::default() })
}

/// Opens a file or folder: tokenizer.json, tekken.json, a SentencePiece model, a tiktoken file or a
/// list of pieces.
///
/// `end_tokens` are the names or decimal ids of the tokens by which the model stops; without any,
/// they are looked for in the configuration files beside it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_vocabulary_open(
    path: *const c_char,
    end_tokens: *const *const c_char,
    num_end_tokens: usize,
    vocabulary: Option<&mut MaybeUninit<*mut Vocabulary>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        // SAFETY: the caller's promise.
        let path = Path::new(needed(unsafe { word(path, "path")? }, "path")?);
        let vocabulary = needed(vocabulary, "vocabulary")?;
        // SAFETY: the caller's promise.
        let options = unsafe { load_options(end_tokens, num_end_tokens)? };
        // A path never means an encoding, even where a file has its name.
        let inside = Path::new(".").join(path);
        let path = if path.is_absolute() { path } else { &inside };
        let loaded = palmette_vocabulary::load_with(&path.to_string_lossy(), &options);
        give(loaded.map(Vocabulary::new), vocabulary)
    })
}

/// Takes an encoding of tiktoken by name, such as "o200k_base".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_vocabulary_encoding(
    name: *const c_char,
    vocabulary: Option<&mut MaybeUninit<*mut Vocabulary>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        // SAFETY: the caller's promise.
        let name = needed(unsafe { word(name, "name")? }, "name")?;
        let vocabulary = needed(vocabulary, "vocabulary")?;
        let mut known = palmette_vocabulary::encoding_names();
        if known.any(|known| known == name) {
            return give(palmette_vocabulary::load(name).map(Vocabulary::new), vocabulary);
        }
        let known: Vec<_> = palmette_vocabulary::encoding_names().collect();
        let known = match known.is_empty() {
            true => "this build has none (feature `encodings`)".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        let message =
            format!("no encoding has the name {name:?}; {known}. Files are opened by their path");
        Err(Error::new(Status::Vocabulary, message))
    })
}

/// Reads the content of a file that palmette_vocabulary_open() would open, from memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_vocabulary_read(
    content: *const u8,
    num_bytes: usize,
    end_tokens: *const *const c_char,
    num_end_tokens: usize,
    vocabulary: Option<&mut MaybeUninit<*mut Vocabulary>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let vocabulary = needed(vocabulary, "vocabulary")?;
        // SAFETY: the caller's promise.
        let content = unsafe { array(content, num_bytes, "content")? };
        // SAFETY: the caller's promise.
        let options = unsafe { load_options(end_tokens, num_end_tokens)? };
        let loaded = palmette_vocabulary::load_bytes("content", content, &options);
        give(loaded.map(Vocabulary::new), vocabulary)
    })
}

/// Takes tokens one by one: `tokens[t]` is token t, and `ends` are the tokens by which the model
/// stops, which have no bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_vocabulary_from_tokens(
    tokens: *const Token,
    num_tokens: usize,
    ends: *const u32,
    num_ends: usize,
    vocabulary: Option<&mut MaybeUninit<*mut Vocabulary>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let vocabulary = needed(vocabulary, "vocabulary")?;
        // SAFETY: the caller's promise.
        let given = unsafe { array(tokens, num_tokens, "tokens")? };
        // SAFETY: the caller's promise.
        let ends = unsafe { self::tokens(ends, num_ends)? };
        if u32::try_from(given.len()).is_err() {
            return Err(invalid(format!("{} tokens are more than ids of 32 bits", given.len())));
        }
        let (mut texts, mut names) = (Vec::with_capacity(given.len()), Vec::new());
        for (id, token) in (0..).zip(given) {
            // SAFETY: the caller's promise.
            let bytes = unsafe { array(token.bytes, token.num_bytes, "bytes of a token")? };
            texts.push((!bytes.is_empty()).then_some(bytes));
            // SAFETY: the caller's promise.
            if let Some(name) = unsafe { word(token.name, "name of a token")? } {
                names.push((TokenId(id), name.to_owned()));
            }
        }
        let made = palmette_core::Vocabulary::new(texts, ends.iter().copied());
        let made = made.and_then(|made| made.with_names(names));
        give(made.map(|made| Vocabulary::of(Arc::new(made), None, &[])), vocabulary)
    })
}

/// Size of the vocabulary: masks have a bit for each token. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_vocabulary_num_tokens(vocabulary: Option<&Vocabulary>) -> usize {
    vocabulary.map_or(0, |vocabulary| vocabulary.tokens().num_tokens())
}

/// Words of 32 bits of a mask over the vocabulary. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_vocabulary_mask_words(vocabulary: Option<&Vocabulary>) -> usize {
    mask::num_words(palmette_vocabulary_num_tokens(vocabulary))
}

/// The bytes of a token, and their number; NULL and 0 for special tokens and ids that no token has.
/// They are the vocabulary's and live as long.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_vocabulary_text(
    vocabulary: Option<&Vocabulary>,
    token: u32,
    num_bytes: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    let vocabulary = vocabulary.map(Vocabulary::tokens);
    let vocabulary = vocabulary.filter(|tokens| (token as usize) < tokens.num_tokens());
    let text = vocabulary.map_or(&[][..], |tokens| tokens.text(TokenId(token)));
    if let Some(num_bytes) = num_bytes {
        num_bytes.write(text.len());
    }
    if text.is_empty() { std::ptr::null() } else { text.as_ptr() }
}

/// The tokens by which the model stops, ascending, and their number. They are the vocabulary's and
/// live as long.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_vocabulary_ends(
    vocabulary: Option<&Vocabulary>,
    num_ends: Option<&mut MaybeUninit<usize>>,
) -> *const u32 {
    let ends = vocabulary.map_or(&[][..], |vocabulary| vocabulary.tokens().ends());
    if let Some(num_ends) = num_ends {
        num_ends.write(ends.len());
    }
    ends.as_ptr().cast()
}

/// Statements that the vocabulary's source does not make and that were taken to hold, a line each;
/// empty where there are none, NULL for NULL. It is the vocabulary's and lives as long.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_vocabulary_notes(vocabulary: Option<&Vocabulary>) -> *const c_char {
    vocabulary.map_or(std::ptr::null(), |vocabulary| vocabulary.notes.as_ptr())
}

/// Cuts text into tokens as the vocabulary's own tokenizer does. `num_tokens` becomes their number;
/// of them, as many as `capacity` are written to `tokens`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn palmette_vocabulary_encode(
    vocabulary: Option<&Vocabulary>,
    text: *const c_char,
    num_bytes: usize,
    tokens: *mut u32,
    capacity: usize,
    num_tokens: Option<&mut MaybeUninit<usize>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Status {
    border::call(error, || {
        let vocabulary = needed(vocabulary, "vocabulary")?;
        let num_tokens = needed(num_tokens, "num_tokens")?;
        // SAFETY: the caller's promise.
        let (text, room) = unsafe {
            (self::text(text, num_bytes, "text")?, array_mut(tokens, capacity, "tokens")?)
        };
        let found = vocabulary.encode(text)?;
        write_all(found.iter().map(|token| token.0), room, num_tokens);
        Ok(())
    })
}

/// Frees a vocabulary; grammars over it keep what they need. NULL is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn palmette_vocabulary_free(vocabulary: Option<Box<Vocabulary>>) {
    border::ask((), || drop(vocabulary));
}
