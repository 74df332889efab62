//! Items of a view by what a text wrote of them: those with a member, those left, those of a group.
//!
//! A record of a grammar describes one item: each member that is written leaves the items that have
//! it. What is left is a set of items again, of which the fields' values are asked as those of a
//! filter are.

use std::collections::HashMap;

use palmette_catalog::{ColumnKind, Filter};
use palmette_catalog_live::{CatalogView, ViewItems};
use palmette_core::MemberSpelling;

use crate::error::{FieldError, FieldErrorKind};
use crate::fields::{ID_FIELD, field_set, shared_items};
use crate::segment_fields::SegmentFields;
use crate::set::FieldSet;

/// The items of a view, as scopes of a grammar ask for them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FieldItems {
    view: CatalogView,
}

/// Groups of a view's items: those with equal values of an attribute.
#[derive(Clone, Debug)]
pub struct ItemGroups {
    /// Groups by segment and code of the attribute, the code of no value included.
    by_code: Vec<Vec<Option<u32>>>,
    attribute: String,
}

impl FieldItems {
    pub(crate) fn new(view: CatalogView) -> Self {
        Self { view }
    }

    /// The items that match a filter, all items where there is none.
    ///
    /// # Errors
    /// When the filter does not fit the catalog.
    pub fn matching(&self, filter: Option<&Filter>) -> Result<ViewItems, FieldError> {
        Ok(match filter.filter(|filter| !filter.is_match_all()) {
            Some(filter) => self.view.filter(filter)?,
            None => self.view.all_items(),
        })
    }

    /// The values of a field that some items have.
    ///
    /// # Errors
    /// When there is no such field, or it has values that are no texts.
    pub fn set(
        &self,
        field: &str,
        items: &ViewItems,
        spelling: MemberSpelling,
    ) -> Result<FieldSet, FieldError> {
        field_set(&self.view, field, Some(items), &[], spelling)
    }

    /// The items of some that have a member of a field.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn having(&self, field: &str, items: &ViewItems) -> Result<ViewItems, FieldError> {
        if self.set(field, items, MemberSpelling::Raw)?.num_items() == items.len() {
            return Ok(items.clone());
        }
        self.retain(field, items, |rank, first_member| rank >= first_member)
    }

    /// The items of some that have this member of a field.
    ///
    /// Cost: a look-up of an id; else a pass over the items.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn with_member(
        &self,
        field: &str,
        text: &str,
        items: &ViewItems,
    ) -> Result<ViewItems, FieldError> {
        if field == ID_FIELD {
            let number = self.view.find(text);
            return Ok(self.view.choose(number.filter(|&number| self.contains(items, number))));
        }
        let ranks = self.ranks_of(field, text)?;
        let mut numbers = Vec::new();
        self.visit(field, items, |segment, number, rank, _| {
            if ranks[segment] == Some(rank) {
                numbers.push(number);
            }
        })?;
        numbers.dedup();
        Ok(self.view.choose(numbers))
    }

    /// Difference of items and those with these numbers.
    pub fn without(&self, items: &ViewItems, numbers: impl IntoIterator<Item = u64>) -> ViewItems {
        self.view.without(items, numbers)
    }

    /// True where some items have one with this number.
    pub fn contains(&self, items: &ViewItems, number: u64) -> bool {
        let (segment, rank) = self.view.segment_of(number);
        self.view.rank_sets(items)[segment].contains(rank)
    }

    /// The items in both sets.
    pub fn intersection(&self, items: &ViewItems, others: &ViewItems) -> ViewItems {
        self.view.intersection(items, others)
    }

    /// The numbers of some items, ascending.
    pub fn numbers(&self, items: &ViewItems) -> impl Iterator<Item = u64> {
        self.view.numbers_in(items)
    }

    /// The groups of items by an attribute.
    ///
    /// Cost: a pass over the attribute's values.
    ///
    /// # Errors
    /// When there is no such attribute, or it may have several values an item.
    pub fn groups(&self, attribute: &str) -> Result<ItemGroups, FieldError> {
        let kind = self.view.kind_of(attribute)?;
        if matches!(kind, ColumnKind::Keywords | ColumnKind::Json) {
            return Err(FieldErrorKind::ManyValues { field: attribute.to_owned() }.into());
        }
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut by_code = Vec::new();
        for reader in self.view.readers(attribute) {
            let mut groups = vec![None];
            for code in reader.iter().flat_map(|reader| 1..=reader.num_values()) {
                let value = reader.as_ref().and_then(|reader| reader.value(code));
                let next = numbers.len() as u32;
                let group = value.map(|value| *numbers.entry(value.to_string()).or_insert(next));
                groups.push(group);
            }
            by_code.push(groups);
        }
        Ok(ItemGroups { by_code, attribute: attribute.to_owned() })
    }

    /// The group of an item; `None` of one without a value.
    pub fn group_of(&self, groups: &ItemGroups, number: u64) -> Option<u32> {
        let (segment, rank) = self.view.segment_of(number);
        let (catalog, _) = self.view.parts().nth(segment)?;
        let reader = catalog.columns().reader(&groups.attribute)?;
        *groups.by_code[segment].get(reader.code(rank) as usize)?
    }

    /// Number of some items in each group, and of those in none.
    ///
    /// Cost: a pass over the items.
    pub fn group_sizes(&self, groups: &ItemGroups, items: &ViewItems) -> (HashMap<u32, u64>, u64) {
        let (mut sizes, mut others) = (HashMap::new(), 0);
        self.visit_groups(groups, items, |_, group| match group {
            Some(group) => *sizes.entry(group).or_default() += 1,
            None => others += 1,
        });
        (sizes, others)
    }

    /// Difference of items and those of some groups, which ascend.
    ///
    /// Cost: a pass over the items.
    pub fn without_groups(
        &self,
        groups: &ItemGroups,
        items: &ViewItems,
        full: &[u32],
    ) -> ViewItems {
        if full.is_empty() {
            return items.clone();
        }
        let mut gone = Vec::new();
        self.visit_groups(groups, items, |number, group| {
            if group.is_some_and(|group| full.binary_search(&group).is_ok()) {
                gone.push(number);
            }
        });
        self.view.without(items, gone)
    }

    fn visit_groups(
        &self,
        groups: &ItemGroups,
        items: &ViewItems,
        mut visit: impl FnMut(u64, Option<u32>),
    ) {
        let mut before = 0;
        let sets = self.view.rank_sets(items);
        for (segment, (catalog, _)) in self.view.parts().enumerate() {
            let reader = catalog.columns().reader(&groups.attribute);
            for rank in sets[segment].iter() {
                let code = reader.as_ref().map_or(0, |reader| reader.code(rank));
                visit(before + rank, groups.by_code[segment].get(code as usize).copied().flatten());
            }
            before += catalog.num_items();
        }
    }

    /// The rank of a text among a field's in each segment.
    fn ranks_of(&self, field: &str, text: &str) -> Result<Vec<Option<u32>>, FieldError> {
        let mut ranks = Vec::new();
        for (catalog, _) in self.view.parts() {
            let index = catalog.derived::<SegmentFields>().index(catalog, field)?;
            ranks.push(
                index.and_then(|index| {
                    index.lexicon().rank(text.as_bytes()).map(|rank| rank as u32)
                }),
            );
        }
        Ok(ranks)
    }

    fn retain(
        &self,
        field: &str,
        items: &ViewItems,
        keeps: impl Fn(u32, u32) -> bool,
    ) -> Result<ViewItems, FieldError> {
        let mut numbers = Vec::new();
        self.visit(field, items, |_, number, rank, first_member| {
            if keeps(rank, first_member) {
                numbers.push(number);
            }
        })?;
        numbers.dedup();
        Ok(self.view.choose(numbers))
    }

    /// Visits each text of some items: segment, number of the item, rank of the text in the
    /// segment, and the first rank there that is a member's.
    fn visit(
        &self,
        field: &str,
        items: &ViewItems,
        mut visit: impl FnMut(usize, u64, u32, u32),
    ) -> Result<(), FieldError> {
        let mut before = 0;
        for (segment, (catalog, _)) in self.view.parts().enumerate() {
            let index = catalog.derived::<SegmentFields>().index(catalog, field)?;
            if let Some(index) = index {
                let first_member = index.first_member();
                for rank in shared_items(&self.view, items, segment).ranks().iter() {
                    let number = before + rank;
                    index.for_each_rank(catalog, field, rank, |text| {
                        visit(segment, number, text, first_member);
                    });
                }
            }
            before += catalog.num_items();
        }
        Ok(())
    }
}
