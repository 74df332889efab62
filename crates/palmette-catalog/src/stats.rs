//! What a catalog looks like, for people and for sizing.

use serde::Serialize;

use crate::catalog::Catalog;

/// Counts over a whole catalog.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatalogStats {
    /// Items in all.
    pub num_items: u32,
    /// Distinct semantic IDs.
    pub num_ids: u32,
    /// Items that share their semantic ID with another.
    pub items_in_collisions: u32,
    /// Most items on one semantic ID.
    pub largest_collision: u32,
    /// `lengths[n]`: items whose semantic ID has `n` codes.
    pub lengths: Vec<u32>,
    /// Each level.
    pub levels: Vec<LevelStats>,
    /// Bytes of the index that decoding reads.
    pub index_bytes: usize,
    /// Bytes of ids, attributes and their look-up.
    pub item_bytes: usize,
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
    pub num_prefixes: usize,
    /// Most codes that follow one prefix.
    pub max_branching: usize,
    /// Bits one stored code takes.
    pub code_bits: u32,
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
            index_bytes: self.levels().bytes(),
            item_bytes: self.item_table().bytes(),
        };
        let mut branching = vec![0; self.num_levels()];
        let mut open = vec![self.start()];
        while let Some(state) = open.pop() {
            let here = self.items_at(&state).len() as u32;
            stats.lengths[state.level()] += here;
            stats.num_ids += u32::from(here > 0);
            stats.items_in_collisions += if here > 1 { here } else { 0 };
            stats.largest_collision = stats.largest_collision.max(here);
            let level = state.level();
            let before = open.len();
            open.extend(self.children(state).map(|(_, child)| child));
            if let Some(most) = branching.get_mut(level) {
                *most = (*most).max(open.len() - before);
            }
        }
        let describe = |level: usize| {
            let mut codes: Vec<u32> = self.levels().prefix_codes(level).collect();
            codes.sort_unstable();
            codes.dedup();
            LevelStats {
                prefix: self.level_prefixes().and_then(|p| p.get(level).cloned()),
                codebook_size: self.codes_per_level().get(level).copied().unwrap_or(0),
                codes_used: codes.len(),
                num_prefixes: self.levels().num_prefixes(level),
                max_branching: branching[level],
                code_bits: self.levels().code_bits(level),
            }
        };
        stats.levels = (0..self.num_levels()).map(describe).collect();
        stats
    }
}
