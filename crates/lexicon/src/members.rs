//! Members of an implicit trie as they are spelled: what grammars ask of a set.

use std::sync::Arc;

use palmette_core::vocabulary_trie::Child;
use palmette_core::{Budget, Cursor, Interrupted, MemberId, MemberSpelling, VocabularyTrie};

use crate::arrays::{ImplicitTrie, Prefix};
use crate::cursor::{Phase, Place};
use crate::escapes::{begun_after, escaped_after, escapes_begun};
use crate::forced::forced;
use crate::join::{Frames, Join, Sink};
use crate::selection::{EveryRank, RankFilter};
use crate::tables::{HOT_STRINGS, Key, Table, TableSink, Tables};

/// About so many chosen strings under a hot prefix and fewer are followed, rather than its table
/// read or made.
const TABLE_MEMBERS: usize = 16;

/// Chosen members of an implicit trie in a spelling, with the tables of its hot prefixes.
///
/// Sets of lexicons and of documents are this; they differ by the trie.
#[derive(Debug)]
pub(crate) struct SpelledMembers<'a, V, C> {
    pub(crate) strings: V,
    pub(crate) chosen: C,
    pub(crate) spelling: MemberSpelling,
    pub(crate) tables: &'a Tables,
}

impl<'a, V: ImplicitTrie<'a>, C: RankFilter> SpelledMembers<'a, V, C> {
    pub(crate) fn start(&self) -> Option<Cursor> {
        let at = self.strings.root().filter(|&root| self.is_any(root))?;
        Some(Place { at, phase: Phase::Inside }.to_cursor())
    }

    pub(crate) fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        self.advance_place(self.place(at)?, byte).map(Place::to_cursor)
    }

    /// The member whose string ends at a place, where that is a place after its spelling.
    pub(crate) fn member(&self, at: &Cursor) -> Option<MemberId> {
        let place = self.place(at)?;
        let is_whole = match place.phase {
            Phase::Closed => true,
            Phase::Escape(_) => false,
            Phase::Inside => self.spelling.close().is_none() && self.is_member(place.at),
        };
        is_whole.then(|| self.strings.member(place.at))
    }

    pub(crate) fn effect(
        &self,
        at: &Cursor,
        (trie, node): (&VocabularyTrie, u32),
        mask: &mut [u32],
        ends: &mut Vec<(u32, MemberId)>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        let Some(place) = self.place(at) else { return Ok(()) };
        budget.spend(1)?;
        if trie.child_lists().is_leaf(node) {
            return Ok(());
        }
        let into = &mut MaskSink { trie, mask, ends };
        match place.phase {
            Phase::Closed => {
                ends.push((node, self.strings.member(place.at)));
                Ok(())
            }
            Phase::Inside => self.inside(place.at, (trie, node), into, budget),
            Phase::Escape(begun) => self.in_escape((place.at, begun), (trie, node), into, budget),
        }
    }

    pub(crate) fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        if let Some(place) = self.place(at) {
            forced(self.strings, self.chosen, self.spelling, place, bytes);
        }
    }

    fn place(&self, at: &Cursor) -> Option<Place> {
        Place::from_cursor(at, self.strings.len())
    }

    /// True if a prefix has a member.
    #[inline]
    fn is_any(&self, at: Prefix) -> bool {
        self.chosen.next(at.lo, at.hi).is_some()
    }

    /// True if a member is the bytes of a prefix.
    #[inline]
    fn is_member(&self, at: Prefix) -> bool {
        let is_chosen = C::IS_ALL || self.is_any(Prefix { hi: at.lo + 1, ..at });
        at.depth > 0 && is_chosen && self.strings.ends_at(at)
    }

    /// The prefix that is one byte longer, where it has a member.
    fn child(&self, at: Prefix, byte: u8) -> Option<Prefix> {
        self.strings.child(at, byte).filter(|&child| self.is_any(child))
    }

    fn advance_place(&self, place: Place, byte: u8) -> Option<Place> {
        let Place { at, phase } = place;
        let begun = match phase {
            Phase::Closed => return None,
            Phase::Inside if self.spelling.close() == Some(byte) => {
                let whole = Prefix { hi: at.lo + 1, ..at };
                return self.is_member(at).then_some(Place { at: whole, phase: Phase::Closed });
            }
            Phase::Inside if self.spelling == MemberSpelling::Raw => {
                return Some(Place { at: self.child(at, byte)?, phase });
            }
            Phase::Inside if self.spelling.escape(byte).is_none() => {
                return Some(Place { at: self.child(at, byte)?, phase });
            }
            Phase::Inside => 0,
            Phase::Escape(begun) => begun,
        };
        let mut after = escaped_after(self.spelling, begun, byte);
        let child = after.find_map(|escaped| self.child(at, escaped))?;
        Some(match begun_after(begun, byte) {
            Some(begun) => Place { at, phase: Phase::Escape(begun) },
            None => Place { at: child, phase: Phase::Inside },
        })
    }

    fn inside(
        &self,
        at: Prefix,
        (trie, node): (&VocabularyTrie, u32),
        into: &mut MaskSink<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        if at.hi - at.lo < HOT_STRINGS || self.chosen.estimate(at.lo, at.hi) <= TABLE_MEMBERS {
            return self.join(self.chosen, trie, into, budget).below(at, node);
        }
        let table = self.table(at, trie, node, budget)?;
        let MaskSink { mask, ends, .. } = into;
        budget.spend(table.fill(self.chosen, mask, |node, member| ends.push((node, member))))
    }

    /// The table of a hot prefix.
    pub(crate) fn table(
        &self,
        at: Prefix,
        trie: &VocabularyTrie,
        node: u32,
        budget: &mut Budget<'_>,
    ) -> Result<Arc<Table>, Interrupted> {
        let key = Key::new(trie.id(), node, at, self.spelling);
        self.tables.get(key, || {
            let mut join = self.join(EveryRank, trie, TableSink::default(), budget);
            join.below(at, node)?;
            Ok(join.sink.finish(trie))
        })
    }

    /// Does within an escape what [`inside`](Self::inside) does within a string. For each byte
    /// whose escape it may be, the remainder of that is followed, and then the strings with the
    /// byte.
    fn in_escape(
        &self,
        (at, begun): (Prefix, usize),
        (trie, node): (&VocabularyTrie, u32),
        into: &mut MaskSink<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        for (byte, rest) in escapes_begun(self.spelling, begun) {
            let Some(child) = self.child(at, byte) else { continue };
            let mut join = self.join(self.chosen, trie, &mut *into, budget);
            let node = join.along(node, rest, child.lo, child.hi)?;
            if let Some(node) = node.filter(|node| !node.is_leaf()) {
                join.below(child, node.node())?;
            }
        }
        Ok(())
    }

    fn join<'j, 'b, D: RankFilter, S: Sink>(
        &self,
        chosen: D,
        trie: &'j VocabularyTrie,
        sink: S,
        budget: &'j mut Budget<'b>,
    ) -> Join<'a, 'j, 'b, V, D, S> {
        Join {
            strings: self.strings,
            children: trie.child_lists(),
            spelling: self.spelling,
            chosen,
            sink,
            budget,
            open: Frames::new(),
        }
    }
}

/// Tokens on their way into a mask.
#[derive(Debug)]
struct MaskSink<'a> {
    trie: &'a VocabularyTrie,
    mask: &'a mut [u32],
    ends: &'a mut Vec<(u32, MemberId)>,
}

impl Sink for &mut MaskSink<'_> {
    #[inline]
    fn live(&mut self, node: Child, _: usize, _: usize) {
        node.mark(self.trie, self.mask);
    }

    fn end(&mut self, node: u32, member: MemberId) {
        self.ends.push((node, member));
    }
}
