//! Prompts to tokens: special tokens by name, text by the tokenizer.

use std::path::Path;

use palmette_core::{TokenId, Vocabulary};
use palmette_vocabulary::{TokenizeError, Tokenizer};
use serde_json::Value;

use crate::error::OpenErrorKind;

/// The settings of a tokenizer that a vocabulary does not have; null where a file is not there.
#[derive(Debug, Default)]
pub(crate) struct TokenizerFiles {
    tokenizer: Value,
    config: Value,
}

impl TokenizerFiles {
    pub(crate) fn read(dir: &Path) -> Result<Self, OpenErrorKind> {
        let tokenizer = read_json(&dir.join("tokenizer.json"))?;
        let config = read_json(&dir.join("tokenizer_config.json"))?;
        Ok(Self { tokenizer, config })
    }

    /// The token that begins a text: the one that `tokenizer.json` puts first, or the `bos_token`
    /// of a configuration with `add_bos_token`.
    fn begin(&self) -> Option<&str> {
        let processors = match &self.tokenizer["post_processor"]["processors"] {
            Value::Array(several) => several.iter().collect(),
            _ => vec![&self.tokenizer["post_processor"]],
        };
        let of_config = || {
            let adds = self.config["add_bos_token"] == true;
            let token = &self.config["bos_token"];
            token.as_str().or_else(|| token["content"].as_str()).filter(|_| adds)
        };
        // What is to be added explicitly not, is not.
        if self.config["add_bos_token"] == false {
            return None;
        }
        processors
            .into_iter()
            .find_map(|processor| processor["single"][0]["SpecialToken"]["id"].as_str())
            .or_else(of_config)
    }
}

fn read_json(path: &Path) -> Result<Value, OpenErrorKind> {
    let refused = |reason: String| OpenErrorKind::File { path: path.to_owned(), reason };
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(refused(format!("cannot be read: {error}"))),
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| refused(format!("is not valid JSON: {error}"))),
    }
}

/// Finds the names of special tokens in a text.
#[derive(Debug)]
pub(crate) struct PromptTokens {
    /// Named tokens by their first byte, then longest first.
    named: Vec<NamedToken>,
    begin: Option<TokenId>,
}

#[derive(Debug)]
struct NamedToken {
    name: Box<str>,
    token: TokenId,
    /// White space before it is a part of it; after it.
    strip: (bool, bool),
}

impl PromptTokens {
    pub(crate) fn new(vocabulary: &Vocabulary, files: &TokenizerFiles) -> Self {
        let added = files.tokenizer["added_tokens"].as_array().map_or(&[][..], Vec::as_slice);
        let strip = |name: &str| {
            let of_file = added.iter().find(|token| token["content"] == name);
            of_file
                .map_or((false, false), |token| (token["lstrip"] == true, token["rstrip"] == true))
        };
        let named = |(name, token): (&str, TokenId)| NamedToken {
            name: name.into(),
            token,
            strip: strip(name),
        };
        let mut named: Vec<NamedToken> =
            vocabulary.names().filter(|(name, _)| !name.is_empty()).map(named).collect();
        named.sort_by(|a, b| {
            let first = |named: &NamedToken| named.name.as_bytes()[0];
            first(a).cmp(&first(b)).then(b.name.len().cmp(&a.name.len())).then(a.name.cmp(&b.name))
        });
        let begin = files.begin().and_then(|name| vocabulary.named(name));
        Self { named, begin }
    }

    pub(crate) fn begin(&self) -> Option<TokenId> {
        self.begin
    }

    /// Special tokens where their names stand, the longest at each place; what is between them is
    /// cut by `tokenizer`.
    pub(crate) fn encode(
        &self,
        text: &str,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<TokenId>, TokenizeError> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some((place, named)) = self.first_in(rest) {
            let (before, after) = (&rest[..place], &rest[place + named.name.len()..]);
            let before = if named.strip.0 { before.trim_end() } else { before };
            if !before.is_empty() {
                tokens.extend(tokenizer.encode(before)?);
            }
            tokens.push(named.token);
            rest = if named.strip.1 { after.trim_start() } else { after };
        }
        if !rest.is_empty() {
            tokens.extend(tokenizer.encode(rest)?);
        }
        Ok(tokens)
    }

    fn first_in(&self, text: &str) -> Option<(usize, &NamedToken)> {
        (0..text.len()).find_map(|place| {
            let rest = &text.as_bytes()[place..];
            let begin = self.named.partition_point(|named| named.name.as_bytes()[0] < rest[0]);
            let same =
                self.named[begin..].iter().take_while(|named| named.name.as_bytes()[0] == rest[0]);
            let mut found = same.filter(|named| rest.starts_with(named.name.as_bytes()));
            Some((place, found.next()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn encode(files: &TokenizerFiles, text: &str) -> Vec<u32> {
        let pieces = json!(["a", "b", " ", "<", "|", "c", "|>", "<|c|>", "<|c|>d", "<|e|>"]);
        let options = palmette_vocabulary::LoadOptions {
            special_tokens: vec![("<|c|>d".to_owned(), TokenId(8))],
            ..Default::default()
        };
        let loaded = palmette_vocabulary::load_bytes("t", pieces.to_string().as_bytes(), &options);
        let loaded = loaded.unwrap();
        let tokens = PromptTokens::new(&loaded.vocabulary, files);
        let tokens = tokens.encode(text, &loaded.tokenizer.unwrap()).unwrap();
        tokens.into_iter().map(|token| token.0).collect()
    }

    #[test]
    fn names_are_tokens_the_longest_first() {
        let none = TokenizerFiles::default();
        assert_eq!(encode(&none, "a<|c|>b"), [0, 7, 1]);
        assert_eq!(encode(&none, "<|c|>d<|c|><|e|>"), [8, 7, 9]);
        assert_eq!(encode(&none, "a<|c|b"), [0, 3, 4, 5, 4, 1]);
        assert_eq!(encode(&none, ""), [0_u32; 0]);
        let strips =
            json!({"added_tokens": [{"content": "<|c|>", "lstrip": false, "rstrip": true}]});
        let strips = TokenizerFiles { tokenizer: strips, ..TokenizerFiles::default() };
        assert_eq!(encode(&strips, "a <|c|>  b"), [0, 2, 7, 1]);
    }

    #[test]
    fn the_beginning_token_is_the_one_that_the_files_add() {
        let begin = |tokenizer: Value, config: Value| {
            TokenizerFiles { tokenizer, config }.begin().map(str::to_owned)
        };
        let template = json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}]});
        let some = Some("<s>".to_owned());
        assert_eq!(begin(json!({"post_processor": template}), json!({})), some);
        let sequence = json!({"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, template]}});
        assert_eq!(begin(sequence.clone(), Value::Null), some);
        assert_eq!(begin(sequence, json!({"add_bos_token": false})), None);
        let config = json!({"add_bos_token": true, "bos_token": {"content": "<s>"}});
        assert_eq!(begin(Value::Null, config), some);
        assert_eq!(begin(Value::Null, json!({"bos_token": "<s>"})), None);
    }
}
