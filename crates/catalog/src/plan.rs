//! Plans: the size of a catalog before it is built.

use serde::Serialize;

use crate::ids::Ids;
use crate::index::{IndexPlan, MAX_CODE, MAX_ITEMS, MAX_LEVELS, bits_for};

/// Known figures of a catalog that does not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Items in all.
    pub num_items: u64,
    /// Size of each level's codebook.
    pub codes_per_level: Vec<u32>,
    /// Dense levels, as in [`BuildOptions`](crate::BuildOptions).
    pub dense_levels: Option<usize>,
    /// Bytes of an item's id.
    pub id_bytes: u64,
    /// Bytes of an item's attributes: 1 to 4 each, and their distinct values.
    pub attribute_bytes: u64,
}

/// The bytes a catalog is expected to take, in memory and in its file.
///
/// The index is worked out as STATIC's authors do for theirs (arXiv 2602.22647, appendix B): from
/// how many prefixes of each length there can be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CatalogPlan {
    /// The index, where codes are drawn evenly.
    pub index: IndexPlan,
    /// Bytes of ids and their look-up.
    pub id_bytes: u64,
    /// Bytes of attributes.
    pub attribute_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
    /// Bytes that a build takes at its peak: the rows being sorted, and what was taken and made of
    /// ids and attributes.
    pub build_peak_bytes: u64,
    /// Upper bound of what STATIC's arrays take: a bit and 4 bytes for each possible prefix of its
    /// dense levels, and 12 bytes for each prefix of the others.
    pub static_bytes: u64,
}

/// Numbers of which no catalog can be made; the message names the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

/// Bytes that all ids may have together, and that attributes are planned for: a terabyte.
const MAX_TEXT_BYTES: u64 = 1 << 40;

impl CatalogPlan {
    /// Works out what a catalog will take.
    ///
    /// # Errors
    /// When there are more items, levels or bytes of ids than a catalog holds, a codebook is empty
    /// or too large, or the dense levels asked for cannot be.
    pub fn new(options: &PlanOptions) -> Result<Self, PlanError> {
        let PlanOptions { num_items, codes_per_level: sizes, .. } = options;
        let num_items = *num_items;
        if num_items > MAX_ITEMS as u64 {
            return Err(PlanError(format!(
                "{num_items} items are more than the {MAX_ITEMS} that one catalog holds"
            )));
        }
        if sizes.is_empty() || sizes.len() > MAX_LEVELS {
            let levels = sizes.len();
            return Err(PlanError(format!(
                "{levels} levels; a semantic ID has 1 to {MAX_LEVELS} codes"
            )));
        }
        if let Some(size) = sizes.iter().find(|&&size| size == 0 || size > MAX_CODE + 1) {
            let most = MAX_CODE + 1;
            return Err(PlanError(format!(
                "a codebook has size {size}; sizes go from 1 to {most}"
            )));
        }
        let index = IndexPlan::new(num_items, sizes, options.dense_levels)
            .map_err(|e| PlanError(e.to_string()))?;

        let in_all = |what: &str, each: u64| {
            let total = num_items.checked_mul(each).filter(|&total| total <= MAX_TEXT_BYTES);
            total.ok_or_else(|| {
                PlanError(format!(
                    "{num_items} items with {what} of {each} bytes; one catalog holds at most \
                     {MAX_TEXT_BYTES} bytes of them"
                ))
            })
        };
        let id_text = in_all("ids", options.id_bytes)?;
        let id_bytes = Ids::bytes_for(num_items, id_text);
        let attribute_bytes = in_all("attributes", options.attribute_bytes)?;
        let code_bits: u64 =
            sizes.iter().map(|&size| u64::from(bits_for(u64::from(size) - 1))).sum();
        let row_bytes = 8 * (code_bits + u64::from(bits_for(num_items))).div_ceil(64);
        // Rows, the codes they share with the one before, and ids and attributes as they came.
        let taken = num_items * (row_bytes + 1) + id_text + num_items * 10 + attribute_bytes;
        let total_bytes = index.bytes + id_bytes + attribute_bytes;
        Ok(Self {
            static_bytes: static_bytes(num_items, sizes, index.dense_levels),
            build_peak_bytes: taken + total_bytes,
            index,
            id_bytes,
            attribute_bytes,
            total_bytes,
        })
    }
}

fn static_bytes(num_items: u64, sizes: &[u32], dense_levels: usize) -> u64 {
    let mut prefixes = 1.0_f64;
    let mut bytes = 0.0;
    for (level, &size) in sizes.iter().enumerate() {
        prefixes *= f64::from(size);
        if level + 1 == dense_levels {
            bytes += prefixes / 8.0 + prefixes * 4.0;
        } else if level >= dense_levels {
            bytes += 12.0 * prefixes.min(num_items as f64);
        }
    }
    bytes as u64
}
