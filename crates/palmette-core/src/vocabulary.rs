//! The texts of the model's tokens.

use crate::TokenId;

/// What each token of a model spells.
///
/// A token is *text* (it adds its bytes to the output, not always whole characters), *special* (it adds nothing
/// a constraint could read: padding, a beginning mark, an unused id) or an *end*: a special token by which the model stops.
///
/// Cost: the bytes of all tokens once, and 4 bytes a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    /// Token `t` owns `bytes[start[t]..start[t + 1]]`; special tokens own none.
    start: Vec<u32>,
    ends: Vec<TokenId>,
}

impl Vocabulary {
    /// `tokens[t]` are the bytes of token `t`; `None` or no bytes for a special token. `ends` are the tokens by which
    /// the model stops.
    ///
    /// # Errors
    /// When an end token is not in the vocabulary or has text, or when all texts together exceed 4 GiB.
    pub fn new<B: AsRef<[u8]>>(
        tokens: impl IntoIterator<Item = Option<B>>,
        ends: impl IntoIterator<Item = TokenId>,
    ) -> Result<Self, VocabularyError> {
        let (mut bytes, mut start) = (Vec::new(), vec![0]);
        for token in tokens {
            if let Some(text) = token {
                bytes.extend_from_slice(text.as_ref());
            }
            start.push(u32::try_from(bytes.len()).map_err(|_| VocabularyError::TooLong)?);
        }
        let mut ends: Vec<_> = ends.into_iter().collect();
        ends.sort_unstable();
        ends.dedup();
        let vocabulary = Self { bytes, start, ends };
        let num_tokens = vocabulary.num_tokens();
        for &token in &vocabulary.ends {
            if token.index() >= num_tokens {
                return Err(VocabularyError::EndOutside { token, num_tokens });
            }
            if !vocabulary.text(token).is_empty() {
                return Err(VocabularyError::EndHasText { token });
            }
        }
        Ok(vocabulary)
    }

    /// How many tokens there are, special ones included: masks have this many bits.
    pub fn num_tokens(&self) -> usize {
        self.start.len() - 1
    }

    /// The bytes of a token; empty for special ones.
    ///
    /// # Panics
    /// When the token is not in the vocabulary.
    pub fn text(&self, token: TokenId) -> &[u8] {
        &self.bytes[self.start[token.index()] as usize..self.start[token.index() + 1] as usize]
    }

    /// The tokens by which the model stops, in ascending order.
    pub fn ends(&self) -> &[TokenId] {
        &self.ends
    }

    /// The tokens with text, in ascending order, each with its bytes.
    pub fn texts(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        (0..self.num_tokens() as u32)
            .map(|token| (TokenId(token), self.text(TokenId(token))))
            .filter(|(_, text)| !text.is_empty())
    }
}

/// Tokens that make no vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    /// An end token that does not exist.
    #[error("end token {token} is not in the vocabulary of {num_tokens} tokens")]
    EndOutside {
        /// The token.
        token: TokenId,
        /// Size of the vocabulary.
        num_tokens: usize,
    },
    /// An end token with text: it could not be told from output.
    #[error("end token {token} has text; a token that stops the model must be a special one")]
    EndHasText {
        /// The token.
        token: TokenId,
    },
    /// More than 4 GiB of text.
    #[error("the texts of all tokens are longer than 4 GiB")]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_bytes_and_ends() {
        let tokens = [Some(&b"a"[..]), None, Some(b"\xC3"), Some(b"")];
        let vocabulary = Vocabulary::new(tokens, [TokenId(3), TokenId(1), TokenId(3)]).unwrap();
        assert_eq!(vocabulary.num_tokens(), 4);
        assert_eq!(
            vocabulary.texts().collect::<Vec<_>>(),
            [(TokenId(0), &b"a"[..]), (TokenId(2), b"\xC3")]
        );
        assert_eq!(vocabulary.ends(), [TokenId(1), TokenId(3)]);
    }

    #[test]
    fn end_tokens_must_exist_and_be_special() {
        let tokens = || [Some("a"), None];
        assert_eq!(
            Vocabulary::new(tokens(), [TokenId(2)]),
            Err(VocabularyError::EndOutside { token: TokenId(2), num_tokens: 2 })
        );
        assert_eq!(
            Vocabulary::new(tokens(), [TokenId(0)]),
            Err(VocabularyError::EndHasText { token: TokenId(0) })
        );
    }
}
