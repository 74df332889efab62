//! The two backends of a search: the decoder's passes, and a draft head's steps.

use std::num::NonZeroUsize;

use palmette_catalog::{CatalogKeys, CodeTokens, LevelSpelling};
use palmette_catalog_live::{CatalogView, ViewItems};
use palmette_core::{Constraint, TokenId};
use palmette_decode::{Extension, Pass, SearchPlan, Step, StepBackend};
use palmette_model::{CatalogSearch, Reading, SearchLevel, SessionError};

use crate::buffers::DraftBuffers;
use crate::error::RecommendError;
use crate::passes::Passes;
use crate::prompt_format::LevelFormat;
use crate::recommender::Recommender;

/// The decoder: a pass over the prompt, then one a level over all beams.
pub(crate) struct DecoderBackend<'a> {
    pub(crate) recommender: &'a Recommender,
    pub(crate) reading: &'a mut dyn Reading,
    pub(crate) passes: &'a mut Passes,
    pub(crate) sought: SoughtItems<'a>,
}

/// The items of a search, for a device that has the catalog.
pub(crate) struct SoughtItems<'a> {
    pub(crate) view: &'a CatalogView,
    /// `None` for all.
    pub(crate) items: Option<&'a ViewItems>,
    /// Numbers of those that are not sought all the same.
    pub(crate) excluded: &'a [u64],
    /// True where a draft head predicts them.
    pub(crate) drafts: bool,
}

impl SoughtItems<'_> {
    /// Runs a whole search where the reading has the catalog, by the decoder or its draft head;
    /// false where it does not.
    fn search(
        &self,
        recommender: &Recommender,
        reading: &mut dyn Reading,
        passes: &mut Passes,
        plan: &SearchPlan<'_>,
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<bool, RecommendError> {
        // Beams are traced pass by pass.
        if passes.traces {
            return Ok(false);
        }
        let (&Self { view, items, excluded, drafts }, floor) = (self, plan.floor);
        let Some(levels) = levels(recommender, drafts, plan.widths) else { return Ok(false) };
        let search = CatalogSearch { view, items, excluded, levels: &levels, floor, drafts };
        let is_read = !drafts && reading.has_read_prompt();
        if !reading.search(&search, steps)? {
            return Ok(false);
        }
        let rows = steps.iter().map(Vec::len).take(levels.len() - 1).filter(|&rows| rows > 0);
        passes.rows.extend((!is_read).then_some(1).into_iter().chain(rows));
        Ok(true)
    }
}

/// Levels of a search as a device runs it; `None` where codes are no run of tokens, or other tokens
/// follow them.
fn levels(
    recommender: &Recommender,
    drafts: bool,
    widths: &[NonZeroUsize],
) -> Option<Vec<SearchLevel>> {
    let levels = &recommender.format().levels;
    if !recommender.sought_ends(drafts).is_empty() || levels.len() != widths.len() {
        return None;
    }
    let level = |(index, (level, width)): (usize, (&LevelFormat, &NonZeroUsize))| {
        let LevelSpelling::Run(run) = &level.tokens else { return None };
        let first = run.first_token as usize;
        let (tokens, width) = (first..first + run.num_codes as usize, width.get());
        let columns = if drafts { tokens.clone() } else { recommender.columns(index) };
        Some(SearchLevel { tokens, columns, width })
    };
    levels.iter().zip(widths).enumerate().map(level).collect()
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

    fn dropped_at_most(&self, step: &Step<'_>, best: &[Extension]) -> Option<f32> {
        self.reading.dropped_at_most(step, best)
    }

    fn search(
        &mut self,
        plan: &SearchPlan<'_>,
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<bool, RecommendError> {
        self.sought.search(self.recommender, self.reading, self.passes, plan, steps)
    }
}

/// A draft head: one pass over prompt and placeholders, then a few products a row and level.
pub(crate) struct DraftBackend<'a, C: Constraint> {
    pub(crate) recommender: &'a Recommender,
    pub(crate) reading: &'a mut dyn Reading,
    pub(crate) draft: &'a mut DraftBuffers,
    pub(crate) passes: &'a mut Passes,
    /// The items that masks hold it to; none where they do not.
    pub(crate) sought: Option<SoughtItems<'a>>,
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
        match (&mut self.draft.run, pass.index) {
            (Some(run), 0) => {
                let session = self.reading.as_session().ok_or(SessionError::NoDraftHere)?;
                run.begin(session)?;
            }
            (Some(run), _) => {
                run.advance(pass.parents, pass.tokens);
            }
            (None, 0) => self.reading.begin_draft()?,
            (None, _) => self.reading.next_draft(pass.parents, pass.tokens)?,
        }
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), RecommendError> {
        let columns = self.recommender.level_columns(step.pass.index);
        let verifier = &mut self.verifier;
        let is_free = verifier.is_none();
        let accepts = |before: &[TokenId], token| match verifier {
            Some(verifier) => verifier.accepts(before, token),
            None => true,
        };
        let DraftBuffers { run, top_k } = self.draft;
        let logits = match run {
            Some(run) => run.logits(),
            // What a verifier refuses is the host's to know.
            None if is_free => return Ok(self.reading.select(step, best)?),
            None => self.reading.logits()?,
        };
        Ok(top_k.select(step, logits, columns, accepts, best)?)
    }

    fn dropped_at_most(&self, step: &Step<'_>, best: &[Extension]) -> Option<f32> {
        match (&self.draft.run, &self.verifier) {
            (None, None) => self.reading.dropped_at_most(step, best),
            _ => self.draft.top_k.largest_dropped(),
        }
    }

    fn search(
        &mut self,
        plan: &SearchPlan<'_>,
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<bool, RecommendError> {
        let (Some(sought), None) = (&self.sought, &self.draft.run) else { return Ok(false) };
        sought.search(self.recommender, self.reading, self.passes, plan, steps)
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
