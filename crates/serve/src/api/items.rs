//! Items of a catalog: batches of changes, single items, and pages of them.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use palmette_catalog_filter::{Filter, SortKey, id_text};
use palmette_catalog_live::{
    Applied, BatchKey, CatalogView, KeyedApplied, LiveCatalog, LiveError, Update, ViewItems,
};
use palmette_catalog_replica::{Change, ChangeError, Changed};
use palmette_recommend::PromptFormat;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::body;
use super::catalogs::served;
use super::documented::{Reads, Writes as WriteProblems};
use super::extract::{IfMatch, Path, Query, answered, at_generation, header, media_type};
use super::recommend::filtered;
use super::upload::{BufferedBody, Upload};
use crate::app::App;
use crate::domain::background::blocking;
use crate::domain::generations::view_at;
use crate::domain::registry::ServedCatalog;
use crate::domain::writes;
use crate::problem::{Fault, Kind, Problem};
use crate::wire::{GenerationParam, ItemEntry, ItemPage, ItemQuery, ItemsApplied};

/// Faults of a batch that one answer names.
const MAX_FAULTS: usize = 16;
/// Changes of a batch, at most: one of a few bytes takes some hundred while it is checked and
/// applied.
const MAX_CHANGES: usize = 250_000;
/// Items that a page looks at for words, at most, so that its time does not grow with the catalog.
const MAX_LOOKED_AT: usize = 50_000;
/// Attributes that words are looked for in, beside the id.
const TITLES: [&str; 2] = ["title", "name"];
/// Items of a page, at most.
const MAX_PAGE: usize = 1000;

/// Applies a batch of changes as one generation: all of them or none.
///
/// A line is an item to insert or replace, `{"item_id": "P1", "codes": [0, 5], "price": 3}`;
/// attributes to change, without codes, null for one that is taken away; or `{"delete": "P1"}`.
/// Requests that begin after the answer see the batch.
///
/// With `Idempotency-Key` a repetition of the same body gets the first answer again, after a crash
/// too, while the key is among the catalog's latest 10,000. With `If-Match` the batch is applied
/// only at that generation.
#[utoipa::path(
    post, path = "/v1/catalogs/{c}/items", operation_id = "change_items", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        ("Idempotency-Key" = Option<String>, Header, description = "Name of this batch, 1 to 128 characters"),
        ("If-Match" = Option<String>, Header, description = "Generation that the catalog must be at, in quotes"),
    ),
    request_body(content = String, content_type = "application/x-ndjson", description = "A change a line"),
    responses((status = 200, body = ItemsApplied), WriteProblems)
)]
pub(crate) async fn post(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    match media_type(&headers).as_str() {
        "" | "application/x-ndjson" | "application/jsonl" | "application/json" => {}
        other => {
            let detail = format!("the body is {other:?}; application/x-ndjson is read here");
            return Err(Problem::new(Kind::UnsupportedMedia, detail));
        }
    }
    let write = Write::new(&app, &name, &headers)?;
    let key = header(&headers, "idempotency-key")?.map(str::to_owned);
    if let Some(key) = &key {
        writes::check_key(key)?;
    }
    let body = Upload::new(&app, &headers, body)?.into_memory().await?;
    let (body, lines, key) = blocking(move || {
        let key =
            key.map(|name| BatchKey { name, fingerprint: Sha256::digest(&body.bytes).into() });
        Lines::read(&body).map(|lines| (body, lines, key))
    })
    .await??;
    let (applied, is_repeated) = write.batch(lines, key).await?;
    drop(body);
    let mut response = at_generation(Some(applied.generation), Json(applied));
    if is_repeated {
        response
            .headers_mut()
            .insert("idempotency-replayed", hyper::header::HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Lines of a body that are updates.
struct Lines {
    updates: Vec<Update>,
    /// Number of each one's line, from 1.
    numbers: Vec<usize>,
}

impl Lines {
    fn read(body: &BufferedBody) -> Result<Self, Problem> {
        let (mut updates, mut numbers, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        for (number, line) in (1..).zip(body.bytes.split(|&byte| byte == b'\n')) {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let update = std::str::from_utf8(line)
                .map_err(|error| format!("{error}; updates are UTF-8"))
                .and_then(|line| Update::from_json_line(line).map_err(|error| error.to_string()));
            match update {
                Ok(_) if updates.len() == MAX_CHANGES => {
                    let detail = format!(
                        "the body has more than {MAX_CHANGES} changes; send them in several batches"
                    );
                    return Err(Problem::new(Kind::TooLarge, detail));
                }
                Ok(update) => {
                    updates.push(update);
                    numbers.push(number);
                }
                Err(rule) => faults.push(Fault { pointer: format!("/{number}"), detail: rule }),
            }
            if faults.len() == MAX_FAULTS {
                break;
            }
        }
        match (faults.is_empty(), updates.is_empty()) {
            (false, _) => Err(refused_lines(faults)),
            (true, true) => {
                Err(Problem::invalid("", "the body has no line; send a change or more"))
            }
            (true, false) => Ok(Self { updates, numbers }),
        }
    }

    /// The line of an update, as a pointer.
    fn pointer(&self, index: usize) -> String {
        line_pointer(&self.numbers, index)
    }
}

fn line_pointer(numbers: &[usize], index: usize) -> String {
    numbers.get(index).map_or_else(String::new, |number| format!("/{number}"))
}

/// A batch of which nothing was applied since these lines break rules.
fn refused_lines(faults: Vec<Fault>) -> Problem {
    let first = faults.first();
    let detail = first.map_or_else(String::new, |fault| match fault.pointer.strip_prefix('/') {
        Some(line) => format!("line {line}: {}; nothing of the batch was applied", fault.detail),
        None => format!("{}; nothing was applied", fault.detail),
    });
    Problem { errors: faults, ..Problem::new(Kind::Invalid, detail) }
}

/// A change of a catalog that waits for its turn.
pub(crate) struct Write {
    app: Arc<App>,
    catalog: Arc<ServedCatalog>,
    live: Arc<LiveCatalog>,
    condition: IfMatch,
}

impl Write {
    /// Refuses where this process cannot change the catalog.
    pub(crate) fn new(app: &Arc<App>, name: &str, headers: &HeaderMap) -> Result<Self, Problem> {
        let catalog = served(app, name)?;
        let live = Arc::clone(writable(&catalog)?);
        for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
            if headers.contains_key(&name) {
                let detail = format!(
                    "{name} is no condition that changes are made under here, and passing it over might lose another's change: \
                     If-Match with the catalog's generation is"
                );
                return Err(Problem::new(Kind::PreconditionFailed, detail));
            }
        }
        Ok(Self { app: Arc::clone(app), catalog, live, condition: IfMatch::of(headers)? })
    }

    /// Runs a change when it is its turn, on a thread where it may wait.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        change: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.catalog.writes.turn().await?;
        // The turn goes with the work: it ends with it, whether somebody still waits for the answer
        // or not.
        blocking(move || {
            let _turn = turn;
            // Those that delete or replace it had their turn before.
            let table = self.app.registry.table();
            if !table
                .catalogs
                .get(&self.catalog.name)
                .is_some_and(|of| Arc::ptr_eq(of, &self.catalog))
            {
                let name = &self.catalog.name;
                let detail = format!("catalog {name:?} was deleted or replaced meanwhile");
                return Err(Problem::not_found(detail));
            }
            change(&self)
        })
        .await?
    }

    /// Refuses where the catalog is not at the generation that the client named.
    pub(crate) fn check_condition(&self) -> Result<(), Problem> {
        self.condition.check(self.live.snapshot().generation())
    }

    pub(crate) fn live(&self) -> &LiveCatalog {
        &self.live
    }

    /// Applies a batch; true where a batch before had the same key and its answer is given again.
    async fn batch(
        self,
        lines: Lines,
        key: Option<BatchKey>,
    ) -> Result<(ItemsApplied, bool), Problem> {
        if self.catalog.replica.is_some() {
            let Lines { updates, numbers } = lines;
            let of = move |index| line_pointer(&numbers, index);
            let done = self.batch_by_log(updates, key, of).await?;
            return Ok((done.applied.into(), done.is_repeated));
        }
        self.run(move |write| {
            // Before the condition: the first attempt has moved the generation on.
            if let Some(key) = &key {
                let first = write.live.first_applied(key);
                let first = first.map_err(|error| {
                    Problem::new(Kind::Invalid, format!("Idempotency-Key: {error}"))
                });
                if let Some(applied) = first? {
                    return Ok((applied.into(), true));
                }
            }
            let pointer = |index| lines.pointer(index);
            Ok((write.apply(&lines.updates, key.as_ref(), pointer)?, false))
        })
        .await
    }

    /// Adds a batch to the log that the catalog follows, and waits until it was applied here.
    async fn batch_by_log(
        self,
        updates: Vec<Update>,
        key: Option<BatchKey>,
        pointer: impl Fn(usize) -> String + Send + 'static,
    ) -> Result<KeyedApplied, Problem> {
        let began = Instant::now();
        let (this, updates, pointer) = blocking(move || {
            self.check_spelling(&updates, &pointer)?;
            Ok::<_, Problem>((self, Arc::new(updates), pointer))
        })
        .await??;
        let change = Change::Batch { updates: Arc::clone(&updates), key };
        let changed = this.change_by_log(change).await.map_err(|error| match error {
            NotChanged::Refused(error) if error.update_index().is_some() => {
                this.refused(&updates, &pointer)
            }
            NotChanged::Refused(error) if error.is_refusal() => {
                Problem::new(Kind::Invalid, format!("Idempotency-Key: {error}"))
            }
            NotChanged::Refused(error) => failed(&error),
            NotChanged::Other(problem) => problem,
        })?;
        metrics::histogram!("palmette_catalog_apply_seconds", "catalog" => this.catalog.name.clone())
            .record(began.elapsed().as_secs_f64());
        let nothing = Applied { generation: changed.generation, ..Applied::default() };
        Ok(changed.batch.unwrap_or(KeyedApplied { applied: nothing, is_repeated: false }))
    }

    /// True where the catalog changes by the entries of a shared log.
    pub(crate) fn is_by_log(&self) -> bool {
        self.catalog.replica.is_some()
    }

    /// Adds a change that is not a batch to the log that the catalog follows; returns the
    /// generation that it made.
    pub(crate) async fn by_log(&self, change: Change) -> Result<u64, Problem> {
        match self.change_by_log(change).await {
            Ok(changed) => Ok(changed.generation),
            Err(NotChanged::Refused(error)) if error.is_not_kept() => {
                Err(Problem::new(Kind::Gone, error.to_string()))
            }
            Err(NotChanged::Refused(error)) if error.is_refusal() => {
                Err(Problem::new(Kind::Invalid, error.to_string()))
            }
            Err(NotChanged::Refused(error)) => Err(failed(&error)),
            Err(NotChanged::Other(problem)) => Err(problem),
        }
    }

    async fn change_by_log(&self, change: Change) -> Result<Changed, NotChanged> {
        let replica = self.catalog.replica.as_ref().ok_or_else(|| {
            let detail = format!("catalog {:?} follows no log", self.catalog.name);
            NotChanged::Other(Problem::new(Kind::Conflict, detail))
        })?;
        let changed = replica.change(change, self.condition.generations()).await;
        changed.map_err(|error| match error {
            ChangeError::Refused(error) => NotChanged::Refused(error),
            ChangeError::Elsewhere { now } => NotChanged::Other(self.condition.failed(now)),
            error => {
                let detail = error.to_string();
                NotChanged::Other(Problem::new(Kind::Unavailable, detail).retry_after(1000))
            }
        })
    }

    /// The problem of a batch with updates that break rules.
    fn refused(&self, updates: &[Update], pointer: &impl Fn(usize) -> String) -> Problem {
        let found = self.live.refused(updates).unwrap_or_default();
        let faults = found.into_iter().take(MAX_FAULTS).map(|refused| {
            let of_item = refused.id.map_or_else(String::new, |id| format!("item {id:?} "));
            Fault { pointer: pointer(refused.index), detail: format!("{of_item}{}", refused.rule) }
        });
        refused_lines(faults.collect())
    }

    /// Applies updates, by a key that is new where there is one; `pointer` tells the place of each
    /// in the body.
    fn apply(
        &self,
        updates: &[Update],
        key: Option<&BatchKey>,
        pointer: impl Fn(usize) -> String,
    ) -> Result<ItemsApplied, Problem> {
        self.check_condition()?;
        self.check_spelling(updates, &pointer)?;
        let began = Instant::now();
        let applied = match key {
            None => self.live.apply(updates),
            Some(key) => self.live.apply_keyed(updates, key).map(|done| done.applied),
        };
        let applied = applied.map_err(|error| {
            if error.update_index().is_none() {
                return failed(&error);
            }
            self.refused(updates, &pointer)
        })?;
        metrics::histogram!("palmette_catalog_apply_seconds", "catalog" => self.catalog.name.clone())
            .record(began.elapsed().as_secs_f64());
        Ok(applied.into())
    }

    /// Refuses items that a model which recommends from this catalog cannot spell: its target could
    /// answer nothing from then on.
    fn check_spelling(
        &self,
        updates: &[Update],
        pointer: &impl Fn(usize) -> String,
    ) -> Result<(), Problem> {
        let table = self.app.registry.table();
        let targets = table.targets.values().filter(|of| Arc::ptr_eq(&of.catalog, &self.catalog));
        let models: Vec<_> = targets.map(|target| &target.model).collect();
        let mut faults = Vec::new();
        for (index, update) in updates.iter().enumerate() {
            let Update::Upsert(item) = update else { continue };
            let rule = models.iter().find_map(|model| {
                let rule = unspelled(&item.codes, model.parts.prompts.format())?;
                Some(format!("item {:?} {rule} model {} spells", item.id, model.name))
            });
            faults.extend(rule.map(|detail| Fault { pointer: pointer(index), detail }));
            if faults.len() == MAX_FAULTS {
                break;
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(refused_lines(faults)) }
    }
}

/// Reason why a change was not added to a log.
enum NotChanged {
    /// The change breaks a rule of the catalog.
    Refused(LiveError),
    Other(Problem),
}

/// The rule that codes break which a model cannot spell, as it stands before the model's name.
fn unspelled(codes: &[u32], format: &PromptFormat) -> Option<String> {
    let levels = &format.levels;
    // Where a token ends each item, it may have fewer.
    let fits = codes.len() <= levels.len() && !codes.is_empty() && !format.end_tokens.is_empty();
    if codes.len() != levels.len() && !fits {
        return Some(format!("has {} codes, not the {} that", codes.len(), levels.len()));
    }
    let places = codes.iter().zip(levels).enumerate();
    let mut wrong = places.filter(|(_, (code, level))| level.tokens.token(**code).is_none());
    wrong.next().map(|(at, (code, level))| match *code < level.num_codes() {
        true => format!("has code {code} at level {at}, for which there is no token in what"),
        false => format!("has code {code} at level {at}, not one below {} that", level.num_codes()),
    })
}

/// The live catalog, or the reason why this process cannot change it.
fn writable(catalog: &ServedCatalog) -> Result<&Arc<LiveCatalog>, Problem> {
    catalog.live().ok_or_else(|| {
        let reason = match catalog.status() {
            Some(_) => "is written by another process, and this one follows it; send changes there",
            None => "is frozen; make a live one of it with PUT, from its file",
        };
        Problem::new(Kind::Conflict, format!("catalog {:?} {reason}", catalog.name))
    })
}

/// An operation that failed for the system's reasons.
pub(crate) fn failed(error: &LiveError) -> Problem {
    tracing::error!(%error, "a catalog was not changed");
    Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000)
}

/// Routes of the item whose id is `query`: its path is that of the listing, which takes `POST`
/// alone.
pub(crate) fn named_query() -> MethodRouter<Arc<App>> {
    const ID: &str = "query";
    let of = |Path(catalog): Path<String>| Path((catalog, ID.to_owned()));
    routing::get(move |app: State<Arc<App>>, path: Path<String>, at: Query<GenerationParam>| {
        get(app, of(path), at)
    })
    .put(move |app: State<Arc<App>>, path: Path<String>, headers: HeaderMap, body: Body| {
        put(app, of(path), headers, body)
    })
    .patch(move |app: State<Arc<App>>, path: Path<String>, headers: HeaderMap, body: Body| {
        patch(app, of(path), headers, body)
    })
    .delete(move |app: State<Arc<App>>, path: Path<String>, headers: HeaderMap| {
        delete(app, of(path), headers)
    })
}

/// Reads one item.
#[utoipa::path(
    get, path = "/v1/catalogs/{c}/items/{id}", operation_id = "get_item", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        ("id" = String, Path, description = "The item's id"),
        GenerationParam,
    ),
    responses((status = 200, body = ItemEntry), Reads)
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Path((name, id)): Path<(String, String)>,
    Query(at): Query<GenerationParam>,
) -> Result<Response, Problem> {
    let catalog = served(&app, &name)?;
    let at = at.name();
    blocking(move || {
        let view = view_at(&catalog, at.as_ref())?;
        let number = view.find(&id).ok_or_else(|| no_item(&view, &id))?;
        Ok(at_generation(view.generation(), Json(entry(&view, number, None))))
    })
    .await?
}

fn no_item(view: &CatalogView, id: &str) -> Problem {
    let was = if view.departed(id).is_some() { "; it was deleted" } else { "" };
    let at = view.generation().map_or_else(String::new, |now| format!(" at generation {now}"));
    Problem::not_found(format!("there is no item {id:?}{at}{was}"))
}

fn entry(view: &CatalogView, number: u64, fields: Option<&[String]>) -> ItemEntry {
    let mut item = view.item(number);
    if let Some(fields) = fields {
        item.attributes.retain(|name, _| fields.contains(name));
    }
    ItemEntry { id: item.id, codes: item.codes, attributes: item.attributes }
}

/// Inserts an item, or replaces the one with its id.
///
/// The body is a line of a batch without the id, or an item as `GET` answers.
#[utoipa::path(
    put, path = "/v1/catalogs/{c}/items/{id}", operation_id = "put_item", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        ("id" = String, Path, description = "The item's id"),
        ("If-Match" = Option<String>, Header, description = "Generation that the catalog must be at, in quotes"),
    ),
    request_body(
        content = Object, content_type = "application/json",
        description = "Codes as numbers or as text such as `<a_0><b_5>`, and attributes beside them or in `attributes`",
        example = json!({"codes": [0, 5, 16, 2], "title": "Desk lamp", "price": 44.9}),
    ),
    responses((status = 200, body = ItemsApplied), WriteProblems)
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Path((name, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (write, object) = one_item(&app, &name, &headers, body).await?;
    let update = update_of(&write.live, id, object)?;
    match &update {
        Update::Upsert(_) => write.one(update).await,
        _ => Err(Problem::invalid(
            "/codes",
            "the item has no codes; give them, or change its attributes with PATCH",
        )),
    }
}

/// Changes attributes of an item: null takes one away.
#[utoipa::path(
    patch, path = "/v1/catalogs/{c}/items/{id}", operation_id = "patch_item", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        ("id" = String, Path, description = "The item's id"),
        ("If-Match" = Option<String>, Header, description = "Generation that the catalog must be at, in quotes"),
    ),
    request_body(content = Object, content_type = "application/json", example = json!({"price": 39.9, "sale": null})),
    responses((status = 200, body = ItemsApplied), WriteProblems)
)]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    Path((name, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (write, object) = one_item(&app, &name, &headers, body).await?;
    let update = update_of(&write.live, id, object)?;
    match &update {
        Update::Patch { .. } => write.one(update).await,
        _ => Err(Problem::invalid(
            "/codes",
            "PATCH changes attributes alone; replace the item with PUT",
        )),
    }
}

/// Deletes an item; histories that have it still mean it.
#[utoipa::path(
    delete, path = "/v1/catalogs/{c}/items/{id}", operation_id = "delete_item", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        ("id" = String, Path, description = "The item's id"),
        ("If-Match" = Option<String>, Header, description = "Generation that the catalog must be at, in quotes"),
    ),
    responses((status = 200, body = ItemsApplied), WriteProblems)
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Path((name, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    Write::new(&app, &name, &headers)?.one(Update::Delete(id)).await
}

impl Write {
    /// Applies one update; one of an item that is not there makes no generation.
    async fn one(self, update: Update) -> Result<Response, Problem> {
        if self.is_by_log() {
            self.check_there(&update)?;
            let done = self.batch_by_log(vec![update], None, |_| String::new()).await?;
            let applied = ItemsApplied::from(done.applied);
            return Ok(at_generation(Some(applied.generation), Json(applied)));
        }
        let applied = self.run(move |write| {
            write.check_there(&update)?;
            write.apply(&[update], None, |_| String::new())
        });
        let applied = applied.await?;
        Ok(at_generation(Some(applied.generation), Json(applied)))
    }
}

impl Write {
    /// Refuses to change or delete an item that is not there.
    fn check_there(&self, update: &Update) -> Result<(), Problem> {
        let view = CatalogView::from(self.live.snapshot());
        match update {
            Update::Upsert(_) => Ok(()),
            _ if view.find(update.id()).is_some() => Ok(()),
            _ => Err(no_item(&view, update.id())),
        }
    }
}

/// The body about one item, an object.
async fn one_item(
    app: &Arc<App>,
    name: &str,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Write, Map<String, Value>), Problem> {
    let write = Write::new(app, name, headers)?;
    Ok((write, body::object(app, headers, body).await?))
}

/// The update of an item whose id stands in the path.
fn update_of(
    live: &LiveCatalog,
    id: String,
    mut object: Map<String, Value>,
) -> Result<Update, Problem> {
    for name in ["id", "item_id"] {
        let Some(given) = object.shift_remove(name).filter(|given| !given.is_null()) else {
            continue;
        };
        let detail = match id_text(&given) {
            Some(other) if other == id => continue,
            Some(other) => format!("the body is of item {other:?}, the path of {id:?}"),
            None => format!("{name} is {given}; it must be a text or a whole number"),
        };
        return Err(Problem::invalid(format!("/{name}"), detail));
    }
    // No attribute that null could take away.
    if object.get("codes").is_some_and(Value::is_null) {
        object.shift_remove("codes");
    }
    // Items as GET answers have their attributes in an object of this name, unless there is an
    // attribute of this name.
    let schema = live.snapshot();
    let is_attribute = schema.schema().columns.iter().any(|(name, _)| name == "attributes");
    if !is_attribute
        && let Some(Value::Object(_)) = object.get("attributes")
        && let Some(Value::Object(attributes)) = object.shift_remove("attributes")
    {
        for (name, value) in attributes {
            if object.contains_key(&name) {
                let detail = format!(
                    "attribute {name:?} stands beside codes and in attributes; give it once"
                );
                return Err(Problem::invalid(format!("/attributes/{name}"), detail));
            }
            object.insert(name, value);
        }
    }
    object.shift_insert(0, "item_id".to_owned(), Value::String(id));
    Update::from_json_line(&Value::Object(object).to_string())
        .map_err(|error| Problem::invalid("", error.to_string()))
}

/// Lists items in catalog order, page by page: all, those that match a filter, those that have
/// words in their id or title.
///
/// All pages are of one generation, that of the first. A cursor of a generation that is neither the
/// newest nor kept is gone: keep the generation before a long listing, and name it.
#[utoipa::path(
    post, path = "/v1/catalogs/{c}/items/query", operation_id = "query_items", tag = "catalogs",
    params(("c" = String, Path, description = "Name of the catalog")),
    request_body = ItemQuery,
    responses((status = 200, body = ItemPage), Reads)
)]
pub(crate) async fn query(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let catalog = served(&app, &name)?;
    let asked: ItemQuery = body::object(&app, &headers, body).await?;
    if !(1..=MAX_PAGE).contains(&asked.limit) {
        let detail = format!("limit is {}; a page has 1 to {MAX_PAGE} items", asked.limit);
        return Err(Problem::invalid("/limit", detail));
    }
    let page = blocking(move || page(&catalog, &asked)).await??;
    Ok(answered(page.generation, Json(page)))
}

fn page(catalog: &ServedCatalog, asked: &ItemQuery) -> Result<ItemPage, Problem> {
    let (view, after) = match &asked.cursor {
        None => (view_at(catalog, asked.generation.as_ref())?, None),
        Some(_) if asked.generation.is_some() => {
            return Err(Problem::invalid(
                "/generation",
                "a cursor has its generation; give one of them",
            ));
        }
        Some(cursor) => {
            let (view, number) = Cursor::parse(cursor)?.resolve(catalog)?;
            (view, Some(number))
        }
    };
    for (place, name) in asked.fields.iter().flatten().enumerate().filter(|(_, name)| *name != "*")
    {
        view.kind_of(name)
            .map_err(|error| Problem::invalid(format!("/fields/{place}"), error.to_string()))?;
    }
    let fields = asked.fields.as_deref().filter(|names| !names.iter().any(|name| name == "*"));
    let items: ViewItems = match &asked.filter {
        None => view.all_items(),
        Some(text) => Filter::parse(text.get())
            .and_then(|filter| filtered(&view, &filter))
            .map_err(|error| Problem::invalid("/filter", error.to_string()))?,
    };
    let words = asked.words.as_deref().map(Words::new);
    if words.is_some() && asked.count {
        let detail = "items that have words are not counted; leave out count, or list them all";
        return Err(Problem::invalid("/count", detail));
    }
    let mut numbers = view.in_order(&items, after);
    let (found, last) = match words {
        None => {
            let found: Vec<u64> = numbers.by_ref().take(asked.limit).collect();
            let last = found.last().copied();
            (found, last)
        }
        Some(words) => words.find(&view, &mut numbers, asked.limit, MAX_LOOKED_AT),
    };
    let last = last.filter(|_| numbers.next().is_some());
    Ok(ItemPage {
        generation: view.generation(),
        cursor: last.map(|last| Cursor::of(catalog, &view, last).to_string()),
        items: found.iter().map(|&number| entry(&view, number, fields)).collect(),
        count: asked.count.then(|| items.len()),
    })
}

/// Words to look for in ids and titles.
struct Words(Vec<String>);

impl Words {
    fn new(text: &str) -> Self {
        Self(text.split_whitespace().map(str::to_lowercase).collect())
    }

    /// Looks at the next items, `most` at most, for `limit` that have all the words; also returns
    /// the last one that it looked at.
    fn find(
        &self,
        view: &CatalogView,
        numbers: &mut impl Iterator<Item = u64>,
        limit: usize,
        most: usize,
    ) -> (Vec<u64>, Option<u64>) {
        let columns = TITLES.map(|name| view.readers(name));
        let (mut found, mut last, mut text) = (Vec::new(), None, String::new());
        for number in numbers.take(most) {
            last = Some(number);
            let (segment, rank) = view.segment_of(number);
            text.clear();
            text.push_str(view.id(number));
            for column in columns.iter().filter_map(|columns| columns.get(segment)?.as_ref()) {
                if let Some(SortKey::Text(title)) = column.sort_key(column.code(rank)) {
                    // No word has a line's end within.
                    text.push('\n');
                    text.push_str(title);
                }
            }
            let text = text.to_lowercase();
            if self.0.iter().all(|word| text.contains(word)) {
                found.push(number);
            }
            if found.len() == limit {
                break;
            }
        }
        (found, last)
    }
}

/// A place in a listing: the last item of a page, or the last that was looked at. In catalog order
/// it is the same whatever the segments.
struct Cursor {
    loading: u64,
    generation: Option<u64>,
    id: String,
}

impl Cursor {
    fn of(catalog: &ServedCatalog, view: &CatalogView, number: u64) -> Self {
        let id = view.id(number).to_owned();
        Self { loading: catalog.loading, generation: view.generation(), id }
    }

    fn parse(text: &str) -> Result<Self, Problem> {
        let parsed = || {
            let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
            let (loading, rest) = bytes.split_first_chunk::<8>()?;
            let (generation, id) = rest.split_first_chunk::<8>()?;
            let generation = Some(u64::from_le_bytes(*generation)).filter(|&of| of != u64::MAX);
            let id = String::from_utf8(id.to_vec()).ok()?;
            Some(Self { loading: u64::from_le_bytes(*loading), generation, id })
        };
        parsed().ok_or_else(|| {
            Problem::invalid("/cursor", "it is no cursor of this server; begin without one")
        })
    }

    /// The view of the cursor's generation, and the item.
    fn resolve(&self, catalog: &ServedCatalog) -> Result<(CatalogView, u64), Problem> {
        let gone = |of: String| {
            let detail = format!("{of}; list anew, or keep a generation first and name it");
            Problem::new(Kind::Gone, detail)
        };
        let newest = catalog.source.view();
        let view = match self.generation {
            _ if self.loading != catalog.loading => {
                return Err(gone(format!(
                    "the catalog {:?} of this cursor was replaced",
                    catalog.name
                )));
            }
            of if of == newest.generation() => newest,
            None => return Err(gone("the cursor is of a frozen catalog".to_owned())),
            Some(generation) => {
                if !catalog.generations().iter().any(|kept| kept.generation == generation) {
                    return Err(gone(format!(
                        "generation {generation} is neither the newest nor kept"
                    )));
                }
                let kept = catalog.kept_snapshot(generation);
                kept.map_err(|error| gone(error.to_string()))?.into()
            }
        };
        let number = view.find(&self.id);
        let number = number.ok_or_else(|| gone(format!("there is no item {:?}", self.id)))?;
        Ok((view, number))
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut bytes = self.loading.to_le_bytes().to_vec();
        bytes.extend(self.generation.unwrap_or(u64::MAX).to_le_bytes());
        bytes.extend(self.id.as_bytes());
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

#[cfg(test)]
mod tests {
    use palmette_catalog::{BuildOptions, Catalog, Item};
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_looked_for_in_pieces_of_a_bounded_length() {
        let titles = ["Red Tent", "lamp", "RED lamp", "tent", "red", "Étui rouge", "tent, red"];
        let items: Vec<Item> = (0_u32..)
            .zip(titles)
            .map(|(n, title)| {
                let name = if n % 2 == 0 { "title" } else { "name" };
                let attributes = [(name.to_owned(), json!(title)), ("price".to_owned(), json!(n))];
                let attributes = attributes.into_iter().collect();
                Item { id: format!("P{n}"), codes: vec![n], attributes }
            })
            .collect();
        let catalog = Catalog::build(items.into(), &BuildOptions::default()).unwrap();
        let view = CatalogView::from(Arc::new(catalog));
        for (text, wanted) in [
            ("red tent", &[0, 6][..]),
            ("RED", &[0, 2, 4, 6]),
            ("étui", &[5]),
            ("p3", &[3]),
            ("p3 tent", &[3]),
            ("", &[0, 1, 2, 3, 4, 5, 6]),
            ("redtent", &[]),
        ] {
            for (limit, most) in [(100, 100), (1, 100), (2, 3), (100, 1), (3, 2)] {
                let items = view.all_items();
                let (mut all, mut after) = (Vec::new(), None);
                loop {
                    let mut numbers = view.in_order(&items, after);
                    let (found, last) = Words::new(text).find(&view, &mut numbers, limit, most);
                    assert!(found.len() <= limit);
                    all.extend(found);
                    match last {
                        None => break,
                        last => after = last,
                    }
                }
                assert_eq!(all, wanted, "{text:?}, {limit} of {most}");
            }
        }
    }
}
