//! Mistral's `tekken.json`: byte pairs in base64 by rank, after the special tokens.
//!
//! Ids are those of the special tokens, then ranks; of the ranks as many count as `default_vocab_size` leaves room for.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::draft::{Draft, MAX_TOKENS};
use crate::error::{Kind, invalid};
use crate::load::{Format, Source};

/// The special tokens of files that do not list theirs, from id 0; the others have a number as their name.
const SPECIALS: [&str; 14] = [
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
    "<pad>",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
];

/// Whether a JSON document looks like one.
pub(crate) fn is_tekken(file: &Value) -> bool {
    file["vocab"][0]["token_bytes"].is_string() && file["config"].is_object()
}

/// Reads the tokens; the file's pattern, by which text would be cut, is not used.
pub(crate) fn read(file: &Value) -> Result<Source, Kind> {
    let count = |key: &str| {
        let value = &file["config"][key];
        let count = value.as_u64().filter(|&count| count <= MAX_TOKENS as u64);
        count.ok_or_else(|| {
            invalid(format!(
                "config.{key} is {value}; it is a number of tokens, at most {MAX_TOKENS}"
            ))
        })
    };
    let (size, num_specials) = (count("default_vocab_size")?, count("default_num_special_tokens")?);
    if num_specials > size {
        return Err(invalid(format!(
            "config.default_num_special_tokens is {num_specials}, more than default_vocab_size, {size}"
        )));
    }
    let mut draft = Draft::default();
    for (id, name) in specials(file, num_specials)? {
        draft.special(id, &name)?;
    }
    draft.reserve(size)?;
    let pieces = file["vocab"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (piece, index) in pieces.iter().zip(0..) {
        let (Some(rank), Some(bytes)) = (piece["rank"].as_u64(), piece["token_bytes"].as_str())
        else {
            return Err(invalid(format!(
                "vocab[{index}] needs a number \"rank\" and a string \"token_bytes\""
            )));
        };
        if rank >= size - num_specials {
            continue;
        }
        let bytes = BASE64_STANDARD.decode(bytes).ok().filter(|bytes| !bytes.is_empty());
        let bytes =
            bytes.ok_or_else(|| invalid(format!("vocab[{index}].token_bytes is no base64")))?;
        draft.unnamed(rank + num_specials, bytes)?;
    }
    let end = draft.id_of("</s>");
    Ok(Source { draft, ends: end.map(|end| vec![end]), ..Source::of(Format::Tekken) })
}

/// The special tokens by id.
fn specials(file: &Value, count: u64) -> Result<Vec<(u64, String)>, Kind> {
    let Value::Array(listed) = &file["special_tokens"] else {
        let name = |id: u64| match SPECIALS.get(id as usize) {
            Some(name) => (*name).to_owned(),
            None => format!("<SPECIAL_{id}>"),
        };
        return Ok((0..count).map(|id| (id, name(id))).collect());
    };
    let token = |(token, index): (&Value, usize)| {
        let found = token["rank"].as_u64().zip(token["token_str"].as_str());
        let found = found.filter(|&(id, _)| id < count);
        found.map(|(id, name)| (id, name.to_owned())).ok_or_else(|| {
            invalid(format!(
                "special_tokens[{index}] needs a \"rank\" below {count} and a string \"token_str\""
            ))
        })
    };
    listed.iter().zip(0..).map(token).collect()
}
