//! Items behind member sets by definition: plain loops over a small table.

use std::collections::BTreeMap;
use std::sync::Arc;

use palmette_core::{
    Binding, MemberId, MemberSet, MemberSpelling, OpenScope, ScopeId, ScopedSets, SlotId,
};

use crate::member_sets::NaiveSet;

/// An item: texts by field.
pub type NaiveItem = BTreeMap<String, String>;

/// Items of one set, with the slots and scopes of a grammar over it.
#[derive(Clone, Debug, Default)]
pub struct NaiveItems {
    /// The items; their numbers are their keys.
    pub items: Vec<NaiveItem>,
    /// Fields of slots, `id` that of the key, and spellings.
    pub slots: Vec<(String, MemberSpelling)>,
    /// The scopes.
    pub scopes: Vec<NaiveScope>,
}

/// A scope over one set.
#[derive(Clone, Debug, Default)]
pub struct NaiveScope {
    /// Slots of it, those of its records where it has some.
    pub slots: Vec<usize>,
    /// True where members in it are of one item: a record, or a distinct scope of records.
    pub has_records: bool,
    /// The most items with equal values of an attribute.
    pub at_most: Option<(String, usize)>,
}

impl NaiveItems {
    /// The binding of all slots.
    pub fn binding(self) -> Binding {
        let sets: Vec<Arc<dyn MemberSet>> =
            (0..self.slots.len()).map(|slot| self.values(slot, |_| true)).collect();
        Binding::new(sets).with_items(Arc::new(self))
    }

    /// The values of a slot's field that some items have, each numbered by the first item with it.
    fn values(&self, slot: usize, of: impl Fn(usize) -> bool) -> Arc<dyn MemberSet> {
        let (field, spelling) = &self.slots[slot];
        let mut values: BTreeMap<&str, u64> = BTreeMap::new();
        for at in (0..self.items.len()).filter(|at| of(*at)) {
            if let Some(value) = self.items[at].get(field) {
                values.insert(value, self.number(field, value));
            }
        }
        let values = values.into_iter().map(|(text, number)| (number, text.as_bytes().to_vec()));
        Arc::new(match spelling {
            MemberSpelling::Raw => NaiveSet::raw(values),
            MemberSpelling::JsonString => NaiveSet::json_strings(values),
        })
    }

    fn number(&self, field: &str, value: &str) -> u64 {
        let has = |item: &NaiveItem| item.get(field).is_some_and(|own| own == value);
        self.items.iter().position(has).expect("an item has it") as u64
    }

    /// True for an item that has all fields of a scope.
    fn is_eligible(&self, scope: &NaiveScope, item: usize) -> bool {
        scope.slots.iter().all(|slot| self.items[item].contains_key(&self.slots[*slot].0))
    }

    /// The items that may still be written in open scopes of the set.
    pub fn candidates(&self, within: &[OpenScope]) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.items.len()).collect();
        for open in within {
            let scope = &self.scopes[open.scope.index()];
            left.retain(|item| self.is_eligible(scope, *item));
            if scope.has_records || self.slots[scope.slots[0]].0 == "id" {
                left.retain(|item| !open.written.contains(&(*item as u64)));
            }
            if let Some((attribute, most)) = &scope.at_most {
                let group = |item: usize| self.items[item].get(attribute);
                left.retain(|item| {
                    let own = group(*item);
                    let same = open.written.iter().filter(|other| group(**other as usize) == own);
                    own.is_none() || same.count() < *most
                });
            }
            for (slot, member) in open.fields.iter() {
                let field = &self.slots[slot.index()].0;
                let value = &self.items[member.0 as usize][field];
                left.retain(|item| self.items[*item].get(field) == Some(value));
            }
        }
        left
    }
}

impl ScopedSets for NaiveItems {
    fn capacity(&self, scope: ScopeId) -> u64 {
        let scope = &self.scopes[scope.index()];
        let eligible: Vec<usize> =
            (0..self.items.len()).filter(|item| self.is_eligible(scope, *item)).collect();
        if !scope.has_records && self.slots[scope.slots[0]].0 != "id" {
            return self.values(scope.slots[0], |_| true).len();
        }
        let Some((attribute, most)) = &scope.at_most else { return eligible.len() as u64 };
        let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
        let mut without = 0;
        for item in eligible {
            match self.items[item].get(attribute) {
                None => without += 1,
                Some(group) => *groups.entry(group).or_default() += 1,
            }
        }
        (groups.into_values().map(|count| count.min(*most)).sum::<usize>() + without) as u64
    }

    fn set(&self, slot: SlotId, within: &[OpenScope]) -> Arc<dyn MemberSet> {
        let candidates = self.candidates(within);
        let scope = &self.scopes[within[0].scope.index()];
        if !scope.has_records && self.slots[slot.index()].0 != "id" {
            let field = &self.slots[slot.index()].0;
            let written = |item: usize| {
                let number = self.number(field, &self.items[item][field]);
                within[0].written.contains(&number)
            };
            return self.values(slot.index(), |item| candidates.contains(&item) && !written(item));
        }
        self.values(slot.index(), |item| candidates.contains(&item))
    }

    fn key(&self, _: ScopeId, _: SlotId, member: MemberId) -> u64 {
        member.0
    }

    fn record_key(&self, within: &[OpenScope]) -> u64 {
        self.candidates(within)[0] as u64
    }
}
