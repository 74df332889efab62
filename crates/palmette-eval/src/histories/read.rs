//! Histories from text files, streamed.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;

use palmette_catalog::readers::{Record, Records};
use palmette_recommend::NamedItem;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::HistoryError;
use super::format::HistoryFormat;
use super::lines::Lines;
use super::record::{BadRecord, HistoryColumns, HistoryRecord};
use super::rows::{EachRecord, HistoryRows, Progress};

/// Reads the histories of a file, in order.
///
/// One record is in memory at a time; where rows are single things that users did, all of them. A record that cannot be
/// read is handed on as that, and the next one follows.
///
/// # Errors
/// When the file cannot be read, or is so wrong that no records can be told apart.
pub fn read_histories<'a>(
    path: &Path,
    format: HistoryFormat,
    each: &'a mut EachRecord<'a>,
) -> Result<(), HistoryError> {
    let cannot = |e| HistoryError::new(path, format!("cannot be read: {e}"));
    let file = File::open(path).map_err(cannot)?;
    let bytes = file.metadata().map_or(0, |about| about.len());
    parse_histories(path, BufReader::new(file), bytes, format, each)
}

/// Reads histories from `input`, of so many bytes or 0 where that is not known; `name` is what errors call it.
///
/// # Errors
/// As [`read_histories`].
pub fn parse_histories<'a>(
    name: &Path,
    input: impl BufRead,
    bytes: u64,
    format: HistoryFormat,
    each: &'a mut EachRecord<'a>,
) -> Result<(), HistoryError> {
    let read = match format {
        HistoryFormat::Json => json_document(input, bytes, HistoryRows::new("history", each)),
        HistoryFormat::JsonLines => json_lines(input, bytes, HistoryRows::new("line", each)),
        HistoryFormat::Sequential => sequential(input, bytes, each),
        HistoryFormat::Inter | HistoryFormat::Tsv => {
            tabbed(input, bytes, HistoryRows::new("line", each))
        }
        HistoryFormat::Csv => comma_separated(input, bytes, HistoryRows::new("line", each)),
    };
    read.map_err(|reason| HistoryError::new(name, reason))
}

fn cannot_read(error: std::io::Error) -> String {
    format!("cannot be read: {error}")
}

fn at_line(line: u64, reason: impl fmt::Display) -> String {
    format!("line {line}: {reason}")
}

fn json_lines(input: impl BufRead, of: u64, mut rows: HistoryRows<'_>) -> Result<(), String> {
    let mut lines = Lines::new(input);
    while let Some((line, text)) = lines.next_line().map_err(cannot_read)? {
        let parsed = match text {
            Ok(text) if text.trim().is_empty() => continue,
            Ok(text) => serde_json::from_str::<Map<String, Value>>(text).map_err(|e| {
                format!("it is no object such as {{\"user\": …, \"items\": [item, …]}}: {e}")
            }),
            Err(reason) => Err(reason),
        };
        let row = parsed.and_then(|row| Ok((columns_of(&row)?, row)));
        let progress = Progress { done: lines.read(), of };
        let flow = match row {
            Ok((columns, row)) => {
                rows.push(line, &columns, row, progress).map_err(|bad| bad.to_string())?
            }
            Err(reason) => rows.push_bad(line, reason, progress),
        };
        if flow.is_break() {
            return Ok(());
        }
    }
    let _ = rows.finish();
    Ok(())
}

/// `user item item …`
fn sequential(input: impl BufRead, of: u64, each: &mut EachRecord<'_>) -> Result<(), String> {
    let mut lines = Lines::new(input);
    loop {
        let Some((line, text)) = lines.next_line().map_err(cannot_read)? else { return Ok(()) };
        let record = match text {
            Ok(text) => {
                let mut words = text.split_whitespace().map(str::to_owned);
                let Some(user) = words.next() else { continue };
                let items = words.map(NamedItem::Id).collect();
                Ok(HistoryRecord { user: Some(user), items, target: None })
            }
            Err(reason) => Err(BadRecord { place: "line", at: line, user: None, reason }),
        };
        if each(record, Progress { done: lines.read(), of }).is_break() {
            return Ok(());
        }
    }
}

/// The columns of a file of cells.
struct Header {
    names: Vec<String>,
    columns: HistoryColumns,
}

impl Header {
    /// Names may be followed by a type, `item_id:token`.
    fn of<'t>(cells: impl Iterator<Item = &'t str>) -> Result<Self, String> {
        let name = |cell: &str| cell.trim().split(':').next().unwrap_or_default().to_owned();
        let names: Vec<String> = cells.map(name).collect();
        let columns = HistoryColumns::of(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok(Self { names, columns })
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
        let used = self.columns.names();
        let mut row = Map::new();
        for (name, cell) in self.names.iter().zip(cells) {
            if !used.contains(&name.as_str()) {
                continue;
            }
            let value = match self.columns.is_list(name) {
                true => list_cell(cell)?,
                false if cell.is_empty() => Value::Null,
                false => cell.into(),
            };
            row.insert(name.clone(), value);
        }
        Ok(row)
    }
}

fn tabbed(input: impl BufRead, of: u64, mut rows: HistoryRows<'_>) -> Result<(), String> {
    let mut lines = Lines::new(input);
    let Some((line, first)) = lines.next_line().map_err(cannot_read)? else { return Ok(()) };
    let header = first.and_then(|first| Header::of(first.split('\t')));
    let header = header.map_err(|reason| at_line(line, reason))?;
    while let Some((line, text)) = lines.next_line().map_err(cannot_read)? {
        let cells: Result<Vec<&str>, String> = text.map(|text| text.split('\t').collect());
        if cells.as_ref().is_ok_and(|cells| *cells == [""]) {
            continue;
        }
        let row = cells.and_then(|cells| header.row(cells.into_iter()));
        let progress = Progress { done: lines.read(), of };
        if push_cells(&mut rows, line, &header, row, progress)?.is_break() {
            return Ok(());
        }
    }
    let _ = rows.finish();
    Ok(())
}

fn comma_separated(input: impl BufRead, of: u64, mut rows: HistoryRows<'_>) -> Result<(), String> {
    let read = Cell::new(0);
    let input = without_mark(Counted { input, read: &read }).map_err(cannot_read)?;
    let (mut records, mut record) = (Records::new(input), Record::default());
    let wrong = |problem: palmette_catalog::readers::Problem| match problem.line() {
        Some(line) => at_line(line, problem),
        None => problem.to_string(),
    };
    let Some(line) = records.next_record(&mut record).map_err(wrong)? else { return Ok(()) };
    let header = Header::of(record.cells()).map_err(|reason| at_line(line, reason))?;
    while let Some(line) = records.next_record(&mut record).map_err(wrong)? {
        let row = header.row(record.cells().collect::<Vec<_>>().into_iter());
        let progress = Progress { done: read.get(), of };
        if push_cells(&mut rows, line, &header, row, progress)?.is_break() {
            return Ok(());
        }
    }
    let _ = rows.finish();
    Ok(())
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

/// A list in a cell: `[3, 1]` and `['a', "b"]` as JSON and Python write them, or `3 1` with blanks between.
fn list_cell(cell: &str) -> Result<Value, String> {
    let cell = cell.trim();
    if !cell.starts_with('[') {
        return Ok(cell.split_whitespace().map(Value::from).collect());
    }
    serde_json::from_str(cell).or_else(|_| python_list(cell))
}

/// A list of whole numbers and of texts in single or double quotes.
fn python_list(cell: &str) -> Result<Value, String> {
    let bad = || {
        format!(
            "{:?} is no list such as [3, 1] or ['a', 'b']",
            cell.chars().take(80).collect::<String>()
        )
    };
    let inside = cell.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(bad)?;
    let (mut values, mut rest) = (Vec::new(), inside.trim());
    while !rest.is_empty() {
        let (value, after) = match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => quoted(&rest[1..], quote).ok_or_else(bad)?,
            _ => {
                let end = rest.find(',').unwrap_or(rest.len());
                let number: i64 = rest[..end].trim().parse().map_err(|_| bad())?;
                (number.into(), &rest[end..])
            }
        };
        values.push(value);
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() => {}
            None => return Err(bad()),
        }
    }
    Ok(values.into())
}

/// The text up to the quote that closes it, and what comes after; `None` where none does.
fn quoted(text: &str, quote: char) -> Option<(Value, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => match chars.next()?.1 {
                kept @ ('\\' | '\'' | '"') => value.push(kept),
                // Others stand for characters that ids do not have.
                _ => return None,
            },
            _ if char == quote => return Some((value.into(), &text[at + char.len_utf8()..])),
            _ => value.push(char),
        }
    }
    None
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

/// Passes over a byte order mark.
fn without_mark(input: impl Read) -> std::io::Result<impl BufRead> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mut input = BufReader::new(input);
    let mut head = Vec::new();
    input.by_ref().take(MARK.len() as u64).read_to_end(&mut head)?;
    if head == MARK {
        head.clear();
    }
    Ok(BufReader::new(std::io::Cursor::new(head).chain(input)))
}

/// One document, entry by entry.
fn json_document(input: impl BufRead, of: u64, rows: HistoryRows<'_>) -> Result<(), String> {
    let read = Cell::new(0);
    let input = without_mark(Counted { input, read: &read }).map_err(cannot_read)?;
    let mut entries = Entries { rows, read: &read, of, at: 0, ended: false };
    let mut parser = serde_json::Deserializer::from_reader(input);
    let parsed = parser.deserialize_any(&mut entries).and_then(|()| parser.end());
    match parsed {
        Err(_) if entries.ended => return Ok(()),
        parsed => parsed.map_err(|e| format!("is not {{user: [item, …]}}: {e}"))?,
    }
    let _ = entries.rows.finish();
    Ok(())
}

struct Entries<'a, 'e> {
    rows: HistoryRows<'e>,
    read: &'a Cell<u64>,
    of: u64,
    at: u64,
    /// True once no more is wanted.
    ended: bool,
}

impl Entries<'_, '_> {
    fn push<E: Error>(&mut self, row: Value) -> Result<(), E> {
        self.at += 1;
        let progress = Progress { done: self.read.get(), of: self.of };
        let row = object(row).and_then(|row| Ok((columns_of(&row)?, row)));
        let flow = match row {
            Ok((columns, row)) => {
                self.rows.push(self.at, &columns, row, progress).map_err(E::custom)?
            }
            Err(reason) => self.rows.push_bad(self.at, reason, progress),
        };
        self.ended = flow.is_break();
        if self.ended { Err(E::custom("no more is wanted")) } else { Ok(()) }
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

fn columns_of(row: &Map<String, Value>) -> Result<HistoryColumns, String> {
    HistoryColumns::of(&row.keys().map(String::as_str).collect::<Vec<_>>())
}

impl<'de> Visitor<'de> for &mut Entries<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object {user: [item, …]} or a list of {\"user\": …, \"items\": [item, …]}")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some((user, items)) = map.next_entry::<String, Value>()? {
            let row = [("user".to_owned(), user.into()), ("items".to_owned(), items)];
            self.push(Value::Object(Map::from_iter(row)))?;
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        while let Some(row) = list.next_element::<Value>()? {
            self.push(row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check_list(cell: &str, expected: Option<Value>) {
        assert_eq!(list_cell(cell).ok(), expected, "{cell}");
    }

    #[test]
    fn lists_in_cells() {
        check_list("[3466, 2697]", Some(json!([3466, 2697])));
        check_list("['a', \"it's\", 'b\\'c']", Some(json!(["a", "it's", "b'c"])));
        check_list("['<a_1><b_2>']", Some(json!(["<a_1><b_2>"])));
        check_list("[[1, 2], [3, 4]]", Some(json!([[1, 2], [3, 4]])));
        check_list("3 1  x", Some(json!(["3", "1", "x"])));
        check_list("", Some(json!([])));
        check_list("[]", Some(json!([])));
        check_list("['a',]", Some(json!(["a"])));
        for bad in ["['a'", "['a' 'b']", "[a]", "['a]", "[1.5x]", "['\\n']", "[,]"] {
            check_list(bad, None);
        }
    }
}
