//! Items in a table of text, separated by commas or tabs: the header says which column is what.

use std::io::BufRead;

use serde_json::{Map, Number, Value};

use super::csv_records::{Record, Records};
use super::error::{Kind, Problem};
use super::lines::Lines;
use super::{CheckedSink, CodeColumns, ItemColumns, ItemSink, SourceOptions};

pub(super) fn read<S: ItemSink>(
    input: impl BufRead,
    separator: char,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let mut records = Records::of_lines(Lines::new(input), separator);
    let mut record = Record::default();
    let Some(header_line) = records.next_record(&mut record)? else { return Ok(()) };
    let names = record.cells().map(str::to_owned).collect();
    read_rows(records, header_line, names, options, sink)
}

/// Reads the records after the header, which stood in `header_line` and has these `names`.
pub(super) fn read_rows<S: ItemSink>(
    mut records: Records<impl BufRead>,
    header_line: u64,
    names: Vec<String>,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let columns =
        ItemColumns::from_names(&names, options).map_err(|error| error.on_line(header_line))?;
    let mut record = Record::default();
    while let Some(line) = records.next_record(&mut record)? {
        if record.len() != names.len() {
            let (found, expected) = (record.len(), names.len());
            return Err(Problem::at(line, Kind::CellCount { found, expected }));
        }
        let id = record.cell(columns.id);
        match &columns.codes {
            CodeColumns::Whole(column) => sink.codes_from_text(line, id, record.cell(*column))?,
            CodeColumns::PerLevel(columns) => {
                let filled = without_trailing_empty(&record, columns);
                let gap = filled.iter().position(|&column| record.cell(column).trim().is_empty());
                if let Some(level) = gap {
                    let name = |level: usize| names[columns[level]].clone();
                    let (item, empty, later) = (id.into(), name(level), name(filled.len() - 1));
                    return Err(Problem::at(line, Kind::CodeCellGap { item, empty, later }));
                }
                let pieces = filled.iter().map(|&column| record.cell(column).trim());
                sink.codes_from_pieces(line, id, pieces)?
            }
        };
        let mut attributes = Map::with_capacity(columns.attributes.len());
        for &column in &columns.attributes {
            let cell = record.cell(column);
            if !cell.is_empty() {
                attributes.insert(names[column].clone(), attribute(cell));
            }
        }
        sink.push(line, id.to_owned(), attributes)?;
    }
    Ok(())
}

/// The columns up to the last whose cell is filled.
fn without_trailing_empty<'c>(record: &Record, columns: &'c [usize]) -> &'c [usize] {
    let is_filled = |&column: &usize| !record.cell(column).trim().is_empty();
    let len = columns.iter().rposition(is_filled).map_or(0, |last| last + 1);
    &columns[..len]
}

/// A number or truth value only where it prints back as `cell`, up to zeros that end a decimal
/// fraction: `1.50` is a price, `007` a name.
fn attribute(cell: &str) -> Value {
    match cell {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    // Every number that prints back starts so; most texts do not.
    if !cell.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        return Value::String(cell.to_owned());
    }
    let number = (cell.parse::<u64>().ok().map(Number::from))
        .or_else(|| cell.parse::<i64>().ok().map(Number::from))
        .or_else(|| cell.parse::<f64>().ok().and_then(Number::from_f64));
    match number {
        Some(number) if number.to_string() == without_ending_zeros(cell) => Value::Number(number),
        _ => Value::String(cell.to_owned()),
    }
}

/// `19.90` as `19.9`, `2.00` as `2.0`; other texts as they are.
fn without_ending_zeros(cell: &str) -> &str {
    match cell.split_once('.') {
        Some((whole, fraction)) if fraction.len() > 1 => {
            let kept = fraction.trim_end_matches('0').len().max(1);
            &cell[..whole.len() + 1 + kept]
        }
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_back_as_they_were() {
        for number in ["0", "-3", "18446744073709551615", "19.99", "1.0", "-0.5"] {
            assert!(attribute(number).is_number(), "{number}");
            assert_eq!(attribute(number).to_string(), number);
        }
        assert_eq!(attribute("1.50"), Value::from(1.5));
        assert_eq!(attribute("20.00"), Value::from(20.0));
        for text in [
            "007",
            "+1",
            "-0",
            ".5",
            "1.",
            "NaN",
            "inf",
            "1e999",
            "1,5",
            " 1",
            "True",
            "123456789012345678901234567890",
            "0.1000000000000000055",
        ] {
            assert_eq!(attribute(text), Value::String(text.to_owned()));
        }
    }
}
