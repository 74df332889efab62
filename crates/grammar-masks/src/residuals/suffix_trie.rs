//! Suffix tries: what remains of tokens within which a lexeme has ended.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use palmette_core::{TokenId, VocabularyTrie};
use palmette_grammar_regex::fingerprint;

/// Some nodes of the vocabulary's trie at once: a node of the trie of what follows them. A number
/// into [`SuffixTries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SuffixId(u32);

impl SuffixId {
    /// The root of the vocabulary's trie.
    pub(super) const WHOLE: Self = Self(0);
}

/// Tries of suffixes of tokens, built as they are read. Grows only; threads share it.
#[derive(Debug)]
pub(super) struct SuffixTries {
    nodes: boxcar::Vec<SuffixNode>,
    /// Roots by the fingerprint of what they are roots of; held while a child is added.
    roots: Mutex<HashMap<u128, SuffixId>>,
    bytes: AtomicUsize,
}

/// A node: where several tokens go on with the same bytes.
#[derive(Debug)]
pub(super) struct SuffixNode {
    /// Number of bytes that lead to it.
    depth: u32,
    /// The tokens that are at their end.
    tokens: Box<[TokenId]>,
    /// The bytes that may come next, ascending.
    bytes: Box<[u8]>,
    /// The nodes of the vocabulary's trie after `bytes[i]` are `members[first[i]..first[i + 1]]`.
    members: Box<[u32]>,
    first: Box<[u32]>,
    /// Children by byte; 0 where it was not asked for yet.
    children: Box<[AtomicU32]>,
}

impl SuffixNode {
    /// Number of bytes that lead to it.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// The tokens that are at their end.
    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// The bytes that may come next, ascending.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl SuffixTries {
    /// The vocabulary itself.
    pub(super) fn new(trie: &VocabularyTrie) -> Self {
        let made =
            Self { nodes: boxcar::Vec::new(), roots: Mutex::default(), bytes: AtomicUsize::new(0) };
        made.of(trie, &[0], 0);
        made
    }

    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A node.
    pub(super) fn node(&self, id: SuffixId) -> &SuffixNode {
        &self.nodes[id.0 as usize]
    }

    /// Root of the trie of what follows any of these nodes of the vocabulary's trie, to which so
    /// many bytes lead already.
    pub(super) fn of(&self, trie: &VocabularyTrie, members: &[u32], depth: u32) -> SuffixId {
        self.root(fingerprint(&(members, depth)), || SuffixNode::new(trie, members, depth))
    }

    /// The root with a fingerprint.
    fn root(&self, fingerprint: u128, make: impl FnOnce() -> SuffixNode) -> SuffixId {
        let mut roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        *roots.entry(fingerprint).or_insert_with(|| self.push(make()))
    }

    /// The node after `byte`.
    pub(super) fn child(&self, trie: &VocabularyTrie, id: SuffixId, byte: u8) -> Option<SuffixId> {
        let at = self.node(id).bytes.binary_search(&byte).ok()?;
        Some(self.child_at(trie, id, at))
    }

    /// The node after `node(id).bytes()[at]`.
    pub(super) fn child_at(&self, trie: &VocabularyTrie, id: SuffixId, at: usize) -> SuffixId {
        let node = self.node(id);
        match node.children[at].load(Ordering::Acquire) {
            0 => self.build(trie, node, at),
            known => SuffixId(known),
        }
    }

    #[cold]
    fn build(&self, trie: &VocabularyTrie, node: &SuffixNode, at: usize) -> SuffixId {
        let made = SuffixNode::new(trie, node.members_after(at), node.depth + 1);
        let _adding = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        let known = node.children[at].load(Ordering::Acquire);
        if known != 0 {
            return SuffixId(known);
        }
        let id = self.push(made);
        node.children[at].store(id.0, Ordering::Release);
        id
    }

    fn push(&self, node: SuffixNode) -> SuffixId {
        self.bytes.fetch_add(node.memory_bytes(), Ordering::Relaxed);
        SuffixId(u32::try_from(self.nodes.push(node)).expect("fewer than 2^32 nodes"))
    }
}

impl SuffixNode {
    fn new(trie: &VocabularyTrie, members: &[u32], depth: u32) -> Self {
        let mut tokens = Vec::new();
        let mut after: Vec<(u8, u32)> = Vec::new();
        for &member in members {
            let member = member as usize;
            tokens.extend_from_slice(trie.tokens_in(trie.own_ranks(member)));
            after.extend(trie.children(member).map(|child| (child.byte, child.index as u32)));
        }
        after.sort_unstable();
        let (mut bytes, mut first) = (Vec::new(), Vec::new());
        for (&(byte, _), at) in after.iter().zip(0..) {
            if bytes.last() != Some(&byte) {
                bytes.push(byte);
                first.push(at);
            }
        }
        first.push(after.len() as u32);
        Self {
            depth,
            tokens: tokens.into(),
            children: bytes.iter().map(|_| AtomicU32::new(0)).collect(),
            bytes: bytes.into(),
            members: after.into_iter().map(|(_, member)| member).collect(),
            first: first.into(),
        }
    }

    /// The nodes of the vocabulary's trie after it, each with the byte that leads to it.
    pub(super) fn members(&self) -> impl Iterator<Item = (usize, u8)> {
        self.bytes.iter().zip(0..).flat_map(|(&byte, at)| {
            self.members_after(at).iter().map(move |&member| (member as usize, byte))
        })
    }

    /// The nodes of the vocabulary's trie after `bytes[at]`.
    fn members_after(&self, at: usize) -> &[u32] {
        &self.members[self.first[at] as usize..self.first[at + 1] as usize]
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.tokens)
            + size_of_val(&*self.members)
            + self.bytes.len() * (1 + 4 + 4)
    }
}
