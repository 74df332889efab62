//! Components of a mask, read from a parser's stack by the stack automaton.

use std::sync::Arc;

use palmette_parser::glr::StackNode;
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::Recognizer;

use super::mask_builder::MaskBuilder;
use super::stack_simulation::{Fixed, Memos, SimulationMemory};
use super::{ComponentsId, Lexemes, ResidualId, Residuals, SuffixSets, Unread};
use crate::Budget;
use crate::vocabulary::VocabularyTrie;

/// Memory of readings, with the states that the last one read.
#[derive(Debug, Default)]
pub(crate) struct ReadingMemory {
    spare: Vec<SimulationMemory>,
    read: Vec<StateId>,
}

/// Puts masks together, of so many words.
#[derive(Debug)]
pub(crate) struct Reading<'a, 'b> {
    pub(crate) recognizer: &'a Recognizer,
    pub(crate) trie: &'a VocabularyTrie,
    pub(crate) num_words: usize,
    pub(crate) lexemes: &'a mut Lexemes,
    pub(crate) suffix_sets: &'a mut SuffixSets,
    pub(crate) memory: &'a mut ReadingMemory,
    pub(crate) budget: &'a mut Budget<'b>,
}

impl<'b> Reading<'_, 'b> {
    /// Finds of what the mask of a lexeme in progress is made, on the stack that begins with `states`, the last of which is that of
    /// `lowest`. It is right for all stacks that begin with as many states as [`ReadingMemory::read`] has.
    ///
    /// It takes from the budget: a unit for each lexeme that may begin and each node of a trie that is walked.
    pub(crate) fn find(
        &mut self,
        lexer: LexerState,
        states: &[StateId],
        lowest: StackNode<'_>,
    ) -> Result<ComponentsId, Unread> {
        self.with_memos(|memos, fixed, read| {
            read.clear();
            read.extend_from_slice(states);
            let mut entry = Some(lowest);
            let mut node = memos.first_mask(fixed, lexer, states[0])?;
            let mut at = 0;
            'read: loop {
                let missing = memos.suffix_sets.mask_nodes.get(node).missing;
                if missing == 0 {
                    break;
                }
                for _ in 0..missing {
                    at += 1;
                    if at == read.len() {
                        entry = entry.and_then(|entry| entry.below().next());
                        let Some(below) = entry else { break 'read };
                        read.push(below.state());
                    }
                }
                node = memos.next_mask(fixed, node, read[at])?;
            }
            Ok(memos.suffix_sets.mask_nodes.get(node).said.made_of)
        })
    }

    /// Lends the memos to what makes nodes, and the list of states that were read; takes a unit from the budget.
    pub(super) fn with_memos<T>(
        &mut self,
        make: impl FnOnce(&mut Memos<'_, 'b>, Fixed<'_>, &mut Vec<StateId>) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        self.budget.spend(1)?;
        let residuals = Arc::clone(self.lexemes.residuals());
        let lexemes = Arc::clone(self.lexemes.all());
        let fixed = Fixed {
            recognizer: self.recognizer,
            trie: self.trie,
            num_words: self.num_words,
            residuals: &residuals,
            lexemes: &lexemes,
        };
        let ReadingMemory { spare, read } = &mut *self.memory;
        let (lexemes, suffix_sets) = (&mut *self.lexemes, &mut *self.suffix_sets);
        let mut memos = Memos { lexemes, suffix_sets, budget: self.budget, spare };
        make(&mut memos, fixed, read)
    }
}

impl Residuals {
    /// Gathers the tokens consumed whole by some residuals, ascending; masks have so many words.
    pub(crate) fn gather(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        consuming: &[ResidualId],
        builder: &mut MaskBuilder,
        budget: &mut Budget<'_>,
    ) -> Result<(), Unread> {
        builder.clear(num_words);
        let mut large = Vec::new();
        for &residual in consuming {
            let consumed = &self.effect(trie, num_words, residual, budget)?.consumed;
            if consumed.is_large() {
                large.push(residual);
            } else {
                builder.insert_all(consumed);
            }
        }
        if large.len() > 1
            && let Some(union) = self.union(&large, num_words)
        {
            builder.insert_row(&union);
            return Ok(());
        }
        for residual in large {
            let consumed = &self.effect(trie, num_words, residual, budget)?.consumed;
            self.add_bytes(consumed.ask(num_words));
            builder.insert_all(consumed);
        }
        Ok(())
    }
}

impl ReadingMemory {
    /// The states that the last reading has read, from the top.
    pub(crate) fn read(&self) -> &[StateId] {
        &self.read
    }
}
