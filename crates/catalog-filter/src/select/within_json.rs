//! Conditions on a column of JSON, or on fields within its values.

use rayon::prelude::*;
use serde_json::Value;

use super::code_set::CodeSet;
use super::unfit::{large_integers, wrong_kind_of_column};
use crate::columns::column::Column;
use crate::columns::fields::FieldColumn;
use crate::columns::texts::Texts;
use crate::filter::{Bound, FilterError, Scalar, Test, values_at};

/// The codes of JSON values of which a test holds, and whether any of them has the path.
pub(super) struct WithinJson {
    pub(super) set: CodeSet,
    pub(super) is_path: bool,
}

/// Asks a column of JSON what its values hold at a path of fields.
///
/// Cost: the first condition on a path parses all distinct values, those after it compare what was
/// found. `nested` parses them each time.
pub(super) fn within_json(
    column: &Column,
    texts: &Texts,
    fields: &[&str],
    test: &Test,
) -> Result<WithinJson, FilterError> {
    let (name, compares) = match test {
        Test::Any(_) | Test::Except(_) => ("match", true),
        Test::Range { .. } => ("range", true),
        Test::Nested(_) => ("nested", false),
        Test::Exists | Test::Empty | Test::Count { .. } | Test::Present => ("", false),
    };
    if column.clash.is_some() && !name.is_empty() {
        return Err(wrong_kind_of_column(column, name));
    }
    let field = column.fields.get(texts, fields);
    if compares && field.has_large_integers() {
        return Err(large_integers(column, name));
    }
    let codes = match test {
        Test::Nested(_) => nested(texts, fields, test),
        test => of_field(&field, test),
    };
    Ok(WithinJson { set: CodeSet::from_ascending(codes), is_path: field.is_present() })
}

/// The codes of which a test holds, ascending.
fn of_field(field: &FieldColumn, test: &Test) -> Vec<u32> {
    let leaves = field.leaves();
    let find = |values: &[Scalar]| {
        let mut found: Vec<u32> = values
            .iter()
            .filter_map(|value| leaves.binary_search(value).ok().map(|at| at as u32))
            .collect();
        found.sort_unstable();
        CodeSet::from_ascending(found)
    };
    match test {
        Test::Any(values) => {
            let found = find(values);
            field.with_leaf(|leaf| found.contains(leaf))
        }
        Test::Except(values) => {
            let found = find(values);
            field.with_other_leaf(|leaf| found.contains(leaf))
        }
        Test::Range { lower, upper } => {
            let within = leaves_within(leaves, lower.as_ref(), upper.as_ref());
            field.with_leaf(|leaf| within.contains(&(leaf as usize)))
        }
        Test::Exists => field.filled(),
        Test::Empty => field.empty(),
        Test::Count { least, most } => field.with_count(|count| (*least..=*most).contains(&count)),
        Test::Present => field.present(),
        Test::Nested(_) => unreachable!("asked of each value"),
    }
}

/// The places of the leaves within bounds: leaves are compared with those of their own kind.
fn leaves_within(
    leaves: &[Scalar],
    lower: Option<&Bound>,
    upper: Option<&Bound>,
) -> std::ops::Range<usize> {
    let kind = |scalar: &Scalar| match scalar {
        Scalar::Boolean(_) => 0,
        Scalar::Number(_) => 1,
        Scalar::Text(_) => 2,
    };
    let (mut start, mut end) = (0, leaves.len());
    for bound in lower.iter().chain(&upper) {
        let of_kind = kind(&bound.value);
        start = start.max(leaves.partition_point(|leaf| kind(leaf) < of_kind));
        end = end.min(leaves.partition_point(|leaf| kind(leaf) <= of_kind));
    }
    let num_before = |bound: &Bound, or_equal: bool| {
        leaves.partition_point(|leaf| *leaf < bound.value || or_equal && *leaf == bound.value)
    };
    if let Some(bound) = lower {
        start = start.max(num_before(bound, !bound.inclusive));
    }
    if let Some(bound) = upper {
        end = end.min(num_before(bound, bound.inclusive));
    }
    start..end.max(start)
}

/// The codes of values with an object at the path that matches.
fn nested(texts: &Texts, fields: &[&str], test: &Test) -> Vec<u32> {
    let holds = |at: &usize| {
        // Only a damaged file holds text that is no JSON.
        let value: Value = serde_json::from_str(texts.get(*at)).unwrap_or_default();
        test.holds("", &values_at(&value, fields), None)
    };
    (0..texts.len()).into_par_iter().filter(holds).map(|at| at as u32 + 1).collect()
}
