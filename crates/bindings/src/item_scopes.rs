//! Scopes of a grammar over the items of catalogs: what members written so far leave to write.
//!
//! A distinct scope of one field needs no items: what was written is left out of its set. Records,
//! and bounds on groups, are about items: a scope has its *eligible* ones, those that match the
//! filters and have a member of each field that is written there; a record narrows them by each of
//! its members.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use palmette_catalog_live::ViewItems;
use palmette_catalog_members::{FieldItems, FieldSet, ID_FIELD, ItemGroups};
use palmette_core::{
    MemberId, MemberSet, MemberSpelling, OpenScope, RemainderCache, ScopeId, ScopedSets, SlotId,
};

use crate::numbered_part::NumberedPart;

/// The scopes of one grammar under one binding.
#[derive(Debug)]
pub(crate) struct ItemScopes {
    pub(crate) slots: Vec<ScopedSlot>,
    pub(crate) scopes: Vec<ScopeItems>,
    pub(crate) remainders: RemainderCache,
}

/// A slot, as scopes ask for it.
#[derive(Debug)]
pub(crate) struct ScopedSlot {
    pub(crate) set: Arc<dyn MemberSet>,
    /// The set as one of a catalog's field, where it is one.
    pub(crate) field_set: Option<Arc<FieldSet>>,
    pub(crate) field: String,
    pub(crate) spelling: MemberSpelling,
}

/// Kind of a scope, with what it has from its beginning on.
#[derive(Debug)]
pub(crate) enum ScopeItems {
    /// Members of one field, which are told apart by themselves.
    Members(SlotId),
    /// Items.
    Items(Box<EligibleItems>),
}

/// The items of a scope.
#[derive(Debug)]
pub(crate) struct EligibleItems {
    items: FieldItems,
    eligible: ViewItems,
    groups: Option<GroupLimits>,
    /// Number of items that may be written in all, as groups admit.
    capacity: u64,
}

/// A bound on the items of each group.
#[derive(Debug)]
pub(crate) struct GroupLimits {
    groups: ItemGroups,
    most: u64,
    /// Items without those of some groups, by these groups.
    without: Mutex<HashMap<Box<[u32]>, ViewItems>>,
}

/// At most so many sets of full groups are remembered; then the memory begins anew.
const MAX_FULL: usize = 64;

impl GroupLimits {
    pub(crate) fn new(groups: ItemGroups, most: u32) -> Self {
        Self { groups, most: most.into(), without: Mutex::default() }
    }

    /// The groups that have all the items that they may.
    fn full(&self, items: &FieldItems, written: &[u64]) -> Vec<u32> {
        let mut sizes: HashMap<u32, u64> = HashMap::new();
        for group in written.iter().filter_map(|&number| items.group_of(&self.groups, number)) {
            *sizes.entry(group).or_default() += 1;
        }
        let full = sizes.into_iter().filter(|(_, size)| *size >= self.most);
        let mut full: Vec<u32> = full.map(|(group, _)| group).collect();
        full.sort_unstable();
        full
    }
}

impl EligibleItems {
    pub(crate) fn new(items: FieldItems, eligible: ViewItems, groups: Option<GroupLimits>) -> Self {
        let capacity = match &groups {
            None => eligible.len(),
            Some(limits) => {
                let (sizes, others) = items.group_sizes(&limits.groups, &eligible);
                others + sizes.values().map(|&size| size.min(limits.most)).sum::<u64>()
            }
        };
        Self { items, eligible, groups, capacity }
    }

    /// The items that are left where some were written.
    fn left(&self, written: &[u64]) -> ViewItems {
        let Some(limits) = &self.groups else {
            return match written {
                [] => self.eligible.clone(),
                written => self.items.without(&self.eligible, written.iter().copied()),
            };
        };
        let full: Box<[u32]> = limits.full(&self.items, written).into();
        let lock = || limits.without.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&full).cloned();
        let left = known.unwrap_or_else(|| {
            let made = self.items.without_groups(&limits.groups, &self.eligible, &full);
            let mut memo = lock();
            if memo.len() >= MAX_FULL {
                memo.clear();
            }
            memo.entry(full).or_insert(made).clone()
        });
        self.items.without(&left, written.iter().copied())
    }
}

impl ItemScopes {
    fn scope(&self, open: &OpenScope) -> &ScopeItems {
        &self.scopes[open.scope.index()]
    }

    /// The items that may be written in open scopes of one set.
    fn candidates(&self, within: &[OpenScope]) -> Option<(&FieldItems, ViewItems)> {
        let last = within.last()?;
        let ScopeItems::Items(own) = self.scope(last) else { return None };
        let mut candidates = own.left(&last.written);
        if let Some((outer, _)) = within.split_first().filter(|(_, inner)| !inner.is_empty())
            && let ScopeItems::Items(outer_items) = self.scope(outer)
        {
            // The scope's items are those of its records.
            candidates = outer_items.left(&outer.written);
        }
        let mut fields: Vec<_> = last.fields.iter().collect();
        // An id leaves one item, of which the others are then asked.
        fields.sort_by_key(|(slot, _)| self.slots[slot.index()].field != ID_FIELD);
        for &&(slot, member) in &fields {
            let (slot, mut text) = (&self.slots[slot.index()], Vec::new());
            slot.set.text(member, &mut text);
            let text = String::from_utf8_lossy(&text);
            candidates = own
                .items
                .with_member(&slot.field, &text, &candidates)
                .expect("a field that was indexed when it was bound");
        }
        Some((&own.items, candidates))
    }

    /// The set of a slot without members that were written.
    fn remaining(
        &self,
        slot: SlotId,
        written: impl Iterator<Item = MemberId>,
    ) -> Arc<dyn MemberSet> {
        let ScopedSlot { set, spelling, .. } = &self.slots[slot.index()];
        self.remainders.remainder(slot, (set, *spelling), written)
    }
}

impl ScopedSets for ItemScopes {
    fn capacity(&self, scope: ScopeId) -> u64 {
        match &self.scopes[scope.index()] {
            ScopeItems::Members(slot) => self.slots[slot.index()].set.len(),
            ScopeItems::Items(items) => items.capacity,
        }
    }

    fn set(&self, slot: SlotId, within: &[OpenScope]) -> Arc<dyn MemberSet> {
        let ScopedSlot { set, field, spelling, .. } = &self.slots[slot.index()];
        let Some(last) = within.last() else { return Arc::clone(set) };
        if let ScopeItems::Members(_) = self.scope(last) {
            return self.remaining(slot, last.written.iter().map(|&member| MemberId(member)));
        }
        let Some((items, candidates)) = self.candidates(within) else { return Arc::clone(set) };
        let values = items.set(field, &candidates, *spelling);
        let values = values.expect("a field that was indexed when it was bound");
        match &self.slots[slot.index()].field_set {
            Some(whole) if !values.is_numbered_as(whole) => {
                let (part, whole) = (Arc::new(values), Arc::clone(whole));
                Arc::new(NumberedPart { part, whole })
            }
            _ => Arc::new(values),
        }
    }

    fn key(&self, scope: ScopeId, slot: SlotId, member: MemberId) -> u64 {
        let set = self.slots[slot.index()].field_set.as_ref();
        match &self.scopes[scope.index()] {
            ScopeItems::Members(_) => member.0,
            ScopeItems::Items(_) => set.and_then(|set| set.item(member)).unwrap_or(member.0),
        }
    }

    fn record_key(&self, within: &[OpenScope]) -> u64 {
        let candidates = self.candidates(within);
        let only = candidates.and_then(|(items, left)| items.numbers(&left).next());
        only.unwrap_or(u64::MAX)
    }
}
