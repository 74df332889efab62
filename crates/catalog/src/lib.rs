//! Item catalogs: sets of semantic IDs that a decoder may spell.
//!
//! Items are sorted by semantic ID; an item is then its **rank**, a prefix is a **range of ranks**,
//! and that range is the whole state of a beam ([`CatalogState`]); how that is looked up is the
//! [`index`]'s. Several items may share a semantic ID: they have neighbouring ranks, in the order
//! in which they were given.
//!
//! The order of things: [`readers`] push the items of a file into a [`CatalogBuilder`], which
//! packs, sorts and indexes them; [`Catalog::save`] and [`Catalog::open`] keep the result in a
//! file; a [`Filter`] names the items that one request may return, an [`ItemSet`](index::ItemSet);
//! and a [`CatalogConstraint`] joins a catalog, or such a set of it, with the tokens by which a
//! model spells its codes.
//!
//! ```
//! use palmette_catalog::{BuildOptions, Catalog, Item};
//!
//! let items = [("lamp", [3, 1]), ("tent", [0, 7]), ("mat", [0, 2])]
//!     .map(|(id, codes)| Item { id: id.into(), codes: codes.into(), attributes: Default::default() });
//! let catalog = Catalog::build(items.to_vec().into(), &BuildOptions::default())?;
//! let under_0 = catalog.children(&catalog.start())[0];
//! assert_eq!(under_0.0, 0);
//! let codes: Vec<u32> = catalog.children(&under_0.1).iter().map(|&(code, _)| code).collect();
//! assert_eq!(codes, [2, 7]);
//! assert_eq!(catalog.id(catalog.find(&[3, 1]).start), "lamp");
//! # Ok::<(), palmette_catalog::BuildError>(())
//! ```
//!
//! Source: STATIC, arXiv 2602.22647, §4.2. We differ: STATIC stores a prefix's children as explicit
//! pointers; a rank range needs none.
//!
//! # Invariants
//! - `palmette-catalog` knows no model: which tokens spell a code is told it by `CodeTokens`. Nor
//!   does it know that a catalog may change: `palmette-catalog-live` puts frozen catalogs together.
//! - A catalog file is written to a temporary name, synced and renamed; opening maps it and checks
//!   header, table and sizes, and unless told otherwise every checksum and every order that
//!   decoding relies on. A damaged or hostile file is an error; one that was opened without the
//!   latter checks may give wrong answers, but no panics.
//! - A filter is exact: results equal those over a catalog of the matching items alone, never fewer
//!   than `k` while `k` match.
//! - Readers push items into a sink one at a time and keep none; only `read_items` collects them.
//!   Checks that one item alone cannot show, such as one spelling of codes, are `CheckedSink`'s,
//!   whichever crate reads the file.
#![forbid(unsafe_code)]

mod build;
mod build_error;
mod catalog;
mod constraint;
mod derived;
mod file;
mod filter_cache;
mod ids;
pub mod index;
mod item;
mod keys;
mod plan;
pub mod readers;
mod stats;
mod tokens;

pub use build::{BuildOptions, BuildStage, CatalogBuilder, KindConflict};
pub use build_error::BuildError;
pub use catalog::Catalog;
pub use constraint::CatalogConstraint;
pub use file::FileError;
pub use filter_cache::{FilterCache, FilterLookUps, FilterStatistics};
pub use index::CatalogState;
pub use item::Item;
pub use keys::{CatalogKeys, KeysError};
pub use palmette_catalog_filter::{
    ColumnConflict, ColumnKind, Filter, FilterError, RankSet, UnknownKind, grouped, nearest,
};
pub use palmette_mapped::Check;
pub use plan::{CatalogPlan, PlanError, PlanOptions};
pub use stats::{CatalogStats, ColumnStats, LevelStats};
pub use tokens::{CodeTokens, LevelSpelling, LevelTokens, TokenTable, TokensError};
