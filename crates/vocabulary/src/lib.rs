//! Vocabularies from tokenizer files and encodings, and tokenizing text with them.
//!
//! [`load`] takes the name of a tiktoken encoding or the path of a file and returns a
//! [`LoadedVocabulary`]: what each token spells, which tokens end the output and how that was
//! found, what was assumed that the source does not say, and a [`Tokenizer`] where there is one.
//! [`load_with`] takes [`LoadOptions`] too.
//!
//! | read | recognised by | token bytes |
//! |---|---|---|
//! | tiktoken encoding | its name, such as `o200k_base` | as the encoding has them |
//! | Hugging Face `tokenizer.json` | a JSON object with `model` | as its decoder spells a single token, see below |
//! | Mistral's `tekken.json` | a JSON object with `config` and a list `vocab` | decoded from base64; rank `r` is the token behind the special tokens and `r` others |
//! | SentencePiece `.model` | a protobuf that begins with a piece | SentencePiece's, see below; those of type `BYTE` are the byte they name |
//! | tiktoken file | lines `base64 rank` | decoded |
//! | list or object of pieces | a JSON array of strings, or an object piece → id | as guessed from the pieces, see below |
//! | text list | any other text: a token a line | the line's, with the escapes `\n \r \t \\ \xHH`; then as a list of pieces |
//!
//! A folder is the first that it has of `tokenizer.json`, `tekken.json` and `tokenizer.model`.
//!
//! # Bytes of a token
//! Vocabularies spell bytes in one of three ways:
//!
//! - *byte-level*: each byte is one of 256 printable characters, `Ġ` being the space (GPT-2 and its
//!   kin);
//! - *SentencePiece*: `▁` is a space, `<0x0A>` the byte 0A, anything else its UTF-8;
//! - *plain*: the UTF-8 of the piece.
//!
//! A `tokenizer.json` says which; its decoder's steps are applied to each piece alone. A list does
//! not say: a `▁` in any piece makes it SentencePiece, else it is byte-level if some piece has a
//! `Ġ` and all are spelled in the 256 characters.
//!
//! SentencePiece puts a space before a whole text, which its decoder takes off the first token. A
//! token's bytes here are what it adds *within* a text, so `▁the` is ` the` everywhere, and
//! [`Tokenizer`] reads text as the middle of a text: it adds no space. For every text that it
//! takes, the bytes of its tokens are the text.
//!
//! # Special tokens
//! A special token has no bytes, and a name by which grammars may ask for it. These are the ids
//! that nothing has, the tokens of [`LoadOptions::special_tokens`], and
//!
//! - in a `tokenizer.json` the unknown token and the added tokens marked so or written in angle
//!   brackets;
//! - in a SentencePiece model the pieces of type `UNKNOWN` and `CONTROL`, and those `USER_DEFINED`
//!   in angle brackets;
//! - in a `tekken.json` the ids below `default_num_special_tokens`: `special_tokens` names them.
//!   Older files do not, and have the names of Mistral NeMo's tokens or, where they read images,
//!   Pixtral's. The others are `<SPECIAL_n>`;
//! - for a tiktoken file, which has none in it, those that a `tokenizer_config.json` beside it
//!   adds. Where that and the options are silent: those of the encoding with these ranks; of Llama
//!   3 for exactly 128,000 ranks; of Qwen for exactly 151,643;
//! - in a list, `null`, the empty piece, pieces `<|…|>` and a few well-known names such as `</s>`
//!   and `[PAD]`.
//!
//! *Angle tokens* are written `<…>` and marked as text, such as `<tool_call>` of Qwen3: a text
//! would hold what the model means for control. [`AngleTokens::Text`] keeps the mark. These, and
//! the special tokens that a source lacks, are [`assumptions`](LoadedVocabulary::assumptions).
//!
//! A tokenizer never makes special tokens of text: `</s>` in a text is four characters.
//!
//! A [`PromptTokenizer`] does: it reads whole prompts, as a model was trained on them.
//!
//! # Cutting text
//! Encodings, `tekken.json` and the tiktoken files of known models split text by a pattern and
//! merge bytes by rank; byte-pair SentencePiece models merge characters by score. SentencePiece
//! models of other kinds, those that normalise by a character map, and those with unused pieces
//! refuse every text with [`TokenizeError::Unsupported`]. Lists are cut longest token first.
//!
//! # End tokens
//! Those of [`LoadOptions::end_tokens`]. Else looked for beside the file, the first that names any:
//! `generation_config.json`, `tokenizer_config.json`, `config.json`. Else those of the source
//! itself: the encoding, `eos_id` or `eos_piece` of a SentencePiece model, `</s>` of a
//! `tekken.json`. Else every special token with a well-known name. [`EndsFound`] says which it was.
//!
//! # Features
//! Both are off unless asked for. Without `hf-tokenizers` the tokens of a `tokenizer.json` are read
//! all the same, and its [`Tokenizer`] refuses every text with [`TokenizeError::LeftOut`]; a
//! tokenizer that could not be built is not found out. Without `encodings` the name of an encoding
//! is an error, no tiktoken file is known to have an encoding's ranks, and the [`Tokenizer`] of a
//! `tekken.json` or a known model's tiktoken file refuses every text in the same way.
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
//!
//! # Invariants
//! - Below the command line nothing but `palmette-vocabulary` reads files of vocabularies; grammars
//!   and schemas come as text, and nothing is downloaded: a reference to a schema that was not
//!   given is an error.
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
mod longest_tokens;
mod merging;
mod options;
mod prompt_tokenizer;
mod protobuf;
mod rank_pairs;
mod scored_pairs;
mod sentence_piece;
mod source;
mod spelling;
mod tekken;
mod tiktoken_file;
mod tokenize_error;
mod tokenizer;
mod tokenizer_json;

pub use encodings::names as encoding_names;
pub use error::VocabularyLoadError;
pub use load::{LoadedVocabulary, load, load_bytes, load_with};
pub use longest_tokens::LongestTokens;
pub use options::{AngleTokens, Assumption, LoadOptions};
pub use prompt_tokenizer::PromptTokenizer;
pub use source::{EndsFound, Format};
pub use tokenize_error::TokenizeError;
pub use tokenizer::Tokenizer;
