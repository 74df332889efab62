//! Stack automaton: reads LR stacks from the top, and answers as soon as nothing below can matter ("parser automaton" and
//! "template automata" of *Precomputing grammar masks*). Its nodes are made as stacks come by.

use std::hash::Hash;

use hashbrown::{HashMap, HashSet};
use palmette_parser::glr::StackNode;
use palmette_parser::lr::StateId;

use super::children::Children;
use super::tables::{IndexMap, table_bytes};

/// A number into [`StackAutomaton`]; equal numbers are equal nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AutomatonNodeId(u32);

/// Nodes materialised so far, each for all first states of stacks that give the same answer and leave the same open.
///
/// `C` is the answer with what is open, as far as the states read decide; equal ones are one node, so recursion comes back to nodes
/// that are known.
#[derive(Debug)]
pub(super) struct StackAutomaton<C> {
    /// First nodes by what is asked about, and by topmost state.
    first: IndexMap<(u32, StateId), AutomatonNodeId>,
    nodes: boxcar::Vec<AutomatonNode<C>>,
    ids: HashMap<C, AutomatonNodeId>,
    /// Bytes of the children.
    bytes: usize,
}

/// Node of a stack automaton: the answer after some states of a stack.
#[derive(Debug)]
pub(super) struct AutomatonNode<C> {
    pub(super) said: C,
    /// Number of states below, only the last of which decides how it goes on; 0 where nothing is open.
    pub(super) missing: u32,
    children: Children<AutomatonNodeId>,
}

/// A stack that is being read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Way<'s> {
    /// The entry read last.
    at: StackNode<'s>,
    /// The node of what decided so far.
    node: AutomatonNodeId,
    /// Number of states below of which the last decides.
    missing: u32,
}

impl<C> Default for StackAutomaton<C> {
    fn default() -> Self {
        Self {
            first: IndexMap::default(),
            nodes: boxcar::Vec::new(),
            ids: HashMap::default(),
            bytes: 0,
        }
    }
}

impl<C: Copy + Eq + Hash> StackAutomaton<C> {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        table_bytes::<((u32, StateId), AutomatonNodeId)>(self.first.len())
            + self.nodes.count() * size_of::<AutomatonNode<C>>()
            + table_bytes::<(C, AutomatonNodeId)>(self.ids.len())
            + self.bytes
    }

    pub(super) fn get(&self, id: AutomatonNodeId) -> &AutomatonNode<C> {
        &self.nodes[id.0 as usize]
    }

    /// The node of the topmost state, if it is known.
    pub(super) fn first(&self, of: u32, top: StateId) -> Option<AutomatonNodeId> {
        self.first.get(&(of, top)).copied()
    }

    /// Remembers it.
    pub(super) fn know_first(&mut self, of: u32, top: StateId, node: AutomatonNodeId) {
        self.first.insert((of, top), node);
    }

    /// The node after the state that decides, if it is known.
    pub(super) fn next(&self, node: AutomatonNodeId, state: StateId) -> Option<AutomatonNodeId> {
        self.get(node).children.get(state)
    }

    /// Remembers it.
    pub(super) fn know_next(
        &mut self,
        node: AutomatonNodeId,
        state: StateId,
        next: AutomatonNodeId,
    ) {
        let known = self.nodes.get_mut(node.0 as usize).expect("its number was handed out");
        self.bytes += known.children.insert(state, next);
    }

    /// Shows the answers of all stacks with this entry on top, each at least once, while they are taken; `None` where one was not, a node is
    /// not known, or stacks part into more than `max_ways`.
    pub(super) fn answers(
        &self,
        of: u32,
        top: StackNode<'_>,
        max_ways: usize,
        mut take: impl FnMut(C) -> Option<()>,
    ) -> Option<()> {
        let first = self.first(of, top.state())?;
        let mut way = Way { at: top, node: first, missing: self.get(first).missing };
        // Where stacks part. Ways through them meet again: none is gone twice.
        let (mut others, mut seen) = (Vec::new(), HashSet::new());
        loop {
            let mut below = way.at.below();
            let next = match below.len() {
                1 if way.missing > 0 => Some(self.read(way, below.next()?)?),
                2.. if way.missing > 0 => {
                    for entry in below.filter(|&entry| seen.insert(Way { at: entry, ..way })) {
                        others.push(self.read(way, entry)?);
                    }
                    (seen.len() <= max_ways).then_some(())?;
                    None
                }
                _ => {
                    take(self.get(way.node).said)?;
                    None
                }
            };
            way = match next.or_else(|| others.pop()) {
                Some(way) => way,
                None => return Some(()),
            };
        }
    }

    /// Reads an entry below; `None` where the node after it is not known.
    fn read<'s>(&self, Way { node, missing, .. }: Way<'_>, at: StackNode<'s>) -> Option<Way<'s>> {
        if missing > 1 {
            return Some(Way { at, node, missing: missing - 1 });
        }
        let node = self.next(node, at.state())?;
        Some(Way { at, node, missing: self.get(node).missing })
    }

    /// The first nodes, with what is asked about and the topmost state.
    pub(super) fn firsts(&self) -> impl Iterator<Item = (u32, StateId, AutomatonNodeId)> {
        self.first.iter().map(|(&(of, top), &node)| (of, top, node))
    }

    /// The nodes after one, with the states that decide for them.
    pub(super) fn nexts(
        &self,
        node: AutomatonNodeId,
    ) -> impl Iterator<Item = (StateId, AutomatonNodeId)> {
        self.get(node).children.iter()
    }

    /// The node that says this.
    pub(super) fn intern(&mut self, said: C, missing: u32) -> AutomatonNodeId {
        let nodes = &self.nodes;
        *self.ids.entry(said).or_insert_with(|| {
            let node = AutomatonNode { said, missing, children: Children::None };
            AutomatonNodeId(nodes.push(node) as u32)
        })
    }
}
