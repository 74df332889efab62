//! One request at a time, from history to items.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use palmette_catalog::CatalogConstraint;
use palmette_core::TokenId;
use palmette_decode::{BeamOptions, BeamSearch, LogitsSource};
use palmette_model::{Session, SessionOptions};

use crate::error::RecommendError;
use crate::recommender::Recommender;

/// Widest beam, and most recommendations of one request: caches and logits grow with it.
pub const MAX_BEAM_WIDTH: usize = 1 << 16;

/// How a worker searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Hypotheses kept at each level.
    pub beam_width: usize,
    /// Threads of one request; results do not depend on it.
    pub threads: usize,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Ranks of the items in the user's history, oldest first. May be empty.
    pub history: &'a [u32],
    /// How many items to recommend.
    pub k: usize,
    /// Whether items of the history may be recommended again.
    pub include_seen: bool,
}

/// An item with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommended {
    /// Rank in the catalog.
    pub rank: u32,
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
    /// The beam width that was needed: the worker's own, or more where `k` or the exclusion of
    /// seen items asked for it.
    pub beam_width: usize,
}

/// A part of a request, reported when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The model read the prompt.
    Prefill,
    /// The model read one more token of every beam.
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
    options: WorkerOptions,
    /// Width the buffers are planned for: the options' own, except after a request that needed more.
    planned_width: usize,
    session: Session<'r>,
    search: BeamSearch<CatalogConstraint>,
    history: Vec<Vec<u32>>,
    prompt: Vec<TokenId>,
}

impl<'r> Worker<'r> {
    pub(crate) fn new(
        recommender: &'r Recommender,
        options: WorkerOptions,
    ) -> Result<Self, RecommendError> {
        Self::planned(recommender, options, options.beam_width)
    }

    fn planned(
        recommender: &'r Recommender,
        options: WorkerOptions,
        planned_width: usize,
    ) -> Result<Self, RecommendError> {
        let width = checked("beam width", planned_width, MAX_BEAM_WIDTH)?;
        let levels = recommender.format().levels.len();
        let session = Session::new(
            recommender.model(),
            SessionOptions {
                max_prompt_tokens: recommender.format().max_prompt_tokens(),
                max_beams: planned_width,
                max_decode_passes: levels.saturating_sub(1),
                threads: options.threads.max(1),
            },
        )?;
        let search = BeamSearch::new(BeamOptions { width, max_tokens: levels });
        let (history, prompt) = (Vec::new(), Vec::new());
        Ok(Self { recommender, options, planned_width, session, search, history, prompt })
    }

    /// Recommends items, calling `stage_ended` after each part of the work, so that a caller with a
    /// clock can time them.
    ///
    /// Exact at its width: the search is that of `palmette-decode`. Where excluding seen items
    /// leaves fewer than `k`, the search is run again twice as wide, until `k` items are found or
    /// the whole catalog has been. The next request begins at the worker's own width again.
    ///
    /// # Errors
    /// When `k` is 0 or too large, the widest possible beam does not hold `k` unseen items, or the
    /// model fails.
    ///
    /// # Panics
    /// When the history holds a rank that the catalog does not have.
    pub fn recommend(
        &mut self,
        request: &Request<'_>,
        mut stage_ended: impl FnMut(Stage),
    ) -> Result<Recommendations, RecommendError> {
        let k = checked("k", request.k, MAX_BEAM_WIDTH)?.get();
        // Every request begins at the same width, whatever the one before it needed.
        let mut width = self.options.beam_width.max(k);
        loop {
            if self.planned_width != width {
                *self = Self::planned(self.recommender, self.options, width)?;
            }
            let history_used = self.search(request.history, &mut stage_ended)?;
            let items = self.collect(request, k);
            let all_found = self.search.results().len() < width;
            if items.len() == k || all_found {
                return Ok(Recommendations { items, history_used, beam_width: width });
            }
            if width == MAX_BEAM_WIDTH {
                return Err(RecommendError::BeamTooNarrow { k, found: items.len(), width });
            }
            width = (width * 2).min(MAX_BEAM_WIDTH);
        }
    }

    /// The sequences that the latest request's search found, best first, as the model's tokens.
    pub fn generated(&self) -> impl ExactSizeIterator<Item = &[TokenId]> {
        self.search.results().map(|found| found.tokens)
    }

    /// Reads the prompt and runs the search to its end; returns how many items the model read.
    fn search(
        &mut self,
        history: &[u32],
        stage_ended: &mut impl FnMut(Stage),
    ) -> Result<usize, RecommendError> {
        let (constraint, format) = (self.recommender.constraint(), self.recommender.format());
        let used = history.len().min(format.max_history_items);
        let recent = &history[history.len() - used..];
        self.history.clear();
        self.history.extend(recent.iter().map(|&rank| constraint.catalog().codes(rank)));
        format.write_prompt(&self.history, &mut self.prompt);
        self.session.set_prompt(&self.prompt)?;

        self.search.start(constraint);
        stage_ended(Stage::Mask);
        let mut is_prompt = true;
        while self.search.is_live() {
            let logits = if is_prompt {
                self.session.prompt_logits()?
            } else {
                self.session.next_logits(self.search.parents(), self.search.tokens())?
            };
            stage_ended(if is_prompt { Stage::Prefill } else { Stage::Decode });
            is_prompt = false;
            self.search.select(logits)?;
            stage_ended(Stage::TopK);
            self.search.expand(constraint)?;
            stage_ended(Stage::Mask);
        }
        Ok(used)
    }

    /// The items of the search's results, less those already seen.
    fn collect(&self, request: &Request<'_>, k: usize) -> Vec<Recommended> {
        let seen: HashSet<u32> = match request.include_seen {
            true => HashSet::new(),
            false => request.history.iter().copied().collect(),
        };
        let catalog = self.recommender.catalog();
        self.search
            .results()
            .flat_map(|found| {
                let ranks = catalog.items_at(found.state);
                ranks.map(move |rank| Recommended { rank, score: found.score })
            })
            .filter(|item| !seen.contains(&item.rank))
            .take(k)
            .collect()
    }
}

fn checked(what: &'static str, value: usize, max: usize) -> Result<NonZeroUsize, RecommendError> {
    match NonZeroUsize::new(value) {
        None => Err(RecommendError::Zero { what }),
        Some(_) if value > max => Err(RecommendError::TooLarge { what, value, max }),
        Some(value) => Ok(value),
    }
}
