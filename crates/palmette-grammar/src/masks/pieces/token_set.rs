//! Sets of tokens as they are kept.

use palmette_core::{TokenId, mask};

/// A set of tokens.
#[derive(Debug)]
pub(super) enum TokenSet {
    /// A mask row.
    Mask(Box<[u32]>),
    /// Few tokens.
    List(Box<[TokenId]>),
}

impl TokenSet {
    /// The set of these tokens, for a mask row of so many words.
    pub(super) fn new(tokens: Vec<TokenId>, num_words: usize) -> Self {
        if tokens.len() < num_words {
            return Self::List(tokens.into());
        }
        let mut words = vec![0; num_words];
        tokens.iter().for_each(|&token| mask::insert(&mut words, token));
        Self::Mask(words.into())
    }

    /// The set of a mask row.
    pub(super) fn of_words(words: Vec<u32>) -> Self {
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        if count >= words.len() {
            return Self::Mask(words.into());
        }
        let mut tokens = Vec::with_capacity(count);
        for (&word, at) in words.iter().zip(0..) {
            let mut rest = word;
            while rest != 0 {
                tokens.push(TokenId(at * 32 + rest.trailing_zeros()));
                rest &= rest - 1;
            }
        }
        Self::List(tokens.into())
    }

    /// The set as a mask row of so many words.
    pub(super) fn to_words(&self, num_words: usize) -> Vec<u32> {
        match self {
            Self::Mask(words) => words.to_vec(),
            Self::List(tokens) => {
                let mut words = vec![0; num_words];
                tokens.iter().for_each(|&token| mask::insert(&mut words, token));
                words
            }
        }
    }

    /// Adds the tokens to a mask row.
    pub(super) fn insert_into(&self, words: &mut [u32]) {
        match self {
            Self::Mask(own) => words.iter_mut().zip(own).for_each(|(word, own)| *word |= own),
            Self::List(tokens) => tokens.iter().for_each(|&token| mask::insert(words, token)),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Mask(words) => size_of_val(&**words),
            Self::List(tokens) => size_of_val(&**tokens),
        }
    }
}
