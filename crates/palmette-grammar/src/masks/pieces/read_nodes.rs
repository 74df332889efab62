//! Stacks read from the top, as an automaton: what some first states say, and what they leave open.

use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;

use super::pending::PendingId;
use crate::lr::StateId;
use crate::masks::children::Children;
use crate::masks::chunks::{Chunks, SparseChunks};
use crate::masks::hash_index::HashIndex;

/// A number into [`ReadNodes`]; equal numbers are equal nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadNodeId(u32);

/// Nodes of which each stands for all first states of stacks that say and leave open the same.
#[derive(Debug)]
pub(super) struct ReadNodes<C> {
    /// By what is asked about, and by topmost state.
    first: SparseChunks<Children<ReadNodeId>>,
    nodes: Chunks<ReadNode<C>>,
    ids: HashIndex,
    hasher: DefaultHashBuilder,
    bytes: usize,
}

/// What some states of a stack say.
#[derive(Debug)]
pub(super) struct ReadNode<C> {
    /// What they are sure of.
    pub(super) said: C,
    pub(super) pending: PendingId,
    /// Of so many states below, only the last decides how it goes on; 0 where nothing is pending.
    pub(super) missing: u32,
    children: Children<ReadNodeId>,
}

impl<C> Default for ReadNodes<C> {
    fn default() -> Self {
        Self {
            first: SparseChunks::default(),
            nodes: Chunks::default(),
            ids: HashIndex::default(),
            hasher: DefaultHashBuilder::default(),
            bytes: 0,
        }
    }
}

impl<C: Copy + Eq + Hash> ReadNodes<C> {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.first.memory_bytes()
            + self.nodes.len() * size_of::<ReadNode<C>>()
            + self.ids.memory_bytes()
            + self.bytes
    }

    pub(super) fn get(&self, id: ReadNodeId) -> &ReadNode<C> {
        &self.nodes[id.0 as usize]
    }

    /// The node of the topmost state, if it is known.
    pub(super) fn first(&self, of: usize, top: StateId) -> Option<ReadNodeId> {
        self.first.get(of)?.get(top)
    }

    /// Remembers it.
    pub(super) fn know_first(&mut self, of: usize, top: StateId, node: ReadNodeId) {
        self.bytes += self.first.entry(of).insert(top, node);
    }

    /// The node after the state that decides, if it is known.
    pub(super) fn next(&self, node: ReadNodeId, state: StateId) -> Option<ReadNodeId> {
        self.get(node).children.get(state)
    }

    /// Remembers it.
    pub(super) fn know_next(&mut self, node: ReadNodeId, state: StateId, next: ReadNodeId) {
        self.bytes += self.nodes[node.0 as usize].children.insert(state, next);
    }

    /// The node that says this.
    pub(super) fn intern(&mut self, said: C, pending: PendingId, missing: u32) -> ReadNodeId {
        let hash = self.hasher.hash_one((said, pending));
        let same = |number: u32| {
            let node = &self.nodes[number as usize];
            (node.said, node.pending) == (said, pending)
        };
        if let Some(known) = self.ids.find(hash, same) {
            return ReadNodeId(known);
        }
        let next = self.nodes.len() as u32;
        self.ids.insert(hash, next);
        self.nodes.push(ReadNode { said, pending, missing, children: Children::None });
        ReadNodeId(next)
    }
}
