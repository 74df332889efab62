//! A vocabulary with its trie, shared by all mask engines over it.

use std::sync::{Arc, OnceLock};

use palmette_core::{TokenId, Vocabulary, mask};

use super::{BytesBelow, Numbered, Spellings, VocabularyFingerprint, VocabularyTrie};

/// A vocabulary, the trie of their spellings, and what is derived from both when it is first asked for. A clone
/// shares all of it.
#[derive(Clone, Debug)]
pub struct IndexedVocabulary {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    vocabulary: Arc<Vocabulary>,
    spellings: Spellings,
    trie: VocabularyTrie,
    fingerprint: OnceLock<VocabularyFingerprint>,
    below: OnceLock<BytesBelow>,
}

impl IndexedVocabulary {
    /// Builds the trie.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self::with_numbers(vocabulary, Numbered::Special)
    }

    /// Builds the trie with the numbers of some tokens.
    pub fn with_numbers(vocabulary: Arc<Vocabulary>, numbered: Numbered) -> Self {
        let spellings = Spellings::new(&vocabulary, numbered);
        let tokens = (0..vocabulary.num_tokens() as u32).map(TokenId);
        let trie = VocabularyTrie::spelled(&vocabulary, &spellings, tokens);
        let (fingerprint, below) = (OnceLock::new(), OnceLock::new());
        Self { shared: Arc::new(Shared { vocabulary, spellings, trie, fingerprint, below }) }
    }

    /// The spellings of its tokens.
    pub fn spellings(&self) -> &Spellings {
        &self.shared.spellings
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.shared.vocabulary
    }

    /// All spellings of all tokens.
    pub fn trie(&self) -> &VocabularyTrie {
        &self.shared.trie
    }

    /// A hash that tells the vocabulary from others; computed once.
    pub fn fingerprint(&self) -> VocabularyFingerprint {
        *self.shared.fingerprint.get_or_init(|| VocabularyFingerprint::of(&self.shared.vocabulary))
    }

    /// Kinds of the bytes below each node of the trie; computed once.
    pub(crate) fn bytes_below(&self) -> &BytesBelow {
        self.shared.below.get_or_init(|| BytesBelow::new(&self.shared.trie))
    }

    /// Words of a mask row.
    pub fn num_words(&self) -> usize {
        mask::num_words(self.shared.vocabulary.num_tokens())
    }

    /// Identity: true for clones of one.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}
