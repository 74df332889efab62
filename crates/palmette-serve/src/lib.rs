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
//! `wire` has the types of bodies, `api` a handler for each route, `registry` the table, `models` the models of recommendations, `texts` the text models, `engine` scheduler and streams, `json` how their text is read, `answers`
//! the cache, `writes` the turns of those that change a catalog, `cluster` the log that several servers share, `operations` what goes on after its answer, `callers` the pages that may ask, `keys` the permissions, `problem` the errors, `document` the OpenAPI document, `audit` who did what, `gzip` compressed bodies, `cors` pages of other origins, `page` what a
//! browser gets at `/`.
#![forbid(unsafe_code)]

mod answers;
mod api;
mod audit;
mod callers;
mod cluster;
mod config;
mod cors;
mod data_dir;
mod document;
mod engine;
mod gzip;
mod idle;
mod keys;
mod models;
mod operations;
mod own_paths;
mod problem;
mod registry;
mod request_id;
mod server;
mod targets_file;
mod telemetry;
mod text_times;
mod texts;
pub mod wire;
mod writes;

pub use cluster::LogConfig;
pub use config::ServeConfig;
pub use cors::ANY_ORIGIN;
pub use keys::{KeysError, NewKey, Scope, UnknownScope};
pub use problem::{Fault, Problem};
pub use registry::LoadError;
pub use server::{Server, openapi};
pub use texts::TextOptions;
