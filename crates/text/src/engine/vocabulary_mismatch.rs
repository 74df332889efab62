//! Mismatch of two models' vocabularies: the first token that is another one.
//!
//! A draft model's guesses are numbers of tokens, so each has to be the same token for both models:
//! the same bytes, or a special token of the same name.

use std::fmt;

use palmette_core::TokenId;

use crate::model::TextModel;

/// Vocabularies of a model and its draft model that differ, by their first other token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the draft model {draft_model} has other tokens than {model}: token {token} is {theirs} there and {ours} here; a draft model \
     needs the vocabulary of the text's, such as a smaller model of the same family"
)]
pub struct VocabularyMismatch {
    model: String,
    draft_model: String,
    token: TokenId,
    ours: String,
    theirs: String,
}

impl VocabularyMismatch {
    /// Compares the tokens of a model and its draft model, by number: bytes, and names of special
    /// ones.
    ///
    /// # Errors
    /// The first that differs.
    pub fn check(model: &TextModel, draft_model: &TextModel) -> Result<(), Self> {
        let sizes = [model, draft_model].map(|of| of.vocabulary().vocabulary().num_tokens() as u32);
        let differs = |token: &TokenId| spelling(model, *token) != spelling(draft_model, *token);
        let mut tokens = (0..sizes[0].max(sizes[1])).map(TokenId);
        let Some(token) = tokens.find(differs) else { return Ok(()) };
        Err(Self {
            model: model.name().to_owned(),
            draft_model: draft_model.name().to_owned(),
            token,
            ours: spelling(model, token).to_string(),
            theirs: spelling(draft_model, token).to_string(),
        })
    }
}

/// A token as two vocabularies are compared by it.
#[derive(PartialEq)]
enum Spelling<'a> {
    Missing,
    Special(Option<&'a str>),
    Text(&'a [u8]),
}

impl fmt::Display for Spelling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("none"),
            Self::Special(None) => f.write_str("a special token"),
            Self::Special(Some(name)) => write!(f, "the special token {name}"),
            Self::Text(text) => write!(f, "\"{}\"", text.escape_ascii()),
        }
    }
}

fn spelling(model: &TextModel, token: TokenId) -> Spelling<'_> {
    let vocabulary = model.vocabulary().vocabulary();
    if token.index() >= vocabulary.num_tokens() {
        return Spelling::Missing;
    }
    match vocabulary.text(token) {
        [] => Spelling::Special(model.special_name(token)),
        text => Spelling::Text(text),
    }
}
