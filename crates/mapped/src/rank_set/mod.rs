//! Sets of ranks: bits in chunks that sets share.

mod algebra;
mod chunk;
mod members;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use chunk::{CHUNK_BITS, CHUNK_WORDS, Chunk, Words};

pub use members::Members;

/// A set of ranks below [`num_ranks`](Self::num_ranks).
///
/// The ranks lie in chunks of 2^15, 4 KiB each with a summary of its non-zero words. Chunks are
/// shared: cloning a set copies a pointer a chunk, a change copies the chunk it is in, and all
/// empty and all full chunks are two static ones. A set of 20 million ranks is thus 610 pointers
/// and 4 KiB for each chunk that is partly filled, at most 2.5 MB.
///
/// Ranges of ranks are cut off at `num_ranks`; no rank past it is ever a member.
#[derive(Clone, PartialEq, Eq)]
pub struct RankSet {
    num_ranks: u64,
    len: u64,
    chunks: Vec<Arc<Chunk>>,
    /// A bit a chunk: whether it has a member.
    non_empty: Vec<u64>,
}

impl RankSet {
    /// Ranks in a chunk.
    pub const CHUNK_RANKS: u64 = CHUNK_BITS as u64;
    /// Words in a chunk.
    pub const CHUNK_WORDS: usize = CHUNK_WORDS;

    /// The set without members.
    pub fn empty(num_ranks: u64) -> Self {
        Self::from_chunks(num_ranks, vec![chunk::empty(); num_chunks(num_ranks)])
    }

    /// The set of all ranks.
    pub fn full(num_ranks: u64) -> Self {
        let mut chunks = vec![chunk::full(); num_chunks(num_ranks)];
        if !num_ranks.is_multiple_of(Self::CHUNK_RANKS) {
            let last = chunks.len() - 1;
            chunks[last] = chunk::from_words(&valid_words(num_ranks, last));
        }
        Self::from_chunks(num_ranks, chunks)
    }

    /// The set of these ranks, in any order; they may repeat.
    ///
    /// # Panics
    /// When one is not below `num_ranks`.
    pub fn from_ranks(num_ranks: u64, ranks: impl IntoIterator<Item = u64>) -> Self {
        let mut set = Self::empty(num_ranks);
        ranks.into_iter().for_each(|rank| _ = set.insert(rank));
        set
    }

    /// The set with these [`word`](Self::word)s; `None` when they are of another number of ranks,
    /// or one past the last is a member.
    pub fn from_words(num_ranks: u64, words: &[u64]) -> Option<Self> {
        if words.len() as u64 != num_ranks.div_ceil(64) {
            return None;
        }
        if let Some(last) = words.last()
            && !num_ranks.is_multiple_of(64)
            && last >> (num_ranks % 64) != 0
        {
            return None;
        }
        let chunk = |words: &[u64]| {
            let mut chunk = [0; CHUNK_WORDS];
            chunk[..words.len()].copy_from_slice(words);
            chunk::from_words(&chunk)
        };
        Some(Self::from_chunks(num_ranks, words.chunks(CHUNK_WORDS).map(chunk).collect()))
    }

    /// The ranks that `keep` leaves, chunk by chunk on all threads: it is given the number of a
    /// chunk and the words of its ranks, all of them members, and clears bits.
    pub fn from_kept(num_ranks: u64, keep: impl Fn(usize, &mut [u64; CHUNK_WORDS]) + Sync) -> Self {
        let kept = |chunk: usize| {
            let mut words = valid_words(num_ranks, chunk);
            keep(chunk, &mut words);
            chunk::from_words(&words)
        };
        Self::from_chunks(num_ranks, (0..num_chunks(num_ranks)).into_par_iter().map(kept).collect())
    }

    /// A set from its chunks, in which no bit past `num_ranks` is set.
    fn from_chunks(num_ranks: u64, chunks: Vec<Arc<Chunk>>) -> Self {
        debug_assert_eq!(chunks.len(), num_chunks(num_ranks));
        let mut non_empty = vec![0; chunks.len().div_ceil(64)];
        for (index, chunk) in chunks.iter().enumerate() {
            non_empty[index / 64] |= u64::from(!chunk.is_empty()) << (index % 64);
        }
        let len = chunks.iter().map(|chunk| u64::from(chunk.count)).sum();
        Self { num_ranks, len, chunks, non_empty }
    }

    /// The number of ranks there are, members or not.
    pub fn num_ranks(&self) -> u64 {
        self.num_ranks
    }

    /// The number of members. O(1).
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there is no member. O(1).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if every rank is a member. O(1).
    pub fn is_full(&self) -> bool {
        self.len == self.num_ranks
    }

    /// Membership of `rank`.
    #[inline]
    pub fn contains(&self, rank: u64) -> bool {
        self.word(rank / 64) >> (rank % 64) & 1 == 1
    }

    /// True if a rank in `range` is a member.
    ///
    /// Cost: one word when the range lies in one; else at most two words and the summaries of one
    /// chunk and of the set, whatever lies between.
    #[inline]
    pub fn any_in(&self, range: Range<u64>) -> bool {
        let Range { start, end } = range;
        if start < end && start / 64 == (end - 1) / 64 {
            let bits = self.word(start / 64);
            return bits & (u64::MAX << (start % 64)) & (u64::MAX >> (63 - (end - 1) % 64)) != 0;
        }
        self.next_in(start..end).is_some()
    }

    /// True if every rank in `range` is a member. Cost: a read for each 64 ranks, up to the first
    /// that is not, and none for chunks that are full.
    #[inline]
    pub fn all_in(&self, range: Range<u64>) -> bool {
        let Range { mut start, end } = range;
        if end > self.num_ranks {
            return start >= end;
        }
        while start < end {
            let (chunk, bit) = place(start);
            let until = if self.chunks[chunk].is_full() {
                rank(chunk + 1, 0)
            } else {
                start - start % 64 + 64
            };
            let until = until.min(end);
            if !self.chunks[chunk].is_full() {
                let wanted = (u64::MAX >> (64 - (until - start))) << (start % 64);
                if self.chunks[chunk].words[bit / 64] & wanted != wanted {
                    return false;
                }
            }
            start = until;
        }
        true
    }

    /// Members among the first 64 ranks in `range`, the first in the lowest bit. Cost: a word, or
    /// two where they lie in two.
    #[inline(always)]
    pub fn bits_in(&self, range: Range<u64>) -> u64 {
        let len = range.end.saturating_sub(range.start).min(64);
        let (word, bit) = (range.start / 64, range.start % 64);
        let mut bits = self.word(word) >> bit;
        if bit + len > 64 {
            bits |= self.word(word + 1) << (64 - bit);
        }
        if len == 64 { bits } else { bits & ((1 << len) - 1) }
    }

    /// Asks for the memory that says whether `rank` is a member, without waiting for it.
    #[inline]
    pub fn prefetch(&self, rank: u64) {
        let (chunk, bit) = place(rank);
        if let Some(chunk) = self.chunks.get(chunk) {
            crate::prefetch(&chunk.words, bit / 64);
        }
    }

    /// The first member in `range`. Cost: as for [`any_in`](Self::any_in).
    pub fn next_in(&self, range: Range<u64>) -> Option<u64> {
        let end = range.end.min(self.num_ranks);
        if range.start >= end {
            return None;
        }
        let (chunk, bit) = place(range.start);
        let next = match self.chunks[chunk].next(bit) {
            Some(bit) => rank(chunk, bit),
            None => {
                let chunk = chunk::next_one(&self.non_empty, chunk + 1)?;
                rank(chunk, self.chunks[chunk].next(0)?)
            }
        };
        (next < end).then_some(next)
    }

    /// The last member in `range`. Cost: as for [`any_in`](Self::any_in).
    pub fn last_in(&self, range: Range<u64>) -> Option<u64> {
        let last = range.end.min(self.num_ranks).checked_sub(1)?;
        let (chunk, bit) = place(last);
        let found = match self.chunks[chunk].previous(bit) {
            Some(bit) => rank(chunk, bit),
            None => {
                let chunk = chunk::previous_one(&self.non_empty, chunk.checked_sub(1)?)?;
                rank(chunk, self.chunks[chunk].previous(CHUNK_BITS - 1)?)
            }
        };
        (found >= range.start).then_some(found)
    }

    /// The number of members in `range`. Cost: a number a chunk between its ends, and the words of
    /// the chunks they are in.
    pub fn count_in(&self, range: Range<u64>) -> u64 {
        let end = range.end.min(self.num_ranks);
        if range.start >= end {
            return 0;
        }
        let ((first, from), (last, to)) = (place(range.start), place(end));
        let whole: u64 = self.chunks[first..last].iter().map(|chunk| u64::from(chunk.count)).sum();
        // Where `end` is the end of a last whole chunk, there is no chunk to begin.
        let begun = self.chunks.get(last).map_or(0, |chunk| chunk.count_before(to));
        whole + u64::from(begun) - u64::from(self.chunks[first].count_before(from))
    }

    /// The members in ascending order.
    pub fn iter(&self) -> Members<'_> {
        self.iter_in(0..self.num_ranks)
    }

    /// The members in `range` in ascending order.
    pub fn iter_in(&self, range: Range<u64>) -> Members<'_> {
        Members::new(self, range)
    }

    /// Visits the members in `range` in ascending order. Cost: a read for each 64 ranks; for short
    /// ranges less than [`iter_in`](Self::iter_in).
    #[inline]
    pub fn for_each_in(&self, range: Range<u64>, mut visit: impl FnMut(u64)) {
        let Range { mut start, end } = range;
        while start < end {
            let word = start / 64;
            let past = (word + 1) * 64;
            let mut left = self.word(word) & u64::MAX << (start % 64);
            if past > end {
                left &= (1 << (end % 64)) - 1;
            }
            while left != 0 {
                visit(word * 64 + u64::from(left.trailing_zeros()));
                left &= left - 1;
            }
            start = past;
        }
    }

    /// Adds a rank; whether it was new. Cost: copies the chunk if another set shares it.
    ///
    /// # Panics
    /// When it is not below [`num_ranks`](Self::num_ranks).
    pub fn insert(&mut self, rank: u64) -> bool {
        assert!(rank < self.num_ranks, "rank {rank} of {}", self.num_ranks);
        if self.contains(rank) {
            return false;
        }
        let (index, bit) = place(rank);
        let chunk = Arc::make_mut(&mut self.chunks[index]);
        chunk.insert(bit);
        if chunk.is_full() {
            self.chunks[index] = chunk::full();
        }
        self.non_empty[index / 64] |= 1 << (index % 64);
        self.len += 1;
        true
    }

    /// Takes a rank away; whether it was there. Cost: copies the chunk if another set shares it.
    pub fn remove(&mut self, rank: u64) -> bool {
        if !self.contains(rank) {
            return false;
        }
        let (index, bit) = place(rank);
        let chunk = Arc::make_mut(&mut self.chunks[index]);
        chunk.remove(bit);
        if chunk.is_empty() {
            self.chunks[index] = chunk::empty();
            self.non_empty[index / 64] &= !(1 << (index % 64));
        }
        self.len -= 1;
        true
    }

    /// The 64 ranks from `64 * index`, the first in the lowest bit; 0 past the last rank.
    #[inline]
    pub fn word(&self, index: u64) -> u64 {
        let chunk = usize::try_from(index / CHUNK_WORDS as u64).unwrap_or(usize::MAX);
        let chunk = self.chunks.get(chunk);
        chunk.map_or(0, |chunk| chunk.words[index as usize % CHUNK_WORDS])
    }

    /// The number of chunks of [`CHUNK_RANKS`](Self::CHUNK_RANKS).
    pub fn num_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The words of a chunk, as those of [`word`](Self::word).
    ///
    /// # Panics
    /// When there is no such chunk.
    pub fn chunk_words(&self, chunk: usize) -> &[u64; CHUNK_WORDS] {
        &self.chunks[chunk].words
    }

    /// Bytes of memory, without the two chunks that all sets share. Chunks shared with other sets
    /// are counted in each.
    pub fn bytes(&self) -> usize {
        let own = self.chunks.iter().filter(|chunk| !chunk::is_shared(chunk)).count();
        own * size_of::<Chunk>() + size_of_val(&*self.chunks) + size_of_val(&*self.non_empty)
    }
}

/// The number of members, and the first of them.
impl fmt::Debug for RankSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NUM_SHOWN: usize = 20;
        write!(f, "{} of {} ranks: ", self.len, self.num_ranks)?;
        f.debug_list().entries(self.iter().take(NUM_SHOWN)).finish()
    }
}

fn num_chunks(num_ranks: u64) -> usize {
    usize::try_from(num_ranks.div_ceil(RankSet::CHUNK_RANKS)).expect("a pointer a chunk fits")
}

/// The words of a chunk of which all ranks below `num_ranks` are members.
fn valid_words(num_ranks: u64, chunk: usize) -> Words {
    let mut words = [u64::MAX; CHUNK_WORDS];
    let valid = num_ranks.saturating_sub(rank(chunk, 0));
    if valid < RankSet::CHUNK_RANKS {
        let (word, bit) = (valid as usize / 64, valid % 64);
        words[word] = !(u64::MAX << bit);
        words[word + 1..].fill(0);
    }
    words
}

/// The chunk that a rank is in, and its place there.
#[inline]
fn place(rank: u64) -> (usize, usize) {
    ((rank / CHUNK_BITS as u64) as usize, rank as usize % CHUNK_BITS)
}

#[inline]
fn rank(chunk: usize, bit: usize) -> u64 {
    chunk as u64 * CHUNK_BITS as u64 + bit as u64
}
