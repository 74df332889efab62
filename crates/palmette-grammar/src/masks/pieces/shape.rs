//! What walks ask of a vocabulary's trie again and again.

use palmette_core::mask;

use super::byte_groups::{Groups, NUM_GROUPS, group, group_bit};
use crate::vocabulary::VocabularyTrie;

/// How much is below the nodes of a trie, and which tokens have which bytes.
#[derive(Debug)]
pub(super) struct TrieShape {
    /// By node: how many bytes the longest token below adds; 255 for 255 or more.
    heights: Box<[u8]>,
    /// By node: the groups of bytes that tokens below add.
    below: Box<[Groups]>,
    /// By group: below how many nodes it is.
    weights: [u32; NUM_GROUPS],
    /// By group: the tokens that have a byte of it, as rows of a mask.
    having: Box<[Box<[u32]>]>,
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
        Self { heights: heights.into(), below: below.into(), weights, having: having(trie) }
    }

    /// How many bytes the longest token below a node adds; 255 for 255 or more.
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

    /// Whether few nodes are above the bytes of a group.
    pub(super) fn is_rare(&self, group: usize) -> bool {
        self.weights[group] as usize * 16 < self.below.len()
    }

    /// Whether many nodes are above them.
    pub(super) fn is_common(&self, group: usize) -> bool {
        self.weights[group] as usize * 32 > self.below.len()
    }

    /// The tokens that have a byte of the group: a row of a mask, without the words after the last of them.
    pub(super) fn having(&self, group: usize) -> &[u32] {
        &self.having[group]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.heights)
            + size_of_val(&*self.below)
            + self.having.iter().map(|row| size_of_val(&**row)).sum::<usize>()
    }
}

fn having(trie: &VocabularyTrie) -> Box<[Box<[u32]>]> {
    let num_tokens = trie.tokens().iter().max().map_or(0, |token| token.index() + 1);
    let mut rows = vec![vec![0; mask::num_words(num_tokens)]; NUM_GROUPS];
    let mut path = vec![0];
    for index in 1..trie.num_nodes() {
        let node = trie.node(index);
        path.truncate(node.depth);
        let groups: Groups = path[node.depth - 1] | 1 << group(node.byte);
        path.push(groups);
        for &token in trie.tokens_in(trie.own_ranks(index)) {
            let mut groups = groups;
            while groups != 0 {
                mask::insert(&mut rows[groups.trailing_zeros() as usize], token);
                groups &= groups - 1;
            }
        }
    }
    rows.into_iter().map(Vec::into).collect()
}
