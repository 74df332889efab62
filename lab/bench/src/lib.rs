//! Comparison engines, generated item sets, and the measuring of catalogs, grammars and
//! recommendations.
//!
//! - [`GeneratedItems`]: item sets made from a seed, in four distributions.
//! - [`engines`]: the catalog's index and the plain structures it is compared with, behind one
//!   trait, [`Engine`](engines::Engine).
//! - [`CatalogBench`]: builds the index in memory, measures a decoder's step at every level, cold
//!   and hot, and gives a [`Report`]; `palmette bench catalog` prints it.
//! - [`grammar`]: grammars with texts, followed token by token; `palmette bench grammar` prints the
//!   report.
//! - [`members`]: sets of strings that grammars name, alone and in whole masks; `palmette bench
//!   members` prints the report.
//! - [`own_core`]: whether a step that was timed had its core for itself.
//! - [`recommend`]: whole recommendations by a random model, next to what their arithmetic must
//!   take; `palmette bench recommend` prints the report.
//!
//! A **step** of a catalog is what a decoder asks once for every code it emits: for each of B
//! beams, which codes may follow. The answer is a block of mask rows, `[beams, ceil(vocab / 32)]`
//! u32 words (the layout of `palmette_core::mask`), bit c set where code c may follow.
#![forbid(unsafe_code)]

mod bench;
pub mod engines;
mod generate;
pub mod grammar;
mod machine;
mod measure;
pub mod members;
pub mod own_core;
mod peers;
mod random;
pub mod recommend;
mod report;
mod steps;
mod timed_build;

pub use bench::{BenchError, CatalogBench, Progress};
pub use generate::{Distribution, GeneratedItems, Shape, ShapeError};
pub use machine::Machine;
pub use report::{ByLevel, FilterSet, Microseconds, OwnCore, PeerReport, Report};
