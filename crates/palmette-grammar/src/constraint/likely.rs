//! Costs that order the worklists: estimates of how likely texts go on with some bytes.
//!
//! Texts are likely to go on with names that the grammar spells, and with common characters where it leaves a choice; tokens
//! are mostly cut between letters and other characters, and are as long as the vocabulary has them. These are guesses, which
//! decide the order alone: what is less likely is visited later, nothing is left out.

use std::hash::Hash;

use palmette_masks::vocabulary::VocabularyTrie;
use palmette_parser::glr::Stacks;
use palmette_parser::lr::StateId;
use palmette_regex::expressions::ByteClasses;
use xxhash_rust::xxh3::Xxh3Default;

/// Unlikelihood: the sum over bytes.
pub(super) type Cost = u32;

/// A byte of a text that the grammar spells.
pub(super) const SPELLED: Cost = 1;
/// A common byte where there is a choice.
pub(super) const COMMON: Cost = 8;
/// Another byte.
pub(super) const RARE: Cost = 64;
/// Little work: what follows is likely to take little too.
pub(super) const LITTLE: Cost = 16;
/// Known already: what follows is likely to be known too.
pub(super) const NOTHING: Cost = 64;
/// The second visit, and a position that the parser makes nothing else of than of one before.
pub(super) const LATER: Cost = 256;

/// A kind of so many bytes and fewer is of a text that the grammar spells.
const FEW: usize = 2;

/// Bytes that stand for a kind, in this order: those that make it a common one.
pub(super) const LIKELY: &[u8] = b"e1 A-";

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

/// Bytes of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// The likeliest one.
    pub(super) byte: u8,
    pub(super) num_bytes: usize,
}

/// The classes of bytes.
pub(super) fn kinds_of(classes: &ByteClasses) -> Vec<Kind> {
    let new = |&byte: &u8| Kind { byte, num_bytes: 0 };
    let mut kinds: Vec<_> = classes.representatives().iter().map(new).collect();
    (0..=u8::MAX).for_each(|byte| kinds[classes.class(byte)].num_bytes += 1);
    LIKELY.iter().rev().for_each(|&byte| kinds[classes.class(byte)].byte = byte);
    kinds
}

/// Cost of a byte that stands for many.
pub(super) fn cost_of_many(byte: u8) -> Cost {
    if LIKELY.contains(&byte) { COMMON } else { RARE }
}

/// Cost of a byte that stands for so many, of which the likeliest costs so much.
pub(super) fn cost(byte: u8, likeliest: Cost, num_bytes: usize) -> Cost {
    match num_bytes {
        ..=FEW if byte.is_ascii_alphanumeric() => SPELLED,
        ..=FEW if byte.is_ascii_punctuation() && byte != b'\\' => COMMON,
        _ => likeliest,
    }
}

/// Fingerprint of a key: 128 bits, by which no two of any number that there is room for are likely to agree. Where two did, one
/// position would be left to be computed when it is asked for.
///
/// PERF: there are hundreds of thousands, and keys are several lists each; to drop so many keeps the allocator busy, for which other
/// threads seemed to wait for tens of milliseconds.
pub(super) fn fingerprint(key: &impl Hash) -> u128 {
    let mut hasher = Xxh3Default::new();
    key.hash(&mut hasher);
    hasher.digest128()
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

/// Limit on the nodes of a graph of stacks that are looked at on each level; further ones only tell apart what may be visited once.
const MAX_NODES: usize = 64;
