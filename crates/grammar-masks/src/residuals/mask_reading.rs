//! Components of a mask, read from a parser's stack by the stack automaton.

use std::sync::Arc;

use palmette_core::VocabularyTrie;
use palmette_grammar_parser::glr::StackNode;
use palmette_grammar_parser::recognizer::Recognizer;

use super::lexemes::Lexemes;
use super::mask_failure::MaskFailure;
use super::node_answer::{NodeKey, QuerySubject};
use super::place::Place;
use super::simulation_context::{Memos, SimulationContext};
use super::suffix_set::SuffixSetId;
use super::suffix_sets::SuffixSets;
use crate::stack_automaton::{MAX_WAYS, follow_stacks};
use crate::{Budget, Interrupted};

/// A reader of stacks, for mask rows of so many words, with the memos that it adds to.
#[derive(Debug)]
pub(crate) struct Reading<'a, 'b> {
    pub(crate) recognizer: &'a Recognizer,
    pub(crate) trie: &'a VocabularyTrie,
    pub(crate) num_words: usize,
    pub(crate) lexemes: &'a mut Lexemes,
    pub(crate) suffix_sets: &'a mut SuffixSets,
    pub(crate) budget: &'a mut Budget<'b>,
    /// Number of times that nodes were dropped.
    pub(crate) generation: u32,
}

impl<'b> Reading<'_, 'b> {
    /// Reads all stacks with an entry on top, as far as they matter to a question's mask; gives
    /// what the masks are made of, each at least once.
    ///
    /// It takes from the budget: a unit for each lexeme that may begin and each node of a trie that
    /// is walked.
    pub(crate) fn find(
        self,
        question: NodeKey,
        top: StackNode<'_>,
    ) -> Result<Vec<SuffixSetId>, MaskFailure> {
        self.memos(|mut memos| {
            let first = memos.first_mask(question, top.state())?;
            let first = memos.suffix_sets.of_masks().reached(first);
            let mut nodes = Vec::new();
            let next = |node, state| {
                let next = memos.next(QuerySubject::Mask, node, state)?;
                Ok::<_, MaskFailure>(memos.suffix_sets.of_masks().reached(next))
            };
            let take = |node| {
                nodes.push(node);
                Ok(())
            };
            if !follow_stacks(first, top, next, take)? {
                return Err(Interrupted::TooManyWays { limit: MAX_WAYS }.into());
            }
            let of_masks = memos.suffix_sets.of_masks();
            Ok(nodes.into_iter().map(|node| of_masks.get(node).said.suffix_set).collect())
        })
    }

    /// Reads all stacks with an entry on top, as far as they matter to what may come below a node
    /// of the vocabulary's trie where a lexeme has ended.
    ///
    /// It takes from the budget as [`find`](Self::find) does.
    pub(crate) fn read_below(self, node: u32, top: StackNode<'_>) -> Result<(), MaskFailure> {
        let suffix = self.lexemes.residuals().suffix_at(self.trie, node);
        self.memos(|mut memos| {
            let place = Place { suffix, ..Place::FRONT };
            let number = memos.suffix_sets.places.insert_full(place).0 as u32;
            memos.suffix_sets.below.insert(node, number);
            let first = memos.first_suffixes(place, top.state())?;
            let first = memos.suffix_sets.of_places().reached(first);
            let next = |node, state| {
                let next = memos.next(place.asked(), node, state)?;
                Ok::<_, MaskFailure>(memos.suffix_sets.of_places().reached(next))
            };
            match follow_stacks(first, top, next, |_| Ok(()))? {
                true => Ok(()),
                false => Err(Interrupted::TooManyWays { limit: MAX_WAYS }.into()),
            }
        })
    }

    /// Lends the memos to what makes nodes.
    pub(super) fn memos<T>(
        self,
        grow: impl FnOnce(Memos<'_, '_, 'b>) -> Result<T, MaskFailure>,
    ) -> Result<T, MaskFailure> {
        let residuals = Arc::clone(self.lexemes.residuals());
        let in_all = Arc::clone(self.lexemes.all());
        let Self { recognizer, trie, num_words, lexemes, suffix_sets, budget, .. } = self;
        let fixed = SimulationContext {
            recognizer,
            trie,
            num_words,
            residuals: &residuals,
            lexemes: &in_all,
        };
        budget.spend(1)?;
        grow(Memos { fixed, lexemes, suffix_sets, budget })
    }
}
