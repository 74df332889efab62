//! Kinds of columns and of single values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// Kind of a column's values, which decides what a filter may ask of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// Text: `match`, and `range` in the order of its bytes.
    Keyword,
    /// f64: `match` and `range`. Integers within ±2^53 are exact.
    Number,
    /// `true` or `false`: `match`.
    Boolean,
    /// A point in time to the microsecond: `match` and `range`. Only where it was declared.
    Timestamp,
    /// Lists of text: `match` is true if it is for any of the list.
    Keywords,
    /// Anything, kept as JSON. Where its values are of several kinds and it was not declared, only
    /// `exists` and `is_empty`.
    Json,
}

impl ColumnKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Keyword, Self::Number, Self::Boolean, Self::Timestamp, Self::Keywords, Self::Json];

    /// The kind of a column that holds only values like this one; `None` for null, which is no
    /// value.
    pub fn of(value: &Value) -> Option<Self> {
        ValueKind::of(value).map(ValueKind::column_kind)
    }
}

/// A name that no [`ColumnKind`] has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind {0:?}; the kinds are keyword, number, boolean, timestamp, keywords and json")]
pub struct UnknownKind(String);

impl FromStr for ColumnKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let kind = Self::ALL.into_iter().find(|kind| kind.to_string() == name);
        kind.ok_or_else(|| UnknownKind(name.to_owned()))
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keyword => "keyword",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Timestamp => "timestamp",
            Self::Keywords => "keywords",
            Self::Json => "json",
        })
    }
}

/// Kind of a single value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ValueKind {
    Text,
    Number,
    Boolean,
    TextList,
    /// A list without elements, which goes with lists of any kind.
    EmptyList,
    /// Outside ±2^53, where f64 would lose digits.
    LargeInteger,
    /// An object or a list that holds something else than text.
    Other,
}

impl ValueKind {
    /// The kind of a value; `None` for null, which means that there is none.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::String(_) => Self::Text,
            Value::Number(number) if is_large_integer(number) => Self::LargeInteger,
            Value::Number(_) => Self::Number,
            Value::Bool(_) => Self::Boolean,
            Value::Array(values) if values.is_empty() => Self::EmptyList,
            Value::Array(values) if values.iter().all(Value::is_string) => Self::TextList,
            Value::Array(_) | Value::Object(_) => Self::Other,
        })
    }

    /// The kind of values of both kinds; `None` where no column holds both but as JSON.
    pub(crate) fn join(self, other: Self) -> Option<Self> {
        match (self, other) {
            (kind, other) if kind == other => Some(kind),
            (Self::EmptyList, list @ (Self::TextList | Self::Other))
            | (list @ (Self::TextList | Self::Other), Self::EmptyList) => Some(list),
            _ => None,
        }
    }

    /// The kind of a column that holds only such values.
    pub(crate) fn column_kind(self) -> ColumnKind {
        match self {
            Self::Text => ColumnKind::Keyword,
            Self::Number => ColumnKind::Number,
            Self::Boolean => ColumnKind::Boolean,
            Self::TextList | Self::EmptyList => ColumnKind::Keywords,
            Self::LargeInteger | Self::Other => ColumnKind::Json,
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Number => "numbers",
            Self::Boolean => "true or false",
            Self::TextList => "lists of text",
            Self::EmptyList => "empty lists",
            Self::LargeInteger => "integers outside ±2^53",
            Self::Other => "objects or lists of other things than text",
        })
    }
}

/// Integers up to this size are exact in f64, and so are their differences.
pub(crate) const MAX_EXACT_INTEGER: u64 = 1 << 53;

pub(crate) fn is_large_integer(number: &Number) -> bool {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => number > MAX_EXACT_INTEGER,
        (None, Some(number)) => number.unsigned_abs() > MAX_EXACT_INTEGER,
        (None, None) => false,
    }
}

/// The integer that a number without a fraction is, within ±2^53.
pub fn whole(number: f64) -> Option<i64> {
    let is_whole = number.fract() == 0.0 && number.abs() <= MAX_EXACT_INTEGER as f64;
    is_whole.then_some(number as i64)
}

/// The integer that a JSON value is, as `3` or `3.0`.
pub fn whole_number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

/// The id that a JSON value is: a text, or the digits of an integer, as `3` or `3.0`.
pub fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) if !id.is_f64() => Some(id.to_string()),
        value => whole_number(value).map(|id| id.to_string()),
    }
}

/// `number` in JSON: as an integer where it is one, within ±2^53.
pub(crate) fn number_to_json(number: f64) -> Value {
    whole(number).map_or_else(|| Value::from(number), Value::from)
}
