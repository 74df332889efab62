//! Tiktoken files: byte-pair ranks, a token a line, as `base64 rank`.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::draft::Draft;
use crate::encodings;
use crate::error::{Kind, invalid};
use crate::load::{Format, Source};

/// Whether the first line looks like a tiktoken file's.
pub(crate) fn is_tiktoken(text: &str) -> bool {
    text.lines().next().is_some_and(|line| token(line).is_some())
}

/// Reads the file. Special tokens are not in it: they are those of the encoding with these ranks, if the program carries
/// one, else those that a `tokenizer_config.json` beside it adds.
pub(crate) fn read(text: &str, folder: &Path) -> Result<Source, Kind> {
    let mut draft = Draft::default();
    for (line, number) in text.lines().zip(1..) {
        let (token, rank) = token(line).ok_or_else(|| {
            invalid(format!(
                "line {number} is {line:?}; each line of a tiktoken file is a token in base64, a space and its rank"
            ))
        })?;
        draft.unnamed(rank, token)?;
    }
    if let Some(encoding) = encodings::with_texts(&draft.texts) {
        return Ok(Source { format: Format::TiktokenFile, ..encoding.source()? });
    }
    for (id, name) in crate::ends::added_tokens(folder)? {
        draft.special(id, &name)?;
    }
    Ok(Source {
        draft,
        format: Format::TiktokenFile,
        method: None,
        ends: None,
        assumptions: vec![],
    })
}

fn token(line: &str) -> Option<(Vec<u8>, u64)> {
    let (token, rank) = line.split_once(' ')?;
    let token = BASE64_STANDARD.decode(token).ok().filter(|token| !token.is_empty())?;
    // `parse` alone would take a plus sign.
    rank.bytes()
        .all(|digit| digit.is_ascii_digit())
        .then(|| rank.parse().ok())?
        .map(|rank| (token, rank))
}
