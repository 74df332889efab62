//! Histories from text files, streamed.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;

use palmette_catalog::readers::{
    Dialect, Record, Records, check_joints, not_text, parse_literal, separator_hint, utf8_text,
};
use palmette_catalog_filter::{UniqueValue, parse_unique};
use palmette_recommend::{NamedItem, PromptFields};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::HistoryError;
use super::columns::HistoryColumns;
use super::format::HistoryFormat;
use super::input::{Decompressed, FedLines, decompressed};
use super::lines::Lines;
use super::options::{HistoryOptions, ReadNotes};
use super::record::{BadRecord, HistoryRecord};
use super::row_filter::cell_value;
use super::rows::{EachRecord, HistoryRows, Progress};
use super::tfrecord;

/// Reads the histories of a file, in order; what is to be said of it.
///
/// One record is in memory at a time; where rows are single things that users did, all of them. A
/// record that cannot be read is handed on as that, and the next one follows. A file that is gzip
/// is decompressed.
///
/// # Errors
/// When the file cannot be read, or is so wrong that no records can be told apart.
pub fn read_histories<'a>(
    path: &Path,
    format: HistoryFormat,
    options: &HistoryOptions,
    each: &'a mut EachRecord<'a>,
) -> Result<ReadNotes, HistoryError> {
    let cannot = |e| HistoryError::new(path, format!("cannot be read: {e}"));
    let file = File::open(path).map_err(cannot)?;
    let bytes = file.metadata().map_or(0, |about| about.len());
    parse_histories(path, BufReader::new(file), bytes, format, options, each)
}

/// Reads histories from `input`, of so many bytes or 0 where that is not known; `name` is what
/// errors call it.
///
/// # Errors
/// As [`read_histories`].
pub fn parse_histories<'a>(
    name: &Path,
    input: impl BufRead,
    bytes: u64,
    format: HistoryFormat,
    options: &HistoryOptions,
    each: &'a mut EachRecord<'a>,
) -> Result<ReadNotes, HistoryError> {
    let error = |reason| HistoryError::new(name, reason);
    options.check(format).map_err(error)?;
    let Decompressed { input, head, is_gzip } =
        decompressed(input).map_err(|e| error(cannot_read(e)))?;
    let bytes = if is_gzip { 0 } else { bytes };
    if format == HistoryFormat::TfRecord {
        return tf_records(input, bytes, options, HistoryRows::new("record", each)).map_err(error);
    }
    if let Some(what) = not_text(&head) {
        return Err(error(what));
    }
    let cells = Cells { format, options };
    let separator = |usual| options.separator.unwrap_or(usual);
    let rows = |each| {
        HistoryRows::new(if format == HistoryFormat::Json { "history" } else { "line" }, each)
    };
    let read = match format {
        HistoryFormat::Json => json_document(input, bytes, options, rows(each)),
        HistoryFormat::Csv => {
            let dialect = Dialect { separator: separator(','), has_quotes: true };
            cells.records(input, bytes, dialect, rows(each))
        }
        HistoryFormat::Inter | HistoryFormat::Tsv if options.quoted_tabs => {
            let dialect = Dialect { separator: separator('\t'), has_quotes: true };
            cells.records(input, bytes, dialect, rows(each))
        }
        _ => {
            let input = BufReader::new(FedLines::new(input));
            match format {
                HistoryFormat::JsonLines => objects(input, bytes, options, json_object, rows(each)),
                HistoryFormat::Python => objects(input, bytes, options, python_object, rows(each)),
                HistoryFormat::Sequential => sequential(input, bytes, options, each),
                HistoryFormat::Padded => padded(input, bytes, each),
                HistoryFormat::Inter | HistoryFormat::Tsv => {
                    cells.lines(&separator('\t').to_string(), input, bytes, rows(each))
                }
                HistoryFormat::Colons => cells.lines("::", input, bytes, rows(each)),
                _ => unreachable!("read above"),
            }
        }
    };
    read.map_err(error)
}

fn cannot_read(error: std::io::Error) -> String {
    format!("cannot be read: {error}")
}

fn at_line(line: u64, reason: impl fmt::Display) -> String {
    format!("line {line}: {reason}")
}

fn json_object(text: &str) -> Result<Map<String, Value>, String> {
    let no_object = |reason: &dyn fmt::Display| {
        format!("it is no object such as {{\"user\": …, \"items\": [item, …]}}: {reason}")
    };
    match parse_unique(text) {
        Ok(Value::Object(row)) => Ok(row),
        Ok(_) => Err(no_object(&"it is another value")),
        Err(error) => Err(no_object(&error)),
    }
}

fn python_object(text: &str) -> Result<Map<String, Value>, String> {
    let read = parse_unique(text).or_else(|_| parse_literal(text));
    match read {
        Ok(Value::Object(row)) => Ok(row),
        Ok(_) => Err("it is no dict of Python, but another literal".to_owned()),
        Err(reason) => Err(format!("it is neither a dict of Python nor a JSON object: {reason}")),
    }
}

/// An object a line.
fn objects(
    input: impl BufRead,
    of: u64,
    options: &HistoryOptions,
    parse: fn(&str) -> Result<Map<String, Value>, String>,
    mut rows: HistoryRows<'_>,
) -> Result<ReadNotes, String> {
    let mut lines = Lines::new(input);
    while let Some((line, text)) = lines.next_line().map_err(cannot_read)? {
        let row = match text {
            Ok(text) if text.trim().is_empty() => continue,
            Ok(text) => parse(text),
            Err(reason) => Err(reason),
        };
        let progress = Progress { done: lines.read(), of };
        let flow = match row {
            Ok(row) => {
                rows.push_object(line, options, row, progress).map_err(|bad| bad.to_string())?
            }
            Err(reason) => rows.push_bad(line, reason, progress),
        };
        if flow.is_break() {
            return Ok(ReadNotes::default());
        }
    }
    Ok(rows.finish())
}

fn tf_records(
    input: impl BufRead,
    of: u64,
    options: &HistoryOptions,
    mut rows: HistoryRows<'_>,
) -> Result<ReadNotes, String> {
    let (mut input, mut number, mut done) = (input, 0, 0);
    while let Some(bytes) = tfrecord::next_record(&mut input)? {
        number += 1;
        done += bytes.len() as u64 + 16;
        let progress = Progress { done, of };
        let row = tfrecord::example(&bytes).and_then(|mut row| {
            let names: Vec<&str> = row.keys().map(String::as_str).collect();
            let columns = HistoryColumns::find(options, &names, true)?;
            for (name, value) in &mut row {
                // A feature is a list of values, and a user one value.
                if let Value::Array(values) = value
                    && values.len() <= 1
                    && !columns.is_list(name)
                {
                    *value = values.pop().unwrap_or(Value::Null);
                }
            }
            Ok(row)
        });
        let flow = match row {
            Ok(row) => {
                rows.push_object(number, options, row, progress).map_err(|bad| bad.to_string())?
            }
            Err(reason) => rows.push_bad(number, reason, progress),
        };
        if flow.is_break() {
            return Ok(ReadNotes::default());
        }
    }
    Ok(rows.finish())
}

/// `user item item …`
fn sequential(
    input: impl BufRead,
    of: u64,
    options: &HistoryOptions,
    each: &mut EachRecord<'_>,
) -> Result<ReadNotes, String> {
    let mut lines = Lines::new(input);
    while let Some((line, text)) = lines.next_line().map_err(cannot_read)? {
        let record = match text {
            Ok(text) if text.trim().is_empty() => continue,
            Ok(text) => sequence(text, options),
            Err(reason) => Err(reason),
        };
        let bad = |reason| BadRecord { place: "line", at: line, user: None, reason };
        if each(record.map_err(bad), Progress { done: lines.read(), of }).is_break() {
            break;
        }
    }
    Ok(ReadNotes::default())
}

/// A user and its items; they stand between blanks, or between separators of lists.
fn sequence(text: &str, options: &HistoryOptions) -> Result<HistoryRecord, String> {
    let text = text.trim();
    let separator = options.list_separator.as_deref();
    match separator {
        None => check_joints(text)?,
        Some(separator) if !text.contains(separator) && text.contains(char::is_whitespace) => {
            let shown: String = text.chars().take(80).collect();
            return Err(format!(
                "{shown:?} has no {separator:?}, which parts a user and its items"
            ));
        }
        Some(_) => {}
    }
    let (user, items) = match separator {
        Some(separator) => text.split_once(separator).unwrap_or((text, "")),
        None => text.split_once(char::is_whitespace).unwrap_or((text, "")),
    };
    let items = match separator {
        Some(separator) => items.split(separator).map(str::trim).collect::<Vec<_>>(),
        None => items.split_whitespace().collect(),
    };
    let items = items.into_iter().filter(|item| !item.is_empty()).map(NamedItem::from).collect();
    Ok(HistoryRecord {
        user: Some(user.trim().to_owned()),
        items,
        target: None,
        fields: PromptFields::default(),
    })
}

/// `user item … 0 … target` between tabs, after a line of names: items end at the first 0, which is
/// padding.
fn padded(input: impl BufRead, of: u64, each: &mut EachRecord<'_>) -> Result<ReadNotes, String> {
    let mut lines = Lines::new(input);
    // The names stand over other numbers of columns than the lines have.
    lines.next_line().map_err(cannot_read)?;
    while let Some((line, text)) = lines.next_line().map_err(cannot_read)? {
        let cells = text.map(|text| text.split('\t').map(str::trim).collect::<Vec<&str>>());
        let record = match cells.as_deref() {
            Ok([""]) => continue,
            Ok([user, items @ .., target]) => {
                let items = items.iter().take_while(|item| **item != "0");
                let items = items.map(|&item| item.into()).collect();
                Ok(HistoryRecord {
                    user: Some((*user).to_owned()),
                    items,
                    target: Some((*target).into()),
                    fields: PromptFields::default(),
                })
            }
            Ok(_) => {
                Err("a line has a user, its items and the item that came next, tabs between"
                    .to_owned())
            }
            Err(reason) => Err(reason.clone()),
        };
        let bad = |reason| BadRecord { place: "line", at: line, user: None, reason };
        if each(record.map_err(bad), Progress { done: lines.read(), of }).is_break() {
            break;
        }
    }
    Ok(ReadNotes::default())
}

/// The columns of a file of cells.
struct Header {
    names: Vec<String>,
    uses: Vec<CellUse>,
    columns: HistoryColumns,
}

/// Meaning of a column's cells.
enum CellUse {
    Unread,
    List,
    /// An id or a time, as it stands.
    Text,
    /// A value by its looks, for conditions only.
    Typed,
}

impl Header {
    /// Names may be followed by a type of RecBole, `item_id:token`.
    fn of<'t>(
        cells: impl Iterator<Item = &'t str>,
        options: &HistoryOptions,
    ) -> Result<Self, String> {
        let name = |cell: &str| match cell.trim().rsplit_once(':') {
            Some((name, "token" | "token_seq" | "float" | "float_seq")) => name.to_owned(),
            _ => cell.trim().to_owned(),
        };
        let names: Vec<String> = cells.map(name).collect();
        let columns = options.columns(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let columns = columns.map_err(|reason| match separator_hint(&names) {
            Some(hint) => format!("{reason}; {hint}"),
            None => reason,
        })?;
        let read = columns.names();
        let cell_use = |name: &String| match read.contains(&name.as_str()) {
            false => CellUse::Unread,
            true if columns.is_list(name) => CellUse::List,
            true if columns.is_only_asked(name) => CellUse::Typed,
            true => CellUse::Text,
        };
        let uses = names.iter().map(cell_use).collect();
        Ok(Self { names, uses, columns: columns.of_cells() })
    }

    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn row<'t>(
        &self,
        cells: impl ExactSizeIterator<Item = &'t str>,
    ) -> Result<Map<String, Value>, String> {
        if cells.len() != self.names.len() {
            return Err(format!(
                "it has {} columns, the first line {}",
                cells.len(),
                self.names.len()
            ));
        }
        let mut row = Map::new();
        for ((name, cell_use), cell) in self.names.iter().zip(&self.uses).zip(cells) {
            let value = match cell_use {
                CellUse::Unread => continue,
                CellUse::List => cell.into(),
                CellUse::Text | CellUse::Typed if cell.is_empty() => Value::Null,
                CellUse::Text => cell.into(),
                CellUse::Typed => cell_value(cell),
            };
            row.insert(name.clone(), value);
        }
        Ok(row)
    }
}

/// A file of cells.
#[derive(Clone, Copy)]
struct Cells<'a> {
    format: HistoryFormat,
    options: &'a HistoryOptions,
}

/// The header of a file, and whether its first line is no header but a row.
type FirstLine = (Header, bool);

impl Cells<'_> {
    /// Reads the first line: names of columns, unless a layout knows the file to have none and its
    /// names are not there.
    fn header(&self, first: &[&str]) -> Result<FirstLine, String> {
        let known = self.options.layout.map_or(&[][..], |layout| layout.header(self.format));
        let has_names = first.iter().any(|cell| known.contains(&cell.trim()));
        if has_names || known.len() != first.len() {
            return Ok((Header::of(first.iter().copied(), self.options)?, false));
        }
        // Other names of the same layout, such as those of a conversion.
        match Header::of(first.iter().copied(), self.options) {
            Ok(header) => Ok((header, false)),
            Err(_) => Ok((Header::of(known.iter().copied(), self.options)?, true)),
        }
    }

    /// Lines that are split as they stand: quotes are characters as others.
    fn lines(
        &self,
        delimiter: &str,
        input: impl BufRead,
        of: u64,
        mut rows: HistoryRows<'_>,
    ) -> Result<ReadNotes, String> {
        let mut lines = Lines::new(input);
        let mut header: Option<Header> = None;
        while let Some((line, text)) = lines.next_line().map_err(cannot_read)? {
            let cells: Result<Vec<&str>, String> = text.map(|text| text.split(delimiter).collect());
            if header.is_some() && cells.as_ref().is_ok_and(|cells| *cells == [""]) {
                continue;
            }
            let header = match &header {
                Some(header) => header,
                None => {
                    let first = cells.as_ref().map_err(Clone::clone);
                    let first = first.and_then(|first| {
                        check_quotes(first)?;
                        self.header(first)
                    });
                    let (found, is_row) = first.map_err(|reason| at_line(line, reason))?;
                    rows.note_columns(&found.names(), &found.columns);
                    let found = header.insert(found);
                    if !is_row {
                        continue;
                    }
                    &*found
                }
            };
            let row = cells.and_then(|cells| header.row(cells.into_iter()));
            let progress = Progress { done: lines.read(), of };
            if push_cells(&mut rows, line, header, row, progress)?.is_break() {
                return Ok(ReadNotes::default());
            }
        }
        Ok(rows.finish())
    }

    /// Records as RFC 4180 quotes them.
    fn records(
        &self,
        input: impl BufRead,
        of: u64,
        dialect: Dialect,
        mut rows: HistoryRows<'_>,
    ) -> Result<ReadNotes, String> {
        let read = Cell::new(0);
        let input = utf8_text(Counted { input, read: &read });
        let (mut records, mut record) = (Records::in_dialect(input, dialect), Record::default());
        let wrong = |problem: palmette_catalog::readers::Problem| match problem.line() {
            Some(line) => at_line(line, problem),
            None => problem.to_string(),
        };
        let mut header: Option<Header> = None;
        while let Some(line) = records.next_record(&mut record).map_err(wrong)? {
            let cells: Vec<&str> = record.cells().collect();
            let header = match &header {
                Some(header) => header,
                None => {
                    let first = self.header(&cells).map_err(|reason| at_line(line, reason));
                    let (found, is_row) = first?;
                    rows.note_columns(&found.names(), &found.columns);
                    let found = header.insert(found);
                    if !is_row {
                        continue;
                    }
                    &*found
                }
            };
            let row = header.row(cells.into_iter());
            let progress = Progress { done: read.get(), of };
            if push_cells(&mut rows, line, header, row, progress)?.is_break() {
                return Ok(ReadNotes::default());
            }
        }
        Ok(rows.finish())
    }
}

/// Refuses names in quotes where quotes are characters as any other.
fn check_quotes(names: &[&str]) -> Result<(), String> {
    let is_quoted = |name: &&&str| name.len() > 1 && name.starts_with('"') && name.ends_with('"');
    match names.iter().find(is_quoted) {
        Some(name) => {
            Err(format!("the name {name} stands in quotes: read cells in quotes by --quotes"))
        }
        None => Ok(()),
    }
}

fn push_cells(
    rows: &mut HistoryRows<'_>,
    line: u64,
    header: &Header,
    row: Result<Map<String, Value>, String>,
    progress: Progress,
) -> Result<ControlFlow<()>, String> {
    match row {
        Ok(row) => rows.push(line, &header.columns, row, progress).map_err(|bad| bad.to_string()),
        Err(reason) if header.columns.is_events() => Err(at_line(line, reason)),
        Err(reason) => Ok(rows.push_bad(line, reason, progress)),
    }
}

/// A reader that counts.
struct Counted<'a, R> {
    input: R,
    read: &'a Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

/// One document, entry by entry.
fn json_document(
    input: impl BufRead,
    of: u64,
    options: &HistoryOptions,
    rows: HistoryRows<'_>,
) -> Result<ReadNotes, String> {
    let read = Cell::new(0);
    let input = BufReader::new(Counted { input: utf8_text(input), read: &read });
    let mut entries = Entries { rows, options, read: &read, of, at: 0, ended: false };
    let mut parser = serde_json::Deserializer::from_reader(input);
    let parsed = parser.deserialize_any(&mut entries).and_then(|()| parser.end());
    match parsed {
        Err(_) if entries.ended => Ok(ReadNotes::default()),
        Err(e) => Err(format!(
            "is not {{user: [item, …]}}: {e}; a file of an object a line is jsonl (--histories-format)"
        )),
        Ok(()) => Ok(entries.rows.finish()),
    }
}

struct Entries<'a, 'e> {
    rows: HistoryRows<'e>,
    options: &'a HistoryOptions,
    read: &'a Cell<u64>,
    of: u64,
    at: u64,
    /// True once no more is wanted.
    ended: bool,
}

impl Entries<'_, '_> {
    fn progress(&mut self) -> Progress {
        self.at += 1;
        Progress { done: self.read.get(), of: self.of }
    }

    fn end<E: Error>(&mut self, flow: ControlFlow<()>) -> Result<(), E> {
        self.ended = flow.is_break();
        if self.ended { Err(E::custom("no more is wanted")) } else { Ok(()) }
    }

    fn push<E: Error>(&mut self, row: Value) -> Result<(), E> {
        let progress = self.progress();
        let flow = match object(row) {
            Ok(row) => {
                self.rows.push_object(self.at, self.options, row, progress).map_err(E::custom)?
            }
            Err(reason) => self.rows.push_bad(self.at, reason, progress),
        };
        self.end(flow)
    }

    fn push_user<E: Error>(&mut self, user: String, items: Value) -> Result<(), E> {
        let progress = self.progress();
        let flow = match items {
            Value::Array(_) => {
                let row = [("user".to_owned(), user.into()), ("items".to_owned(), items)];
                let (row, columns) = (Map::from_iter(row), HistoryColumns::of_users());
                self.rows.push(self.at, &columns, row, progress).map_err(E::custom)?
            }
            other => {
                let shown: String = other.to_string().chars().take(60).collect();
                let reason = format!(
                    "user {user:?} has {shown}, which is no list of items; a file of an object a line is jsonl (--histories-format)"
                );
                self.rows.push_bad(self.at, reason, progress)
            }
        };
        self.end(flow)
    }
}

fn object(row: Value) -> Result<Map<String, Value>, String> {
    match row {
        Value::Object(row) => Ok(row),
        other => {
            let shown: String = other.to_string().chars().take(60).collect();
            Err(format!("{shown} is no object such as {{\"user\": …, \"items\": [item, …]}}"))
        }
    }
}

impl<'de> Visitor<'de> for &mut Entries<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object {user: [item, …]} or a list of {\"user\": …, \"items\": [item, …]}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some((user, items)) = map.next_entry::<String, UniqueValue>()? {
            self.push_user(user, items.0)?;
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        while let Some(row) = list.next_element::<UniqueValue>()? {
            self.push(row.0)?;
        }
        Ok(())
    }
}
