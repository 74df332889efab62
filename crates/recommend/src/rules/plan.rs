//! Rules made ready for one request over one view.

use std::collections::HashSet;
use std::sync::Arc;

use palmette_catalog_filter::{ColumnKind, Filter};
use palmette_catalog_live::{CatalogView, ViewItems};

use super::attribute_kind::kind_of;
use super::boosts::ItemBoosts;
use super::error::RulesError;
use super::{Rules, Valid};
use crate::view::SpelledView;

/// The parts of rules that need no search.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) boosts: Option<Arc<ItemBoosts>>,
    /// Numbers of the items of `must_include`, each once.
    pub(crate) pins: Vec<u64>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(rules: &'a Rules, view: &SpelledView, k: usize) -> Result<Self, RulesError> {
        let pins = pins(rules, view.view())?;
        if pins.len() > k {
            return Err(RulesError::TooManyPins { pins: pins.len(), k });
        }
        let boosts = view.boosts().get(view.view(), &rules.boosts)?;
        Ok(Self { rules, boosts, pins })
    }

    /// Refuses pinned items that are not in a set that `by` leaves.
    pub(crate) fn check_pins(
        &self,
        view: &CatalogView,
        items: &ViewItems,
        by: &'static str,
    ) -> Result<(), RulesError> {
        let sets = view.rank_sets(items);
        let is_out = |&&number: &&u64| {
            let (segment, rank) = view.segment_of(number);
            !sets[segment].contains(rank)
        };
        match self.pins.iter().find(is_out) {
            Some(&number) => Err(RulesError::PinRefused { id: view.id(number).to_owned(), by }),
            None => Ok(()),
        }
    }

    /// The items that are valid at the moment of the request; `None` for all.
    pub(crate) fn valid(&self, view: &CatalogView) -> Result<Option<ViewItems>, RulesError> {
        let Some(valid) = &self.rules.valid else { return Ok(None) };
        let rule = |error| RulesError::filter("valid", error);
        view.filter(&valid_filter(valid, view)?).map(Some).map_err(rule)
    }
}

fn pins(rules: &Rules, view: &CatalogView) -> Result<Vec<u64>, RulesError> {
    let excluded: HashSet<&str> = rules.must_exclude.iter().map(String::as_str).collect();
    let mut seen = HashSet::new();
    let mut pins = Vec::new();
    for id in rules.must_include.iter().filter(|id| seen.insert(id.as_str())) {
        if excluded.contains(id.as_str()) {
            return Err(RulesError::PinRefused { id: id.clone(), by: "must_exclude" });
        }
        pins.push(view.find(id).ok_or_else(|| RulesError::UnknownPin(id.clone()))?);
    }
    Ok(pins)
}

fn valid_filter(valid: &Valid, view: &CatalogView) -> Result<Filter, RulesError> {
    let now = valid.now.as_ref().ok_or(RulesError::NoNow)?;
    for attribute in valid.from.iter().chain(&valid.to) {
        let kind = kind_of(view, attribute, "valid")?;
        if kind != ColumnKind::Timestamp {
            let (rule, attribute) = ("valid".to_owned(), attribute.clone());
            let needed = "a timestamp attribute, declared when the catalog was built";
            return Err(RulesError::WrongKind { rule, attribute, kind, needed });
        }
    }
    Filter::valid_at(valid.from.as_deref(), valid.to.as_deref(), now)
        .map_err(|error| RulesError::filter("valid", error))
}
