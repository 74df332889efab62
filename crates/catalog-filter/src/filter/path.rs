//! Names of fields within attributes, such as `variants.color`.

use serde_json::Value;

/// The field of a text that is the text itself, as Elasticsearch names it in its usual mapping:
/// `title.keyword`.
pub(crate) const WHOLE_TEXT: &str = "keyword";

/// The column that a name begins with, the longest there is, and the fields within its values.
/// `None` where there is no such column. `[]` after a name, for the elements of a list, is passed
/// over: lists are gone through anyway.
pub(crate) fn split_path(
    name: &str,
    is_column: impl Fn(&str) -> bool,
) -> Option<(&str, Vec<&str>)> {
    let ends = name.match_indices('.').map(|(at, _)| at).chain([name.len()]);
    let ends: Vec<usize> = ends.collect();
    let column_to = |&end: &usize| {
        let column = &name[..end];
        let found = [column, without_mark(column)].into_iter().find(|&column| is_column(column))?;
        let fields =
            name.get(end + 1..).map_or_else(Vec::new, |fields| fields.split('.').collect());
        Some((found, fields.into_iter().map(without_mark).collect()))
    };
    ends.iter().rev().find_map(column_to)
}

fn without_mark(field: &str) -> &str {
    field.strip_suffix("[]").unwrap_or(field)
}

/// The values at a path of fields; lists on the way are gone through.
pub(crate) fn values_at<'v>(value: &'v Value, path: &[&str]) -> Vec<&'v Value> {
    let mut found = Vec::new();
    gather(value, path, &mut found);
    found
}

fn gather<'v>(value: &'v Value, path: &[&str], found: &mut Vec<&'v Value>) {
    match (path.split_first(), value) {
        (None, value) => found.push(value),
        (Some(_), Value::Array(elements)) => {
            elements.iter().for_each(|element| gather(element, path, found));
        }
        (Some((field, rest)), Value::Object(fields)) => {
            fields.get(*field).into_iter().for_each(|value| gather(value, rest, found));
        }
        (Some((&WHOLE_TEXT, [])), Value::String(_)) => found.push(value),
        _ => {}
    }
}
