//! Children of the trie's nodes as lists: for walks along given bytes.

use super::VocabularyTrie;

/// The children of every node, their bytes side by side.
///
/// Siblings lie apart in the trie, each a jump over the subtree before it. Here a node's child by a byte is found by a look
/// at neighbouring bytes.
///
/// Cost: 9 bytes a node, made when first asked for.
#[derive(Clone, Debug)]
pub struct ChildLists {
    /// Node `v` owns `bytes[start[v]..start[v + 1]]`, ascending, and the children at the same places of `nodes`.
    start: Box<[u32]>,
    bytes: Box<[u8]>,
    nodes: Box<[u32]>,
    /// Children of the root by byte; 0 where there is none.
    first: Box<[u32; 256]>,
}

impl ChildLists {
    pub(super) fn new(trie: &VocabularyTrie) -> Self {
        let num_nodes = trie.num_nodes();
        let mut start = Vec::with_capacity(num_nodes + 1);
        let (mut bytes, mut nodes) = (Vec::with_capacity(num_nodes), Vec::with_capacity(num_nodes));
        for node in 0..num_nodes {
            start.push(nodes.len() as u32);
            for child in trie.children(node) {
                bytes.push(child.byte);
                nodes.push(child.index as u32);
            }
        }
        start.push(nodes.len() as u32);
        let (start, bytes, nodes) = (start.into(), bytes.into(), nodes.into());
        Self { start, bytes, nodes, first: trie.first.clone() }
    }

    /// Bytes and nodes of a node's children, by ascending byte.
    ///
    /// # Panics
    /// When there is no such node; the same holds for the other questions about one.
    #[inline]
    pub fn of(&self, node: u32) -> (&[u8], &[u32]) {
        let list = self.start[node as usize] as usize..self.start[node as usize + 1] as usize;
        (&self.bytes[list.clone()], &self.nodes[list])
    }

    /// Whether a node has no children.
    #[inline]
    pub fn is_leaf(&self, node: u32) -> bool {
        self.start[node as usize] == self.start[node as usize + 1]
    }

    /// The child of a node by a byte.
    #[inline]
    pub fn child(&self, node: u32, byte: u8) -> Option<u32> {
        if node == 0 {
            let child = self.first[usize::from(byte)];
            return (child != 0).then_some(child);
        }
        let (bytes, nodes) = self.of(node);
        bytes.iter().position(|&other| other == byte).map(|at| nodes[at])
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.start)
            + size_of_val(&*self.bytes)
            + size_of_val(&*self.nodes)
            + size_of_val(&*self.first)
    }
}
