//! Filters, rules and items of histories as clients write them, for the OpenAPI document.
//!
//! Questions are read by the crates that keep to them; these types say in a schema what those read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::ItemId;
use crate::named_item::NamedItem;

/// Conditions on items. An item matches where all of its members hold; the empty filter matches
/// all.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// All of these hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion, nullable = false)]
    pub must: Option<Conditions>,
    /// All of these hold: `must` by Elasticsearch's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion, nullable = false)]
    pub filter: Option<Conditions>,
    /// At least one of these holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion, nullable = false)]
    pub should: Option<Conditions>,
    /// None of these holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion, nullable = false)]
    pub must_not: Option<Conditions>,
    /// At least a number of these hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(no_recursion, nullable = false)]
    pub min_should: Option<MinShould>,
    /// Ids that do not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub exclude: Option<Vec<ItemId>>,
}

/// Several conditions, or one.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Conditions {
    /// Several.
    #[schema(no_recursion)]
    Several(Vec<Condition>),
    /// One.
    #[schema(no_recursion)]
    One(Box<Condition>),
}

/// Condition on an item, or a filter within the filter.
///
/// Attributes are named by their names, and fields within them with points, as `variants.color`. A
/// condition on a list holds where it does for one of its elements.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Condition {
    /// An attribute is a value.
    Match(MatchCondition),
    /// An attribute lies within bounds.
    Range(Box<RangeCondition>),
    /// The id is one of these.
    Ids(IdsCondition),
    /// The attribute has a value.
    Exists(ExistsCondition),
    /// The attribute has none, or an empty list.
    IsEmpty(EmptyCondition),
    /// An object within an attribute matches a filter.
    #[schema(no_recursion)]
    Nested(NestedCondition),
    /// A condition in Qdrant's spelling.
    Key(Box<KeyCondition>),
    /// A condition in another engine's spelling.
    Other(Box<OtherCondition>),
    /// A filter.
    #[schema(no_recursion)]
    Filter(Box<Filter>),
}

/// Value that attributes are compared with.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// A text; a moment as RFC 3339 has it.
    Text(String),
    /// A number; a moment as seconds since 1970.
    Number(f64),
    /// True or false.
    Boolean(bool),
}

/// An attribute is a value: `{"match": {"brand": "Acme"}}`, one of several: `{"match": {"brand":
/// ["Acme", "Zeta"]}}`.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"match": {"brand": "Acme"}}))]
pub struct MatchCondition {
    /// The name of one attribute, and what it is compared with.
    #[serde(rename = "match")]
    pub matches: BTreeMap<String, MatchValue>,
}

/// A value, several of which one is meant, or an object that says which.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum MatchValue {
    /// This one.
    One(Scalar),
    /// One of these.
    Any(Vec<Scalar>),
    /// A value that the object names, or leaves out.
    Named(NamedMatch),
}

/// One of these members.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedMatch {
    /// This one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub value: Option<Scalar>,
    /// One of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub any: Option<Vec<Scalar>>,
    /// The attribute is there and none of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub except: Option<Vec<Scalar>>,
}

/// An attribute lies within bounds: `{"range": {"price": {"gte": 10, "lt": 20}}}`.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"range": {"price": {"gte": 10, "lt": 20}}}))]
pub struct RangeCondition {
    /// The name of one attribute, and its bounds.
    pub range: BTreeMap<String, Bounds>,
}

/// Bounds, of which there is one or two: numbers, or texts, which are moments for timestamps.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// More than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub gt: Option<TextOrNumber>,
    /// This or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub gte: Option<TextOrNumber>,
    /// Less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lt: Option<TextOrNumber>,
    /// This or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lte: Option<TextOrNumber>,
}

/// A text or a number.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum TextOrNumber {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
}

/// The id is one of these: `{"ids": ["P0001"]}`.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"ids": ["P0001"]}))]
pub struct IdsCondition {
    /// The ids.
    pub ids: Vec<ItemId>,
}

/// The attribute has a value: `{"exists": "brand"}`.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"exists": "brand"}))]
pub struct ExistsCondition {
    /// Name of the attribute.
    pub exists: String,
}

/// The attribute has no value, or an empty list: `{"is_empty": "tags"}`.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"is_empty": "tags"}))]
pub struct EmptyCondition {
    /// Name of the attribute.
    pub is_empty: String,
}

/// An object within an attribute matches a filter: `{"nested": {"key": "variants", "filter":
/// {…}}}`.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"nested": {"key": "variants", "filter": {"match": {"color": "red"}}}}))]
pub struct NestedCondition {
    /// The attribute and the filter.
    #[schema(no_recursion)]
    pub nested: Nested,
}

/// An attribute and a filter, whose names are those of its fields.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Nested {
    /// Name of the attribute.
    pub key: String,
    /// The filter, or one condition.
    #[schema(no_recursion)]
    pub filter: Box<Condition>,
}

/// A condition with its attribute as `key`, and one of the others.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"key": "tags", "values_count": {"gte": 2}}))]
pub struct KeyCondition {
    /// Name of the attribute.
    pub key: String,
    /// The attribute is this.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub matches: Option<NamedMatch>,
    /// The attribute lies within these bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub range: Option<Bounds>,
    /// The attribute's list has this number of elements.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub values_count: Option<Counts>,
    /// The attribute has no value, or an empty list; or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub is_empty: Option<bool>,
}

/// Numbers of elements.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// More than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub gt: Option<u64>,
    /// This or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub gte: Option<u64>,
    /// Less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lt: Option<u64>,
    /// This or less.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lte: Option<u64>,
}

/// A number of some conditions hold, at least.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MinShould {
    /// The conditions.
    #[schema(no_recursion)]
    pub conditions: Vec<Condition>,
    /// Number of those that hold, at least.
    pub min_count: u64,
}

/// One of these members: a condition as Elasticsearch or Qdrant spell it, with the meaning that it
/// has there.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 1, max_properties = 1)]
pub struct OtherCondition {
    /// Elasticsearch's: an attribute is a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub term: Option<Map<String, Value>>,
    /// Elasticsearch's: an attribute is one of several values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub terms: Option<Map<String, Value>>,
    /// Elasticsearch's filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub bool: Option<Map<String, Value>>,
    /// Elasticsearch's filter around another.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub constant_score: Option<Map<String, Value>>,
    /// Elasticsearch's query around a filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub query: Option<Map<String, Value>>,
    /// All items.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub match_all: Option<Map<String, Value>>,
    /// No item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub match_none: Option<Map<String, Value>>,
    /// Qdrant's: the id is one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub has_id: Option<Vec<ItemId>>,
}

/// Rules of the business: caps, boosts, ties, pinned and excluded items, validity, diversity.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Limit on the items of one value of an attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub at_most: Option<Vec<AtMost>>,
    /// Limit on the items of one semantic ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub at_most_per_semantic_id: Option<u64>,
    /// Amounts added to the scores of some items.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub boosts: Option<Vec<Boost>>,
    /// Order of items with one semantic ID and equal scores.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tie_break: Option<TieBreak>,
    /// Ids of items that are in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub must_include: Option<Vec<ItemId>>,
    /// Ids of items that are not in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub must_exclude: Option<Vec<ItemId>>,
    /// Timestamp attributes from and to which an item may be recommended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub valid: Option<Valid>,
    /// Second ranking of the results.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub diversity: Option<Diversity>,
}

/// Limit on the items of one value of an attribute.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AtMost {
    /// Name of the attribute.
    pub attribute: String,
    /// Number of items.
    #[schema(minimum = 1)]
    pub items: u64,
}

/// An amount added to scores: `add`, or `attribute` and `weight`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Boost {
    /// Items that get it: a filter, or one condition; all without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub filter: Option<Condition>,
    /// The amount: 0.69 doubles an item's probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub add: Option<f64>,
    /// A number attribute that gives the amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub attribute: Option<String>,
    /// Factor of the attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub weight: Option<f64>,
    /// Summand after the factor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub offset: Option<f64>,
}

/// Order of items by an attribute.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TieBreak {
    /// Name of the attribute.
    pub attribute: String,
    /// The smallest first without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub order: Option<Order>,
}

/// Order of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The smallest first.
    Ascending,
    /// The largest first.
    Descending,
}

/// Timestamp attributes from and to which an item may be recommended, one or both.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Valid {
    /// Attribute with the first moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from: Option<String>,
    /// Attribute with the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub to: Option<String>,
    /// The moment to answer for, as RFC 3339 has it or in seconds since 1970; now without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub now: Option<TextOrNumber>,
}

/// Second ranking of the best results, with less likeness among neighbours.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Diversity {
    /// From 0, likeness alone, to 1, scores alone.
    #[schema(minimum = 0, maximum = 1)]
    pub lambda: f64,
    /// Number of results that are ranked again; four times `k` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub pool: Option<u64>,
}

/// An item of a history: its id, `{"codes": [0, 5, 16, 2]}`, or these codes as a list.
#[derive(Clone, Debug, ToSchema)]
#[schema(value_type = HistoryForm, example = json!("P0001"))]
pub struct HistoryEntry(pub NamedItem);

/// An item of a history as clients write it.
#[derive(Clone, Debug, ToSchema)]
#[serde(untagged)]
pub enum HistoryForm {
    /// Id of the item, or codes spelled as text, `<a_3><b_1>`.
    Id(String),
    /// An id of digits.
    Number(i64),
    /// Codes of the item.
    Codes(Vec<u32>),
    /// Codes of the item as an object.
    Named {
        /// The codes.
        codes: Vec<u32>,
    },
}
