//! Arrays of sorted strings: what each shares with the one before it, and its own bytes.

mod minima;
mod scan;
mod shared;
mod tails;
mod trie;

use palmette_core::MemberId;
use palmette_mapped::{SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use shared::SharedLengthsMeta;
use tails::{Tails, TailsBuilder, TailsMeta, TailsView};

pub(crate) use shared::{SharedLengths, SharedLengthsBuilder, SharedView};
pub(crate) use trie::{ImplicitTrie, Prefix, Tail};

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
    shared: SharedView<'a, u16>,
    tails: TailsView<'a>,
    len: usize,
    has_empty: bool,
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

impl StringsView<'_> {
    pub(crate) fn has_empty(&self) -> bool {
        self.has_empty
    }

    /// Adds the bytes of a string, from a depth on that it shares with the string at `lo` and all
    /// between.
    pub(crate) fn append_from(&self, lo: usize, rank: usize, depth: usize, bytes: &mut Vec<u8>) {
        self.hop(lo, rank, depth, |byte| {
            bytes.push(byte);
            true
        });
    }
}

impl<'a> ImplicitTrie<'a> for StringsView<'a> {
    type Long = u16;
    const ENDS_WITHIN: bool = false;

    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn root(&self) -> Option<Prefix> {
        let lo = usize::from(self.has_empty);
        (lo < self.len).then_some(Prefix { lo, hi: self.len, depth: 0 })
    }

    #[inline]
    fn lengths(&self) -> &SharedView<'a, u16> {
        &self.shared
    }

    #[inline]
    fn branch(&self, rank: usize) -> u8 {
        self.tails.branch(rank)
    }

    #[inline]
    fn tail(&self, rank: usize, depth: usize) -> Tail<'a> {
        let rest = self.tails.rest(rank);
        match depth.saturating_sub(self.shared.get(rank)) {
            0 => Tail { first: Some(self.tails.branch(rank)), after: rest },
            skipped => Tail::from_slice(rest.get(skipped - 1..).unwrap_or_default()),
        }
    }

    #[inline]
    fn after_branch(&self, rank: usize, _: usize) -> Tail<'a> {
        Tail::from_slice(self.tails.rest(rank))
    }

    #[inline]
    fn ends_at(&self, at: Prefix) -> bool {
        self.tail(at.lo, at.depth).first.is_none()
    }

    #[inline]
    fn member(&self, at: Prefix) -> MemberId {
        MemberId(at.lo as u64)
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
