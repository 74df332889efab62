//! Arrays of sorted strings: what each shares with the one before it, and its own bytes.

mod minima;
mod scan;
mod shared;
mod tails;

use palmette_mapped::{SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use shared::{SharedLengths, SharedLengthsBuilder, SharedLengthsMeta, SharedView};
use tails::{Tails, TailsBuilder, TailsMeta, TailsView};

/// Sorted distinct strings as an implicit trie. A string is its *rank*, a prefix is a range of
/// ranks.
///
/// Of string `r` are kept `shared(r)`, the bytes it shares with string `r - 1` (0 for the first),
/// its *branch*, the byte after those, and its *rest*, the bytes after that. Nothing shared is
/// stored twice.
///
/// Invariant, checked by [`check`](Self::check) and relied on by every descent: the children of a
/// prefix of `depth` bytes with the ranks `lo..hi` begin at `lo` and at each rank after it with
/// `shared(r) == depth`; the byte of a child is its first string's branch, or for the child at `lo`
/// lies in that string's own tail, as `shared(lo) <= depth`. So whatever a descent asks of a
/// range's first string lies in that string's own bytes: there are no blocks, pointers, or strings
/// to decode.
///
/// The empty string, where there is one, has rank 0 and a tail that says nothing: it is under no
/// prefix but the empty one, and the trie's root is [`root`](StringsView::root), without it.
///
/// Cost: 3.3 bytes a string beside its rest. Source: implicit tries over an LCP array, as suffix
/// arrays have them (Abouelhoda, Kurtz, Ohlebusch 2004, "child intervals"); we differ: bytes shared
/// are not stored, and minima of blocks take the place of a table of children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Strings {
    shared: SharedLengths,
    tails: Tails,
    has_empty: bool,
}

/// Sections of [`Strings`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StringsMeta {
    len: u64,
    has_empty: bool,
    shared: SharedLengthsMeta,
    tails: TailsMeta,
}

/// Strings in the making, which come in ascending order.
#[derive(Debug, Default)]
pub(crate) struct StringsBuilder {
    shared: SharedLengthsBuilder,
    tails: TailsBuilder,
    has_empty: bool,
    len: usize,
}

/// The slices of [`Strings`], looked up once for many questions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringsView<'a> {
    shared: SharedView<'a>,
    tails: TailsView<'a>,
    len: usize,
    has_empty: bool,
}

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
    fn from_slice(bytes: &'a [u8]) -> Self {
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

impl StringsBuilder {
    pub(crate) fn with_capacity(len: usize, rest_bytes: usize) -> Self {
        Self {
            shared: SharedLengthsBuilder::with_capacity(len),
            tails: TailsBuilder::with_capacity(len, rest_bytes),
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds the next string, which is larger than the one before and shares `shared` bytes with it.
    pub(crate) fn push(&mut self, text: &[u8], shared: usize) {
        self.shared.push(shared);
        match text.get(shared) {
            Some(&branch) => self.tails.push(branch, &text[shared + 1..]),
            None => {
                debug_assert!(text.is_empty() && self.len == 0, "strings ascend");
                self.has_empty = true;
                self.tails.push(0, &[]);
            }
        }
        self.len += 1;
    }

    pub(crate) fn finish(self) -> Strings {
        let Self { shared, tails, has_empty, .. } = self;
        Strings { shared: shared.finish(), tails: tails.finish(), has_empty }
    }
}

impl Strings {
    pub(crate) fn len(&self) -> usize {
        self.shared.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shared.bytes() + self.tails.bytes()
    }

    #[inline]
    pub(crate) fn view(&self) -> StringsView<'_> {
        StringsView {
            shared: self.shared.view(),
            tails: self.tails.view(),
            len: self.len(),
            has_empty: self.has_empty,
        }
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> StringsMeta {
        StringsMeta {
            len: self.len() as u64,
            has_empty: self.has_empty,
            shared: self.shared.save(out),
            tails: self.tails.save(out),
        }
    }

    pub(crate) fn load(meta: &StringsMeta, sections: &SectionsIn) -> Result<Self, String> {
        let shared = SharedLengths::load(&meta.shared, sections)?;
        let len = shared.len();
        if len as u64 != meta.len || len > u32::MAX as usize {
            return Err("another number of strings than it says".to_owned());
        }
        let tails = Tails::load(&meta.tails, len, sections)?;
        Ok(Self { shared, tails, has_empty: meta.has_empty && len > 0 })
    }

    /// Checks the arrays, and that the strings ascend, are none longer than `max_len`, and share as
    /// many bytes as they say; each is shown to `visit`.
    pub(crate) fn check(
        &self,
        max_len: usize,
        mut visit: impl FnMut(usize, &[u8]),
    ) -> Result<(), String> {
        self.shared.check()?;
        self.tails.check()?;
        let view = self.view();
        let mut text = Vec::new();
        for rank in 0..self.len() {
            let (shared, branch) = (view.shared(rank), view.tails.branch(rank));
            let rest = view.tails.rest(rank);
            if rank == 0 && self.has_empty {
                if (shared, branch, rest.len()) != (0, 0, 0) {
                    return Err("an empty string that is not".to_owned());
                }
                visit(0, &[]);
                continue;
            }
            let ascends = match text.get(shared) {
                Some(&before) => branch > before,
                None => shared == text.len(),
            };
            if !ascends || shared + 1 + rest.len() > max_len {
                return Err(format!(
                    "string {rank} does not ascend from the one before, or is too long"
                ));
            }
            text.truncate(shared);
            text.push(branch);
            text.extend_from_slice(rest);
            visit(rank, &text);
        }
        Ok(())
    }
}

impl<'a> StringsView<'a> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All strings but the empty one; `None` where there is no other.
    #[inline]
    pub(crate) fn root(&self) -> Option<Prefix> {
        let lo = usize::from(self.has_empty);
        (lo < self.len).then_some(Prefix { lo, hi: self.len, depth: 0 })
    }

    pub(crate) fn has_empty(&self) -> bool {
        self.has_empty
    }

    #[inline]
    pub(crate) fn shared(&self, rank: usize) -> usize {
        self.shared.get(rank)
    }

    /// The byte by which a string parts from the one before it.
    #[inline]
    pub(crate) fn branch(&self, rank: usize) -> u8 {
        self.tails.branch(rank)
    }

    /// Bytes of a string from `depth` on, where it shares no more with the one before it.
    #[inline]
    pub(crate) fn tail(&self, rank: usize, depth: usize) -> Tail<'a> {
        let rest = self.tails.rest(rank);
        match depth.saturating_sub(self.shared.get(rank)) {
            0 => Tail { first: Some(self.tails.branch(rank)), after: rest },
            skipped => Tail::from_slice(rest.get(skipped - 1..).unwrap_or_default()),
        }
    }

    /// Bytes of a string after its branch.
    #[inline]
    pub(crate) fn after_branch(&self, rank: usize) -> Tail<'a> {
        Tail::from_slice(self.tails.rest(rank))
    }

    /// The first string after `from` that begins a child of a prefix of `depth` bytes; `to` where
    /// there is none.
    #[inline]
    pub(crate) fn next_child(&self, from: usize, to: usize, depth: usize) -> usize {
        self.shared.next_at_most(from + 1, to, depth)
    }

    /// The first string of the child of a prefix in which string `at` is, where the prefix begins
    /// at `lo`.
    #[inline]
    pub(crate) fn child_of(&self, lo: usize, at: usize, depth: usize) -> usize {
        self.shared.prev_at_most(lo, at, depth)
    }

    /// Bytes that the strings of a range share; of one string, the most there can be.
    #[inline]
    pub(crate) fn shared_within(&self, lo: usize, hi: usize) -> usize {
        if hi - lo <= 1 { usize::MAX } else { self.shared.min_in(lo + 1, hi) }
    }

    /// The prefix that is one byte longer; `None` where no string goes on so.
    ///
    /// Cost: a look at each of the first few children, then a search by halves among the others.
    pub(crate) fn child(&self, at: Prefix, byte: u8) -> Option<Prefix> {
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
    pub(crate) fn descend(&self, from: Prefix, bytes: &[u8]) -> Option<Prefix> {
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

    /// True if the first string of a prefix ends there.
    #[inline]
    pub(crate) fn ends_at(&self, at: Prefix) -> bool {
        self.tail(at.lo, at.depth).first.is_none()
    }

    /// Adds the bytes of a string, from a depth on that it shares with the string at `lo` and all
    /// between.
    pub(crate) fn append_from(&self, lo: usize, rank: usize, depth: usize, bytes: &mut Vec<u8>) {
        self.hop(lo, rank, depth, |byte| {
            bytes.push(byte);
            true
        });
    }

    /// Shows a string's bytes from `depth` on, one after another, until `visit` says that it is
    /// enough; whether all were shown. Strings `lo..=rank` share `depth` bytes.
    ///
    /// What a string shares with the one before lies in tails of strings before: each hop is to the
    /// last one that has the next byte.
    #[inline]
    pub(crate) fn hop(
        &self,
        lo: usize,
        rank: usize,
        depth: usize,
        mut visit: impl FnMut(u8) -> bool,
    ) -> bool {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn strings(texts: &[&[u8]]) -> Strings {
        let (mut builder, mut before): (_, &[u8]) = (StringsBuilder::default(), &[]);
        for text in texts {
            let shared = before.iter().zip(*text).take_while(|(a, b)| a == b).count();
            builder.push(text, shared);
            before = text;
        }
        builder.finish()
    }

    proptest! {
        /// Checks what every descent relies on, for every prefix that there is.
        #[test]
        fn a_prefix_is_a_range_and_its_children_begin_where_strings_part(
            texts in prop::collection::btree_set(
                (0_usize..3, prop::collection::vec(0_u8..4, 0..6))
                    .prop_map(|(long, end)| [vec![b'x'; [0, 0, 254][long]], end].concat()), 0..60),
            other in 0_u8..6,
        ) {
            let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            let made = strings(&texts);
            prop_assert_eq!(made.check(1 << 16, |rank, text| assert_eq!(text, texts[rank])), Ok(()));
            let view = made.view();
            let first = usize::from(view.has_empty());
            let prefixes: BTreeSet<&[u8]> =
                texts.iter().flat_map(|text| (0..=text.len()).map(|len| &text[..len])).collect();
            for prefix in prefixes {
                let is_under = |&rank: &usize| texts[rank].starts_with(prefix);
                let mut ranks = (first..texts.len()).filter(is_under);
                let Some(lo) = ranks.next() else { continue };
                let at = Prefix { lo, hi: ranks.next_back().map_or(lo + 1, |last| last + 1), depth: prefix.len() };
                prop_assert_eq!(view.descend(view.root().unwrap(), prefix), Some(at));
                prop_assert!(view.shared(lo) <= at.depth);
                prop_assert!((lo + 1..at.hi).all(|rank| view.shared(rank) >= at.depth));
                prop_assert_eq!(view.ends_at(at), texts[lo] == prefix);
                prop_assert_eq!(
                    view.tail(lo, at.depth).bytes().collect::<Vec<_>>(), &texts[lo][at.depth..]);
                // Children: where strings part, each by a larger byte than the one before.
                let (mut from, mut before) = (lo, None);
                while from < at.hi {
                    let to = view.next_child(from, at.hi, at.depth);
                    let byte = texts[from].get(at.depth).copied();
                    prop_assert!((from..to).all(|rank| texts[rank].get(at.depth).copied() == byte));
                    prop_assert!(before.is_none_or(|before| before < byte));
                    if from > lo {
                        prop_assert_eq!(Some(view.branch(from)), byte);
                    }
                    if let Some(byte) = byte {
                        let child = Prefix { lo: from, hi: to, depth: at.depth + 1 };
                        prop_assert_eq!(view.child(at, byte), Some(child));
                    }
                    for rank in from..to {
                        prop_assert_eq!(view.child_of(lo, rank, at.depth), from);
                    }
                    (from, before) = (to, Some(byte));
                }
                let goes_on = texts.iter().any(|text| text.strip_prefix(prefix).is_some_and(|rest| rest.first() == Some(&other)));
                prop_assert_eq!(view.child(at, other).is_some(), goes_on);
            }
        }
    }
}
