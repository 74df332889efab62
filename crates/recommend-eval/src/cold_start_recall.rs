//! Recall of items that a model has never seen, with the constraint and without.

use std::sync::Arc;

use palmette_catalog_live::ViewItems;
use palmette_core::TokenId;
use palmette_decode::run_on;
use palmette_recommend::{Candidates, History, Recommender, Request, SpelledView, Worker};

use crate::cold_start::ColdStart;
use crate::evaluate::{EvalError, EvalOptions, check_k, in_shares};
use crate::free_running::{FreeRunning, spelled};
use crate::metrics::RankingMetrics;
use crate::split::Question;

/// Metrics of the held-out items, by the way they were searched for. Source: STATIC, arXiv
/// 2602.22647, §6.2.
#[derive(Clone, Debug, PartialEq)]
pub struct ColdStartRecall {
    /// Beam width of all searches: the options' own, or `k` where that is more.
    pub beam_width: usize,
    /// Beam search by the model alone, nothing checked: places of generated sequences. `None` where
    /// that was not asked for.
    pub unconstrained: Option<RankingMetrics>,
    /// Search over the whole catalog.
    pub catalog: RankingMetrics,
    /// Items drawn evenly from those that are held out.
    pub random: RandomGuesses,
    /// Search over the items that are held out, and no others.
    pub constrained: RankingMetrics,
}

/// Expected result of guessing, for which nothing has to be drawn.
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

/// Asks for the held-out items: `questions` are those of [`ColdStart::questions`], or some of them;
/// their items are numbers of `view`, which answers them all.
///
/// Items of the history are neither recommended nor guessed unless the options include them; the
/// model alone knows nothing of that. `answered` is told how many questions have been, from several
/// threads. The result does not depend on the number of threads.
///
/// # Errors
/// When the options are unusable or the model fails.
pub fn cold_start_recall(
    recommender: &Arc<Recommender>,
    view: &Arc<SpelledView>,
    cold: &ColdStart,
    questions: &[Question<'_>],
    options: &EvalOptions,
    answered: impl Fn(usize) + Sync,
) -> Result<ColdStartRecall, EvalError> {
    check_k(options.k)?;
    let beam_width = options.beam_width.max(options.k);
    let options = &EvalOptions { beam_width, ..*options };
    let items = view.view().choose(cold.items());
    let parts = in_shares(questions, options.threads, answered, |questions, answered| {
        let mut asker = Asker::new(recommender, view, &items, options)?;
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

/// Number of held-out items to guess among; 0 where the right one is excluded.
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
struct Asker<'a> {
    view: &'a Arc<SpelledView>,
    items: &'a ViewItems,
    options: EvalOptions,
    worker: Worker,
    free: Option<FreeRunning>,
}

impl<'a> Asker<'a> {
    fn new(
        recommender: &Arc<Recommender>,
        view: &'a Arc<SpelledView>,
        items: &'a ViewItems,
        options: &EvalOptions,
    ) -> Result<Self, EvalError> {
        let worker = Worker::new(Arc::clone(recommender), 1);
        let free = match options.unconstrained {
            true => Some(FreeRunning::new(recommender, view, options)?),
            false => None,
        };
        Ok(Self { view, items, options: *options, worker, free })
    }

    fn ask(&mut self, question: &Question<'_>, sum: &mut ColdStartRecall) -> Result<(), EvalError> {
        let EvalOptions { k, beam_width, include_seen, .. } = self.options;
        let history = History::Numbers(question.history);
        let mut place = |items| -> Result<Option<usize>, EvalError> {
            let (view, fields) = (Some(self.view), question.fields);
            let all = Request::new(history, k);
            let request = Request { beam_width, include_seen, items, view, fields, ..all };
            let answer = self.worker.recommend(&request, &mut run_on)?;
            Ok(answer.items.iter().position(|item| item.number == question.target))
        };
        sum.catalog.add(place(Candidates::All)?);
        sum.constrained.add(place(Candidates::Set(self.items))?);
        if let (Some(free), Some(found)) = (&mut self.free, &mut sum.unconstrained) {
            let generated = free.generate(question)?;
            found.add(place_of(self.view, generated, question.target));
        }
        Ok(())
    }
}

/// The place of an item among generated sequences. One that spells no item takes a place; one that
/// several items share takes a place for each, in catalog order.
fn place_of<'a>(
    view: &SpelledView,
    generated: impl Iterator<Item = &'a [TokenId]>,
    target: u64,
) -> Option<usize> {
    let mut place = 0;
    for tokens in generated {
        let codes = spelled(view, tokens);
        let numbers = codes.map_or_else(Vec::new, |codes| view.view().find_codes(&codes));
        if let Some(among) = numbers.iter().position(|&number| number == target) {
            return Some(place + among);
        }
        place += numbers.len().max(1);
    }
    None
}
