//! Memo of the store's masks, by the states read from the top of a stack.

use std::collections::HashMap;

use palmette_parser::blocks::{Blocks, Line};
use palmette_parser::glr::StackNode;
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::Branch;

/// Masks by what they depend on: the lexeme in progress, the open blocks, and the states of the stack from the top, as
/// many as were read to find the mask. Equal masks are kept once.
#[derive(Debug, Default)]
pub(super) struct Answers {
    tops: HashMap<(LexerState, Line, Blocks, StateId), AnswerNodeId>,
    nodes: Vec<AnswerNode>,
    masks: Vec<Box<[u32]>>,
    by_hash: HashMap<u64, Vec<AnswerId>>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AnswerNodeId(u32);

/// Of a mask among [`Answers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnswerId(u32);

/// Some states of a stack, read from the top.
#[derive(Debug, Default)]
struct AnswerNode {
    /// `None` where more of the stack must be read.
    mask: Option<AnswerId>,
    /// By the state below, ascending.
    children: Vec<(StateId, AnswerNodeId)>,
}

/// A stack for which there is no answer: its states from the top, and the lowest of these entries.
pub(super) struct Unanswered<'s> {
    pub(super) states: Vec<StateId>,
    pub(super) lowest: StackNode<'s>,
}

impl Answers {
    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn mask(&self, mask: AnswerId) -> &[u32] {
        &self.masks[mask.0 as usize]
    }

    /// The masks of all stacks of a branch, each once.
    pub(super) fn find<'s>(
        &self,
        branch: &'s Branch,
        found: &mut Vec<AnswerId>,
    ) -> Result<(), Unanswered<'s>> {
        found.clear();
        for top in branch.stacks.tops() {
            let unanswered = || Unanswered { states: vec![top.state()], lowest: top };
            let key = (branch.lexer, branch.line, branch.blocks.clone(), top.state());
            let &node = self.tops.get(&key).ok_or_else(unanswered)?;
            let mut work = vec![(top, node, vec![top.state()])];
            // Ways through the stacks meet again: none is gone twice.
            let mut seen: Vec<(StackNode<'_>, AnswerNodeId)> = Vec::new();
            while let Some((at, node, states)) = work.pop() {
                let node = &self.nodes[node.0 as usize];
                if let Some(mask) = node.mask {
                    if !found.contains(&mask) {
                        found.push(mask);
                    }
                    continue;
                }
                for below in at.below() {
                    let states = [&*states, &[below.state()]].concat();
                    let Some(child) = node.child(below.state()) else {
                        return Err(Unanswered { states, lowest: below });
                    };
                    if at.below().len() == 1 || !seen.contains(&(below, child)) {
                        if at.below().len() > 1 {
                            seen.push((below, child));
                        }
                        work.push((below, child, states));
                    }
                }
            }
        }
        Ok(())
    }

    /// Keeps the mask of the stacks that begin with `states`.
    pub(super) fn insert(&mut self, branch: &Branch, states: &[StateId], mask: &[u32]) {
        let key = (branch.lexer, branch.line, branch.blocks.clone(), states[0]);
        let mask = self.intern(mask);
        let next = AnswerNodeId(self.nodes.len() as u32);
        let mut node = *self.tops.entry(key).or_insert(next);
        self.add_if_new(node);
        for &state in &states[1..] {
            let next = AnswerNodeId(self.nodes.len() as u32);
            let children = &mut self.nodes[node.0 as usize].children;
            node = match children.binary_search_by_key(&state, |&(state, _)| state) {
                Ok(at) => children[at].1,
                Err(at) => {
                    children.insert(at, (state, next));
                    next
                }
            };
            self.add_if_new(node);
        }
        self.nodes[node.0 as usize].mask = Some(mask);
    }

    fn add_if_new(&mut self, node: AnswerNodeId) {
        if node.0 as usize == self.nodes.len() {
            self.nodes.push(AnswerNode::default());
            self.bytes += size_of::<AnswerNode>() + size_of::<(StateId, AnswerNodeId)>();
        }
    }

    fn intern(&mut self, mask: &[u32]) -> AnswerId {
        let hash = mask.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, &word| {
            (hash ^ u64::from(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        });
        let alike = self.by_hash.entry(hash).or_default();
        if let Some(&known) = alike.iter().find(|id| *self.masks[id.0 as usize] == *mask) {
            return known;
        }
        let id = AnswerId(self.masks.len() as u32);
        alike.push(id);
        self.masks.push(mask.into());
        self.bytes += size_of_val(mask);
        id
    }
}

impl AnswerNode {
    fn child(&self, state: StateId) -> Option<AnswerNodeId> {
        let at = self.children.binary_search_by_key(&state, |&(state, _)| state).ok()?;
        Some(self.children[at].1)
    }
}
