//! `<a_236><b_231> \t title \t item ID`: the info files of generative recommenders.

use std::io::BufRead;

use serde_json::Map;

use super::codes::parse_codes;
use super::csv_records::{Dialect, Record, Records, separator_hint};
use super::csv_table;
use super::error::{Kind, Problem};
use super::lines::{Lines, without_end};
use super::{CheckedSink, ItemSink, SourceOptions};

pub(super) fn read<S: ItemSink>(
    input: impl BufRead,
    options: &SourceOptions,
    sink: &mut CheckedSink<'_, S>,
) -> Result<(), Problem> {
    let mut lines = Lines::new(input);
    let mut is_first = true;
    while let Some((line, text)) = lines.next_line()? {
        let text = without_end(text);
        if text.is_empty() {
            continue;
        }
        if is_first && let Some(names) = header(text, options) {
            let records = Records::of_lines(lines, tabs(options));
            return csv_table::read_rows(records, line, names, options, sink);
        }
        is_first = false;
        let mut fields = text.split('\t');
        let (Some(codes), Some(title), Some(id), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            if let Some(hint) = other_header(text, options).filter(|_| line == 1) {
                return Err(Problem::at(line, Kind::OneColumn { hint }));
            }
            let (found, line_start) = (text.split('\t').count(), text.chars().take(100).collect());
            return Err(Problem::at(line, Kind::FieldCount { found, line_start }));
        };
        sink.codes_from_text(line, id, codes)?;
        let mut attributes = Map::new();
        if !title.is_empty() {
            attributes.insert("title".to_owned(), title.into());
        }
        sink.push(line, id.to_owned(), attributes)?;
    }
    Ok(())
}

/// The names in a first line that is a table's header: no codes come first, and a column is named
/// as IDs or codes are.
fn header(text: &str, options: &SourceOptions) -> Option<Vec<String>> {
    let mut record = Record::default();
    let mut records = Records::in_dialect(text.as_bytes(), tabs(options));
    records.next_record(&mut record).ok()??;
    let names: Vec<String> = record.cells().map(str::to_owned).collect();
    let is_header = names.len() > 1
        && parse_codes(&names[0]).is_err()
        && names.iter().any(|name| {
            let name = name.trim_matches('"');
            options.is_known(name) || name == "code_0"
        });
    is_header.then_some(names)
}

/// Hint about a first line whose names stand between other marks than tabs.
fn other_header(text: &str, options: &SourceOptions) -> Option<String> {
    let hint = separator_hint(&[text])?;
    let mut names = text.split([';', '|', ',']).map(|name| name.trim_matches('"'));
    names.any(|name| options.is_known(name)).then_some(hint)
}

/// The dialect of tab-separated text.
pub(super) fn tabs(options: &SourceOptions) -> Dialect {
    Dialect { has_quotes: options.quoted_tabs, ..Dialect::TABS }
}
