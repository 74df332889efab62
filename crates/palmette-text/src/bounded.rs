//! A grammar whose masks have a budget, and are called off with the text.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{CommitError, Constraint, RollbackError, TokenId};
use palmette_grammar::{
    GrammarConstraint, GrammarScratch, GrammarState, Interrupted, MaskBudget, RecognizerError,
};

/// The texts of a grammar, each of whose masks takes at most so much work: a request of a stranger cannot hold a thread for ever.
///
/// A mask is the exact one, or there is an error; no clock is read, so a text that breaks off does so at the same token everywhere,
/// unless masks that it needs were found for others before.
#[derive(Debug)]
pub(crate) struct BoundedGrammar {
    pub(crate) grammar: GrammarConstraint,
    /// Steps of exploring, and as many for walking the vocabulary where that was not enough.
    pub(crate) mask_steps: u64,
    /// Set when nobody wants the text any more.
    pub(crate) is_called_off: Arc<AtomicBool>,
}

/// A mask that was not found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MaskError {
    #[error(
        "the mask takes more than its budget of {mask_steps} steps (mask_steps): make the grammar simpler or less ambiguous, or raise \
         the budget"
    )]
    OverBudget { mask_steps: u64 },
    #[error(transparent)]
    Grammar(#[from] RecognizerError),
}

impl Constraint for BoundedGrammar {
    type State = GrammarState;
    type Scratch = GrammarScratch;
    type Error = MaskError;

    fn num_tokens(&self) -> usize {
        self.grammar.num_tokens()
    }

    fn start(&self) -> GrammarState {
        self.grammar.start()
    }

    fn fill_mask(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
    ) -> Result<(), MaskError> {
        let mask_steps = self.mask_steps;
        let cancelled = Some(&*self.is_called_off);
        let budget = MaskBudget { explore: mask_steps, walk: mask_steps, cancelled };
        let filled = self.grammar.fill_mask_within(state, scratch, mask, &budget);
        filled.map_err(|error| match error {
            RecognizerError::Interrupted(Interrupted::OutOfBudget { .. }) => {
                MaskError::OverBudget { mask_steps }
            }
            other => other.into(),
        })
    }

    fn successors(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        visit: impl FnMut(TokenId, GrammarState),
    ) -> Result<(), MaskError> {
        Ok(self.grammar.successors(state, scratch, visit)?)
    }

    fn commit(
        &self,
        state: &mut GrammarState,
        token: TokenId,
        scratch: &mut GrammarScratch,
    ) -> Result<(), CommitError<MaskError>> {
        let committed = self.grammar.commit(state, token, scratch);
        committed.map_err(|error| error.map(MaskError::from))
    }

    fn rollback(&self, state: &mut GrammarState, num_tokens: usize) -> Result<(), RollbackError> {
        self.grammar.rollback(state, num_tokens)
    }

    fn is_accepting(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
    ) -> Result<bool, MaskError> {
        Ok(self.grammar.is_accepting(state, scratch)?)
    }
}
