//! From semantic IDs in any order to an index.

use rayon::prelude::*;

use super::Index;
use super::dense::Dense;
use super::rows::{CodeRows, SortedRows};
use super::sparse::SparseLevel;

/// Form of an index: the dense levels and the sizes of codebooks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexOptions {
    /// Number of first levels to keep as masks and a table. Without it, as many as `dense_bytes`
    /// are enough for.
    pub dense_levels: Option<usize>,
    /// Bytes of the masks and the table, and again of the masks of one level more; without it, a
    /// byte an item, or 4 KiB.
    pub dense_bytes: Option<u64>,
    /// Size of each level's codebook, at least the largest code and 1; without it, as used.
    pub codes_per_level: Option<Vec<u32>>,
}

/// Dense levels that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DenseError {
    /// Some ID ends within them.
    #[error(
        "{asked} dense levels are asked for, but the shortest semantic ID has {shortest} codes; \
         ask for at most {shortest}"
    )]
    TooDeep {
        /// Levels asked for.
        asked: usize,
        /// Codes of the shortest ID.
        shortest: usize,
    },
    /// Their prefixes cannot be numbered.
    #[error(
        "{asked} dense levels would have a table entry for each of {keys} prefixes, over the limit \
         of 4294967295; ask for fewer"
    )]
    TooLarge {
        /// Levels asked for.
        asked: usize,
        /// Possible prefixes, rounded.
        keys: String,
    },
}

impl Index {
    /// Sorts and indexes semantic IDs.
    ///
    /// Cost: one parallel sort and a pass for each level; memory for the rows and the index, and a
    /// byte a row.
    ///
    /// # Errors
    /// When the dense levels asked for cannot be.
    pub fn build(rows: CodeRows, options: &IndexOptions) -> Result<Self, DenseError> {
        Self::of_sorted(&rows.sorted(false), options)
    }

    pub(crate) fn of_sorted(
        sorted: &SortedRows,
        options: &IndexOptions,
    ) -> Result<Self, DenseError> {
        let shared = sorted.shared();
        let num_items = sorted.len() as u64;
        let bounds = code_bounds(sorted, options.codes_per_level.as_deref());
        let dense_levels = dense_levels(sorted, &bounds, options)?;
        let most = options.dense_bytes.unwrap_or_else(|| default_dense_bytes(num_items));
        let masked = masked_levels(&bounds, dense_levels, most);
        let dense = Dense::new(&bounds[..masked], dense_levels, sorted, &shared);
        let sparse = (dense_levels..sorted.num_levels())
            .into_par_iter()
            .map(|level| SparseLevel::new(level, bounds[level], sorted, &shared))
            .collect();
        Ok(Self { num_items, dense, sparse, code_bounds: bounds })
    }
}

/// One more than the largest code of each level, or the codebook sizes.
fn code_bounds(sorted: &SortedRows, sizes: Option<&[u32]>) -> Vec<u32> {
    let used = |level: usize| {
        let largest = sorted.max_code(level);
        largest.map_or(1, |code| code + 1)
    };
    let given = |level: usize| sizes.and_then(|sizes| sizes.get(level).copied());
    (0..sorted.num_levels()).map(|level| given(level).unwrap_or_else(|| used(level))).collect()
}

/// The number of dense levels asked for, if that can be, or one that costs little.
fn dense_levels(
    sorted: &SortedRows,
    bounds: &[u32],
    options: &IndexOptions,
) -> Result<usize, DenseError> {
    let num_items = sorted.len() as u64;
    let shortest = match sorted.is_ragged() {
        false => sorted.num_levels(),
        true => sorted.iter().map(|row| row.len()).min().unwrap_or(0),
    };
    match options.dense_levels {
        Some(asked) if asked > shortest => Err(DenseError::TooDeep { asked, shortest }),
        Some(asked) if Dense::bytes_for(&bounds[..asked], num_items).is_none() => {
            Err(too_large(&bounds[..asked]))
        }
        Some(asked) => Ok(asked),
        None => {
            let most = options.dense_bytes.unwrap_or_else(|| default_dense_bytes(num_items));
            Ok(cheap_dense_levels(&bounds[..shortest], num_items, most))
        }
    }
}

/// Dense levels of these sizes have too many prefixes.
pub(crate) fn too_large(sizes: &[u32]) -> DenseError {
    let keys: f64 = sizes.iter().map(|&size| f64::from(size)).product();
    DenseError::TooLarge { asked: sizes.len(), keys: format!("{keys:.1e}") }
}

/// A byte an item, or 4 KiB.
pub(crate) fn default_dense_bytes(num_items: u64) -> u64 {
    const MIN_BYTES: u64 = 4096;
    num_items.max(MIN_BYTES)
}

/// Largest number of dense levels that cost at most `most` bytes.
pub(crate) fn cheap_dense_levels(sizes: &[u32], num_items: u64, most: u64) -> usize {
    let cheap = |&levels: &usize| {
        Dense::bytes_for(&sizes[..levels], num_items).is_some_and(|bytes| bytes <= most)
    };
    (0..=sizes.len()).take_while(cheap).last().unwrap_or(0)
}

/// Number of levels with masks: one more than is dense, where that is cheap.
pub(crate) fn masked_levels(sizes: &[u32], dense_levels: usize, most: u64) -> usize {
    let Some(next) = sizes.get(dense_levels) else { return dense_levels };
    let keys: u64 = sizes[..dense_levels].iter().map(|&size| u64::from(size)).product();
    let bytes = keys.saturating_mul(4 * u64::from(next.div_ceil(32)));
    dense_levels + usize::from(bytes <= most)
}
