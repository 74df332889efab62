//! One request's search with a draft head.

use std::num::NonZeroUsize;

use palmette_catalog::{CatalogConstraint, CatalogKeys, CatalogState};
use palmette_core::{Constraint, TokenId};
use palmette_decode::BeamSearch;
use palmette_model::Session;
use palmette_model::draft::{DraftHead, DraftRun};

use crate::error::RecommendError;
use crate::mode::{EveryCode, Verification};
use crate::recommender::Recommender;
use crate::worker::Stage;

/// What a worker has for a draft head besides its session and search.
#[derive(Debug)]
pub(crate) struct Draft<'r> {
    run: DraftRun<'r>,
    /// Where masks do not hold the search to the catalog.
    free: Option<Free<'r>>,
}

#[derive(Debug)]
struct Free<'r> {
    every: EveryCode,
    search: BeamSearch<EveryCode>,
    /// `None` where nothing is verified.
    keys: Option<&'r CatalogKeys>,
    /// The codes of one ID.
    codes: Vec<u32>,
}

impl<'r> Draft<'r> {
    pub(crate) fn new(
        recommender: &'r Recommender,
        head: &'r DraftHead,
        verification: Verification,
        widths: &[NonZeroUsize],
        threads: usize,
    ) -> Result<Self, RecommendError> {
        let keys = match verification {
            Verification::Keys => Some(recommender.keys()?),
            Verification::Masks | Verification::None => None,
        };
        let free = (verification != Verification::Masks).then(|| {
            let num_tokens = recommender.model().config().vocab_size;
            let levels = recommender.catalog().num_levels();
            let every = EveryCode::new(recommender.format(), levels, num_tokens);
            Free { every, search: BeamSearch::with_widths(widths), keys, codes: Vec::new() }
        });
        let widest = widths.iter().map(|width| width.get()).max().unwrap_or(1);
        Ok(Self { run: DraftRun::new(head, widest, threads), free })
    }

    /// The search that holds the results, where it is not the worker's own.
    pub(crate) fn free_search(&self) -> Option<&BeamSearch<EveryCode>> {
        self.free.as_ref().map(|free| &free.search)
    }

    /// Searches after the session's prompt, to the end.
    pub(crate) fn search(
        &mut self,
        recommender: &Recommender,
        session: &mut Session<'_>,
        masked: &mut BeamSearch<CatalogConstraint>,
        constraint: &CatalogConstraint,
        rows: &mut Vec<usize>,
        stage_ended: &mut impl FnMut(Stage),
    ) -> Result<(), RecommendError> {
        let mut steps = Steps { recommender, session, run: &mut self.run, rows, stage_ended };
        let Some(Free { every, search, keys, codes }) = &mut self.free else {
            return steps.run(masked, constraint, |_, _, _| true);
        };
        let levels = recommender.catalog().num_levels();
        let tokens = constraint.tokens();
        let all_items = constraint.items().is_none();
        steps.run(search, &*every, |level, before, token| {
            let Some(keys) = keys.filter(|_| level + 1 == levels) else { return true };
            codes.clear();
            let all = before.iter().chain([&token]).enumerate();
            codes.extend(all.filter_map(|(level, &token)| tokens.code(level, token)));
            let may_be = || state_of(constraint, before.iter().chain([&token])).is_some();
            keys.contains(codes) && (all_items || may_be())
        })
    }
}

/// A search's steps over a draft head.
struct Steps<'a, 's, 'h, F> {
    recommender: &'a Recommender,
    session: &'a mut Session<'s>,
    run: &'a mut DraftRun<'h>,
    rows: &'a mut Vec<usize>,
    stage_ended: &'a mut F,
}

impl<F: FnMut(Stage)> Steps<'_, '_, '_, F> {
    /// Runs to the end. `accepts` is given the level, a hypothesis' tokens and its next.
    fn run<C: Constraint>(
        &mut self,
        search: &mut BeamSearch<C>,
        constraint: &C,
        mut accepts: impl FnMut(usize, &[TokenId], TokenId) -> bool,
    ) -> Result<(), RecommendError> {
        search.start(constraint)?;
        (self.stage_ended)(Stage::Mask);
        while search.is_live() {
            let level = self.rows.len();
            let columns = self.recommender.level_columns(level);
            self.rows.push(search.tokens().len());
            let logits = match level {
                0 => self.run.begin(self.session)?,
                _ => self.run.advance(search.parents(), search.tokens()),
            };
            (self.stage_ended)(if level == 0 { Stage::Prefill } else { Stage::Decode });
            search.select_where(logits, columns, |before, token| accepts(level, before, token))?;
            (self.stage_ended)(Stage::TopK);
            search.expand(constraint)?;
            (self.stage_ended)(Stage::Mask);
        }
        Ok(())
    }
}

/// The constraint's position after these tokens; `None` where an item that may be recommended has no such ID.
pub(crate) fn state_of<'t>(
    constraint: &CatalogConstraint,
    tokens: impl IntoIterator<Item = &'t TokenId>,
) -> Option<CatalogState> {
    let mut state = constraint.start();
    for &token in tokens {
        constraint.commit(&mut state, token).ok()?;
    }
    constraint.is_accepting(&state).then_some(state)
}
