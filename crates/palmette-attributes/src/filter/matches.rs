//! The definition of a filter, one item at a time.

use serde_json::{Map, Value};

use super::{Bound, Condition, Filter, Scalar};
use crate::columns::{ColumnKind, timestamp};

impl Filter {
    /// Whether an item matches, by its id and attributes alone: the definition that
    /// [`Columns::select`](crate::Columns::select) is held to, and the way to ask of a single item.
    /// `kind` tells the kind of an attribute's column; only [`ColumnKind::Timestamp`] and
    /// [`ColumnKind::Json`] make a difference. What `select` refuses does not match.
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
        let attribute = |column: &str| attributes.get(column).filter(|value| !value.is_null());
        match self {
            Self::Ids(ids) => ids.iter().any(|other| other == id),
            Self::Exists { column } => attribute(column).is_some(),
            Self::Filter(filter) => filter.matches(id, attributes, kind),
            Self::Match { column, values } => attribute(column).is_some_and(|attribute| {
                let kind = kind(column);
                values.iter().any(|value| is_match(attribute, value, kind))
            }),
            Self::Range { column, lower, upper } => attribute(column).is_some_and(|attribute| {
                let kind = kind(column);
                let compare = |bound: &Bound| compare(attribute, &bound.value, kind);
                let above = |bound: &Bound| {
                    compare(bound).is_some_and(|o| o.is_gt() || bound.inclusive && o.is_eq())
                };
                let below = |bound: &Bound| {
                    compare(bound).is_some_and(|o| o.is_lt() || bound.inclusive && o.is_eq())
                };
                lower.as_ref().is_none_or(above) && upper.as_ref().is_none_or(below)
            }),
        }
    }
}

fn is_match(attribute: &Value, value: &Scalar, kind: Option<ColumnKind>) -> bool {
    match attribute {
        Value::Array(words) => words.iter().any(|word| is_match(word, value, kind)),
        attribute => compare(attribute, value, kind).is_some_and(|order| order.is_eq()),
    }
}

/// How an attribute compares with a value; `None` when they cannot be compared.
fn compare(
    attribute: &Value,
    value: &Scalar,
    kind: Option<ColumnKind>,
) -> Option<std::cmp::Ordering> {
    match (kind, attribute, value) {
        (Some(ColumnKind::Json), ..) => None,
        (Some(ColumnKind::Timestamp), attribute, value) => {
            Some(timestamp::from_json(attribute)?.cmp(&value.microseconds()?))
        }
        (_, Value::String(attribute), Scalar::Text(value)) => Some(attribute.cmp(value)),
        (_, Value::Bool(attribute), Scalar::Boolean(value)) => Some(attribute.cmp(value)),
        (_, Value::Number(attribute), Scalar::Number(value)) => {
            attribute.as_f64()?.partial_cmp(&value.get())
        }
        _ => None,
    }
}

impl Scalar {
    /// The point in time that it is for a timestamp column.
    pub(crate) fn microseconds(&self) -> Option<i64> {
        match self {
            Self::Text(text) => timestamp::from_text(text),
            Self::Number(seconds) => timestamp::from_seconds(seconds.get()),
            Self::Boolean(_) => None,
        }
    }
}
