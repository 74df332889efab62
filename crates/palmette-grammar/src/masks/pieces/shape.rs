//! What walks ask of a vocabulary's trie again and again.

use crate::vocabulary::VocabularyTrie;

/// How much is below the nodes of a trie.
#[derive(Debug)]
pub(super) struct TrieShape {
    /// By node: how many bytes the longest token below adds; 255 for 255 or more.
    heights: Box<[u8]>,
}

impl TrieShape {
    pub(super) fn new(trie: &VocabularyTrie) -> Self {
        let mut heights = vec![0_u8; trie.num_nodes()];
        for node in (0..trie.num_nodes()).rev() {
            let below = trie.children(node).map(|child| heights[child.index].saturating_add(1));
            heights[node] = below.max().unwrap_or(0);
        }
        Self { heights: heights.into() }
    }

    /// How many bytes the longest token below a node adds; 255 for 255 or more.
    pub(super) fn height(&self, node: usize) -> u8 {
        self.heights[node]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.heights.len()
    }
}
