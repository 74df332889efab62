//! Nodes and masks of a stack automaton as plain data, for another of the same grammar.

use std::sync::PoisonError;

use hashbrown::HashMap;
use palmette_core::TokenId;
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;

use super::memo::Memo;
use super::nodes::{NodeId, Verdict};
use super::restored::Restored;
use super::{MaskAutomaton, PreparedVocabulary};
use crate::mask_pool::PoolId;

/// Nodes and masks without what is made from them.
#[derive(Debug, Default)]
pub struct SavedMemo {
    /// Lexer states, each with the one that stands for it.
    pub representatives: Vec<(LexerState, LexerState)>,
    /// Stacks by their first states, each after its parent.
    pub nodes: Vec<SavedNode>,
    /// Stack automaton of masks.
    pub stack_automaton: SavedStackAutomaton,
    /// All masks, end to end.
    pub masks: Vec<u32>,
}

/// Stack automaton of masks, as plain data.
#[derive(Debug, Default)]
pub struct SavedStackAutomaton {
    /// Of how many states below only the last decides how a node goes on, and the number of its mask; [`UNREAD`] where it is not
    /// known.
    pub nodes: Vec<(u32, u32)>,
    /// Edges: from a lexeme in progress or a node, by the state that decides, to a node.
    pub edges: Vec<(Above, StateId, u32)>,
}

/// A node.
#[derive(Debug)]
pub struct SavedNode {
    /// Parent, or the lexer state where there is none.
    pub above: Above,
    /// The state that is read last.
    pub state: StateId,
    /// The number of its mask; [`UNREAD`] where nothing is known before more of the stack is read.
    pub mask: u32,
    /// The tokens that depend on what is below.
    pub undecided: Vec<TokenId>,
}

/// In place of the number of a mask.
pub const UNREAD: u32 = u32::MAX;

/// Parent of a node: what is above the last state that it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Above {
    /// Nothing: the node is for this lexer state.
    Lexer(LexerState),
    /// The states of this node.
    Node(u32),
}

impl MaskAutomaton {
    /// Plain data of all nodes and masks so far.
    pub fn save(&self) -> SavedMemo {
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        let (masks, numbers) = memo.masks.different(self.vocabulary.num_words(), &memo.suffix_sets);
        let number = |mask: PoolId| numbers[mask.0 as usize];
        let nodes = memo.nodes.all().map(|node| {
            let (mask, undecided) = match memo.nodes.known(node) {
                Verdict::Unread => (UNREAD, vec![]),
                Verdict::Decided(mask) => (number(*mask), vec![]),
                Verdict::Partial(mask, undecided) => (number(*mask), undecided.tokens().to_vec()),
            };
            let above = match memo.nodes.above(node) {
                None => Above::Lexer(memo.nodes.lexer(node)),
                Some(above) => Above::Node(above.index() as u32),
            };
            SavedNode { above, state: memo.nodes.state(node), mask, undecided }
        });
        let nodes = nodes.collect();
        let representatives = memo.representatives.iter();
        let representatives = representatives.map(|(&state, &its)| (state, its)).collect();
        let stack_automaton = memo.save_stack_automaton(|mask| mask.map_or(UNREAD, number));
        SavedMemo { representatives, nodes, stack_automaton, masks }
    }

    /// Takes over the nodes of another, in place of the own ones.
    ///
    /// # Panics
    /// When a node comes before its parent or mentions a mask that is not there.
    pub fn restore(&self, saved: &SavedMemo) {
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        *memo = Memo::after(&memo);
        memo.restore(saved, &self.vocabulary);
    }
}

impl Memo {
    /// Takes over the nodes of another, where there are none yet.
    fn restore(&mut self, saved: &SavedMemo, vocabulary: &PreparedVocabulary) {
        for &(state, representative) in &saved.representatives {
            self.representatives.insert(state, representative);
        }
        let num_words = vocabulary.num_words();
        let row = |number: u32| &saved.masks[number as usize * num_words..][..num_words];
        // By number in the file; where two are for the same, which only a file made by hand has, the last one is kept.
        let mut ids = Vec::with_capacity(saved.nodes.len());
        for node in &saved.nodes {
            let (lexer, states) = match node.above {
                Above::Lexer(lexer) => (lexer, vec![node.state]),
                Above::Node(parent) => {
                    let parent: NodeId = ids[parent as usize];
                    let mut states = self.nodes.states(parent);
                    states.push(node.state);
                    (self.nodes.lexer(parent), states)
                }
            };
            let id = self.nodes.make(lexer, &states);
            ids.push(id);
            if node.mask != UNREAD {
                let mask = self.masks.intern(row(node.mask));
                self.nodes.know(vocabulary, id, mask, &node.undecided);
            }
        }
        let mut known: HashMap<u32, PoolId> = HashMap::new();
        self.restored = Restored::of(&saved.stack_automaton, |number| {
            let mask = || self.masks.intern(row(number));
            (number != UNREAD).then(|| *known.entry(number).or_insert_with(mask))
        });
    }
}
