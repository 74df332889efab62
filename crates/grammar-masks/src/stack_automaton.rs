//! Stack automaton: reads LR stacks from the top, and answers as soon as nothing below can matter
//! ("parser automaton" and "template automata" of *Precomputing grammar masks*). Its nodes are made
//! as stacks come by.

use std::hash::Hash;

use hashbrown::{HashMap, HashSet};
use palmette_grammar_parser::glr::StackNode;
use palmette_grammar_parser::lr::StateId;

use super::tables::{IndexMap, table_bytes};

/// A number into [`StackAutomaton`]; equal numbers are equal nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AutomatonNodeId(u32);

/// Nodes materialised so far, each for all first states of stacks that give the same answer and
/// leave the same open.
///
/// `C` is the answer with what is open, as far as the states read decide; equal ones are one node,
/// so recursion comes back to nodes that are known.
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
    /// Number of states below, only the last of which decides how it goes on; 0 where nothing is
    /// open.
    pub(super) missing: u32,
    children: Children<AutomatonNodeId>,
}

/// Node of what decided so far about a stack that is being read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ReachedNode {
    node: AutomatonNodeId,
    /// Number of states below of which the last decides.
    missing: u32,
}

/// An answer depends on at most so many ways through the stacks below a place where they part.
/// Nodes tell apart what lies above an entry, of which there may be twice as many with each place
/// where an ambiguous text parts; walks do not.
pub(super) const MAX_WAYS: usize = 1024;

/// Follows all stacks with this entry on top from their first node, and takes the node that each
/// leads to, at least once; false where stacks part into more than [`MAX_WAYS`].
///
/// # Errors
/// Those of `next`, the node after one and the state that decides, and of `take`.
pub(super) fn follow_stacks<E>(
    first: ReachedNode,
    top: StackNode<'_>,
    mut next: impl FnMut(AutomatonNodeId, StateId) -> Result<ReachedNode, E>,
    mut take: impl FnMut(AutomatonNodeId) -> Result<(), E>,
) -> Result<bool, E> {
    let mut read = |ReachedNode { node, missing }: ReachedNode, at: StackNode<'_>| match missing {
        2.. => Ok(ReachedNode { node, missing: missing - 1 }),
        _ => next(node, at.state()),
    };
    let (mut at, mut reached) = (top, first);
    // Where stacks part. Ways through them meet again: none is gone twice.
    let (mut others, mut seen) = (Vec::new(), HashSet::new());
    loop {
        let mut below = at.below();
        let mut only = None;
        match below.len() {
            number if number == 0 || reached.missing == 0 => take(reached.node)?,
            1 => {
                let entry = below.next().expect("one entry");
                only = Some((entry, read(reached, entry)?));
            }
            _ => {
                for entry in below.filter(|&entry| seen.insert((entry, reached))) {
                    others.push((entry, read(reached, entry)?));
                }
                if seen.len() > MAX_WAYS {
                    return Ok(false);
                }
            }
        }
        match only.or_else(|| others.pop()) {
            Some(next) => (at, reached) = next,
            None => return Ok(true),
        }
    }
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

    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.count()
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

    /// Shows what the nodes say that all stacks with this entry on top lead to, each at least once,
    /// while they are known and taken; tells whether all were.
    pub(super) fn answers(
        &self,
        of: u32,
        top: StackNode<'_>,
        mut take: impl FnMut(C) -> Option<()>,
    ) -> bool {
        let Some(first) = self.first(of, top.state()) else { return false };
        let next = |node, state| Ok(self.reached(self.next(node, state).ok_or(())?));
        let take = |node| take(self.get(node).said).ok_or(());
        follow_stacks(self.reached(first), top, next, take) == Ok(true)
    }

    /// A node, before any of the states is read that it misses.
    pub(super) fn reached(&self, node: AutomatonNodeId) -> ReachedNode {
        ReachedNode { node, missing: self.get(node).missing }
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

/// Children of a node by the state that is read next.
#[derive(Debug, Default)]
enum Children<N> {
    #[default]
    None,
    One(StateId, N),
    /// Ascending.
    #[expect(clippy::box_collection, reason = "most nodes have one, and there are many nodes")]
    Many(Box<Vec<(StateId, N)>>),
}

impl<N: Copy> Children<N> {
    fn get(&self, of: StateId) -> Option<N> {
        match self {
            Self::None => None,
            &Self::One(state, child) => (state == of).then_some(child),
            Self::Many(children) => {
                let at = children.binary_search_by_key(&of, |&(state, _)| state).ok()?;
                Some(children[at].1)
            }
        }
    }

    /// All of them, ascending.
    fn iter(&self) -> impl Iterator<Item = (StateId, N)> {
        let (one, many) = match self {
            Self::None => (None, &[] as &[_]),
            &Self::One(state, child) => (Some((state, child)), &[] as _),
            Self::Many(children) => (None, children.as_slice()),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Adds a child that is not there; gives how much memory more it takes.
    fn insert(&mut self, state: StateId, child: N) -> usize {
        let entry = size_of::<(StateId, N)>();
        match self {
            Self::None => {
                *self = Self::One(state, child);
                0
            }
            &mut Self::One(known, of_known) => {
                let mut both = vec![(known, of_known), (state, child)];
                both.sort_unstable_by_key(|&(state, _)| state);
                *self = Self::Many(Box::new(both));
                size_of::<Vec<(StateId, N)>>() + 2 * entry
            }
            Self::Many(children) => {
                let at = children.partition_point(|&(other, _)| other < state);
                children.insert(at, (state, child));
                entry
            }
        }
    }
}
