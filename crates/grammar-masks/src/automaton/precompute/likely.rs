//! Costs that order the worklist: estimates of how likely texts go on with some bytes.
//!
//! Texts are likely to go on with names that the grammar spells, and with common characters where
//! it leaves a choice; tokens are mostly cut between letters and other characters, and are as long
//! as the vocabulary has them. These are guesses, which decide the order alone: what is less likely
//! is visited later, nothing is left out.

use std::sync::Arc;

use hashbrown::HashMap;
use palmette_core::VocabularyTrie;
use palmette_grammar_parser::glr::Stacks;
use palmette_grammar_parser::lr::StateId;
use palmette_grammar_regex::ByteSet;
use palmette_grammar_regex::expressions::ByteClasses;

/// Unlikelihood: the sum over bytes.
pub(super) type Cost = u32;

/// A byte of a text that the grammar spells.
const SPELLED: Cost = 1;
/// A common byte where there is a choice.
pub(super) const COMMON: Cost = 8;
/// Another byte.
const RARE: Cost = 64;
/// A place where tokens are not likely to be cut.
pub(super) const LATER: Cost = 256;

/// A kind of so many bytes and fewer is of a text that the grammar spells.
const FEW: usize = 2;

/// Bytes that stand for a kind, in this order: those that make it a common one.
const LIKELY: &[u8] = b"e1 A-";

/// A token in progress: a node of the vocabulary's trie, and its last byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    node: usize,
    last: u8,
}

impl Token {
    /// Before the first byte of one.
    pub(super) const NONE: Self = Self { node: 0, last: 0 };

    /// The token after a byte; `None` where it is likely to have ended.
    fn longer(self, trie: &VocabularyTrie, byte: u8) -> Option<Self> {
        let other = |a: u8, b: u8| a.is_ascii_alphanumeric() != b.is_ascii_alphanumeric();
        if self.node != 0 && other(self.last, byte) {
            return None;
        }
        let node = trie.child(self.node, byte)?;
        Some(Self { node, last: byte })
    }

    /// The token after a byte, which may begin it.
    pub(super) fn after(self, trie: &VocabularyTrie, byte: u8) -> Self {
        let begun = || Self::NONE.longer(trie, byte);
        self.longer(trie, byte).or_else(begun).unwrap_or(Self::NONE)
    }

    /// True when a token is likely to be cut here, where these bytes may come that cost so much.
    pub(super) fn is_cut(
        self,
        trie: &VocabularyTrie,
        bytes: impl Iterator<Item = (u8, Cost)> + Clone,
    ) -> bool {
        let mut costs = bytes.clone().map(|(_, cost)| cost);
        if self.node == Self::NONE.node || costs.clone().all(|cost| cost == RARE) {
            return true;
        }
        let any_spelled = costs.any(|cost| cost == SPELLED);
        let is_likely = |cost| if any_spelled { cost == SPELLED } else { cost < RARE };
        let mut likely = bytes.filter(|&(_, cost)| is_likely(cost));
        likely.any(|(byte, _)| self.longer(trie, byte).is_none())
    }
}

/// Bytes that some states of a lexer do not tell apart, or that lead to one state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// The likeliest one.
    pub(super) byte: u8,
    pub(super) bytes: ByteSet,
}

impl Kind {
    /// Adds those of another.
    pub(super) fn unite(&mut self, other: Self) {
        self.bytes.unite(&other.bytes);
    }

    /// Cost of going on with one of them.
    pub(super) fn cost(&self) -> Cost {
        match self.bytes.len() {
            ..=FEW if self.byte.is_ascii_alphanumeric() => SPELLED,
            ..=FEW if self.byte.is_ascii_punctuation() && self.byte != b'\\' => COMMON,
            _ if LIKELY.iter().any(|&byte| self.bytes.contains(byte)) => COMMON,
            _ => RARE,
        }
    }
}

/// The bytes by their classes of several partitions at once, in ascending order of their least
/// bytes.
pub(super) fn kinds(all: impl IntoIterator<Item = Arc<ByteClasses>>) -> Vec<Kind> {
    let mut kind_of = [0; 256];
    for classes in all {
        let mut numbers = HashMap::new();
        for (kind, byte) in kind_of.iter_mut().zip(0..=u8::MAX) {
            let next = numbers.len();
            *kind = *numbers.entry((*kind, classes.class(byte))).or_insert(next);
        }
    }
    let mut kinds: Vec<Kind> = Vec::new();
    for (&kind, byte) in kind_of.iter().zip(0..=u8::MAX) {
        if kind == kinds.len() {
            kinds.push(Kind { byte, bytes: ByteSet::default() });
        }
        kinds[kind].bytes.insert(byte);
    }
    LIKELY.iter().rev().for_each(|&byte| kinds[kind_of[usize::from(byte)]].byte = byte);
    kinds
}

/// The states at each distance from the tops of the stacks, below `depth`.
pub(super) fn tops(stacks: &Stacks, depth: usize) -> Vec<(usize, StateId)> {
    let mut found = Vec::new();
    let mut level: Vec<_> = stacks.tops().collect();
    for distance in 0..depth {
        let first = found.len();
        found.extend(level.iter().map(|node| (distance, node.state())));
        found[first..].sort_unstable();
        level = level.iter().flat_map(|node| node.below()).collect();
        level.truncate(MAX_NODES);
    }
    found.dedup();
    found
}

/// Limit on the nodes of a graph of stacks that are looked at on each level; further ones only tell
/// apart what may be visited once.
const MAX_NODES: usize = 64;
