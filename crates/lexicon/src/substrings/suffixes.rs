//! Suffixes of documents as an implicit trie: each up to the end of its longest member.

use palmette_core::{MemberId, SubstringUnit};
use palmette_mapped::RankSet;

use crate::arrays::{ImplicitTrie, Prefix, SharedView, Tail};

/// The part of a text that a suffix is kept of: its longest member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) len: u32,
}

impl Span {
    pub(super) fn of(self, text: &[u8]) -> &[u8] {
        let start = self.start as usize;
        &text[start..start + self.len as usize]
    }
}

/// A text with the places where members may end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'a> {
    pub(super) text: &'a [u8],
    /// Places after the last of a unit.
    pub(super) places: &'a RankSet,
    /// Fewest characters of a member.
    pub(super) min: usize,
    /// Numbers of characters before each block of the text; empty where they are bytes.
    pub(super) chars: &'a [u32],
}

/// Bytes of a block whose characters are counted ahead.
const BLOCK: usize = 64;

/// Numbers of the characters that begin before each block of a text.
pub(super) fn chars_before_blocks(text: &[u8]) -> Box<[u32]> {
    let mut sum = 0;
    let before = |block: &[u8]| {
        let before = sum;
        sum += num_chars(block) as u32;
        before
    };
    text.chunks(BLOCK).map(before).collect()
}

fn num_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| !is_inner(**byte)).count()
}

impl Ends<'_> {
    /// True if the first `len` bytes of a span are a member.
    #[inline]
    pub(super) fn is_end(&self, span: Span, len: usize) -> bool {
        self.places.contains(u64::from(span.start) + len as u64) && self.is_long(span, len)
    }

    /// True if the first `len` bytes of a span have the fewest characters that members have.
    #[inline]
    fn is_long(&self, span: Span, len: usize) -> bool {
        // The bytes of a character are at most four.
        let is_known = self.chars.is_empty() || len < self.min || len / 4 >= self.min;
        if is_known { len >= self.min } else { self.has_chars(span, len) }
    }

    #[cold]
    fn has_chars(&self, span: Span, len: usize) -> bool {
        let start = span.start as usize;
        self.chars_before(start + len) - self.chars_before(start) >= self.min
    }

    fn chars_before(&self, at: usize) -> usize {
        let block = at / BLOCK;
        self.chars[block] as usize + num_chars(&self.text[block * BLOCK..at])
    }
}

/// True for the bytes of a character after its first.
pub(super) fn is_inner(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// The slices of [`Substrings`](super::Substrings), looked up once for many questions.
#[derive(Clone, Copy, Debug)]
pub(super) struct SuffixesView<'a> {
    pub(super) spans: &'a [Span],
    pub(super) branches: &'a [u8],
    pub(super) shared: SharedView<'a, u32>,
    pub(super) ends: Ends<'a>,
    /// Ranks by which a node's second child begins, where a member ends in the node.
    pub(super) forks: &'a RankSet,
    pub(super) unit: SubstringUnit,
}

impl<'a> SuffixesView<'a> {
    #[inline]
    fn span(&self, rank: usize) -> Span {
        self.spans.get(rank).copied().unwrap_or(Span { start: 0, len: 0 })
    }

    /// Bytes of a suffix.
    #[inline]
    pub(super) fn bytes(&self, rank: usize) -> &'a [u8] {
        self.span(rank).of(self.ends.text)
    }

    /// True if a member ends at a prefix, in another suffix than the first.
    ///
    /// What ends a member is the character that follows. Where suffixes have the same, they end
    /// alike; where they part at it or within it, the bit of that node says.
    #[inline]
    fn ends_in_others(&self, at: Prefix) -> bool {
        let Prefix { lo, hi, depth } = at;
        let next = self.bytes(lo).get(depth).copied().unwrap_or_default();
        if is_inner(next) {
            return false;
        }
        let second = self.next_child(lo, hi, depth);
        if second < hi {
            return self.forks.contains(second as u64);
        }
        if next.is_ascii() {
            return false;
        }
        let (shared, len) = (self.shared_within(lo, hi), (!next).leading_zeros() as usize);
        shared < depth + len && self.forks.contains(self.next_child(lo, hi, shared) as u64)
    }
}

impl<'a> ImplicitTrie<'a> for SuffixesView<'a> {
    type Long = u32;
    const ENDS_WITHIN: bool = true;

    fn len(&self) -> usize {
        self.spans.len()
    }

    fn root(&self) -> Option<Prefix> {
        let hi = self.len();
        (hi > 0).then_some(Prefix { lo: 0, hi, depth: 0 })
    }

    #[inline]
    fn lengths(&self) -> &SharedView<'a, u32> {
        &self.shared
    }

    #[inline]
    fn branch(&self, rank: usize) -> u8 {
        self.branches.get(rank).copied().unwrap_or_default()
    }

    #[inline]
    fn tail(&self, rank: usize, depth: usize) -> Tail<'a> {
        Tail::from_slice(self.bytes(rank).get(depth..).unwrap_or_default())
    }

    #[inline]
    fn after_branch(&self, rank: usize, depth: usize) -> Tail<'a> {
        self.tail(rank, depth + 1)
    }

    #[inline]
    fn ends_at(&self, at: Prefix) -> bool {
        let first = self.span(at.lo);
        if at.depth > first.len as usize {
            return false;
        }
        let is_end = self.ends.is_end(first, at.depth);
        if is_end || at.hi - at.lo == 1 || self.unit == SubstringUnit::Chars {
            return is_end;
        }
        self.ends_in_others(at)
    }

    fn member(&self, at: Prefix) -> MemberId {
        MemberId(at.lo as u64 | (at.depth as u64) << 32)
    }

    /// Suffixes lie whole in the text: no hop is needed.
    #[inline]
    fn hop(&self, _: usize, rank: usize, depth: usize, visit: impl FnMut(u8) -> bool) -> bool {
        let rest = self.bytes(rank).get(depth..).unwrap_or_default();
        rest.iter().copied().all(visit)
    }
}
