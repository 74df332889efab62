//! The frozen catalog and positions in it.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::items::ItemTable;
use crate::levels::Levels;

/// An immutable set of items, each with a semantic ID, sorted and indexed.
///
/// Share it in an `Arc`. An item is addressed by its rank, from 0 to `num_items`; ranks follow the
/// order of semantic IDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    levels: Levels,
    items: ItemTable,
    codes_per_level: Vec<u32>,
    level_prefixes: Option<Vec<String>>,
}

/// A position in a catalog: a prefix of semantic IDs, as the range of ranks of the items that
/// have it. 12 bytes.
///
/// The range is never empty, except at the start of the empty catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogState {
    pub(crate) ranks: Range<u32>,
    /// Codes in the prefix.
    pub(crate) level: u32,
}

impl CatalogState {
    /// Ranks of the items that begin with this prefix.
    pub fn ranks(&self) -> Range<u32> {
        self.ranks.clone()
    }

    /// Codes committed so far.
    pub fn level(&self) -> usize {
        self.level as usize
    }
}

impl Catalog {
    pub(crate) fn from_parts(
        levels: Levels,
        items: ItemTable,
        codes_per_level: Vec<u32>,
        level_prefixes: Option<Vec<String>>,
    ) -> Self {
        Self { levels, items, codes_per_level, level_prefixes }
    }

    /// Items in all.
    pub fn num_items(&self) -> u32 {
        self.levels.num_items()
    }

    /// Codes in the longest semantic ID.
    pub fn num_levels(&self) -> usize {
        self.levels.num_levels()
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
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The position before the first code.
    pub fn start(&self) -> CatalogState {
        CatalogState { ranks: 0..self.num_items(), level: 0 }
    }

    /// The positions one code further, ascending by code.
    pub fn children(&self, state: CatalogState) -> impl Iterator<Item = (u32, CatalogState)> + '_ {
        let level = state.level + 1;
        self.levels
            .children(state.level(), state.ranks)
            .map(move |(code, ranks)| (code, CatalogState { ranks, level }))
    }

    /// The position over `code`, if any item has it there.
    pub fn child(&self, state: &CatalogState, code: u32) -> Option<CatalogState> {
        let ranks = self.levels.child(state.level(), &state.ranks, code)?;
        Some(CatalogState { ranks, level: state.level + 1 })
    }

    /// The ranks of the items whose whole semantic ID is this prefix: several on a collision.
    pub fn items_at(&self, state: &CatalogState) -> Range<u32> {
        self.levels.ended(state.level(), &state.ranks)
    }

    /// The ranks of the items with exactly this semantic ID; empty if there are none.
    pub fn find(&self, codes: &[u32]) -> Range<u32> {
        let end = codes.iter().try_fold(self.start(), |state, &code| self.child(&state, code));
        end.map_or(0..0, |state| self.items_at(&state))
    }

    /// Whether any item has exactly this semantic ID.
    pub fn contains(&self, codes: &[u32]) -> bool {
        !self.find(codes).is_empty()
    }

    /// The semantic ID of an item.
    ///
    /// # Panics
    /// When `rank` is not below `num_items`, as do the other look-ups by rank.
    pub fn codes(&self, rank: u32) -> Vec<u32> {
        assert!(rank < self.num_items(), "rank {rank} of {}", self.num_items());
        let code = |level| Some(self.levels.prefix_of(rank, level)?.1);
        (1..=self.num_levels()).map_while(code).collect()
    }

    /// The id of an item.
    pub fn id(&self, rank: u32) -> &str {
        self.items.id(rank)
    }

    /// The attributes of an item, parsed anew at each call.
    pub fn attributes(&self, rank: u32) -> Map<String, Value> {
        self.items.attributes(rank)
    }

    /// The attribute `title` of an item, where it has one that is text.
    pub fn title(&self, rank: u32) -> Option<String> {
        match self.attributes(rank).remove("title")? {
            Value::String(title) => Some(title),
            _ => None,
        }
    }

    /// The rank of the item with this id. Cost: a binary search over ids.
    pub fn rank_of(&self, id: &str) -> Option<u32> {
        self.items.rank_of(id)
    }

    pub(crate) fn item_table(&self) -> &ItemTable {
        &self.items
    }
}
