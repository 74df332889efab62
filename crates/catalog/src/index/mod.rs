//! The index: which codes may follow a prefix, and the ranks of the items that have it.
//!
//! Items are sorted by semantic ID; an item is then its rank, a prefix is a range of ranks, and
//! that range is the whole state of a beam ([`CatalogState`]). For each level there is a set of the
//! ranks at which a new prefix begins (`sparse.rs`) and a packed array with the code of each
//! distinct prefix; there are no pointers. The first levels, where nearly every code may follow,
//! are kept as bit masks and a table of ranks instead (`dense.rs`).
//!
//! [`CodeRows`] takes semantic IDs in any order; [`Index::build`] sorts and indexes them. A decoder
//! asks for many beams at once, [`Index::fill_masks`] (`step.rs`) or [`Index::successors`]
//! (`successors.rs`), or walks by itself (`walk.rs`).
//!
//! # Forms of a level
//! Items are sorted by semantic ID; an item is its rank, a prefix the range of ranks that have it,
//! and that range is the whole state of a beam. No pointers are stored. A level is kept in one of
//! these forms, whichever is small:
//!
//! - **dense**, the first levels: a bit mask of the codes that may follow each possible prefix, and
//!   one table with the rank at which each begins. One level more often has masks only.
//! - **by rank**, the deep levels of a large catalog, where nearly every item has a prefix of its
//!   own: one packed code an item. A prefix's codes lie at its range, so nothing is looked up;
//!   children begin where the code changes.
//! - **by prefix**: one packed code a distinct prefix, and the ranks at which prefixes begin, as a
//!   list where they are few or as a bitvector with counts in the same cache lines. An item whose
//!   ID ends within a range (IDs may have different lengths) comes first in it and begins no
//!   prefix.
//!
//! A step takes all beams of a level together: it asks for every beam's cache lines, or reads a
//! word of each, before it looks at any, because a step over a large catalog is as long as the
//! waiting for memory. Each kind of level has a function of its own, as small as it can be: between
//! a model's passes the step's code is not in a cache either. Committing beams works the same way.
//! Under a set of items a code may follow if and only if some item of the set is in its range. What
//! answers that is made once for the set: dense masks, and at levels below them whose prefixes have
//! eight items and more on average a bit a prefix, next to its siblings' bits; at deeper levels the
//! ranks' bits are read, and none where a prefix has a single item. Source: STATIC (arXiv
//! 2602.22647) §4.2, which stores child pointers, 12 bytes a prefix, and knows no sets.
//!
//! Building packs each ID into a number as it arrives and sorts the numbers; a file is the arrays
//! as they lie in memory, with a table of checksums, mapped and used where it lies.

mod advance;
mod build;
mod dense;
mod item_set;
mod limits;
mod mask_rows;
mod members;
mod packed_ints;
mod parts;
mod plan;
mod position_list;
mod prefix_sets;
mod rank_bits;
mod rows;
mod shared_masks;
mod sparse;
mod starts;
mod state;
mod step;
mod successors;
mod walk;

use palmette_mapped::{SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use dense::{Dense, DenseMeta};
use sparse::{SparseLevel, SparseMeta};

pub(crate) use build::too_large;
pub use build::{DenseError, IndexOptions};
pub use item_set::ItemSet;
pub use limits::{MAX_CODE, MAX_ITEMS, MAX_LEVELS};
pub use mask_rows::MaskRows;
pub(crate) use packed_ints::{PackedInts, PackedIntsMeta, Packer, bits_for};
pub use parts::PartScratch;
pub use plan::{IndexPlan, LevelPlan};
pub use rows::CodeRows;
pub use state::CatalogState;
pub use step::MaskTarget;

/// All levels of a set of semantic IDs, over ranks.
///
/// Within a prefix's range the items whose ID ends there come first and begin no prefix; then come
/// its children, with ascending codes.
///
/// An index that was read from a damaged file may give wrong answers, but no panics: ranges are cut
/// to the items there are, codes to the mask they are put in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    num_items: u64,
    /// The first levels.
    dense: Dense,
    /// The others.
    sparse: Vec<SparseLevel>,
    /// Codes of a level are below this.
    code_bounds: Vec<u32>,
}

/// Serialised place of an index in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct IndexMeta {
    num_items: u64,
    dense: DenseMeta,
    sparse: Vec<SparseMeta>,
    code_bounds: Vec<u32>,
}

/// Shape of a level: its prefixes, its form and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelShape {
    /// Distinct prefixes that end at this level.
    pub num_prefixes: u64,
    /// Bits one stored code takes; 0 at dense levels.
    pub code_bits: u32,
    /// Form of the level: `dense`, `by_rank`, `listed` or `bits`.
    ///
    /// These are masks and a table of ranks; a code for each item; and a code for each prefix, with
    /// the ranks where prefixes begin as a list or as bits.
    pub form: &'static str,
    /// True if a mask is kept for each possible prefix.
    pub masked: bool,
    /// Bytes of the level, its masks included; the table that dense levels share counts with the
    /// last of them.
    pub bytes: usize,
}

impl Index {
    /// Items in all.
    pub fn num_items(&self) -> u64 {
        self.num_items
    }

    /// Codes in the longest semantic ID.
    pub fn num_levels(&self) -> usize {
        self.code_bounds.len()
    }

    /// Number of first levels that are kept as masks.
    pub fn num_dense_levels(&self) -> usize {
        self.dense.num_levels()
    }

    /// For each level, what its codes are below: its codebook's size, or one more than the largest
    /// code in use.
    pub fn code_bounds(&self) -> &[u32] {
        &self.code_bounds
    }

    /// Distinct prefixes of `level + 1` codes.
    ///
    /// # Panics
    /// When `level` is not below `num_levels`.
    pub fn num_prefixes(&self, level: usize) -> u64 {
        match self.sparse_level(level) {
            Some(sparse) => sparse.num_prefixes(),
            None => self.dense.masks(level).iter().map(|word| u64::from(word.count_ones())).sum(),
        }
    }

    /// Number of different codes that a level uses. Cost: a pass over the level's codes, and a bit
    /// for each code up to the largest; where there are few codes for that, sorting them.
    ///
    /// # Panics
    /// When `level` is not below `num_levels`.
    pub fn num_codes_used(&self, level: usize) -> usize {
        let num_words = self.code_bounds[level].div_ceil(64) as usize;
        // A codebook may have two billion codes of which the level uses one.
        if let Some(sparse) = self.sparse_level(level)
            && sparse.num_stored_codes() < num_words as u64
        {
            let mut codes = Vec::new();
            sparse.for_each_stored_code(|code| codes.push(code));
            codes.sort_unstable();
            codes.dedup();
            return codes.len();
        }
        let mut used = vec![0_u64; num_words];
        let mut mark = |code: u64| {
            if let Some(word) = used.get_mut((code / 64) as usize) {
                *word |= 1 << (code % 64);
            }
        };
        match self.sparse_level(level) {
            Some(sparse) => sparse.for_each_stored_code(mark),
            None => self.dense.for_each_mask_code(level, |code| mark(u64::from(code))),
        }
        used.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The largest code in use at a level. Cost: a pass over the level's codes.
    ///
    /// # Panics
    /// When `level` is not below `num_levels`.
    pub fn largest_code(&self, level: usize) -> Option<u32> {
        match self.sparse_level(level) {
            Some(sparse) => sparse.largest_code(),
            None => self.dense.largest_code(level),
        }
    }

    /// Visits every code that a level uses, some of them several times. Cost: a pass over the
    /// level's codes.
    ///
    /// # Panics
    /// When `level` is not below `num_levels`.
    pub fn for_each_code(&self, level: usize, mut visit: impl FnMut(u32)) {
        match self.sparse_level(level) {
            Some(sparse) => sparse.for_each_stored_code(|code| visit(code as u32)),
            None => self.dense.for_each_mask_code(level, visit),
        }
    }

    /// Measures a level: its prefixes, its form and its bytes.
    ///
    /// # Panics
    /// When `level` is not below `num_levels`.
    pub fn level_shape(&self, level: usize) -> LevelShape {
        let sparse = self.sparse_level(level);
        LevelShape {
            num_prefixes: self.num_prefixes(level),
            code_bits: sparse.map_or(0, SparseLevel::code_bits),
            form: sparse.map_or("dense", SparseLevel::form),
            masked: level < self.dense.num_masked(),
            bytes: sparse.map_or(0, SparseLevel::bytes) + self.dense.bytes_of(level),
        }
    }

    /// Bytes of the index, all levels.
    pub fn bytes(&self) -> usize {
        self.dense.bytes() + self.sparse.iter().map(SparseLevel::bytes).sum::<usize>()
    }

    fn sparse_level(&self, level: usize) -> Option<&SparseLevel> {
        self.sparse.get(level.checked_sub(self.dense.num_levels())?)
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> IndexMeta {
        IndexMeta {
            num_items: self.num_items,
            dense: self.dense.save(out),
            sparse: self.sparse.iter().map(|level| level.save(out)).collect(),
            code_bounds: self.code_bounds.clone(),
        }
    }

    /// Takes an index from a file; checks what can be checked without reading its sections.
    pub(crate) fn load(meta: IndexMeta, sections: &SectionsIn) -> Result<Self, String> {
        let IndexMeta { num_items, dense, sparse, code_bounds } = meta;
        let num_levels = code_bounds.len();
        if num_items > MAX_ITEMS as u64 || num_levels > MAX_LEVELS {
            return Err(format!("it says {num_items} items of {num_levels} levels"));
        }
        if let Some(bound) = code_bounds.iter().find(|&&bound| bound == 0 || bound > MAX_CODE + 1) {
            return Err(format!("a codebook has size {bound}"));
        }
        if num_levels == 0 && num_items > 0 {
            return Err(format!("it says {num_items} items of no levels"));
        }
        let dense = Dense::load(dense, num_items, sections)?;
        if dense.num_levels() + sparse.len() != num_levels {
            return Err(format!("it says {num_levels} levels and has another number"));
        }
        // Masks and codes are then below the same bound, at each level.
        if !code_bounds.starts_with(dense.sizes()) {
            let sizes = dense.sizes();
            return Err(format!("masks of sizes {sizes:?} for codebooks of {code_bounds:?}"));
        }
        let load = |level: SparseMeta| SparseLevel::load(level, num_items, sections);
        let sparse = sparse.into_iter().map(load).collect::<Result<_, String>>()?;
        Ok(Self { num_items, dense, sparse, code_bounds })
    }

    /// Checks everything that decoding relies on. Cost: a walk over all prefixes.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.dense.check(self.num_items)?;
        for (at, level) in self.sparse.iter().enumerate() {
            let number = self.dense.num_levels() + at;
            let wrong = |problem| format!("level {number}: {problem}");
            level.check(self.num_items, self.code_bounds[number]).map_err(wrong)?;
        }
        self.check_order()
    }
}
