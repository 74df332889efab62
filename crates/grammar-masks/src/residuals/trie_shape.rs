//! Measures of the vocabulary trie that walks ask for: heights and bytes of subtrees.

use palmette_core::VocabularyTrie;

use super::byte_groups::{Groups, NUM_GROUPS, group_bit};

/// Measures of the subtrees of a trie.
#[derive(Debug)]
pub(super) struct TrieShape {
    /// Bytes that the longest token below a node adds, by node; 255 for 255 or more.
    heights: Box<[u8]>,
    /// Groups of bytes that tokens below a node add, by node.
    below: Box<[Groups]>,
    /// Number of nodes that a group is below, by group.
    weights: [u32; NUM_GROUPS],
}

impl TrieShape {
    pub(super) fn new(trie: &VocabularyTrie) -> Self {
        let (mut heights, mut below) = (vec![0_u8; trie.num_nodes()], vec![0; trie.num_nodes()]);
        let mut weights = [0; NUM_GROUPS];
        for node in (0..trie.num_nodes()).rev() {
            let (mut height, mut groups) = (0, 0);
            for child in trie.children(node) {
                height = height.max(heights[child.index].saturating_add(1));
                groups |= below[child.index] | group_bit(child.byte);
            }
            (heights[node], below[node]) = (height, groups);
            while groups != 0 {
                weights[groups.trailing_zeros() as usize] += 1;
                groups &= groups - 1;
            }
        }
        Self { heights: heights.into(), below: below.into(), weights }
    }

    /// Bytes that the longest token below a node adds; 255 for 255 or more.
    #[inline]
    pub(super) fn height(&self, node: usize) -> u8 {
        self.heights[node]
    }

    /// The groups of bytes that tokens below a node add.
    #[inline]
    pub(super) fn below(&self, node: usize) -> Groups {
        self.below[node]
    }

    /// Below how many nodes the bytes of a group are.
    pub(super) fn weight(&self, group: usize) -> u32 {
        self.weights[group]
    }

    /// True when few nodes are above the bytes of a group.
    pub(super) fn is_rare(&self, group: usize) -> bool {
        self.weights[group] as usize * 16 < self.below.len()
    }

    /// True when many nodes are above them.
    pub(super) fn is_common(&self, group: usize) -> bool {
        self.weights[group] as usize * 32 > self.below.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.heights) + size_of_val(&*self.below)
    }
}
