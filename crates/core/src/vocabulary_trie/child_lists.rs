//! Children of the trie's nodes as lists: for walks along given bytes.

use super::VocabularyTrie;
use crate::mask;

/// The children of every node, their bytes side by side.
///
/// Siblings lie apart in the trie, each a jump over the subtree before it. Here a node's child by a
/// byte is found by a look at neighbouring bytes.
///
/// Cost: 13 bytes a node, made when first asked for.
#[derive(Clone, Debug)]
pub struct ChildLists {
    /// Node `v` owns `bytes[start[v]..start[v + 1]]`, ascending, and the same places of `children`.
    start: Box<[u32]>,
    bytes: Box<[u8]>,
    children: Box<[Child]>,
    /// Children of the root by byte.
    first: Box<[Option<Child>; 256]>,
}

/// A node as the child of another, with what is asked of most: whether it has children, and its
/// token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// Twice the node, and one more where it is a leaf.
    node_and_leaf: u32,
    /// The token whose text is the node's, or one of the marks.
    token: u32,
}

/// Mark of a node that is no token's text.
const NO_TOKEN: u32 = u32::MAX;
/// Mark of a node that is the text of several tokens.
const SEVERAL: u32 = u32::MAX - 1;

impl Child {
    /// The node.
    #[inline]
    pub fn node(self) -> u32 {
        self.node_and_leaf >> 1
    }

    /// True if the node has no children.
    #[inline]
    pub fn is_leaf(self) -> bool {
        self.node_and_leaf & 1 == 1
    }

    /// Sets the bits of the tokens whose text is the node's.
    ///
    /// # Panics
    /// When `words` has too few bits, or this is no node of `trie`.
    #[inline]
    pub fn mark(self, trie: &VocabularyTrie, words: &mut [u32]) {
        match self.token {
            NO_TOKEN => {}
            SEVERAL => trie.mark(self.node() as usize, words),
            token => words[token as usize / mask::WORD_TOKENS] |= 1 << (token % 32),
        }
    }
}

impl ChildLists {
    pub(super) fn new(trie: &VocabularyTrie) -> Self {
        let num_nodes = trie.num_nodes();
        let mut start = Vec::with_capacity(num_nodes + 1);
        let mut bytes = Vec::with_capacity(num_nodes);
        let mut children = Vec::with_capacity(num_nodes);
        let mut first = Box::new([None; 256]);
        for node in 0..num_nodes {
            start.push(children.len() as u32);
            for child in trie.children(node) {
                bytes.push(child.byte);
                let token = match trie.tokens_in(trie.own_ranks(child.index)) {
                    [] => NO_TOKEN,
                    [token] if token.0 < SEVERAL => token.0,
                    _ => SEVERAL,
                };
                let is_leaf = trie.end(child.index) == child.index + 1;
                let index = u32::try_from(child.index).ok().filter(|index| index >> 31 == 0);
                let index = index.expect("fewer than 2^31 nodes");
                let made = Child { node_and_leaf: index << 1 | u32::from(is_leaf), token };
                children.push(made);
                if node == 0 {
                    first[usize::from(child.byte)] = Some(made);
                }
            }
        }
        start.push(children.len() as u32);
        Self { start: start.into(), bytes: bytes.into(), children: children.into(), first }
    }

    /// Bytes of a node's children, ascending, and the children.
    ///
    /// # Panics
    /// When there is no such node; the same holds for the other questions about one.
    #[inline]
    pub fn of(&self, node: u32) -> (&[u8], &[Child]) {
        let list = self.start[node as usize] as usize..self.start[node as usize + 1] as usize;
        (&self.bytes[list.clone()], &self.children[list])
    }

    /// True if a node has no children.
    #[inline]
    pub fn is_leaf(&self, node: u32) -> bool {
        self.start[node as usize] == self.start[node as usize + 1]
    }

    /// The child of a node by a byte.
    #[inline]
    pub fn child(&self, node: u32, byte: u8) -> Option<Child> {
        if node == 0 {
            return self.first[usize::from(byte)];
        }
        let (bytes, children) = self.of(node);
        bytes.iter().position(|&other| other == byte).map(|at| children[at])
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.start)
            + size_of_val(&*self.bytes)
            + size_of_val(&*self.children)
            + size_of_val(&*self.first)
    }
}
