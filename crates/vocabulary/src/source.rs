//! Content of a source, as the reader of its format gives it: tokens, ends, method of cutting text.

use std::fmt;

use palmette_core::TokenId;

use crate::draft::Draft;
use crate::options::Assumption;
use crate::tokenizer::Method;

/// Result of the reader of a format.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) draft: Draft,
    pub(crate) format: Format,
    pub(crate) method: Option<Method>,
    /// End tokens that the format itself knows, unless a file beside it says otherwise.
    pub(crate) ends: Option<(Vec<TokenId>, EndsFound)>,
    pub(crate) assumptions: Vec<Assumption>,
}

/// The kinds of source of a vocabulary. `Display` says it in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An encoding carried in the program.
    Encoding,
    /// A Hugging Face `tokenizer.json`.
    TokenizerJson,
    /// Mistral's `tekken.json`.
    Tekken,
    /// A SentencePiece `.model`.
    SentencePiece,
    /// Lines `base64 rank`.
    TiktokenFile,
    /// A JSON array of pieces, or an object piece → id.
    Pieces,
    /// A text with a token a line.
    TextList,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encoding => "tiktoken encoding",
            Self::TokenizerJson => "tokenizer.json",
            Self::Tekken => "tekken.json",
            Self::SentencePiece => "SentencePiece model",
            Self::TiktokenFile => "tiktoken file",
            Self::Pieces => "JSON list of pieces",
            Self::TextList => "text list",
        })
    }
}

/// Source of the end tokens of a vocabulary. `Display` says it in a few words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndsFound {
    /// The encoding defines them.
    Encoding,
    /// [`LoadOptions::end_tokens`](crate::LoadOptions::end_tokens) names them.
    Options,
    /// The source itself names them: by this, such as `eos_id in its trainer_spec`.
    Source(&'static str),
    /// A configuration file beside the vocabulary names them.
    File {
        /// The file's name, such as `generation_config.json`.
        file: &'static str,
        /// The key in it, such as `eos_token_id`.
        key: &'static str,
    },
    /// Special tokens with well-known names, in the order of their ids.
    WellKnownNames(Vec<String>),
    /// There are none: nothing ends the output.
    None,
}

impl fmt::Display for EndsFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding => f.write_str("by the encoding"),
            Self::Options => f.write_str("by the options of loading"),
            Self::Source(key) => write!(f, "by {key}"),
            Self::File { file, key } => write!(f, "by {key} in {file}"),
            Self::WellKnownNames(names) => write!(f, "by name: {}", names.join(", ")),
            Self::None => f.write_str("none found"),
        }
    }
}
