//! Plans: the size of an index before it is built.

use serde::Serialize;

use super::build::{cheap_dense_levels, default_dense_bytes, masked_levels};
use super::dense::Dense;
use super::packed_ints::{bits_for, num_words};
use super::sparse::SparseLevel;
use super::starts::Starts;
use super::{DenseError, too_large};

/// The bytes an index is expected to take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IndexPlan {
    /// Levels with masks and a table of ranks.
    pub dense_levels: usize,
    /// Each level.
    pub levels: Vec<LevelPlan>,
    /// All levels, where codes are drawn evenly.
    pub bytes: u64,
    /// Bound on the bytes with IDs of equal length, however their codes are spread.
    pub most_bytes: u64,
}

/// One level of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelPlan {
    /// Distinct prefixes that end at this level.
    pub num_prefixes: f64,
    /// Mean number of codes that follow a prefix of the level above.
    pub branching: f64,
    /// Form in which the level will be kept: see [`LevelShape`](super::LevelShape).
    pub form: &'static str,
    /// Bytes of the level.
    pub bytes: u64,
}

impl IndexPlan {
    /// Sizes and items are within the limits.
    pub(crate) fn new(
        num_items: u64,
        sizes: &[u32],
        dense_levels: Option<usize>,
    ) -> Result<Self, DenseError> {
        let most = default_dense_bytes(num_items);
        let dense_levels = match dense_levels {
            Some(asked) if asked > sizes.len() => {
                return Err(DenseError::TooDeep { asked, shortest: sizes.len() });
            }
            Some(asked) if Dense::bytes_for(&sizes[..asked], num_items).is_none() => {
                return Err(too_large(&sizes[..asked]));
            }
            Some(asked) => asked,
            None => cheap_dense_levels(sizes, num_items, most),
        };
        let masked = masked_levels(sizes, dense_levels, most);
        let mut plan = Self { dense_levels, levels: Vec::new(), bytes: 0, most_bytes: 0 };
        let (mut possible, mut above) = (1.0_f64, 1.0_f64);
        for (level, &size) in sizes.iter().enumerate() {
            let mask_bytes = match level < masked {
                true => (possible * f64::from(4 * size.div_ceil(32))) as u64,
                false => 0,
            };
            possible *= f64::from(size);
            let num_prefixes = distinct(num_items, possible);
            let (form, stored, most) = if level < dense_levels {
                let table = level + 1 == dense_levels;
                let words = num_words(bits_for(num_items), possible as u64 + 1).unwrap_or(0);
                let table_bytes = if table { 8 * words } else { 0 };
                ("dense", table_bytes, table_bytes)
            } else {
                sparse(num_items, num_prefixes, size)
            };
            plan.bytes += stored + mask_bytes;
            plan.most_bytes += most + mask_bytes;
            let branching = num_prefixes / above.max(1.0);
            let bytes = stored + mask_bytes;
            plan.levels.push(LevelPlan { num_prefixes, branching, form, bytes });
            above = num_prefixes;
        }
        Ok(plan)
    }
}

/// Form and bytes of a level with this many prefixes, and what it takes at most with any number.
fn sparse(num_items: u64, num_prefixes: f64, size: u32) -> (&'static str, u64, u64) {
    let bits = bits_for(u64::from(size) - 1);
    let prefixes = num_prefixes.round() as u64;
    let codes = |len: u64| 8 * num_words(bits, len).unwrap_or(u64::MAX / 16);
    let starts = Starts::bytes_for(num_items, prefixes);
    let most = codes(num_items);
    if SparseLevel::is_by_rank(bits, num_items, prefixes) {
        return ("by_rank", most, most);
    }
    let listed = starts < super::rank_bits::RankBits::bytes_for(num_items);
    let form = if listed { "listed" } else { "bits" };
    (form, codes(prefixes) + starts, most)
}

/// Expected number of `possible` prefixes that `num_items` items have, each drawn evenly.
fn distinct(num_items: u64, possible: f64) -> f64 {
    let items = num_items as f64;
    // 1 - (1 - 1/p)^n, without losing the small difference where p is large.
    possible * -(items * (-1.0 / possible).ln_1p()).exp_m1()
}
