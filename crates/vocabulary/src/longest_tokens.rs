//! Cutting of bytes by the longest token first.

use std::sync::Arc;

use palmette_core::{TokenId, Vocabulary};

use crate::tokenize_error::TokenizeError;

/// The tokens of a vocabulary in the order of their bytes, for who has no tokenizer: at each place
/// the longest token that fits is taken, of equal ones the lowest id.
///
/// Few tokenizers cut so; a text that a model reads is better cut by its own.
#[derive(Debug)]
pub struct LongestTokens {
    vocabulary: Arc<Vocabulary>,
    /// Tokens with text, by their bytes, then id.
    sorted: Vec<TokenId>,
}

impl LongestTokens {
    /// Sorts the tokens.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        let mut sorted: Vec<_> = vocabulary.texts().map(|(token, _)| token).collect();
        sorted.sort_by_key(|&token| vocabulary.text(token));
        Self { vocabulary, sorted }
    }

    /// The tokens of bytes, which need be no text.
    ///
    /// # Errors
    /// When no token fits at some place.
    pub fn cut(&self, mut text: &[u8]) -> Result<Vec<TokenId>, TokenizeError> {
        let (mut tokens, num_bytes) = (vec![], text.len());
        while !text.is_empty() {
            let token = self.longest_prefix(text);
            let token = token.ok_or(TokenizeError::NoToken { at: num_bytes - text.len() })?;
            text = &text[self.vocabulary.text(token).len()..];
            tokens.push(token);
        }
        Ok(tokens)
    }

    fn longest_prefix(&self, text: &[u8]) -> Option<TokenId> {
        let (mut rest, mut found) = (self.sorted.as_slice(), None);
        for (depth, &byte) in text.iter().enumerate() {
            // All of `rest` begin with `text[..depth]`; a token that is no longer comes before the
            // others.
            let at = |token: &TokenId| self.vocabulary.text(*token).get(depth).copied();
            let begin = rest.partition_point(|token| at(token) < Some(byte));
            let end = begin + rest[begin..].partition_point(|token| at(token) == Some(byte));
            rest = &rest[begin..end];
            match rest.first() {
                None => break,
                Some(&token) if self.vocabulary.text(token).len() == depth + 1 => {
                    found = Some(token)
                }
                Some(_) => {}
            }
        }
        found
    }
}
