//! Options of loading, and the assumptions that are made where a source and they say nothing.

use std::fmt;

use palmette_core::TokenId;

use crate::draft::Draft;
use crate::error::{Kind, invalid};

/// Statements about a vocabulary beside those of its source. The default adds none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Special tokens, by name and id. A token of this name that the source has as text becomes
    /// special, a special one of this id takes the name, an id past the end is added; the id of
    /// another text is an error. Where any is given, the special tokens of a tiktoken file are
    /// these and no others are assumed.
    pub special_tokens: Vec<(String, TokenId)>,
    /// End tokens, each a name or an id in decimal digits; a name goes before an id. Where any is
    /// given, these are all.
    pub end_tokens: Vec<String>,
    /// Reading of added tokens `<…>` that the source marks as text.
    pub angle_tokens: AngleTokens,
}

/// Reading of the added tokens of a `tokenizer.json`, and of a SentencePiece model's user-defined
/// pieces, that are written in angle brackets and marked as text, such as `<tool_call>` of Qwen3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AngleTokens {
    /// Special tokens: no text holds them, and grammars may ask for them by name.
    #[default]
    Special,
    /// Text, as the source marks them: they spell their names within any text.
    Text,
}

/// Assumption about something that a source does not say. `Display` says it in a sentence, with the
/// way out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assumption {
    /// Tokens that the source marks as text are special, because they are written `<…>`: their
    /// names, by id.
    AngleTokens(Vec<String>),
    /// The source lacks its special tokens: they are those of a known vocabulary.
    SpecialTokens {
        /// The known vocabulary, such as `Llama 3`.
        of: &'static str,
        /// The sign by which it was known.
        by: &'static str,
    },
}

/// Names that a message shows of many.
const NUM_SHOWN: usize = 4;

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AngleTokens(names) => {
                let shown = names.iter().take(NUM_SHOWN).cloned().collect::<Vec<_>>().join(", ");
                let more = if names.len() > NUM_SHOWN { ", …" } else { "" };
                let (num, tokens) =
                    (names.len(), if names.len() == 1 { "token" } else { "tokens" });
                write!(
                    f,
                    "{num} {tokens} marked as text and written <…> taken as special: {shown}{more}; \
                     angle tokens as text keep the marks"
                )
            }
            Self::SpecialTokens { of, by } => {
                write!(
                    f,
                    "special tokens taken to be those of {of}, by {by}; naming any special token replaces them"
                )
            }
        }
    }
}

impl Assumption {
    /// The assumption about tokens that [`AngleTokens::takes`], if there are any.
    pub(crate) fn angle_tokens(mut tokens: Vec<(u64, String)>) -> Vec<Self> {
        tokens.sort_unstable();
        let names: Vec<_> = tokens.into_iter().map(|(_, name)| name).collect();
        if names.is_empty() { vec![] } else { vec![Self::AngleTokens(names)] }
    }
}

impl AngleTokens {
    /// True of tokens that the rule takes for special: control tokens are written so,
    /// `<tool_call>`, and none is meant to be written within a JSON string.
    pub(crate) fn takes(self, content: &str) -> bool {
        self == Self::Special
            && content.len() > 2
            && content.starts_with('<')
            && content.ends_with('>')
    }
}

impl LoadOptions {
    /// Makes the tokens of [`special_tokens`](Self::special_tokens) special.
    pub(crate) fn add_specials(&self, draft: &mut Draft) -> Result<(), Kind> {
        for (at, (name, token)) in self.special_tokens.iter().enumerate() {
            let earlier = &self.special_tokens[..at];
            if let Some((other, _)) = earlier.iter().find(|(_, other)| other == token) {
                return Err(invalid(format!(
                    "special token {name:?} is given the id {token} that {other:?} was given; each needs an id of its own"
                )));
            }
            if earlier.iter().any(|(other, _)| other == name) {
                return Err(invalid(format!(
                    "special token {name:?} is given twice; a name means one token"
                )));
            }
            draft.reserve(u64::from(token.0) + 1)?;
            if let Some(text) = draft.texts[token.index()].as_deref()
                && text != name.as_bytes()
                && draft.id_of(name) != Some(*token)
            {
                return Err(invalid(format!(
                    "special token {name:?} is given the id {token}, which spells \"{}\"; name an id without text, or the \
                     text itself",
                    text.escape_ascii()
                )));
            }
            draft.rename_special(*token, name);
        }
        Ok(())
    }

    /// The tokens of [`end_tokens`](Self::end_tokens); `None` where none is given.
    pub(crate) fn ends(&self, draft: &Draft) -> Result<Option<Vec<TokenId>>, Kind> {
        let end = |given: &String| {
            let by_id = || given.parse().ok().filter(|&id: &u32| (id as usize) < draft.texts.len());
            let token = draft.id_of(given).or_else(|| by_id().map(TokenId));
            token.ok_or_else(|| {
                let num_tokens = draft.texts.len();
                invalid(format!(
                    "end token {given:?} is neither a token's name nor an id of this vocabulary of {num_tokens} tokens; \
                     a special token that the source lacks can be given with its id"
                ))
            })
        };
        let ends = self.end_tokens.iter().map(end).collect::<Result<Vec<_>, _>>()?;
        Ok((!ends.is_empty()).then_some(ends))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumptions_name_some_of_many() {
        let names = |num: usize| (0..num).map(|id| format!("<{id}>")).collect();
        let said = |num| Assumption::AngleTokens(names(num)).to_string();
        assert!(
            said(1).starts_with("1 token marked as text and written <…> taken as special: <0>;")
        );
        assert!(said(5).starts_with(
            "5 tokens marked as text and written <…> taken as special: <0>, <1>, <2>, <3>, …;"
        ));
    }
}
