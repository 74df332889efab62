//! Mistral's `tekken.json`: byte-pair ranks behind a block of special tokens.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::draft::{Draft, MAX_TOKENS};
use crate::error::{Kind, invalid};
use crate::options::{Assumption, LoadOptions};
use crate::rank_pairs::RankPairs;
use crate::source::{EndsFound, Format, Source};
use crate::tokenizer::Method;

/// The first special tokens of files that do not list them.
const FIRST: [&str; 10] = [
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
];

/// The special tokens behind [`FIRST`] of Mistral NeMo, which reads text alone.
const OF_NEMO: [&str; 4] = ["<pad>", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"];

/// The special tokens behind [`FIRST`] of Pixtral, which reads images too (`mistral-common`).
const OF_PIXTRAL: [&str; 10] = [
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

/// Recognises a `tekken.json` among JSON documents.
pub(crate) fn is_tekken(json: &Value) -> bool {
    json["vocab"].is_array() && json["config"].is_object()
}

/// Reads tokens and tokenizer: special tokens have the ids `0..default_num_special_tokens`, and
/// rank `r` the id behind them. Ranks from `default_vocab_size` less the special tokens on are not
/// used.
pub(crate) fn read(json: &Value, options: &LoadOptions) -> Result<Source, Kind> {
    let num_special = number(json, "default_num_special_tokens")?;
    let num_tokens = number(json, "default_vocab_size")?;
    let Some(num_ranks) = num_tokens.checked_sub(num_special) else {
        return Err(invalid(format!(
            "config.default_vocab_size is {num_tokens}, less than the {num_special} of \
             config.default_num_special_tokens, which it counts"
        )));
    };
    let mut draft = Draft::default();
    draft.reserve(num_tokens)?;
    let assumptions = special_tokens(json, num_special, options, &mut draft)?;
    ranks(json, num_special, num_ranks, &mut draft)?;
    let pattern = json["config"]["pattern"].as_str();
    let pattern = pattern.ok_or_else(|| invalid("config.pattern is no string"))?;
    let pairs = RankPairs::new(pattern, draft.texts())
        .map_err(|error| invalid(format!("config.pattern cannot be used: {error}")))?;
    let end = draft.id_of("</s>");
    let ends = end.map(|end| (vec![end], EndsFound::Source("</s> among its special tokens")));
    let method = Some(Method::Ranks(pairs));
    Ok(Source { draft, format: Format::Tekken, method, ends, assumptions })
}

/// A number of `config`, small enough to count tokens.
fn number(json: &Value, key: &str) -> Result<u64, Kind> {
    let value = &json["config"][key];
    let number = value.as_u64().filter(|&number| number <= MAX_TOKENS as u64);
    number.ok_or_else(|| {
        invalid(format!("config.{key} is {value}; it is a number of tokens, up to {MAX_TOKENS}"))
    })
}

/// Adds the special tokens: those of the file, else those of known files; `<SPECIAL_n>` for ids
/// that neither names.
fn special_tokens(
    json: &Value,
    num_special: u64,
    options: &LoadOptions,
    draft: &mut Draft,
) -> Result<Vec<Assumption>, Kind> {
    let (named, assumptions) = match &json["special_tokens"] {
        Value::Array(list) => (listed(list, num_special)?, vec![]),
        Value::Null if options.special_tokens.is_empty() => known(json),
        Value::Null => (vec![], vec![]),
        _ => return Err(invalid("special_tokens is no list of {\"rank\": …, \"token_str\": …}")),
    };
    let mut names = vec![None; num_special as usize];
    for (id, name) in named {
        let Some(place) = names.get_mut(id as usize) else { continue };
        if let Some(other) = place.replace(name) {
            return Err(invalid(format!(
                "special tokens {other:?} and {name:?} have the rank {id}; each needs a rank of its own"
            )));
        }
    }
    for (name, id) in names.into_iter().zip(0..) {
        match name {
            Some(name) => draft.special(id, name)?,
            None => draft.special(id, &format!("<SPECIAL_{id}>"))?,
        }
    }
    Ok(assumptions)
}

fn known(json: &Value) -> (Vec<(u64, &str)>, Vec<Assumption>) {
    let has_images = !json["image"].is_null() || !json["multimodal"].is_null();
    let (rest, of, by) = match has_images {
        true => (&OF_PIXTRAL[..], "Pixtral", "a tekken.json with images that lists none"),
        false => (&OF_NEMO[..], "Mistral NeMo", "a tekken.json that lists none"),
    };
    let names = FIRST.iter().chain(rest).copied();
    ((0..).zip(names).collect(), vec![Assumption::SpecialTokens { of, by }])
}

/// The entries of `special_tokens`: rank and name.
fn listed(list: &[Value], num_special: u64) -> Result<Vec<(u64, &str)>, Kind> {
    let mut tokens: Vec<(u64, &str)> = vec![];
    for (token, index) in list.iter().zip(0..) {
        let (Some(rank), Some(name)) = (token["rank"].as_u64(), token["token_str"].as_str()) else {
            return Err(invalid(format!(
                "special_tokens[{index}] needs a number \"rank\" and a string \"token_str\""
            )));
        };
        if rank >= num_special {
            return Err(invalid(format!(
                "special token {name:?} has the rank {rank}; config.default_num_special_tokens is {num_special}"
            )));
        }
        tokens.push((rank, name));
    }
    Ok(tokens)
}

/// Adds the tokens with text.
fn ranks(json: &Value, first: u64, num_ranks: u64, draft: &mut Draft) -> Result<(), Kind> {
    let list = json["vocab"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (token, index) in list.iter().zip(0..) {
        let (Some(rank), Some(text)) = (token["rank"].as_u64(), token["token_bytes"].as_str())
        else {
            return Err(invalid(format!(
                "vocab[{index}] needs a number \"rank\" and a string \"token_bytes\""
            )));
        };
        if rank >= num_ranks {
            continue;
        }
        let bytes = BASE64_STANDARD.decode(text).ok().filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| {
            invalid(format!(
                "token_bytes of rank {rank} is {text:?}; it is one or more bytes in base64"
            ))
        })?;
        draft.unnamed(first + rank, bytes)?;
    }
    let missing = draft.texts[first as usize..].iter().position(Option::is_none);
    match missing {
        Some(rank) => Err(invalid(format!(
            "vocab has no rank {rank}; config.default_vocab_size needs the ranks 0 to {}",
            num_ranks - 1
        ))),
        None => Ok(()),
    }
}
