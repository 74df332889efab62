//! Recommendations over HTTP: targets, deadlines, live catalogs, filters and rules per request; and
//! texts under grammars.
//!
//! # Life of a request
//! A connection's task ([`Server::serve`]) reads and parses the body, takes the **target** (a pair
//! of model and catalog) from the registry's table and a view of the catalog, resolves ids and
//! filter against that view, and hands the **work** to the engine. The engine's scheduler admits it
//! by its predicted finish or refuses it at once; a **stream**, a thread with its own workers,
//! answers it and looks between two stages for a reason to stop. Model work never runs on the
//! threads of the sockets.
//!
//! A text model is asked as OpenAI's are (`api/text`): its requests go to an engine of its own,
//! which writes several texts at once ([`palmette_text::engine`]), and not to the scheduler, whose
//! costs and deadlines are those of searches.
//!
//! # Invariants
//! - One table of targets, one view, one generation a request, from its admission to its end.
//! - An answer depends on the request and the generation, on nothing else: not on load, threads, or
//!   what was cached.
//! - Whatever a client sends is answered by a problem document that names the value, the rule and
//!   the way out.
//!
//! # Parts
//! Arrows go down this list: `server` has the routes and connections; `authorisation`, `callers`,
//! `cors` and `gzip` stand before the routes; `api` has a handler for each of them; `app` is the
//! state that handlers share; `engine` has scheduler and streams; `domain` knows no HTTP:
//! `registry` has the table of targets, `models` the models of recommendations, `texts` the text
//! models, `text_catalogs` the catalogs that grammars name, `code_tokens` the tokens by which a
//! text model spells their codes, `answers` the cache, `writes` the turns of those that change a
//! catalog, `cluster` the log that several servers share, `operations` the work that outlives its
//! request, `keys` and `permissions` the clients; `model_loader` reads models to where they are
//! computed; `wire` has the types of bodies, `problem` the errors, `audit` the facts of the log,
//! `document` the OpenAPI document.
//!
//! # Life of a request
//! `POST /v1/recommend` at `palmette serve`; files are within `serve/src`.
//!
//! 1. A connection's task (`server.rs`) has a time for the first bytes, for headers and for the
//!    body, one between requests (`idle.rs`), and each body a size. The request gets its id;
//!    without keys it must come from no foreign page (`callers.rs`), with keys it gets the
//!    permissions of its key (`authorisation.rs`), by one table of routes. A compressed body is
//!    inflated as it is read (`gzip.rs`), and what the log's line says of who did what is gathered
//!    on the way (`audit.rs`).
//! 2. The body becomes a struct (`palmette-document`; `wire/`, from which the OpenAPI document is
//!    made as well); of a recommendation it is an envelope and a `RecommendQuestion`
//!    (`api/recommend.rs`). From here every refusal is a problem (`problem.rs`), the only place
//!    with status codes.
//! 3. The request takes the table of **targets** once (`domain/registry.rs`), one atomic load, and
//!    from its target a view of the catalog: the newest generation, a kept one, or one that it
//!    waits for. Table and view are its own to the end, whatever is switched or updated meanwhile.
//! 4. The question is checked against that view and the server's limits, so that what cannot be
//!    answered is refused before it costs anything. An equal one at the same generation has its
//!    answer in the cache (`answers.rs`), whose key is the checked question.
//! 5. What is left is **work** (`engine/work.rs`): the checked question with its sizes
//!    (`Recommender::planned`). It goes to the scheduler's thread (`engine/driver.rs`), which tells
//!    `palmette-serve-schedule` what happens and when, and does what it says: refuse now, or queue.
//! 6. A **stream** (`engine/stream.rs`), a thread with workers of its own, answers it by the life
//!    above; after each stage it looks at the stop flag, which a passed deadline, a client that
//!    went away or the end of a drain sets. Other threads join where nobody else waits.
//! 7. The reply wakes the connection's task, which writes the answer, its generation and times.
//!    Models never run on the threads of the sockets, and no lock is held while one does.
//!
//! A stream keeps its workers for as long as there is the target that they are of: the last to let
//! go of a target ends its **lease**, and idle streams drop what they hold of a catalog that was
//! deleted.
//!
//! Changes of a catalog (`api/items.rs`) wait for their turn (`writes.rs`), are checked against the
//! models of the targets that have the catalog, and are acknowledged when `palmette-catalog-live`
//! has them on disk. A new catalog (`api/make_catalog.rs`) is made beside its place, by the request
//! or by an operation that outlives it (`operations.rs`). Targets change by copying the table
//! (`Registry::change`): models are loaded, pairs joined and their costs measured before anybody
//! waits.
//!
//! The process (`cli/src/commands/serve`) owns the listener, the signals and the end: not ready,
//! then no new connections and no admission, then what was admitted ends, each within its time.
//!
//! # Invariants
//! - A request over HTTP has one table of targets, one view and one generation, from its admission
//!   to its end; its answer depends on the request and the generation alone. Each submission to the
//!   engine has exactly one reply, whatever ends it.
//! - Whatever a client sends is answered by a status below 500, but for 503 and 504; what it may
//!   take of time, memory and connections is bounded before it is read. Neither keys nor histories
//!   are logged, and labels of metrics are bounded.
//! - A model of recommendations is in memory while a target or a pair holds it (`models.rs`);
//!   answers leave as they are taken.
#![forbid(unsafe_code)]

mod api;
mod app;
mod audit;
mod authorisation;
mod callers;
mod config;
mod cors;
mod document;
mod domain;
mod engine;
mod gzip;
mod idle;
mod model_loader;
mod own_paths;
mod problem;
mod request_id;
mod server;
mod telemetry;
mod text_times;
mod wall_clock;
pub mod wire;

pub use config::ServeConfig;
pub use cors::ANY_ORIGIN;
pub use domain::cluster::LogConfig;
pub use domain::keys::{KeysError, NewKey};
pub use domain::load_error::LoadError;
pub use domain::permissions::{Scope, UnknownScope};
pub use domain::texts::TextOptions;
pub use model_loader::{ModelLoadError, ModelLoader};
pub use palmette_serve_schedule::Config as Schedule;
pub use problem::{Fault, Problem};
pub use server::{Server, openapi};
