//! Nodes and masks of a stack automaton as plain data, for another of the same grammar.

use std::sync::PoisonError;

use hashbrown::HashMap;
use palmette_core::TokenId;

use super::memo::{MaskId, Memo};
use super::nodes::{Known, NodeId};
use super::restored::Restored;
use super::{MaskAutomaton, VocabularySlices};
use crate::lexer::LexerState;
use crate::lr::StateId;

/// Nodes and masks without what is made from them.
#[derive(Debug, Default)]
pub(crate) struct SavedMemo {
    /// Lexer states, each with the one that stands for it.
    pub(crate) alike: Vec<(LexerState, LexerState)>,
    /// Stacks by their first states, each after its parent.
    pub(crate) nodes: Vec<SavedNode>,
    pub(crate) reading: SavedReading,
    /// All masks, end to end.
    pub(crate) masks: Vec<u32>,
}

/// What stacks say of masks: an automaton that reads them from the top.
#[derive(Debug, Default)]
pub(crate) struct SavedReading {
    /// Of how many states below only the last decides how a node goes on, and the number of its mask; [`UNREAD`] where it is not
    /// known.
    pub(crate) nodes: Vec<(u32, u32)>,
    /// Which node comes after which, and after which lexeme in progress, with the state that decides.
    pub(crate) edges: Vec<(Above, StateId, u32)>,
}

/// A node.
#[derive(Debug)]
pub(crate) struct SavedNode {
    pub(crate) above: Above,
    /// The state that is read last.
    pub(crate) state: StateId,
    /// The number of its mask; [`UNREAD`] where nothing is known before more of the stack is read.
    pub(crate) mask: u32,
    /// The tokens that depend on what is below.
    pub(crate) undecided: Vec<TokenId>,
}

/// In place of the number of a mask.
pub(crate) const UNREAD: u32 = u32::MAX;

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
        let (masks, numbers) = memo.masks.different(self.vocabulary.num_words(), &memo.tails);
        let number = |mask: MaskId| numbers[mask.0 as usize];
        let nodes = memo.nodes.all().map(|node| {
            let (mask, undecided) = match memo.nodes.known(node) {
                Known::Nothing => (UNREAD, vec![]),
                Known::All(mask) => (number(*mask), vec![]),
                Known::Some(mask, undecided) => (number(*mask), undecided.tokens().to_vec()),
            };
            let above = match memo.nodes.above(node) {
                None => Above::Lexer(memo.nodes.lexer(node)),
                Some(above) => Above::Node(above.index() as u32),
            };
            SavedNode { above, state: memo.nodes.state(node), mask, undecided }
        });
        let nodes = nodes.collect();
        let alike = memo.alike.iter();
        let alike = alike.filter_map(|(state, alike)| Some((LexerState(state as u32), (*alike)?)));
        let alike = alike.collect();
        let reading = memo.save_reading(|mask| mask.map_or(UNREAD, number));
        SavedMemo { alike, nodes, reading, masks }
    }

    /// Takes over what another found out, in place of what was found out here.
    ///
    /// # Panics
    /// When a node comes before its parent or mentions a mask that is not there.
    pub(crate) fn restore(&self, saved: &SavedMemo) {
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        *memo = Memo::after(&memo);
        memo.restore(saved, &self.vocabulary);
    }
}

impl Memo {
    /// Takes over what another found out, where nothing was found out yet.
    fn restore(&mut self, saved: &SavedMemo, vocabulary: &VocabularySlices) {
        for &(state, alike) in &saved.alike {
            *self.alike.entry(state.0 as usize) = Some(alike);
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
                self.nodes.know_some(vocabulary, id, mask, &node.undecided);
            }
        }
        let mut known: HashMap<u32, MaskId> = HashMap::new();
        self.restored = Restored::of(&saved.reading, |number| {
            let mask = || self.masks.intern(row(number));
            (number != UNREAD).then(|| *known.entry(number).or_insert_with(mask))
        });
    }
}
