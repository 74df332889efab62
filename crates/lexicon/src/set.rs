//! Sets of a lexicon's strings, with a spelling, as grammars ask for them.

use std::sync::Arc;

use palmette_core::vocabulary_trie::Child;
use palmette_core::{
    Budget, Cursor, Interrupted, MemberId, MemberSet, MemberSpelling, VocabularyTrie,
};

use crate::arrays::{Prefix, StringsView};
use crate::cursor::{Phase, Place};
use crate::escapes::{begun_after, escaped_after, escapes_begun};
use crate::forced::forced;
use crate::join::{Frames, Join, Sink};
use crate::lexicon::Lexicon;
use crate::selection::{EveryRank, RankFilter, Selection, with_filter};
use crate::tables::{HOT_STRINGS, Key, Table, TableSink};

/// About so many chosen strings under a hot prefix and fewer are followed, rather than its table
/// read or made.
const TABLE_MEMBERS: usize = 16;

/// Some strings of a lexicon, each with one spelling: a set of texts that a grammar may have for a
/// part.
///
/// A member is the rank of its string; the empty string is no member.
///
/// ```
/// use palmette_core::MemberSet;
/// use palmette_lexicon::{Lexicon, LexiconSet, Selection, MemberSpelling};
///
/// let lexicon = Lexicon::from_texts(["a \"b\"", "a c"])?;
/// let set = LexiconSet::new(lexicon.into(), Selection::All, MemberSpelling::JsonString)?;
/// let mut at = set.start().expect("there are members");
/// for &byte in br#"a \"b\""# {
///     at = set.advance(&at, byte).expect("a member goes on so");
/// }
/// assert_eq!(set.member(&at), None);
/// let mut forced = Vec::new();
/// set.forced(&at, &mut forced);
/// assert_eq!(forced, b"\"");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LexiconSet {
    lexicon: Arc<Lexicon>,
    selection: Selection,
    spelling: MemberSpelling,
}

/// Strings that make no set; the message says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// A string that no JSON text can hold.
    #[error(
        "string {rank} of the lexicon, {shown:?} with other bytes, is not UTF-8 and cannot be written \
         in JSON; leave it out of the lexicon"
    )]
    NotUtf8 {
        /// Rank of the string.
        rank: usize,
        /// Beginning of the string, with bytes that are no text replaced.
        shown: String,
    },
    /// Ranks of another lexicon.
    #[error(
        "a set over {num_ranks} ranks for a lexicon of {len} strings; make it for this lexicon"
    )]
    OtherRanks {
        /// Ranks that the set is over.
        num_ranks: u64,
        /// Strings of the lexicon.
        len: usize,
    },
    /// A list that is none of this lexicon's.
    #[error("a list of ranks that does not ascend, or goes past the {len} strings of the lexicon")]
    BadList {
        /// Strings of the lexicon.
        len: usize,
    },
}

impl LexiconSet {
    /// Number of words of a cursor.
    pub const CURSOR_WORDS: usize = 2;

    /// The strings of a selection.
    ///
    /// # Errors
    /// When the selection is over other ranks than the lexicon's, or strings are to be written in
    /// JSON and one is no UTF-8.
    pub fn new(
        lexicon: Arc<Lexicon>,
        selection: Selection,
        spelling: MemberSpelling,
    ) -> Result<Self, SetError> {
        let len = lexicon.len();
        match &selection {
            Selection::All => {}
            Selection::Ranks(ranks) if ranks.num_ranks() == len as u64 => {}
            Selection::Ranks(ranks) => {
                return Err(SetError::OtherRanks { num_ranks: ranks.num_ranks(), len });
            }
            Selection::List(list) => {
                let is_below = list.last().is_none_or(|&last| (last as usize) < len);
                if !is_below || !list.is_sorted_by(|a, b| a < b) {
                    return Err(SetError::BadList { len });
                }
            }
        }
        if let Some(rank) =
            lexicon.first_not_utf8().filter(|_| spelling == MemberSpelling::JsonString)
        {
            let shown = String::from_utf8_lossy(&lexicon.text(rank)).chars().take(40).collect();
            return Err(SetError::NotUtf8 { rank, shown });
        }
        Ok(Self { lexicon, selection, spelling })
    }

    /// The lexicon.
    pub fn lexicon(&self) -> &Arc<Lexicon> {
        &self.lexicon
    }

    /// The strings of the lexicon that are members, the empty one aside.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Returns the spelling in which members are written.
    pub fn spelling(&self) -> MemberSpelling {
        self.spelling
    }

    fn place(&self, at: &Cursor, strings: &StringsView<'_>) -> Option<Place> {
        Place::from_cursor(at, strings)
    }

    /// True if a prefix has a member.
    #[inline]
    pub(crate) fn is_any(&self, at: Prefix) -> bool {
        self.next_chosen(at.lo, at.hi).is_some()
    }

    /// The first rank in `from..to` that is chosen.
    #[inline]
    pub(crate) fn next_chosen(&self, from: usize, to: usize) -> Option<usize> {
        with_filter!(&self.selection, chosen => chosen.next(from, to))
    }

    /// The prefix that is one byte longer, where it has a member.
    fn child(&self, strings: &StringsView<'_>, at: Prefix, byte: u8) -> Option<Prefix> {
        strings.child(at, byte).filter(|&child| self.is_any(child))
    }

    fn advance_place(&self, strings: &StringsView<'_>, place: Place, byte: u8) -> Option<Place> {
        let Place { at, phase } = place;
        let begun = match phase {
            Phase::Closed => return None,
            Phase::Inside if self.spelling.close() == Some(byte) => {
                let whole = Prefix { hi: at.lo + 1, ..at };
                let is_member = strings.ends_at(at) && self.is_any(whole);
                return is_member.then_some(Place { at: whole, phase: Phase::Closed });
            }
            Phase::Inside if self.spelling == MemberSpelling::Raw => {
                return Some(Place { at: self.child(strings, at, byte)?, phase });
            }
            Phase::Inside if self.spelling.escape(byte).is_none() => {
                return Some(Place { at: self.child(strings, at, byte)?, phase });
            }
            Phase::Inside => 0,
            Phase::Escape(begun) => begun,
        };
        let mut after = escaped_after(self.spelling, begun, byte);
        let child = after.find_map(|escaped| self.child(strings, at, escaped))?;
        Some(match begun_after(begun, byte) {
            Some(begun) => Place { at, phase: Phase::Escape(begun) },
            None => Place { at: child, phase: Phase::Inside },
        })
    }

    /// The member whose string ends at a place, where that is a place after its spelling.
    fn member_at(&self, strings: &StringsView<'_>, place: Place) -> Option<MemberId> {
        let at = place.at;
        let is_whole = match place.phase {
            Phase::Closed => true,
            Phase::Escape(_) => false,
            Phase::Inside => self.spelling.close().is_none() && at.depth > 0 && strings.ends_at(at),
        };
        let is_member = is_whole && self.is_any(Prefix { hi: at.lo + 1, ..at });
        is_member.then_some(MemberId(at.lo as u64))
    }
}

impl MemberSet for LexiconSet {
    fn start(&self) -> Option<Cursor> {
        let at = self.lexicon.view().root().filter(|&root| self.is_any(root))?;
        Some(Place { at, phase: Phase::Inside }.to_cursor())
    }

    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        let strings = self.lexicon.view();
        let place = self.place(at, &strings)?;
        self.advance_place(&strings, place, byte).map(Place::to_cursor)
    }

    fn member(&self, at: &Cursor) -> Option<MemberId> {
        let strings = self.lexicon.view();
        self.member_at(&strings, self.place(at, &strings)?)
    }

    fn effect(
        &self,
        at: &Cursor,
        trie: &VocabularyTrie,
        node: u32,
        mask: &mut [u32],
        ends: &mut Vec<(u32, MemberId)>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        let strings = self.lexicon.view();
        let Some(place) = self.place(at, &strings) else { return Ok(()) };
        budget.spend(1)?;
        if trie.child_lists().is_leaf(node) {
            return Ok(());
        }
        let effect = Effect { set: self, strings, trie, node };
        let into = &mut MaskSink { trie, mask, ends };
        match place.phase {
            Phase::Closed => {
                ends.push((node, MemberId(place.at.lo as u64)));
                Ok(())
            }
            Phase::Inside => {
                with_filter!(&self.selection, chosen => effect.inside(chosen, place.at, into, budget))
            }
            Phase::Escape(begun) => {
                let at = (place.at, begun);
                with_filter!(&self.selection, chosen => effect.in_escape(chosen, at, into, budget))
            }
        }
    }

    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        let strings = self.lexicon.view();
        if let Some(place) = self.place(at, &strings) {
            let spelling = self.spelling;
            with_filter!(&self.selection, chosen => forced(strings, chosen, spelling, place, bytes));
        }
    }

    fn text(&self, member: MemberId, bytes: &mut Vec<u8>) {
        self.lexicon.append_text(member.0 as usize, bytes);
    }

    fn len(&self) -> u64 {
        let has_empty = self.lexicon.view().has_empty();
        let len = match &self.selection {
            Selection::All => self.lexicon.len() as u64,
            Selection::Ranks(ranks) => ranks.len(),
            Selection::List(list) => list.len() as u64,
        };
        let is_empty_chosen = has_empty && self.is_any(Prefix { lo: 0, hi: 1, depth: 0 });
        len - u64::from(is_empty_chosen)
    }
}

/// Question of what tokens below a node do from a place.
#[derive(Clone, Copy)]
struct Effect<'a> {
    set: &'a LexiconSet,
    strings: StringsView<'a>,
    trie: &'a VocabularyTrie,
    node: u32,
}

impl Effect<'_> {
    fn inside<C: RankFilter>(
        self,
        chosen: C,
        at: Prefix,
        into: &mut MaskSink<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        if at.hi - at.lo < HOT_STRINGS || chosen.estimate(at.lo, at.hi) <= TABLE_MEMBERS {
            return self.join(chosen, into, budget).below(at, self.node);
        }
        let table = self.table(at, budget)?;
        let MaskSink { mask, ends, .. } = into;
        let end = |node, rank| ends.push((node, MemberId(u64::from(rank))));
        budget.spend(table.fill(chosen, mask, end))
    }

    /// The table of a hot prefix.
    fn table(self, at: Prefix, budget: &mut Budget<'_>) -> Result<Arc<Table>, Interrupted> {
        let Self { set, trie, node, .. } = self;
        let key = Key::new(trie.id(), node, at, set.spelling);
        set.lexicon.tables().get(key, || {
            let mut join = self.join(EveryRank, TableSink::default(), budget);
            join.below(at, node)?;
            Ok(join.sink.finish(trie))
        })
    }

    /// Does within an escape what [`inside`](Self::inside) does within a string. For each byte
    /// whose escape it may be, the remainder of that is followed, and then the strings with the
    /// byte.
    fn in_escape<C: RankFilter>(
        self,
        chosen: C,
        (at, begun): (Prefix, usize),
        into: &mut MaskSink<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        for (byte, rest) in escapes_begun(self.set.spelling, begun) {
            let Some(child) = self.set.child(&self.strings, at, byte) else { continue };
            let mut join = self.join(chosen, &mut *into, budget);
            let node = join.along(self.node, rest, child.lo, child.hi)?;
            if let Some(node) = node.filter(|node| !node.is_leaf()) {
                join.below(child, node.node())?;
            }
        }
        Ok(())
    }

    fn join<'a, 'b, C: RankFilter, S: Sink>(
        &'a self,
        chosen: C,
        sink: S,
        budget: &'a mut Budget<'b>,
    ) -> Join<'a, 'b, C, S> {
        Join {
            strings: self.strings,
            children: self.trie.child_lists(),
            spelling: self.set.spelling,
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

    fn end(&mut self, node: u32, rank: usize) {
        self.ends.push((node, MemberId(rank as u64)));
    }
}

impl Lexicon {
    /// Makes the tables of all prefixes of `min_strings` and more, the largest first, up to the
    /// bytes that tables may take: for a lexicon that was just opened or made, before requests
    /// come. `node` is the node of the trie that is begun at, 0 where a text of the grammar is
    /// begun.
    ///
    /// # Errors
    /// When the budget is used up or called off; tables made before are kept.
    pub fn prepare_tables(
        self: &Arc<Self>,
        trie: &VocabularyTrie,
        node: u32,
        spelling: MemberSpelling,
        min_strings: usize,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        let strings = self.view();
        let min_strings = min_strings.max(HOT_STRINGS);
        let mut prefixes: Vec<Prefix> = Vec::new();
        let mut open: Vec<Prefix> = strings.root().into_iter().collect();
        while let Some(at) = open.pop().filter(|at| at.hi - at.lo >= min_strings) {
            budget.spend(1)?;
            prefixes.push(at);
            let (mut lo, depth) = (at.lo, at.depth);
            while lo < at.hi {
                let hi = strings.next_child(lo, at.hi, depth);
                if hi - lo >= min_strings {
                    open.push(Prefix { lo, hi, depth: depth + 1 });
                }
                lo = hi;
            }
        }
        prefixes.sort_by_key(|at| std::cmp::Reverse(at.hi - at.lo));
        let set = LexiconSet { lexicon: Arc::clone(self), selection: Selection::All, spelling };
        for at in prefixes {
            if self.tables().is_full() {
                break;
            }
            Effect { set: &set, strings, trie, node }.table(at, budget)?;
        }
        Ok(())
    }
}
