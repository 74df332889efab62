//! Spellings of a vocabulary's tokens: text, and numbers for those that grammars ask for by name or
//! number.

use palmette_core::{NUMBER_BYTES, NUMBER_MARK, TokenId, Vocabulary, VocabularyTrie};

/// The tokens whose numbers are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberedTokens {
    /// Special tokens, which have no other spelling.
    Special,
    /// All, text besides: for grammars that ask for tokens with text by name or number.
    All,
}

/// All spellings of a vocabulary's tokens.
///
/// Invariant: a text that holds the byte of numbers, 0xFF, is no spelling. No UTF-8 text does, so
/// no grammar allows its token.
///
/// Cost: 5 bytes a token.
#[derive(Clone, Debug)]
pub struct Spellings {
    numbers: Vec<[u8; NUMBER_BYTES]>,
    numbered: NumberedTokens,
}

impl Spellings {
    /// The spellings of a vocabulary.
    pub fn new(vocabulary: &Vocabulary, numbered: NumberedTokens) -> Self {
        let tokens = (0..vocabulary.num_tokens() as u32).map(TokenId);
        Self { numbers: tokens.map(TokenId::to_spelling).collect(), numbered }
    }

    /// The spellings of a token: one or two, none where its text is no part of a UTF-8 text.
    pub fn of<'s>(
        &'s self,
        vocabulary: &'s Vocabulary,
        token: TokenId,
    ) -> impl Iterator<Item = &'s [u8]> {
        let text = vocabulary.text(token);
        let is_text = !text.is_empty();
        let has_number = !is_text || self.numbered == NumberedTokens::All;
        let number = has_number.then(|| &self.numbers[token.index()][..]);
        let text = (is_text && !text.contains(&NUMBER_MARK)).then_some(text);
        text.into_iter().chain(number)
    }

    /// All spellings of some of the tokens as a trie.
    ///
    /// # Panics
    /// When a token is not in the vocabulary, and as [`VocabularyTrie::from_texts`].
    pub(crate) fn to_trie(
        &self,
        vocabulary: &Vocabulary,
        tokens: impl IntoIterator<Item = TokenId>,
    ) -> VocabularyTrie {
        let of_one = |token| self.of(vocabulary, token).map(move |text| (text, token));
        VocabularyTrie::from_texts(tokens.into_iter().flat_map(of_one))
    }

    /// Memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.numbers)
    }
}
