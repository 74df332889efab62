//! Items in a table of text, separated by commas or tabs: the header says which column is what.

use std::io::BufRead;

use serde_json::Map;

use super::csv_records::{Dialect, Record, Records};
use super::error::{Kind, Problem};
use super::lines::Lines;
use super::{CheckedSink, CodeColumns, ItemColumns, ItemSink, SourceOptions};

pub(super) fn read<S: ItemSink>(
    input: impl BufRead,
    dialect: Dialect,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let mut records = Records::of_lines(Lines::new(input), dialect);
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
    check_quotes(&records, header_line, &names)?;
    let columns =
        ItemColumns::from_names(&names, options).map_err(|error| error.on_line(header_line))?;
    sink.columns(&names);
    let kinds: Vec<_> = names.iter().map(|name| sink.cells().kind(name)).collect();
    let mut record = Record::default();
    while let Some(line) = records.next_record(&mut record)? {
        check_count(line, &record, &names)?;
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
                let pieces = filled.iter().map(|&column| without_point(record.cell(column).trim()));
                sink.codes_from_pieces(line, id, pieces)?
            }
        };
        let mut attributes = Map::with_capacity(columns.attributes.len());
        for &column in &columns.attributes {
            let value = sink.cells().of_text(record.cell(column), kinds[column]);
            let value = value
                .map_err(|problem| bad_cell(line, id, &names[column], &record, column, problem))?;
            if let Some(value) = value {
                attributes.insert(names[column].clone(), value);
            }
        }
        sink.push(line, id.to_owned(), attributes)?;
    }
    Ok(())
}

/// Refuses a header of quoted names where quotes are characters as any other.
pub(super) fn check_quotes(
    records: &Records<impl BufRead>,
    header_line: u64,
    names: &[String],
) -> Result<(), Problem> {
    match names.iter().find(|name| name.len() > 1 && name.starts_with('"') && name.ends_with('"')) {
        Some(name) if !records.dialect().has_quotes => {
            Err(Problem::at(header_line, Kind::QuotedNames { name: name.clone() }))
        }
        _ => Ok(()),
    }
}

/// Refuses a row that has not a cell for each column.
pub(super) fn check_count(line: u64, record: &Record, names: &[String]) -> Result<(), Problem> {
    let (found, expected) = (record.len(), names.len());
    match found == expected {
        true => Ok(()),
        false => Err(Problem::at(line, Kind::CellCount { found, expected })),
    }
}

/// A cell that cannot be read as its column was declared.
pub(super) fn bad_cell(
    line: u64,
    id: &str,
    name: &str,
    record: &Record,
    column: usize,
    problem: String,
) -> Problem {
    let (item, name, value) = (id.to_owned(), name.to_owned(), record.cell(column).to_owned());
    Problem::at(line, Kind::Cell { item, name, value, problem })
}

/// `2` of `2.0`, as numbers are written that had missing ones among them.
fn without_point(cell: &str) -> &str {
    let whole = cell.strip_suffix(".0");
    whole.filter(|whole| whole.bytes().all(|byte| byte.is_ascii_digit())).unwrap_or(cell)
}

/// The columns up to the last whose cell is filled.
fn without_trailing_empty<'c>(record: &Record, columns: &'c [usize]) -> &'c [usize] {
    let is_filled = |&column: &usize| !record.cell(column).trim().is_empty();
    let len = columns.iter().rposition(is_filled).map_or(0, |last| last + 1);
    &columns[..len]
}
