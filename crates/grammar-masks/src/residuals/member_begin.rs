//! Beginnings of members within tokens: places where the parser takes a member terminal.
//!
//! A member has no residual, and its set differs by request, so no simulation can follow it. A
//! simulation says where one may begin, whatever the set is; whoever has the set goes on from
//! there.

use palmette_core::VocabularyTrie;

use super::Residuals;
use super::suffix_trie::SuffixId;
use crate::TerminalId;

/// Place where a member may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MemberBegin {
    pub(crate) terminal: TerminalId,
    pub(super) suffix: SuffixId,
    /// True when a member may begin there in every token that comes by; else in some at most, which
    /// only reading them tells.
    pub(crate) in_all: bool,
}

impl MemberBegin {
    /// A beginning at this place, where some tokens do not count.
    pub(super) fn in_some(self) -> Self {
        Self { in_all: false, ..self }
    }
}

impl Residuals {
    /// The place in tokens that is one node of the vocabulary's trie.
    pub(super) fn suffix_at(&self, trie: &VocabularyTrie, node: u32) -> SuffixId {
        self.suffixes.of(trie, &[node], 0)
    }

    /// The nodes of the vocabulary's trie that are at a place and have others below, ascending.
    pub(crate) fn nodes_at(&self, trie: &VocabularyTrie, at: MemberBegin) -> Box<[u32]> {
        let suffix = self.suffixes.node(at.suffix);
        // In depth-first order the node before a first child is its parent.
        let is_first = |&child: &usize| trie.node(child - 1).depth + 1 == trie.node(child).depth;
        let children = suffix.members().map(|(child, _)| child);
        let mut nodes: Vec<u32> = children.filter(is_first).map(|child| child as u32 - 1).collect();
        nodes.sort_unstable();
        nodes.into()
    }
}
