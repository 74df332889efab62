//! Places within members: a cursor of a bound set, and the members that a text has had.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use palmette_core::{Binding, Cursor, MemberId, MemberSet, SlotId};

use crate::TerminalId;

/// A member in progress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberPlace {
    /// The terminal that the member is a lexeme of.
    pub terminal: TerminalId,
    /// The terminal's slot.
    pub slot: SlotId,
    /// Place within the spellings of the set, after the bytes read.
    pub cursor: Cursor,
    /// The set, where open scopes make it another than the slot's.
    pub(super) scoped: ScopedSet,
    /// Offset of its first byte, while members are [traced](crate::Recognizer::members); else 0.
    pub(super) begin: usize,
}

/// Set of a slot within open scopes; `None` where it is the slot's own. It follows from slot and
/// scopes, by which places are compared.
#[derive(Clone, Debug)]
pub(super) struct ScopedSet(pub(super) Option<Arc<dyn MemberSet>>);

impl MemberPlace {
    /// The set that the member is one of.
    #[inline]
    pub fn set<'a>(&'a self, binding: &'a Binding) -> &'a dyn MemberSet {
        match &self.scoped.0 {
            Some(scoped) => &**scoped,
            None => binding.set(self.slot),
        }
    }

    /// The set that the member is one of, to be kept.
    pub fn shared_set(&self, binding: &Binding) -> Arc<dyn MemberSet> {
        self.scoped.0.clone().unwrap_or_else(|| binding.shared_set(self.slot))
    }
}

impl PartialEq for ScopedSet {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ScopedSet {}

impl PartialOrd for ScopedSet {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScopedSet {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl Hash for ScopedSet {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A member that a text has, as its bytes say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenMember {
    /// The slot.
    pub slot: SlotId,
    /// The member.
    pub member: MemberId,
    /// Bytes of its spelling within the text.
    pub span: Range<usize>,
}

/// Part of a text with the ways in which it may be read.
#[derive(Clone, Debug)]
pub struct TextPart<'t> {
    /// The bytes of each way.
    pub spellings: Vec<&'t [u8]>,
    /// Bytes that it takes in the text, by which places are counted: none of a token without text.
    pub num_bytes: usize,
}

/// The members before a place, the last one first: a list that branches share.
#[derive(Debug, PartialEq)]
pub(super) struct Trail {
    pub(super) last: WrittenMember,
    pub(super) before: Option<Arc<Trail>>,
}
