//! Trees over the first states of stacks, where nodes that answer alike are not merged.

use hashbrown::HashMap;
use palmette_parser::lr::StateId;

use super::children::Children;
use super::tables::table_bytes;

/// Trees of nodes, each for some states of a stack from its top; at a node is what is known of all stacks that begin so.
///
/// PERF: work ahead of time makes hundreds of thousands of nodes; they are not moved when there are more, and most own no memory: with a
/// list of nodes that each owned two, some masks waited until the allocator gave memory, probably while another thread
/// dropped as many.
#[derive(Debug)]
pub(super) struct StackTrees<T> {
    /// Nodes by number of the tree and topmost state.
    tops: HashMap<(u32, StateId), NodeId>,
    nodes: boxcar::Vec<TreeNode<T>>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(u32);

/// Some states of a stack, read from the top.
#[derive(Debug)]
struct TreeNode<T> {
    tree: u32,
    /// The state that is read last.
    state: StateId,
    /// The node of the states above it.
    above: Option<NodeId>,
    known: T,
    children: Children<NodeId>,
}

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl<T> Default for StackTrees<T> {
    fn default() -> Self {
        Self { tops: HashMap::default(), nodes: boxcar::Vec::new(), bytes: 0 }
    }
}

impl<T> StackTrees<T> {
    /// Number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.count()
    }

    /// About how much memory they take, without what is known at them.
    pub(super) fn memory_bytes(&self) -> usize {
        table_bytes::<((u32, StateId), NodeId)>(self.tops.len()) + self.bytes
    }

    /// The node for the topmost state, if there is one.
    pub(super) fn top(&self, tree: u32, state: StateId) -> Option<NodeId> {
        self.tops.get(&(tree, state)).copied()
    }

    /// The node after one more state, if there is one.
    pub(super) fn child(&self, node: NodeId, below: StateId) -> Option<NodeId> {
        self.nodes[node.index()].children.get(below)
    }

    /// Verdict at a node.
    pub(super) fn known(&self, node: NodeId) -> &T {
        &self.nodes[node.index()].known
    }

    /// The number of a node's tree.
    pub(super) fn tree(&self, node: NodeId) -> u32 {
        self.nodes[node.index()].tree
    }

    /// The state that a node reads last.
    pub(super) fn state(&self, node: NodeId) -> StateId {
        self.nodes[node.index()].state
    }

    /// The node of all states but the last.
    pub(super) fn above(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node.index()].above
    }

    /// The states of a node, the topmost first.
    pub(super) fn states(&self, node: NodeId) -> Vec<StateId> {
        let nodes = std::iter::successors(Some(node), |&node| self.above(node));
        let mut states: Vec<_> = nodes.map(|node| self.state(node)).collect();
        states.reverse();
        states
    }

    fn node_mut(&mut self, node: NodeId) -> &mut TreeNode<T> {
        self.nodes.get_mut(node.index()).expect("its number was handed out")
    }

    /// Remembers what is known at a node; gives what was known before.
    pub(super) fn know(&mut self, node: NodeId, known: T) -> T {
        std::mem::replace(&mut self.node_mut(node).known, known)
    }
}

impl<T: Default> StackTrees<T> {
    /// The node of a tree for the first states of a stack, which is made, with those above it, where there is none.
    ///
    /// # Panics
    /// When there are no states.
    pub(super) fn make(&mut self, tree: u32, states: &[StateId]) -> NodeId {
        let mut above = None;
        for &state in states {
            let known = match above {
                None => self.top(tree, state),
                Some(above) => self.child(above, state),
            };
            above = Some(known.unwrap_or_else(|| self.add(tree, state, above)));
        }
        above.expect("a stack has a top")
    }

    fn add(&mut self, tree: u32, state: StateId, above: Option<NodeId>) -> NodeId {
        let id = NodeId(self.len() as u32);
        match above {
            None => _ = self.tops.insert((tree, state), id),
            Some(above) => self.bytes += self.node_mut(above).children.insert(state, id),
        }
        let (known, children) = (T::default(), Children::None);
        self.nodes.push(TreeNode { tree, state, above, known, children });
        self.bytes += size_of::<TreeNode<T>>();
        id
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// In any order, of few states, so that ways part often, and so many that there are several chunks.
        #[test]
        fn each_way_has_its_own_node(
            ways in prop::collection::vec((0..3_u32, prop::collection::vec(0..6_u32, 1..5)), 0..200),
        ) {
            let mut nodes = StackTrees::<u32>::default();
            let mut expected: BTreeMap<(u32, Vec<u32>), NodeId> = BTreeMap::new();
            for (tree, states) in ways {
                let way: Vec<StateId> = states.iter().copied().map(StateId).collect();
                let node = nodes.make(tree, &way);
                prop_assert_eq!(nodes.states(node), way);
                prop_assert_eq!(nodes.tree(node), tree);
                let mut at = Some(node);
                for depth in (1..=states.len()).rev() {
                    let id = at.expect("a node for each state");
                    let known = *expected.entry((tree, states[..depth].to_vec())).or_insert(id);
                    prop_assert_eq!(known, id);
                    at = nodes.above(id);
                }
                prop_assert_eq!(at, None);
            }
            prop_assert_eq!(nodes.len(), expected.len());
            for ((tree, states), &node) in &expected {
                let mut at = None;
                for &state in states {
                    at = match at {
                        None => nodes.top(*tree, StateId(state)),
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
