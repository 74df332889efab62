//! Entries of members: nodes of the vocabulary's trie at which members of a slot may begin.

use palmette_core::SlotId;

/// Entry of a slot's members, whatever its set is.
#[derive(Debug)]
pub(super) struct MemberEntry {
    pub(super) slot: SlotId,
    /// Ascending; each has others below. 0 stands for the front of all tokens.
    pub(super) nodes: Box<[u32]>,
    /// True when a member may begin at all of them; else at some at most, which only reading the
    /// bytes that lead there tells.
    pub(super) at_all: bool,
}
