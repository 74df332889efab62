//! Vocabularies from tokenizer files and encodings, and tokenizing text with them.
//!
//! [`load`] takes the name of a tiktoken encoding or the path of a file and returns a [`LoadedVocabulary`]: what
//! each token spells, which tokens end the output and how that was found, and a [`Tokenizer`] where there is one.
//!
//! | read | recognised by | token bytes |
//! |---|---|---|
//! | tiktoken encoding | its name, such as `o200k_base` | as the encoding has them |
//! | Hugging Face `tokenizer.json`, or a folder with one | a JSON object with `model` | as its decoder spells a single token, see below |
//! | tiktoken file | lines `base64 rank` | decoded |
//! | list or object of pieces | a JSON array of strings, or an object piece → id | as guessed from the pieces, see below |
//! | text list | any other text: a token a line | the line's, with the escapes `\n \r \t \\ \xHH`; then as a list of pieces |
//!
//! # Bytes of a token
//! Vocabularies spell bytes in one of three ways:
//!
//! - *byte-level*: each byte is one of 256 printable characters, `Ġ` being the space (GPT-2 and its kin);
//! - *SentencePiece*: `▁` is a space, `<0x0A>` the byte 0A, anything else its UTF-8;
//! - *plain*: the UTF-8 of the piece.
//!
//! A `tokenizer.json` says which; its decoder's steps are applied to each piece alone. A list does not say: a `▁` in any
//! piece makes it SentencePiece, else it is byte-level if some piece has a `Ġ` and all are spelled in the 256 characters.
//!
//! SentencePiece puts a space before a whole text, which its decoder takes off the first token. A token's bytes here are
//! what it adds *within* a text, so `▁the` is ` the` everywhere, and [`Tokenizer`] reads text as the middle of a text:
//! it adds no space. For every text that it takes, the bytes of its tokens are the text.
//!
//! # Special tokens
//! A special token has no bytes, and a name by which grammars may ask for it. In a `tokenizer.json` these are the added tokens
//! marked so or written in angle brackets (`<tool_call>`, which Qwen3 marks as text), the unknown token, and ids that nothing has; in a list, `null`, the empty piece, pieces `<|…|>` and a few well-known names such as `</s>` and `[PAD]`.
//! A tokenizer never makes special tokens of text: `</s>` in a text is four characters.
//!
//! # End tokens
//! Looked for beside the file, the first that names any: `generation_config.json`, `tokenizer_config.json`,
//! `config.json`. Otherwise every special token with a well-known name. [`EndsFound`] says which it was.
//!
//! # Features
//! Both are off unless asked for. Without `hf-tokenizers` the tokens of a `tokenizer.json` are read all the same, and its
//! [`Tokenizer`] refuses every text with [`TokenizeError::LeftOut`]; a tokenizer that could not be built is not found out.
//! Without `encodings` the name of an encoding is an error, and the special tokens of a tiktoken file are only those that a
//! `tokenizer_config.json` beside it adds.
//!
//! ```
//! # #[cfg(feature = "encodings")] {
//! let loaded = palmette_vocabulary::load("r50k_base")?;
//! let tokens = loaded.tokenizer.unwrap().encode("a palm leaf")?;
//! let texts: Vec<_> = tokens.iter().map(|&token| loaded.vocabulary.text(token)).collect();
//! assert_eq!(texts, [&b"a"[..], b" palm", b" leaf"]);
//! assert_eq!(loaded.ends.to_string(), "by the encoding");
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod byte_pairs;
mod draft;
mod encodings;
mod ends;
mod error;
mod hugging_face;
mod known_ranks;
mod lists;
mod load;
mod merging;
mod options;
mod protobuf;
mod rank_pairs;
mod scored_pairs;
mod sentence_piece;
mod spelling;
mod tekken;
mod tiktoken_file;
mod tokenizer;
mod tokenizer_json;

pub use encodings::names as encoding_names;
pub use ends::EndsFound;
pub use error::VocabularyLoadError;
pub use load::{Format, LoadedVocabulary, load, load_with};
pub use options::{AngleTokens, Assumption, LoadOptions};
pub use tokenizer::{TokenizeError, Tokenizer};
