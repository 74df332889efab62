//! Tiktoken files: byte-pair ranks, a token a line, as `base64 rank`.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::draft::Draft;
use crate::encodings;
use crate::error::{Kind, invalid};
use crate::known_ranks::KnownRanks;
use crate::options::{Assumption, LoadOptions};
use crate::rank_pairs::RankPairs;
use crate::source::{Format, Source};
use crate::tokenizer::Method;

/// True when the first line looks like a tiktoken file's.
pub(crate) fn is_tiktoken(text: &str) -> bool {
    text.lines().next().is_some_and(|line| token(line).is_some())
}

/// Reads the file. Special tokens are not in it: they are those that the options give and a
/// `tokenizer_config.json` beside it adds, else those of the encoding with these ranks, if the
/// program carries one, else those of a known model with as many.
pub(crate) fn read(
    text: &str,
    folder: Option<&Path>,
    options: &LoadOptions,
) -> Result<Source, Kind> {
    let mut draft = Draft::default();
    for (line, number) in text.lines().zip(1..) {
        let (token, rank) = token(line).ok_or_else(|| {
            invalid(format!(
                "line {number} is {line:?}; each line of a tiktoken file is a token in base64, a space and its rank"
            ))
        })?;
        draft.unnamed(rank, token)?;
    }
    let added = folder.map(crate::ends::added_tokens).transpose()?.unwrap_or_default();
    let is_silent = added.is_empty() && options.special_tokens.is_empty();
    let source = match encodings::with_texts(&draft.texts) {
        Some(encoding) if is_silent => {
            let by = "its ranks, which other encodings may share";
            let assumptions = vec![Assumption::SpecialTokens { of: encoding.name, by }];
            Source { assumptions, ..encoding.source()? }
        }
        Some(encoding) => Source { draft, ends: None, ..encoding.source()? },
        None => of_known_model(draft, is_silent)?,
    };
    let mut source = Source { format: Format::TiktokenFile, ..source };
    for (id, name) in added {
        source.draft.special(id, &name)?;
    }
    Ok(source)
}

/// The tokens with the tokenizer of the model that has as many ranks, and its special tokens where
/// nothing else says them.
fn of_known_model(mut draft: Draft, is_silent: bool) -> Result<Source, Kind> {
    let (mut method, mut assumptions) = (None, vec![]);
    if let Some(known) = KnownRanks::of_texts(&draft.texts) {
        method = RankPairs::new(known.pattern, draft.texts()).ok().map(Method::Ranks);
        if is_silent {
            assumptions.push(Assumption::SpecialTokens { of: known.of, by: known.by });
            for (id, name) in known.specials() {
                draft.special(id, &name)?;
            }
        }
    }
    Ok(Source { draft, format: Format::TiktokenFile, method, ends: None, assumptions })
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
