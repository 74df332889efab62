//! The server: routes, connections, readiness and drain.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use palmette_catalog_live::CatalogSource;
use palmette_grammar::CacheLimits;
use palmette_lexicon::Lexicon;
use palmette_model::SharedEngine;
use palmette_recommend::Prompts;
use palmette_text::GrammarCompiler;
use palmette_text::TextModel;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tracing::Instrument;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api;
use crate::api::extract::GENERATION;
use crate::api::text::errors::{ErrorForm, reshaped};
use crate::app::{App, Drain, Received};
use crate::audit::{self, Facts, SharedFacts};
use crate::authorisation;
use crate::callers;
use crate::config::ServeConfig;
use crate::cors;
use crate::document;
use crate::domain::answers::Answers;
use crate::domain::claims::Claims;
use crate::domain::cluster::{Cluster, LogConfig};
use crate::domain::keys::{Keys, KeysError};
use crate::domain::load_error::LoadError;
use crate::domain::models::ModelParts;
use crate::domain::name::check_name;
use crate::domain::operations::Operations;
use crate::domain::permissions;
use crate::domain::registry::{self, Registry};
use crate::domain::targets_file::SavedTargets;
use crate::domain::texts::{ServedText, TextOptions};
use crate::domain::upload_room::Room;
use crate::engine::Engine;
use crate::gzip;
use crate::idle;
use crate::own_paths;
use crate::problem::{Kind, Problem};
use crate::request_id;
use crate::telemetry;

/// Time for last events to be sent in.
const LAST_EVENTS: Duration = Duration::from_secs(2);

/// A server: load models and catalogs, set targets, then [`serve`](Self::serve).
#[derive(Clone, Debug)]
pub struct Server {
    app: Arc<App>,
}

impl Server {
    /// Starts the engine; nothing is served yet.
    ///
    /// # Errors
    /// When the system has no threads to give, the scheduler's record cannot be made, or the file
    /// of keys is unsound.
    pub fn new(config: ServeConfig) -> Result<Self, LoadError> {
        let system = |error: std::io::Error| LoadError::System(error.to_string());
        let engine = Engine::start(config.schedule, config.record.as_deref()).map_err(system)?;
        let answers = Answers::new(config.answer_cache);
        own_paths::hide(&std::env::temp_dir(), "temporary");
        for (path, name) in [
            (&config.data_dir, "data-dir"),
            (&config.keys, "the file of keys"),
            (&config.record, "the record"),
        ] {
            path.iter().for_each(|path| own_paths::hide(path, name));
        }
        let app = App {
            keys: Keys::open(config.keys.as_deref())?,
            room: Room::new(&config),
            claims: Claims::default(),
            operations: Operations::default(),
            place_grammars: GrammarCompiler::of_bytes(CacheLimits::default()),
            cluster: OnceLock::new(),
            data_lock: OnceLock::new(),
            openapi,
            registry: Arc::new(Registry::new(
                engine.registrar(),
                config.questions.default_beam_width,
                config.schedule.batch_jobs,
                config.models.clone(),
            )),
            engine,
            answers,
            metrics: telemetry::recorder()?,
            began: Instant::now(),
            drain: watch::Sender::new(Drain::No),
            config,
        };
        Ok(Self { app: Arc::new(app) })
    }

    /// Reads a model's directory. It is in memory while a target needs it.
    ///
    /// # Errors
    /// When a file is missing or unsound.
    pub fn load_model(&self, name: &str, dir: &Path) -> Result<(), LoadError> {
        own_paths::hide(dir, name);
        self.app.registry.load_model(name, dir)
    }

    /// Adds a model that is in memory.
    ///
    /// # Errors
    /// When the name is none.
    pub fn add_model(
        &self,
        name: &str,
        model: impl Into<SharedEngine>,
        prompts: impl Into<Prompts>,
    ) -> Result<(), LoadError> {
        self.app.registry.add_model(name, ModelParts::in_memory(model.into(), prompts.into()))
    }

    /// Opens a catalog file, or the directory of a live one; `reads_only` to follow another process
    /// that writes it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open_catalog(&self, name: &str, path: &Path, reads_only: bool) -> Result<(), LoadError> {
        own_paths::hide(path, name);
        let source = registry::open_source(path, reads_only)?;
        self.app.registry.add_catalog(name, source, Some(path.to_owned())).map(|_| ())
    }

    /// Adds a catalog that is open already, with its directory where it is a live one.
    ///
    /// # Errors
    /// When the name is none.
    pub fn add_catalog(
        &self,
        name: &str,
        source: impl Into<CatalogSource>,
        path: Option<&Path>,
    ) -> Result<(), LoadError> {
        path.iter().for_each(|path| own_paths::hide(path, name));
        self.app.registry.add_catalog(name, source.into(), path.map(Path::to_owned)).map(|_| ())
    }

    /// Opens a lexicon and adds it under a name that grammars of texts call it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open_lexicon(&self, name: &str, path: &Path) -> Result<(), LoadError> {
        own_paths::hide(path, name);
        let lexicon = Lexicon::open(path)?;
        self.app.registry.add_lexicon(name, Arc::new(lexicon))
    }

    /// Points an alias at a pair, and measures what its requests cost.
    ///
    /// # Errors
    /// When there is no such model or catalog, or they do not fit together.
    pub fn set_target(&self, alias: &str, model: &str, catalog: &str) -> Result<(), LoadError> {
        let target = self.app.registry.make_target(alias, model, catalog)?;
        self.app.registry.change(|table, _| {
            table.set_target(alias, target);
            Ok(())
        })
    }

    /// Loads a text model's directory and starts its engine: `/v1/chat/completions` and
    /// `/v1/completions` ask for it by this name.
    ///
    /// # Errors
    /// When a file is missing or unsound, or there is not the memory that the options ask for.
    pub fn load_text(
        &self,
        name: &str,
        dir: &Path,
        options: &TextOptions,
    ) -> Result<(), LoadError> {
        check_name("text model", name)?;
        own_paths::hide(dir, name);
        self.app.registry.add_text(ServedText::load(name, dir, options)?)
    }

    /// Adds a text model that is in memory.
    ///
    /// # Errors
    /// When the name is none, or there is not the memory that the options ask for.
    pub fn add_text(
        &self,
        name: &str,
        model: TextModel,
        options: &TextOptions,
    ) -> Result<(), LoadError> {
        check_name("text model", name)?;
        self.app.registry.add_text(ServedText::start(name, model, None, options)?)
    }

    /// True where requests need keys.
    pub fn has_keys(&self) -> bool {
        self.app.config.keys.is_some()
    }

    /// Reads the file of keys again; requests that were let in go on. Returns the number of keys.
    ///
    /// # Errors
    /// When it is unsound: the keys before stay.
    pub fn reload_keys(&self) -> Result<usize, KeysError> {
        self.app.keys.reload()
    }

    /// Waits for a failure after which a device computes nothing any more: the process is then to
    /// end, so that what started it starts it anew.
    pub async fn device_failure(&self) -> String {
        loop {
            let failures = self.app.device_failures();
            if !failures.is_empty() {
                return failures.join("; ");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Loads the models and catalogs of the data directory;
    /// [`restore_targets`](Self::restore_targets) its targets, after those that the caller sets.
    /// What was added by a name before stays. `reads_only` to follow another process that writes
    /// it; otherwise this process alone does from now on.
    ///
    /// # Errors
    /// When one cannot be loaded, or another process writes the directory.
    pub fn load_data_dir(&self, reads_only: bool) -> Result<(), LoadError> {
        let Some(data) = self.app.config.data_dir.clone() else { return Ok(()) };
        let system = |path: &Path, error: &dyn std::fmt::Display| {
            LoadError::System(format!("{}: {error}", path.display()))
        };
        // Who follows leaves the directory as it is.
        if !reads_only {
            self.app.lock_data_dir()?;
        }
        for kind in ["models", "catalogs"] {
            let dir = data.join(kind);
            if !reads_only {
                std::fs::create_dir_all(&dir).map_err(|error| system(&dir, &error))?;
            } else if !dir.is_dir() {
                continue;
            }
            let entries = std::fs::read_dir(&dir).map_err(|error| system(&dir, &error))?;
            let mut names = Vec::new();
            for entry in entries {
                let name = entry.map_err(|error| system(&dir, &error))?.file_name();
                // Files that are being made begin with a dot.
                names.extend(name.into_string().ok().filter(|name| !name.starts_with('.')));
            }
            names.sort_unstable();
            let table = self.app.registry.table();
            for name in names {
                let path = dir.join(&name);
                let is_given = match kind {
                    "models" => table.models.contains_key(&name),
                    _ => table.catalogs.contains_key(&name),
                };
                if is_given {
                    tracing::warn!(
                        name,
                        kind,
                        "the data directory has one of a name that was given, which stays"
                    );
                    continue;
                }
                match kind {
                    "models" => self.load_model(&name, &path)?,
                    _ => self.open_catalog(&name, &path, reads_only)?,
                }
            }
        }
        Ok(())
    }

    /// Sets the targets that the process before had over the data directory. Aliases that are set
    /// already stay.
    ///
    /// # Errors
    /// When the file cannot be read, or names a model or catalog that is not there.
    pub fn restore_targets(&self) -> Result<(), LoadError> {
        let Some(data) = &self.app.config.data_dir else { return Ok(()) };
        let saved = SavedTargets::read(data)?;
        let given = self.app.registry.table().default_target.clone();
        for (alias, (model, catalog)) in saved.targets {
            if !self.app.registry.table().targets.contains_key(&alias) {
                self.set_target(&alias, &model, &catalog)?;
            }
        }
        self.app.registry.change(|table, _| {
            let kept = saved.default.filter(|alias| table.targets.contains_key(alias));
            // Not the first of the file: nobody chose it.
            table.default_target = kept.or(given);
            Ok(())
        })
    }

    /// Follows a log that other servers share: models, catalogs and targets come from it, and
    /// changes go into it. The log gets what the configuration names and it does not have. Returns
    /// when the newest table was applied; catalogs may still be catching up.
    ///
    /// Blocks, and must not be called from an asynchronous task.
    ///
    /// # Errors
    /// When the log cannot be reached, something of it cannot be loaded, or the data directory is
    /// of another one.
    pub fn follow_log(&self, config: LogConfig) -> Result<(), LoadError> {
        for (name, path) in config.models.iter().chain(&config.catalogs) {
            own_paths::hide(path, name);
        }
        if let Some(path) = config.address.strip_prefix("file://") {
            own_paths::hide(Path::new(path), "shared-log");
        }
        let data = self.app.config.data_dir.as_ref().ok_or_else(|| {
            LoadError::System(
                "a server of a shared log needs a data directory for its copies".into(),
            )
        })?;
        self.app.lock_data_dir()?;
        let cluster = Cluster::open(data, config)?;
        cluster.apply(&self.app.registry)?;
        if self.app.cluster.set(Arc::clone(&cluster)).is_err() {
            return Err(LoadError::System("this server follows a log already".to_owned()));
        }
        cluster.follow(&self.app.registry)
    }

    /// Routes without connections, for tests that need no socket.
    pub fn router(&self) -> Router {
        router(&self.app)
    }

    /// Serves connections until `shutdown` is ready, then drains: readiness ends, after a pause
    /// admission too; what was admitted is answered, and the function returns. A second `shutdown`
    /// by the caller is to drop this future.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> std::io::Result<()> {
        self.serve_until(listener, std::pin::pin!(shutdown)).await
    }

    /// [`serve`](Self::serve), compiled once and not in every program that calls it.
    async fn serve_until(
        &self,
        listener: TcpListener,
        shutdown: Pin<&mut (dyn Future<Output = ()> + Send)>,
    ) -> std::io::Result<()> {
        let app = &self.app;
        let service = TowerToHyperService::new(self.router());
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(app.config.read_timeout)
            .max_concurrent_streams(256);
        let graceful = GracefulShutdown::new();
        let permits = Arc::new(Semaphore::new(app.config.max_connections));
        // Dropped when no more connections are taken.
        let (open, closed) = tokio::sync::watch::channel(());
        let accept = async {
            loop {
                let permit = Arc::clone(&permits).acquire_owned().await;
                let (stream, _) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Too many open files, or a connection that broke at once: the next may do
                        // better.
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                // Answers are small, and somebody waits for each.
                _ = stream.set_nodelay(true);
                let (mut builder, service) = (builder.clone(), service.clone());
                let idle_timeout = app.config.idle_timeout;
                let (watcher, timeout) = (graceful.watcher(), app.config.read_timeout);
                let mut closed = closed.clone();
                tokio::spawn(async move {
                    let _permit = permit;
                    let speaks = tokio::time::timeout(timeout, tells_version(&stream));
                    let speaks = tokio::select! {
                        speaks = speaks => speaks.unwrap_or(false),
                        // Nothing was asked yet, so that a drain need not wait.
                        _ = closed.changed() => false,
                    };
                    if !speaks {
                        return;
                    }
                    let (stream, timer) = idle::watched(stream, timeout);
                    builder.http1().timer(timer).header_read_timeout(idle_timeout);
                    let connection = builder.serve_connection(TokioIo::new(stream), service);
                    if let Err(error) = watcher.watch(connection.into_owned()).await {
                        tracing::debug!(error, "a connection ended");
                    }
                });
            }
        };
        let stopping = async {
            shutdown.await;
            tracing::info!("draining: not ready any more");
            app.drain.send_replace(Drain::Announced);
            tokio::time::sleep(app.config.drain_delay).await;
            app.drain.send_replace(Drain::Closed);
        };
        tokio::select! {
            never = accept => return never,
            () = telemetry::upkeep(&app.metrics) => {}
            () = stopping => {}
        }
        drop((listener, open));
        let (grace, text_grace) = (app.config.drain_grace, app.config.text_drain_grace);
        let grace = match app.registry.table().texts.is_empty() {
            true => grace,
            false => grace.max(text_grace + LAST_EVENTS),
        };
        let texts_end = async {
            tokio::time::sleep(text_grace).await;
            app.drain.send_replace(Drain::TextsOver);
            std::future::pending::<()>().await;
        };
        let drained = tokio::select! {
            drained = tokio::time::timeout(grace, graceful.shutdown()) => drained,
            () = texts_end => Ok(()),
        };
        if drained.is_err() {
            tracing::warn!("the time to drain is over: what is left is stopped");
        }
        // What is queued or running after that has no connection to answer on: nothing more is
        // taken, and what is left is stopped.
        app.engine.drain();
        app.engine.drain();
        app.operations.cancel_all();
        Ok(())
    }
}

/// First bytes of a connection that speaks HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause between looks at a preface that comes in parts.
const PREFACE_POLL: Duration = Duration::from_millis(10);

/// Waits until a connection's bytes say which version of HTTP it speaks; false where it ends
/// before.
///
/// The builder of connections waits for that without a limit, so that a client which sends nothing
/// would keep its place for ever. Bytes are looked at, not taken.
async fn tells_version(stream: &TcpStream) -> bool {
    let mut begin = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut begin).await {
            Ok(0) | Err(_) => return false,
            Ok(len) if len == PREFACE.len() || begin[..len] != PREFACE[..len] => return true,
            // Bytes that are not taken do not announce the next.
            Ok(_) => tokio::time::sleep(PREFACE_POLL).await,
        }
    }
}

/// The OpenAPI document, made from the types of bodies.
pub fn openapi() -> utoipa::openapi::OpenApi {
    document::finished(routes().into_openapi())
}

fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(document::empty())
        .routes(routes!(api::recommend::recommend))
        .routes(routes!(api::batch::batch))
        .routes(routes!(api::batch::lines))
        .routes(routes!(api::text::chat::chat))
        .routes(routes!(api::text::completions::complete))
        .routes(routes!(api::text::masks::show))
        .routes(routes!(api::text::messages::create))
        .routes(routes!(api::text::messages::count))
        .routes(routes!(api::text::places::show))
        .routes(routes!(api::text::responses::respond))
        .routes(routes!(api::text::tokens::tokenize))
        .routes(routes!(api::text::tokens::detokenize))
        .routes(routes!(api::text::models::model, api::targets::delete_model))
        .routes(routes!(api::targets::list, api::targets::post))
        .routes(routes!(api::targets::put))
        .routes(routes!(api::targets::models, api::targets::load_model))
        .routes(routes!(api::catalogs::list))
        .routes(routes!(api::catalogs::get, api::make_catalog::put, api::catalogs::delete))
        .routes(routes!(api::catalogs::export))
        .routes(routes!(api::operations::list))
        .routes(routes!(api::operations::get, api::operations::delete))
        .routes(routes!(api::generations::list, api::generations::keep))
        .routes(routes!(api::generations::forget))
        .routes(routes!(api::generations::rollback))
        .routes(routes!(api::items::post))
        .routes(routes!(api::items::query))
        .routes(routes!(api::items::get, api::items::put, api::items::patch, api::items::delete))
        .routes(routes!(api::health::livez))
        .routes(routes!(api::health::readyz))
        .routes(routes!(api::health::healthz))
        .routes(routes!(api::health::version))
        .routes(routes!(api::health::metrics))
        .routes(routes!(api::health::openapi))
}

fn router(app: &Arc<App>) -> Router {
    let (router, _) = routes().split_for_parts();
    router
        .merge(api::page::routes())
        .route("/v1/catalogs/{c}/items/query", api::items::named_query())
        .method_not_allowed_fallback(async |request: Request| {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            Problem::new(
                Kind::MethodNotAllowed,
                format!("{path} does not take {method}; /openapi.json has what it takes"),
            )
        })
        .fallback(async |request: Request| {
            let path = request.uri().path().to_owned();
            Problem::not_found(format!(
                "there is nothing at {path}; /openapi.json has what there is"
            ))
        })
        .layer(middleware::from_fn(gzip::requests))
        .layer(middleware::from_fn(callers::enforce_type))
        .layer(middleware::from_fn_with_state(Arc::clone(app), authorisation::enforce))
        .layer(middleware::from_fn_with_state(Arc::clone(app), callers::enforce))
        .layer(middleware::from_fn_with_state(Arc::clone(app), around))
        .layer(middleware::from_fn_with_state(Arc::clone(app), cors::around))
        .layer(middleware::from_fn(gzip::answers))
        .with_state(Arc::clone(app))
}

/// Wraps every request: id, time of receipt, metrics, log, and an answer where the handler panics.
async fn around(State(_): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = request_id::of(request.headers());
    request.extensions_mut().insert(Received(began));
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    // Paths that are no route are not told apart: labels are bounded.
    let route = route.unwrap_or_else(|| "none".to_owned());
    let form = ErrorForm::of_path(request.uri().path());
    let facts = SharedFacts::default();
    let span = telemetry::span(request.headers(), &method, &route, &id);
    let answer = request_id::CURRENT.scope(id.clone(), async {
        let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
        answer.unwrap_or_else(|_| {
            Problem::new(Kind::Internal, "the handler panicked; the log has more").into_response()
        })
    });
    let answer = audit::FACTS.scope(Arc::clone(&facts), answer);
    let mut response = answer.instrument(span.clone()).await;
    if let Some(form) = form {
        response = request_id::CURRENT.sync_scope(id.clone(), || reshaped(response, form));
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(request_id::HEADER, id);
    }
    let (status, took) = (response.status(), began.elapsed());
    let labels = [
        ("route", route.clone()),
        ("method", bounded(&method).to_owned()),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("palmette_http_requests_total", &labels).increment(1);
    metrics::histogram!("palmette_http_request_duration_seconds", "route" => route.clone())
        .record(took.as_secs_f64());
    let ms = took.as_secs_f64() * 1e3;
    let is_change = permissions::is_change(method.as_str(), &route);
    span.record("http.response.status_code", status.as_u16());
    let _in_span = span.entered();
    let Facts { key, catalog, target, model } = audit::so_far(&facts);
    let generation = response.headers().get(GENERATION).and_then(|value| value.to_str().ok());
    let status = status.as_u16();
    // The span has the id; a line of text for people has it as well. `target` is the module's in
    // each line.
    macro_rules! line {
        ($level:ident, $said:literal) => {
            tracing::$level!(
                %method, route, status, ms, request_id = id, key, catalog, target_name = target, model, generation, $said
            )
        };
    }
    match response.status() {
        of if of.is_server_error() && of != StatusCode::SERVICE_UNAVAILABLE => {
            line!(warn, "answered")
        }
        of if is_change && of.is_success() => line!(info, "changed"),
        _ if is_change => line!(info, "not changed"),
        _ => line!(debug, "answered"),
    }
    response
}

/// A method as a label: clients may invent others.
fn bounded(method: &axum::http::Method) -> &str {
    match method.as_str() {
        known @ ("GET" | "POST" | "PUT" | "DELETE" | "HEAD" | "OPTIONS" | "PATCH") => known,
        _ => "other",
    }
}
