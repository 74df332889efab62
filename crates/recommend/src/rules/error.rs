//! Rules that cannot be kept.

use palmette_catalog_filter::{ColumnKind, FilterError};

use super::MAX_POOL;

/// Rules that are none, contradict each other, or do not fit the catalog.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// Not JSON.
    #[error("rules are a JSON object, and this is none: {0}")]
    NoJson(String),
    /// A value that cannot stand where it does.
    #[error("{path}: {found} cannot stand here; {expected}")]
    Unexpected {
        /// Place in the document.
        path: String,
        /// Value that stands there.
        found: String,
        /// Values that may.
        expected: String,
    },
    /// A key that no rule has.
    #[error(
        "{path}: there is no rule {key:?} here{hint}; there are {keys}",
        hint = nearest.as_ref().map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
    )]
    UnknownKey {
        /// Place of the object.
        path: String,
        /// The key.
        key: String,
        /// A key that differs by little.
        nearest: Option<String>,
        /// Every key.
        keys: String,
    },
    /// A filter within the rules, or an attribute that no item has.
    #[error("{rule}: {error}")]
    Filter {
        /// The rule.
        rule: String,
        /// Problem of the filter.
        error: Box<FilterError>,
    },
    /// An attribute of a kind that the rule cannot use.
    #[error("{rule} cannot use the attribute {attribute:?}, which is {kind}: it takes {needed}")]
    WrongKind {
        /// The rule.
        rule: String,
        /// The attribute.
        attribute: String,
        /// Kind of the attribute.
        kind: ColumnKind,
        /// Kinds that the rule takes.
        needed: &'static str,
    },
    /// A boost that leaves the range of scores.
    #[error("the boosts of item {id:?} sum to {sum}, which is no score: give smaller amounts")]
    NoScore {
        /// Id of the item.
        id: String,
        /// Sum of its boosts.
        sum: f64,
    },
    /// A pinned id that no item has.
    #[error("must_include names {0:?}, and no item has this id: leave it out, or add the item")]
    UnknownPin(String),
    /// A pinned item that may not be recommended.
    #[error("must_include names {id:?}, which {by} refuses: change one of the two")]
    PinRefused {
        /// The id.
        id: String,
        /// The rule that refuses it.
        by: &'static str,
    },
    /// Pinned items that reach past a cap by themselves.
    #[error(
        "the items of must_include before and with {id:?} are more than {cap} allows: pin fewer, or raise it"
    )]
    PinsOverCap {
        /// The first that is too many.
        id: String,
        /// The cap.
        cap: String,
    },
    /// More pinned items than an answer has places.
    #[error(
        "must_include names {pins} items, the answer has {k} places: pin fewer, or ask for more items"
    )]
    TooManyPins {
        /// Number of pinned items.
        pins: usize,
        /// Number of places.
        k: usize,
    },
    /// Validity without a moment.
    #[error(
        "valid needs the moment of the request: give it as \"now\", an RFC 3339 time or seconds since 1970"
    )]
    NoNow,
    /// A pool that is smaller than the answer or too large.
    #[error(
        "diversity ranks {pool} results for an answer of {k}: give a pool from {k} to {MAX_POOL}, and a k of at most {MAX_POOL}"
    )]
    Pool {
        /// Results to be ranked.
        pool: usize,
        /// Items of the answer.
        k: usize,
    },
    /// A search that is not held to the catalog cannot keep rules.
    #[error(
        "rules need a search under the catalog's masks: draft with --verify masks, or leave the rules out"
    )]
    FreeDraft,
}

impl RulesError {
    /// A filter or an attribute of a rule that does not fit.
    pub(super) fn filter(rule: impl Into<String>, error: FilterError) -> Self {
        Self::Filter { rule: rule.into(), error: Box::new(error) }
    }
}
