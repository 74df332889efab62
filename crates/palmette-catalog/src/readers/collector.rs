//! Puts items together and checks what one item alone cannot show: distinct item IDs, and one
//! spelling of codes throughout the source.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value};

use super::SourceItems;
use super::codes::{BadCode, code_in_range, parse_code, split_codes};
use super::error::{Kind, Problem, shorten};
use crate::item::Item;

#[derive(Default)]
pub(super) struct Collector {
    source: SourceItems,
    first_lines: HashMap<String, u64>,
    /// Whether codes have prefixes, and the line that said so.
    has_prefixes: Option<(bool, u64)>,
    /// The prefix of each level, and the line that said so. Empty without prefixes.
    prefixes: Vec<(String, u64)>,
}

impl Collector {
    /// Adds an item whose codes came from one of the `codes_from_*` below.
    pub(super) fn push(
        &mut self,
        line: u64,
        id: String,
        codes: Vec<u32>,
        attributes: Map<String, Value>,
    ) -> Result<(), Problem> {
        if id.is_empty() {
            return Err(Problem::at(line, Kind::EmptyId));
        }
        if codes.is_empty() {
            return Err(Problem::at(line, Kind::EmptyCodes { item: id }));
        }
        match self.first_lines.entry(id.clone()) {
            Entry::Vacant(entry) => entry.insert(line),
            Entry::Occupied(entry) => {
                let first_line = *entry.get();
                return Err(Problem::at(line, Kind::DuplicateId { id, first_line }));
            }
        };
        self.source.items.push(Item { id, codes, attributes });
        self.source.lines.push(line);
        Ok(())
    }

    pub(super) fn finish(mut self) -> SourceItems {
        if !self.prefixes.is_empty() {
            let prefixes = self.prefixes.into_iter().map(|(prefix, _)| prefix);
            self.source.level_prefixes = Some(prefixes.collect());
        }
        self.source
    }

    /// `value` is a list of codes, each a number or text, or one text.
    pub(super) fn codes_from_json(
        &mut self,
        line: u64,
        item: &str,
        value: &Value,
    ) -> Result<Vec<u32>, Problem> {
        match value {
            Value::Array(values) => values
                .iter()
                .enumerate()
                .map(|(level, value)| self.code_from_json(line, item, level, value))
                .collect(),
            Value::String(text) => self.codes_from_text(line, item, text),
            other => {
                let value = describe(other);
                Err(Problem::at(line, Kind::NotCodes { item: item.to_owned(), value }))
            }
        }
    }

    /// `text` is a whole semantic ID: `<a_1><b_2>`, `1 2` or `1-2`.
    pub(super) fn codes_from_text(
        &mut self,
        line: u64,
        item: &str,
        text: &str,
    ) -> Result<Vec<u32>, Problem> {
        self.codes_from_pieces(line, item, split_codes(text))
    }

    /// Each piece is the text of one code.
    pub(super) fn codes_from_pieces<'a>(
        &mut self,
        line: u64,
        item: &str,
        pieces: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<u32>, Problem> {
        pieces
            .into_iter()
            .enumerate()
            .map(|(level, piece)| self.code_from_text(line, item, level, piece))
            .collect()
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
        let Some(code) = value.as_u64().and_then(code_in_range) else {
            let value = describe(value);
            return Err(Problem::at(line, Kind::BadCode { item: item.to_owned(), value, level }));
        };
        self.check_spelling(line, item, level, &code.to_string(), None)?;
        Ok(code)
    }

    fn code_from_text(
        &mut self,
        line: u64,
        item: &str,
        level: usize,
        text: &str,
    ) -> Result<u32, Problem> {
        let code = parse_code(text).map_err(|bad| {
            let (item, value) = (item.to_owned(), shorten(text));
            Problem::at(
                line,
                match bad {
                    BadCode::NotACode => Kind::BadCode { item, value, level },
                    BadCode::LeadingZero => Kind::LeadingZero { item, value, level },
                },
            )
        })?;
        self.check_spelling(line, item, level, text, code.prefix)?;
        Ok(code.value)
    }

    /// Compares the spelling of a code with that of the codes before it.
    fn check_spelling(
        &mut self,
        line: u64,
        item: &str,
        level: usize,
        text: &str,
        prefix: Option<&str>,
    ) -> Result<(), Problem> {
        let (expects_prefix, first_line) =
            *self.has_prefixes.get_or_insert((prefix.is_some(), line));
        let kind = match (prefix, self.prefixes.get(level)) {
            (prefix, _) if prefix.is_some() != expects_prefix => {
                let spelling = if expects_prefix { "<letter_number>" } else { "as plain numbers" };
                let (item, value) = (item.to_owned(), shorten(text));
                Kind::OtherSpelling { item, value, level, spelling, first_line }
            }
            (Some(prefix), Some((expected, first_line))) if prefix != expected => {
                let (item, value) = (item.to_owned(), shorten(text));
                let prefix = expected.clone();
                Kind::OtherPrefix { item, value, level, prefix, first_line: *first_line }
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

/// A JSON value for a message: as it is where short, else its kind.
pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::String(text) => shorten(text),
        Value::Array(_) => "of type list".to_owned(),
        Value::Object(_) => "of type object".to_owned(),
        other => other.to_string(),
    }
}
