//! Choices where a vocabulary's file leaves something open.

use crate::error::{Kind, invalid};
use crate::load::Source;
use palmette_core::TokenId;

/// Choices for [`load_with`](crate::load_with). The default has none: all is as the file and those beside it say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Special tokens by name and id. A tiktoken file has none itself; in other files an added token that is text becomes special so.
    pub special_tokens: Vec<(String, u32)>,
    /// The tokens that end the output, each by its name or its id, in place of those that are found.
    pub end_tokens: Vec<String>,
    /// Added tokens in angle brackets that a `tokenizer.json` does not mark as special.
    pub angle_tokens: AngleTokens,
}

/// Treatment of added tokens such as `<tool_call>` that a `tokenizer.json` marks as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AngleTokens {
    /// Special: no text within a JSON string is spelled by them.
    #[default]
    Special,
    /// Text, as the file says.
    Text,
}

impl LoadOptions {
    /// Adds the special tokens.
    pub(crate) fn add_special_tokens(&self, source: &mut Source) -> Result<(), Kind> {
        for (name, id) in &self.special_tokens {
            let text = source.draft.texts.get(*id as usize).and_then(Option::as_ref);
            match text {
                Some(text) if text == name.as_bytes() => {
                    source.draft.make_special(TokenId(*id), name);
                }
                Some(text) => {
                    let text = text.escape_ascii();
                    return Err(invalid(format!(
                        "token {id} is to be the special token {name:?}, but it spells \"{text}\"; name an id without text"
                    )));
                }
                None if source.draft.is_taken(*id) => source.draft.rename(TokenId(*id), name),
                None => source.draft.special((*id).into(), name)?,
            }
        }
        Ok(())
    }

    /// The end tokens; `None` where none are asked for.
    pub(crate) fn ends(&self, source: &Source) -> Result<Option<Vec<TokenId>>, Kind> {
        if self.end_tokens.is_empty() {
            return Ok(None);
        }
        let num_tokens = source.draft.texts.len();
        let token = |end: &String| {
            let by_id = || end.parse().ok().filter(|&id: &u32| (id as usize) < num_tokens);
            source.draft.id_of(end).or_else(|| by_id().map(TokenId)).ok_or_else(|| {
                invalid(format!(
                    "the end token {end:?} is neither a token's name nor an id below {num_tokens}"
                ))
            })
        };
        self.end_tokens.iter().map(token).collect::<Result<_, _>>().map(Some)
    }
}

/// Whether a token is written as control tokens are, `<tool_call>`: tokenizers mark some of them as text, and none is meant to be
/// written within a JSON string.
pub(crate) fn is_in_angles(content: &str) -> bool {
    content.len() > 2 && content.starts_with('<') && content.ends_with('>')
}
