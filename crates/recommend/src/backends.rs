//! The two backends of a search: the decoder's passes, and a draft head's steps.

use palmette_catalog::{CatalogKeys, CodeTokens};
use palmette_core::{Constraint, TokenId};
use palmette_decode::{Extension, Pass, Step, StepBackend};
use palmette_model::{Reading, SessionError};

use crate::buffers::DraftBuffers;
use crate::error::RecommendError;
use crate::passes::Passes;
use crate::recommender::Recommender;

/// The decoder: a pass over the prompt, then one a level over all beams.
pub(crate) struct DecoderBackend<'a> {
    pub(crate) recommender: &'a Recommender,
    pub(crate) reading: &'a mut dyn Reading,
    pub(crate) passes: &'a mut Passes,
}

impl StepBackend for DecoderBackend<'_> {
    type Error = RecommendError;

    fn num_tokens(&self) -> usize {
        self.recommender.engine().config().vocab_size
    }

    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), RecommendError> {
        let columns = self.recommender.columns(pass.index);
        self.passes.trace(pass, self.recommender.tokens());
        match pass.index {
            0 => {
                let is_read = self.reading.has_read_prompt();
                self.reading.begin_prompt(columns)?;
                // A second search after the same prompt: no pass.
                if is_read {
                    return Ok(());
                }
            }
            _ => self.reading.begin_next(pass.parents, pass.tokens, columns)?,
        }
        self.passes.rows.push(pass.rows());
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), RecommendError> {
        Ok(self.reading.select(step, best)?)
    }
}

/// A draft head: one pass over prompt and placeholders, then a few products a row and level.
pub(crate) struct DraftBackend<'a, C: Constraint> {
    pub(crate) recommender: &'a Recommender,
    pub(crate) reading: &'a mut dyn Reading,
    pub(crate) draft: &'a mut DraftBuffers,
    pub(crate) passes: &'a mut Passes,
    /// Asked about whole IDs at the last level.
    pub(crate) verifier: Option<Verifier<'a, C>>,
}

/// Whole semantic IDs against the items that may be recommended.
pub(crate) struct Verifier<'a, C: Constraint> {
    pub(crate) constraint: &'a C,
    pub(crate) scratch: &'a mut C::Scratch,
    pub(crate) tokens: &'a CodeTokens,
    /// The catalog's IDs by key, where they have been made: a look-up that spares most walks.
    pub(crate) keys: Option<&'a CatalogKeys>,
    /// True when every item of the keys may be recommended.
    pub(crate) all_items: bool,
    pub(crate) num_levels: usize,
    /// The codes of one ID.
    pub(crate) codes: &'a mut Vec<u32>,
}

impl<C: Constraint> Verifier<'_, C> {
    fn accepts(&mut self, before: &[TokenId], token: TokenId) -> bool {
        if before.len() + 1 < self.num_levels {
            return true;
        }
        let all = before.iter().chain([&token]);
        if let Some(keys) = self.keys {
            self.codes.clear();
            let codes = all.clone().enumerate();
            self.codes.extend(codes.filter_map(|(level, &token)| self.tokens.code(level, token)));
            if !keys.contains(self.codes) {
                return false;
            }
            if self.all_items {
                return true;
            }
        }
        state_of(self.constraint, self.scratch, all).is_some()
    }
}

impl<C: Constraint> StepBackend for DraftBackend<'_, C> {
    type Error = RecommendError;

    fn num_tokens(&self) -> usize {
        self.recommender.engine().config().vocab_size
    }

    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), RecommendError> {
        self.passes.trace(pass, self.recommender.tokens());
        self.passes.rows.push(pass.rows());
        match pass.index {
            0 => {
                let session = self.reading.as_session().ok_or(SessionError::NoDraftHere)?;
                self.draft.run.begin(session)?
            }
            _ => self.draft.run.advance(pass.parents, pass.tokens),
        };
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), RecommendError> {
        let columns = self.recommender.level_columns(step.pass.index);
        let verifier = &mut self.verifier;
        let accepts = |before: &[TokenId], token| match verifier {
            Some(verifier) => verifier.accepts(before, token),
            None => true,
        };
        let DraftBuffers { run, top_k } = self.draft;
        Ok(top_k.select(step, run.logits(), columns, accepts, best)?)
    }
}

/// The constraint's position after these tokens; `None` where an item that may be recommended has
/// no such ID.
pub(crate) fn state_of<'t, C: Constraint>(
    constraint: &C,
    scratch: &mut C::Scratch,
    tokens: impl IntoIterator<Item = &'t TokenId>,
) -> Option<C::State> {
    let mut state = constraint.start();
    for &token in tokens {
        constraint.commit(&mut state, token, scratch).ok()?;
    }
    constraint.is_accepting(&state, scratch).ok()?.then_some(state)
}
