//! Stack-automaton states that tokens were walked for, by the lexeme in progress.

use palmette_core::TokenId;

use super::memo::MaskId;
use super::slices::VocabularySlices;
use crate::lexer::LexerState;
use crate::lr::StateId;
pub(super) use crate::masks::stack_trees::NodeId;
use crate::masks::stack_trees::StackTrees;
use crate::vocabulary::VocabularyTrie;

/// A tree for each lexer state.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    trees: StackTrees<Known>,
    /// The memory of what is undecided.
    bytes: usize,
}

/// What is known of the tokens that may follow on every stack that begins with certain states.
#[derive(Debug, Default)]
pub(super) enum Known {
    /// Nothing before more of the stack is read.
    #[default]
    Nothing,
    /// These may follow, and no others, whatever is below.
    All(MaskId),
    /// These may follow, and some others depend on what is below.
    Some(MaskId, Box<VocabularyTrie>),
}

impl Nodes {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.trees.len()
    }

    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.trees.memory_bytes() + self.bytes
    }

    /// The node for the topmost state, if there is one.
    pub(super) fn top(&self, lexer: LexerState, state: StateId) -> Option<NodeId> {
        self.trees.top(lexer.0, state)
    }

    /// The node after one more state, if there is one.
    pub(super) fn child(&self, node: NodeId, below: StateId) -> Option<NodeId> {
        self.trees.child(node, below)
    }

    /// What is known at a node.
    pub(super) fn known(&self, node: NodeId) -> &Known {
        self.trees.known(node)
    }

    /// The lexer state of a node.
    pub(super) fn lexer(&self, node: NodeId) -> LexerState {
        LexerState(self.trees.tree(node))
    }

    /// The state that a node reads last.
    pub(super) fn state(&self, node: NodeId) -> StateId {
        self.trees.state(node)
    }

    /// The node of all states but the last.
    pub(super) fn above(&self, node: NodeId) -> Option<NodeId> {
        self.trees.above(node)
    }

    /// The states of a node, the topmost first.
    pub(super) fn states(&self, node: NodeId) -> Vec<StateId> {
        self.trees.states(node)
    }

    /// All of them, each after the one above it.
    pub(super) fn all(&self) -> impl Iterator<Item = NodeId> {
        self.trees.all()
    }

    /// The node of a lexer state and the first states of a stack, which is made, with those above it, where there is none.
    ///
    /// # Panics
    /// When there are no states.
    pub(super) fn make(&mut self, lexer: LexerState, states: &[StateId]) -> NodeId {
        self.trees.make(lexer.0, states)
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
        if let Known::Some(_, undecided) = self.trees.know(node, known) {
            self.bytes -= undecided.memory_bytes();
        }
    }
}
