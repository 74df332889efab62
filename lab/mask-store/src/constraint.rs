//! Constraint whose masks come from a mask store.

use std::sync::Arc;

use palmette_core::{CommitError, Constraint, RollbackError, TokenId, mask, successors_by_mask};
use palmette_grammar::{GrammarConstraint, GrammarScratch, GrammarState, PreparedVocabulary};
use palmette_grammar_parser::glr::ParserScratch;
use palmette_grammar_parser::recognizer::{Recognizer, RecognizerError};

use super::refusal::StoreRefusal;
use super::steps::Steps;
use super::store::MaskStore;

/// Texts of a grammar, as a [`GrammarConstraint`] has them, with the masks of a [`MaskStore`].
///
/// Positions and commits are that constraint's; only where its masks come from is another.
#[derive(Debug)]
pub struct StoreConstraint {
    texts: GrammarConstraint,
    store: MaskStore,
}

/// Memory that a thread lends to a [`StoreConstraint`].
#[derive(Debug, Default)]
pub struct StoreScratch {
    texts: GrammarScratch,
    parser: ParserScratch,
    mask: Vec<u32>,
}

impl StoreConstraint {
    /// A grammar over a vocabulary, whose rows are streamlined by these steps.
    ///
    /// # Errors
    /// When the store does not read the grammar.
    pub fn new(
        recognizer: Arc<Recognizer>,
        vocabulary: Arc<PreparedVocabulary>,
        steps: Steps,
    ) -> Result<Self, StoreRefusal> {
        let store = MaskStore::new(Arc::clone(&recognizer), &vocabulary, steps)?;
        Ok(Self { texts: GrammarConstraint::by_walking(recognizer, vocabulary), store })
    }

    /// The store, with the rows of the states that were visited.
    pub fn store(&self) -> &MaskStore {
        &self.store
    }

    /// About how much memory lexer, parser and rows take by now.
    pub fn bytes(&self) -> usize {
        self.texts.bytes() + self.store.statistics().bytes
    }
}

impl Constraint for StoreConstraint {
    type State = GrammarState;
    type Scratch = StoreScratch;
    type Error = RecognizerError;

    fn num_tokens(&self) -> usize {
        self.texts.num_tokens()
    }

    fn start(&self) -> GrammarState {
        self.texts.start()
    }

    fn fill_mask(
        &self,
        state: &GrammarState,
        scratch: &mut StoreScratch,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        assert_eq!(mask.len(), mask::num_words(self.num_tokens()), "a mask row");
        mask.fill(0);
        let Some(position) = state.position().filter(|_| !state.ended()) else { return Ok(()) };
        self.store.fill_mask(position, &mut scratch.parser, mask)?;
        match self.texts.is_accepting(state, &mut scratch.texts) {
            Ok(true) => self.texts.ends().iter().for_each(|&end| mask::insert(mask, end)),
            Ok(false) => {}
            Err(error) => {
                mask.fill(0);
                return Err(error);
            }
        }
        Ok(())
    }

    fn successors(
        &self,
        state: &GrammarState,
        scratch: &mut StoreScratch,
        visit: impl FnMut(TokenId, GrammarState),
    ) -> Result<(), RecognizerError> {
        let mut allowed = std::mem::take(&mut scratch.mask);
        let visited = successors_by_mask(self, state, scratch, &mut allowed, visit);
        scratch.mask = allowed;
        visited
    }

    fn commit(
        &self,
        state: &mut GrammarState,
        token: TokenId,
        scratch: &mut StoreScratch,
    ) -> Result<(), CommitError<RecognizerError>> {
        self.texts.commit(state, token, &mut scratch.texts)
    }

    fn rollback(&self, state: &mut GrammarState, num_tokens: usize) -> Result<(), RollbackError> {
        self.texts.rollback(state, num_tokens)
    }

    fn is_accepting(
        &self,
        state: &GrammarState,
        scratch: &mut StoreScratch,
    ) -> Result<bool, RecognizerError> {
        self.texts.is_accepting(state, &mut scratch.texts)
    }
}
