//! Nodes: states of a stack read from the top, as a tree.

use palmette_core::TokenId;

use super::memo::MaskId;
use super::slices::VocabularySlices;
use crate::lexer::LexerState;
use crate::lr::StateId;
use crate::vocabulary::VocabularyTrie;

/// Nodes by number, and the first of each way down.
///
/// PERF: work ahead of time makes hundreds of thousands of them, under a lock that masks wait for. They lie in pieces of equal length, so
/// that none is moved when there are more, and most own no memory: with one list of nodes that each owned two, some masks waited for 5
/// to 90 ms until a list was moved, or the allocator gave memory, probably while another thread dropped as many; with a hash map of the
/// first ones, up to 4 ms until it had grown.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// By lexer state, those for the topmost state.
    tops: Vec<Children>,
    chunks: Vec<Vec<Node>>,
    len: usize,
    bytes: usize,
}

/// The length of each piece.
const CHUNK: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(u32);

/// Some states of a stack, read from the top.
#[derive(Debug)]
pub(super) struct Node {
    lexer: LexerState,
    /// The state that is read last.
    state: StateId,
    /// The node of the states above it.
    above: Option<NodeId>,
    known: Known,
    children: Children,
}

/// What is known of the tokens that may follow on every stack that begins with certain states.
#[derive(Debug)]
pub(super) enum Known {
    /// Nothing before more of the stack is read.
    Nothing,
    /// These may follow, and no others, whatever is below.
    All(MaskId),
    /// These may follow, and some others depend on what is below.
    Some(MaskId, Box<VocabularyTrie>),
}

/// Nodes by the state that they read last.
#[derive(Debug, Default)]
enum Children {
    #[default]
    None,
    One(StateId, NodeId),
    /// Ascending.
    #[expect(clippy::box_collection, reason = "most nodes have one, and there are many nodes")]
    Many(Box<Vec<(StateId, NodeId)>>),
}

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Nodes {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// The node for the topmost state, if there is one.
    pub(super) fn top(&self, lexer: LexerState, state: StateId) -> Option<NodeId> {
        self.tops.get(lexer.0 as usize)?.get(state)
    }

    /// The node after one more state, if there is one.
    pub(super) fn child(&self, node: NodeId, below: StateId) -> Option<NodeId> {
        self.node(node).children.get(below)
    }

    /// What is known at a node.
    pub(super) fn known(&self, node: NodeId) -> &Known {
        &self.node(node).known
    }

    /// The lexer state of a node.
    pub(super) fn lexer(&self, node: NodeId) -> LexerState {
        self.node(node).lexer
    }

    /// The state that a node reads last.
    pub(super) fn state(&self, node: NodeId) -> StateId {
        self.node(node).state
    }

    /// The node of all states but the last.
    pub(super) fn above(&self, node: NodeId) -> Option<NodeId> {
        self.node(node).above
    }

    /// The states of a node, the topmost first.
    pub(super) fn states(&self, node: NodeId) -> Vec<StateId> {
        let nodes = std::iter::successors(Some(node), |&node| self.above(node));
        let mut states: Vec<_> = nodes.map(|node| self.state(node)).collect();
        states.reverse();
        states
    }

    /// All of them, each after the one above it.
    pub(super) fn all(&self) -> impl Iterator<Item = NodeId> {
        (0..self.len as u32).map(NodeId)
    }

    /// The node of a lexer state and the first states of a stack, which is made, with those above it, where there is none.
    ///
    /// # Panics
    /// When there are no states.
    pub(super) fn make(&mut self, lexer: LexerState, states: &[StateId]) -> NodeId {
        let mut above = None;
        for &state in states {
            let known = match above {
                None => self.top(lexer, state),
                Some(above) => self.child(above, state),
            };
            above = Some(known.unwrap_or_else(|| self.add(lexer, state, above)));
        }
        above.expect("a stack has a top")
    }

    fn add(&mut self, lexer: LexerState, state: StateId, above: Option<NodeId>) -> NodeId {
        let id = NodeId(self.len as u32);
        match above {
            None => {
                let len = lexer.0 as usize + 1;
                if self.tops.len() < len {
                    self.bytes += (len - self.tops.len()) * size_of::<Children>();
                    self.tops.resize_with(len, Children::default);
                }
                self.bytes += self.tops[len - 1].insert(state, id);
            }
            Some(above) => self.bytes += self.node_mut(above).children.insert(state, id),
        }
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let chunk = self.chunks.last_mut().expect("there is room");
        let (known, children) = (Known::Nothing, Children::None);
        chunk.push(Node { lexer, state, above, known, children });
        self.len += 1;
        self.bytes += size_of::<Node>();
        id
    }

    /// Remembers that these tokens may follow at a node and no others.
    pub(super) fn know_all(&mut self, node: NodeId, mask: MaskId) {
        self.know(node, Known::All(mask));
    }

    /// Remembers what is known at a node, where `undecided` depend on what is below.
    pub(super) fn know_some(
        &mut self,
        vocabulary: &VocabularySlices,
        node: NodeId,
        mask: MaskId,
        undecided: &[TokenId],
    ) {
        if undecided.is_empty() {
            return self.know_all(node, mask);
        }
        let undecided = Box::new(vocabulary.trie_of(undecided));
        self.bytes += undecided.memory_bytes();
        self.know(node, Known::Some(mask, undecided));
    }

    fn know(&mut self, node: NodeId, known: Known) {
        let before = std::mem::replace(&mut self.node_mut(node).known, known);
        if let Known::Some(_, undecided) = before {
            self.bytes -= undecided.memory_bytes();
        }
    }

    fn node(&self, node: NodeId) -> &Node {
        &self.chunks[node.index() / CHUNK][node.index() % CHUNK]
    }

    fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.chunks[node.index() / CHUNK][node.index() % CHUNK]
    }
}

impl Children {
    fn get(&self, of: StateId) -> Option<NodeId> {
        match self {
            Self::None => None,
            &Self::One(state, node) => (state == of).then_some(node),
            Self::Many(nodes) => {
                let at = nodes.binary_search_by_key(&of, |&(state, _)| state).ok()?;
                Some(nodes[at].1)
            }
        }
    }

    /// Adds a child that is not there; gives how much memory more it takes.
    fn insert(&mut self, state: StateId, child: NodeId) -> usize {
        let entry = size_of::<(StateId, NodeId)>();
        match self {
            Self::None => {
                *self = Self::One(state, child);
                0
            }
            &mut Self::One(known, of_known) => {
                let mut both = vec![(known, of_known), (state, child)];
                both.sort_unstable_by_key(|&(state, _)| state);
                *self = Self::Many(Box::new(both));
                size_of::<Vec<(StateId, NodeId)>>() + 2 * entry
            }
            Self::Many(children) => {
                let at = children.partition_point(|&(other, _)| other < state);
                children.insert(at, (state, child));
                entry
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In any order, of few states, so that ways part often, and of so many ways that there are several pieces.
        #[test]
        fn each_way_has_its_own_node(
            ways in prop::collection::vec((0..3_u32, prop::collection::vec(0..6_u32, 1..5)), 0..200),
        ) {
            let mut nodes = Nodes::default();
            let mut expected: BTreeMap<(u32, Vec<u32>), NodeId> = BTreeMap::new();
            for (lexer, states) in ways {
                let way: Vec<StateId> = states.iter().copied().map(StateId).collect();
                let node = nodes.make(LexerState(lexer), &way);
                prop_assert_eq!(nodes.states(node), way);
                prop_assert_eq!(nodes.lexer(node), LexerState(lexer));
                let mut at = Some(node);
                for depth in (1..=states.len()).rev() {
                    let id = at.expect("a node for each state");
                    let known = *expected.entry((lexer, states[..depth].to_vec())).or_insert(id);
                    prop_assert_eq!(known, id);
                    at = nodes.above(id);
                }
                prop_assert_eq!(at, None);
            }
            prop_assert_eq!(nodes.len(), expected.len());
            prop_assert_eq!(nodes.all().count(), expected.len());
            for ((lexer, states), &node) in &expected {
                let mut at = None;
                for &state in states {
                    at = match at {
                        None => nodes.top(LexerState(*lexer), StateId(state)),
                        Some(above) => nodes.child(above, StateId(state)),
                    };
                    prop_assert!(at.is_some());
                }
                prop_assert_eq!(at, Some(node));
                prop_assert_eq!(nodes.child(node, StateId(6)), None);
                prop_assert!(nodes.above(node).is_none_or(|above| above.index() < node.index()));
            }
        }
    }
}
