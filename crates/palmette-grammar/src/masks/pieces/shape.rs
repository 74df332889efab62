//! What walks ask of a vocabulary's trie again and again.

use std::sync::{Arc, Mutex};

use hashbrown::HashMap;

use crate::vocabulary::VocabularyTrie;

/// A set of nodes, a bit each.
pub(super) type NodeSet = Arc<[u64]>;

/// How much is below the nodes of a trie.
#[derive(Debug)]
pub(super) struct TrieShape {
    /// By node: how many bytes the longest token below adds; 255 for 255 or more.
    heights: Box<[u8]>,
    /// By byte: the nodes below which it is.
    above: Mutex<HashMap<u8, NodeSet>>,
}

/// Whether a node is in a set.
pub(super) fn contains(set: &NodeSet, node: usize) -> bool {
    set[node / 64] >> (node % 64) & 1 == 1
}

impl TrieShape {
    pub(super) fn new(trie: &VocabularyTrie) -> Self {
        let mut heights = vec![0_u8; trie.num_nodes()];
        for node in (0..trie.num_nodes()).rev() {
            let below = trie.children(node).map(|child| heights[child.index].saturating_add(1));
            heights[node] = below.max().unwrap_or(0);
        }
        Self { heights: heights.into(), above: Mutex::default() }
    }

    /// How many bytes the longest token below a node adds; 255 for 255 or more.
    pub(super) fn height(&self, node: usize) -> u8 {
        self.heights[node]
    }

    /// The nodes below which a token goes on with `byte` at some place.
    pub(super) fn above(&self, trie: &VocabularyTrie, byte: u8) -> NodeSet {
        let mut known = self.above.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let found = known.entry(byte).or_insert_with(|| {
            let mut set = vec![0_u64; trie.num_nodes().div_ceil(64)];
            for node in (0..trie.num_nodes()).rev() {
                let is_above = |child: usize| set[child / 64] >> (child % 64) & 1 == 1;
                let found =
                    |child: crate::vocabulary::Node| child.byte == byte || is_above(child.index);
                if trie.children(node).any(found) {
                    set[node / 64] |= 1 << (node % 64);
                }
            }
            set.into()
        });
        Arc::clone(found)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.heights.len()
    }
}
