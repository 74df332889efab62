//! The mask of a state, within limits.

use std::sync::atomic::AtomicBool;

use palmette_core::{Constraint, mask};
use palmette_masks::walk::TrieWalk;
use palmette_parser::recognizer::{Position, RecognizerError};

use super::{GrammarConstraint, GrammarScratch, GrammarState};
use crate::Budget;

/// Budget of work for one mask.
///
/// A unit is a node of the vocabulary's trie, or one of its branches: some tens of nanoseconds, and about half a million for the
/// largest masks over 200 thousand tokens. No clock is read: the same question in the same order always stops at the same place.
#[derive(Clone, Copy, Debug)]
pub struct MaskBudget<'a> {
    /// Steps for what the mask engine has to compute first. What it found is kept, so this is needed once; where it is used
    /// up in the middle of a node, that node is begun again at the next mask that needs it.
    pub explore: u64,
    /// Steps for walking the vocabulary for this one mask, which is tried when exploring takes too much: it finds
    /// out nothing for others, but does not depend on how deep the stack has to be read.
    pub walk: u64,
    /// Calls the work off when it becomes true.
    pub cancelled: Option<&'a AtomicBool>,
}

impl Default for MaskBudget<'_> {
    fn default() -> Self {
        Self::unlimited()
    }
}

impl<'a> MaskBudget<'a> {
    /// Steps for the masks of strangers' grammars, where nobody says otherwise.
    ///
    /// Over the 200,000 tokens of `o200k_base` none of 286,000 masks along the instances of JSONSchemaBench's 792 schemas takes a million,
    /// nor one of the grammars of C, Go, Java, JSON, Python and SQL that Lark's users have; seven of the schemas have one above 300,000
    /// (`palmette bench grammar --mask-steps`). A mask of an ambiguous grammar, whose steps are the dearest, ends within some two seconds.
    pub const DEFAULT_STEPS: u64 = 3_000_000;

    /// A budget of so many steps for exploring, and as many for walking where that was not enough.
    pub fn of_steps(steps: u64, cancelled: Option<&'a AtomicBool>) -> Self {
        Self { explore: steps, walk: steps, cancelled }
    }

    /// A budget without limits.
    pub fn unlimited() -> Self {
        Self { explore: u64::MAX, walk: u64::MAX, cancelled: None }
    }

    pub(super) fn exploring(&self) -> Budget<'a> {
        self.budget(self.explore)
    }

    fn budget(&self, units: u64) -> Budget<'a> {
        match self.cancelled {
            Some(cancelled) => Budget::cancellable(units, cancelled),
            None => Budget::new(units),
        }
    }
}

impl GrammarConstraint {
    /// [`fill_mask`](Constraint::fill_mask) with limits on its work. The mask is the exact one, or there is an error and it
    /// denies all.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, when both budgets of `work` are used up, or when it is cancelled.
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
        let explored = self.mask_automaton().map(|automaton| {
            let budget = &mut work.exploring();
            automaton.fill_mask_within(&self.recognizer, position, mask, budget)
        });
        match explored {
            Some(Err(RecognizerError::Interrupted(why))) if why.is_limit() => {
                self.walk(position, scratch, mask, work)?;
            }
            Some(explored) => explored?,
            None => self.walk(position, scratch, mask, work)?,
        }
        self.deny_repeated_names(position, scratch, mask)?;
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
        let walk = TrieWalk { recognizer: &self.recognizer, trie: self.vocabulary.trie() };
        walk.fill_mask_within(position, &mut scratch.walk, mask, &mut work.budget(work.walk))
    }
}
