//! Errors of conditions that do not fit what a column holds.

use crate::columns::ColumnKind;
use crate::columns::column::Column;
use crate::filter::{FilterError, FilterErrorKind, Scalar};
use crate::message_values::shown;

/// The value is not one that such a column is compared with.
pub(super) fn wrong_kind(column: &Column, condition: &str, value: &Scalar) -> FilterError {
    let kind = column.dictionary.kind();
    let way_out = match kind {
        ColumnKind::Keyword => "compare it with text, in quotes",
        ColumnKind::Number => "compare it with a number, without quotes",
        ColumnKind::Boolean => "compare it with true or false, without quotes",
        ColumnKind::Timestamp => {
            "compare it with a date (2026-11-21) or date and time (2026-11-21T09:30:00Z) or seconds \
            since 1970, within the years 0 to 9999"
        }
        ColumnKind::Keywords => "compare it with one of the texts in its lists",
        ColumnKind::Json => "ask only whether it exists",
    };
    FilterErrorKind::Unfit {
        condition: format!("{condition} with {}", shown(&value.to_json())),
        column: column.name.clone(),
        kind,
        why: String::new(),
        way_out,
    }
    .into()
}

/// Such a column has no such condition.
pub(super) fn wrong_kind_of_column(column: &Column, condition: &str) -> FilterError {
    let kind = column.dictionary.kind();
    let why = column.clash.map(|(a, b)| format!(" since it holds {a} and {b}"));
    let way_out = match kind {
        ColumnKind::Json => {
            "only whether it exists or is empty can be asked of it; give it the same kind of value for \
            all items, or declare it json, to compare each value by its own kind"
        }
        _ if condition == "nested" => "it asks for fields of objects, and there are none",
        _ => "use match",
    };
    FilterErrorKind::Unfit {
        condition: condition.to_owned(),
        column: column.name.clone(),
        kind,
        why: why.unwrap_or_default(),
        way_out,
    }
    .into()
}

/// Values that are asked for hold integers that lose digits where they are compared.
pub(super) fn large_integers(column: &Column, condition: &str) -> FilterError {
    FilterErrorKind::Unfit {
        condition: condition.to_owned(),
        column: column.name.clone(),
        kind: column.dictionary.kind(),
        why: " since it holds integers outside ±2^53".to_owned(),
        way_out: "they would lose digits where they are compared; give them as text",
    }
    .into()
}
