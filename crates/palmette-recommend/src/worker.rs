//! One request at a time, from history to items.

use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette_catalog::CatalogConstraint;
use palmette_catalog::index::ItemSet;
use palmette_core::TokenId;
use palmette_decode::BeamSearch;
use palmette_model::Session;

use crate::draft::{Draft, state_of};
use crate::error::RecommendError;
use crate::mode::Mode;
use crate::recommender::Recommender;

/// Widest beam, and most recommendations of one request: caches and logits grow with it.
pub const MAX_BEAM_WIDTH: usize = 1 << 16;

/// How a worker searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Hypotheses kept at each level, unless the recommender has [widths](Recommender::with_widths) of its own.
    pub beam_width: usize,
    /// Threads of one request; results do not depend on it.
    pub threads: usize,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Ranks of the items in the user's history, oldest first. May be empty.
    pub history: &'a [u64],
    /// How many items to recommend.
    pub k: usize,
    /// Whether items of the history may be recommended again.
    pub include_seen: bool,
    /// The items that may be recommended, a set of the recommender's catalog; `None` for all.
    pub items: Option<&'a Arc<ItemSet>>,
}

/// An item with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommended {
    /// Rank in the catalog.
    pub rank: u64,
    /// Sum of the log-probabilities of its codes. Items that share a semantic ID share a score.
    pub score: f32,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendations {
    /// Best first; among items that share a semantic ID, in catalog order. Fewer than asked for only
    /// if no more items may be recommended.
    pub items: Vec<Recommended>,
    /// How many of the most recent items of the history the model read.
    pub history_used: usize,
    /// The beam width that was used: the worker's own, or `k` where that is more; of several, the last level's.
    pub beam_width: usize,
}

/// A part of a request, reported when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The model read the prompt.
    Prefill,
    /// The model, or its draft head, read one more token of every beam.
    Decode,
    /// Beams moved on and their masks were made.
    Mask,
    /// The best extensions of all beams were chosen.
    TopK,
}

/// Buffers of one request at a time, made once and reused; made anew only for a request that needs
/// another beam width.
#[derive(Debug)]
pub struct Worker<'r> {
    recommender: &'r Recommender,
    mode: Mode,
    threads: usize,
    /// The worker's own widths, one a level.
    widths: Vec<usize>,
    /// The least width the buffers are planned for: 0, except after a request that needed more.
    least: usize,
    session: Session<'r>,
    search: BeamSearch<CatalogConstraint>,
    /// The narrow search before it.
    probe: Option<BeamSearch<CatalogConstraint>>,
    draft: Option<Draft<'r>>,
    history: Vec<Vec<u32>>,
    prompt: Vec<TokenId>,
    /// Rows of the latest request's passes.
    rows: Vec<usize>,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(
        recommender: &'r Recommender,
        mode: Mode,
        options: WorkerOptions,
    ) -> Result<Self, RecommendError> {
        let widths = recommender.level_widths(options.beam_width);
        Self::planned(recommender, mode, widths, 0, options.threads.max(1))
    }

    /// With buffers for these widths, or `least` where that is more.
    fn planned(
        recommender: &'r Recommender,
        mode: Mode,
        widths: Vec<usize>,
        least: usize,
        threads: usize,
    ) -> Result<Self, RecommendError> {
        let wide = |&width: &usize| checked("beam width", width.max(least), MAX_BEAM_WIDTH);
        let planned: Vec<NonZeroUsize> = widths.iter().map(wide).collect::<Result<_, _>>()?;
        // Nothing is read after the last level.
        let beams: Vec<usize> =
            planned[..planned.len() - 1].iter().map(|width| width.get()).collect();
        let prompt_tokens = recommender.format().max_prompt_tokens();
        let (draft, prompt_tokens, passes) = match mode {
            Mode::Beam | Mode::Probed(_) => (None, prompt_tokens, &beams[..]),
            Mode::Draft(verification) => {
                let head = recommender.draft_head().ok_or(RecommendError::NoDraftHead)?;
                let draft = Draft::new(recommender, head, verification, &planned, threads)?;
                (Some(draft), prompt_tokens + head.num_placeholders(), &[][..])
            }
        };
        Ok(Self {
            recommender,
            mode,
            threads,
            least,
            session: Session::of_passes(recommender.model(), prompt_tokens, passes, threads)?,
            search: BeamSearch::with_widths(&planned),
            probe: match mode {
                Mode::Probed(width) if planned.iter().all(|&wide| wide > width) => {
                    Some(BeamSearch::with_widths(&vec![width; planned.len()]))
                }
                _ => None,
            },
            widths,
            draft,
            history: Vec::new(),
            prompt: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// What `least` must be for `k` results: as wide a search at every level never finds fewer while there are as many.
    fn least_for(&self, k: usize) -> usize {
        if self.widths.iter().all(|&width| width >= k) { 0 } else { k }
    }

    /// Recommends items, calling `stage_ended` after each part of the work, so that a caller with a
    /// clock can time them.
    ///
    /// Exact at its width but for the two free ways of [`Verification`](crate::Verification): the search is that of
    /// `palmette-decode`, over the items that may be
    /// recommended and no others. What was seen is left out before the search, not after it, so there
    /// are `k` items as long as the catalog has that many to recommend.
    ///
    /// # Errors
    /// When `k` is 0 or too large, or the model fails.
    ///
    /// # Panics
    /// When the history holds a rank that the catalog does not have.
    pub fn recommend(
        &mut self,
        request: &Request<'_>,
        mut stage_ended: impl FnMut(Stage),
    ) -> Result<Recommendations, RecommendError> {
        let k = checked("k", request.k, MAX_BEAM_WIDTH)?.get();
        // Every request begins at the same widths, whatever the one before it needed.
        let least = self.least_for(k);
        if self.least != least {
            let widths = self.widths.clone();
            *self = Self::planned(self.recommender, self.mode, widths, least, self.threads)?;
        }
        let beam_width = self.search.widths().last().map_or(k, |width| width.get());
        let constraint = self.constraint(request);
        let history_used = self.search(&constraint, request.history, k, &mut stage_ended)?;
        let items = match self.draft.as_ref().and_then(Draft::free_search) {
            None => {
                let ranks = |state| constraint.items_at(state);
                let found = self.search.results();
                let items = found.flat_map(|f| ranks(f.state).map(move |rank| (rank, f.score)));
                items.map(|(rank, score)| Recommended { rank, score }).take(k).collect()
            }
            Some(free) => {
                let found = free.results().flat_map(|found| {
                    let state = state_of(&constraint, found.tokens);
                    let ranks: Vec<u64> =
                        state.iter().flat_map(|state| constraint.items_at(state)).collect();
                    ranks.into_iter().map(move |rank| (rank, found.score))
                });
                found.map(|(rank, score)| Recommended { rank, score }).take(k).collect()
            }
        };
        Ok(Recommendations { items, history_used, beam_width })
    }

    /// What this request may return.
    fn constraint(&self, request: &Request<'_>) -> CatalogConstraint {
        let constraint = self.recommender.constraint();
        let catalog = self.recommender.catalog();
        let seen = if request.include_seen { &[] } else { request.history };
        let items = match (request.items, seen) {
            (None, []) => return constraint.clone(),
            (Some(items), []) => Arc::clone(items),
            (Some(items), seen) => Arc::new(items.without(catalog.index(), seen.iter().copied())),
            (None, seen) => {
                Arc::new(catalog.all_items().without(catalog.index(), seen.iter().copied()))
            }
        };
        constraint.with_items(items)
    }

    /// The sequences that the latest request's search found, best first, as the model's tokens. After a
    /// [probe](Mode::Probed), those that are as good as its last.
    pub fn generated(&self) -> Box<dyn ExactSizeIterator<Item = &[TokenId]> + '_> {
        match self.draft.as_ref().and_then(Draft::free_search) {
            None => Box::new(self.search.results().map(|found| found.tokens)),
            Some(free) => Box::new(free.results().map(|found| found.tokens)),
        }
    }

    /// Tokens of the latest request's prompt.
    pub fn prompt_tokens(&self) -> usize {
        self.prompt.len()
    }

    /// Rows of logits in each pass of the latest request: one for the prompt, then as many as there were beams, those of
    /// a [probe](Mode::Probed) first.
    pub fn rows_of_passes(&self) -> &[usize] {
        &self.rows
    }

    /// Bytes of the key/value caches as they were taken: the prompt's and the beams' part.
    pub fn cache_bytes(&self) -> (usize, usize) {
        self.session.cache_bytes()
    }

    /// Reads the prompt and runs the search to its end, for `k` items; returns how many items the model read.
    fn search(
        &mut self,
        constraint: &CatalogConstraint,
        history: &[u64],
        k: usize,
        stage_ended: &mut impl FnMut(Stage),
    ) -> Result<usize, RecommendError> {
        let format = self.recommender.format();
        let used = history.len().min(format.max_history_items);
        let recent = &history[history.len() - used..];
        self.history.clear();
        self.history.extend(recent.iter().map(|&rank| constraint.catalog().codes(rank)));
        format.write_prompt(&self.history, &mut self.prompt);
        self.session.set_prompt(&self.prompt)?;

        self.rows.clear();
        let (session, rows) = (&mut self.session, &mut self.rows);
        if let Some(draft) = &mut self.draft {
            draft.search(
                self.recommender,
                session,
                &mut self.search,
                constraint,
                rows,
                stage_ended,
            )?;
            return Ok(used);
        }
        let mut steps = Steps { recommender: self.recommender, session, rows, stage_ended };
        match self.probe.as_mut().filter(|probe| k <= probe.widths()[0].get()) {
            Some(probe) => self
                .search
                .run_after_probe(probe, constraint, k, |search| steps.finish(search, constraint))?,
            None => {
                self.search.start(constraint)?;
                steps.finish(&mut self.search, constraint)?;
            }
        }
        Ok(used)
    }
}

/// A search's steps over the decoder.
struct Steps<'a, 's, F> {
    recommender: &'a Recommender,
    session: &'a mut Session<'s>,
    rows: &'a mut Vec<usize>,
    stage_ended: &'a mut F,
}

impl<F: FnMut(Stage)> Steps<'_, '_, F> {
    /// Takes a search from its start to its end. The prompt is read for the first only.
    fn finish(
        &mut self,
        search: &mut BeamSearch<CatalogConstraint>,
        constraint: &CatalogConstraint,
    ) -> Result<(), RecommendError> {
        (self.stage_ended)(Stage::Mask);
        for level in 0.. {
            if !search.is_live() {
                break;
            }
            let columns = self.recommender.columns(level);
            let (parents, tokens) = (search.parents(), search.tokens());
            let reads_prompt = self.rows.is_empty();
            let logits = match level {
                0 if reads_prompt => self.session.prompt_logits_of(columns.clone())?,
                0 => self.session.prompt_logits_again(columns.clone())?,
                _ => self.session.next_logits_of(parents, tokens, columns.clone())?,
            };
            if level > 0 || reads_prompt {
                self.rows.push(tokens.len());
            }
            (self.stage_ended)(if reads_prompt { Stage::Prefill } else { Stage::Decode });
            search.select_of(logits, columns)?;
            (self.stage_ended)(Stage::TopK);
            search.expand(constraint)?;
            (self.stage_ended)(Stage::Mask);
        }
        Ok(())
    }
}

pub(crate) fn checked(
    what: &'static str,
    value: usize,
    max: usize,
) -> Result<NonZeroUsize, RecommendError> {
    match NonZeroUsize::new(value) {
        None => Err(RecommendError::Zero { what }),
        Some(_) if value > max => Err(RecommendError::TooLarge { what, value, max }),
        Some(value) => Ok(value),
    }
}
