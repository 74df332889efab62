//! Member sets: the texts that a part of a grammar stands for, as one request sees them.

use std::fmt::Debug;

use smallvec::SmallVec;

use crate::{Budget, Interrupted, MemberSpelling, VocabularyTrie};

/// A set of byte texts as one request sees it, read byte by byte and token by token.
///
/// A grammar names a set and knows none of its texts; catalogs and lexicons hold texts and know no
/// grammar. A *spelling* is what is written of a member, such as its JSON string with the closing
/// quote; all bytes here are bytes of spellings. No spelling is empty.
///
/// Laws, for a cursor `at` that was reached by the bytes `read`:
/// - `advance(at, b)` is some exactly where a spelling begins with `read` and `b`;
/// - `member(at)` is some exactly where `read` is a spelling;
/// - cursors that are equal have equal futures;
/// - `effect` is what `advance` and `member` say along every token.
pub trait MemberSet: Send + Sync + Debug {
    /// The cursor before the first byte; `None` where the set has no member.
    fn start(&self) -> Option<Cursor>;

    /// The cursor after a byte; `None` where no spelling continues with it.
    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor>;

    /// The member whose spelling has been read whole. Others may go on from here.
    fn member(&self, at: &Cursor) -> Option<MemberId>;

    /// Fills in what tokens do from a cursor. Of the tokens strictly below `node` of the trie,
    /// whose bytes after that node's are read from `at`: sets the bit in `mask` of each that is
    /// consumed whole. Adds to `ends` each node, `node` itself included, that has nodes below it
    /// and where a spelling has been read whole, with its member, each pair once.
    ///
    /// `mask` is a row over the vocabulary, in the layout of [`mask`](crate::mask).
    ///
    /// # Errors
    /// When the budget, of which each visited node takes a unit, is used up or called off. Bits and
    /// ends are then those that were met before.
    fn effect(
        &self,
        at: &Cursor,
        trie: &VocabularyTrie,
        node: u32,
        mask: &mut [u32],
        ends: &mut Vec<(u32, MemberId)>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted>;

    /// Adds the bytes that every spelling has from a cursor on, up to where they part or one of
    /// them ends.
    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>);

    /// Adds the text of a member, which is not its spelling.
    ///
    /// # Panics
    /// May panic where the set has no such member.
    fn text(&self, member: MemberId, bytes: &mut Vec<u8>);

    /// Adds the spelling of a member, `spelling` being that of the set's texts.
    ///
    /// # Panics
    /// May panic where the set has no such member.
    fn spell(&self, member: MemberId, spelling: MemberSpelling, bytes: &mut Vec<u8>) {
        let mut text = Vec::new();
        self.text(member, &mut text);
        spelling.append(&text, bytes);
    }

    /// Number of members.
    fn len(&self) -> u64;

    /// A bound on the bytes of a spelling, where one is known.
    fn longest(&self) -> Option<usize> {
        None
    }

    /// True if there is no member.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A place within the spellings of a [`MemberSet`]: words that only the set reads, compared and
/// hashed as words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor(SmallVec<[u64; 4]>);

impl Cursor {
    /// A cursor of these words.
    pub fn new(words: &[u64]) -> Self {
        Self(SmallVec::from_slice(words))
    }

    /// The words.
    pub fn words(&self) -> &[u64] {
        &self.0
    }
}

/// A member of a set, numbered by the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);
