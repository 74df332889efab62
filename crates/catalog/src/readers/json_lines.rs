//! `{"item_id": "P1", "codes": [1, 2, 3], "price": 9.5}`: an item a line, or in a list.

use std::io::BufRead;

use serde_json::{Map, Value};

use super::error::{Kind, Problem};
use super::json::{Fields, for_each_element, id_from_json, take_field};
use super::json_row::{Names, read_row};
use super::lines::Lines;
use super::{CheckedSink, ItemSink, SourceOptions};

pub(super) fn read<S: ItemSink>(
    input: impl BufRead,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let names = Names::new(options);
    let mut lines = Lines::new(input);
    let (mut codes, mut num_fields) = (Vec::new(), 0);
    while let Some((line, text)) = lines.next_line()? {
        if text.trim_ascii().is_empty() {
            continue;
        }
        let plain = names.as_ref().and_then(|names| read_row(text, names, &mut codes, num_fields));
        match plain {
            Some(row) => {
                sink.codes_from_numbers(line, &row.id, codes.iter().copied())?;
                num_fields = row.attributes.len();
                sink.push(line, row.id, row.attributes)?;
            }
            None => read_any_row(line, text, options, sink)?,
        }
    }
    Ok(())
}

/// Reads one list of objects.
pub(super) fn read_list<S: ItemSink>(
    input: impl BufRead,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    for_each_element(input, |line, Fields(object)| push_object(line, object, options, sink))
}

/// Reads a line in any of the spellings, or says what is wrong with it.
fn read_any_row<S: ItemSink>(
    line: u64,
    text: &str,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let Fields(object) =
        serde_json::from_str(text).map_err(|error| Problem::json_line(line, text, error))?;
    push_object(line, object, options, sink)
}

fn push_object<S: ItemSink>(
    line: u64,
    mut object: Map<String, Value>,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let missing_id = |found: &[String]| Kind::missing_id(options, found);
    let names = options.id_names_among(|name| object.contains_key(name));
    let id = id_from_json(line, take_field(line, &mut object, &names, missing_id)?)?;
    let codes = match options.level_names() {
        Some(names) => take_levels(line, &id, &mut object, names)?,
        None => {
            let missing = |found: &[String]| Kind::missing_codes(options, None, found);
            take_field(line, &mut object, &options.codes_names(), missing)?
        }
    };
    sink.codes_from_json(line, &id, &codes)?;
    sink.push(line, id, object)
}

/// The codes of an object that has a field a level; the last of them may be missing or null.
fn take_levels(
    line: u64,
    id: &str,
    object: &mut Map<String, Value>,
    names: &[String],
) -> Result<Value, Problem> {
    if let Some(none) = names.iter().all(|name| !object.contains_key(name)).then(|| &names[0]) {
        let found: Vec<String> = object.keys().cloned().collect();
        return Err(Problem::at(line, Kind::missing_codes_of(none, &found)));
    }
    let mut codes: Vec<Value> =
        names.iter().map(|name| object.shift_remove(name).unwrap_or_default()).collect();
    let filled = codes.iter().rposition(|code| !code.is_null()).map_or(0, |last| last + 1);
    codes.truncate(filled);
    match codes.iter().position(Value::is_null) {
        Some(level) => {
            let (item, empty, later) = (id.into(), names[level].clone(), names[filled - 1].clone());
            Err(Problem::at(line, Kind::CodeCellGap { item, empty, later }))
        }
        None => Ok(codes.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::{Place, SourceItems};
    use proptest::prelude::*;

    /// Objects of the fields that matter, whole and broken.
    fn row() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec![
            "item_id",
            "id",
            "codes",
            "sid",
            "semantic_id",
            "a",
            "b",
            "\\u0069d",
        ]);
        let value = prop::sample::select(vec![
            "\"x\"",
            "\"\"",
            "7",
            "-7",
            "1.5",
            "null",
            "true",
            "[1, 2]",
            "[0,255,2147483647]",
            "[]",
            "[2147483648]",
            "[-1]",
            "[1.0]",
            "[\"<a_1>\", \"<b_2>\"]",
            "[1, \"2\"]",
            "[[1]]",
            "\"<a_1><b_2>\"",
            "\"1 2\"",
            "{\"a\": 1}",
            "18446744073709551616",
            "\"\\u00e9\"",
            "[1",
        ]);
        let end = prop::sample::select(vec!["}", "}", "}", "}", " } ", "} x", "", ",}"]);
        (prop::collection::vec((name, value), 0..5), end).prop_map(|(fields, end)| {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
            format!("{{{}{end}", fields.join(", "))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// The short way and the way for any spelling agree wherever the short way answers.
        #[test]
        fn short_way_is_the_long_way(text in row()) {
            let (mut short, mut long) = (SourceItems::default(), SourceItems::default());
            let options = SourceOptions::default();
            let mut sink = CheckedSink::new(&mut short, Place::Line);
            let result = read(text.as_bytes(), &options, &mut sink);
            let mut sink = CheckedSink::new(&mut long, Place::Line);
            let expected = read_any_row(1, &text, &options, &mut sink);
            prop_assert_eq!(result.map_err(|e| e.to_string()), expected.map_err(|e| e.to_string()));
            prop_assert_eq!(short, long);
        }
    }
}
