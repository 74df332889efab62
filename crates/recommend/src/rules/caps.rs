//! Caps: counters a value and a semantic ID, and the items that they leave.

use std::collections::HashMap;
use std::rc::Rc;

use palmette_catalog_filter::{ColumnKind, ColumnReader, Filter, SortKey};
use palmette_catalog_live::{CatalogView, ViewItems};
use serde_json::{Value, json};

use super::attribute_kind::kind_of;
use super::error::RulesError;
use super::{AtMost, Rules};

/// The caps of a request, with the items that count for them so far.
#[derive(Clone, Debug)]
pub(crate) struct Caps<'a> {
    view: &'a CatalogView,
    values: Vec<ValueCap<'a>>,
    per_id: Option<IdCap>,
}

/// Limit on the items of one value.
#[derive(Clone, Debug)]
struct ValueCap<'a> {
    rule: &'a AtMost,
    readers: Vec<Option<ColumnReader<'a>>>,
    /// The places of a code's values in `counted`, by segment and code.
    places: HashMap<(usize, u32), Rc<[usize]>>,
    place_of: HashMap<Key, usize>,
    counted: Vec<Counted>,
}

#[derive(Clone, Debug)]
struct Counted {
    value: Value,
    items: usize,
}

/// A value, equal in all segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Boolean(bool),
    Timestamp(i64),
    /// The bits: zero has one sign.
    Number(u64),
    Text(String),
}

/// Limit on the items of one semantic ID.
#[derive(Clone, Debug)]
struct IdCap {
    items: usize,
    counted: HashMap<Vec<u32>, usize>,
}

impl<'a> Caps<'a> {
    /// `None` where the rules have no cap.
    pub(crate) fn new(rules: &'a Rules, view: &'a CatalogView) -> Result<Option<Self>, RulesError> {
        let values = rules.at_most.iter().map(|rule| ValueCap::new(rule, view));
        let values: Vec<_> = values.collect::<Result<_, _>>()?;
        let per_id = rules.at_most_per_semantic_id;
        let per_id = per_id.map(|items| IdCap { items, counted: HashMap::new() });
        let has_any = !values.is_empty() || per_id.is_some();
        Ok(has_any.then_some(Self { view, values, per_id }))
    }

    /// Counts an item unless a cap is reached; says which.
    pub(crate) fn count(&mut self, number: u64) -> Result<(), String> {
        let at = self.view.segment_of(number);
        let places: Vec<Rc<[usize]>> = self.values.iter_mut().map(|cap| cap.places(at)).collect();
        for (cap, places) in self.values.iter().zip(&places) {
            if let Some(&full) = places.iter().find(|&&place| cap.is_full(place)) {
                let (AtMost { attribute, items }, value) = (cap.rule, &cap.counted[full].value);
                return Err(format!("at_most {items} items of {attribute} {value}"));
            }
        }
        if let Some(IdCap { items, counted }) = &mut self.per_id {
            let count = counted.entry(self.view.codes(number)).or_default();
            if count == items {
                return Err(format!("at_most_per_semantic_id {items}"));
            }
            *count += 1;
        }
        for (cap, places) in self.values.iter_mut().zip(&places) {
            places.iter().for_each(|&place| cap.counted[place].items += 1);
        }
        Ok(())
    }

    /// The items of a set that may still be counted.
    pub(crate) fn left(&self, items: ViewItems) -> Result<ViewItems, RulesError> {
        let mut left = items;
        for filter in self.values.iter().flat_map(ValueCap::full) {
            let filter = filter.and_then(|filter| self.view.filter(&filter));
            let full = filter.map_err(|error| RulesError::filter("at_most", error))?;
            left = self.view.minus(&left, &full);
        }
        if let Some(IdCap { items, counted }) = &self.per_id {
            let full = counted.iter().filter(|&(_, count)| count == items);
            left =
                self.view.without(&left, full.flat_map(|(codes, _)| self.view.find_codes(codes)));
        }
        Ok(left)
    }
}

impl<'a> ValueCap<'a> {
    fn new(rule: &'a AtMost, view: &'a CatalogView) -> Result<Self, RulesError> {
        let kind = kind_of(view, &rule.attribute, "at_most")?;
        if kind == ColumnKind::Json {
            let (rule, attribute) = ("at_most".to_owned(), rule.attribute.clone());
            let needed = "an attribute of one value, or of a list of texts";
            return Err(RulesError::WrongKind { rule, attribute, kind, needed });
        }
        Ok(Self {
            rule,
            readers: view.readers(&rule.attribute),
            places: HashMap::new(),
            place_of: HashMap::new(),
            counted: Vec::new(),
        })
    }

    fn is_full(&self, place: usize) -> bool {
        self.counted[place].items >= self.rule.items
    }

    /// The places of an item's values. Cost: a look-up, and once a code reading its values.
    fn places(&mut self, (segment, rank): (usize, u64)) -> Rc<[usize]> {
        let Some(reader) = self.readers[segment] else { return Rc::default() };
        let code = reader.code(rank);
        if let Some(places) = self.places.get(&(segment, code)) {
            return Rc::clone(places);
        }
        let values = values_of(&reader, code).into_iter();
        let mut places: Vec<usize> = values.map(|(key, value)| self.place(key, value)).collect();
        places.sort_unstable();
        places.dedup();
        let places: Rc<[usize]> = places.into();
        self.places.insert((segment, code), Rc::clone(&places));
        places
    }

    fn place(&mut self, key: Key, value: Value) -> usize {
        *self.place_of.entry(key).or_insert_with(|| {
            self.counted.push(Counted { value, items: 0 });
            self.counted.len() - 1
        })
    }

    /// Filters of the items of values that have all they may have.
    fn full(&self) -> Vec<Result<Filter, palmette_catalog_filter::FilterError>> {
        const VALUES_A_FILTER: usize = 4096;
        let full = self.counted.iter().filter(|counted| counted.items >= self.rule.items);
        let values: Vec<&Value> = full.map(|counted| &counted.value).collect();
        let attribute = &self.rule.attribute;
        let filter = |values: &[&Value]| {
            Filter::from_value(&json!({"must": {"match": {attribute: values}}}))
        };
        values.chunks(VALUES_A_FILTER).map(filter).collect()
    }
}

/// The values that a code stands for: one, those of a list, or none.
fn values_of(reader: &ColumnReader<'_>, code: u32) -> Vec<(Key, Value)> {
    let Some(value) = reader.value(code) else { return Vec::new() };
    match (value, reader.sort_key(code)) {
        (Value::Array(words), _) => words.into_iter().filter_map(word).collect(),
        (value, Some(key)) => vec![(Key::of(key), value)],
        (_, None) => Vec::new(),
    }
}

fn word(value: Value) -> Option<(Key, Value)> {
    Some((Key::Text(value.as_str()?.to_owned()), value))
}

impl Key {
    fn of(key: SortKey<'_>) -> Self {
        match key {
            SortKey::Boolean(value) => Self::Boolean(value),
            SortKey::Timestamp(value) => Self::Timestamp(value),
            SortKey::Number(value) => Self::Number(value.to_bits()),
            SortKey::Text(text) => Self::Text(text.to_owned()),
        }
    }
}
