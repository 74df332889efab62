//! The implicit trie: ascending strings, of which a prefix is a range of ranks.

use palmette_core::MemberId;

use super::scan::Number;
use super::shared::SharedView;

/// A prefix of some strings: their ranks, and the bytes they share. There is at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) lo: usize,
    pub(crate) hi: usize,
    pub(crate) depth: usize,
}

/// Bytes of one string from a depth on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail<'a> {
    /// `None` where the string ends at the depth.
    pub(crate) first: Option<u8>,
    pub(crate) after: &'a [u8],
}

impl<'a> Tail<'a> {
    #[inline]
    pub(crate) fn from_slice(bytes: &'a [u8]) -> Self {
        match bytes.split_first() {
            Some((&first, after)) => Self { first: Some(first), after },
            None => Self { first: None, after: &[] },
        }
    }

    /// The tail without its first byte.
    #[inline]
    pub(crate) fn after_first(self) -> Self {
        Self::from_slice(self.after)
    }

    pub(crate) fn len(&self) -> usize {
        self.after.len() + usize::from(self.first.is_some())
    }

    /// The bytes, each once.
    #[inline]
    pub(crate) fn bytes(self) -> impl Iterator<Item = u8> + 'a {
        self.first.into_iter().chain(self.after.iter().copied())
    }
}

/// An implicit trie: ascending distinct strings with the lengths that neighbours share.
///
/// Joins, cursors and forced bytes are written for any, so that strings that are stored and parts
/// of a text are read alike. What an implementation says of its strings follows the invariant of
/// [`Strings`](super::Strings).
pub(crate) trait ImplicitTrie<'a>: Copy {
    /// Lengths that a byte does not hold.
    type Long: Number;
    /// Flag of strings within which members end, and not only with them.
    const ENDS_WITHIN: bool;

    fn len(&self) -> usize;

    /// All strings but the empty one; `None` where there is no other.
    fn root(&self) -> Option<Prefix>;

    fn lengths(&self) -> &SharedView<'a, Self::Long>;

    /// The byte by which a string parts from the one before it.
    fn branch(&self, rank: usize) -> u8;

    /// Bytes of a string from `depth` on, where it shares no more with the one before it.
    fn tail(&self, rank: usize, depth: usize) -> Tail<'a>;

    /// Bytes of a string after its branch, which is at `depth`.
    fn after_branch(&self, rank: usize, depth: usize) -> Tail<'a>;

    /// True if a member is the bytes of a prefix, which has some. Where members end with strings
    /// alone, it is the first string.
    fn ends_at(&self, at: Prefix) -> bool;

    /// The member that ends at a prefix.
    fn member(&self, at: Prefix) -> MemberId;

    #[inline]
    fn shared(&self, rank: usize) -> usize {
        self.lengths().get(rank)
    }

    /// The first string after `from` that begins a child of a prefix of `depth` bytes; `to` where
    /// there is none.
    #[inline]
    fn next_child(&self, from: usize, to: usize, depth: usize) -> usize {
        self.lengths().next_at_most(from + 1, to, depth)
    }

    /// The first string of the child of a prefix in which string `at` is, where the prefix begins
    /// at `lo`.
    #[inline]
    fn child_of(&self, lo: usize, at: usize, depth: usize) -> usize {
        self.lengths().prev_at_most(lo, at, depth)
    }

    /// Bytes that the strings of a range share; of one string, the most there can be.
    #[inline]
    fn shared_within(&self, lo: usize, hi: usize) -> usize {
        if hi - lo <= 1 { usize::MAX } else { self.lengths().min_in(lo + 1, hi) }
    }

    /// The prefix that is one byte longer; `None` where no string goes on so.
    ///
    /// Cost: a look at each of the first few children, then a search by halves among the others.
    fn child(&self, at: Prefix, byte: u8) -> Option<Prefix> {
        const LOOKS: usize = 6;
        let Prefix { lo, hi, depth } = at;
        let made = |lo, hi| Some(Prefix { lo, hi, depth: depth + 1 });
        let mut child = self.next_child(lo, hi, depth);
        match self.tail(lo, depth).first {
            Some(first) if first == byte => return made(lo, child),
            Some(first) if first > byte => return None,
            _ => {}
        }
        for _ in 0..LOOKS {
            if child == hi {
                return None;
            }
            let next = self.next_child(child, hi, depth);
            match self.branch(child).cmp(&byte) {
                std::cmp::Ordering::Less => child = next,
                std::cmp::Ordering::Equal => return made(child, next),
                std::cmp::Ordering::Greater => return None,
            }
        }
        // Children at `child` and after it, up to `end`, are looked at by halves.
        let mut end = hi;
        while child < end {
            let middle = self.child_of(child, child + (end - child) / 2, depth);
            match self.branch(middle).cmp(&byte) {
                std::cmp::Ordering::Less => child = self.next_child(middle, end, depth),
                std::cmp::Ordering::Equal => {
                    return made(middle, self.next_child(middle, hi, depth));
                }
                std::cmp::Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// The prefix that is so many bytes longer; `None` where no string goes on so.
    fn descend(&self, from: Prefix, bytes: &[u8]) -> Option<Prefix> {
        let mut at = from;
        for (read, &byte) in bytes.iter().enumerate() {
            if at.hi - at.lo == 1 {
                let tail = self.tail(at.lo, at.depth);
                let wanted = &bytes[read..];
                let goes_on =
                    tail.len() >= wanted.len() && tail.bytes().zip(wanted).all(|(a, b)| a == *b);
                return goes_on.then_some(Prefix { depth: at.depth + wanted.len(), ..at });
            }
            at = self.child(at, byte)?;
        }
        Some(at)
    }

    /// Shows a string's bytes from `depth` on, one after another, until `visit` says that it is
    /// enough; whether all were shown. Strings `lo..=rank` share `depth` bytes.
    ///
    /// What a string shares with the one before lies in tails of strings before: each hop is to the
    /// last one that has the next byte.
    #[inline]
    fn hop(&self, lo: usize, rank: usize, depth: usize, mut visit: impl FnMut(u8) -> bool) -> bool {
        let (mut lo, mut depth) = (lo, depth);
        loop {
            let with_byte = if lo == rank { rank } else { self.child_of(lo, rank, depth) };
            // Bytes that string `rank` has from this one.
            let shared = self.shared_within(with_byte, rank + 1);
            for byte in self.tail(with_byte, depth).bytes().take(shared.saturating_sub(depth)) {
                if !visit(byte) {
                    return false;
                }
                depth += 1;
            }
            if with_byte == rank {
                return true;
            }
            lo = with_byte + 1;
        }
    }
}
