//! Quotient trie: the vocabulary trie, quotiented by a reference residual.
//!
//! A string of at most five more characters takes what any string takes, but for what comes after
//! the fifth: which characters they are does not matter. So the nodes of the vocabulary's trie are
//! put together that are reached by texts after which the same is left of the reference all along:
//! of two hundred thousand tokens some thousand places are left, and a residual that does not tell
//! apart what its reference does not is walked through these.

use std::sync::{Mutex, OnceLock};

use palmette_core::VocabularyTrie;

use super::residual_id::ResidualId;

/// The vocabulary trie, quotiented by one reference, as far as it was asked for. Grows only;
/// threads share it.
#[derive(Debug)]
pub(super) struct QuotientTrie {
    pub(super) nodes: boxcar::Vec<QuotientNode>,
    /// Held while nodes are added.
    pub(super) adding: Mutex<()>,
}

/// Nodes of the vocabulary's trie after whose texts, byte for byte, the same was left of the
/// reference.
#[derive(Debug)]
pub(super) struct QuotientNode {
    /// Residual of the reference.
    pub(super) residual: ResidualId,
    /// Ascending.
    pub(super) members: Box<[u32]>,
    /// Bytes that the longest token below adds; 255 for 255 or more.
    pub(super) height: u8,
    pub(super) next: OnceLock<Next>,
    /// A row of the tokens here and below, where they are many.
    pub(super) below: OnceLock<Box<[u32]>>,
}

/// Edges after a node.
#[derive(Debug)]
pub(super) struct Next {
    /// A node for each residual that is left of the reference then.
    pub(super) children: Box<[Child]>,
    /// Bytes that the reference does not take.
    pub(super) dead: Box<[u8]>,
}

#[derive(Debug)]
pub(super) struct Child {
    pub(super) node: u32,
    /// The bytes that lead there.
    pub(super) bytes: Box<[u8]>,
}

impl QuotientTrie {
    pub(super) fn new(reference: ResidualId) -> Self {
        let nodes = boxcar::vec![QuotientNode::new(reference, vec![0], u8::MAX)];
        Self { nodes, adding: Mutex::default() }
    }

    pub(super) fn node(&self, id: u32) -> &QuotientNode {
        &self.nodes[id as usize]
    }
}

impl QuotientNode {
    pub(super) fn new(residual: ResidualId, members: Vec<u32>, height: u8) -> Self {
        let (next, below) = (OnceLock::new(), OnceLock::new());
        Self { residual, members: members.into(), height, next, below }
    }

    /// Adds those of `ends`, ascending nodes of the trie, that are here or below.
    pub(super) fn ends_below(&self, trie: &VocabularyTrie, ends: &[u32], found: &mut Vec<u32>) {
        if self.members.len() <= ends.len() {
            for &member in &*self.members {
                let end = trie.end(member as usize) as u32;
                let from = ends.partition_point(|&node| node < member);
                found.extend(ends[from..].iter().take_while(|&&node| node < end));
            }
            return;
        }
        for &node in ends {
            let at = self.members.partition_point(|&member| member <= node);
            let above = at.checked_sub(1).map(|at| self.members[at] as usize);
            if above.is_some_and(|above| (node as usize) < trie.end(above)) {
                found.push(node);
            }
        }
    }
}
