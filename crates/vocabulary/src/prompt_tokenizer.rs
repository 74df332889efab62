//! A tokenizer for whole prompts: text in which the names of added tokens are read as these tokens.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::Path;

use palmette_core::TokenId;
use serde_json::Value;

use crate::VocabularyLoadError;
use crate::error::{Kind, invalid};
use crate::hugging_face::WholeText;
use crate::tokenize_error::TokenizeError;

/// The tokenizer of a `tokenizer.json` as transformers' `AutoTokenizer` applies it to a prompt.
///
/// Unlike [`Tokenizer`](crate::Tokenizer), which reads the middle of a text, it reads text from its
/// beginning, with what the tokenizer puts around it where that is asked for, and names of added
/// tokens in the text become these tokens: `<a_12>`, `<|im_end|>`. Text that users bring is checked
/// for such names first ([`special_in`](Self::special_in)).
///
/// Names and numbers of tokens are read without the feature `hf-tokenizers`; cutting text is not
/// possible then.
pub struct PromptTokenizer {
    whole: WholeText,
    by_name: HashMap<Box<str>, u32>,
    names: Vec<Option<Box<str>>>,
    /// Tokens that are found in the text before it is cut.
    added: BTreeSet<u32>,
    /// Added tokens that are marked as special.
    special: Vec<u32>,
}

impl fmt::Debug for PromptTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptTokenizer")
            .field("tokens", &self.by_name.len())
            .field("added", &self.added.len())
            .finish_non_exhaustive()
    }
}

/// Highest number of a token, so that a damaged file cannot ask for gigabytes.
const MAX_TOKENS: u64 = 1 << 24;

impl PromptTokenizer {
    /// Name in a model's directory.
    pub const FILE_NAME: &str = "tokenizer.json";

    /// Reads `tokenizer.json` of a model's directory.
    ///
    /// # Errors
    /// When it is missing or no tokenizer; [`is_not_found`](VocabularyLoadError::is_not_found)
    /// tells the former.
    pub fn from_directory(dir: &Path) -> Result<Self, VocabularyLoadError> {
        let path = dir.join(Self::FILE_NAME);
        let name = path.display().to_string();
        let error = |kind| VocabularyLoadError::new(&name, kind);
        if !path.exists() {
            return Err(error(Kind::NoTokenizer));
        }
        let bytes = std::fs::read(&path).map_err(|e| error(Kind::Read(e)))?;
        Self::from_bytes(&bytes).map_err(error)
    }

    /// Reads the text of a `tokenizer.json`.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Kind> {
        let file: Value = serde_json::from_slice(bytes).map_err(Kind::Json)?;
        let mut by_name = HashMap::new();
        let mut add = |name: &str, id: u64| match u32::try_from(id).ok().filter(|_| id < MAX_TOKENS)
        {
            Some(number) => {
                by_name.insert(name.into(), number);
                Ok(())
            }
            None => Err(invalid(format!(
                "token {name:?} has the number {id}; numbers are below {MAX_TOKENS}"
            ))),
        };
        match &file["model"]["vocab"] {
            Value::Object(vocab) => {
                for (name, id) in vocab {
                    let id = id.as_u64().ok_or_else(|| {
                        invalid(format!("model.vocab gives {name:?} the number {id}"))
                    })?;
                    add(name, id)?;
                }
            }
            Value::Array(vocab) => {
                for (entry, id) in vocab.iter().zip(0..) {
                    let name = entry[0].as_str().ok_or_else(|| {
                        invalid(format!("model.vocab[{id}] is {entry}; entries are [piece, score]"))
                    })?;
                    add(name, id)?;
                }
            }
            _ => return Err(invalid("it has no model.vocab: this is no tokenizer.json")),
        }
        let (mut added, mut special) = (BTreeSet::new(), Vec::new());
        for (token, place) in file["added_tokens"].as_array().into_iter().flatten().zip(0..) {
            let (Some(id), Some(name)) = (token["id"].as_u64(), token["content"].as_str()) else {
                return Err(invalid(format!(
                    "added_tokens[{place}] needs a number \"id\" and a string \"content\""
                )));
            };
            add(name, id)?;
            added.insert(id as u32);
            special.extend((token["special"] == true).then_some(id as u32));
        }
        let most = by_name.values().max().map_or(0, |&id| id as usize + 1);
        let mut names = vec![None; most];
        for (name, &id) in &by_name {
            names[id as usize] = Some(Box::clone(name));
        }
        let whole = WholeText::new(bytes)
            .map_err(|error| invalid(format!("its tokenizer cannot be built: {error}")))?;
        for &id in &added {
            let name = names[id as usize].as_deref().unwrap_or_default();
            if let Some(other) = whole.token(name).filter(|&other| other != id) {
                return Err(invalid(format!(
                    "added token {name:?} has the number {id}, and tokenizers count it as {other}: the numbers of added tokens \
                     must follow each other, those of the model's vocabulary first"
                )));
            }
        }
        Ok(Self { whole, by_name, names, added, special })
    }

    /// The tokens of a text, with those that the tokenizer puts around a whole text where `around`
    /// asks for them.
    ///
    /// # Errors
    /// When the tokenizer fails, or the build lacks the feature `hf-tokenizers`.
    pub fn encode(&self, text: &str, around: bool) -> Result<Vec<TokenId>, TokenizeError> {
        self.whole.encode(text, around)
    }

    /// The text of tokens, special ones by their names.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn decode(&self, tokens: &[TokenId]) -> Result<String, TokenizeError> {
        self.whole.decode(tokens)
    }

    /// The token of a name, one of the model's pieces or an added token.
    pub fn token(&self, name: &str) -> Option<TokenId> {
        self.by_name.get(name).copied().map(TokenId)
    }

    /// The name of a token.
    pub fn name(&self, token: TokenId) -> Option<&str> {
        self.names.get(token.index())?.as_deref()
    }

    /// Size of the vocabulary: one more than the highest number of a token.
    pub fn num_tokens(&self) -> usize {
        self.names.len()
    }

    /// The added tokens, ascending: those that text holds by their names.
    pub fn added_tokens(&self) -> impl Iterator<Item = (TokenId, &str)> {
        self.added.iter().filter_map(|&id| Some((TokenId(id), self.name(TokenId(id))?)))
    }

    /// The name of a special token that stands in a text, which would be read as that token.
    pub fn special_in(&self, text: &str) -> Option<&str> {
        let names = self.special.iter().filter_map(|&id| self.name(TokenId(id)));
        names.into_iter().find(|name| !name.is_empty() && text.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
        "added_tokens": [{"id": 3, "content": "<x_1>", "special": false, "single_word": false, "lstrip": false,
        "rstrip": false, "normalized": false}, {"id": 4, "content": "<end>", "special": true, "single_word": false,
        "lstrip": false, "rstrip": false, "normalized": false}]}"#;

    #[test]
    fn names_and_numbers() {
        let tokenizer = PromptTokenizer::from_bytes(FILE.as_bytes()).unwrap();
        assert_eq!(tokenizer.token("<x_1>"), Some(TokenId(3)));
        assert_eq!(tokenizer.token("ab"), Some(TokenId(2)));
        assert_eq!(tokenizer.token("x"), None);
        assert_eq!((tokenizer.name(TokenId(4)), tokenizer.name(TokenId(5))), (Some("<end>"), None));
        assert_eq!(tokenizer.num_tokens(), 5);
        assert!(tokenizer.added_tokens().eq([(TokenId(3), "<x_1>"), (TokenId(4), "<end>")]));
        assert_eq!(tokenizer.special_in("a <x_1> b"), None);
        assert_eq!(tokenizer.special_in("a <end>"), Some("<end>"));
    }

    #[test]
    fn added_tokens_are_read_in_text() {
        let tokenizer = PromptTokenizer::from_bytes(FILE.as_bytes()).unwrap();
        let tokens = tokenizer.encode("ab<x_1>a<end>", true);
        match cfg!(feature = "hf-tokenizers") {
            true => {
                let tokens = tokens.unwrap();
                assert_eq!(tokens, [2, 3, 0, 4].map(TokenId));
                assert_eq!(tokenizer.decode(&tokens[..1]).unwrap(), "ab");
            }
            false => assert!(matches!(tokens, Err(TokenizeError::LeftOut { .. }))),
        }
    }

    #[test]
    fn damaged_files_are_named() {
        let reason =
            |text: &str| PromptTokenizer::from_bytes(text.as_bytes()).unwrap_err().to_string();
        assert!(reason("{}").contains("model.vocab"));
        assert!(reason(r#"{"model": {"vocab": {"a": 99999999999}}}"#).contains("99999999999"));
        assert!(
            reason(r#"{"model": {"vocab": {}}, "added_tokens": [{}]}"#).contains("added_tokens[0]")
        );
        if cfg!(feature = "hf-tokenizers") {
            let gap = reason(&FILE.replace("\"id\": 4", "\"id\": 9"));
            assert!(gap.contains("number 9") && gap.contains("count it as 4"), "{gap}");
        }
    }
}
