//! Errors of loading a vocabulary.

use palmette_core::VocabularyError;

/// Contents by which a tokenizer file is recognised.
const READ: &str = "read are: a Hugging Face tokenizer.json, Mistral's tekken.json, a SentencePiece model, a tiktoken file (lines `base64 rank`), a JSON list of \
                    pieces, a JSON object piece -> id, a text list with a token a line";

/// A vocabulary that could not be loaded: names the source, what was found there and what is read.
#[derive(Debug, thiserror::Error)]
#[error("vocabulary {source_name}: {kind}")]
pub struct VocabularyLoadError {
    source_name: String,
    kind: Kind,
}

impl VocabularyLoadError {
    pub(crate) fn new(source_name: &str, kind: Kind) -> Self {
        Self { source_name: source_name.to_owned(), kind }
    }

    /// True when it is a folder that has none of the files of tokenizers.
    pub fn is_of_bare_folder(&self) -> bool {
        matches!(self.kind, Kind::BareFolder)
    }

    /// True when the name is no encoding's and no file has it.
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, Kind::NotFound { .. } | Kind::NoTokenizer)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    #[error(
        "a folder without tokenizer.json, tekken.json and tokenizer.model; name the file in it that holds the vocabulary"
    )]
    BareFolder,
    #[error("no such file, and no encoding of that name; there are {encodings}")]
    NotFound { encodings: String },
    #[error("this build carries no encodings; build with `--features encodings`, or name a file")]
    EncodingsLeftOut,
    #[error(
        "there is no such file; a tokenizer of another form becomes one by transformers: \
         `AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)`"
    )]
    NoTokenizer,
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    #[error("this is {found}; {READ}")]
    Unrecognised { found: &'static str },
    #[error(
        "not valid JSON: {0}; a text list whose first token begins with '{{' or '[' spells it \\x7B or \\x5B"
    )]
    Json(serde_json::Error),
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
}

/// A reason that names the value, the rule and the way out.
pub(crate) fn invalid(reason: impl Into<String>) -> Kind {
    Kind::Invalid(reason.into())
}
