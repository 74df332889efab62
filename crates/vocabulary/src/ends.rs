//! Ends: the tokens that end the output.

use std::path::Path;

use palmette_core::TokenId;
use serde_json::Value;

use crate::error::{Kind, invalid};
use crate::source::{EndsFound, Format, Source};

/// Names that tokens which end the output are known by.
const WELL_KNOWN: [&str; 15] = [
    "</s>",
    "<|endoftext|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<|eot|>",
    "<|END_OF_TURN_TOKEN|>",
    "<eos>",
    "<end_of_turn>",
    "[EOS]",
    "<EOS>",
    "<｜end▁of▁sentence｜>",
];

/// The end tokens, and how they were found: see the crate documentation. An encoding has no folder.
pub(crate) fn find(
    source: &mut Source,
    folder: Option<&Path>,
) -> Result<(Vec<TokenId>, EndsFound), Kind> {
    const FILES: [(&str, &str); 4] = [
        ("generation_config.json", "eos_token_id"),
        ("tokenizer_config.json", "eos_token"),
        ("config.json", "eos_token_id"),
        ("config.json", "text_config.eos_token_id"),
    ];
    for (file, key) in FILES {
        let config = folder.map(|folder| read_json(folder, file)).transpose()?.flatten();
        let Some(config) = config else { continue };
        let value = key.split('.').fold(&config, |value, part| &value[part]);
        let ends = tokens_named(source, value)
            .map_err(|reason| invalid(format!("{key} in the {file} beside it: {reason}")))?;
        if !ends.is_empty() {
            return Ok((ends, EndsFound::File { file, key }));
        }
    }
    if let Some(ends) = source.ends.clone() {
        return Ok(ends);
    }
    let mut known: Vec<_> = source
        .draft
        .specials
        .iter()
        .filter(|(_, name)| WELL_KNOWN.contains(&name.as_str()))
        .cloned()
        .collect();
    known.sort_unstable();
    if known.is_empty() {
        return Ok((vec![], EndsFound::None));
    }
    let (ends, names) = known.into_iter().unzip();
    Ok((ends, EndsFound::WellKnownNames(names)))
}

/// The tokens that the `tokenizer_config.json` of a folder adds: ids and names.
pub(crate) fn added_tokens(folder: &Path) -> Result<Vec<(u64, String)>, Kind> {
    let config = read_json(folder, "tokenizer_config.json")?.unwrap_or_default();
    let Value::Object(added) = &config["added_tokens_decoder"] else { return Ok(vec![]) };
    let token = |(id, token): (&String, &Value)| {
        Some((id.parse().ok()?, token["content"].as_str()?.to_owned()))
    };
    let tokens: Option<Vec<_>> = added.iter().map(token).collect();
    tokens.ok_or_else(|| {
        invalid(
            "added_tokens_decoder in the tokenizer_config.json beside it is not an object id -> {\"content\": …}",
        )
    })
}

/// A file of the folder; `None` where there is none.
fn read_json(folder: &Path, file: &str) -> Result<Option<Value>, Kind> {
    match std::fs::read(folder.join(file)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(invalid(format!("the {file} beside it cannot be read: {error}"))),
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| invalid(format!("the {file} beside it is not valid JSON: {error}"))),
    }
}

/// Tokens by id or name, one or a list; none for `null`.
fn tokens_named(source: &mut Source, value: &Value) -> Result<Vec<TokenId>, String> {
    let one = match value {
        Value::Null => return Ok(vec![]),
        Value::Array(list) => {
            let mut tokens = vec![];
            for value in list {
                tokens.extend(tokens_named(source, value)?);
            }
            return Ok(tokens);
        }
        Value::String(name) => Some(name),
        Value::Object(token) => match &token.get("content") {
            Some(Value::String(name)) => Some(name),
            _ => None,
        },
        _ => None,
    };
    if let Some(name) = one {
        let token = source.draft.id_of(name);
        return Ok(vec![token.ok_or_else(|| format!("the vocabulary has no token {name:?}"))?]);
    }
    let Some(id) = value.as_u64() else {
        return Err(format!("{value} is neither a token id nor a token's name"));
    };
    // A tiktoken file lacks the special tokens; any other has all there are.
    if source.format == Format::TiktokenFile {
        source.draft.reserve(id.saturating_add(1)).map_err(|error| error.to_string())?;
    }
    if id >= source.draft.texts.len() as u64 {
        let num_tokens = source.draft.texts.len();
        return Err(format!("there is no token {id} in this vocabulary of {num_tokens} tokens"));
    }
    Ok(vec![TokenId(id as u32)])
}
