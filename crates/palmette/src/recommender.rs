//! Recommendations: a model over a catalog, from any thread.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use palmette_catalog::{Filter, FilterError};
use palmette_live::CatalogSource;
use palmette_model::draft::DraftHead;
use palmette_model::{LoadError, Model};
use palmette_recommend::{
    Amount, AtMost, Boost, Candidates, Diversity, Explain, FormatError, History, Mode, Moment,
    PromptFields, Prompts, Request, Rules, RulesError, SpelledView, Think, TieBreak, Valid,
    WorkerPool,
};

/// A model joined with the catalog it recommends from. Cheap to clone; threads share it, and none waits for another.
///
/// Over a [`LiveCatalog`](crate::LiveCatalog) each request sees the newest generation, from its beginning to its end.
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
    Format(#[from] FormatError),
    #[error(transparent)]
    Recommend(#[from] palmette_recommend::RecommendError),
    #[error(transparent)]
    Filter(#[from] FilterError),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error("the user's fields are no JSON object: {0}")]
    User(serde_json::Error),
}

impl RecommendError {
    /// True when the request's own condition ended it.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0, Kind::Recommend(palmette_recommend::RecommendError::Cancelled))
    }
}

/// Idle workers that are kept: as many as threads usually ask at once.
const MAX_IDLE: usize = 64;

impl Recommender {
    /// Loads a model's directory (`config.json`, `model.safetensors`, `semantic_ids.json`, or `prompt_template.json` with
    /// `tokenizer.json`, and `draft.safetensors` where there is a draft head) and joins it with a [`Catalog`](crate::Catalog) or a [`LiveCatalog`](crate::LiveCatalog).
    ///
    /// # Errors
    /// When a file is missing or damaged, or model and catalog do not fit together.
    pub fn open(
        model: impl AsRef<Path>,
        catalog: impl Into<CatalogSource>,
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

    /// Asks for items that follow a history of item ids, oldest first: [`run`](RecommendRequest::run) answers.
    ///
    /// Ids that the catalog does not have, such as items that are gone, are left out and
    /// [reported](Answer::unknown).
    pub fn recommend<I: Into<String>>(
        &self,
        history: impl IntoIterator<Item = I>,
    ) -> RecommendRequest<'_> {
        RecommendRequest {
            recommender: self,
            history: history.into_iter().map(Into::into).collect(),
            k: 10,
            beam_width: Request::DEFAULT_BEAM_WIDTH,
            mode: Mode::default(),
            filter: None,
            exclude: Vec::new(),
            include_seen: false,
            rules: Rules::default(),
            now: None,
            fields: PromptFields::default(),
            think: None,
            explain_items: None,
            view: None,
            cancelled: None,
        }
    }

    /// The catalog as it is now: hold it, and [`at`](RecommendRequest::at) answers several requests by one generation.
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

/// A request in the making: [`k`](Self::k) items after a history, by a beam search of width 128 unless told otherwise.
#[must_use = "`run` answers it"]
pub struct RecommendRequest<'a> {
    recommender: &'a Recommender,
    history: Vec<String>,
    k: usize,
    beam_width: usize,
    mode: Mode,
    filter: Option<Filter>,
    exclude: Vec<String>,
    include_seen: bool,
    rules: Rules,
    now: Option<f64>,
    fields: PromptFields,
    think: Option<Think>,
    explain_items: Option<Explain>,
    view: Option<Arc<SpelledView>>,
    cancelled: Option<Box<dyn FnMut() -> bool + 'a>>,
}

impl<'a> RecommendRequest<'a> {
    /// Number of items; 10 unless set.
    pub fn k(self, k: usize) -> Self {
        Self { k, ..self }
    }

    /// Hypotheses kept at each level; the search is as wide as `k` where that is more.
    pub fn beam_width(self, beam_width: usize) -> Self {
        Self { beam_width, ..self }
    }

    /// The kind of search: by the decoder, with a narrow search first, or by a draft head.
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Gives the query of a model whose prompts have a place for one.
    pub fn query(mut self, query: impl Into<String>) -> Self {
        self.fields.query = Some(query.into());
        self
    }

    /// Gives fields of the user to a model whose prompts have places for them, as a JSON object.
    ///
    /// # Errors
    /// When it is none.
    pub fn user(mut self, fields: &str) -> Result<Self, RecommendError> {
        self.fields.user = serde_json::from_str(fields).map_err(Kind::User)?;
        Ok(self)
    }

    /// Lets the model write at most so many tokens of reasoning before the item: [`Answer::thought`].
    pub fn think(self, max_tokens: usize) -> Self {
        Self { think: Some(Think::new(max_tokens)), ..self }
    }

    /// Lets the model write at most so many tokens after each of the first `items` items: [`Answer::explanations`].
    pub fn explain(self, items: usize, max_tokens: usize) -> Self {
        Self { explain_items: Some(Explain { items, max_tokens }), ..self }
    }

    /// Restricts the items to those that match a filter, as JSON.
    ///
    /// # Errors
    /// When it is no filter; the message names the place.
    pub fn filter(self, filter: &str) -> Result<Self, RecommendError> {
        let filter = Filter::parse(filter).map_err(Kind::from)?;
        Ok(Self { filter: Some(filter), ..self })
    }

    /// Excludes these items.
    pub fn exclude<I: Into<String>>(mut self, ids: impl IntoIterator<Item = I>) -> Self {
        self.exclude.extend(ids.into_iter().map(Into::into));
        self
    }

    /// Permits items of the history too.
    pub fn include_seen(self) -> Self {
        Self { include_seen: true, ..self }
    }

    /// Sets all [rules](Rules) at once, as one JSON document; those set before are forgotten.
    ///
    /// # Errors
    /// When it is none; the message names the place.
    pub fn rules(self, rules: &str) -> Result<Self, RecommendError> {
        Ok(Self { rules: Rules::parse(rules).map_err(Kind::from)?, ..self })
    }

    /// Takes at most `items` items of one value of an attribute, such as a brand. Several caps all hold.
    pub fn at_most(mut self, items: usize, attribute: impl Into<String>) -> Self {
        self.rules.at_most.push(AtMost { attribute: attribute.into(), items });
        self
    }

    /// Takes at most `items` items of one semantic ID.
    pub fn at_most_per_semantic_id(mut self, items: usize) -> Self {
        self.rules.at_most_per_semantic_id = Some(items);
        self
    }

    /// Adds `amount` to the scores of the items that match a filter, as JSON; a negative one buries them.
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

    /// Restricts the items to those that are valid at a moment, in seconds since 1970: from one timestamp attribute, up to
    /// and without another.
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

    /// The moment of the request for rules of validity in a document that name none, in seconds since 1970.
    pub fn now(self, seconds: f64) -> Self {
        Self { now: Some(seconds), ..self }
    }

    /// Ranks the results anew by maximal marginal relevance: [`Diversity`]. The answer says that it is
    /// [reranked](Answer::reranked).
    pub fn diversity(mut self, lambda: f64, pool: usize) -> Self {
        self.rules.diversity = Some(Diversity { lambda, pool: Some(pool) });
        self
    }

    /// Pins the answer to the generation of a view.
    pub fn at(self, view: Arc<SpelledView>) -> Self {
        Self { view: Some(view), ..self }
    }

    /// Ends with [an error](RecommendError::is_cancelled) when this becomes true: a flag that another thread sets, or a
    /// deadline by the caller's clock. It is asked between the stages of the search, some milliseconds apart at most.
    pub fn cancel_when(self, cancelled: impl FnMut() -> bool + 'a) -> Self {
        Self { cancelled: Some(Box::new(cancelled)), ..self }
    }

    /// Answers: the best items of the catalog, and `k` of them while `k` may be recommended.
    ///
    /// # Errors
    /// When `k` or the width is 0 or too large, the filter asks for what the catalog does not have, there is no draft
    /// head for the mode, the model fails, or the request was cancelled.
    pub fn run(mut self) -> Result<Answer, RecommendError> {
        let history: Vec<&str> = self.history.iter().map(String::as_str).collect();
        let exclude: Vec<&str> = self.exclude.iter().map(String::as_str).collect();
        let rules = match self.now {
            Some(now) => std::mem::take(&mut self.rules).at(Moment::Seconds(now)),
            None => std::mem::take(&mut self.rules),
        };
        let request = Request {
            beam_width: self.beam_width,
            mode: self.mode,
            items: self.filter.as_ref().map_or(Candidates::All, Candidates::Filter),
            exclude: &exclude,
            include_seen: self.include_seen,
            rules: Some(&rules),
            fields: Some(&self.fields),
            think: self.think,
            explain_items: self.explain_items,
            view: self.view.as_ref(),
            ..Request::new(History::Ids(&history), self.k)
        };
        let mut cancelled = self.cancelled.take();
        let control = &mut |_| match cancelled.as_mut().is_some_and(|cancelled| cancelled()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let found = self.recommender.pool.recommend(&request, control).map_err(Kind::from)?;
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
            unknown: found.unknown.iter().map(|&place| self.history[place].clone()).collect(),
            history_used: found.history_used,
            reranked: found.reranked.map(|reranked| reranked.pool),
            generation: view.generation(),
            thought: found.thought.clone(),
            explanations: found.explanations.clone(),
        })
    }
}

impl fmt::Debug for RecommendRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecommendRequest")
            .field("history", &self.history)
            .field("k", &self.k)
            .field("beam_width", &self.beam_width)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// An answer: items, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Best first; fewer than asked for only if no more items may be recommended.
    pub items: Vec<Recommendation>,
    /// Ids of the history that the catalog does not have, in its order.
    pub unknown: Vec<String>,
    /// Number of the most recent items of the history that the model read.
    pub history_used: usize,
    /// Number of results that were ranked anew for diversity after the search; `None` where none were.
    pub reranked: Option<usize>,
    /// The generation of a live catalog that was answered by; `None` for a frozen one.
    pub generation: Option<u64>,
    /// What the model wrote before the item, where it was to [think](RecommendRequest::think).
    pub thought: Option<String>,
    /// What the model wrote after each of the first items, where it was to [explain](RecommendRequest::explain).
    pub explanations: Vec<String>,
}

/// An item of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// Id of the item.
    pub id: String,
    /// Sum of the log-probabilities of its codes, plus its boost. Items that share a semantic ID and a boost share a score,
    /// and come in the order of the tie-break, then of the catalog.
    pub score: f32,
    /// The part of the score that boosts added.
    pub boost: f32,
    /// True for an item that was to be included.
    pub pinned: bool,
    /// Semantic ID of the item.
    pub codes: Vec<u32>,
}
