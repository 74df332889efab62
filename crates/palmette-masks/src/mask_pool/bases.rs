//! Base rows of a mask pool, and the choice among those of use last.

use std::sync::Arc;

use hashbrown::HashMap;

use super::mask_row::MaskRow;

/// A number into [`Bases`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BaseId(u32);

/// Base rows: the words of whole masks, from which others differ in few.
#[derive(Debug, Default)]
pub(super) struct Bases {
    bases: Vec<Arc<MaskRow>>,
    /// By where they are in memory.
    ids: HashMap<usize, BaseId>,
    /// By bases, ascending: their union.
    unions: HashMap<Box<[BaseId]>, BaseId>,
    /// The one that was last of use first.
    recent: Vec<BaseId>,
    /// Of those that are not shared with others than masks.
    bytes: usize,
}

/// So many bases, those last of use, are looked at for one that a new mask is nearly.
const MAX_RECENT: usize = 8;

impl Bases {
    /// The words of a base.
    pub(super) fn words(&self, id: BaseId) -> &[u32] {
        self.bases[id.0 as usize].words()
    }

    /// The memory of those that are not shared with others than masks.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The base of a row that is shared.
    pub(super) fn of_shared(&mut self, row: &Arc<MaskRow>) -> BaseId {
        let next = BaseId(self.bases.len() as u32);
        // It is kept from now on, so no other comes to lie there.
        let id = *self.ids.entry(Arc::as_ptr(row).addr()).or_insert(next);
        if id == next {
            self.bases.push(Arc::clone(row));
        }
        id
    }

    /// A base that only masks have.
    pub(super) fn add(&mut self, words: &[u32]) -> BaseId {
        let row = MaskRow::new(words.into());
        self.bytes += row.memory_bytes();
        self.of_shared(&Arc::new(row))
    }

    /// The union of shared rows, `None` where there are none; `scratch` is for a row.
    pub(super) fn of_union<'r>(
        &mut self,
        rows: impl Iterator<Item = &'r Arc<MaskRow>>,
        scratch: &mut Vec<u32>,
    ) -> Option<BaseId> {
        let mut ids: Vec<BaseId> = rows.map(|row| self.of_shared(row)).collect();
        ids.sort_unstable();
        match *ids {
            [] => None,
            [only] => Some(only),
            [first, ref others @ ..] => {
                if let Some(&known) = self.unions.get(&*ids) {
                    return Some(known);
                }
                scratch.clear();
                scratch.extend_from_slice(self.words(first));
                for &other in others {
                    scratch.iter_mut().zip(self.words(other)).for_each(|(word, own)| *word |= own);
                }
                let union = self.add(scratch);
                self.unions.insert(ids.into(), union);
                Some(union)
            }
        }
    }

    /// Bases that were of use, the last one first.
    pub(super) fn recent(&self) -> &[BaseId] {
        &self.recent
    }

    /// Remembers that a base was of use.
    pub(super) fn used(&mut self, id: BaseId) {
        match self.recent.iter().position(|&other| other == id) {
            Some(at) => self.recent[..=at].rotate_right(1),
            None => {
                self.recent.insert(0, id);
                self.recent.truncate(MAX_RECENT);
            }
        }
    }
}
