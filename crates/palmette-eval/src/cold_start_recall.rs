//! How often items that a model has never seen are found, with the constraint and without.

use std::sync::Arc;

use palmette_catalog::index::ItemSet;
use palmette_catalog::{Catalog, RankSet};
use palmette_core::TokenId;
use palmette_recommend::{Recommender, Request, Worker, WorkerOptions};

use crate::cold_start::ColdStart;
use crate::evaluate::{EvalError, EvalOptions, check_k, in_shares};
use crate::free_running::{FreeRunning, spelled};
use crate::metrics::RankingMetrics;
use crate::split::Question;

/// Where the held-out item stood, by how it was searched for. Source: STATIC, arXiv 2602.22647, §6.2.
#[derive(Clone, Debug, PartialEq)]
pub struct ColdStartRecall {
    /// Beam width of all searches: the options' own, or `k` where that is more.
    pub beam_width: usize,
    /// Beam search by the model alone, nothing checked: places of generated sequences. `None` where
    /// that was not asked for, or where the catalog's semantic IDs differ in length.
    pub unconstrained: Option<RankingMetrics>,
    /// Search over the whole catalog.
    pub catalog: RankingMetrics,
    /// Items drawn evenly from those that are held out.
    pub random: RandomGuesses,
    /// Search over the items that are held out, and no others.
    pub constrained: RankingMetrics,
}

/// What guessing comes to: expected values, for which nothing has to be drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RandomGuesses {
    /// Per question, among how many items the right one is; 0 where it is not among them.
    choices: Vec<u64>,
}

impl RandomGuesses {
    /// Adds a question whose right item is one of `choices`; 0 where it cannot be guessed.
    pub fn add(&mut self, choices: u64) {
        self.choices.push(choices);
    }

    /// The expected share of questions whose item is among `k` different guesses; 0 without any.
    pub fn recall(&self, k: usize) -> f64 {
        let chance = |&choices: &u64| match choices {
            0 => 0.0,
            _ => (k as f64 / choices as f64).min(1.0),
        };
        self.choices.iter().map(chance).sum::<f64>() / self.choices.len().max(1) as f64
    }
}

/// Asks for the held-out items: `questions` are those of [`ColdStart::questions`], or some of them.
///
/// Items of the history are neither recommended nor guessed unless the options include them; the
/// model alone knows nothing of that. `answered` is told how many questions have been, from several
/// threads. The result does not depend on the number of threads.
///
/// # Errors
/// When the options are unusable or the model fails.
pub fn cold_start_recall(
    recommender: &Recommender,
    cold: &ColdStart,
    questions: &[Question<'_>],
    options: &EvalOptions,
    answered: impl Fn(usize) + Sync,
) -> Result<ColdStartRecall, EvalError> {
    check_k(options.k)?;
    let catalog = recommender.catalog();
    let levels = catalog.num_levels();
    let is_uniform = (0..catalog.num_items()).all(|rank| catalog.codes(rank).len() == levels);
    let options = &EvalOptions {
        beam_width: options.beam_width.max(options.k),
        unconstrained: options.unconstrained && is_uniform,
        ..*options
    };
    let ranks = RankSet::from_ranks(catalog.num_items(), cold.items());
    let items = Arc::new(catalog.index().item_set(ranks));
    let parts = in_shares(questions, options.threads, answered, |questions, answered| {
        let mut asker = Asker::new(recommender, &items, options)?;
        let mut sum = ColdStartRecall::empty(options);
        for question in questions {
            sum.random.add(choices(cold, question, options.include_seen));
            asker.ask(question, &mut sum)?;
            answered();
        }
        Ok(sum)
    })?;
    Ok(parts.iter().fold(ColdStartRecall::empty(options), ColdStartRecall::merge))
}

/// How many held-out items a guess may be; 0 where the right one is excluded.
fn choices(cold: &ColdStart, question: &Question<'_>, include_seen: bool) -> u64 {
    let mut seen: Vec<u64> = match include_seen {
        true => Vec::new(),
        false => question.history.iter().copied().filter(|&item| cold.contains(item)).collect(),
    };
    seen.sort_unstable();
    seen.dedup();
    match seen.contains(&question.target) || !cold.contains(question.target) {
        true => 0,
        false => (cold.num_items() - seen.len()) as u64,
    }
}

impl ColdStartRecall {
    fn empty(options: &EvalOptions) -> Self {
        let none = RankingMetrics::new(options.k);
        Self {
            beam_width: options.beam_width,
            unconstrained: options.unconstrained.then(|| none.clone()),
            catalog: none.clone(),
            random: RandomGuesses::default(),
            constrained: none,
        }
    }

    fn merge(mut self, other: &Self) -> Self {
        if let (Some(sum), Some(more)) = (&mut self.unconstrained, &other.unconstrained) {
            sum.merge(more);
        }
        self.catalog.merge(&other.catalog);
        self.random.choices.extend(&other.random.choices);
        self.constrained.merge(&other.constrained);
        self
    }
}

/// The buffers of one thread.
struct Asker<'r> {
    recommender: &'r Recommender,
    items: &'r Arc<ItemSet>,
    options: EvalOptions,
    worker: Worker<'r>,
    free: Option<FreeRunning<'r>>,
}

impl<'r> Asker<'r> {
    fn new(
        recommender: &'r Recommender,
        items: &'r Arc<ItemSet>,
        options: &EvalOptions,
    ) -> Result<Self, EvalError> {
        let worker =
            recommender.worker(WorkerOptions { beam_width: options.beam_width, threads: 1 })?;
        let free = match options.unconstrained {
            true => Some(FreeRunning::new(recommender, options)?),
            false => None,
        };
        Ok(Self { recommender, items, options: *options, worker, free })
    }

    fn ask(&mut self, question: &Question<'_>, sum: &mut ColdStartRecall) -> Result<(), EvalError> {
        let EvalOptions { k, include_seen, .. } = self.options;
        let mut place = |items| -> Result<Option<usize>, EvalError> {
            let request = Request { history: question.history, k, include_seen, items };
            let answer = self.worker.recommend(&request, |_| {})?;
            Ok(answer.items.iter().position(|item| item.rank == question.target))
        };
        sum.catalog.add(place(None)?);
        sum.constrained.add(place(Some(self.items))?);
        if let (Some(free), Some(found)) = (&mut self.free, &mut sum.unconstrained) {
            let generated = free.generate(self.recommender, question.history)?;
            found.add(place_of(self.recommender, generated, question.target));
        }
        Ok(())
    }
}

/// The place of an item among generated sequences. One that spells no item takes a place; one that
/// several items share takes a place for each, in catalog order.
fn place_of<'a>(
    recommender: &Recommender,
    generated: impl Iterator<Item = &'a [TokenId]>,
    target: u64,
) -> Option<usize> {
    let catalog: &Catalog = recommender.catalog();
    let mut place = 0;
    for tokens in generated {
        let ranks = spelled(recommender, tokens).map_or(0..0, |codes| catalog.find(&codes));
        if ranks.contains(&target) {
            return Some(place + (target - ranks.start) as usize);
        }
        place += ranks.count().max(1);
    }
    None
}
