//! Masks by what they are made of.

use super::memo::MaskId;
use super::rows::RowId;
use crate::masks::interned::GrowingMap;
use crate::masks::pieces::{Component, PieceId};

/// Masks by their components.
///
/// PERF: most new places have a mask that another one has, made of the same: to gather its tokens to find that out took as long as to find
/// the components.
#[derive(Debug, Default)]
pub(super) struct ComposedMasks {
    masks: GrowingMap<Box<[Component]>, MaskId>,
    /// By pieces, ascending, the tokens that stay within them, where there are any.
    stays: GrowingMap<Box<[PieceId]>, Option<RowId>>,
    bytes: usize,
}

impl ComposedMasks {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.masks.memory_bytes() + self.stays.memory_bytes() + self.bytes
    }

    /// The mask of these components, if it is known; they are ascending.
    pub(super) fn get(&self, components: &[Component]) -> Option<MaskId> {
        self.masks.get(components).copied()
    }

    /// Remembers a mask.
    pub(super) fn insert(&mut self, components: &[Component], mask: MaskId) {
        self.bytes += size_of_val(components);
        self.masks.insert(components.into(), mask);
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
