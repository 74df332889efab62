//! Filters: conditions on the id and the attributes of items, read from JSON.

mod error;
mod matches;
mod moment;
mod number;
mod parse;
mod path;
mod write;

pub use error::FilterError;
pub(crate) use error::Kind as FilterErrorKind;
pub(crate) use matches::has_leaf;
pub use moment::{Moment, NoMoment};
pub(crate) use number::Number;
pub(crate) use path::{WHOLE_TEXT, split_path, values_at};

/// Depth to which filters may nest.
const MAX_DEPTH: usize = 16;
/// The most conditions that a filter may hold: each may cost a pass over all items.
const MAX_CONDITIONS: usize = 1024;
/// The most values and ids that a filter may hold.
const MAX_VALUES: usize = 65_536;

/// A condition on the id and the attributes of an item.
///
/// In JSON it is an object with any of these keys; an item matches when
/// - all conditions in `must`, and in `filter`, hold,
/// - at least one in `should` does, if there is any,
/// - at least `min_count` of the `conditions` in `min_should` do,
/// - none in `must_not` does, and
/// - its id is not in the list `exclude`.
///
/// The empty filter `{}` matches all. Where several conditions may stand, one may stand alone, and
/// null is none.
///
/// | condition | holds when |
/// |---|---|
/// | `{"match": {"brand": "Acme"}}` | the attribute is this text, number, or `true` or `false` |
/// | `{"match": {"brand": ["Acme", "Zeta"]}}` | it is any of these |
/// | `{"match": {"brand": {"except": ["Acme"]}}}` | it is there and none of these |
/// | `{"range": {"price": {"gte": 10, "lt": 20}}}` | it lies between `gt` or `gte` and `lt` or `lte` |
/// | `{"ids": ["P1", "P2"]}` | the id is one of these |
/// | `{"exists": "brand"}` | the item has a value there, other than null and `[]` |
/// | `{"is_empty": {"key": "brand"}}` | it has none, or `[]` |
/// | `{"key": "tags", "values_count": {"gte": 2}}` | it is there with so many elements in the list; another value is one |
/// | `{"nested": {"key": "variants", "filter": {…}}}` | an object there matches the filter, whose names are those of its fields |
/// | `{"must_not": {"exists": "brand"}}` | a filter within the filter matches |
///
/// A condition on a list holds if it does for any of its elements; a name with points,
/// `variants.color`, is a field within an attribute, looked up in every element of lists on the way
/// (`variants[].color` too). A `range` takes numbers for numbers, text for text, which is compared
/// byte by byte, and for a timestamp column RFC 3339 text or seconds since 1970 (so does `match`).
/// A missing attribute matches nothing. A text has the field `keyword`, which is the text:
/// `title.keyword` is `title`.
///
/// Elasticsearch's `bool` (with `minimum_should_match`; beside `must` or `filter` its `should` only
/// ranks, and is no condition), `term`, `terms`, `constant_score`, `match_all`, `match_none`,
/// `nested` and `query`, and Qdrant's conditions by `key`, `has_id` and `min_should`, mean what
/// they mean there. Anything else is an error.
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

/// A single test of an item, or a combination of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Condition {
    /// The test holds of the values at a path: an attribute, or a field within one.
    Field { path: String, test: Test },
    /// The id is one of these, which ascend strictly.
    Ids(Vec<String>),
    /// At least `count` of the conditions hold. They ascend, and one that stands twice counts
    /// twice.
    AtLeast { count: usize, conditions: Vec<Condition> },
    /// The filter matches.
    Filter(Box<Filter>),
}

/// Predicate on values. A list satisfies it if one of its elements does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Test {
    /// A value is one of these, which ascend strictly.
    Any(Vec<Scalar>),
    /// A value is none of these, which ascend strictly.
    Except(Vec<Scalar>),
    /// A value lies within the bounds, of which there is at least one.
    Range { lower: Option<Bound>, upper: Option<Bound> },
    /// There is a value besides null, in lists and objects too.
    Exists,
    /// There is no value, or null, or a list without elements.
    Empty,
    /// A list has from `least` to `most` elements; another value counts as one. Null is no value.
    Count { least: u64, most: u64 },
    /// There is anything, be it null. Never parsed: tells fields that there are from those that no
    /// item has.
    Present,
    /// An object matches the filter, whose paths begin in it.
    Nested(Box<Filter>),
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bound {
    pub(crate) value: Scalar,
    /// True if the value itself lies in the range.
    pub(crate) inclusive: bool,
}

/// Value that an attribute is compared with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scalar {
    Boolean(bool),
    Number(Number),
    Text(String),
}

impl Filter {
    /// Bytes in memory, about: a list of a million ids may be larger than the set of items that it
    /// means.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.to_string().len()
    }

    /// The ids that the filter excludes at its top: what differs from request to request where the
    /// rest does not.
    pub fn excluded(&self) -> &[String] {
        &self.exclude
    }

    /// The filter without [`excluded`](Self::excluded).
    pub fn without_excluded(&self) -> Self {
        Self { exclude: Vec::new(), ..self.clone() }
    }

    /// The items that match both filters.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let (mut both, other) = (self.clone(), other.clone());
        both.must.extend(other.must);
        // Two lists of which one condition each is to hold are not one list.
        if both.should.is_empty() {
            both.should = other.should;
        } else if !other.should.is_empty() {
            let should = Self { should: other.should, ..Self::default() };
            both.must.push(Condition::Filter(Box::new(should)));
        }
        both.must_not.extend(other.must_not);
        both.exclude.extend(other.exclude);
        for conditions in [&mut both.must, &mut both.must_not] {
            conditions.sort_unstable();
            conditions.dedup();
        }
        both.exclude.sort_unstable();
        both.exclude.dedup();
        both
    }

    /// The items that have an attribute.
    pub fn exists(column: &str) -> Self {
        let must = vec![Condition::Field { path: column.to_owned(), test: Test::Exists }];
        Self { must, ..Self::default() }
    }

    /// The items that have anything, be it null, at a path such as `variants.color`.
    pub fn has_field(path: &str) -> Self {
        let must = vec![Condition::Field { path: path.to_owned(), test: Test::Present }];
        Self { must, ..Self::default() }
    }

    /// The names that the filter's conditions begin with, attributes and fields within them.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        gather_names(self, &mut names);
        names.sort_unstable();
        names.dedup();
        names
    }

    /// True if every item matches, whatever it is.
    pub fn is_match_all(&self) -> bool {
        *self == Self::default()
    }
}

fn gather_names<'f>(filter: &'f Filter, names: &mut Vec<&'f str>) {
    let mut conditions: Vec<&Condition> =
        filter.must.iter().chain(&filter.should).chain(&filter.must_not).collect();
    while let Some(condition) = conditions.pop() {
        match condition {
            Condition::Field { path, .. } => names.push(path),
            Condition::Ids(_) => {}
            Condition::AtLeast { conditions: inner, .. } => conditions.extend(inner),
            Condition::Filter(inner) => gather_names(inner, names),
        }
    }
}
