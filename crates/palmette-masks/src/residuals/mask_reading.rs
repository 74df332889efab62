//! Components of a mask, read from a parser's stack by the stack automaton.

use std::sync::Arc;

use palmette_parser::glr::StackNode;
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::Recognizer;

use super::stack_nodes::Asked;
use super::stack_simulation::{Fixed, Memos};
use super::{Lexemes, SuffixSetId, SuffixSets, Unread};
use crate::Budget;
use crate::vocabulary::VocabularyTrie;

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
    /// Finds the mask of a lexeme in progress, on the stack that begins with `states`, the last of which is that of `lowest`; gives the
    /// states that were read too: it is right for all stacks that begin with these.
    ///
    /// It takes from the budget: a unit for each lexeme that may begin and each node of a trie that is walked.
    pub(crate) fn find(
        self,
        lexer: LexerState,
        states: &[StateId],
        lowest: StackNode<'_>,
    ) -> Result<(SuffixSetId, Vec<StateId>), Unread> {
        let (mut read, mut lowest, mut at) = (states.to_vec(), lowest, 0);
        let said = self.memos(|mut memos| {
            let first = memos.first_mask(lexer, states[0])?;
            let (said, _) = memos.read_on(Asked::Mask, first, || {
                at += 1;
                if at == read.len() {
                    lowest = lowest.below().next()?;
                    read.push(lowest.state());
                }
                Some(read[at])
            })?;
            Ok(said)
        })?;
        Ok((said.suffix_set, read))
    }

    /// Lends the memos to what makes nodes.
    pub(super) fn memos<T>(
        self,
        grow: impl FnOnce(Memos<'_, '_, 'b>) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        let residuals = Arc::clone(self.lexemes.residuals());
        let in_all = Arc::clone(self.lexemes.all());
        let Self { recognizer, trie, num_words, lexemes, suffix_sets, budget, .. } = self;
        let fixed = Fixed { recognizer, trie, num_words, residuals: &residuals, lexemes: &in_all };
        budget.spend(1)?;
        grow(Memos { fixed, lexemes, suffix_sets, budget })
    }
}
