//! `{"item_id": "P1", "codes": [1, 2, 3], "price": 9.5}`: an item a line.

use std::io::BufRead;

use super::error::Problem;
use super::json::{CODES_NAMES, Fields, ID_NAMES, id_from_json, take_field};
use super::json_row::read_row;
use super::lines::Lines;
use super::{CheckedSink, ItemSink};

pub(super) fn read<S: ItemSink>(
    input: impl BufRead,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let mut lines = Lines::new(input);
    let (mut codes, mut num_fields) = (Vec::new(), 0);
    while let Some((line, text)) = lines.next_line()? {
        if text.trim_ascii().is_empty() {
            continue;
        }
        match read_row(text, &mut codes, num_fields) {
            Some(row) => {
                sink.codes_from_numbers(line, &row.id, codes.iter().copied())?;
                num_fields = row.attributes.len();
                sink.push(line, row.id, row.attributes)?;
            }
            None => read_any_row(line, text, sink)?,
        }
    }
    Ok(())
}

/// Reads a line in any of the spellings, or says what is wrong with it.
fn read_any_row<S: ItemSink>(
    line: u64,
    text: &str,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let Fields(mut object) =
        serde_json::from_str(text).map_err(|error| Problem::json(line, error))?;
    let id = id_from_json(line, take_field(line, &mut object, ID_NAMES)?)?;
    let codes = take_field(line, &mut object, CODES_NAMES)?;
    sink.codes_from_json(line, &id, &codes)?;
    sink.push(line, id, object)
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
            let result = read(text.as_bytes(), &mut CheckedSink::new(&mut short, Place::Line));
            let mut sink = CheckedSink::new(&mut long, Place::Line);
            let expected = read_any_row(1, &text, &mut sink);
            prop_assert_eq!(result.map_err(|e| e.to_string()), expected.map_err(|e| e.to_string()));
            prop_assert_eq!(short, long);
        }
    }
}
