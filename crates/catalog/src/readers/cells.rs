//! Values as their declared kinds read them, and values that mean none.

use serde_json::{Map, Number, Value};

use super::error::{Kind, Problem};
use super::lists::{parse_list, split_at};
use super::moments::Moments;
use super::options::CellOptions;
use crate::ColumnKind;

/// Reader of the values of one source.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    options: CellOptions,
    moments: Moments,
}

impl Cells {
    pub(super) fn new(options: &CellOptions) -> Cells {
        Cells { options: options.clone(), moments: Moments::default() }
    }

    /// The kind that an attribute was declared.
    pub(super) fn kind(&self, name: &str) -> Option<ColumnKind> {
        self.options.kinds.iter().find(|(other, _)| other == name).map(|&(_, kind)| kind)
    }

    /// The value of a cell of text; `None` where it means none. What was declared is read by its
    /// kind when the attributes of its item are [`read`](Self::read).
    pub(super) fn of_text(
        &self,
        cell: &str,
        kind: Option<ColumnKind>,
    ) -> Result<Option<Value>, String> {
        if cell.is_empty() || self.is_null(cell) {
            return Ok(None);
        }
        match kind {
            None => Ok(Some(self.inferred(cell))),
            Some(ColumnKind::Json) if cell.trim_start().starts_with(['{', '[', '"']) => {
                let value: Result<Value, _> = serde_json::from_str(cell);
                value.map(|value| Some(value).filter(|value| !value.is_null())).map_err(|error| {
                    format!("is no JSON, as which the attribute was declared: {error}")
                })
            }
            Some(ColumnKind::Json) => Ok(Some(self.inferred(cell))),
            Some(_) => Ok(Some(Value::from(cell))),
        }
    }

    /// Reads the attributes of an item by their kinds, and takes out those that mean none.
    pub(super) fn read(
        &mut self,
        place: impl Fn() -> String,
        line: u64,
        item: &str,
        attributes: &mut Map<String, Value>,
    ) -> Result<(), Problem> {
        if !self.options.nulls.is_empty() {
            attributes.retain(|_, value| !self.is_null_value(value));
            attributes.values_mut().for_each(|value| self.without_nulls(value));
        }
        for at in 0..self.options.kinds.len() {
            let (name, kind) = &self.options.kinds[at];
            let (Some(value), kind) = (attributes.get_mut(name), *kind) else { continue };
            let read = self.of_kind(kind, value.take());
            *value = read.map_err(|(value, problem)| {
                let (item, name) = (item.to_owned(), name.clone());
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Problem::at(line, Kind::Cell { item, name, value, problem })
            })?;
            if kind == ColumnKind::Timestamp {
                let place = || format!("{} (item {item:?})", place());
                *value = self.moments.read(name, value.take(), place);
            }
        }
        Ok(())
    }

    /// Notes on the source for its users, once it is read.
    pub(super) fn notes(self) -> impl Iterator<Item = String> {
        self.moments.notes()
    }

    fn is_null(&self, text: &str) -> bool {
        self.options.nulls.iter().any(|null| null == text)
    }

    /// True of numbers that JSON does not have where their names mean a missing value.
    pub(super) fn is_null_number(&self, number: f64) -> bool {
        let name = match number {
            _ if number.is_nan() => "NaN",
            f64::INFINITY => "Infinity",
            f64::NEG_INFINITY => "-Infinity",
            _ => return false,
        };
        self.is_null(name) || self.is_null(name.trim_start_matches('-'))
    }

    fn is_null_value(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.is_null(text))
    }

    /// True where null in a list means none: it was named, or a bare word that is read as null.
    fn drops_null(&self) -> bool {
        ["null", "NaN", "Infinity", "-Infinity"].iter().any(|name| self.is_null(name))
    }

    /// Takes the elements out of lists that mean none.
    fn without_nulls(&self, value: &mut Value) {
        if let Value::Array(elements) = value {
            let drops_null = self.drops_null();
            elements.retain(|element| {
                !(self.is_null_value(element) || drops_null && element.is_null())
            });
        }
    }

    /// A number or truth value only where it prints back as `cell`, up to zeros that end a decimal
    /// fraction: `1.50` is a price, `007` a name.
    pub(super) fn inferred(&self, cell: &str) -> Value {
        match cell {
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            _ => {}
        }
        // Every number that prints back starts so; most texts do not.
        if !cell.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            return Value::from(cell);
        }
        let number = self.plain_number(cell).and_then(|plain| {
            let number = parse_number(&plain)?;
            (number.to_string() == without_ending_zeros(&plain)).then_some(number)
        });
        number.map_or_else(|| Value::from(cell), Value::Number)
    }

    /// A value of a kind, as far as it can be read as one; the rest is refused, with its reason, by
    /// whoever takes it. The error is a value that no builder would explain, with what is wrong.
    fn of_kind(&self, kind: ColumnKind, value: Value) -> Result<Value, (Value, String)> {
        Ok(match (kind, value) {
            (ColumnKind::Keyword, value @ (Value::Number(_) | Value::Bool(_))) => as_text(value),
            (ColumnKind::Keywords, Value::Array(elements)) => {
                elements.into_iter().map(as_text).collect()
            }
            (ColumnKind::Keywords, Value::String(text)) => return self.list(text),
            (ColumnKind::Number, Value::String(text)) => {
                let number = self.plain_number(text.trim()).and_then(|plain| parse_number(&plain));
                number.map_or(Value::String(text), Value::Number)
            }
            (ColumnKind::Boolean, Value::String(text)) => {
                truth(&text).map_or(Value::String(text), Value::Bool)
            }
            (ColumnKind::Boolean, Value::Number(number)) => match number.as_f64() {
                Some(0.0) => Value::Bool(false),
                Some(1.0) => Value::Bool(true),
                _ => Value::Number(number),
            },
            (_, value) => value,
        })
    }

    fn list(&self, text: String) -> Result<Value, (Value, String)> {
        let separator = self.options.list_separator.as_deref();
        let (trimmed, json) = (text.trim(), "write lists as JSON does");
        // With a separator a text may begin with a bracket of its own.
        let may_be_list = separator.is_none() || trimmed.ends_with([']', ')']);
        match parse_list(trimmed).filter(|_| may_be_list) {
            Some(Ok(mut elements)) => {
                let is_none = |element: &Value| self.drops_null() && element.is_null();
                elements.retain(|element| !is_none(element) && !self.is_null_value(element));
                return Ok(elements.into_iter().map(as_text).collect());
            }
            Some(Err(error)) => {
                return Err((Value::from(text), format!("is no list: {error}; {json}")));
            }
            None => {}
        }
        if trimmed.starts_with('{') && trimmed.ends_with('}') {
            let problem = format!("stands in braces, as databases print lists; {json}");
            return Err((Value::from(text), problem));
        }
        let Some(separator) = separator else {
            let problem = format!(
                "was declared keywords, lists of text; say what parts the texts of a cell (--list-separator), or {json}"
            );
            return Err((Value::from(text), problem));
        };
        let elements = split_at(&text, separator).filter(|text| !self.is_null(text));
        Ok(elements.map(Value::from).collect())
    }

    /// A number as Rust and JSON write it; `None` where the text is none in the source's spelling.
    fn plain_number(&self, text: &str) -> Option<String> {
        let (decimal, thousands) = (self.options.decimal.unwrap_or('.'), self.options.thousands);
        if decimal == '.' && thousands.is_none() {
            return is_number(text).then(|| text.to_owned());
        }
        let (number, exponent) = match text.find(['e', 'E']) {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let (whole, fraction) = match number.split_once(decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        let whole = match thousands.filter(|&mark| whole.contains(mark)) {
            Some(mark) => ungrouped(whole, mark)?,
            None => whole.to_owned(),
        };
        let point = fraction.map_or_else(String::new, |fraction| format!(".{fraction}"));
        let plain = format!("{whole}{point}{exponent}");
        is_number(&plain).then_some(plain)
    }
}

/// True of numbers as programs write them, with an exponent or without; not of `NaN` and `inf`.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `1.234.567` without its marks; `None` where they do not part groups of three digits.
fn ungrouped(whole: &str, mark: char) -> Option<String> {
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let mut groups = digits.split(mark);
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next()?;
    let is_sound = (1..=3).contains(&first.len())
        && is_digits(first)
        && groups.all(|group| group.len() == 3 && is_digits(group));
    is_sound.then(|| whole.chars().filter(|&char| char != mark).collect())
}

fn parse_number(plain: &str) -> Option<Number> {
    let plain = plain.strip_prefix('+').unwrap_or(plain);
    (plain.parse::<u64>().ok().map(Number::from))
        .or_else(|| plain.parse::<i64>().ok().map(Number::from))
        .or_else(|| plain.parse::<f64>().ok().and_then(Number::from_f64))
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

/// A truth value as programs and people write it.
fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "1" | "1.0" => Some(true),
        "false" | "f" | "no" | "n" | "0" | "0.0" => Some(false),
        _ => None,
    }
}

/// A number or truth value as text; others as they are.
fn as_text(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.to_string()),
        Value::Bool(value) => Value::from(value.to_string()),
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cells(options: CellOptions) -> Cells {
        Cells::new(&options)
    }

    /// A cell of a declared kind, as it comes out; an error is what it would be refused with.
    #[track_caller]
    fn check(options: &CellOptions, kind: ColumnKind, cell: &str, expected: Value) {
        let options = CellOptions { kinds: vec![("x".to_owned(), kind)], ..options.clone() };
        let mut cells = cells(options);
        let read = cells.of_text(cell, Some(kind)).map(|value| {
            let mut row: Map<String, Value> =
                value.map(|value| ("x".to_owned(), value)).into_iter().collect();
            let read = cells.read(|| "line 1".to_owned(), 1, "i", &mut row);
            read.map(|()| row.shift_remove("x").unwrap_or_default()).map_err(|e| e.to_string())
        });
        let read = read.and_then(|read| read).unwrap_or_else(Value::from);
        match expected.as_str().and_then(|text| text.strip_prefix("error: ")) {
            Some(words) => {
                assert!(read.as_str().is_some_and(|text| text.contains(words)), "{read}")
            }
            None => assert_eq!(read, expected, "{kind} {cell:?}"),
        }
    }

    #[test]
    fn a_declared_kind_reads_the_cell() {
        let plain = CellOptions::default();
        check(&plain, ColumnKind::Keyword, "90210", json!("90210"));
        check(&plain, ColumnKind::Keyword, "1.50", json!("1.50"));
        check(&plain, ColumnKind::Keyword, "true", json!("true"));
        check(&plain, ColumnKind::Number, "1e-05", json!(1e-5));
        check(&plain, ColumnKind::Number, "007", json!(7));
        check(&plain, ColumnKind::Number, "+1.50", json!(1.5));
        check(&plain, ColumnKind::Number, " .5 ", json!(0.5));
        for text in ["NaN", "inf", "1,5", "1e999", "", "--1"] {
            let expected = if text.is_empty() { Value::Null } else { json!(text) };
            check(&plain, ColumnKind::Number, text, expected);
        }
        for (text, value) in [("True", true), ("FALSE", false), ("1", true), ("no", false)] {
            check(&plain, ColumnKind::Boolean, text, json!(value));
        }
        check(&plain, ColumnKind::Boolean, "2", json!("2"));
        check(&plain, ColumnKind::Json, r#"{"genre": ["fiction"]}"#, json!({"genre": ["fiction"]}));
        check(&plain, ColumnKind::Json, "12", json!(12));
        check(&plain, ColumnKind::Json, "word", json!("word"));
        check(&plain, ColumnKind::Json, "{'a': 1}", json!("error: is no JSON"));
        check(&plain, ColumnKind::Keywords, r#"["a", 1]"#, json!(["a", "1"]));
        check(&plain, ColumnKind::Keywords, "['a', \"b's\", 3]", json!(["a", "b's", "3"]));
        check(&plain, ColumnKind::Keywords, "['a' 'b']", json!(["a", "b"]));
        check(&plain, ColumnKind::Keywords, "('a', 'b')", json!(["a", "b"]));
        check(&plain, ColumnKind::Keywords, "[a, b]", json!("error: write lists as JSON does"));
        check(&plain, ColumnKind::Keywords, "['a' ... 'z']", json!("error: it was cut off"));
        check(&plain, ColumnKind::Keywords, "(a) b", json!("error: --list-separator"));
        check(&plain, ColumnKind::Keywords, "a|b", json!("error: --list-separator"));
        let bars = CellOptions { list_separator: Some("|".to_owned()), ..plain.clone() };
        check(&bars, ColumnKind::Keywords, "computer | science|", json!(["computer", "science"]));
        check(&bars, ColumnKind::Keywords, "one", json!(["one"]));
        check(&bars, ColumnKind::Keywords, r#"["a|b"]"#, json!(["a|b"]));
        check(&bars, ColumnKind::Keywords, "[new] a|b", json!(["[new] a", "b"]));
        let commas = CellOptions { list_separator: Some(",".to_owned()), ..plain.clone() };
        check(&commas, ColumnKind::Keywords, "{a,b}", json!("error: stands in braces"));
    }

    #[test]
    fn numbers_are_spelled_as_the_source_says() {
        let german =
            CellOptions { decimal: Some(','), thousands: Some('.'), ..CellOptions::default() };
        check(&german, ColumnKind::Number, "1.234,56", json!(1234.56));
        check(&german, ColumnKind::Number, "-1.234.567", json!(-1_234_567));
        check(&german, ColumnKind::Number, "0,5e3", json!(500.0));
        check(&german, ColumnKind::Number, "12.34", json!("12.34"));
        check(&german, ColumnKind::Number, "1,234.5", json!("1,234.5"));
        let german = cells(german);
        assert_eq!(german.inferred("19,90"), json!(19.9));
        assert_eq!(german.inferred("1.000"), json!(1000));
        assert_eq!(german.inferred("19.90"), json!("19.90"));
        let english = cells(CellOptions { thousands: Some(','), ..CellOptions::default() });
        assert_eq!(english.inferred("1,234.50"), json!(1234.5));
        assert_eq!(english.inferred("1,2"), json!("1,2"));
    }

    #[test]
    fn undeclared_numbers_print_back_as_they_were() {
        let plain = Cells::default();
        for number in ["0", "-3", "18446744073709551615", "19.99", "1.0", "-0.5"] {
            assert!(plain.inferred(number).is_number(), "{number}");
            assert_eq!(plain.inferred(number).to_string(), number);
        }
        assert_eq!(plain.inferred("1.50"), json!(1.5));
        assert_eq!(plain.inferred("20.00"), json!(20.0));
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
            assert_eq!(plain.inferred(text), json!(text));
        }
    }

    #[test]
    fn what_means_none_is_none() {
        let options = CellOptions {
            nulls: vec!["NA".to_owned(), "null".to_owned()],
            ..CellOptions::default()
        };
        let mut cells = cells(options);
        assert_eq!(cells.of_text("NA", None), Ok(None));
        let row = json!({"a": "NA", "b": ["x", null, "NA"], "c": "Na", "d": null});
        let mut row = row.as_object().unwrap().clone();
        cells.read(|| unreachable!(), 1, "i", &mut row).unwrap();
        assert_eq!(Value::from(row), json!({"b": ["x"], "c": "Na", "d": null}));
    }
}
