//! `POST /v1/recommend`: from a checked question to work, from its outcome to an answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use palmette_catalog::FilterLookUps;
use palmette_catalog_filter::{Filter, FilterError};
use palmette_catalog_live::{CatalogView, ViewItems};
use palmette_recommend::{
    Cause, CheckedQuestion, GenerationName, Mode, Moment, NamedItem, Priority, RecommendBody,
    RecommendError, RecommendQuestion, Recommendations, RequestEnvelope, SpelledView,
};
use palmette_serve_schedule::{Class, Refusal, StopReason};

use super::body;
use super::documented::Recommends;
use super::extract::answered;
use crate::app::{App, Drain, Received};
use crate::audit;
use crate::domain::answers::{CachedAnswer, Key};
use crate::domain::background::blocking;
use crate::domain::generations::find_kept;
use crate::domain::registry::Target;
use crate::engine::{Outcome, Work};
use crate::problem::{Kind, Problem};
use crate::request_id;
use crate::wall_clock::seconds_since_1970;
use crate::wire::{
    AnsweredItem, Beam, HistoryNote, RecommendAnswer, Shortfall, ShortfallReason, TargetName,
    Timings,
};

/// Pause between looks for a generation that is waited for.
const GENERATION_POLL: Duration = Duration::from_millis(5);

/// Recommends items that follow a history.
///
/// Exact beam search over the items that may be recommended: always items of the catalog at one
/// generation, and `k` of them while as many are eligible. A request that could not be answered by
/// its deadline is refused at once.
#[utoipa::path(
    post, path = "/v1/recommend", tag = "recommend", request_body = RecommendBody,
    responses(
        (status = 200, body = RecommendAnswer),
        Recommends,
    )
)]
pub(crate) async fn recommend(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let asked = body::question(&app, &headers, body).await?;
    let answer = answer(&app, asked, received.0, Priority::Interactive, None).await?;
    Ok(answered(answer.generation, Json(answer)))
}

/// Answers one question, by a view that is given or by the one that it asks for.
pub(crate) async fn answer(
    app: &Arc<App>,
    asked: RecommendBody,
    arrived: Instant,
    class: Priority,
    given: Option<(Arc<Target>, Arc<SpelledView>)>,
) -> Result<RecommendAnswer, Problem> {
    let RecommendBody { envelope, question } = asked;
    // Requests of a batch were admitted with it.
    if given.is_none() && *app.drain().borrow() >= Drain::Closed {
        metrics::counter!("palmette_recommend_shed_total", "reason" => "draining").increment(1);
        return Err(going_away());
    }
    let class = envelope.priority.unwrap_or(class);
    let deadline = deadline(app, &envelope, arrived, class)?;
    let (target, view) = match given {
        Some(given) => given,
        None => {
            let target = app.registry.target(envelope.target.as_deref()).await?;
            let view = view_of(&target, &envelope, deadline).await?;
            (target, view)
        }
    };
    audit::note(|facts| {
        facts.catalog = Some(target.catalog.name.clone());
        facts.target = Some(format!("{}:{}", target.model.name, target.catalog.name));
    });
    let question = check(app, &target, view, question).await?;
    let key = Key::new(&target, &question);
    let of = AnswerContext::new(Arc::clone(&target), &question);
    if let Some(kept) = key.as_ref().and_then(|key| app.answers.get(key)) {
        let total = arrived.elapsed().as_secs_f64() * 1e3;
        let timings = Timings { total, ..Default::default() };
        return Ok(of.answer(&kept, true, false, timings, None));
    }
    let ahead = target.recommender.kept_page(&question);
    if question.question().cursor.is_some() {
        let result = if ahead.is_some() { "hit" } else { "miss" };
        metrics::counter!("palmette_recommend_pages_total", "result" => result).increment(1);
    }
    if let Some(found) = ahead {
        let total = arrived.elapsed().as_secs_f64() * 1e3;
        let timings = Timings { total, ..Default::default() };
        let kept = of.cached(&found, question.cursor_after(&found));
        return Ok(of.answer(&kept, true, false, timings, None));
    }
    let (recommender, is_over) = (Arc::clone(&target.recommender), target.lease.is_over());
    let work = Work { recommender, is_over, question };
    let shapes = work.shapes(target.model.index, app.config.schedule.threads as usize);
    let shapes = shapes.map_err(refused)?;
    let class = match class {
        Priority::Interactive => Class::Interactive,
        Priority::Bulk => Class::Bulk,
    };
    match app.engine.submit(work, class, arrived, deadline, shapes).outcome().await {
        Outcome::Answered(found) => {
            for (stage, ms) in [
                ("queue", found.timings.queue),
                ("prefill", found.timings.prefill),
                ("decode", found.timings.decode),
                ("mask", found.timings.mask),
                ("topk", found.timings.topk),
            ] {
                metrics::histogram!("palmette_recommend_stage_seconds", "stage" => stage).record(ms / 1e3);
            }
            if found.narrowed {
                metrics::counter!("palmette_recommend_narrowed_total").increment(1);
            }
            if let Some(deadline) = deadline {
                let now = Instant::now();
                let slack = deadline.saturating_duration_since(now).as_secs_f64();
                metrics::histogram!("palmette_recommend_slack_seconds").record(slack);
                if now > deadline {
                    metrics::counter!("palmette_recommend_missed_deadline_total").increment(1);
                }
            }
            let kept = of.cached(&found.found, found.cursor);
            let levels = of.trace.then(|| levels(&found.found));
            let answer = of.answer(&kept, false, found.narrowed, found.timings, levels);
            // A proof may have been broken off by the deadline of this request alone.
            let is_cut = matches!(found.found.mode, Mode::Proven(_)) && !found.found.is_proven();
            if let (Some(key), false) = (key, found.narrowed || is_cut) {
                app.answers.insert(key, kept);
            }
            Ok(answer)
        }
        Outcome::Refused { why: Refusal::Late, finish, retry_after } => {
            let in_ms = finish.as_ms().ceil();
            let left = deadline.map_or(0.0, |at| (at - arrived).as_secs_f64() * 1e3);
            let detail = format!(
                "would finish {in_ms} ms after now, the deadline is {left:.0} ms after receipt; repeat later, or give a later \
                 deadline_ms or a min_beam_width"
            );
            let problem = Problem::new(Kind::Overloaded, detail);
            let ms = (retry_after.0 / 1000).max(1);
            Err(problem.with_status(app.config.overload_status).retry_after(ms))
        }
        Outcome::Refused { why: Refusal::Memory, .. } => Err(Problem::new(
            Kind::Overloaded,
            "there is no memory for a request of this width and history now; repeat later or with a smaller beam_width",
        )
        .with_status(app.config.overload_status)
        .retry_after(1000)),
        Outcome::Refused { why: Refusal::Draining, .. } | Outcome::Stopped(StopReason::Drained) | Outcome::Ended => {
            Err(going_away())
        }
        Outcome::Stopped(StopReason::Deadline) => {
            metrics::counter!("palmette_recommend_missed_deadline_total").increment(1);
            Err(Problem::new(Kind::DeadlineMissed, "the work took longer than predicted and was broken off"))
        }
        Outcome::Stopped(StopReason::Cancelled) => {
            Err(cancelled())
        }
        Outcome::Failed(error) => Err(refused(error)),
        Outcome::Panicked => Err(Problem::new(Kind::Internal, "the search panicked; the log has more")),
    }
}

fn going_away() -> Problem {
    Problem::new(Kind::Unavailable, "the server is going away; ask another").retry_after(1000)
}

/// An error of the recommender as a problem, by the side that it is of.
fn refused(error: RecommendError) -> Problem {
    match error.cause() {
        Cause::Question(pointer) => Problem::invalid(pointer, error.to_string()),
        Cause::Catalog | Cause::Unavailable => {
            Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000)
        }
        Cause::Cancelled => cancelled(),
        Cause::Engine => Problem::new(Kind::Internal, error.to_string()),
    }
}

fn cancelled() -> Problem {
    Problem::new(Kind::Unavailable, "the request was cancelled").retry_after(1000)
}

fn deadline(
    app: &App,
    envelope: &RequestEnvelope,
    arrived: Instant,
    class: Priority,
) -> Result<Option<Instant>, Problem> {
    let most = app.config.max_deadline;
    match (envelope.deadline_ms, class) {
        (Some(0), _) => Err(Problem::invalid(
            "/deadline_ms",
            "deadline_ms is 0; nothing can be answered by then",
        )),
        (Some(ms), _) if Duration::from_millis(ms) > most => Err(Problem::invalid(
            "/deadline_ms",
            format!("deadline_ms is {ms}; this server takes 1 to {}", most.as_millis()),
        )),
        (Some(ms), _) => Ok(Some(arrived + Duration::from_millis(ms))),
        (None, Priority::Interactive) => Ok(Some(arrived + app.config.default_deadline)),
        (None, Priority::Bulk) => Ok(None),
    }
}

/// The view that an envelope asks for.
pub(crate) async fn view_of(
    target: &Arc<Target>,
    envelope: &RequestEnvelope,
    deadline: Option<Instant>,
) -> Result<Arc<SpelledView>, Problem> {
    let newest = || target.recommender.view().map_err(refused);
    let mut view = newest()?;
    if let Some(least) = envelope.min_generation {
        let Some(mut now) = view.view().generation() else {
            return Err(Problem::invalid(
                "/min_generation",
                "the catalog is frozen and has no generations",
            ));
        };
        while now < least {
            if deadline.is_some_and(|at| Instant::now() + GENERATION_POLL > at) {
                let detail = format!(
                    "the catalog is at generation {now}, and {least} did not come by the deadline"
                );
                return Err(Problem::new(Kind::DeadlineMissed, detail));
            }
            tokio::time::sleep(GENERATION_POLL).await;
            view = newest()?;
            now = view.view().generation().unwrap_or(least);
        }
    }
    match &envelope.generation {
        None => Ok(view),
        Some(name) => pinned(target, name, view).await,
    }
}

/// A generation by number or name: the newest, or one that is kept.
pub(crate) async fn pinned(
    target: &Arc<Target>,
    name: &GenerationName,
    newest: Arc<SpelledView>,
) -> Result<Arc<SpelledView>, Problem> {
    let Some(now) = newest.view().generation() else {
        return Err(Problem::invalid(
            "/generation",
            "the catalog is frozen and has no generations",
        ));
    };
    if matches!(name, GenerationName::Number(number) if *number == now) {
        return Ok(newest);
    }
    let kept = target.catalog.generations();
    let number = find_kept(&kept, name, now)?;
    let target = Arc::clone(target);
    blocking(move || target.kept_view(number))
        .await?
        .map_err(|error| Problem::new(Kind::Gone, error.to_string()))
}

/// Checks a question; look-ups of its filter are counted.
async fn check(
    app: &Arc<App>,
    target: &Arc<Target>,
    view: Arc<SpelledView>,
    question: RecommendQuestion,
) -> Result<CheckedQuestion, Problem> {
    let limits = app.config.questions;
    let recommender = Arc::clone(&target.recommender);
    let may_take_long = question.filter.is_some() || question.rules.is_some();
    let check = move || {
        let now = Moment::Seconds(seconds_since_1970());
        question.check(&recommender, &view, &limits, Some(now))
    };
    // Compiling a filter may take milliseconds on a large catalog.
    let checked = if may_take_long { blocking(check).await? } else { check() };
    let question = checked.map_err(Problem::of_faults)?;
    count_look_ups(question.look_ups());
    Ok(question)
}

/// Parts of a question that its answer needs after a worker has taken it.
struct AnswerContext {
    target: Arc<Target>,
    view: Arc<SpelledView>,
    /// Items that match the filter.
    matching: u64,
    has_filter: bool,
    k: usize,
    fields: Fields,
    given: usize,
    unknown: Vec<String>,
    trace: bool,
    is_paged: bool,
}

/// Attributes to answer with.
enum Fields {
    All,
    Some(HashSet<String>),
}

/// The items that match a filter; look-ups of compiled ones are counted.
pub(crate) fn filtered(view: &CatalogView, filter: &Filter) -> Result<ViewItems, FilterError> {
    let mut look_ups = FilterLookUps::default();
    let items = view.look_up_filter(filter, &mut look_ups)?;
    count_look_ups(look_ups);
    Ok(items)
}

fn count_look_ups(look_ups: FilterLookUps) {
    let count = |result: &'static str, number: u64| {
        metrics::counter!("palmette_filter_cache_total", "result" => result).increment(number);
    };
    count("hit", look_ups.hits);
    count("miss", look_ups.misses);
}

impl AnswerContext {
    fn new(target: Arc<Target>, question: &CheckedQuestion) -> Self {
        let asked = question.question();
        let fields = match asked.fields.iter().any(|name| name == "*") {
            true => Fields::All,
            false => Fields::Some(asked.fields.iter().cloned().collect()),
        };
        Self {
            target,
            view: Arc::clone(question.view()),
            matching: question.matching(),
            has_filter: question.items().is_some(),
            k: asked.k,
            fields,
            given: question.named().len(),
            unknown: question.unknown().map(NamedItem::to_text).collect(),
            trace: asked.trace,
            is_paged: question.is_paged(),
        }
    }

    /// The part of an answer that equal requests share.
    fn cached(&self, found: &Recommendations, cursor: Option<String>) -> CachedAnswer {
        let view = self.view.view();
        let item = |item: &palmette_recommend::Recommended| {
            let (catalog, rank) = view.place(item.number);
            let fields = match &self.fields {
                Fields::Some(names) if names.is_empty() => Default::default(),
                Fields::Some(names) => {
                    let mut all = catalog.attributes(rank);
                    all.retain(|name, _| names.contains(name));
                    all
                }
                Fields::All => catalog.attributes(rank),
            };
            AnsweredItem {
                id: catalog.id(rank).to_owned(),
                score: item.score,
                boost: item.boost,
                pinned: item.pinned,
                codes: catalog.codes(rank),
                fields,
            }
        };
        let items: Vec<AnsweredItem> = found.items.iter().map(item).collect();
        let least = self.k.min(usize::try_from(found.eligible).unwrap_or(usize::MAX));
        let reason = match () {
            () if items.len() < least => ShortfallReason::Rules,
            () if self.matching >= self.k as u64 => ShortfallReason::Seen,
            () if self.has_filter => ShortfallReason::Filter,
            () => ShortfallReason::Catalog,
        };
        let shortfall =
            (items.len() < self.k).then_some(Shortfall { reason, eligible: found.eligible });
        CachedAnswer {
            items,
            shortfall,
            used: found.history_used,
            beam_width: found.beam_width,
            mode: found.mode.into(),
            missed_at_most: found.missed_at_most,
            cursor: self.is_paged.then_some(cursor),
            thought: found.thought.clone(),
            explanations: found.explanations.clone(),
        }
    }

    fn answer(
        &self,
        kept: &CachedAnswer,
        cached: bool,
        narrowed: bool,
        timings_ms: Timings,
        levels: Option<Vec<Vec<Beam>>>,
    ) -> RecommendAnswer {
        if let Some(shortfall) = &kept.shortfall {
            let reason = match shortfall.reason {
                ShortfallReason::Catalog => "catalog",
                ShortfallReason::Filter => "filter",
                ShortfallReason::Seen => "seen",
                ShortfallReason::Rules => "rules",
            };
            metrics::counter!("palmette_recommend_short_total", "reason" => reason).increment(1);
        }
        RecommendAnswer {
            request_id: request_id::current(),
            target: TargetName {
                model: self.target.model.name.clone(),
                catalog: self.target.catalog.name.clone(),
            },
            generation: self.view.view().generation(),
            items: kept.items.clone(),
            shortfall: kept.shortfall.clone(),
            history: HistoryNote {
                given: self.given,
                used: kept.used,
                unknown: self.unknown.clone(),
            },
            beam_width: kept.beam_width,
            narrowed,
            cached,
            mode: kept.mode,
            proven: kept.missed_at_most.is_none(),
            missed_at_most: kept.missed_at_most,
            cursor: kept.cursor.clone(),
            timings_ms,
            levels,
            thought: kept.thought.clone(),
            explanations: kept.explanations.clone(),
        }
    }
}

fn levels(found: &Recommendations) -> Vec<Vec<Beam>> {
    let beam =
        |of: &palmette_recommend::TracedBeam| Beam { codes: of.codes.clone(), score: of.score };
    found.levels.iter().map(|beams| beams.iter().map(beam).collect()).collect()
}
