//! A vocabulary with its trie, shared by all mask engines over it.

use std::sync::{Arc, OnceLock};

use palmette_core::{Vocabulary, mask};

use super::{BytesBelow, VocabularyFingerprint, VocabularyTrie};

/// A vocabulary, the trie of its tokens with text, and what is derived from both when it is first asked for. A clone
/// shares all of it.
#[derive(Clone, Debug)]
pub struct IndexedVocabulary {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    vocabulary: Arc<Vocabulary>,
    trie: VocabularyTrie,
    fingerprint: OnceLock<VocabularyFingerprint>,
    below: OnceLock<BytesBelow>,
}

impl IndexedVocabulary {
    /// Builds the trie.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        let trie = VocabularyTrie::new(&vocabulary);
        let (fingerprint, below) = (OnceLock::new(), OnceLock::new());
        Self { shared: Arc::new(Shared { vocabulary, trie, fingerprint, below }) }
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.shared.vocabulary
    }

    /// All tokens with text.
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
    pub(crate) fn num_words(&self) -> usize {
        mask::num_words(self.shared.vocabulary.num_tokens())
    }

    /// Identity: true for clones of one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}
