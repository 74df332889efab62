//! Bindings: the sets that a grammar's slots stand for, in one request.

use std::sync::Arc;

use crate::MemberSet;

/// A slot of a grammar by its place: a set of texts that the grammar names and does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// The set of each slot. Frozen: a text is written under one binding from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Binding {
    sets: Box<[Arc<dyn MemberSet>]>,
}

impl SlotId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Binding {
    /// A binding of these sets, one for each slot in their order.
    pub fn new(sets: impl Into<Box<[Arc<dyn MemberSet>]>>) -> Self {
        Self { sets: sets.into() }
    }

    /// This binding, and sets of the slots that come after its own.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = Arc<dyn MemberSet>>) -> Self {
        Self { sets: self.sets.iter().cloned().chain(more).collect() }
    }

    /// Number of slots that are bound.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// True where no slot is bound.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// The set of a slot.
    ///
    /// # Panics
    /// When the grammar has no such slot.
    pub fn set(&self, slot: SlotId) -> &dyn MemberSet {
        &*self.sets[slot.index()]
    }

    /// The set of a slot, to be kept.
    ///
    /// # Panics
    /// When the grammar has no such slot.
    pub fn shared_set(&self, slot: SlotId) -> Arc<dyn MemberSet> {
        Arc::clone(&self.sets[slot.index()])
    }

    /// The sets, by slot.
    pub fn sets(&self) -> impl Iterator<Item = &dyn MemberSet> {
        self.sets.iter().map(|set| &**set)
    }

    /// The slots whose sets have no member.
    pub fn empty_slots(&self) -> impl Iterator<Item = SlotId> + '_ {
        let slots = (0..).map(SlotId).zip(&self.sets);
        slots.filter(|(_, set)| set.is_empty()).map(|(slot, _)| slot)
    }
}
