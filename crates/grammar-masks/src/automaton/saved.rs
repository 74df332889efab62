//! The stack automaton of masks as plain data, for another process's of the same grammar.

use std::sync::PoisonError;

use hashbrown::HashMap;
use palmette_grammar_parser::lr::StateId;
use palmette_grammar_parser::recognizer::Recognizer;

use super::memo::Memo;
use super::{MaskAutomaton, PreparedVocabulary};
use crate::mask_pool::PoolId;
use crate::stack_automaton::{AutomatonNode, AutomatonNodeId};
use crate::tables::IndexMap;

/// Nodes and masks without what they are made of. Restored nodes answer like others; where a stack
/// leads to none, those from its top are made anew.
#[derive(Debug, Default)]
pub struct SavedAutomaton {
    /// Nodes: the number of states below, only the last of which decides how a node goes on, and
    /// the number of its mask; [`UNREAD`] where it is not known.
    pub nodes: Vec<(u32, u32)>,
    /// First nodes: the fingerprint of a [lexeme in
    /// progress](palmette_grammar_parser::lexer::Lexer::fingerprint), with blocks if there are
    /// some, the topmost state, the node.
    pub firsts: Vec<(u128, StateId, u32)>,
    /// Edges from nodes, by the state that decides, to nodes.
    pub edges: Vec<(u32, StateId, u32)>,
    /// Masks, delta-encoded.
    pub masks: Vec<SavedMask>,
}

/// A mask: an earlier one without a base, or none, but for its patches.
#[derive(Clone, Debug)]
pub struct SavedMask {
    /// The number of the base; [`UNREAD`] where there is none.
    pub base: u32,
    /// Words that differ from the base, or from zero, each after its place.
    pub patches: Vec<u32>,
}

/// In place of the number of a mask, where there is none.
pub const UNREAD: u32 = u32::MAX;

/// First nodes that were restored for questions not asked yet, by their fingerprints, with the
/// topmost states.
pub(super) type RestoredNodes = IndexMap<u128, Vec<(StateId, AutomatonNodeId)>>;

impl MaskAutomaton {
    /// Plain data of all nodes so far with their masks. Masks that are found by walking, or united
    /// where stacks part, are not in it.
    pub fn save(&self, recognizer: &Recognizer) -> SavedAutomaton {
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        let (masks, numbers) = memo.masks.different(self.vocabulary.num_words(), &memo.suffix_sets);
        let mask = |known: Option<PoolId>| known.map_or(UNREAD, |mask| numbers[mask.0 as usize]);
        let masks = delta_encoded(&masks, self.vocabulary.num_words());
        let mut saved = SavedAutomaton { masks, ..SavedAutomaton::default() };
        let automaton = memo.suffix_sets.of_masks();
        let met = automaton.firsts().map(|(number, top, node)| {
            (memo.fingerprint(recognizer, memo.asked(number)), top, node)
        });
        let unmet = memo
            .unmet
            .iter()
            .flat_map(|(&of, firsts)| firsts.iter().map(move |&(top, node)| (of, top, node)));
        let (mut known, mut order) = (HashMap::new(), Vec::new());
        let mut number = |node, order: &mut Vec<AutomatonNodeId>| {
            *known.entry(node).or_insert_with(|| {
                order.push(node);
                order.len() as u32 - 1
            })
        };
        for (of, top, node) in met.chain(unmet) {
            saved.firsts.push((of, top, number(node, &mut order)));
        }
        while let Some(&node) = order.get(saved.nodes.len()) {
            let from = saved.nodes.len() as u32;
            let &AutomatonNode { said, missing, .. } = automaton.get(node);
            saved.nodes.push((missing, mask(memo.composed_of(said.suffix_set))));
            for (state, next) in automaton.nexts(node) {
                saved.edges.push((from, state, number(next, &mut order)));
            }
        }
        saved
    }

    /// Takes over the nodes of another, in place of the own ones. Questions meanwhile are answered
    /// from the own ones, and wait for the exchange alone.
    ///
    /// # Panics
    /// When an edge, node or mask mentions what is not there.
    pub fn restore(&self, saved: &SavedAutomaton) {
        let mut restored = Memo::default();
        restored.restore(saved, &self.vocabulary);
        let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
        restored.follow(&memo);
        let before = std::mem::replace(&mut *memo, restored);
        drop(memo);
        drop(before);
    }
}

impl Memo {
    /// Takes over nodes, where there are none yet.
    fn restore(&mut self, saved: &SavedAutomaton, vocabulary: &PreparedVocabulary) {
        let mut bases = HashMap::new();
        for base in saved.masks.iter().map(|mask| mask.base).filter(|&base| base != UNREAD) {
            bases.entry(base).or_insert_with(|| {
                let mut words = vec![0; vocabulary.num_words()];
                let patches = saved.masks[base as usize].patches.as_chunks::<2>().0;
                patches.iter().for_each(|&[at, word]| words[at as usize] = word);
                self.masks.add_base(&words)
            });
        }
        let masks = saved.masks.iter().zip(0..);
        let masks: Vec<PoolId> = masks
            .map(|(SavedMask { base, patches }, number)| match bases.get(&number) {
                Some(own) => self.masks.add_patched(Some(own), &[]),
                None => self.masks.add_patched(bases.get(base), patches.as_chunks().0),
            })
            .collect();
        let mut ids = Vec::with_capacity(saved.nodes.len());
        for (&(missing, mask), number) in saved.nodes.iter().zip(0..) {
            let (node, made_of) = self.suffix_sets.restored_node(number, missing);
            if mask != UNREAD {
                self.know_composed(vocabulary, made_of, masks[mask as usize]);
            }
            ids.push(node);
        }
        // Where two lead on from one place, which only a file made by hand has, the last one is
        // kept.
        for &(from, state, to) in &saved.edges {
            let automaton = self.suffix_sets.of_masks_mut();
            automaton.know_next(ids[from as usize], state, ids[to as usize]);
        }
        for &(of, top, node) in &saved.firsts {
            self.unmet.entry(of).or_default().push((top, ids[node as usize]));
        }
    }
}

/// Bases that are looked at for one that a mask is nearly, those of last.
const MAX_BASES: usize = 8;

/// Masks of so many words, each by the base from which the fewest words differ.
fn delta_encoded(masks: &[u32], num_words: usize) -> Vec<SavedMask> {
    let mut encoded: Vec<SavedMask> = Vec::new();
    let mut bases: Vec<(u32, &[u32])> = Vec::new();
    for (mask, number) in masks.chunks_exact(num_words.max(1)).zip(0..) {
        let patches = |base: &dyn Fn(usize) -> u32| -> Vec<u32> {
            let differing = mask.iter().enumerate().filter(|&(at, &word)| word != base(at));
            differing.flat_map(|(at, &word)| [at as u32, word]).collect()
        };
        let alone = SavedMask { base: UNREAD, patches: patches(&|_| 0) };
        let by_bases = bases.iter().rev().take(MAX_BASES);
        let by_bases =
            by_bases.map(|&(base, words)| SavedMask { base, patches: patches(&|at| words[at]) });
        let best = by_bases.chain([alone]).min_by_key(|mask| mask.patches.len());
        let best = best.expect("the one without a base");
        if best.base == UNREAD && best.patches.len() > num_words / 4 {
            bases.push((number, mask));
        }
        encoded.push(best);
    }
    encoded
}
