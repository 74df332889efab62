//! From a name or path to a vocabulary.

use std::path::Path;
use std::sync::Arc;

use palmette_core::{TokenId, Vocabulary};

use crate::error::Kind;
use crate::options::{Assumption, LoadOptions};
use crate::source::{EndsFound, Format, Source};
use crate::tokenizer::Tokenizer;
use crate::{
    VocabularyLoadError, encodings, ends, lists, sentence_piece, tekken, tiktoken_file,
    tokenizer_json,
};

/// A vocabulary, and what else its source says.
#[derive(Debug)]
pub struct LoadedVocabulary {
    /// Bytes of each token, and the end tokens.
    pub vocabulary: Arc<Vocabulary>,
    /// Cuts text into tokens; `None` when the source does not say how (a tiktoken file of unknown
    /// ranks: it lacks the pattern that splits text).
    pub tokenizer: Option<Tokenizer>,
    /// The name or path it was loaded from.
    pub name: String,
    /// Kind of source that was read.
    pub format: Format,
    /// Source of the end tokens.
    pub ends: EndsFound,
    /// The special tokens that have a name, ascending, each with it.
    pub specials: Vec<(TokenId, String)>,
    /// Statements that neither the source nor the options make.
    pub assumptions: Vec<Assumption>,
}

/// Loads the encoding of this name, or else the file or folder at this path. An encoding goes
/// before a file of the same name; `./o200k_base` is the file.
///
/// Cost: O(bytes of the source). An encoding's tables are built at its first load in a process and
/// kept to its end.
///
/// # Errors
/// When there is neither, or the file is none that is read (see the crate documentation), is
/// damaged, or spells tokens in a way that does not give them bytes of their own (WordPiece,
/// WordLevel).
pub fn load(name_or_path: &str) -> Result<LoadedVocabulary, VocabularyLoadError> {
    load_with(name_or_path, &LoadOptions::default())
}

/// [`load`] with statements about special and end tokens beside those of the source.
///
/// # Errors
/// When [`load`] fails, when the options name an end token that is none, or give two special tokens
/// one name or id.
pub fn load_with(
    name_or_path: &str,
    options: &LoadOptions,
) -> Result<LoadedVocabulary, VocabularyLoadError> {
    read(name_or_path, options).map_err(|kind| VocabularyLoadError::new(name_or_path, kind))
}

/// [`load_with`] of a file's content, as an object in another language or a connection may have it.
/// No configuration file is beside it; `name` is for messages.
///
/// # Errors
/// As [`load_with`].
pub fn load_bytes(
    name: &str,
    bytes: &[u8],
    options: &LoadOptions,
) -> Result<LoadedVocabulary, VocabularyLoadError> {
    let source = read_bytes(bytes, None, options);
    source
        .and_then(|source| finish(name, source, None, options))
        .map_err(|kind| VocabularyLoadError::new(name, kind))
}

fn read(name_or_path: &str, options: &LoadOptions) -> Result<LoadedVocabulary, Kind> {
    let (source, folder) = match encodings::find(name_or_path) {
        Some(encoding) => (encoding.source()?, None),
        None => {
            let path = file_of(Path::new(name_or_path))?;
            let bytes = std::fs::read(&path).map_err(Kind::Read)?;
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            (read_bytes(&bytes, Some(&folder), options)?, Some(folder))
        }
    };
    finish(name_or_path, source, folder.as_deref(), options)
}

fn finish(
    name: &str,
    mut source: Source,
    folder: Option<&Path>,
    options: &LoadOptions,
) -> Result<LoadedVocabulary, Kind> {
    options.add_specials(&mut source.draft)?;
    let (ends, found) = match options.ends(&source.draft)? {
        Some(ends) => (ends, EndsFound::Options),
        None => ends::find(&mut source, folder)?,
    };
    for &end in &ends {
        let text = source.draft.texts[end.index()].take();
        let name = text.map(|text| String::from_utf8_lossy(&text).into_owned());
        source.draft.make_special(end, name.as_deref().unwrap_or("end"));
    }
    let mut specials = source.draft.specials;
    specials.sort_unstable();
    let vocabulary = Vocabulary::new(source.draft.texts, ends)?.with_names(specials.clone())?;
    let vocabulary = Arc::new(vocabulary);
    Ok(LoadedVocabulary {
        tokenizer: source.method.map(|method| Tokenizer::new(method, vocabulary.clone())),
        vocabulary,
        name: name.to_owned(),
        format: source.format,
        ends: found,
        specials,
        assumptions: source.assumptions,
    })
}

/// The file itself, or the first that a folder has of `tokenizer.json`, `tekken.json` and
/// `tokenizer.model`.
fn file_of(path: &Path) -> Result<std::path::PathBuf, Kind> {
    if path.is_dir() {
        let inside =
            ["tokenizer.json", "tekken.json", "tokenizer.model"].map(|file| path.join(file));
        return inside.into_iter().find(|file| file.exists()).ok_or(Kind::BareFolder);
    }
    if !path.exists() {
        let encodings = encodings::names().collect::<Vec<_>>().join(", ");
        return Err(match encodings.is_empty() {
            true => Kind::NotFound { encodings: "none in this build".to_owned() },
            false => Kind::NotFound { encodings },
        });
    }
    Ok(path.to_owned())
}

/// Tells the format by the content.
fn read_bytes(bytes: &[u8], folder: Option<&Path>, options: &LoadOptions) -> Result<Source, Kind> {
    if sentence_piece::is_model(bytes) {
        return sentence_piece::read(bytes, options);
    }
    let text = text_of(bytes)?;
    match text.trim_ascii_start().as_bytes().first() {
        None => Err(Kind::Unrecognised { found: "an empty file" }),
        Some(b'{' | b'[') => {
            let json: serde_json::Value = serde_json::from_str(text).map_err(Kind::Json)?;
            match json.get("model") {
                Some(serde_json::Value::Object(_)) => {
                    tokenizer_json::read(json, options.angle_tokens)
                }
                _ if tekken::is_tekken(&json) => tekken::read(&json, options),
                _ => lists::read_json(&json),
            }
        }
        Some(_) if tiktoken_file::is_tiktoken(text) => tiktoken_file::read(text, folder, options),
        Some(_) => lists::read_text(text),
    }
}

/// The file as text, or what it is instead.
fn text_of(bytes: &[u8]) -> Result<&str, Kind> {
    let found = match bytes {
        [b'G', b'G', b'U', b'F', ..] => "a GGUF model",
        [b'P', b'K', 3, 4, ..] => "a ZIP archive",
        [0x1F, 0x8B, ..] => "a gzip file",
        _ if bytes.starts_with(b"version https://git-lfs") => {
            "a Git LFS pointer, not the file it stands for"
        }
        _ if bytes.contains(&0) => "a binary file",
        _ => match str::from_utf8(bytes) {
            Ok(text) => return Ok(text.strip_prefix('\u{FEFF}').unwrap_or(text)),
            Err(_) => "a file that is not UTF-8",
        },
    };
    Err(Kind::Unrecognised { found })
}
