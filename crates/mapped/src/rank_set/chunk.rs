//! Chunks: the bits of 2^15 neighbouring ranks.

use std::sync::{Arc, LazyLock};

/// Ranks in a chunk.
pub(super) const CHUNK_BITS: usize = 1 << 15;
/// Words in a chunk.
pub(super) const CHUNK_WORDS: usize = CHUNK_BITS / 64;

/// The bits of a chunk: bit `b` of word `w` stands for the rank `64 w + b` within it.
pub(super) type Words = [u64; CHUNK_WORDS];

/// The members among 2^15 neighbouring ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) words: Words,
    /// Bit `w % 64` of entry `w / 64` says whether word `w` has a bit set.
    summary: [u64; CHUNK_WORDS / 64],
    pub(super) count: u32,
}

static EMPTY: LazyLock<Arc<Chunk>> = LazyLock::new(|| Arc::new(Chunk::new([0; CHUNK_WORDS])));
static FULL: LazyLock<Arc<Chunk>> = LazyLock::new(|| Arc::new(Chunk::new([!0; CHUNK_WORDS])));

/// The one chunk without members.
pub(super) fn empty() -> Arc<Chunk> {
    EMPTY.clone()
}

/// The one chunk of which all ranks are members.
pub(super) fn full() -> Arc<Chunk> {
    FULL.clone()
}

/// True for the two chunks that all sets share.
pub(super) fn is_shared(chunk: &Arc<Chunk>) -> bool {
    Arc::ptr_eq(chunk, &EMPTY) || Arc::ptr_eq(chunk, &FULL)
}

/// A chunk with these words; the shared one when it is empty or full.
pub(super) fn from_words(words: &Words) -> Arc<Chunk> {
    match words[0] {
        0 if words.iter().all(|&word| word == 0) => empty(),
        u64::MAX if words.iter().all(|&word| word == u64::MAX) => full(),
        _ => Arc::new(Chunk::new(*words)),
    }
}

impl Chunk {
    fn new(words: Words) -> Self {
        let mut summary = [0; CHUNK_WORDS / 64];
        for (entry, words) in summary.iter_mut().zip(words.chunks_exact(64)) {
            for (bit, &word) in words.iter().enumerate() {
                *entry |= u64::from(word != 0) << bit;
            }
        }
        let count = words.iter().map(|word| word.count_ones()).sum();
        Self { words, summary, count }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.count as usize == CHUNK_BITS
    }

    pub(super) fn insert(&mut self, bit: usize) {
        let word = bit / 64;
        self.words[word] |= 1 << (bit % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.count += 1;
    }

    pub(super) fn remove(&mut self, bit: usize) {
        let word = bit / 64;
        self.words[word] &= !(1 << (bit % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        self.count -= 1;
    }

    /// The first member at `bit` or after it.
    #[inline]
    pub(super) fn next(&self, bit: usize) -> Option<usize> {
        let word = bit / 64;
        let bits = self.words[word] & (u64::MAX << (bit % 64));
        if bits != 0 {
            return Some(word * 64 + bits.trailing_zeros() as usize);
        }
        let word = next_one(&self.summary, word + 1)?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }

    /// The last member at `bit` or before it.
    pub(super) fn previous(&self, bit: usize) -> Option<usize> {
        let word = bit / 64;
        let bits = self.words[word] & (u64::MAX >> (63 - bit % 64));
        if bits != 0 {
            return Some(word * 64 + 63 - bits.leading_zeros() as usize);
        }
        let word = previous_one(&self.summary, word.checked_sub(1)?)?;
        Some(word * 64 + 63 - self.words[word].leading_zeros() as usize)
    }

    /// Members before `bit`, which may be the length.
    pub(super) fn count_before(&self, bit: usize) -> u32 {
        let word = bit / 64;
        let whole: u32 = self.words[..word].iter().map(|word| word.count_ones()).sum();
        let part = self.words.get(word).map_or(0, |word| word & !(u64::MAX << (bit % 64)));
        whole + part.count_ones()
    }
}

/// Position of the first one at `from` or after it.
#[inline]
pub(super) fn next_one(words: &[u64], from: usize) -> Option<usize> {
    let mut word = from / 64;
    let mut bits = words.get(word)? & (u64::MAX << (from % 64));
    while bits == 0 {
        word += 1;
        bits = *words.get(word)?;
    }
    Some(word * 64 + bits.trailing_zeros() as usize)
}

/// Position of the last one at `from` or before it.
pub(super) fn previous_one(words: &[u64], from: usize) -> Option<usize> {
    let mut word = from / 64;
    let mut bits = words.get(word)? & (u64::MAX >> (63 - from % 64));
    while bits == 0 {
        word = word.checked_sub(1)?;
        bits = words[word];
    }
    Some(word * 64 + 63 - bits.leading_zeros() as usize)
}
