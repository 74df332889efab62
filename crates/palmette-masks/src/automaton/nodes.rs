//! Stack-automaton states that tokens were walked for, by the lexeme in progress.

use palmette_core::TokenId;

use super::prepared_vocabulary::PreparedVocabulary;
use crate::mask_pool::PoolId;
pub(super) use crate::stack_trees::NodeId;
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;

use crate::stack_trees::StackTrees;
use crate::vocabulary::VocabularyTrie;

/// A tree for each lexer state.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    trees: StackTrees<Verdict>,
    /// The memory of what is undecided.
    bytes: usize,
}

/// Verdict on the tokens that may follow on every stack that begins with certain states.
#[derive(Debug, Default)]
pub(super) enum Verdict {
    /// No verdict before more of the stack is read.
    #[default]
    Unread,
    /// These may follow, and no others, whatever is below.
    Decided(PoolId),
    /// These may follow, and some others depend on what is below.
    Partial(PoolId, Box<VocabularyTrie>),
}

impl Nodes {
    /// Number of them.
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

    /// Verdict at a node.
    pub(super) fn known(&self, node: NodeId) -> &Verdict {
        self.trees.known(node)
    }

    /// The lexer state of a node.
    pub(super) fn lexer(&self, node: NodeId) -> LexerState {
        LexerState(self.trees.tree(node))
    }

    /// The node of all states but the last.
    pub(super) fn above(&self, node: NodeId) -> Option<NodeId> {
        self.trees.above(node)
    }

    /// The states of a node, the topmost first.
    pub(super) fn states(&self, node: NodeId) -> Vec<StateId> {
        self.trees.states(node)
    }

    /// The node of a lexer state and the first states of a stack, which is made, with those above it, where there is none.
    ///
    /// # Panics
    /// When there are no states.
    pub(super) fn make(&mut self, lexer: LexerState, states: &[StateId]) -> NodeId {
        self.trees.make(lexer.0, states)
    }

    /// Remembers that these tokens may follow at a node and no others.
    pub(super) fn decide(&mut self, node: NodeId, mask: PoolId) {
        self.set(node, Verdict::Decided(mask));
    }

    /// Remembers what is known at a node, where `undecided` depend on what is below.
    pub(super) fn know(
        &mut self,
        vocabulary: &PreparedVocabulary,
        node: NodeId,
        mask: PoolId,
        undecided: &[TokenId],
    ) {
        if undecided.is_empty() {
            return self.decide(node, mask);
        }
        let undecided = Box::new(vocabulary.trie_of(undecided));
        self.bytes += undecided.memory_bytes();
        self.set(node, Verdict::Partial(mask, undecided));
    }

    fn set(&mut self, node: NodeId, known: Verdict) {
        if let Verdict::Partial(_, undecided) = self.trees.know(node, known) {
            self.bytes -= undecided.memory_bytes();
        }
    }
}
