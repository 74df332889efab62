//! Memo of the store's masks, by the states read from the top of a stack.

use hashbrown::{HashMap, HashSet};
use palmette_parser::blocks::{Blocks, Line};
use palmette_parser::glr::StackNode;
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::Branch;

use crate::stack_trees::{NodeId, StackTrees};
use crate::tables::{IndexSet, table_bytes};

/// Masks by what they depend on: the lexeme in progress, the open blocks, and the states of the stack from the top, as
/// many as were read to find the mask. Equal masks are kept once.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Numbers of trees, by all but the stack.
    numbers: HashMap<(LexerState, Line, Blocks), u32>,
    /// Masks at nodes; `None` where more of the stack must be read.
    trees: StackTrees<Option<AnswerId>>,
    masks: IndexSet<Box<[u32]>>,
    bytes: usize,
}

/// A number into the masks of [`Answers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerId(usize);

/// A stack for which there is no answer: its states from the top, and the lowest of these entries.
pub(super) struct Unanswered<'s> {
    pub(super) states: Vec<StateId>,
    pub(super) lowest: StackNode<'s>,
}

impl Answers {
    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let numbers = self.numbers.len() * size_of::<(LexerState, Line, Blocks, u32)>();
        self.bytes
            + numbers
            + self.trees.memory_bytes()
            + table_bytes::<Box<[u32]>>(self.masks.len())
    }

    pub(super) fn mask(&self, mask: AnswerId) -> &[u32] {
        &self.masks[mask.0]
    }

    /// The masks of all stacks of a branch, each once.
    pub(super) fn find<'s>(
        &self,
        branch: &'s Branch,
        found: &mut Vec<AnswerId>,
    ) -> Result<(), Unanswered<'s>> {
        found.clear();
        let tree = self.numbers.get(&(branch.lexer, branch.line, branch.blocks.clone()));
        for top in branch.stacks.tops() {
            let node = tree.and_then(|&tree| self.trees.top(tree, top.state()));
            let unanswered = || Unanswered { states: vec![top.state()], lowest: top };
            let mut work = vec![(top, node.ok_or_else(unanswered)?)];
            // Ways through the stacks meet again: none is gone twice.
            let mut seen: HashSet<(StackNode<'_>, NodeId)> = HashSet::new();
            while let Some((at, node)) = work.pop() {
                if let Some(mask) = *self.trees.known(node) {
                    if !found.contains(&mask) {
                        found.push(mask);
                    }
                    continue;
                }
                let parts = at.below().len() > 1;
                for below in at.below() {
                    let Some(child) = self.trees.child(node, below.state()) else {
                        let mut states = self.trees.states(node);
                        states.push(below.state());
                        return Err(Unanswered { states, lowest: below });
                    };
                    if !parts || seen.insert((below, child)) {
                        work.push((below, child));
                    }
                }
            }
        }
        Ok(())
    }

    /// Keeps the mask of the stacks that begin with `states`.
    pub(super) fn insert(&mut self, branch: &Branch, states: &[StateId], mask: &[u32]) {
        let next = self.numbers.len() as u32;
        let key = (branch.lexer, branch.line, branch.blocks.clone());
        let tree = *self.numbers.entry(key).or_insert(next);
        let node = self.trees.make(tree, states);
        let number = self.masks.get_index_of(mask).unwrap_or_else(|| {
            self.bytes += size_of_val(mask);
            self.masks.insert_full(mask.into()).0
        });
        self.trees.know(node, Some(AnswerId(number)));
    }
}
