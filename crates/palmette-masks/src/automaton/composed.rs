//! Memo of masks by their suffix sets.

use hashbrown::HashMap;

use crate::mask_pool::PoolId;
use crate::mask_pool::RowId;
use crate::residuals::{ResidualId, SuffixSetId};
use crate::tables::table_bytes;

/// Memo of masks by their suffix sets.
///
/// PERF: most new places have a mask that another one has, made of the same: to gather its tokens to find that out took as long as to find
/// what the mask is made of.
#[derive(Debug, Default)]
pub(super) struct ComposedMasks {
    masks: HashMap<SuffixSetId, PoolId>,
    /// Rows by residuals, ascending: the tokens consumed whole by them, where there are any.
    consumed: HashMap<Box<[ResidualId]>, Option<RowId>>,
    bytes: usize,
}

impl ComposedMasks {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        table_bytes::<(SuffixSetId, PoolId)>(self.masks.len())
            + table_bytes::<(Box<[ResidualId]>, RowId)>(self.consumed.len())
            + self.bytes
    }

    /// The mask of a suffix set, if it is known.
    pub(super) fn get(&self, suffix_set: SuffixSetId) -> Option<PoolId> {
        self.masks.get(&suffix_set).copied()
    }

    /// Remembers a mask.
    pub(super) fn insert(&mut self, suffix_set: SuffixSetId, mask: PoolId) {
        self.masks.insert(suffix_set, mask);
    }

    /// The tokens consumed whole by these residuals, if they are known.
    pub(super) fn consumed(&self, residuals: &[ResidualId]) -> Option<Option<RowId>> {
        self.consumed.get(residuals).copied()
    }

    /// Remembers them.
    pub(super) fn insert_consumed(&mut self, residuals: &[ResidualId], row: Option<RowId>) {
        self.bytes += size_of_val(residuals);
        self.consumed.insert(residuals.into(), row);
    }
}
