//! Grammars whose masks have a budget, as a server's have.

use palmette_core::{CommitError, Constraint, RollbackError, TokenId};
use palmette_grammar::{
    GrammarConstraint, GrammarScratch, GrammarState, MaskBudget, RecognizerError,
};

/// Grammar with a limit on the steps of each mask; a mask over it is an error.
pub(super) struct Bounded {
    pub(super) grammar: GrammarConstraint,
    pub(super) mask_steps: u64,
}

impl Constraint for Bounded {
    type State = GrammarState;
    type Scratch = GrammarScratch;
    type Error = RecognizerError;

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
    ) -> Result<(), RecognizerError> {
        let budget = MaskBudget::of_steps(self.mask_steps, None);
        self.grammar.fill_mask_within(state, scratch, mask, &budget)
    }

    fn successors(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        visit: impl FnMut(TokenId, GrammarState),
    ) -> Result<(), RecognizerError> {
        self.grammar.successors(state, scratch, visit)
    }

    fn commit(
        &self,
        state: &mut GrammarState,
        token: TokenId,
        scratch: &mut GrammarScratch,
    ) -> Result<(), CommitError<RecognizerError>> {
        self.grammar.commit(state, token, scratch)
    }

    fn rollback(&self, state: &mut GrammarState, num_tokens: usize) -> Result<(), RollbackError> {
        self.grammar.rollback(state, num_tokens)
    }

    fn is_accepting(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
    ) -> Result<bool, RecognizerError> {
        self.grammar.is_accepting(state, scratch)
    }
}
