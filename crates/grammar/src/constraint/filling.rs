//! The mask of a state, within limits.

use palmette_core::{Constraint, mask};
use palmette_grammar_masks::MemberMasks;
use palmette_grammar_masks::member_walk::MemberWalk;
use palmette_grammar_masks::walk::TrieWalk;
use palmette_grammar_parser::recognizer::{Position, RecognizerError};

use super::binding::BoundSlots;
use super::{GrammarConstraint, GrammarScratch, GrammarState, MaskBudget};

impl GrammarConstraint {
    /// [`fill_mask`](Constraint::fill_mask) with limits on its work. The mask is the exact one, or
    /// there is an error and it denies all.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, when both budgets of `work` are used up, or when it
    /// is cancelled.
    ///
    /// # Panics
    /// As [`fill_mask`](Constraint::fill_mask).
    pub fn fill_mask_within(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
        work: &MaskBudget<'_>,
    ) -> Result<(), RecognizerError> {
        assert_eq!(mask.len(), mask::num_words(self.num_tokens()), "a mask row");
        let Some(position) = state.position().filter(|_| !state.ended()) else {
            mask.fill(0);
            return Ok(());
        };
        if let Some(slot) = self.recognizer.grammar().slots().first()
            && position.binding().is_none()
        {
            mask.fill(0);
            return Err(RecognizerError::Unbound { slot: slot.label() });
        }
        let explored = self.mask_automaton().map(|automaton| {
            let (recognizer, budget) = (&*self.recognizer, &mut work.exploring());
            match &self.bound {
                None => automaton.fill_mask_within(recognizer, position, mask, budget),
                Some(BoundSlots { rows, .. }) => {
                    let masks = MemberMasks { automaton, recognizer, rows };
                    let scratch = (&mut scratch.members, &mut scratch.recognizer);
                    masks.fill_mask_within(position, scratch, mask, budget)
                }
            }
        });
        match explored {
            Some(Err(RecognizerError::Interrupted(why))) if why.is_limit() => {
                self.walk(position, scratch, mask, work)?;
            }
            Some(explored) => explored?,
            None => self.walk(position, scratch, mask, work)?,
        }
        self.deny_repeated_names(position, scratch, mask)?;
        self.deny_beyond_limits(position, scratch, mask, work)?;
        match self.recognizer.is_accepting(position, &mut scratch.recognizer) {
            Ok(true) => self.ends().iter().for_each(|&end| mask::insert(mask, end)),
            Ok(false) => {}
            Err(error) => {
                mask.fill(0);
                return Err(error);
            }
        }
        Ok(())
    }

    fn walk(
        &self,
        position: &Position,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
        work: &MaskBudget<'_>,
    ) -> Result<(), RecognizerError> {
        self.vocabulary.count_walk();
        let mut budget = work.budget(work.walk);
        if position.binding().is_some() {
            let walk = MemberWalk { recognizer: &self.recognizer, trie: self.vocabulary.trie() };
            return walk.fill_mask_within(position, &mut scratch.recognizer, mask, &mut budget);
        }
        let walk = TrieWalk { recognizer: &self.recognizer, trie: self.vocabulary.trie() };
        walk.fill_mask_within(position, &mut scratch.walk, mask, &mut budget)
    }
}
