//! `POST /v1/recommend`: from a body to work, from its outcome to an answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use palmette_attributes::{Filter, FilterError};
use palmette_catalog::FilterLookUps;
use palmette_live::{CatalogView, KeptGeneration, ViewItems};
use palmette_recommend::{
    Explain, HistoryItem, Mode, Moment, PromptFields, RecommendError, Recommendations, Rules,
    SpelledView, Think, Verification,
};
use palmette_schedule::{Class, Refusal, Stopped};
use tokio::task::JoinHandle;

use super::body;
use super::documented::Recommends;
use crate::answers::{CachedAnswer, Key};
use crate::audit;
use crate::engine::{Outcome, Work};
use crate::keys;
use crate::problem::{Kind, Problem};
use crate::registry::Target;
use crate::request_id;
use crate::server::{App, Drain, Received};
use crate::wire::{
    AnsweredItem, Beam, GenerationName, HistoryNote, ModeName, Priority, RecommendAnswer,
    RecommendBody, Shortfall, ShortfallReason, TargetName, Timings, UnknownItems,
};

/// The generation that an answer was read at.
pub(crate) const GENERATION: HeaderName = HeaderName::from_static("palmette-generation");
/// Pause between looks for a generation that is waited for.
const GENERATION_POLL: Duration = Duration::from_millis(5);

/// Most tokens of reasoning, and of the text after an item: each is a pass of the model.
const MAX_FREE_TOKENS: usize = 4096;
/// Most items that text is written for: each reads the prompt anew.
const MAX_EXPLAINED_ITEMS: usize = 16;

/// Recommends items that follow a history.
///
/// Exact beam search over the items that may be recommended: always items of the catalog at one generation, and `k` of them while as
/// many are eligible. A request that could not be answered by its deadline is refused at once.
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
    let asked: RecommendBody = body::object(&app, &headers, body).await?;
    let answer = answer(&app, asked, received.0, Priority::Interactive, None).await?;
    Ok(answered(answer.generation, Json(answer)))
}

/// An answer with the generation in its header.
pub(crate) fn answered(generation: Option<u64>, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    if let Some(generation) = generation {
        response.headers_mut().insert(GENERATION, HeaderValue::from(generation));
    }
    response
}

/// Answers one question, by a view that is given or by the one that it asks for.
pub(crate) async fn answer(
    app: &Arc<App>,
    asked: RecommendBody,
    arrived: Instant,
    class: Priority,
    given: Option<(Arc<Target>, Arc<SpelledView>)>,
) -> Result<RecommendAnswer, Problem> {
    check_limits(app, &asked)?;
    // Requests of a batch were admitted with it.
    if given.is_none() && *app.drain().borrow() >= Drain::Closed {
        metrics::counter!("palmette_recommend_shed_total", "reason" => "draining").increment(1);
        return Err(going_away());
    }
    let class = asked.priority.unwrap_or(class);
    let deadline = deadline(app, &asked, arrived, class)?;
    let (target, view) = match given {
        Some(given) => given,
        None => {
            let target = app.registry.target(asked.target.as_deref()).await?;
            let view = view_of(&target, &asked, deadline).await?;
            (target, view)
        }
    };
    audit::note(|facts| {
        facts.catalog = Some(target.catalog.name.clone());
        facts.target = Some(format!("{}:{}", target.model.name, target.catalog.name));
    });
    let resolved = resolve(app, target, view, asked).await?;
    let key = resolved.key.clone();
    if let Some(kept) = key.as_ref().and_then(|key| app.answers.get(key)) {
        return Ok(resolved.answer_of_kept(&kept, arrived));
    }
    let Resolved { work, of, .. } = resolved;
    let shapes = work.shapes(of.target.model.index, app.config.schedule.threads as usize);
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
            let kept = of.cached(&found.found);
            let levels = of.explain.then(|| levels(&found.found));
            let answer = of.answer(&kept, false, found.narrowed, found.timings, levels);
            if let (Some(key), false) = (key, found.narrowed) {
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
        Outcome::Refused { why: Refusal::Draining, .. } | Outcome::Stopped(Stopped::Drained) | Outcome::Ended => {
            Err(going_away())
        }
        Outcome::Stopped(Stopped::Deadline) => {
            metrics::counter!("palmette_recommend_missed_deadline_total").increment(1);
            Err(Problem::new(Kind::DeadlineMissed, "the work took longer than predicted and was broken off"))
        }
        Outcome::Stopped(Stopped::Cancelled) => {
            Err(Problem::new(Kind::Unavailable, "the request was cancelled").retry_after(1000))
        }
        Outcome::Failed(error) => Err(refused(error)),
        Outcome::Panicked => Err(Problem::new(Kind::Internal, "the search panicked; the log has more")),
    }
}

fn going_away() -> Problem {
    Problem::new(Kind::Unavailable, "the server is going away; ask another").retry_after(1000)
}

/// An error of the recommender: of the request's making, but for the model's own.
fn refused(error: RecommendError) -> Problem {
    let pointer = match &error {
        RecommendError::Rules(_) => "/rules",
        RecommendError::Filter(_) => "/filter",
        RecommendError::NoDraftHead => "/mode",
        RecommendError::OtherWidths { .. } => "/widths",
        RecommendError::NoThink | RecommendError::NoDraftAfterText => "/think_tokens",
        RecommendError::NoExplain => "/explain_items",
        RecommendError::Zero { .. } | RecommendError::TooLarge { .. } => "",
        RecommendError::Tokens(_) | RecommendError::ShorterItem { .. } => {
            return Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000);
        }
        _ => "",
    };
    Problem::invalid(pointer, error.to_string())
}

fn check_limits(app: &App, asked: &RecommendBody) -> Result<(), Problem> {
    let config = &app.config;
    let within = |pointer: &str, what: &str, value: usize, most: usize| match value {
        0 => Err(Problem::invalid(pointer, format!("{what} is 0; it must be from 1 to {most}"))),
        _ if value > most => Err(Problem::invalid(
            pointer,
            format!("{what} is {value}; this server takes 1 to {most}"),
        )),
        _ => Ok(()),
    };
    within("/k", "k", asked.k, config.max_k)?;
    if let Some(width) = asked.beam_width {
        within("/beam_width", "beam_width", width, config.max_beam_width)?;
        if asked.widths.is_some() {
            return Err(Problem::invalid(
                "/widths",
                "beam_width and widths exclude each other; give one",
            ));
        }
    }
    for (level, &width) in asked.widths.iter().flatten().enumerate() {
        within(&format!("/widths/{level}"), "a width", width, config.max_beam_width)?;
    }
    if let Some(width) = asked.min_beam_width {
        within("/min_beam_width", "min_beam_width", width, config.max_beam_width)?;
        if asked.widths.is_some() {
            return Err(Problem::invalid(
                "/min_beam_width",
                "min_beam_width narrows beam_width; it cannot stand beside widths",
            ));
        }
    }
    if let Some(tokens) = asked.think_tokens {
        within("/think_tokens", "think_tokens", tokens, MAX_FREE_TOKENS)?;
    }
    if let Some(explain) = asked.explain_items {
        within("/explain_items/items", "items", explain.items, MAX_EXPLAINED_ITEMS)?;
        within("/explain_items/max_tokens", "max_tokens", explain.max_tokens, MAX_FREE_TOKENS)?;
    }
    if asked.history.len() > config.max_history {
        let (given, most) = (asked.history.len(), config.max_history);
        let detail = format!(
            "the history has {given} items; this server takes {most}: send the last of them"
        );
        return Err(Problem::invalid("/history", detail));
    }
    Ok(())
}

fn deadline(
    app: &App,
    asked: &RecommendBody,
    arrived: Instant,
    class: Priority,
) -> Result<Option<Instant>, Problem> {
    let most = app.config.max_deadline;
    match (asked.deadline_ms, class) {
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

/// The view that a question asks for.
pub(crate) async fn view_of(
    target: &Arc<Target>,
    asked: &RecommendBody,
    deadline: Option<Instant>,
) -> Result<Arc<SpelledView>, Problem> {
    let newest = || target.recommender.view().map_err(refused);
    let mut view = newest()?;
    if let Some(least) = asked.min_generation {
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
    match &asked.generation {
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

/// The number of a kept generation.
pub(crate) fn find_kept(
    kept: &[KeptGeneration],
    name: &GenerationName,
    now: u64,
) -> Result<u64, Problem> {
    let (found, shown) = match name {
        GenerationName::Number(number) => {
            (kept.iter().find(|of| of.generation == *number), number.to_string())
        }
        GenerationName::Name(name) => {
            (kept.iter().rev().find(|of| of.name.as_ref() == Some(name)), format!("{name:?}"))
        }
    };
    if let Some(found) = found {
        return Ok(found.generation);
    }
    let there: Vec<String> = kept
        .iter()
        .map(|of| match &of.name {
            Some(name) => format!("{} ({name})", of.generation),
            None => of.generation.to_string(),
        })
        .collect();
    let there = if there.is_empty() {
        "none is".to_owned()
    } else {
        format!("kept are {}", there.join(", "))
    };
    let detail = format!("generation {shown} is not kept; {there}, and {now} is the newest");
    Err(Problem::new(Kind::Gone, detail))
}

/// Starts what takes long on a thread where nobody waits for it. Problems made there have the request's id too, and its permissions
/// hold.
pub(crate) fn start_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let (id, grant) = (request_id::current(), keys::current());
    let span = tracing::Span::current();
    let work = move || span.in_scope(work);
    let work = || request_id::CURRENT.sync_scope(id, || keys::CURRENT.sync_scope(grant, work));
    tokio::task::spawn_blocking(work)
}

/// Runs what takes long on a thread where nobody waits for it, and waits for its end.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    start_blocking(work).await.map_err(|_| {
        Problem::new(Kind::Internal, "a part of the request panicked; the log has more")
    })
}

/// A question with its work.
struct Resolved {
    work: Work,
    of: Of,
    /// `None` where the answer depends on the moment or is not to be kept.
    key: Option<Key>,
}

/// Parts of a question that its answer needs.
struct Of {
    target: Arc<Target>,
    view: Arc<SpelledView>,
    /// Items that match the filter.
    matching: u64,
    has_filter: bool,
    k: usize,
    fields: Fields,
    given: usize,
    unknown: Vec<String>,
    explain: bool,
}

/// Attributes to answer with.
enum Fields {
    All,
    Some(HashSet<String>),
}

async fn resolve(
    app: &Arc<App>,
    target: Arc<Target>,
    view: Arc<SpelledView>,
    asked: RecommendBody,
) -> Result<Resolved, Problem> {
    let beam_width = asked.beam_width.unwrap_or(app.config.default_beam_width);
    // Compiling a filter may take milliseconds on a large catalog.
    match asked.filter.is_some() || asked.rules.is_some() {
        true => blocking(move || resolved(target, view, asked, beam_width)).await?,
        false => resolved(target, view, asked, beam_width),
    }
}

fn resolved(
    target: Arc<Target>,
    view: Arc<SpelledView>,
    asked: RecommendBody,
    beam_width: usize,
) -> Result<Resolved, Problem> {
    let mut history = Vec::with_capacity(asked.history.len());
    let mut unknown = Vec::new();
    for (place, entry) in asked.history.iter().enumerate() {
        match (view.find_item(&entry.0), asked.unknown_items) {
            (Ok(item), _) => history.push(item),
            (Err(_), UnknownItems::Skip) => unknown.push(match &entry.0 {
                palmette_recommend::NamedItem::Id(id) => id.clone(),
                codes => codes.to_string(),
            }),
            (Err(error), UnknownItems::Error) => {
                return Err(Problem::invalid(format!("/history/{place}"), error.to_string()));
            }
        }
    }
    let of_view = view.view();
    let fields = fields_of(of_view, &asked.fields)?;
    let items = asked.filter.as_ref().map(|text| {
        let filter = Filter::parse(text.get()).and_then(|filter| filtered(of_view, &filter));
        filter.map_err(|error| Problem::invalid("/filter", error.to_string()))
    });
    let items: Option<ViewItems> = items.transpose()?;
    let rules = asked.rules.as_ref().map(|text| {
        let rules = Rules::parse(text.get());
        rules.map_err(|error| Problem::invalid("/rules", error.to_string()))
    });
    let rules: Option<Rules> = rules.transpose()?;
    let asks_now = rules
        .as_ref()
        .and_then(|rules| rules.valid.as_ref())
        .is_some_and(|valid| valid.now.is_none());
    let rules = rules.map(|rules| rules.at(Moment::Seconds(seconds_since_1970())));
    let prompt_fields = PromptFields { query: asked.query.clone(), user: asked.user.clone() };
    if let Err(error) = target.recommender.prompts().check_fields(&prompt_fields) {
        let pointer = match &error {
            RecommendError::UnknownField { field, .. }
            | RecommendError::TokenInField { field, .. } => format!("/{}", field.replace('.', "/")),
            _ => String::new(),
        };
        return Err(Problem::invalid(pointer, error.to_string()));
    }
    let mode = match asked.mode {
        ModeName::Auto => Mode::Auto,
        ModeName::Beam => Mode::Beam,
        ModeName::Probed => Mode::Probed(Mode::probe_width(asked.k)),
        ModeName::Draft => Mode::Draft(Verification::Masks),
    };
    let may_be_kept = !asks_now && !asked.explain;
    let key =
        may_be_kept.then(|| Key::new(&target, of_view.generation(), &history, &asked, beam_width));
    let of = Of {
        matching: items.as_ref().map_or_else(|| of_view.num_items(), ViewItems::len),
        has_filter: items.is_some(),
        k: asked.k,
        fields,
        given: asked.history.len(),
        unknown,
        explain: asked.explain,
        view: Arc::clone(&view),
        target: Arc::clone(&target),
    };
    let work = Work {
        recommender: Arc::clone(&target.recommender),
        is_over: target.lease.is_over(),
        view,
        history,
        k: asked.k,
        beam_width,
        widths: asked.widths,
        narrower: asked.min_beam_width.filter(|&width| width < beam_width),
        mode,
        items,
        exclude: asked.exclude,
        include_seen: !asked.exclude_seen,
        rules,
        explain: asked.explain,
        fields: prompt_fields,
        think: asked.think_tokens.map(Think::new),
        explain_items: asked
            .explain_items
            .map(|of| Explain { items: of.items, max_tokens: of.max_tokens }),
    };
    Ok(Resolved { work, of, key })
}

/// The items that match a filter; look-ups of compiled ones are counted.
pub(crate) fn filtered(view: &CatalogView, filter: &Filter) -> Result<ViewItems, FilterError> {
    let mut look_ups = FilterLookUps::default();
    let items = view.look_up_filter(filter, &mut look_ups)?;
    let count = |result: &'static str, number: u64| {
        metrics::counter!("palmette_filter_cache_total", "result" => result).increment(number);
    };
    count("hit", look_ups.hits);
    count("miss", look_ups.misses);
    Ok(items)
}

fn fields_of(view: &CatalogView, names: &[String]) -> Result<Fields, Problem> {
    if names.iter().any(|name| name == "*") {
        return Ok(Fields::All);
    }
    for (place, name) in names.iter().enumerate() {
        view.kind_of(name)
            .map_err(|error| Problem::invalid(format!("/fields/{place}"), error.to_string()))?;
    }
    Ok(Fields::Some(names.iter().cloned().collect()))
}

pub(crate) fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Resolved {
    fn answer_of_kept(&self, kept: &CachedAnswer, arrived: Instant) -> RecommendAnswer {
        let total = arrived.elapsed().as_secs_f64() * 1e3;
        let timings = Timings { total, ..Default::default() };
        self.of.answer(kept, true, false, timings, None)
    }
}

impl Of {
    /// The part of an answer that equal requests share.
    fn cached(&self, found: &Recommendations) -> CachedAnswer {
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

/// The history as the cache tells requests apart: ids are numbers in a view of one generation.
pub(crate) fn write_history(history: &[HistoryItem], key: &mut Vec<u8>) {
    for item in history {
        match item {
            HistoryItem::Number(number) => {
                key.push(0);
                key.extend(number.to_le_bytes());
            }
            HistoryItem::Codes(codes) | HistoryItem::Departed { codes, .. } => {
                // Those of departed items are read alike, but no item counts as seen.
                key.push(if matches!(item, HistoryItem::Codes(_)) { 1 } else { 2 });
                key.extend((codes.len() as u32).to_le_bytes());
                key.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
            }
        }
    }
}
