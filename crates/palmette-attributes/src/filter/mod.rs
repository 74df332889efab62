//! What a request asks of items.

mod error;
mod matches;
mod number;
mod parse;
mod write;

pub use error::FilterError;
pub(crate) use error::Kind as FilterErrorKind;
pub(crate) use number::Number;

/// How deep filters may nest.
const MAX_DEPTH: usize = 16;
/// The most conditions that a filter may hold: each may cost a pass over all items.
const MAX_CONDITIONS: usize = 1024;
/// The most values and ids that a filter may hold.
const MAX_VALUES: usize = 65_536;

/// A condition on the id and the attributes of an item.
///
/// In JSON it is an object with any of four keys; an item matches when
/// - all conditions in `must` hold,
/// - at least one in `should` does, if there is any,
/// - none in `must_not` does, and
/// - its id is not in the list `exclude`.
///
/// So `{}` matches all. The first three hold a list of conditions, or a single one:
///
/// | condition | holds when |
/// |---|---|
/// | `{"match": {"brand": "Acme"}}` | the attribute is this text, number, or `true` or `false` |
/// | `{"match": {"brand": ["Acme", "Zeta"]}}` | it is any of these |
/// | `{"range": {"price": {"gte": 10, "lt": 20}}}` | it lies between `gt` or `gte` and `lt` or `lte` |
/// | `{"ids": ["P1", "P2"]}` | the id is one of these |
/// | `{"exists": "brand"}` | the item has the attribute |
/// | `{"must_not": {"exists": "brand"}}` | a filter within the filter matches |
///
/// A `match` on a list of text holds if it does for any of the list. A `range` takes numbers for a
/// number column, for a timestamp column RFC 3339 text or seconds since 1970 (so does `match`), and
/// text for a keyword column, which is compared byte by byte. A missing attribute matches nothing.
///
/// The spellings of Qdrant (`{"key": "brand", "match": {"value": "Acme"}}`, `{"any": […]}` in its
/// place, `{"key": "price", "range": {…}}`, `{"has_id": […]}`) and of Elasticsearch
/// (`{"term": {"brand": "Acme"}}`, `{"terms": {"brand": […]}}`, `{"ids": {"values": […]}}`,
/// `{"exists": {"field": "brand"}}`) are taken too. Anything else is an error.
///
/// Filters that differ only in spelling, in the order of conditions or values, or in repeating
/// them, are equal; [`Display`](std::fmt::Display) and `Serialize` write the first spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    /// These three and `exclude` ascend strictly.
    pub(crate) must: Vec<Condition>,
    pub(crate) should: Vec<Condition>,
    pub(crate) must_not: Vec<Condition>,
    pub(crate) exclude: Vec<String>,
}

/// What an item can be asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Condition {
    /// The attribute is one of the values, which ascend strictly.
    Match { column: String, values: Vec<Scalar> },
    /// The attribute lies within the bounds, of which there is at least one.
    Range { column: String, lower: Option<Bound>, upper: Option<Bound> },
    /// The id is one of these, which ascend strictly.
    Ids(Vec<String>),
    /// There is such an attribute.
    Exists { column: String },
    /// The filter matches.
    Filter(Box<Filter>),
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bound {
    pub(crate) value: Scalar,
    /// Whether the value itself lies in the range.
    pub(crate) inclusive: bool,
}

/// What an attribute is compared with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scalar {
    Boolean(bool),
    Number(Number),
    Text(String),
}

impl Filter {
    /// The ids that the filter excludes at its top: what differs from request to request where the rest
    /// does not.
    pub fn excluded(&self) -> &[String] {
        &self.exclude
    }

    /// The filter without [`excluded`](Self::excluded).
    pub fn without_excluded(&self) -> Self {
        Self { exclude: Vec::new(), ..self.clone() }
    }

    /// The items that have an attribute.
    pub fn exists(column: &str) -> Self {
        let must = vec![Condition::Exists { column: column.to_owned() }];
        Self { must, ..Self::default() }
    }

    /// Whether every item matches, whatever it is.
    pub fn is_match_all(&self) -> bool {
        *self == Self::default()
    }
}
