//! The definition of a filter, one item at a time.

use serde_json::{Map, Value};

use super::{Bound, Condition, Filter, Scalar, Test, split_path, values_at};
use crate::columns::kind::is_large_integer;
use crate::columns::{ColumnKind, timestamp};

impl Filter {
    /// True if an item matches, by its id and attributes alone. This is the definition that
    /// [`Columns::select`](crate::Columns::select) is held to, and the way to ask of a single item.
    /// `kind` tells the kind of an attribute's column; only [`ColumnKind::Timestamp`] makes a
    /// difference. Values that cannot be compared are not equal; `select` refuses them for columns
    /// of one kind.
    ///
    /// Cost: goes through all conditions and their values.
    pub fn matches(
        &self,
        id: &str,
        attributes: &Map<String, Value>,
        kind: &dyn Fn(&str) -> Option<ColumnKind>,
    ) -> bool {
        let holds = |condition: &Condition| condition.holds(id, attributes, kind);
        self.must.iter().all(holds)
            && (self.should.is_empty() || self.should.iter().any(holds))
            && !self.must_not.iter().any(holds)
            && !self.exclude.iter().any(|excluded| excluded == id)
    }
}

impl Condition {
    fn holds(
        &self,
        id: &str,
        attributes: &Map<String, Value>,
        kind: &dyn Fn(&str) -> Option<ColumnKind>,
    ) -> bool {
        match self {
            Self::Ids(ids) => ids.iter().any(|other| other == id),
            Self::AtLeast { count, conditions } => {
                let holds = |condition: &&Condition| condition.holds(id, attributes, kind);
                conditions.iter().filter(holds).count() >= *count
            }
            Self::Filter(filter) => filter.matches(id, attributes, kind),
            Self::Field { path, test } => {
                let is_column = |name: &str| attributes.contains_key(name) || kind(name).is_some();
                let Some((column, fields)) = split_path(path, is_column) else {
                    return test.holds(id, &[], None);
                };
                let value = attributes.get(column).filter(|value| !value.is_null());
                let values = value.map_or_else(Vec::new, |value| values_at(value, &fields));
                test.holds(id, &values, kind(column))
            }
        }
    }
}

impl Test {
    /// Truth of the condition for the values at a path, of the item with this id.
    pub(crate) fn holds(&self, id: &str, values: &[&Value], kind: Option<ColumnKind>) -> bool {
        let is_any = |element: &Value, scalars: &[Scalar]| {
            let is_equal = |order: std::cmp::Ordering| order.is_eq();
            scalars.iter().any(|scalar| compare(element, scalar, kind).is_some_and(is_equal))
        };
        let any_element =
            |test: &dyn Fn(&Value) -> bool| values.iter().any(|value| any_element(value, test));
        match self {
            Self::Any(scalars) => any_element(&|element| is_any(element, scalars)),
            Self::Except(scalars) => any_element(&|element| !is_any(element, scalars)),
            Self::Range { lower, upper } => any_element(&|element| {
                let compare = |bound: &Bound| compare(element, &bound.value, kind);
                let above = |bound: &Bound| {
                    compare(bound).is_some_and(|o| o.is_gt() || bound.inclusive && o.is_eq())
                };
                let below = |bound: &Bound| {
                    compare(bound).is_some_and(|o| o.is_lt() || bound.inclusive && o.is_eq())
                };
                lower.as_ref().is_none_or(above) && upper.as_ref().is_none_or(below)
            }),
            Self::Exists => values.iter().any(|value| has_leaf(value)),
            Self::Empty => values.iter().all(|value| match value {
                Value::Array(elements) => elements.is_empty(),
                value => value.is_null(),
            }),
            Self::Count { least, most } => {
                let is_within = |count: u64| (*least..=*most).contains(&count);
                values.iter().any(|value| count(value).is_some_and(is_within))
            }
            Self::Present => !values.is_empty(),
            Self::Nested(filter) => any_element(&|element| match element {
                Value::Object(fields) => filter.matches(id, fields, &|_| None),
                _ => false,
            }),
        }
    }
}

/// Truth of a test for a value or, for a list, for any of its elements. Null is no value.
fn any_element(value: &Value, test: &dyn Fn(&Value) -> bool) -> bool {
    match value {
        Value::Null => false,
        Value::Array(elements) => elements.iter().any(|element| any_element(element, test)),
        value => test(value),
    }
}

pub(crate) fn has_leaf(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(elements) => elements.iter().any(has_leaf),
        Value::Object(fields) => fields.values().any(has_leaf),
        _ => true,
    }
}

/// The number of elements, 1 of what is no list; null is no value and has none.
fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Null => None,
        Value::Array(elements) => Some(elements.len() as u64),
        _ => Some(1),
    }
}

/// Orders an attribute and a value; `None` when they cannot be compared.
fn compare(
    attribute: &Value,
    value: &Scalar,
    kind: Option<ColumnKind>,
) -> Option<std::cmp::Ordering> {
    match (kind, attribute, value) {
        (Some(ColumnKind::Timestamp), attribute, value) => {
            Some(timestamp::from_json(attribute)?.cmp(&value.microseconds()?))
        }
        (_, Value::String(attribute), Scalar::Text(value)) => Some(attribute.cmp(value)),
        (_, Value::Bool(attribute), Scalar::Boolean(value)) => Some(attribute.cmp(value)),
        (_, Value::Number(attribute), Scalar::Number(value)) if !is_large_integer(attribute) => {
            attribute.as_f64()?.partial_cmp(&value.get())
        }
        _ => None,
    }
}

impl Scalar {
    /// The point in time that it is for a timestamp column; none of digits that write a date, which
    /// would lie in 1970.
    pub(crate) fn microseconds(&self) -> Option<i64> {
        match self {
            Self::Text(text) => timestamp::from_text(text),
            Self::Number(seconds) => match timestamp::date_of_digits(seconds.get()) {
                Some(_) => None,
                None => timestamp::from_seconds(seconds.get()),
            },
            Self::Boolean(_) => None,
        }
    }
}
