//! Item catalogs: sets of semantic IDs that a decoder may spell.
//!
//! Items are sorted by semantic ID; an item is then its **rank**, a prefix is a **range of ranks**,
//! and that range is the whole state of a beam ([`CatalogState`]). For each level a bitvector over
//! ranks marks where a new prefix begins, and a packed array holds the code of each distinct
//! prefix ([`levels`]); there are no pointers. Several items may share a semantic ID: they have
//! neighbouring ranks, in the order in which they were given.
//!
//! The order of things: [`readers`] turn a file into [`Item`]s, [`Catalog::build`] sorts and indexes
//! them, [`Catalog::write`] and [`Catalog::open`] keep the result in a file, and a
//! [`CatalogConstraint`] joins a catalog with the tokens by which a model spells its codes.
//!
//! ```
//! use palmette_catalog::{BuildOptions, Catalog, Item};
//!
//! let items = [("lamp", [3, 1]), ("tent", [0, 7]), ("mat", [0, 2])]
//!     .map(|(id, codes)| Item { id: id.into(), codes: codes.into(), attributes: Default::default() });
//! let catalog = Catalog::build(items.to_vec().into(), &BuildOptions::default())?;
//! let under_0 = catalog.children(catalog.start()).next().unwrap();
//! assert_eq!(under_0.0, 0);
//! let codes: Vec<u32> = catalog.children(under_0.1).map(|(code, _)| code).collect();
//! assert_eq!(codes, [2, 7]);
//! assert_eq!(catalog.id(catalog.find(&[3, 1]).start), "lamp");
//! # Ok::<(), palmette_catalog::BuildError>(())
//! ```
//!
//! Source: STATIC, arXiv 2602.22647, §4.2. We differ: STATIC stores a prefix's children as explicit
//! pointers; a rank range needs none.
#![forbid(unsafe_code)]

mod build;
mod catalog;
mod constraint;
mod file;
mod item;
mod items;
pub mod levels;
mod packed_ints;
mod rank_bits;
pub mod readers;
mod stats;

pub use build::{BuildError, BuildOptions};
pub use catalog::{Catalog, CatalogState};
pub use constraint::{CatalogConstraint, CodeTokens, LevelTokens, TokensError};
pub use file::FileError;
pub use item::Item;
pub use stats::{CatalogStats, LevelStats};
