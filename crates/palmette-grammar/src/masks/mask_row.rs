//! A mask row that many masks are made of.

/// The words of a mask, with a hash of them.
#[derive(Debug)]
pub(super) struct MaskRow {
    words: Box<[u32]>,
    hash: u64,
}

impl MaskRow {
    pub(super) fn new(words: Box<[u32]>) -> Self {
        let hash = hash_of_words(&words);
        Self { words, hash }
    }

    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// The [hash](hash_of_words) of the words.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.words)
    }
}

/// A hash of words that is the same everywhere. Equal hashes are looked into.
pub(super) fn hash_of_words(words: &[u32]) -> u64 {
    let each = words.iter().enumerate().map(|(at, &word)| hash_of_word(at, word));
    each.fold(0, u64::wrapping_add)
}

/// What a word adds to the hash: nothing where it is 0. It is a sum, so that the hash of words that are others' but for some is found
/// from these.
pub(super) fn hash_of_word(at: usize, word: u32) -> u64 {
    let mixed = |word: u32| {
        let product = (u64::from(word) << 32 | at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        product ^ product >> 32
    };
    mixed(word).wrapping_sub(mixed(0))
}
