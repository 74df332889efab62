//! Masks by what they are made of.

use hashbrown::HashMap;

use super::memo::MaskId;
use super::rows::RowId;
use crate::masks::chunks::Chunks;
use crate::masks::hash_index::HashIndex;
use crate::masks::pieces::{Component, PieceId};

/// Masks by their components.
///
/// PERF: most new places have a mask that another one has, made of the same: to gather its tokens to find that out took as long as to find
/// the components.
#[derive(Debug, Default)]
pub(super) struct ComposedMasks {
    masks: Chunks<(Box<[Component]>, MaskId)>,
    numbers: HashIndex,
    /// By pieces, ascending, the tokens that stay within them, where there are any.
    stays: HashMap<Box<[PieceId]>, Option<RowId>>,
    bytes: usize,
}

impl ComposedMasks {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.numbers.memory_bytes() + self.bytes
    }

    /// The mask of these components, if it is known; they are ascending.
    pub(super) fn get(&self, components: &[Component]) -> Option<MaskId> {
        let same = |number: u32| *self.masks[number as usize].0 == *components;
        let number = self.numbers.find(Component::hash_of(components), same)?;
        Some(self.masks[number as usize].1)
    }

    /// Remembers a mask that is not there.
    pub(super) fn insert(&mut self, components: &[Component], mask: MaskId) {
        self.numbers.insert(Component::hash_of(components), self.masks.len() as u32);
        self.masks.push((components.into(), mask));
        self.bytes += size_of::<(Box<[Component]>, MaskId)>() + size_of_val(components);
    }

    /// The tokens that stay within these pieces, if they are known.
    pub(super) fn stay(&self, pieces: &[PieceId]) -> Option<Option<RowId>> {
        self.stays.get(pieces).copied()
    }

    /// Remembers them.
    pub(super) fn insert_stay(&mut self, pieces: &[PieceId], row: Option<RowId>) {
        self.bytes += size_of::<(Box<[PieceId]>, Option<RowId>)>() + size_of_val(pieces);
        self.stays.insert(pieces.into(), row);
    }
}
