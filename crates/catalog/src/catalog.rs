//! The frozen catalog.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use palmette_catalog_filter::{Columns, Filter, FilterError, RankSet};
use serde_json::{Map, Value};

use crate::derived::Derived;
use crate::file::CatalogFile;
use crate::ids::Ids;
use crate::index::{CatalogState, Index, ItemSet};
use crate::item::Item;

/// An immutable set of items, each with a semantic ID, sorted and indexed.
///
/// Share it in an `Arc`. An item is addressed by its rank, from 0 to `num_items`; ranks follow the
/// order of semantic IDs.
#[derive(Clone, Debug)]
pub struct Catalog {
    index: Index,
    ids: Ids,
    columns: Columns,
    codes_per_level: Vec<u32>,
    level_prefixes: Option<Vec<String>>,
    /// The file that the arrays lie in; `None` where they own their memory.
    pub(crate) file: Option<CatalogFile>,
    derived: Derived,
}

/// Catalogs are equal by their contents, wherever these lie.
impl PartialEq for Catalog {
    fn eq(&self, other: &Self) -> bool {
        (&self.index, &self.ids, &self.columns) == (&other.index, &other.ids, &other.columns)
            && self.codes_per_level == other.codes_per_level
            && self.level_prefixes == other.level_prefixes
    }
}

impl Catalog {
    pub(crate) fn from_parts(
        index: Index,
        ids: Ids,
        columns: Columns,
        codes_per_level: Vec<u32>,
        level_prefixes: Option<Vec<String>>,
    ) -> Self {
        Self {
            index,
            ids,
            columns,
            codes_per_level,
            level_prefixes,
            file: None,
            derived: Derived::default(),
        }
    }

    /// The item with this id: id, codes and attributes.
    pub fn get(&self, id: &str) -> Option<Item> {
        let rank = self.rank_of(id)?;
        let (codes, attributes) = (self.codes(rank), self.attributes(rank));
        Some(Item { id: id.to_owned(), codes, attributes })
    }

    /// Items in all.
    pub fn num_items(&self) -> u64 {
        self.index.num_items()
    }

    /// Codes in the longest semantic ID.
    pub fn num_levels(&self) -> usize {
        self.index.num_levels()
    }

    /// Size of each level's codebook, as given or as used.
    pub fn codes_per_level(&self) -> &[u32] {
        &self.codes_per_level
    }

    /// The letters of each level where the source spelled codes as `<a_12>`.
    pub fn level_prefixes(&self) -> Option<&[String]> {
        self.level_prefixes.as_deref()
    }

    /// The index.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The position before the first code.
    pub fn start(&self) -> CatalogState {
        self.index.start()
    }

    /// The positions one code further, ascending by code.
    pub fn children(&self, state: &CatalogState) -> Vec<(u32, CatalogState)> {
        self.index.children(state)
    }

    /// The position over `code`, if any item has it there.
    pub fn child(&self, state: &CatalogState, code: u32) -> Option<CatalogState> {
        self.index.child(state, code)
    }

    /// The ranks of the items whose whole semantic ID is this prefix: several on a collision.
    pub fn items_at(&self, state: &CatalogState) -> Range<u64> {
        self.index.items_at(state)
    }

    /// The ranks of the items with exactly this semantic ID; empty if there are none.
    pub fn find(&self, codes: &[u32]) -> Range<u64> {
        self.index.find(codes)
    }

    /// True if any item has exactly this semantic ID.
    pub fn contains(&self, codes: &[u32]) -> bool {
        !self.find(codes).is_empty()
    }

    /// The semantic ID of an item.
    ///
    /// # Panics
    /// When `rank` is not below `num_items`, as do the other look-ups by rank.
    pub fn codes(&self, rank: u64) -> Vec<u32> {
        self.index.codes(rank)
    }

    /// The id of an item.
    pub fn id(&self, rank: u64) -> &str {
        self.check_rank(rank);
        self.ids.get(rank)
    }

    /// The attributes of an item.
    pub fn attributes(&self, rank: u64) -> Map<String, Value> {
        self.check_rank(rank);
        self.columns.row(rank)
    }

    /// The attribute `title` of an item, where it has one that is text.
    pub fn title(&self, rank: u64) -> Option<String> {
        self.check_rank(rank);
        match self.columns.get(rank, "title")? {
            Value::String(title) => Some(title),
            _ => None,
        }
    }

    /// The rank of the item with this id. Cost: a place in a hash table and an id or two.
    pub fn rank_of(&self, id: &str) -> Option<u64> {
        self.ids.rank_of(id)
    }

    /// The attributes of all items, as columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The value of a type that another crate derives from the catalog: a default one at first,
    /// then the same for all who ask, clones of the catalog included, for as long as it is there.
    pub fn derived<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.derived.get()
    }

    /// The ranks of the items that match a filter.
    ///
    /// Cost: reads the columns that the filter names; see [`Columns::select`].
    ///
    /// # Errors
    /// When the filter names an attribute that is not there, or asks of one what its kind cannot
    /// answer.
    pub fn select(&self, filter: &Filter) -> Result<RankSet, FilterError> {
        self.columns.select(filter, &|id| self.rank_of(id))
    }

    /// The items that match a filter, ready for steps. [`FilterCache`](crate::FilterCache) keeps
    /// them.
    ///
    /// # Errors
    /// As [`select`](Self::select).
    pub fn item_set(&self, filter: &Filter) -> Result<ItemSet, FilterError> {
        Ok(self.index.item_set(self.select(filter)?))
    }

    /// All items, as a set to take some out of.
    pub fn all_items(&self) -> ItemSet {
        self.index.all_items()
    }

    pub(crate) fn ids(&self) -> &Ids {
        &self.ids
    }

    fn check_rank(&self, rank: u64) {
        assert!(rank < self.num_items(), "rank {rank} of {}", self.num_items());
    }
}
