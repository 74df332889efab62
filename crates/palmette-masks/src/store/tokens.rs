//! Token sets, shared by all rows that have them.

use std::sync::Arc;

use palmette_core::{TokenId, mask};

/// A set of tokens. Clones share it.
#[derive(Clone, Debug)]
pub(super) enum Tokens {
    /// Tokens in any order; one may be there twice.
    List(Arc<[TokenId]>),
    /// A mask row.
    Mask(Arc<[u32]>),
}

impl Tokens {
    /// The set of these tokens, for mask rows of so many words.
    pub(super) fn new(tokens: Vec<TokenId>, num_words: usize) -> Self {
        if tokens.len() <= num_words {
            return Self::List(tokens.into());
        }
        let mut words = vec![0; num_words];
        tokens.iter().for_each(|&token| mask::insert(&mut words, token));
        Self::Mask(words.into())
    }

    /// The tokens of any of these sets, and how much memory that is beside theirs.
    pub(super) fn union<'t>(
        sets: impl Iterator<Item = &'t Self> + Clone,
        num_words: usize,
    ) -> (Self, usize) {
        let mut rest = sets.clone();
        let (first, second) = (rest.next(), rest.next());
        if let (Some(only), None) = (first, second) {
            return (only.clone(), 0);
        }
        let count: usize = sets.clone().map(Self::num_listed).sum();
        let union = if count <= num_words {
            let listed = sets.flat_map(|set| match set {
                Self::List(tokens) => &**tokens,
                Self::Mask(_) => &[],
            });
            Self::List(listed.copied().collect())
        } else {
            let mut words = vec![0; num_words];
            sets.for_each(|set| set.add_to(&mut words));
            Self::Mask(words.into())
        };
        let bytes = union.bytes();
        (union, bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::List(tokens) if tokens.is_empty())
    }

    /// Sets the tokens' bits.
    pub(super) fn add_to(&self, words: &mut [u32]) {
        match self {
            Self::List(tokens) => tokens.iter().for_each(|&token| mask::insert(words, token)),
            Self::Mask(row) => words.iter_mut().zip(&**row).for_each(|(word, bits)| *word |= bits),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::List(tokens) => size_of_val(&**tokens),
            Self::Mask(words) => size_of_val(&**words),
        }
    }

    /// Tokens of a list; of a mask, more than any list has.
    fn num_listed(&self) -> usize {
        match self {
            Self::List(tokens) => tokens.len(),
            Self::Mask(words) => words.len() + 1,
        }
    }
}
