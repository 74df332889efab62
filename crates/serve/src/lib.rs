//! Recommendations over HTTP: targets, deadlines, live catalogs, filters and rules per request; and texts under grammars.
//!
//! # Life of a request
//! A connection's task ([`Server::serve`]) reads and parses the body, takes the **target** (a pair of model and catalog) from the
//! registry's table and a view of the catalog, resolves ids and filter against that view, and hands the **work** to the engine. The
//! engine's scheduler admits it by its predicted finish or refuses it at once; a **stream**, a thread with its own workers, answers it
//! and looks between two stages for a reason to stop. Model work never runs on the threads of the sockets.
//!
//! A text model is asked as OpenAI's are (`api/text`): its requests go to an engine of its own, which writes several texts at once
//! ([`palmette_text::engine`]), and not to the scheduler, whose costs and deadlines are those of searches.
//!
//! # Invariants
//! - One table of targets, one view, one generation a request, from its admission to its end.
//! - An answer depends on the request and the generation, on nothing else: not on load, threads, or what was cached.
//! - Whatever a client sends is answered by a problem document that names the value, the rule and the way out.
//!
//! # Parts
//! Arrows go down this list: `server` has the routes and connections; `authorisation`, `callers`, `cors` and `gzip` stand before
//! the routes; `api` has a handler for each of them; `app` is the state that handlers share; `engine` has scheduler and streams;
//! `domain` knows no HTTP: `registry` has the table of targets, `models` the models of recommendations, `texts` the text models,
//! `answers` the cache, `writes` the turns of those that change a catalog, `cluster` the log that several servers share,
//! `operations` the work that outlives its request, `keys` and `permissions` the clients; `wire` has the types of bodies, `problem`
//! the errors, `audit` the facts of the log, `document` the OpenAPI document.
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
pub use problem::{Fault, Problem};
pub use server::{Server, openapi};
