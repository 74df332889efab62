//! Parts of a field's values that keep the numbers of the whole.

use std::sync::Arc;

use palmette_catalog_members::FieldSet;
use palmette_core::{
    Budget, Cursor, Interrupted, MemberId, MemberSet, MemberSpelling, VocabularyTrie,
};

/// The values that some items have, with the numbers that the values of all have.
///
/// Of a live catalog, values are numbered by the segments that have some, so that fewer items may
/// have other numbers. Cursors are the part's.
#[derive(Debug)]
pub(crate) struct NumberedPart {
    pub(crate) part: Arc<FieldSet>,
    /// Has all members of the part.
    pub(crate) whole: Arc<FieldSet>,
}

impl NumberedPart {
    fn number_of(&self, own: MemberId) -> Option<MemberId> {
        let mut text = Vec::new();
        self.part.text(own, &mut text);
        self.whole.find(std::str::from_utf8(&text).ok()?)
    }
}

impl MemberSet for NumberedPart {
    fn start(&self) -> Option<Cursor> {
        self.part.start()
    }

    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        self.part.advance(at, byte)
    }

    fn member(&self, at: &Cursor) -> Option<MemberId> {
        self.number_of(self.part.member(at)?)
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
        let first = ends.len();
        let found = self.part.effect(at, trie, node, mask, ends, budget);
        for (_, member) in &mut ends[first..] {
            *member = self.number_of(*member).unwrap_or(*member);
        }
        found
    }

    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        self.part.forced(at, bytes);
    }

    fn text(&self, member: MemberId, bytes: &mut Vec<u8>) {
        self.whole.text(member, bytes);
    }

    fn spell(&self, member: MemberId, spelling: MemberSpelling, bytes: &mut Vec<u8>) {
        self.whole.spell(member, spelling, bytes);
    }

    fn len(&self) -> u64 {
        self.part.len()
    }

    fn longest(&self) -> Option<usize> {
        self.whole.longest()
    }

    fn is_empty(&self) -> bool {
        self.part.is_empty()
    }
}
