//! A grammar whose masks have a budget and are called off with the text, and whose forced text is
//! cut as the tokenizer does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::{CommitError, Constraint, Lengths, RollbackError, SequencePart, TokenId, mask};
use palmette_grammar::{
    EndingError, GrammarConstraint, GrammarScratch, GrammarState, Interrupted, MaskBudget,
    RecognizerError,
};

use crate::model::TextModel;

/// The texts of a grammar, each of whose masks takes at most so much work: a request of a stranger
/// cannot hold a thread for ever.
///
/// A mask is the exact one, or there is an error; no clock is read, so a text that breaks off does
/// so at the same token everywhere, unless masks that it needs were found for others before.
#[derive(Debug)]
pub(crate) struct BoundedGrammar {
    pub(crate) grammar: GrammarConstraint,
    /// Steps of exploring, and as many for walking the vocabulary where that was not enough.
    pub(crate) mask_steps: u64,
    /// Set when nobody wants the text any more.
    pub(crate) is_called_off: Arc<AtomicBool>,
    /// The model, whose tokenizer cuts forced text.
    pub(crate) model: TextModel,
}

/// Bytes of forced text that are cut at once. What is longer goes on after them.
const MAX_STRETCH: usize = 1024;

impl BoundedGrammar {
    fn budget(&self) -> MaskBudget<'_> {
        MaskBudget::of_steps(self.mask_steps, Some(&*self.is_called_off))
    }

    fn mask_error(&self, error: RecognizerError) -> MaskError {
        match error {
            RecognizerError::Interrupted(Interrupted::OutOfBudget { .. }) => {
                MaskError::OverBudget { mask_steps: self.mask_steps }
            }
            other => other.into(),
        }
    }

    /// True when all allowed tokens begin with the same byte of text, as they do wherever text is
    /// forced.
    fn begins_alike(&self, allowed: &[u32]) -> bool {
        let vocabulary = self.grammar.vocabulary();
        let mut first = None;
        mask::iter(allowed).all(|token| {
            let byte = vocabulary.text(token).first().copied();
            byte.is_some()
                && *first.get_or_insert(byte) == byte
                && !self.grammar.ends().contains(&token)
        })
    }

    /// The cut of a text into tokens; none where the tokenizer has no cut of it alone.
    fn cut(&self, bytes: &[u8]) -> Vec<TokenId> {
        let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        self.model.tokenizer().encode(text).unwrap_or_default()
    }
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
        let filled = self.grammar.fill_mask_within(state, scratch, mask, &self.budget());
        filled.map_err(|error| self.mask_error(error))
    }

    fn fewest_tokens(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
    ) -> Result<Option<usize>, MaskError> {
        Ok(self.grammar.fewest_tokens_within(state, scratch, &self.budget())?)
    }

    fn has_way(
        &self,
        state: &GrammarState,
        lengths: Lengths,
        scratch: &mut GrammarScratch,
    ) -> Result<bool, MaskError> {
        match self.grammar.has_way_within(state, lengths, scratch, &self.budget()) {
            Err(RecognizerError::Interrupted(Interrupted::OutOfBudget { .. })) => Ok(false),
            found => Ok(found?),
        }
    }

    fn fill_ending_mask(
        &self,
        state: &GrammarState,
        lengths: Lengths,
        scratch: &mut GrammarScratch,
        allowed: &mut [u32],
    ) -> Result<(), MaskError> {
        let work = self.budget();
        match self.grammar.fill_ending_mask_within(state, lengths, scratch, allowed, &work) {
            // The way that is known is there, whatever others would take to be found.
            Err(EndingError::Limit(RecognizerError::Interrupted(Interrupted::OutOfBudget {
                ..
            }))) => {
                let way = self.grammar.shortest_completion(state, scratch, &work)?;
                let next = way.and_then(|way| way.tokens.first().copied());
                next.into_iter().for_each(|next| mask::insert(allowed, next));
                Ok(())
            }
            Err(EndingError::Limit(error)) => Err(self.mask_error(error)),
            // The mask denies all.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The ways within the budget; none where they take more.
    fn visit_ways(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        visit: impl FnMut(TokenId, Option<usize>),
    ) -> Result<(), MaskError> {
        match self.grammar.visit_ways_within(state, scratch, &self.budget(), visit) {
            Ok(()) | Err(RecognizerError::Interrupted(Interrupted::OutOfBudget { .. })) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The last token of a stretch is left to the model where a longer one begins so: what follows
    /// may belong to it, as in a choice of names.
    fn forced_stretch(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        allowed: &mut [u32],
    ) -> Result<Vec<TokenId>, MaskError> {
        if !self.begins_alike(allowed) {
            return Ok(Vec::new());
        }
        let forced = self.grammar.forced_bytes(state, MAX_STRETCH, scratch)?;
        let mut tokens = self.cut(&forced);
        if tokens.len() > 1 {
            tokens.pop();
            return Ok(tokens);
        }
        let Some(&last) = tokens.first() else { return Ok(tokens) };
        let vocabulary = self.grammar.vocabulary();
        let len = vocabulary.text(last).len();
        let goes_beyond = |token: TokenId| vocabulary.text(token).len() > len;
        if !mask::iter(allowed).any(goes_beyond) || !mask::contains(allowed, last) {
            return Ok(tokens);
        }
        let shorter = |&token: &TokenId| vocabulary.text(token).len() < len;
        let parts: Vec<TokenId> = mask::iter(allowed).filter(shorter).collect();
        parts.into_iter().for_each(|part| mask::remove(allowed, part));
        Ok(Vec::new())
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

    fn next_part(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        mask: &[u32],
    ) -> Result<Option<SequencePart>, MaskError> {
        Ok(self.grammar.next_part(state, scratch, mask)?)
    }
}
