//! Errors of filters that are malformed, or do not fit the columns.

use super::{MAX_CONDITIONS, MAX_DEPTH, MAX_VALUES};
use crate::columns::ColumnKind;

/// A filter that is none, or that does not fit the columns; the message names the place, what is
/// there, and what could be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct FilterError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Kind {
    #[error("a filter is a JSON object, and this is none: {0}")]
    NoJson(String),
    #[error("{path}: {found} cannot stand here; {expected}")]
    Unexpected { path: String, found: String, expected: String },
    #[error("{path}: filters nest deeper than {MAX_DEPTH}; use lists of conditions instead")]
    TooDeep { path: String },
    #[error(
        "{path}: the filter has more than {MAX_CONDITIONS} conditions; give match a list of values, \
        or mark such items with an attribute, and match that"
    )]
    TooManyConditions { path: String },
    #[error(
        "{path}: the filter has more than {MAX_VALUES} values and ids; mark such items with an \
        attribute, and match that"
    )]
    TooManyValues { path: String },
    #[error("no item has the attribute {column:?}{}; {columns}", did_you_mean(.nearest))]
    UnknownColumn { column: String, nearest: Option<String>, columns: String },
    #[error(
        "no item has the attribute {name:?}: {column:?} is {kind} and has no fields; write {column:?}"
    )]
    NoFields { name: String, column: String, kind: ColumnKind },
    #[error(
        "no item has the attribute \"_id\"; ids are asked for by {{\"ids\": [\"P1\", \"P2\"]}}"
    )]
    IdAsAttribute,
    #[error("{condition} does not fit the attribute {column:?}, which is {kind}{why}; {way_out}")]
    Unfit {
        condition: String,
        column: String,
        kind: ColumnKind,
        why: String,
        way_out: &'static str,
    },
}

impl FilterError {
    /// True if the filter names an attribute that no item has.
    pub fn is_unknown_column(&self) -> bool {
        matches!(
            self.kind,
            Kind::UnknownColumn { .. } | Kind::NoFields { .. } | Kind::IdAsAttribute
        )
    }

    /// True if the filter asks something of an attribute that its kind cannot answer.
    pub fn is_wrong_kind(&self) -> bool {
        matches!(self.kind, Kind::Unfit { .. })
    }
}

impl From<Kind> for FilterError {
    fn from(kind: Kind) -> Self {
        Self { kind }
    }
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}
