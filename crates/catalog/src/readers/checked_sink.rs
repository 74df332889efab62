//! Sink behind every reader, which checks items and passes them on. It holds the source to one
//! spelling of codes, which one item alone cannot show.

use std::fmt;

use serde_json::{Map, Value};

use super::cells::Cells;
use super::codes::{BadCode, code_in_range, parse_code, read_plain_codes, split_codes};
use super::error::{Kind, Problem, shorten};
use super::left_out::LeftOut;
use super::{ItemSink, ReadSummary, SourceOptions};
use crate::index::MAX_CODE;

/// The last step of every reader, this crate's and others': checks items and hands them to a sink.
///
/// For each item first its codes, by one of the `codes_from_*`, then [`push`](CheckedSink::push).
///
/// ```
/// use palmette_catalog::readers::{CheckedSink, Place, SourceItems};
///
/// let mut items = SourceItems::default();
/// let mut sink = CheckedSink::new(&mut items, Place::Row);
/// sink.codes_from_text(1, "lamp", "<a_3><b_1>")?;
/// sink.push(1, "lamp".to_owned(), Default::default())?;
/// let error = sink.codes_from_numbers(2, "tent", [0u16, 7]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "item \"tent\": code \"0\" at level 0: the codes of this source are spelled \
///      <letter_number> since row 1"
/// );
/// assert_eq!(sink.finish().level_prefixes, Some(vec!["a".to_owned(), "b".to_owned()]));
/// assert_eq!(items.items[0].codes, [3, 1]);
/// # Ok::<(), palmette_catalog::readers::Problem>(())
/// ```
#[derive(Debug)]
pub struct CheckedSink<'s, S> {
    sink: &'s mut S,
    place: Place,
    /// The codes of the item to be pushed next.
    codes: Vec<u32>,
    num_items: u64,
    /// True if codes have prefixes, with the line that showed it first.
    has_prefixes: Option<(bool, u64)>,
    /// The prefix of each level, and the line that said so. Empty without prefixes.
    prefixes: Vec<(String, u64)>,
    /// Codebook sizes of packed codes: see [`SourceOptions::packed`].
    packed: Vec<u32>,
    cells: Cells,
    left_out: LeftOut,
    notes: Vec<String>,
}

/// Unit by which a source counts its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Lines of text.
    Line,
    /// Rows of a table.
    Row,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Place::Line => "line",
            Place::Row => "row",
        })
    }
}

impl<'s, S: ItemSink> CheckedSink<'s, S> {
    /// A reader's way to `sink`; `place` is what messages call an item's place.
    pub fn new(sink: &'s mut S, place: Place) -> CheckedSink<'s, S> {
        CheckedSink {
            sink,
            place,
            codes: Vec::new(),
            num_items: 0,
            has_prefixes: None,
            prefixes: Vec::new(),
            packed: Vec::new(),
            cells: Cells::default(),
            left_out: LeftOut::default(),
            notes: Vec::new(),
        }
    }

    /// Takes the spelling of codes and values from `options`.
    pub fn with_options(self, options: &SourceOptions) -> CheckedSink<'s, S> {
        CheckedSink {
            packed: options.packed.clone(),
            cells: Cells::new(&options.cells),
            left_out: LeftOut::new(&options.left_out),
            ..self
        }
    }

    /// Says which columns a table has, also those that are not read.
    pub fn columns(&mut self, names: &[String]) {
        self.left_out.look_among(names);
    }

    /// True of numbers that JSON does not have where their names mean a missing value.
    pub fn means_none(&self, number: f64) -> bool {
        self.cells.is_null_number(number)
    }

    /// Reader of values.
    pub(super) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Has the summary say something about the source that is no error.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// True where a semantic ID is one number, of which [`codes_from_text`](Self::codes_from_text)
    /// and [`codes_from_numbers`](Self::codes_from_numbers) make its codes.
    pub fn is_packed(&self) -> bool {
        !self.packed.is_empty()
    }

    /// Tells the sink which attributes are points in time; to be called before any item.
    pub fn timestamps(&mut self, names: &[String]) {
        self.sink.timestamps(names);
    }

    /// The next item's codes from one text: `<a_1><b_2>`, `1 2`, `1-2` or `1,2`.
    ///
    /// # Errors
    /// For the first piece that is no code or is spelled otherwise than those before it.
    pub fn codes_from_text(&mut self, line: u64, item: &str, text: &str) -> Result<(), Problem> {
        if self.is_packed() {
            return self.unpack(line, item, text.trim());
        }
        if read_plain_codes(text, &mut self.codes) {
            return self.check_plain(line, item);
        }
        self.codes_from_pieces(line, item, split_codes(text))
    }

    /// The next item's codes from whole numbers of any type.
    ///
    /// # Errors
    /// For the first number that is negative or above [`MAX_CODE`], and where the codes before had
    /// prefixes.
    pub fn codes_from_numbers<N>(
        &mut self,
        line: u64,
        item: &str,
        numbers: impl IntoIterator<Item = N>,
    ) -> Result<(), Problem>
    where
        N: Copy + fmt::Display + TryInto<u32>,
    {
        let mut numbers = numbers.into_iter();
        if self.is_packed() {
            let (number, rest) = (numbers.next(), numbers.next());
            let text = number.filter(|_| rest.is_none()).map(|number| number.to_string());
            return self.unpack(line, item, text.as_deref().unwrap_or("of several numbers"));
        }
        self.codes.clear();
        for (level, number) in numbers.enumerate() {
            match number.try_into() {
                Ok(code) if code <= MAX_CODE => self.codes.push(code),
                _ => {
                    self.check_plain(line, item)?;
                    return Err(bad_code(line, item, number.to_string(), level));
                }
            }
        }
        self.check_plain(line, item)
    }

    /// Passes on the item whose codes were read last, its attributes read by their declared kinds.
    ///
    /// # Errors
    /// When the ID is empty, there are no codes, or the sink refuses the item.
    pub fn push(
        &mut self,
        line: u64,
        id: String,
        mut attributes: Map<String, Value>,
    ) -> Result<(), Problem> {
        if id.is_empty() {
            return Err(Problem::at(line, Kind::EmptyId));
        }
        if self.codes.is_empty() {
            return Err(Problem::at(line, Kind::EmptyCodes { item: id }));
        }
        self.left_out.take_from(&mut attributes);
        self.cells.read(|| format!("{} {line}", self.place), line, &id, &mut attributes)?;
        self.sink.push(line, id, &self.codes, attributes).map_err(Problem::refused)?;
        self.num_items += 1;
        self.codes.clear();
        Ok(())
    }

    /// Sums up what was pushed.
    pub fn finish(self) -> ReadSummary {
        let prefixes = self.prefixes.into_iter().map(|(prefix, _)| prefix);
        let level_prefixes = Some(prefixes.collect::<Vec<_>>()).filter(|all| !all.is_empty());
        let notes = self.notes.into_iter().chain(self.cells.notes()).collect();
        let left_out = self.left_out.present();
        ReadSummary { num_items: self.num_items, level_prefixes, left_out, notes }
    }

    /// `value` is a list of codes, each a number or text, or one text.
    pub(super) fn codes_from_json(
        &mut self,
        line: u64,
        item: &str,
        value: &Value,
    ) -> Result<(), Problem> {
        match value {
            Value::Number(number) if self.is_packed() => {
                self.unpack(line, item, &number.to_string())
            }
            Value::Array(values) if values.iter().any(Value::is_object) => {
                let (item, value) = (item.to_owned(), "of type list of objects".to_owned());
                Err(Problem::at(line, Kind::NotCodes { item, value }))
            }
            Value::Array(values) if !self.is_packed() => {
                self.codes.clear();
                for (level, value) in values.iter().enumerate() {
                    let code = self.code_from_json(line, item, level, value)?;
                    self.codes.push(code);
                }
                Ok(())
            }
            Value::String(text) => self.codes_from_text(line, item, text),
            other => {
                let value = describe(other);
                Err(Problem::at(line, Kind::NotCodes { item: item.to_owned(), value }))
            }
        }
    }

    /// The next item's codes from one text each: `<a_1>` or `1`.
    ///
    /// # Errors
    /// For the first that is no code or is spelled otherwise than those before it.
    pub fn codes_from_pieces<'a>(
        &mut self,
        line: u64,
        item: &str,
        pieces: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Problem> {
        self.codes.clear();
        for (level, piece) in pieces.into_iter().enumerate() {
            let code = self.code_from_text(line, item, level, piece)?;
            self.codes.push(code);
        }
        Ok(())
    }

    /// The next item's codes as digits of one number in mixed radix.
    fn unpack(&mut self, line: u64, item: &str, number: &str) -> Result<(), Problem> {
        let limit: u128 = self
            .packed
            .iter()
            .fold(1, |product, &size| u128::saturating_mul(product, u128::from(size)));
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let parsed = number.parse::<u128>().ok().filter(|&number| is_number && number < limit);
        let Some(mut rest) = parsed else {
            let (item, value) = (item.to_owned(), shorten(number));
            return Err(Problem::at(line, Kind::NotPacked { item, value, limit }));
        };
        self.codes.clear();
        for &size in self.packed.iter().rev() {
            self.codes.push((rest % u128::from(size)) as u32);
            rest /= u128::from(size);
        }
        self.codes.reverse();
        self.check_plain(line, item)
    }

    fn code_from_json(
        &mut self,
        line: u64,
        item: &str,
        level: usize,
        value: &Value,
    ) -> Result<u32, Problem> {
        if let Value::String(text) = value {
            return self.code_from_text(line, item, level, text);
        }
        let Some(code) = whole_number(value).and_then(code_in_range) else {
            return Err(bad_code(line, item, describe(value), level));
        };
        self.check_spelling(line, item, level, || code.to_string(), None)?;
        Ok(code)
    }

    fn code_from_text(
        &mut self,
        line: u64,
        item: &str,
        level: usize,
        text: &str,
    ) -> Result<u32, Problem> {
        let code = parse_code(text).map_err(|bad| match bad {
            BadCode::NotACode => bad_code(line, item, shorten(text), level),
            BadCode::LeadingZero => {
                let (item, value) = (item.to_owned(), shorten(text));
                Problem::at(line, Kind::LeadingZero { item, value, level })
            }
        })?;
        self.check_spelling(line, item, level, || text.to_owned(), code.prefix)?;
        Ok(code.value)
    }

    /// [`check_spelling`](Self::check_spelling) of codes that all are plain numbers: the first
    /// speaks for all.
    fn check_plain(&mut self, line: u64, item: &str) -> Result<(), Problem> {
        match self.codes.first().copied() {
            Some(code) => self.check_spelling(line, item, 0, || code.to_string(), None),
            None => Ok(()),
        }
    }

    /// Compares the spelling of a code with that of the codes before it.
    fn check_spelling(
        &mut self,
        line: u64,
        item: &str,
        level: usize,
        text: impl FnOnce() -> String,
        prefix: Option<&str>,
    ) -> Result<(), Problem> {
        let (expects_prefix, first_line) =
            *self.has_prefixes.get_or_insert((prefix.is_some(), line));
        let since = |line: u64| format!("{} {line}", self.place);
        let kind = match (prefix, self.prefixes.get(level)) {
            (prefix, _) if prefix.is_some() != expects_prefix => {
                let spelling = if expects_prefix { "<letter_number>" } else { "as plain numbers" };
                let (item, value, since) = (item.to_owned(), shorten(&text()), since(first_line));
                Kind::OtherSpelling { item, value, level, spelling, since }
            }
            (Some(prefix), Some((expected, first_line))) if prefix != expected => {
                let (item, value, since) = (item.to_owned(), shorten(&text()), since(*first_line));
                Kind::OtherPrefix { item, value, level, prefix: expected.clone(), since }
            }
            (Some(prefix), None) => {
                self.prefixes.push((prefix.to_owned(), line));
                return Ok(());
            }
            _ => return Ok(()),
        };
        Err(Problem::at(line, kind))
    }
}

/// The whole number that a value is, as `2` or `2.0`.
fn whole_number(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
    value.as_u64().or_else(|| float().map(|float| float as u64))
}

fn bad_code(line: u64, item: &str, value: String, level: usize) -> Problem {
    Problem::at(line, Kind::BadCode { item: item.to_owned(), value, level })
}

/// A JSON value for a message: as it is where short, else its kind.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => shorten(text),
        Value::Array(_) => "of type list".to_owned(),
        Value::Object(_) => "of type object".to_owned(),
        other => other.to_string(),
    }
}
