//! One request at a time, from history to items.

use std::sync::Arc;

use palmette_catalog::CodeTokens;
use palmette_catalog_live::ViewItems;
use palmette_core::{Constraint, TokenId};
use palmette_decode::{Control, DecodeError, Objective, Sampler};

use crate::bounds::{MAX_BEAM_WIDTH, MAX_FREE_TOKENS, checked};
use crate::buffers::{Buffers, ItemConstraint, Latest, PreparedRequest, Round, Searches, Sought};
use crate::error::{RecommendError, TemplateFault};
use crate::fields::PromptFields;
use crate::free_text;
use crate::mode::{Mode, Verification};
use crate::passes::Passes;
use crate::question::CheckedQuestion;
use crate::read_history::read_history;
use crate::recommended::Recommended;
use crate::recommender::Recommender;
use crate::request::{Candidates, Recommendations, Request, Reranked};
use crate::round_answer::RoundAnswer;
use crate::rules::{BoostedItems, Caps, ItemOrder, Plan, Rules, RulesError, diversified};
use crate::template::{PromptAsked, PromptItem};
use crate::terminated_constraint::{TerminatedConstraint, codes_of};
use crate::view::{SpelledView, ViewConstraint};

/// Buffers of one request at a time, made once and reused; made anew only for a request of another
/// [shape](Self::is_made_for). Owned: it lives in a struct or a pool, and moves between threads.
#[derive(Debug)]
pub struct Worker {
    recommender: Arc<Recommender>,
    threads: usize,
    /// Number of threads that requests take now.
    used_threads: usize,
    buffers: Option<Buffers>,
    /// The numbers of the latest request's history.
    seen: Vec<u64>,
    history: Vec<PromptItem>,
    prompt: Vec<TokenId>,
    /// Passes of the latest request.
    passes: Passes,
}

/// Items that a request may recommend; `None` for all.
struct Eligible {
    items: Option<ViewItems>,
    /// The items before `denied` were taken out: the same for requests of one filter.
    before: Option<ViewItems>,
    /// Numbers of items that were.
    denied: Vec<u64>,
}

/// Items that all searches of a request give.
struct Answered {
    items: Vec<Recommended>,
    /// Bound on those that are missed; `None` where none are.
    missed_at_most: Option<f32>,
    /// Proven items behind them.
    ahead: Vec<Recommended>,
    searches: usize,
    /// Width of the widest after its last level.
    beam_width: usize,
}

impl Worker {
    /// A worker whose requests take this many rayon workers at most; results do not depend on it.
    /// Its buffers are made with the first request.
    pub fn new(recommender: Arc<Recommender>, threads: usize) -> Self {
        Self {
            recommender,
            threads: threads.max(1),
            used_threads: threads.max(1),
            buffers: None,
            seen: Vec::new(),
            history: Vec::new(),
            prompt: Vec::new(),
            passes: Passes::default(),
        }
    }

    /// Limits the rayon workers of the requests that follow, up to the number it was made with;
    /// answers do not depend on it.
    pub fn use_threads(&mut self, threads: usize) {
        self.used_threads = threads.clamp(1, self.threads);
    }

    /// The recommender.
    pub fn recommender(&self) -> &Arc<Recommender> {
        &self.recommender
    }

    /// True when its buffers serve the request: they are of its mode and widths.
    pub fn is_made_for(&self, request: &Request<'_>) -> bool {
        self.buffers.as_ref().is_some_and(|made| made.shape == self.recommender.shape_of(request))
    }

    /// Makes the buffers for requests of this shape, so that the first of them need not.
    ///
    /// # Errors
    /// When `k` or a width is 0 or too large, there is no draft head for the mode, or not the
    /// memory.
    pub fn prepare(&mut self, request: &Request<'_>) -> Result<(), RecommendError> {
        checked("k", request.k, MAX_BEAM_WIDTH)?;
        let is_free = matches!(request.mode, Mode::Draft(Verification::Keys | Verification::None));
        if is_free && request.rules.is_some_and(|rules| !rules.is_empty()) {
            return Err(RulesError::FreeDraft.into());
        }
        request.rules.map_or(Ok(()), |rules| rules.check_pool(request.k))?;
        request.think.map_or(Ok(()), |think| think.check())?;
        if let Some(explain) = request.explain_items {
            checked("explain", explain.max_tokens, MAX_FREE_TOKENS)?;
        }
        if let Some(widths) = request.widths {
            self.recommender.check_widths(widths)?;
        }
        let shape = self.recommender.shape_of(request);
        if self.buffers.as_ref().is_none_or(|made| made.shape != shape) {
            // Given back first: both together may be more than there is.
            self.buffers = None;
            self.buffers = Some(Buffers::new(&self.recommender, shape, self.threads)?);
        }
        let buffers = self.buffers.as_mut().expect("made above");
        buffers.reading.use_threads(self.used_threads);
        buffers.reading.keep_prompts(request.remember);
        Ok(())
    }

    /// Recommends items. `control` hears of each stage that ends, so that a caller with a clock can
    /// time them, and may end the request between two of them.
    ///
    /// Exact at its width but for the two free ways of [`Verification`]: the search is that of
    /// `palmette-decode`, over the items that may be recommended and no others. What was seen is
    /// left out before the search, not after it, so there are `k` items as long as the catalog has
    /// that many to recommend.
    ///
    /// # Errors
    /// When `k` or a width is 0 or too large, the filter asks for what the catalog does not have,
    /// there is no draft head for the mode, the model fails, or the request was cancelled.
    ///
    /// # Panics
    /// When the history holds a number that the view does not have or codes that the model cannot
    /// read, or the items are a set of another kind of view.
    pub fn recommend(
        &mut self,
        request: &Request<'_>,
        control: &mut Control<'_>,
    ) -> Result<Recommendations, RecommendError> {
        self.prepare(request)?;
        let view = match request.view {
            Some(view) => Arc::clone(view),
            None => self.recommender.view()?,
        };
        if request.mode.verification().is_some() {
            self.recommender.check_drafted(&view)?;
        }
        let Self { seen, history, .. } = self;
        let unknown = read_history(request.history, &view, seen, history);
        let none = Rules::default();
        let plan = Plan::new(request.rules.unwrap_or(&none), &view, request.k)?;
        let eligible = self.candidates(request, &view, &plan)?;
        let history_used = self.write_prompt(request, &view)?;
        let thought = self.think(request, control)?;
        let num_eligible =
            eligible.items.as_ref().map_or_else(|| view.view().num_items(), ViewItems::len);
        self.passes.begin(request.trace);
        let mode = self.recommender.mode_of(request);
        let of = PreparedRequest { request, mode, view: &view, plan: &plan };
        let Answered { mut items, missed_at_most, ahead, searches, beam_width } =
            self.find(of, eligible, control)?;
        let reranked = plan.rules.diversity.map(|by| Reranked { by, pool: items.len() });
        if let Some(Reranked { by, .. }) = reranked {
            items = diversified(view.view(), items, request.k, by);
        }
        let levels = std::mem::take(&mut self.passes.levels);
        let explanations = self.explain(request, &view, &items, control)?;
        Ok(Recommendations {
            items,
            reranked,
            searches,
            missed_at_most,
            mode,
            history_used,
            unknown,
            beam_width,
            eligible: num_eligible,
            levels,
            thought,
            explanations,
            ahead,
            view,
        })
    }

    /// Finds the items wanted, best first: those that are pinned, then a greedy walk under the
    /// caps. Where the walk ends before there are enough, it goes on over a search of the items
    /// that are left.
    fn find(
        &mut self,
        of: PreparedRequest<'_>,
        eligible: Eligible,
        control: &mut Control<'_>,
    ) -> Result<Answered, RecommendError> {
        let Eligible { mut items, before, denied } = eligible;
        let (view, wanted) = (of.view.view(), of.request.wanted());
        let order = ItemOrder::new(of.plan.rules, view, of.plan.boosts.as_deref())?;
        let mut caps = Caps::new(of.plan.rules, view)?;
        let (mut before, mut denied) = (before, denied);
        if let (Some(caps), false) = (&mut caps, of.request.given().is_empty()) {
            // An item that a cap held back since would be held back here.
            of.request.given().iter().for_each(|&number| _ = caps.count(number));
            items = Some(caps.left(items.unwrap_or_else(|| view.all_items()))?);
            (before, denied) = (items.clone(), Vec::new());
        }
        let (mut ahead, sought) = (Vec::new(), self.recommender.sought(of.request));
        let (mut taken, mut searches, mut missed_at_most) = (Vec::new(), 0, None);
        let mut beam_width = 0;
        if !of.plan.pins.is_empty() {
            let pinned = self.pinned(of, &order, &mut caps, control)?;
            (taken, beam_width) = (pinned.items, pinned.beam_width);
            let all = items.unwrap_or_else(|| view.all_items());
            items = Some(view.without(&all, of.plan.pins.iter().copied()));
            searches += 1;
        }
        while taken.len() < wanted {
            let need = wanted - taken.len();
            let is_first = searches == 0;
            let (shared, excluded) = match is_first {
                true => (before.as_ref(), &denied[..]),
                // They are taken out of `items`, with what was found before.
                false => (items.as_ref(), &[][..]),
            };
            let round = Round {
                items: items.as_ref(),
                shared,
                excluded,
                need,
                sought: need + (sought - wanted),
                is_first,
                order: &order,
            };
            let eligible = items.as_ref().map_or_else(|| view.num_items(), ViewItems::len);
            let answer = self.search(of, round, &mut caps, control)?;
            searches += 1;
            // All that later rounds may miss was missed by the first that missed any.
            missed_at_most =
                missed_at_most.or_else(|| answer.shortfall_bound(need, eligible, caps.is_some()));
            beam_width = beam_width.max(answer.beam_width);
            let found = answer.items;
            ahead = answer.ahead;
            taken.extend_from_slice(&found);
            let (Some(caps), false) = (&caps, found.is_empty() || found.len() == need) else {
                break;
            };
            let all = items.unwrap_or_else(|| view.all_items());
            let left = caps.left(view.without(&all, found.iter().map(|item| item.number)))?;
            if left.is_empty() {
                break;
            }
            items = Some(left);
        }
        // Each search is best first, and stable sorting keeps its ties.
        if searches > 1 {
            taken.sort_by(|a, b| b.score.total_cmp(&a.score));
        }
        Ok(Answered { items: taken, missed_at_most, ahead, searches, beam_width })
    }

    /// The pinned items with their scores: a search over them alone, as wide as they are many.
    fn pinned(
        &mut self,
        of: PreparedRequest<'_>,
        order: &ItemOrder<'_>,
        caps: &mut Option<Caps<'_>>,
        control: &mut Control<'_>,
    ) -> Result<RoundAnswer, RecommendError> {
        let view = of.view.view();
        let items = view.choose(of.plan.pins.iter().copied());
        let need = of.plan.pins.len();
        let (items, excluded) = (Some(&items), &[][..]);
        let shared = items;
        let round = Round { items, shared, excluded, need, sought: need, is_first: true, order };
        // As wide as they are many, it finds them all.
        let mut found = self.search(of, round, &mut None, control)?;
        for item in &mut found.items {
            item.pinned = true;
            if let Some(Err(cap)) = caps.as_mut().map(|caps| caps.count(item.number)) {
                return Err(
                    RulesError::PinsOverCap { id: view.id(item.number).to_owned(), cap }.into()
                );
            }
        }
        Ok(found)
    }

    /// Answers a question, as [`recommend`](Self::recommend) does; `narrowed`, by its narrower
    /// search.
    ///
    /// # Errors
    /// When rules contradict each other or the items that are left, the model fails, or the request
    /// was cancelled.
    pub fn answer(
        &mut self,
        question: &CheckedQuestion,
        narrowed: bool,
        control: &mut Control<'_>,
    ) -> Result<Recommendations, RecommendError> {
        let recommender = Arc::clone(&self.recommender);
        recommender.answer(question, narrowed, |request| self.recommend(request, control))
    }

    /// The items that may be recommended.
    fn candidates(
        &self,
        request: &Request<'_>,
        spelled: &SpelledView,
        plan: &Plan<'_>,
    ) -> Result<Eligible, RecommendError> {
        let view = spelled.view();
        let mut items = match request.items {
            Candidates::All => None,
            Candidates::Filter(filter) => Some(view.filter(filter)?),
            Candidates::Set(items) => Some(items.clone()),
        };
        if let Some(given) = &items {
            plan.check_pins(view, given, "the filter")?;
        }
        if let Some(valid) = plan.valid(view)? {
            plan.check_pins(view, &valid, "valid")?;
            items = Some(items.map_or(valid.clone(), |given| view.intersection(&given, &valid)));
        }
        let excluded: Vec<u64> = request.exclude.iter().filter_map(|id| view.find(id)).collect();
        if let Some(&pin) = plan.pins.iter().find(|pin| excluded.contains(pin)) {
            let (id, by) = (view.id(pin).to_owned(), "the request's exclusion");
            return Err(RulesError::PinRefused { id, by }.into());
        }
        let by_rule = plan.rules.must_exclude.iter().filter_map(|id| view.find(id));
        let seen = if request.include_seen { &[][..] } else { &self.seen };
        let denied = seen.iter().copied().chain(excluded.iter().copied()).chain(by_rule);
        let denied = denied.chain(request.given().iter().copied());
        let denied: Vec<u64> = denied.collect();
        if denied.is_empty() {
            return Ok(Eligible { items: items.clone(), before: items, denied });
        }
        let all = items.clone().unwrap_or_else(|| view.all_items());
        let left = view.without(&all, denied.iter().copied());
        Ok(Eligible { items: Some(left), before: items, denied })
    }

    /// Sets the prompt; returns how many items of the history it holds.
    fn write_prompt(
        &mut self,
        request: &Request<'_>,
        view: &SpelledView,
    ) -> Result<usize, RecommendError> {
        let none = PromptFields::default();
        let asked = PromptAsked {
            items: &self.history,
            view: view.view(),
            fields: request.fields.unwrap_or(&none),
            thinks: request.think.is_some(),
        };
        let max = self.recommender.max_prompt_tokens();
        let used = self.recommender.prompts().write(&asked, max, &mut self.prompt)?;
        self.buffers.as_mut().expect("prepared").reading.set_prompt(&self.prompt)?;
        Ok(used)
    }

    /// Lets the model write what comes before the item, where the request asks for it, and puts it
    /// into the prompt.
    fn think(
        &mut self,
        request: &Request<'_>,
        control: &mut Control<'_>,
    ) -> Result<Option<String>, RecommendError> {
        let Some(think) = &request.think else { return Ok(None) };
        if matches!(request.mode, Mode::Draft(_)) {
            return Err(RecommendError::NoDraftAfterText);
        }
        let template = self.recommender.prompts().template().ok_or(RecommendError::NoThink)?;
        let (end, then) = template.think_end().ok_or(RecommendError::NoThink)?;
        let ends: Vec<TokenId> = [end].into_iter().chain(template.eos_token()).collect();
        let reading = &mut *self.buffers.as_mut().expect("prepared").reading;
        let thought = free_text::think(reading, think, &ends, (end, then), control)?;
        self.prompt.extend(thought.iter().chain([&end]).chain(then));
        let text = template.tokenizer().decode(&thought);
        Ok(Some(text.map_err(|error| TemplateFault::new(error.to_string()))?))
    }

    /// Lets the model write what comes after the first items, each after the prompt and the item
    /// alone.
    ///
    /// PERF: reads the prompt anew for each item.
    fn explain(
        &mut self,
        request: &Request<'_>,
        view: &SpelledView,
        items: &[Recommended],
        control: &mut Control<'_>,
    ) -> Result<Vec<String>, RecommendError> {
        let Some(explain) = request.explain_items else { return Ok(Vec::new()) };
        let template = self.recommender.prompts().template().ok_or(RecommendError::NoExplain)?;
        let ends = template.explain_ends().ok_or(RecommendError::NoExplain)?;
        let reading = &mut *self.buffers.as_mut().expect("prepared").reading;
        let mut texts = Vec::new();
        for item in items.iter().take(explain.items) {
            let codes = view.view().codes(item.number);
            let after = template.explain_tokens(&codes, view.levels())?;
            reading.set_prompt(&[&self.prompt[..], &after].concat())?;
            let (mut greedy, most) = (Sampler::greedy(), explain.max_tokens);
            let text = free_text::write_text(reading, &mut greedy, ends, most, control)?;
            let text = template.tokenizer().decode(&text);
            texts.push(text.map_err(|error| TemplateFault::new(error.to_string()))?);
        }
        Ok(texts)
    }

    /// One search after the prompt, by the request's mode, and what it gives of the items needed.
    fn search(
        &mut self,
        of: PreparedRequest<'_>,
        round: Round<'_>,
        caps: &mut Option<Caps<'_>>,
        control: &mut Control<'_>,
    ) -> Result<RoundAnswer, RecommendError> {
        let constraint = of.view.constraint(round.items.cloned());
        let recommender = Arc::clone(&self.recommender);
        match (constraint, recommender.sought_ends(of.mode.verification().is_some())) {
            (ViewConstraint::Frozen(constraint), []) => {
                self.search_over(&constraint, of, round, caps, control)
            }
            (ViewConstraint::Snapshot(constraint), []) => {
                self.search_over(&constraint, of, round, caps, control)
            }
            (ViewConstraint::Frozen(constraint), end) => self.search_over(
                &TerminatedConstraint::new(constraint, end),
                of,
                round,
                caps,
                control,
            ),
            (ViewConstraint::Snapshot(constraint), end) => self.search_over(
                &TerminatedConstraint::new(constraint, end),
                of,
                round,
                caps,
                control,
            ),
        }
    }

    fn search_over<C: ItemConstraint>(
        &mut self,
        constraint: &C,
        of: PreparedRequest<'_>,
        round: Round<'_>,
        caps: &mut Option<Caps<'_>>,
        control: &mut Control<'_>,
    ) -> Result<RoundAnswer, RecommendError> {
        let (recommender, passes) = (&*self.recommender, &mut self.passes);
        let buffers = self.buffers.as_mut().expect("prepared");
        if let Mode::Draft(Verification::Keys | Verification::None) = of.request.mode {
            return buffers.draft_freely(recommender, passes, constraint, of, round, control);
        }
        let view = of.view.view();
        let boosts = of.plan.boosts.as_deref();
        let boosted = boosts.map(|boosts| BoostedItems::new(view, boosts, round.items));
        let gains = boosted.as_ref().map(C::gains);
        let sought =
            Sought { objective: Objective { constraint, gains }, of, round, caps: caps.clone() };
        let kept = C::searches(buffers).take();
        let mut searches = kept.unwrap_or_else(|| Searches::new(&buffers.widths));
        searches.set_probe(recommender.first_mode_of(of.request));
        let done = buffers.search_in_mode(&mut searches, recommender, passes, &sought, control);
        let answer = done.map(|()| sought.answer(&searches, caps));
        *C::searches(buffers) = Some(searches);
        answer
    }

    /// The sequences that the latest request's search found, best first, as the model's tokens,
    /// without those that end an item. After a [probe](Mode::Probed), those that are as good as its
    /// last.
    pub fn generated(&self) -> Box<dyn ExactSizeIterator<Item = &[TokenId]> + '_> {
        let Some(buffers) = &self.buffers else { return Box::new(std::iter::empty()) };
        match (buffers.latest, &buffers.frozen, &buffers.snapshot, &buffers.free) {
            (Latest::Frozen, Some(searches), ..) => {
                Box::new(searches.latest().results().map(|found| found.tokens))
            }
            (Latest::Snapshot, _, Some(searches), _) => {
                Box::new(searches.latest().results().map(|found| found.tokens))
            }
            (Latest::EndedFrozen, ..) => ended(&buffers.ended_frozen, self.recommender.tokens()),
            (Latest::EndedSnapshot, ..) => {
                ended(&buffers.ended_snapshot, self.recommender.tokens())
            }
            (Latest::Free, .., Some(free)) => Box::new(free.results().map(|found| found.tokens)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// The latest request's prompt, with what the model wrote before the item.
    pub fn prompt(&self) -> &[TokenId] {
        &self.prompt
    }

    /// Tokens of the latest request's prompt.
    pub fn prompt_tokens(&self) -> usize {
        self.prompt.len()
    }

    /// Rows of logits in each pass of the latest request: one for the prompt, then as many as there
    /// were beams, those of a [probe](Mode::Probed) first.
    pub fn rows_of_passes(&self) -> &[usize] {
        &self.passes.rows
    }

    /// Bytes of the key/value caches as they were taken: the prompt's and the beams' part. Before
    /// the first request there are none.
    pub fn cache_bytes(&self) -> (usize, usize) {
        self.buffers.as_ref().map_or((0, 0), |buffers| buffers.reading.cache_bytes())
    }
}

/// The codes' tokens of what a search found whose sequences end with other tokens.
fn ended<'s, C: Constraint>(
    searches: &'s Option<Searches<C>>,
    tokens: &'s CodeTokens,
) -> Box<dyn ExactSizeIterator<Item = &'s [TokenId]> + 's> {
    match searches {
        Some(searches) => {
            Box::new(searches.latest().results().map(|found| codes_of(found.tokens, tokens)))
        }
        None => Box::new(std::iter::empty()),
    }
}

impl From<DecodeError> for RecommendError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Cancelled { .. } => Self::Cancelled,
            error => Self::Session(error.into()),
        }
    }
}
