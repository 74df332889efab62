//! What an automaton has found out, to be taken over by another of the same grammar.

use std::sync::PoisonError;

use palmette_core::TokenId;

use super::{MaskAutomaton, Memo, Node, VocabularySlices};
use crate::lexer::LexerState;
use crate::lr::StateId;

/// Nodes and masks without what is made from them.
#[derive(Debug, Default)]
pub(crate) struct SavedMemo {
    /// Lexer states, each with the one that stands for it.
    pub(crate) alike: Vec<(LexerState, LexerState)>,
    /// Each after its parent.
    pub(crate) nodes: Vec<SavedNode>,
    /// All masks, end to end.
    pub(crate) masks: Vec<u32>,
}

/// A node.
#[derive(Debug)]
pub(crate) struct SavedNode {
    pub(crate) above: Above,
    /// The state that is read last.
    pub(crate) state: StateId,
    /// The number of its mask.
    pub(crate) mask: u32,
    /// The tokens that depend on what is below.
    pub(crate) undecided: Vec<TokenId>,
}

/// What is above the last state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Above {
    /// Nothing: the node is for this lexer state.
    Lexer(LexerState),
    /// The states of this node.
    Node(u32),
}

impl MaskAutomaton {
    /// What was found out so far.
    pub(crate) fn save(&self) -> SavedMemo {
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        let mut above: Vec<Option<Above>> = vec![None; memo.nodes.len()];
        for (&(lexer, _), node) in &memo.tops {
            above[node.0 as usize] = Some(Above::Lexer(lexer));
        }
        for (parent, node) in (0..).zip(&memo.nodes) {
            for child in node.children.values() {
                above[child.0 as usize] = Some(Above::Node(parent));
            }
        }
        let nodes = memo.nodes.iter().zip(above).map(|(node, above)| SavedNode {
            above: above.expect("each is a top or a child"),
            state: *node.states.last().expect("at least one"),
            mask: node.mask.0,
            undecided: node.undecided.as_ref().map_or_else(Vec::new, |trie| trie.tokens().to_vec()),
        });
        let nodes = nodes.collect();
        let mut alike: Vec<_> = memo.alike.iter().map(|(&state, &alike)| (state, alike)).collect();
        alike.sort_unstable();
        SavedMemo { alike, nodes, masks: memo.masks.clone() }
    }

    /// Takes over what another found out, in place of what was found out here.
    ///
    /// # Panics
    /// When a node comes before its parent or mentions a mask that is not there.
    pub(crate) fn restore(&self, saved: &SavedMemo) {
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        let generation = memo.generation.wrapping_add(1);
        *memo = Memo { generation, ..Memo::of(saved, &self.vocabulary) };
    }
}

impl Memo {
    fn of(saved: &SavedMemo, vocabulary: &VocabularySlices) -> Self {
        let mut memo = Self { alike: saved.alike.iter().copied().collect(), ..Self::default() };
        let num_words = vocabulary.num_words();
        for node in &saved.nodes {
            let mask = saved.masks[node.mask as usize * num_words..][..num_words].to_vec();
            let (lexer, states) = match node.above {
                Above::Lexer(lexer) => (lexer, vec![node.state]),
                Above::Node(parent) => {
                    let parent: &Node = &memo.nodes[parent as usize];
                    (parent.lexer, [&*parent.states, &[node.state]].concat())
                }
            };
            let id = memo.push(vocabulary, lexer, &states, mask, &node.undecided);
            // Where two are for the same, which only a file made by hand has, the last one is kept.
            let _ = match node.above {
                Above::Lexer(lexer) => memo.tops.insert((lexer, node.state), id),
                Above::Node(parent) => memo.nodes[parent as usize].children.insert(node.state, id),
            };
        }
        memo
    }
}
