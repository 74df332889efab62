//! The texts of the model's tokens.

use crate::TokenId;

/// Spelling of each token of a model, with the names of special ones and the ends.
///
/// A token is *text* (it adds its bytes to the output, not always whole characters), *special* (it
/// adds nothing a constraint could read: padding, a beginning mark, an unused id) or an *end*: a
/// special token by which the model stops.
///
/// Special tokens may have names, such as `<|tool_call|>`: a name is how a grammar asks for the
/// token, and never text.
///
/// Cost: the bytes of all tokens once, and 4 bytes a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    bytes: Vec<u8>,
    /// Token `t` owns `bytes[start[t]..start[t + 1]]`; special tokens own none.
    start: Vec<u32>,
    ends: Vec<TokenId>,
    /// Names with their tokens, ascending.
    names: Vec<(Box<str>, TokenId)>,
}

impl Vocabulary {
    /// `tokens[t]` are the bytes of token `t`; `None` or no bytes for a special token. `ends` are
    /// the tokens by which the model stops.
    ///
    /// # Errors
    /// When an end token is not in the vocabulary or has text, or when all texts together exceed 4
    /// GiB.
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
        let vocabulary = Self { bytes, start, ends, names: Vec::new() };
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

    /// Sets the names of special tokens. A name that two tokens have is the first one's.
    ///
    /// # Errors
    /// When a token with a name is not in the vocabulary or has text.
    pub fn with_names(
        mut self,
        names: impl IntoIterator<Item = (TokenId, String)>,
    ) -> Result<Self, VocabularyError> {
        let num_tokens = self.num_tokens();
        self.names = names.into_iter().map(|(token, name)| (name.into(), token)).collect();
        self.names.sort();
        self.names.dedup_by(|later, first| later.0 == first.0);
        for &(ref name, token) in &self.names {
            if token.index() >= num_tokens {
                return Err(VocabularyError::NameOutside { token, num_tokens, name: name.clone() });
            }
            if !self.text(token).is_empty() {
                return Err(VocabularyError::NameHasText { token, name: name.clone() });
            }
        }
        Ok(self)
    }

    /// The special tokens that have names, by name.
    pub fn names(&self) -> impl ExactSizeIterator<Item = (&str, TokenId)> {
        self.names.iter().map(|(name, token)| (&**name, *token))
    }

    /// The special token of a name.
    pub fn named(&self, name: &str) -> Option<TokenId> {
        let at = self.names.binary_search_by(|(known, _)| (**known).cmp(name));
        at.ok().map(|at| self.names[at].1)
    }

    /// Number of tokens, special ones included: masks have this many bits.
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
    /// A name for a token that does not exist.
    #[error(
        "token {token}, which is to be called {name:?}, is not in the vocabulary of {num_tokens} tokens"
    )]
    NameOutside {
        /// The token.
        token: TokenId,
        /// Size of the vocabulary.
        num_tokens: usize,
        /// The name.
        name: Box<str>,
    },
    /// A name for a token with text.
    #[error(
        "token {token}, which is to be called {name:?}, has text; only special tokens have names"
    )]
    NameHasText {
        /// The token.
        token: TokenId,
        /// The name.
        name: Box<str>,
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
    fn special_tokens_have_names() {
        let plain = || Vocabulary::new([Some("a"), None, None], [TokenId(2)]).unwrap();
        let names = [(TokenId(2), "<end>".to_owned()), (TokenId(1), "<call>".to_owned())];
        let named = plain().with_names(names).unwrap();
        assert_eq!(
            named.names().collect::<Vec<_>>(),
            [("<call>", TokenId(1)), ("<end>", TokenId(2))]
        );
        assert_eq!([named.named("<call>"), named.named("<other>")], [Some(TokenId(1)), None]);
        let refused = |token| plain().with_names([(TokenId(token), "x".to_owned())]).unwrap_err();
        let (token, name) = (TokenId(0), "x".into());
        assert_eq!(refused(0), VocabularyError::NameHasText { token, name });
        assert!(matches!(refused(3), VocabularyError::NameOutside { .. }));
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
