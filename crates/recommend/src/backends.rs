//! The two backends of a search: the decoder's passes, and a draft head's steps.

use palmette_catalog::{CatalogKeys, CodeTokens};
use palmette_core::{Constraint, TokenId};
use palmette_decode::{Extension, Step, StepBackend, TopK};
use palmette_model::Session;
use palmette_model::draft::DraftRun;

use crate::error::RecommendError;
use crate::passes::Passes;
use crate::recommender::Recommender;

/// The decoder: a pass over the prompt, then one a level over all beams.
pub(crate) struct DecoderBackend<'a> {
    pub(crate) recommender: &'a Recommender,
    pub(crate) session: &'a mut Session,
    pub(crate) top_k: &'a mut TopK,
    pub(crate) passes: &'a mut Passes,
}

impl StepBackend for DecoderBackend<'_> {
    type Error = RecommendError;

    fn num_tokens(&self) -> usize {
        self.recommender.model().config().vocab_size
    }

    fn compute(&mut self, step: &Step<'_>) -> Result<(), RecommendError> {
        let columns = self.recommender.columns(step.index);
        self.passes.trace(step, self.recommender.tokens());
        match step.index {
            // A second search after the same prompt: no pass.
            0 if self.session.has_read_prompt() => {
                self.session.prompt_logits_again(columns)?;
                return Ok(());
            }
            0 => self.session.prompt_logits_of(columns)?,
            _ => self.session.next_logits_of(step.parents, step.tokens, columns)?,
        };
        self.passes.rows.push(step.rows());
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), RecommendError> {
        let columns = self.recommender.columns(step.index);
        Ok(self.top_k.select(step, self.session.logits(), columns, |_, _| true, best)?)
    }
}

/// A draft head: one pass over prompt and placeholders, then a few products a row and level.
pub(crate) struct DraftBackend<'a, C: Constraint> {
    pub(crate) recommender: &'a Recommender,
    pub(crate) session: &'a mut Session,
    pub(crate) run: &'a mut DraftRun,
    pub(crate) top_k: &'a mut TopK,
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
        self.recommender.model().config().vocab_size
    }

    fn compute(&mut self, step: &Step<'_>) -> Result<(), RecommendError> {
        self.passes.trace(step, self.recommender.tokens());
        self.passes.rows.push(step.rows());
        match step.index {
            0 => self.run.begin(self.session)?,
            _ => self.run.advance(step.parents, step.tokens),
        };
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), RecommendError> {
        let columns = self.recommender.level_columns(step.index);
        let verifier = &mut self.verifier;
        let accepts = |before: &[TokenId], token| match verifier {
            Some(verifier) => verifier.accepts(before, token),
            None => true,
        };
        Ok(self.top_k.select(step, self.run.logits(), columns, accepts, best)?)
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
