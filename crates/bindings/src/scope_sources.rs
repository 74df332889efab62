//! Sources of scopes: the items of a grammar's records and groups, of what a request binds.

use std::sync::Arc;

use palmette_catalog::Filter;
use palmette_catalog_live::ViewItems;
use palmette_catalog_members::{CatalogFields, FieldItems, ID_FIELD};
use palmette_core::{RemainderCache, ScopedSets, SlotId};
use palmette_grammar::{MemberScope, Recognizer, ScopeKind, Slot, SlotKind};

use crate::bound_sets::BoundSet;
use crate::error::BindingError;
use crate::item_scopes::{EligibleItems, GroupLimits, ItemScopes, ScopeItems, ScopedSlot};

/// The catalog that a name is bound to, and the request's filter.
pub(crate) type CatalogOfName<'a> = (&'a CatalogFields, Option<&'a Filter>);

/// The items behind the scopes of a grammar, where some are about items; else what was written is
/// left out of its set, which takes none. `sets` are those of the grammar's open slots.
///
/// # Errors
/// When a scope is about items, and its name is not bound to a catalog that has what it needs.
pub(crate) fn scoped_items<'a>(
    recognizer: &Recognizer,
    sets: &[BoundSet],
    catalog: impl Fn(&str) -> Option<CatalogOfName<'a>>,
) -> Result<Option<Arc<dyn ScopedSets>>, BindingError> {
    let scopes = recognizer.source().scopes();
    let contents: Vec<_> = recognizer.scopes().contents().collect();
    let is_of_items = |scope: &MemberScope| match &scope.kind {
        ScopeKind::Record => true,
        ScopeKind::Distinct { at_most } => at_most.is_some(),
    };
    if !scopes.iter().any(is_of_items) {
        return Ok(None);
    }
    let slots = recognizer.source().open_slots();
    let mut all = Vec::new();
    for (scope, own) in scopes.iter().zip(&contents) {
        let (of, limit) = match &scope.kind {
            ScopeKind::Record => (*own, None),
            ScopeKind::Distinct { at_most } => {
                let record = own.records.first().map(|record| contents[record.index()]);
                (record.unwrap_or(own), at_most.as_ref())
            }
        };
        all.push(match (&*own.slots, &*own.records) {
            // A scope that no rule begins.
            ([], []) => ScopeItems::Members(SlotId(0)),
            (&[slot], []) if !is_of_items(scope) => ScopeItems::Members(slot),
            _ => {
                let slots: Vec<&Slot> = of.slots.iter().map(|slot| &slots[slot.index()]).collect();
                let (items, eligible) = eligible(scope, &slots, catalog(&scope.name))?;
                let groups = limit.map(|limit| match items.groups(&limit.attribute) {
                    Ok(groups) => Ok(GroupLimits::new(groups, limit.items)),
                    Err(error) => Err(unfit(scope, format!("x-at-most: {error}"))),
                });
                let items = EligibleItems::new(items, eligible, groups.transpose()?);
                ScopeItems::Items(Box::new(items))
            }
        });
    }
    let slot = |(slot, set): (&Slot, &BoundSet)| ScopedSlot {
        set: set.members(),
        field_set: match set {
            BoundSet::Field(set) => Some(Arc::clone(set)),
            _ => None,
        },
        field: slot.field.clone().unwrap_or_else(|| ID_FIELD.to_owned()),
        spelling: slot.spelling,
    };
    let slots = slots.iter().zip(sets).map(slot).collect();
    Ok(Some(Arc::new(ItemScopes { slots, scopes: all, remainders: RemainderCache::default() })))
}

/// The items that may be written in a scope: those that match the filters of all its slots and have
/// a member of each.
fn eligible(
    scope: &MemberScope,
    slots: &[&Slot],
    catalog: Option<CatalogOfName<'_>>,
) -> Result<(FieldItems, ViewItems), BindingError> {
    let is_field = |slot: &&Slot| slot.kind == SlotKind::Catalog;
    let of_catalog = catalog.filter(|_| slots.iter().all(is_field));
    let Some((items, filter)) = of_catalog.and_then(|(of, filter)| Some((of.items()?, filter)))
    else {
        let reason = "is about items with fields, and what is bound has none such; bind a catalog, and name its ids and attributes there";
        return Err(unfit(scope, reason.to_owned()));
    };
    let failed = |error| unfit(scope, format!("{error}"));
    let mut eligible = items.matching(filter).map_err(failed)?;
    for slot in slots {
        if let Some(own) = &slot.filter {
            let no_filter =
                |error| BindingError::SlotFilter { slot: slot.label(), error: Box::new(error) };
            let own = Filter::parse(own).map_err(no_filter)?;
            let own = items.matching(Some(&own)).map_err(failed)?;
            eligible = items.intersection(&eligible, &own);
        }
        let field = slot.field.as_deref().unwrap_or(ID_FIELD);
        eligible = items.having(field, &eligible).map_err(failed)?;
    }
    Ok((items, eligible))
}

fn unfit(scope: &MemberScope, reason: String) -> BindingError {
    BindingError::Scope { scope: scope.label(), name: scope.name.clone(), reason }
}
