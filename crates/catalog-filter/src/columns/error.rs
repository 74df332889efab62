//! Errors of rows and declarations that columns cannot take.

use super::kind::{ColumnKind, ValueKind};
use super::{MAX_COLUMNS, MAX_NESTING, MAX_VALUE_BYTES, timestamp};

/// A row, or a declaration, that [`ColumnsBuilder`](super::ColumnsBuilder) cannot take; the message
/// names the attribute, the rule and the way out; which row it is knows whoever pushed it. The
/// builder is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct AttributeError {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Kind {
    #[error(
        "attribute {name:?} would be one more than {MAX_COLUMNS}, the most there can be; \
        gather those that are never filtered on in one object"
    )]
    TooManyColumns { name: String },
    #[error("row {row} is one more than a catalog can hold")]
    TooManyRows { row: usize },
    #[error(
        "attribute {name:?} takes {bytes} bytes as text, over the limit of \
        {MAX_VALUE_BYTES}; keep it elsewhere and give its address"
    )]
    TooLong { name: String, bytes: usize },
    #[error(
        "attribute {name:?} is nested deeper than {MAX_NESTING} lists or objects; give \
        it as text"
    )]
    TooDeep { name: String },
    #[error(
        "attribute {name:?} was declared {declared} and is {value}; {}", 
        way_out(*.declared)
    )]
    NotAsDeclared { name: String, declared: ColumnKind, value: String },
    #[error("attribute {name:?} cannot be declared {kind}: {problem}")]
    Declaration { name: String, kind: ColumnKind, problem: String },
}

impl From<Kind> for AttributeError {
    fn from(kind: Kind) -> Self {
        Self { kind }
    }
}

fn way_out(declared: ColumnKind) -> String {
    let takes = match declared {
        ColumnKind::Keyword => ValueKind::Text.to_string(),
        ColumnKind::Number => "numbers, integers within ±2^53".to_owned(),
        ColumnKind::Boolean => ValueKind::Boolean.to_string(),
        ColumnKind::Timestamp => timestamp::FORMS.to_owned(),
        ColumnKind::Keywords => ValueKind::TextList.to_string(),
        ColumnKind::Json => "anything".to_owned(),
    };
    format!("such a column takes {takes}, or null where there is no value")
}
