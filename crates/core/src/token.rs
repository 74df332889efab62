//! The id of an entry of the model's vocabulary.

use std::fmt;

/// An entry of the model's vocabulary, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct TokenId(pub u32);

impl TokenId {
    /// The id as an index into a logits row.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
