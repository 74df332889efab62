//! Recommendations: a model over a catalog, from any thread.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use palmette_catalog::{Filter, FilterError};
use palmette_catalog_live::CatalogSource;
use palmette_document::{Faults, RawJson};
use palmette_model::draft::DraftHead;
use palmette_model::{LoadError, Model, PromptStoreError};
use palmette_recommend::{
    Amount, AtMost, Boost, Diversity, ExplainItems, FormatError, Mode, Moment, NamedItem, Prompts,
    QuestionLimits, RecommendQuestion, Rules, RulesError, SpelledView, TieBreak, TracedBeam,
    UnknownItems, Valid, WorkerPool,
};

/// A model joined with the catalog it recommends from. Cheap to clone; threads share it, and none
/// waits for another.
///
/// Over a [`LiveCatalog`](crate::LiveCatalog) each request sees the newest generation, from its
/// beginning to its end.
#[derive(Clone, Debug)]
pub struct Recommender {
    pool: Arc<WorkerPool>,
}

/// A recommender that cannot be opened, or a request that cannot be answered.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RecommendError(#[from] Kind);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error(transparent)]
    Model(#[from] LoadError),
    #[error(transparent)]
    Prompts(#[from] PromptStoreError),
    #[error(transparent)]
    Format(#[from] FormatError),
    #[error(transparent)]
    Recommend(#[from] palmette_recommend::RecommendError),
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error("the user's fields are no JSON object: {0}")]
    User(serde_json::Error),
    #[error("the rules cannot be written as JSON: {0}")]
    RulesText(serde_json::Error),
    #[error(transparent)]
    Question(#[from] Faults),
}

impl RecommendError {
    /// The faults of the question, each with its place; none where something else failed.
    pub fn faults(&self) -> Option<&Faults> {
        match &self.0 {
            Kind::Question(faults) => Some(faults),
            Kind::Model(_)
            | Kind::Prompts(_)
            | Kind::Format(_)
            | Kind::Recommend(_)
            | Kind::Filter(_)
            | Kind::Rules(_)
            | Kind::User(_)
            | Kind::RulesText(_) => None,
        }
    }

    /// True when the request's own condition ended it.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Kind::Recommend(palmette_recommend::RecommendError::Cancelled))
    }
}

/// Idle workers that are kept: as many as threads usually ask at once.
const MAX_IDLE: usize = 64;

impl Recommender {
    /// Loads a model's directory (`config.json`, `model.safetensors`, `semantic_ids.json`, or
    /// `prompt_template.json` with `tokenizer.json`, and `draft.safetensors` where there is a draft
    /// head) and joins it with a [`Catalog`](crate::Catalog) or a
    /// [`LiveCatalog`](crate::LiveCatalog).
    ///
    /// # Errors
    /// When a file is missing or damaged, or model and catalog do not fit together.
    pub fn open(
        model: impl AsRef<Path>,
        catalog: impl Into<CatalogSource>,
    ) -> Result<Self, RecommendError> {
        Self::open_with(model, catalog, 0)
    }

    /// Opens as [`open`](Self::open) does, and keeps keys and values of prompts in `prompt_memory`
    /// bytes at most: a history that begins as an earlier one did is computed from where they part.
    /// Answers are the same to the bit.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when the bytes are too few for a page or more than there are.
    pub fn open_with(
        model: impl AsRef<Path>,
        catalog: impl Into<CatalogSource>,
        prompt_memory: usize,
    ) -> Result<Self, RecommendError> {
        let dir = model.as_ref();
        let catalog = catalog.into();
        let prompts = Prompts::read(dir, Some(&catalog.view())).map_err(Kind::from)?;
        let model = Model::load(dir).map_err(Kind::from)?;
        let has_head = dir.join(DraftHead::FILE_NAME).exists();
        let head = match has_head {
            true => {
                let shape = prompts.format().draft_shape().map_err(Kind::from)?;
                Some(DraftHead::load(dir, &model, shape).map_err(Kind::from)?)
            }
            false => None,
        };
        let model = model.with_prompt_memory(prompt_memory).map_err(Kind::from)?;
        let recommender = palmette_recommend::Recommender::new(model, catalog, prompts);
        let mut recommender = recommender.map_err(Kind::from)?;
        if let Some(head) = head {
            recommender = recommender.with_draft_head(head).map_err(Kind::from)?;
        }
        Ok(Self::new(recommender, 1))
    }

    /// A recommender of the engine crates, whose requests take this many threads each.
    pub fn new(recommender: palmette_recommend::Recommender, threads: usize) -> Self {
        let pool = WorkerPool::new(Arc::new(recommender), threads, MAX_IDLE);
        Self { pool: Arc::new(pool) }
    }

    /// Asks for items that follow a history, oldest first: [`run`](RecommendRequest::run) answers.
    ///
    /// Items are named by id, or by semantic ID: a list of codes, or a text such as `3-1-7` or
    /// `<a_3><b_1><c_7>` that is no id. Those that the catalog never had are left out and
    /// [reported](Answer::unknown).
    pub fn recommend<I: Into<NamedItem>>(
        &self,
        history: impl IntoIterator<Item = I>,
    ) -> RecommendRequest<'_> {
        self.ask(RecommendQuestion::new(history))
    }

    /// Asks a question that is written down as a document; the methods of the request change its
    /// members.
    pub fn ask(&self, question: RecommendQuestion) -> RecommendRequest<'_> {
        RecommendRequest {
            recommender: self,
            question,
            rules: Rules::default(),
            now: None,
            view: None,
            cancelled: None,
        }
    }

    /// The catalog as it is now: hold it, and [`at`](RecommendRequest::at) answers several requests
    /// by one generation.
    ///
    /// # Errors
    /// When an item has come whose codes the model has no token for.
    pub fn view(&self) -> Result<Arc<SpelledView>, RecommendError> {
        Ok(self.pool.recommender().view().map_err(Kind::from)?)
    }

    /// The pool of workers, for the engine crates.
    pub fn pool(&self) -> &Arc<WorkerPool> {
        &self.pool
    }
}

/// A request in the making: [`k`](Self::k) items after a history, by a beam search of width 128
/// unless told otherwise.
#[must_use = "`run` answers it"]
pub struct RecommendRequest<'a> {
    recommender: &'a Recommender,
    question: RecommendQuestion,
    /// Rules by the methods for each; where there are some they are the question's.
    rules: Rules,
    now: Option<f64>,
    view: Option<Arc<SpelledView>>,
    cancelled: Option<Box<dyn FnMut() -> bool + 'a>>,
}

impl<'a> RecommendRequest<'a> {
    /// Number of items; 10 unless set.
    pub fn k(mut self, k: usize) -> Self {
        self.question.k = k;
        self
    }

    /// Hypotheses kept at each level; the search is as wide as `k` where that is more.
    pub fn beam_width(mut self, beam_width: usize) -> Self {
        self.question.beam_width = Some(beam_width);
        self
    }

    /// A width for each level in place of one for all.
    pub fn widths(mut self, widths: impl Into<Vec<usize>>) -> Self {
        self.question.widths = Some(widths.into());
        self
    }

    /// The kind of search: by the decoder, with a narrow search first, or by a draft head.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.question.set_mode(mode);
        self
    }

    /// Gives the query of a model whose prompts have a place for one.
    pub fn query(mut self, query: impl Into<String>) -> Self {
        self.question.query = Some(query.into());
        self
    }

    /// Gives fields of the user to a model whose prompts have places for them, as a JSON object.
    ///
    /// # Errors
    /// When it is none.
    pub fn user(mut self, fields: &str) -> Result<Self, RecommendError> {
        self.question.user = serde_json::from_str(fields).map_err(Kind::User)?;
        Ok(self)
    }

    /// Lets the model write at most `max_tokens` of reasoning before the item: [`Answer::thought`].
    pub fn think_tokens(mut self, max_tokens: usize) -> Self {
        self.question.think_tokens = Some(max_tokens);
        self
    }

    /// Lets the model write at most `max_tokens` after each of the first `items` items. They are
    /// the [`Answer::explanations`].
    pub fn explain_items(mut self, items: usize, max_tokens: usize) -> Self {
        self.question.explain_items = Some(ExplainItems { items, max_tokens });
        self
    }

    /// Keeps the beams of each level: [`Answer::levels`].
    pub fn trace(mut self) -> Self {
        self.question.trace = true;
        self
    }

    /// Makes unknown items of the history an error, or leaves them out, which is the default.
    pub fn unknown_items(mut self, unknown: UnknownItems) -> Self {
        self.question.unknown_items = unknown;
        self
    }

    /// Restricts the items to those that match a filter, as JSON.
    ///
    /// # Errors
    /// When it is no filter; the message names the place.
    pub fn filter(mut self, filter: &str) -> Result<Self, RecommendError> {
        let filter = Filter::parse(filter).map_err(Kind::from)?;
        self.question.filter = RawJson::from_text(&filter.to_string()).ok();
        Ok(self)
    }

    /// Excludes these items.
    pub fn exclude<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.question.exclude.extend(ids.into_iter().map(|id| id.into().into()));
        self
    }

    /// Leaves items of the history out, the default, or lets them in.
    pub fn exclude_seen(mut self, exclude_seen: bool) -> Self {
        self.question.exclude_seen = exclude_seen;
        self
    }

    /// Lets keys and values of the prompt be kept for later requests, and those of earlier ones be
    /// used, the default, or neither; the answer is the same.
    pub fn remember(mut self, remember: bool) -> Self {
        self.question.remember = remember;
        self
    }

    /// Sets all [rules](Rules) at once, as one JSON document; those set before are forgotten.
    ///
    /// # Errors
    /// When it is none; the message names the place.
    pub fn rules(mut self, rules: &str) -> Result<Self, RecommendError> {
        self.rules = Rules::parse(rules).map_err(Kind::from)?;
        self.question.rules = None;
        Ok(self)
    }

    /// Takes at most `items` items of one value of an attribute, such as a brand. Several caps all
    /// hold.
    pub fn at_most(mut self, items: usize, attribute: impl Into<String>) -> Self {
        self.rules.at_most.push(AtMost { attribute: attribute.into(), items });
        self
    }

    /// Takes at most `items` items of one semantic ID.
    pub fn at_most_per_semantic_id(mut self, items: usize) -> Self {
        self.rules.at_most_per_semantic_id = Some(items);
        self
    }

    /// Adds `amount` to the scores of the items that match a filter, as JSON; a negative one buries
    /// them.
    ///
    /// # Errors
    /// When it is no filter; the message names the place.
    pub fn boost(mut self, filter: &str, amount: f64) -> Result<Self, RecommendError> {
        let filter = Some(Filter::parse(filter).map_err(Kind::from)?);
        self.rules.boosts.push(Boost { filter, amount: Amount::Add(amount) });
        Ok(self)
    }

    /// Adds `weight · value` of a number attribute to scores.
    pub fn boost_by(mut self, attribute: impl Into<String>, weight: f64) -> Self {
        let amount = Amount::Linear { attribute: attribute.into(), weight, offset: 0.0 };
        self.rules.boosts.push(Boost { filter: None, amount });
        self
    }

    /// Orders items of one semantic ID by an attribute, smallest or largest first.
    pub fn tie_break(mut self, attribute: impl Into<String>, descending: bool) -> Self {
        self.rules.tie_break = Some(TieBreak { attribute: attribute.into(), descending });
        self
    }

    /// Puts these items into the answer, at the places that their scores give them.
    pub fn must_include<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.rules.must_include.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Keeps these items out of the answer; as [`exclude`](Self::exclude).
    pub fn must_exclude<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.rules.must_exclude.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Restricts the items to those that are valid at a moment, in seconds since 1970: from one
    /// timestamp attribute, up to and without another.
    pub fn valid_at(
        mut self,
        seconds: f64,
        from: impl Into<String>,
        to: impl Into<String>,
    ) -> Self {
        let now = Some(Moment::Seconds(seconds));
        self.rules.valid = Some(Valid { from: Some(from.into()), to: Some(to.into()), now });
        self
    }

    /// The moment of the request for rules of validity in a document that name none, in seconds
    /// since 1970.
    pub fn now(self, seconds: f64) -> Self {
        Self { now: Some(seconds), ..self }
    }

    /// Ranks the results again by maximal marginal relevance: [`Diversity`]. The answer says that
    /// it is [reranked](Answer::reranked).
    pub fn diversity(mut self, lambda: f64, pool: usize) -> Self {
        self.rules.diversity = Some(Diversity { lambda, pool: Some(pool) });
        self
    }

    /// Asks for a [cursor](Answer::cursor), and has the search look for the items that come next.
    pub fn paged(mut self) -> Self {
        self.question.paged = true;
        self
    }

    /// Goes on after the items of earlier answers to this question, by the
    /// [cursor](Answer::cursor) of the last. All but `k` and what is traced is to be as it was.
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.question.cursor = Some(cursor.into());
        self
    }

    /// Pins the answer to the generation of a view.
    pub fn at(self, view: Arc<SpelledView>) -> Self {
        Self { view: Some(view), ..self }
    }

    /// Ends with [an error](RecommendError::is_cancelled) when this becomes true: a flag that
    /// another thread sets, or a deadline by the caller's clock. It is asked between the stages of
    /// the search, some milliseconds apart at most.
    pub fn cancel_when(self, cancelled: impl FnMut() -> bool + 'a) -> Self {
        Self { cancelled: Some(Box::new(cancelled)), ..self }
    }

    /// Answers: the best items of the catalog, and `k` of them while `k` may be recommended.
    ///
    /// # Errors
    /// When `k` or the width is 0 or too large, the filter asks for what the catalog does not have,
    /// there is no draft head for the mode, the model fails, or the request was cancelled.
    pub fn run(mut self) -> Result<Answer, RecommendError> {
        if !self.rules.is_empty() {
            let rules = RawJson::from_value(&self.rules).map_err(Kind::RulesText)?;
            self.question.rules = Some(rules);
        }
        let recommender = self.recommender.pool.recommender();
        let view = match self.view {
            Some(view) => view,
            None => recommender.view().map_err(Kind::from)?,
        };
        let now = self.now.map(Moment::Seconds);
        let limits = QuestionLimits::default();
        let question = self.question.check(recommender, &view, &limits, now).map_err(Kind::from)?;
        let mut cancelled = self.cancelled.take();
        let control = &mut |_| match cancelled.as_mut().is_some_and(|cancelled| cancelled()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let found = self.recommender.pool.answer(&question, control).map_err(Kind::from)?;
        let cursor = question.cursor_after(&found);
        let view = found.view.view();
        let item = |item: &palmette_recommend::Recommended| Recommendation {
            id: view.id(item.number).to_owned(),
            score: item.score,
            boost: item.boost,
            pinned: item.pinned,
            codes: view.codes(item.number),
        };
        Ok(Answer {
            items: found.items.iter().map(item).collect(),
            unknown: question.unknown().map(NamedItem::to_text).collect(),
            history_used: found.history_used,
            missed_at_most: found.missed_at_most,
            cursor,
            reranked: found.reranked.map(|reranked| reranked.pool),
            generation: view.generation(),
            thought: found.thought.clone(),
            explanations: found.explanations.clone(),
            levels: found.levels.clone(),
        })
    }
}

impl fmt::Debug for RecommendRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecommendRequest").field("question", &self.question).finish_non_exhaustive()
    }
}

/// An answer: items, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Best first; fewer than asked for only if no more items may be recommended.
    pub items: Vec<Recommendation>,
    /// Items of the history that the catalog never had, as they were written, in its order.
    pub unknown: Vec<String>,
    /// Number of the most recent items of the history that the model read.
    pub history_used: usize,
    /// Bound on the scores of items that belong into the answer and are not in it; `None` where it
    /// [is proven](Self::is_proven).
    pub missed_at_most: Option<f32>,
    /// Cursor of the items that come next, for [`after`](RecommendRequest::after); `None` where
    /// none do, or the question is not [paged](RecommendRequest::paged).
    pub cursor: Option<String>,
    /// Number of results that were ranked again for diversity; `None` where none were.
    pub reranked: Option<usize>,
    /// The generation of a live catalog that was answered by; `None` for a frozen one.
    pub generation: Option<u64>,
    /// Reasoning of the model before the item, where it was to
    /// [think](RecommendRequest::think_tokens).
    pub thought: Option<String>,
    /// Texts of the model after each of the first items, where it was to
    /// [explain](RecommendRequest::explain_items).
    pub explanations: Vec<String>,
    /// Beams kept after each level but the last, best first, where they are
    /// [traced](RecommendRequest::trace).
    pub levels: Vec<Vec<TracedBeam>>,
}

impl Answer {
    /// True where the items are those of scoring every item that may be recommended. Another
    /// answer's items of at least [`missed_at_most`](Self::missed_at_most) are in their places all
    /// the same; [`Mode::Proven`] searches for the others.
    pub fn is_proven(&self) -> bool {
        self.missed_at_most.is_none()
    }
}

/// An item of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// Id of the item.
    pub id: String,
    /// Sum of the log-probabilities of its codes, plus its boost. Items that share a semantic ID
    /// and a boost share a score, and come in the order of the tie-break, then of the catalog.
    pub score: f32,
    /// The part of the score that boosts added.
    pub boost: f32,
    /// True for an item that was to be included.
    pub pinned: bool,
    /// Semantic ID of the item.
    pub codes: Vec<u32>,
}
