//! The texts of a vocabulary as a trie in one array.

mod child_lists;
mod depth_first;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{TokenId, Vocabulary};

pub use child_lists::{Child, ChildLists};
pub use depth_first::Visit;

/// Tokens as a trie of their bytes, those of their texts or of other spellings.
///
/// Nodes lie in depth-first order, children by ascending byte: a walk reads the array from left to
/// right, and to leave out a subtree is to jump to its end. Tokens are renumbered in the same
/// order, by their bytes and then by id: a token's place is its *rank*, and the tokens of a subtree
/// are one range of ranks. Node 0 is the root, the empty text.
///
/// Cost: 12 bytes a node, 4 a token and 1 KiB (5.9 MB for the 421,661 nodes and 199,998 tokens of
/// `o200k_base`); building sorts the tokens.
#[derive(Clone, Debug)]
pub struct VocabularyTrie {
    /// One more than there are nodes: the last holds what a node after the last would.
    nodes: Vec<PackedNode>,
    /// `tokens[rank]`
    tokens: Vec<TokenId>,
    max_depth: usize,
    /// Children of the root by byte; 0 where there is none.
    first: Box<[u32; 256]>,
    child_lists: OnceLock<ChildLists>,
    id: u64,
}

/// Entry of one node. Its own tokens, whose whole text leads to it, have the ranks from its `rank`
/// to that of the node after it.
#[derive(Clone, Copy, Debug)]
struct PackedNode {
    /// The first rank in the subtree.
    rank: u32,
    /// The first node after the subtree.
    end: u32,
    /// Distance from the root, at most [`MAX_DEPTH`], in the upper 24 bits; the last byte in the
    /// lower 8.
    depth_and_byte: u32,
}

/// Number of the next trie that is made.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// Depths share a word with the byte.
const MAX_DEPTH: usize = (1 << 24) - 1;

/// A node as a walk sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number in depth-first order.
    pub index: usize,
    /// Number of bytes that lead to it: 1 below the root.
    pub depth: usize,
    /// The last of these bytes.
    pub byte: u8,
    /// The first rank of its subtree, and of its own tokens.
    pub rank: u32,
}

impl VocabularyTrie {
    /// Sorts the tokens with text into a trie.
    ///
    /// # Panics
    /// When a token is longer than 16 million bytes, or the trie has 2³² nodes or more; a
    /// vocabulary of 4 GiB, the most there is, could.
    pub fn new(vocabulary: &Vocabulary) -> Self {
        Self::from_texts(vocabulary.texts().map(|(token, text)| (text, token)))
    }

    /// Sorts some of the tokens into a trie; those without text are left out.
    ///
    /// # Panics
    /// As [`new`](Self::new), and when a token is not in the vocabulary.
    pub fn from_tokens(vocabulary: &Vocabulary, tokens: impl IntoIterator<Item = TokenId>) -> Self {
        Self::from_texts(tokens.into_iter().map(|token| (vocabulary.text(token), token)))
    }

    /// Sorts texts of tokens into a trie: a token may have several, and empty ones are left out.
    ///
    /// # Panics
    /// When a text is longer than 16 million bytes, or the trie has 2³² nodes or more.
    pub fn from_texts<'t>(texts: impl IntoIterator<Item = (&'t [u8], TokenId)>) -> Self {
        Self::from_sorted(sorted(texts.into_iter().filter(|(text, _)| !text.is_empty())))
    }

    fn from_sorted(tokens: Vec<(&[u8], TokenId)>) -> Self {
        let mut nodes = vec![PackedNode { rank: 0, end: 0, depth_and_byte: 0 }];
        // The nodes from the root to the current text; all their ends are open.
        let mut path: Vec<u32> = vec![0];
        let mut previous: &[u8] = &[];
        let mut max_depth = 0;
        for (&(text, token), rank) in tokens.iter().zip(0..) {
            assert!(text.len() <= MAX_DEPTH, "token {token} has {} bytes", text.len());
            max_depth = max_depth.max(text.len());
            let shared = previous.iter().zip(text).take_while(|(a, b)| a == b).count();
            let here = u32::try_from(nodes.len()).expect("fewer than 2^32 nodes");
            path.drain(shared + 1..).for_each(|node| nodes[node as usize].end = here);
            for (depth, &byte) in (shared + 1..).zip(&text[shared..]) {
                path.push(u32::try_from(nodes.len()).expect("fewer than 2^32 nodes"));
                let depth_and_byte = (depth as u32) << 8 | u32::from(byte);
                nodes.push(PackedNode { rank, end: 0, depth_and_byte });
            }
            previous = text;
        }
        let here = u32::try_from(nodes.len()).expect("fewer than 2^32 nodes");
        path.into_iter().for_each(|node| nodes[node as usize].end = here);
        nodes.push(PackedNode { rank: tokens.len() as u32, end: here, depth_and_byte: 0 });
        nodes.shrink_to_fit();
        let (mut first, mut child) = (Box::new([0; 256]), 1);
        while child + 1 < nodes.len() {
            first[(nodes[child].depth_and_byte & 0xFF) as usize] = child as u32;
            child = nodes[child].end as usize;
        }
        let tokens = tokens.into_iter().map(|(_, token)| token).collect();
        let (child_lists, id) = (OnceLock::new(), NEXT_ID.fetch_add(1, Ordering::Relaxed));
        Self { nodes, tokens, max_depth, first, child_lists, id }
    }

    /// Number of nodes, the root included.
    pub fn num_nodes(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Number of tokens with text: ranks are below it.
    pub fn num_ranks(&self) -> usize {
        self.tokens.len()
    }

    /// The bytes of the longest token.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// The tokens with text, by rank.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The tokens of a range of ranks.
    ///
    /// # Panics
    /// When the range is not within the ranks.
    pub fn tokens_in(&self, ranks: Range<u32>) -> &[TokenId] {
        &self.tokens[ranks.start as usize..ranks.end as usize]
    }

    /// A node.
    ///
    /// # Panics
    /// When there is no such node; the same holds for the other questions about one.
    pub fn node(&self, index: usize) -> Node {
        assert!(index < self.num_nodes(), "node {index} of {}", self.num_nodes());
        self.at(index)
    }

    /// The first node after the subtree of `node`: its next sibling, or an ancestor's, or
    /// [`num_nodes`](Self::num_nodes).
    pub fn end(&self, node: usize) -> usize {
        self.nodes[node].end as usize
    }

    /// The ranks of the tokens whose text is that of `node`: several when tokens are spelled alike.
    pub fn own_ranks(&self, node: usize) -> Range<u32> {
        self.nodes[node].rank..self.nodes[node + 1].rank
    }

    /// The ranks of the tokens whose text begins with that of `node`.
    pub fn ranks(&self, node: usize) -> Range<u32> {
        self.nodes[node].rank..self.nodes[self.end(node)].rank
    }

    /// The children of `node`, by ascending byte.
    pub fn children(&self, node: usize) -> impl Iterator<Item = Node> + '_ {
        let end = self.end(node);
        let first = (node + 1 < end).then_some(node + 1);
        std::iter::successors(first, move |&child| {
            let next = self.end(child);
            (next < end).then_some(next)
        })
        .map(|child| self.at(child))
    }

    /// The child of `node` by `byte`.
    ///
    /// PERF: the root has a child for most bytes, each far from the others.
    pub fn child(&self, node: usize, byte: u8) -> Option<usize> {
        if node == 0 {
            let child = self.first[usize::from(byte)] as usize;
            return (child != 0).then_some(child);
        }
        self.children(node).find(|child| child.byte == byte).map(|child| child.index)
    }

    /// The node of `text`: `None` when no token begins with it.
    pub fn find(&self, text: &[u8]) -> Option<usize> {
        text.iter().try_fold(0, |node, &byte| self.child(node, byte))
    }

    /// Adds the bytes that lead from one node to another below it.
    ///
    /// # Panics
    /// When it is not below.
    pub fn add_path(&self, from: usize, to: usize, bytes: &mut Vec<u8>) {
        let mut at = from;
        while at != to {
            let next = match at {
                // PERF: the root has a child for most bytes, in ascending order.
                0 => {
                    let before = self.first.iter().filter(|&&child| child != 0);
                    let child = before.rev().find(|&&child| child as usize <= to);
                    child.map(|&child| self.at(child as usize))
                }
                _ => self.children(at).find(|child| to < self.end(child.index)),
            };
            let next = next.expect("it is a node below");
            bytes.push(next.byte);
            at = next.index;
        }
    }

    /// The number of this trie, which only its clones share: a key for what is remembered of it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The children of all nodes as lists.
    ///
    /// Cost: made when first asked for, in some milliseconds.
    ///
    /// # Panics
    /// When the trie has 2³¹ nodes or more.
    pub fn child_lists(&self) -> &ChildLists {
        self.child_lists.get_or_init(|| ChildLists::new(self))
    }

    /// Sets the bits of the tokens whose text is that of `node`.
    ///
    /// # Panics
    /// When there is no such node, or `mask` has too few bits.
    #[inline]
    pub fn mark(&self, node: usize, mask: &mut [u32]) {
        for &token in self.tokens_in(self.own_ranks(node)) {
            crate::mask::insert(mask, token);
        }
    }

    /// Memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.child_lists.get().map_or(0, ChildLists::memory_bytes)
            + size_of_val(self.nodes.as_slice())
            + size_of_val(self.tokens.as_slice())
            + size_of_val(&*self.first)
    }

    #[inline]
    fn at(&self, index: usize) -> Node {
        let PackedNode { rank, depth_and_byte, .. } = self.nodes[index];
        Node { index, depth: (depth_and_byte >> 8) as usize, byte: depth_and_byte as u8, rank }
    }
}

/// Tokens by bytes, then id.
fn sorted<'t>(tokens: impl Iterator<Item = (&'t [u8], TokenId)>) -> Vec<(&'t [u8], TokenId)> {
    // The first eight bytes as a number decide most comparisons without reading the texts.
    let key = |text: &[u8]| {
        let mut first = [0; 8];
        let len = text.len().min(8);
        first[..len].copy_from_slice(&text[..len]);
        u64::from_be_bytes(first)
    };
    let mut keyed: Vec<(u64, &[u8], TokenId)> =
        tokens.map(|(text, token)| (key(text), text, token)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, text, token)| (text, token)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vocabulary(texts: &[&[u8]]) -> Vocabulary {
        Vocabulary::new(texts.iter().map(|text| Some(*text)), []).unwrap()
    }

    /// ```text
    /// root ┬ a (2) ┬ b ─ c (0, 3)
    ///      │       └ c (5)
    ///      └ FF (1)
    /// ```
    fn drawn() -> VocabularyTrie {
        VocabularyTrie::new(&vocabulary(&[b"abc", b"\xFF", b"a", b"abc", b"", b"ac"]))
    }

    #[test]
    fn a_subtree_is_one_range() {
        let trie = drawn();
        assert_eq!(trie.tokens(), [2, 0, 3, 5, 1].map(TokenId));
        assert_eq!((trie.num_nodes(), trie.num_ranks(), trie.max_depth()), (6, 5, 3));
        let node = |text: &[u8]| trie.find(text).unwrap();
        assert_eq!([&b""[..], b"a", b"ab", b"abc", b"ac", b"\xFF"].map(node), [0, 1, 2, 3, 4, 5]);
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|node| trie.ranks(node)),
            [0..5, 0..4, 1..3, 1..3, 3..4, 4..5]
        );
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|node| trie.own_ranks(node)),
            [0..0, 0..1, 1..1, 1..3, 3..4, 4..5]
        );
        assert_eq!(trie.tokens_in(trie.own_ranks(3)), [TokenId(0), TokenId(3)]);
        assert_eq!(trie.find(b"abcd"), None);
        assert_eq!(trie.memory_bytes(), 7 * 12 + 5 * 4 + 1024);
    }

    #[test]
    fn no_tokens_make_a_root() {
        let trie = VocabularyTrie::new(&vocabulary(&[b""]));
        assert_eq!((trie.num_nodes(), trie.ranks(0), trie.children(0).count()), (1, 0..0, 0));
    }

    proptest! {
        /// Few different bytes, so that texts share prefixes and repeat.
        #[test]
        fn the_trie_is_the_texts(texts in prop::collection::vec(
            prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', 0xFF]), 0..11), 0..40)
        ) {
            let refs: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            let vocabulary = vocabulary(&refs);
            let trie = VocabularyTrie::new(&vocabulary);

            let mut tokens: Vec<_> = vocabulary.texts().map(|(token, text)| (text, token)).collect();
            tokens.sort();
            prop_assert_eq!(trie.tokens(), tokens.iter().map(|(_, token)| *token).collect::<Vec<_>>());

            let mut prefixes: Vec<&[u8]> =
                refs.iter().flat_map(|text| (0..=text.len()).map(|len| &text[..len])).chain([&[][..]]).collect();
            prefixes.sort();
            prefixes.dedup();
            prop_assert_eq!(trie.num_nodes(), prefixes.len());

            // Bytes collected along the array are the prefixes, in order, and the questions about a
            // node agree.
            let mut text = Vec::new();
            for (index, prefix) in prefixes.iter().enumerate() {
                let node = trie.node(index);
                if node.depth > 0 {
                    text.truncate(node.depth - 1);
                    text.push(node.byte);
                }
                prop_assert_eq!(&text, prefix);
                prop_assert_eq!(node.index, index);
                prop_assert_eq!(node.rank, trie.ranks(index).start);
                prop_assert_eq!(node.depth, text.len());
                prop_assert_eq!(trie.find(&text), Some(node.index));
                let own: Vec<_> = tokens.iter().filter(|(t, _)| t == prefix).map(|(_, token)| *token).collect();
                prop_assert_eq!(trie.tokens_in(trie.own_ranks(node.index)), own);
                let all: Vec<_> = tokens.iter().filter(|(t, _)| t.starts_with(prefix)).map(|(_, token)| *token).collect();
                prop_assert_eq!(trie.tokens_in(trie.ranks(node.index)), all);
                let below: Vec<_> = prefixes.iter()
                    .filter(|p| p.len() == prefix.len() + 1 && p.starts_with(prefix))
                    .map(|p| p[prefix.len()]).collect();
                prop_assert_eq!(trie.children(node.index).map(|child| child.byte).collect::<Vec<_>>(), below.as_slice());
                let (lists, at) = (trie.child_lists(), node.index as u32);
                let (bytes, children) = lists.of(at);
                prop_assert_eq!(bytes, below.as_slice());
                prop_assert_eq!(lists.is_leaf(at), bytes.is_empty());
                for byte in [0, 1, b'a', 0xFF] {
                    let child = lists.child(at, byte);
                    prop_assert_eq!(child.map(|child| child.node() as usize), trie.child(node.index, byte));
                    let Some(child) = child else { continue };
                    prop_assert!(children.contains(&child));
                    prop_assert_eq!(child.is_leaf(), lists.is_leaf(child.node()));
                    let mut rows = [[0; 2]; 2];
                    trie.mark(child.node() as usize, &mut rows[0]);
                    child.mark(&trie, &mut rows[1]);
                    prop_assert_eq!(rows[0], rows[1]);
                }
            }
        }
    }
}
