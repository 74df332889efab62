//! Sets of a lexicon's strings, with a spelling, as grammars ask for them.

use std::sync::Arc;

use palmette_core::{
    Budget, Cursor, Interrupted, MemberId, MemberSet, MemberSpelling, VocabularyTrie,
};

use crate::arrays::{ImplicitTrie, Prefix, StringsView};
use crate::lexicon::Lexicon;
use crate::members::SpelledMembers;
use crate::selection::{EveryRank, RankFilter, Selection, with_filter};
use crate::tables::HOT_STRINGS;

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
    /// Number of words of a cursor: the strings that begin so, and how much of a spelling was read.
    /// The second is the same in every lexicon, for sets that are written alike.
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

    fn spelled<C: RankFilter>(&self, chosen: C) -> SpelledMembers<'_, StringsView<'_>, C> {
        let Self { lexicon, spelling, .. } = self;
        let (strings, tables) = (lexicon.view(), lexicon.tables());
        SpelledMembers { strings, chosen, spelling: *spelling, tables }
    }
}

impl MemberSet for LexiconSet {
    fn start(&self) -> Option<Cursor> {
        with_filter!(&self.selection, chosen => self.spelled(chosen).start())
    }

    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        with_filter!(&self.selection, chosen => self.spelled(chosen).advance(at, byte))
    }

    fn member(&self, at: &Cursor) -> Option<MemberId> {
        with_filter!(&self.selection, chosen => self.spelled(chosen).member(at))
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
        with_filter!(&self.selection, chosen => {
            self.spelled(chosen).effect(at, (trie, node), mask, ends, budget)
        })
    }

    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        with_filter!(&self.selection, chosen => self.spelled(chosen).forced(at, bytes));
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
        let is_empty_chosen =
            has_empty && with_filter!(&self.selection, chosen => chosen.next(0, 1).is_some());
        len - u64::from(is_empty_chosen)
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
        &self,
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
        let members =
            SpelledMembers { strings, chosen: EveryRank, spelling, tables: self.tables() };
        for at in prefixes {
            if self.tables().is_full() {
                break;
            }
            members.table(at, trie, node, budget)?;
        }
        Ok(())
    }
}
