//! The id of an entry of the model's vocabulary, and its spelling as a number.

use std::fmt;

/// An entry of the model's vocabulary, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct TokenId(pub u32);

/// The first byte of a token's [number](TokenId::to_spelling): no UTF-8 text holds it.
pub const NUMBER_MARK: u8 = 0xFF;

/// Bytes of a token's number with its mark.
pub const NUMBER_BYTES: usize = 5;

impl TokenId {
    /// The id as an index into a logits row.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The spelling of a token that is asked for by number: a mark, then the number, the highest
    /// byte first. Lexer, masks and member sets read it as they read text, and no text matches it.
    pub fn to_spelling(self) -> [u8; NUMBER_BYTES] {
        let [a, b, c, d] = self.0.to_be_bytes();
        [NUMBER_MARK, a, b, c, d]
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
