//! Stacks read from the top, as an automaton: what some first states say, and what they leave open.

use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;

use super::children::Children;
use super::chunks::{Chunks, SparseChunks};
use super::hash_index::HashIndex;
use crate::glr::StackNode;
use crate::lr::StateId;

/// A number into [`ReadNodes`]; equal numbers are equal nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReadNodeId(u32);

/// Nodes of which each stands for all first states of stacks that say the same and leave the same open.
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
    pub(super) said: C,
    /// Of so many states below, only the last decides how it goes on; 0 where nothing is open.
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

    /// What a stack says, where it does not part before it does, as far as the nodes are known.
    pub(super) fn said(&self, of: usize, stack: StackNode<'_>) -> Option<C> {
        let mut at = stack;
        let mut node = self.first(of, stack.state())?;
        loop {
            let &ReadNode { said, missing, .. } = self.get(node);
            if missing == 0 {
                return Some(said);
            }
            for _ in 0..missing {
                let mut below = at.below();
                match (below.next(), below.next()) {
                    (None, _) => return Some(said),
                    (Some(only), None) => at = only,
                    (Some(_), Some(_)) => return None,
                }
            }
            node = self.next(node, at.state())?;
        }
    }

    /// The first nodes, with what is asked about and the topmost state.
    pub(super) fn firsts(&self) -> impl Iterator<Item = (usize, StateId, ReadNodeId)> {
        let first = self.first.iter();
        first.flat_map(|(of, children)| children.iter().map(move |(top, node)| (of, top, node)))
    }

    /// The nodes after one, with the states that decide for them.
    pub(super) fn nexts(&self, node: ReadNodeId) -> impl Iterator<Item = (StateId, ReadNodeId)> {
        self.get(node).children.iter()
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = ReadNodeId> {
        (0..self.nodes.len() as u32).map(ReadNodeId)
    }

    /// The node that says this.
    pub(super) fn intern(&mut self, said: C, missing: u32) -> ReadNodeId {
        let hash = self.hasher.hash_one(said);
        let same = |number: u32| self.nodes[number as usize].said == said;
        if let Some(known) = self.ids.find(hash, same) {
            return ReadNodeId(known);
        }
        let next = self.nodes.len() as u32;
        self.ids.insert(hash, next);
        self.nodes.push(ReadNode { said, missing, children: Children::None });
        ReadNodeId(next)
    }
}
