//! Splits comma- or tab-separated text into records (RFC 4180), with the exact line of each.
//!
//! The `csv` crate is not used here: it reads a quote that is never closed as one cell up to the
//! end of the file, which would lose items without a word. The tests read back what it wrote.

use std::io::BufRead;

use super::error::{Kind, Problem};
use super::lines::{Lines, without_end};

/// The cells of one record, in one text.
#[derive(Debug, Default)]
pub struct Record {
    text: String,
    /// End of each cell.
    ends: Vec<usize>,
}

impl Record {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True before the first record is read.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The cell at a place from 0.
    ///
    /// # Panics
    /// When there are not so many.
    pub fn cell(&self, column: usize) -> &str {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        &self.text[start..self.ends[column]]
    }

    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|column| self.cell(column))
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn end_cell(&mut self) {
        self.ends.push(self.text.len());
    }
}

/// Records of separated cells, one in memory at a time.
#[derive(Debug)]
pub struct Records<R> {
    lines: Lines<R>,
    dialect: Dialect,
}

/// Marks that tell the cells of a line apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Stands between cells.
    pub separator: char,
    /// True if a cell may stand in quotes; otherwise a quote is a plain character.
    pub has_quotes: bool,
}

impl Dialect {
    /// Cells between commas, where need be in quotes.
    pub const COMMAS: Dialect = Dialect { separator: ',', has_quotes: true };
    /// Cells between tabs, as they stand.
    pub const TABS: Dialect = Dialect { separator: '\t', has_quotes: false };
}

/// Reads a character that stands between cells: itself, or `tab`.
///
/// # Errors
/// A sentence about a text that is none, or a character that cells have themselves.
pub fn parse_separator(text: &str) -> Result<char, String> {
    let mut chars = match text {
        "tab" | "\\t" => "\t".chars(),
        text => text.chars(),
    };
    match (chars.next(), chars.next()) {
        (Some(mark), None) if !(mark.is_alphanumeric() || "\"\r\n.-+".contains(mark)) => Ok(mark),
        _ => Err(format!("{text:?} is no separator; name one character, such as ; or |, or tab")),
    }
}

/// Hint about a header of one column that another separator would part.
pub fn separator_hint(columns: &[impl AsRef<str>]) -> Option<String> {
    let [only] = columns else { return None };
    let mark = only.as_ref().chars().find(|mark| [';', '\t', '|', ','].contains(mark))?;
    let (mark, header) =
        (if mark == '\t' { "tab".into() } else { mark.to_string() }, only.as_ref());
    let header: String = header.chars().take(80).collect();
    Some(format!(
        "the first line is one column, {header:?}; if {mark} stands between its cells, say --separator {mark:?}"
    ))
}

impl<R: BufRead> Records<R> {
    /// The comma-separated records of a text.
    pub fn new(input: R) -> Records<R> {
        Records::in_dialect(input, Dialect::COMMAS)
    }

    /// The records of a text.
    pub fn in_dialect(input: R, dialect: Dialect) -> Records<R> {
        Records::of_lines(Lines::new(input), dialect)
    }

    /// The records that `lines` still has.
    pub(super) fn of_lines(lines: Lines<R>, dialect: Dialect) -> Records<R> {
        Records { lines, dialect }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Replaces `record` by the next one that is not an empty line, and returns the line
    /// where it starts. Quoted cells may span lines; a quote in an unquoted cell is an ordinary
    /// character.
    ///
    /// # Errors
    /// When the input cannot be read, a quote is not closed, or text stands after one that is.
    pub fn next_record(&mut self, record: &mut Record) -> Result<Option<u64>, Problem> {
        record.clear();
        let Dialect { separator, has_quotes } = self.dialect;
        let mut start = None;
        // The line of the opening quote of the cell being read.
        let mut quoted: Option<u64> = None;
        'lines: while let Some((line, text)) = self.lines.next_line()? {
            if start.is_none() && without_end(text).is_empty() {
                continue;
            }
            let start = *start.get_or_insert(line);
            let mut rest = text;
            loop {
                if quoted.is_some() {
                    let Some((inside, after)) = rest.split_once('"') else {
                        record.text.push_str(rest);
                        continue 'lines;
                    };
                    record.text.push_str(inside);
                    if let Some(after) = after.strip_prefix('"') {
                        record.text.push('"');
                        rest = after;
                        continue;
                    }
                    record.end_cell();
                    quoted = None;
                    match after.strip_prefix(separator) {
                        Some(after) => rest = after,
                        None if without_end(after).is_empty() => return Ok(Some(start)),
                        None => return Err(Problem::at(line, Kind::TextAfterQuote)),
                    }
                } else if let Some(after) = rest.strip_prefix('"').filter(|_| has_quotes) {
                    quoted = Some(line);
                    rest = after;
                } else if let Some((cell, after)) = rest.split_once(separator) {
                    record.text.push_str(cell);
                    record.end_cell();
                    rest = after;
                } else {
                    record.text.push_str(without_end(rest));
                    record.end_cell();
                    return Ok(Some(start));
                }
            }
        }
        match quoted {
            Some(opened) => Err(Problem::at(opened, Kind::UnclosedQuote)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(text: &str) -> Vec<(u64, Vec<String>)> {
        let mut records = Records::new(text.as_bytes());
        let (mut all, mut record) = (Vec::new(), Record::default());
        while let Some(line) = records.next_record(&mut record).expect("well-formed") {
            all.push((line, record.cells().map(str::to_owned).collect()));
        }
        all
    }

    #[test]
    fn lines_are_those_where_records_start() {
        let text = "\r\na,\"b\nb\"\r\n\nc\"c,\"d\"\"\r\n\"\n\ne,";
        let expected = [(2, ["a", "b\nb"]), (5, ["c\"c", "d\"\r\n"]), (8, ["e", ""])];
        let expected: Vec<_> = expected
            .map(|(line, cells)| (line, cells.map(str::to_owned).to_vec()))
            .into_iter()
            .collect();
        assert_eq!(records(text), expected);
    }

    #[test]
    fn without_quotes_cells_are_as_they_stand() {
        let text = "a\t\"b\nc\td\"\r\n\"\"\t\n";
        let mut records = Records::in_dialect(text.as_bytes(), Dialect::TABS);
        let (mut all, mut record) = (Vec::new(), Record::default());
        while records.next_record(&mut record).expect("well-formed").is_some() {
            all.push(record.cells().map(str::to_owned).collect::<Vec<_>>());
        }
        assert_eq!(all, [["a", "\"b"], ["c", "d\""], ["\"\"", ""]]);
    }

    proptest! {
        #[test]
        fn records_are_those_the_csv_crate_wrote(
            table in prop::collection::vec(prop::collection::vec("[a,\"\r\n é]{0,5}", 3), 0..6),
            crlf: bool,
        ) {
            let end = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
            let mut writer = csv::WriterBuilder::new().terminator(end).from_writer(Vec::new());
            for row in &table {
                writer.write_record(row).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let (_, read): (Vec<u64>, Vec<_>) = records(&text).into_iter().unzip();
            prop_assert_eq!(read, table);
        }
    }
}
