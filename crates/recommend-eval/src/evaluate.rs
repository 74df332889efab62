//! Asking a recommender every user's question.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palmette_core::TokenId;
use palmette_decode::run_on;
use palmette_model::SessionError;
use palmette_recommend::{
    History, MAX_BEAM_WIDTH, Mode, RecommendError, Recommender, Request, SpelledView, Verification,
    Worker,
};
use rayon::prelude::*;
use serde::Serialize;

use crate::floors::Floor;
use crate::free_running::{FreeRunning, spelled};
use crate::metrics::RankingMetrics;
use crate::split::Question;

/// Options of an evaluation: how items are found, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalOptions {
    /// Method of finding items.
    pub mode: Mode,
    /// Hypotheses kept at each level, unless the recommender has widths of its own.
    pub beam_width: usize,
    /// Number of recommendations to ask for: the largest K.
    pub k: usize,
    /// True if items of the history may be recommended again.
    pub include_seen: bool,
    /// Also generate without the constraint, to see how much of it is valid. About doubles the
    /// time.
    pub unconstrained: bool,
    /// Users asked about at the same time.
    pub threads: usize,
}

/// Result of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Metrics of the right items.
    pub metrics: RankingMetrics,
    /// Place of the first item with the right item's semantic ID.
    ///
    /// Items that share a semantic ID have one score, and only the catalog's order tells which
    /// comes first; to a model they are one. Equal to [`metrics`](Self::metrics) where no right
    /// item shares its ID.
    pub id_metrics: RankingMetrics,
    /// Questions whose right item shares its semantic ID with another item.
    pub shared_targets: usize,
    /// Answers that are [proven](palmette_recommend::Recommendations::is_proven) to be those of
    /// scoring every item.
    pub proven: usize,
    /// The answers, in the order of the questions.
    pub answers: Vec<Answered>,
    /// Beam width of both searches: the options' own, or `k` where that is more.
    pub beam_width: usize,
    /// Validity of the best `k` sequences that the constrained search generated.
    pub constrained: ValidShare,
    /// Validity of the best `k` sequences that the same model generates at the same width without
    /// the constraint. `None` where that was not asked for.
    pub unconstrained: Option<ValidShare>,
    /// Valid share of the whole beam.
    pub unconstrained_beam: Option<ValidShare>,
    /// Metrics of the right items among sequences generated without the constraint. Sequences that
    /// are no item keep their places; items of the history are left out, where they may not be
    /// recommended.
    pub unconstrained_metrics: Option<RankingMetrics>,
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The numbers of the items that were recommended, best first.
    pub items: Vec<u64>,
    /// The right item's place among them, from 0.
    pub place: Option<usize>,
}

/// Share of generated semantic IDs that are items of the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ValidShare {
    /// Generated IDs that are items.
    pub valid: usize,
    /// All.
    pub generated: usize,
}

/// An evaluation that could not be finished.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct EvalError(#[from] RecommendError);

impl From<SessionError> for EvalError {
    fn from(error: SessionError) -> Self {
        Self(error.into())
    }
}

impl ValidShare {
    /// Valid ones as a share of all; 1 where nothing was generated.
    pub fn share(&self) -> f64 {
        if self.generated == 0 { 1.0 } else { self.valid as f64 / self.generated as f64 }
    }

    fn of(are_valid: &[bool]) -> Self {
        let valid = are_valid.iter().filter(|&&is_valid| is_valid).count();
        Self { valid, generated: are_valid.len() }
    }

    fn add(&mut self, other: Self) {
        self.valid += other.valid;
        self.generated += other.generated;
    }
}

impl Evaluation {
    fn empty(options: &EvalOptions) -> Self {
        let none = options.unconstrained.then(ValidShare::default);
        Self {
            metrics: RankingMetrics::new(options.k),
            id_metrics: RankingMetrics::new(options.k),
            shared_targets: 0,
            proven: 0,
            answers: Vec::new(),
            beam_width: options.beam_width,
            constrained: ValidShare::default(),
            unconstrained: none,
            unconstrained_beam: none,
            unconstrained_metrics: none.map(|_| RankingMetrics::new(options.k)),
        }
    }

    fn merge(mut self, other: &Self) -> Self {
        self.metrics.merge(&other.metrics);
        self.id_metrics.merge(&other.id_metrics);
        self.shared_targets += other.shared_targets;
        self.proven += other.proven;
        self.answers.extend_from_slice(&other.answers);
        self.constrained.add(other.constrained);
        let parts = [
            (&mut self.unconstrained, other.unconstrained),
            (&mut self.unconstrained_beam, other.unconstrained_beam),
        ];
        for (sum, more) in parts {
            if let (Some(sum), Some(more)) = (sum.as_mut(), more) {
                sum.add(more);
            }
        }
        if let (Some(sum), Some(more)) =
            (self.unconstrained_metrics.as_mut(), &other.unconstrained_metrics)
        {
            sum.merge(more);
        }
        self
    }
}

/// Asks every question; `answered` is told how many have been, from several threads.
///
/// The questions' items are numbers of `view`, and it answers them all: whatever comes into a live
/// catalog meanwhile, an evaluation is of one moment. The result does not depend on the number of
/// threads.
///
/// # Errors
/// When the options are unusable or the model fails.
pub fn evaluate(
    recommender: &Arc<Recommender>,
    view: &Arc<SpelledView>,
    questions: &[Question<'_>],
    options: &EvalOptions,
    answered: impl Fn(usize) + Sync,
) -> Result<Evaluation, EvalError> {
    check_k(options.k)?;
    let catalog = view.view();
    let every_id: HashSet<Vec<u32>> = catalog.numbers().map(|item| catalog.codes(item)).collect();
    let beam_width = options.beam_width.max(options.k);
    let options = &EvalOptions { beam_width, ..*options };
    let parts = in_shares(questions, options.threads, answered, |questions, answered| {
        let mut examiner = Examiner::new(recommender, view, &every_id, options)?;
        let mut sum = Evaluation::empty(options);
        for question in questions {
            examiner.ask(question, &mut sum)?;
            answered();
        }
        Ok(sum)
    })?;
    Ok(parts.iter().fold(Evaluation::empty(options), Evaluation::merge))
}

/// # Errors
/// When no worker can recommend so many items.
pub(crate) fn check_k(k: usize) -> Result<(), EvalError> {
    match k > MAX_BEAM_WIDTH {
        true => Err(RecommendError::TooLarge { what: "k", value: k, max: MAX_BEAM_WIDTH }.into()),
        false => Ok(()),
    }
}

/// Gives the questions to `ask` in shares, on several threads; returns what came of each share, in
/// order. `ask` says after every question that it is answered.
pub(crate) fn in_shares<'q, T: Send>(
    questions: &[Question<'q>],
    threads: usize,
    answered: impl Fn(usize) + Sync,
    ask: impl Fn(&[Question<'q>], &dyn Fn()) -> Result<T, EvalError> + Sync,
) -> Result<Vec<T>, EvalError> {
    let threads = threads.max(1);
    let done = AtomicUsize::new(0);
    let share = questions.len().div_ceil(threads * 8).max(1);
    let one_answered = || answered(done.fetch_add(1, Ordering::Relaxed) + 1);
    let ask = |questions: &[Question<'q>]| ask(questions, &one_answered);
    in_pool(threads, || questions.par_chunks(share).map(ask).collect())
}

/// Asks a floor the same questions. With each goes what was counted of its user
/// ([`KnownHistories::own`]).
///
/// [`KnownHistories::own`]: crate::KnownHistories::own
pub fn evaluate_floor(
    floor: &(impl Floor + Sync),
    questions: &[(Question<'_>, &[u64])],
    k: usize,
    include_seen: bool,
    threads: usize,
) -> RankingMetrics {
    let ask = |(question, own): &(Question<'_>, &[u64])| {
        let items = floor.recommend(question.history, own, k, include_seen);
        items.iter().position(|&item| item == question.target)
    };
    let places: Vec<Option<usize>> =
        in_pool(threads.max(1), || questions.par_iter().map(ask).collect());
    let mut metrics = RankingMetrics::new(k);
    places.into_iter().for_each(|place| metrics.add(place));
    metrics
}

/// Runs `work` on `threads` workers; on the current ones where no pool can be made.
fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

/// The buffers of one thread.
struct Examiner<'a> {
    view: &'a Arc<SpelledView>,
    every_id: &'a HashSet<Vec<u32>>,
    options: EvalOptions,
    worker: Worker,
    free: Option<Free>,
}

/// Generation without the constraint, by the decoder or the draft head.
enum Free {
    Decoder(Box<FreeRunning>),
    Draft(Box<Worker>),
}

impl<'a> Examiner<'a> {
    fn new(
        recommender: &Arc<Recommender>,
        view: &'a Arc<SpelledView>,
        every_id: &'a HashSet<Vec<u32>>,
        options: &EvalOptions,
    ) -> Result<Self, EvalError> {
        let worker = || Worker::new(Arc::clone(recommender), 1);
        let free = match (options.unconstrained, options.mode.verification()) {
            (false, _) => None,
            (true, None) => {
                Some(Free::Decoder(Box::new(FreeRunning::new(recommender, view, options)?)))
            }
            (true, Some(_)) => Some(Free::Draft(Box::new(worker()))),
        };
        Ok(Self { view, every_id, options: *options, worker: worker(), free })
    }

    fn ask(&mut self, question: &Question<'_>, sum: &mut Evaluation) -> Result<(), EvalError> {
        let EvalOptions { mode, k, beam_width, include_seen, .. } = self.options;
        let request = Request {
            beam_width,
            mode,
            include_seen,
            view: Some(self.view),
            fields: question.fields,
            ..Request::new(History::Numbers(question.history), k)
        };
        let answer = self.worker.recommend(&request, &mut run_on)?;
        let items: Vec<u64> = answer.items.iter().map(|item| item.number).collect();
        let place = items.iter().position(|&number| number == question.target);
        let catalog = self.view.view();
        let same_id = catalog.find_codes(&catalog.codes(question.target));
        sum.metrics.add(place);
        sum.id_metrics.add(items.iter().position(|number| same_id.contains(number)));
        sum.shared_targets += usize::from(same_id.len() > 1);
        sum.proven += usize::from(answer.is_proven());
        sum.answers.push(Answered { items, place });

        let is_item = |tokens: &[TokenId]| is_item(self.view, self.every_id, tokens);
        let found: Vec<bool> = self.worker.generated().take(k).map(is_item).collect();
        sum.constrained.add(ValidShare::of(&found));
        let Some(free) = &mut self.free else { return Ok(()) };
        let sequences: Vec<&[TokenId]> = match free {
            Free::Decoder(free) => free.generate(question)?.collect(),
            Free::Draft(worker) => {
                let mode = Mode::Draft(Verification::None);
                let free = Request { mode, include_seen: true, ..request };
                worker.recommend(&free, &mut run_on)?;
                worker.generated().collect()
            }
        };
        let found: Vec<bool> = sequences.iter().map(|tokens| is_item(tokens)).collect();
        if let Some(share) = &mut sum.unconstrained {
            share.add(ValidShare::of(&found[..k.min(found.len())]));
        }
        if let Some(share) = &mut sum.unconstrained_beam {
            share.add(ValidShare::of(&found));
        }
        if let Some(metrics) = &mut sum.unconstrained_metrics {
            let seen = if include_seen { &[] } else { question.history };
            metrics.add(place_of(self.view, &sequences, question.target, seen));
        }
        Ok(())
    }
}

/// The place of an item among generated sequences, those that are an item of `seen` left out.
fn place_of(
    view: &SpelledView,
    sequences: &[&[TokenId]],
    target: u64,
    seen: &[u64],
) -> Option<usize> {
    let mut place = 0;
    for sequence in sequences {
        let codes = spelled(view, sequence);
        let numbers = codes.map_or_else(Vec::new, |codes| view.view().find_codes(&codes));
        if numbers.contains(&target) {
            return Some(place);
        }
        let is_seen = !numbers.is_empty() && numbers.iter().all(|number| seen.contains(number));
        place += usize::from(!is_seen);
    }
    None
}

/// True if generated tokens spell a semantic ID of the catalog. They are decoded code by code and
/// looked up in a plain set, apart from the index that the constraint reads.
fn is_item(view: &SpelledView, every_id: &HashSet<Vec<u32>>, generated: &[TokenId]) -> bool {
    spelled(view, generated).is_some_and(|codes| every_id.contains(&codes))
}
