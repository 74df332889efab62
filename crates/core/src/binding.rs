//! Bindings: the sets that a grammar's slots stand for, in one request, and within open scopes.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{MemberId, MemberSet, MemberSpelling, OpenScope, RemainderCache, ScopeId};

/// A slot of a grammar by its place: a set of texts that the grammar names and does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// The set of each slot. Frozen: a text is written under one binding from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Binding {
    sets: Box<[Arc<dyn MemberSet>]>,
    /// The items behind the sets, where scopes ask for them.
    items: Option<Arc<dyn ScopedSets>>,
    scoped: Arc<Mutex<ScopedMemo>>,
    remainders: Arc<RemainderCache>,
}

/// The items behind a binding's sets, for scopes that are about items: records and groups.
///
/// `within` are the open scopes of the slot's name, outermost first: a distinct scope, a record, or
/// a record in a distinct scope.
pub trait ScopedSets: Send + Sync + Debug {
    /// Number of items that a scope may have from its beginning, all that its groups admit.
    fn capacity(&self, scope: ScopeId) -> u64;

    /// The set of a slot within open scopes.
    fn set(&self, slot: SlotId, within: &[OpenScope]) -> Arc<dyn MemberSet>;

    /// The key of a member in a distinct scope: the number of its item, or its own.
    fn key(&self, scope: ScopeId, slot: SlotId, member: MemberId) -> u64;

    /// The key of the item that a record is about, the last of the open scopes.
    fn record_key(&self, within: &[OpenScope]) -> u64;
}

/// Memo of sets within open scopes.
#[derive(Debug, Default)]
struct ScopedMemo {
    sets: HashMap<ScopedKey, Arc<dyn MemberSet>>,
    /// Members that were written, of all keys together.
    num_written: usize,
}

/// A slot, and the open scopes of its name.
type ScopedKey = (SlotId, Box<[OpenScope]>);

/// At most so many sets within open scopes are remembered; then the memory begins anew.
const MAX_SCOPED: usize = 256;
/// Limit on the members written before those sets together: each takes some hundred bytes.
const MAX_WRITTEN: usize = 1 << 18;

impl SlotId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Binding {
    /// A binding of these sets, one for each slot in their order.
    pub fn new(sets: impl Into<Box<[Arc<dyn MemberSet>]>>) -> Self {
        let (scoped, remainders) = Default::default();
        Self { sets: sets.into(), items: None, scoped, remainders }
    }

    /// This binding with the items behind its sets.
    #[must_use]
    pub fn with_items(self, items: Arc<dyn ScopedSets>) -> Self {
        Self { items: Some(items), scoped: Arc::default(), ..self }
    }

    /// The items behind the sets, where scopes ask for them.
    pub fn items(&self) -> Option<&dyn ScopedSets> {
        self.items.as_deref()
    }

    /// This binding, and sets of the slots that come after its own.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = Arc<dyn MemberSet>>) -> Self {
        let sets = self.sets.iter().cloned().chain(more).collect();
        let (scoped, remainders) = Default::default();
        Self { sets, items: self.items.clone(), scoped, remainders }
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

    /// The set of a slot within the open scopes of its name, outermost first; `spelling` is the
    /// slot's. Without items it is the slot's set less the members that were written.
    ///
    /// # Panics
    /// When the grammar has no such slot.
    pub fn set_within(
        &self,
        slot: SlotId,
        spelling: MemberSpelling,
        within: &[OpenScope],
    ) -> Arc<dyn MemberSet> {
        let is_fresh = |scope: &OpenScope| scope.written.is_empty() && scope.fields.is_empty();
        if self.items.is_none() && within.iter().all(is_fresh) {
            return Arc::clone(&self.sets[slot.index()]);
        }
        let key = (slot, within.into());
        let lock = || self.scoped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().sets.get(&key) {
            return Arc::clone(known);
        }
        // Made without the lock, so that others need not wait; two may make the same.
        let set = match &self.items {
            Some(items) => items.set(slot, within),
            None => {
                let whole = &self.sets[slot.index()];
                let written = within.iter().flat_map(|scope| scope.written.iter());
                let written = written.map(|&member| MemberId(member));
                self.remainders.remainder(slot, (whole, spelling), written)
            }
        };
        let mut memo = lock();
        let num_written = within.iter().map(|scope| scope.written.len()).sum::<usize>();
        if memo.sets.len() >= MAX_SCOPED || memo.num_written + num_written > MAX_WRITTEN {
            *memo = ScopedMemo::default();
        }
        memo.num_written += num_written;
        memo.sets.insert(key, Arc::clone(&set));
        set
    }

    /// The slots whose sets have no member.
    pub fn empty_slots(&self) -> impl Iterator<Item = SlotId> + '_ {
        let slots = (0..).map(SlotId).zip(&self.sets);
        slots.filter(|(_, set)| set.is_empty()).map(|(slot, _)| slot)
    }
}
