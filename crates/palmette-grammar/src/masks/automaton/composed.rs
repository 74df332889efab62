//! Masks by what they are made of.

use super::memo::MaskId;
use super::rows::RowId;
use crate::masks::chunks::SparseChunks;
use crate::masks::interned::GrowingMap;
use crate::masks::pieces::{ComponentsId, PieceId};

/// Masks by their components.
///
/// PERF: most new places have a mask that another one has, made of the same: to gather its tokens to find that out took as long as to find
/// the components.
#[derive(Debug, Default)]
pub(super) struct ComposedMasks {
    masks: SparseChunks<Option<MaskId>>,
    /// By pieces, ascending, the tokens that stay within them, where there are any.
    stays: GrowingMap<Box<[PieceId]>, Option<RowId>>,
    bytes: usize,
}

impl ComposedMasks {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.masks.memory_bytes() + self.stays.memory_bytes() + self.bytes
    }

    /// The mask of these components, if it is known.
    pub(super) fn get(&self, components: ComponentsId) -> Option<MaskId> {
        *self.masks.get(components.index())?
    }

    /// Remembers a mask.
    pub(super) fn insert(&mut self, components: ComponentsId, mask: MaskId) {
        *self.masks.entry(components.index()) = Some(mask);
    }

    /// The tokens that stay within these pieces, if they are known.
    pub(super) fn stay(&self, pieces: &[PieceId]) -> Option<Option<RowId>> {
        self.stays.get(pieces).copied()
    }

    /// Remembers them.
    pub(super) fn insert_stay(&mut self, pieces: &[PieceId], row: Option<RowId>) {
        self.bytes += size_of_val(pieces);
        self.stays.insert(pieces.into(), row);
    }
}
