//! Statistics of a catalog, for people and for sizing.

use palmette_catalog_filter::ColumnDescription;
use serde::Serialize;

use crate::catalog::Catalog;

/// Counts over a whole catalog.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatalogStats {
    /// Items in all.
    pub num_items: u64,
    /// Distinct semantic IDs.
    pub num_ids: u64,
    /// Items that share their semantic ID with another.
    pub items_in_collisions: u64,
    /// Items of the semantic ID that has the most.
    pub largest_collision: u64,
    /// `lengths[n]`: items whose semantic ID has `n` codes.
    pub lengths: Vec<u64>,
    /// Each level.
    pub levels: Vec<LevelStats>,
    /// Bytes of the index that decoding reads.
    pub index_bytes: usize,
    /// Bytes of ids and their look-up.
    pub id_bytes: usize,
    /// Bytes of attributes.
    pub attribute_bytes: usize,
    /// Each attribute.
    pub columns: Vec<ColumnStats>,
}

/// Counts of one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelStats {
    /// The level's letters where codes are spelled `<a_12>`.
    pub prefix: Option<String>,
    /// Size of the codebook, as given or as used.
    pub codebook_size: u32,
    /// Codes that some item uses.
    pub codes_used: usize,
    /// Distinct prefixes that end at this level.
    pub num_prefixes: u64,
    /// Codes after the prefix that has the most.
    pub max_branching: usize,
    /// Bits one stored code takes; 0 where codes are not stored.
    pub code_bits: u32,
    /// Form in which it is kept: see [`LevelShape`](crate::index::LevelShape).
    pub form: &'static str,
    /// True if it has a mask for each possible prefix.
    pub masked: bool,
    /// Bytes of the level.
    pub bytes: usize,
}

/// Statistics of one attribute.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnStats {
    /// Name of the attribute.
    pub name: String,
    /// Kind of its values: `keyword`, `number`, `boolean`, `timestamp`, `keywords` or `json`.
    pub kind: String,
    /// Different values.
    pub num_distinct: u64,
    /// Items that have none.
    pub num_missing: u64,
    /// Bytes it takes.
    pub bytes: u64,
}

impl From<ColumnDescription<'_>> for ColumnStats {
    fn from(column: ColumnDescription<'_>) -> Self {
        let ColumnDescription { name, kind, num_distinct, num_missing, bytes } = column;
        Self { name: name.to_owned(), kind: kind.to_string(), num_distinct, num_missing, bytes }
    }
}

impl Catalog {
    /// Counts everything. Cost: one walk over all prefixes.
    pub fn stats(&self) -> CatalogStats {
        let mut stats = CatalogStats {
            num_items: self.num_items(),
            num_ids: 0,
            items_in_collisions: 0,
            largest_collision: 0,
            lengths: vec![0; self.num_levels() + 1],
            levels: Vec::new(),
            columns: self.columns().columns().map(ColumnStats::from).collect(),
            index_bytes: self.index().bytes(),
            id_bytes: self.ids().bytes(),
            attribute_bytes: self.columns().bytes() as usize,
        };
        let mut branching = vec![0; self.num_levels()];
        let mut open = vec![self.start()];
        while let Some(state) = open.pop() {
            let here = self.items_at(&state);
            let here = here.end - here.start;
            stats.lengths[state.level()] += here;
            stats.num_ids += u64::from(here > 0);
            stats.items_in_collisions += if here > 1 { here } else { 0 };
            stats.largest_collision = stats.largest_collision.max(here);
            let level = state.level();
            let before = open.len();
            self.index().successors(&[state], None, |_, _, child| open.push(child));
            if let Some(most) = branching.get_mut(level) {
                *most = (*most).max(open.len() - before);
            }
        }
        let describe = |level: usize| {
            let shape = self.index().level_shape(level);
            LevelStats {
                prefix: self.level_prefixes().and_then(|p| p.get(level).cloned()),
                codebook_size: self.codes_per_level().get(level).copied().unwrap_or(0),
                codes_used: self.index().num_codes_used(level),
                num_prefixes: shape.num_prefixes,
                max_branching: branching[level],
                code_bits: shape.code_bits,
                form: shape.form,
                masked: shape.masked,
                bytes: shape.bytes,
            }
        };
        stats.levels = (0..self.num_levels()).map(describe).collect();
        stats
    }
}
