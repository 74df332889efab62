//! Measures of the vocabulary trie that walks ask for: bytes, heights and counts of subtrees.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use palmette_core::mask;

use super::byte_groups::{Groups, NUM_GROUPS, group, group_bit};
use crate::vocabulary::{Visit, VocabularyTrie};

/// Measures of a trie: heights and bytes of subtrees, tokens by byte.
#[derive(Debug)]
pub(super) struct TrieShape {
    /// By node: how many bytes the longest token below adds; 255 for 255 or more.
    heights: Box<[u8]>,
    /// By node: the groups of bytes that tokens below add.
    below: Box<[Groups]>,
    /// By group: below how many nodes it is.
    weights: [u32; NUM_GROUPS],
    /// By node: the groups of bytes that lead to the node above it.
    above: Box<[Groups]>,
    /// By node: the node above it; the root is above itself.
    parents: Box<[u32]>,
    /// By group: the nodes whose last byte is of it, ascending.
    nodes: Box<[Box<[u32]>]>,
    /// By group: the tokens that have a byte of it, as rows of a mask.
    having: Box<[Box<[u32]>]>,
    /// By groups of one block: the tokens that have a byte of one of these.
    having_any: Mutex<HashMap<Together, Arc<[u32]>>>,
}

/// A block of groups, and which of them.
type Together = (usize, u8);

/// Groups are put together by so many.
const BLOCK: usize = 8;

/// So many rows of several groups are kept.
const MAX_ROWS: usize = 128;

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
        let mut above = vec![0; trie.num_nodes()];
        let mut parents = vec![0; trie.num_nodes()];
        let mut nodes: Vec<Vec<u32>> = vec![Vec::new(); NUM_GROUPS];
        let Ok(_) = trie.walk(1..trie.num_nodes(), (0, 0), &mut Vec::new(), |node, &of_parent| {
            (parents[node.index], above[node.index]) = of_parent;
            nodes[group(node.byte)].push(node.index as u32);
            let groups: Groups = of_parent.1 | group_bit(node.byte);
            Ok::<_, Infallible>(Visit::Below((node.index as u32, groups)))
        });
        Self {
            heights: heights.into(),
            below: below.into(),
            weights,
            above: above.into(),
            parents: parents.into(),
            nodes: nodes.into_iter().map(Vec::into).collect(),
            having: having(trie),
            having_any: Mutex::default(),
        }
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

    /// The groups of bytes that lead to the node above.
    #[inline]
    pub(super) fn above(&self, node: usize) -> Groups {
        self.above[node]
    }

    /// The node above; the root for itself.
    pub(super) fn parent(&self, node: usize) -> usize {
        self.parents[node] as usize
    }

    /// The nodes whose last byte is of a group, ascending.
    pub(super) fn nodes(&self, group: usize) -> &[u32] {
        &self.nodes[group]
    }

    /// Takes the tokens that have a byte of one of the groups out of a mask row; gives the memory that is taken to do that faster next
    /// time.
    ///
    /// PERF: patterns leave out many groups of bytes, mostly the same: the row of each of them took 60 to 120 us in all for a pattern.
    pub(super) fn take_out(&self, groups: Groups, words: &mut [u32]) -> usize {
        let mut bytes = 0;
        for block in 0..NUM_GROUPS / BLOCK {
            let which = (groups >> (block * BLOCK)) as u8;
            if which == 0 {
                continue;
            }
            let row = match which.is_power_of_two() {
                true => &*self.having[block * BLOCK + which.trailing_zeros() as usize],
                false => &*self.having_any(block, which, &mut bytes),
            };
            words.iter_mut().zip(row).for_each(|(word, having)| *word &= !having);
        }
        bytes
    }

    fn having_any(&self, block: usize, which: u8, bytes: &mut usize) -> Arc<[u32]> {
        let mut known = self.having_any.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = known.get(&(block, which)) {
            return Arc::clone(row);
        }
        let rows = || {
            let groups = (0..BLOCK).filter(|at| which >> at & 1 == 1);
            groups.map(|at| &self.having[block * BLOCK + at])
        };
        let mut row = vec![0; rows().map(|row| row.len()).max().unwrap_or(0)];
        for other in rows() {
            row.iter_mut().zip(other).for_each(|(word, having)| *word |= having);
        }
        let row: Arc<[u32]> = row.into();
        if known.len() < MAX_ROWS {
            *bytes += size_of_val(&*row);
            known.insert((block, which), Arc::clone(&row));
        }
        row
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.heights)
            + size_of_val(&*self.below)
            + size_of_val(&*self.above)
            + size_of_val(&*self.parents)
            + self.nodes.iter().map(|nodes| size_of_val(&**nodes)).sum::<usize>()
            + self.having.iter().map(|row| size_of_val(&**row)).sum::<usize>()
    }
}

fn having(trie: &VocabularyTrie) -> Box<[Box<[u32]>]> {
    let num_tokens = trie.tokens().iter().max().map_or(0, |token| token.index() + 1);
    let mut rows = vec![vec![0; mask::num_words(num_tokens)]; NUM_GROUPS];
    let Ok(_) = trie.walk(1..trie.num_nodes(), 0, &mut Vec::new(), |node, &above| {
        let groups: Groups = above | group_bit(node.byte);
        for &token in trie.tokens_in(trie.own_ranks(node.index)) {
            let mut groups = groups;
            while groups != 0 {
                mask::insert(&mut rows[groups.trailing_zeros() as usize], token);
                groups &= groups - 1;
            }
        }
        Ok::<_, Infallible>(Visit::Below(groups))
    });
    rows.into_iter().map(Vec::into).collect()
}
