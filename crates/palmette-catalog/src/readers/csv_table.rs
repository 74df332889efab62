//! Comma-separated items: the header says which column is what.

use std::collections::HashSet;
use std::io::BufRead;

use serde_json::{Map, Number, Value};

use super::collector::Collector;
use super::csv_records::Records;
use super::error::{Kind, Problem};
use super::json::{CODES_NAMES, ID_NAMES};

pub(super) fn read(input: impl BufRead, collector: &mut Collector) -> Result<(), Problem> {
    let mut records = Records::new(input);
    let mut cells = Vec::new();
    let Some(header_line) = records.next_record(&mut cells)? else { return Ok(()) };
    let columns = std::mem::take(&mut cells);
    let header = Header::from_columns(&columns).map_err(|kind| Problem::at(header_line, kind))?;

    while let Some(line) = records.next_record(&mut cells)? {
        if cells.len() != columns.len() {
            let (found, expected) = (cells.len(), columns.len());
            return Err(Problem::at(line, Kind::CellCount { found, expected }));
        }
        let id = cells[header.id].as_str();
        let codes = match &header.codes {
            CodeColumns::Whole(column) => collector.codes_from_text(line, id, &cells[*column])?,
            CodeColumns::PerLevel(columns) => {
                let cells: Vec<&str> = columns.iter().map(|&column| cells[column].trim()).collect();
                let filled =
                    without_trailing_empty(&cells, id).map_err(|kind| Problem::at(line, kind))?;
                collector.codes_from_pieces(line, id, filled.iter().copied())?
            }
        };
        let attributes: Map<String, Value> = header
            .attributes
            .iter()
            .filter(|&&column| !cells[column].is_empty())
            .map(|&column| (columns[column].clone(), attribute(&cells[column])))
            .collect();
        collector.push(line, id.to_owned(), codes, attributes)?;
    }
    Ok(())
}

/// What each column holds, as column numbers.
struct Header {
    id: usize,
    codes: CodeColumns,
    attributes: Vec<usize>,
}

enum CodeColumns {
    /// One column with all codes.
    Whole(usize),
    /// Column numbers by level.
    PerLevel(Vec<usize>),
}

impl Header {
    fn from_columns(columns: &[String]) -> Result<Header, Kind> {
        let mut names = HashSet::new();
        if let Some(name) = columns.iter().find(|name| !names.insert(name.as_str())) {
            return Err(Kind::DuplicateColumn { name: name.clone() });
        }
        let Some(id) = find_column(columns, ID_NAMES)? else {
            return Err(Kind::MissingField { names: ID_NAMES, found: columns.to_vec() });
        };
        let whole = find_column(columns, CODES_NAMES)?;
        let levels = level_columns(columns)?;
        let codes = match (whole, levels.first()) {
            (Some(whole), Some(&level)) => {
                let (first, second) = (columns[whole].clone(), columns[level].clone());
                return Err(Kind::BothFields { first, second });
            }
            (Some(whole), None) => CodeColumns::Whole(whole),
            (None, Some(_)) => CodeColumns::PerLevel(levels),
            (None, None) => {
                const NAMES: &[&str] = &["codes", "semantic_id", "sid", "code_0"];
                return Err(Kind::MissingField { names: NAMES, found: columns.to_vec() });
            }
        };
        let is_attribute = |&column: &usize| {
            column != id
                && match &codes {
                    CodeColumns::Whole(whole) => column != *whole,
                    CodeColumns::PerLevel(_) => level_of(&columns[column]).is_none(),
                }
        };
        let attributes = (0..columns.len()).filter(is_attribute).collect();
        Ok(Header { id, codes, attributes })
    }
}

fn find_column(columns: &[String], names: &[&str]) -> Result<Option<usize>, Kind> {
    let mut found = (0..columns.len()).filter(|&column| names.contains(&columns[column].as_str()));
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => {
            Err(Kind::BothFields { first: columns[first].clone(), second: columns[second].clone() })
        }
        (first, _) => Ok(first),
    }
}

/// The columns `code_0`, `code_1`, …, wherever they stand.
fn level_columns(columns: &[String]) -> Result<Vec<usize>, Kind> {
    let mut levels: Vec<(usize, usize)> = columns
        .iter()
        .enumerate()
        .filter_map(|(column, name)| Some((level_of(name)?, column)))
        .collect();
    levels.sort_unstable();
    if let Some(missing) = (0..levels.len()).find(|&level| levels[level].0 != level) {
        return Err(Kind::CodeColumnGap { missing });
    }
    Ok(levels.into_iter().map(|(_, column)| column).collect())
}

/// 12 of `code_12`; `code_012` and `code_name` are attributes.
fn level_of(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("code_")?;
    let level: usize = digits.parse().ok()?;
    (level.to_string() == digits).then_some(level)
}

fn without_trailing_empty<'a, 'b>(cells: &'a [&'b str], item: &str) -> Result<&'a [&'b str], Kind> {
    let filled = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
    if let Some(level) = cells[..filled].iter().position(|cell| cell.is_empty()) {
        return Err(Kind::CodeCellGap { item: item.to_owned(), level, later: filled - 1 });
    }
    Ok(&cells[..filled])
}

/// A number or truth value only where it prints back as `cell`, up to zeros that end a decimal
/// fraction: `1.50` is a price, `007` a name.
fn attribute(cell: &str) -> Value {
    match cell {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
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
