//! JSON as sources hold it: one large object, or an object a line. Neither lets a key appear twice,
//! where `serde_json` alone would keep the last.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::marker::PhantomData;

use palmette_catalog_filter::UniqueValue;
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::error::{Kind, Problem};
use super::lines::Lines;

/// Calls `visit(line, key, value)` for each entry of the one object in `input`, in order; `line`
/// is exactly that of the key. Blank input has no entries. Keys may repeat: `visit` can tell.
pub(super) fn for_each_entry<T: DeserializeOwned>(
    input: impl BufRead,
    visit: impl FnMut(u64, String, T) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let (position, mut refused) = (Position::default(), None);
    let entries = Entries { visit, position: &position, refused: &mut refused, value: PhantomData };
    let result = read_whole(input, &position, entries);
    refused.map_or(result, Err)
}

/// Calls `visit(line, element)` for each element of the one list in `input`, in order; `line` is
/// that in which the element begins.
pub(super) fn for_each_element<T: DeserializeOwned>(
    input: impl BufRead,
    visit: impl FnMut(u64, T) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let (position, mut refused) = (Position::default(), None);
    let elements =
        Elements { visit, position: &position, refused: &mut refused, value: PhantomData };
    let result = read_whole(input, &position, elements);
    refused.map_or(result, Err)
}

/// True where the input begins with a list, as far as its first bytes show.
pub(super) fn begins_with_list(input: &mut impl BufRead) -> Result<bool, Problem> {
    Ok(input.fill_buf()?.trim_ascii_start().first() == Some(&b'['))
}

/// Reads the one value in `input`; blank input has none.
fn read_whole(
    input: impl BufRead,
    position: &Position,
    seed: impl for<'de> DeserializeSeed<'de, Value = ()>,
) -> Result<(), Problem> {
    let reader = OneByteReader { input, position, after_newline: false };
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    match seed.deserialize(&mut deserializer).and_then(|()| deserializer.end()) {
        Ok(()) => Ok(()),
        Err(error) if error.is_eof() && position.only_blanks.get() => Ok(()),
        Err(error) => Err(Problem::json(1, error)),
    }
}

/// Calls `visit(line, object)` for each line that is not blank.
pub(super) fn for_each_object(
    input: impl BufRead,
    mut visit: impl FnMut(u64, Map<String, Value>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut lines = Lines::new(input);
    while let Some((line, text)) = lines.next_line()? {
        if text.trim_ascii().is_empty() {
            continue;
        }
        let Fields(object) =
            serde_json::from_str(text).map_err(|error| Problem::json_line(line, text, error))?;
        visit(line, object)?;
    }
    Ok(())
}

/// Takes the field that has one of `names` out of `object`, keeping the order of the others.
/// `missing` says what is wrong where there is none among the fields it is given.
pub(super) fn take_field(
    line: u64,
    object: &mut Map<String, Value>,
    names: &[&str],
    missing: impl FnOnce(&[String]) -> Kind,
) -> Result<Value, Problem> {
    let mut present = names.iter().filter(|&&name| object.contains_key(name));
    let (first, second) = (present.next(), present.next());
    if let (Some(&first), Some(&second)) = (first, second) {
        let (first, second) = (first.to_owned(), second.to_owned());
        return Err(Problem::at(line, Kind::BothFields { first, second }));
    }
    first.and_then(|&name| object.shift_remove(name)).ok_or_else(|| {
        let found: Vec<String> = object.keys().cloned().collect();
        Problem::at(line, missing(&found))
    })
}

/// An item ID spelled as text or as a whole number.
pub(super) fn id_from_json(line: u64, value: Value) -> Result<String, Problem> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) if number.is_u64() || number.is_i64() => Ok(number.to_string()),
        other => {
            Err(Problem::at(line, Kind::BadId { value: super::checked_sink::describe(&other) }))
        }
    }
}

/// A JSON object in which no key appears twice, nor in objects inside it.
pub(super) struct Fields(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Map::new();
                while let Some(key) = map.next_key::<String>()? {
                    match fields.entry(key) {
                        Entry::Occupied(entry) => {
                            let key = super::error::shorten(entry.key());
                            return Err(A::Error::custom(format!("field {key} appears twice")));
                        }
                        Entry::Vacant(entry) => {
                            let UniqueValue(value) = map.next_value()?;
                            entry.insert(value);
                        }
                    }
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Visits the entries of an object as they are parsed. serde carries no errors of ours, so one from
/// `visit` waits in `refused`.
struct Entries<'a, T, F> {
    visit: F,
    position: &'a Position,
    refused: &'a mut Option<Problem>,
    value: PhantomData<T>,
}

impl<'de, T, F> DeserializeSeed<'de> for Entries<'_, T, F>
where
    T: DeserializeOwned,
    F: FnMut(u64, String, T) -> Result<(), Problem>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T, F> Visitor<'de> for Entries<'_, T, F>
where
    T: DeserializeOwned,
    F: FnMut(u64, String, T) -> Result<(), Problem>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object whose keys are item IDs")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let line = self.position.line.get();
            let value = map.next_value()?;
            if let Err(problem) = (self.visit)(line, key, value) {
                *self.refused = Some(problem);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

/// Visits the elements of a list as they are parsed, as [`Entries`] does with those of an object.
struct Elements<'a, T, F> {
    visit: F,
    position: &'a Position,
    refused: &'a mut Option<Problem>,
    value: PhantomData<T>,
}

impl<'de, T, F> DeserializeSeed<'de> for Elements<'_, T, F>
where
    T: DeserializeOwned,
    F: FnMut(u64, T) -> Result<(), Problem>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T, F> Visitor<'de> for Elements<'_, T, F>
where
    T: DeserializeOwned,
    F: FnMut(u64, T) -> Result<(), Problem>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one list of JSON objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let position = self.position;
        while let Some((line, element)) = list.next_element_seed(Placed(position, PhantomData))? {
            if let Err(problem) = (self.visit)(line, element) {
                *self.refused = Some(problem);
                return Err(A::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

/// A value with the line in which it begins.
struct Placed<'a, T>(&'a Position, PhantomData<T>);

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Placed<'_, T> {
    type Value = (u64, T);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(u64, T), D::Error> {
        // The parser has looked at the first byte of the value, and no further.
        Ok((self.0.line.get(), T::deserialize(deserializer)?))
    }
}

/// Position of the parser in the text.
struct Position {
    /// The line of the last byte handed out; a line end belongs to the line it ends. When
    /// `serde_json` has just read a key, that byte is the key's closing quote, and a key cannot
    /// span lines.
    line: Cell<u64>,
    only_blanks: Cell<bool>,
}

impl Default for Position {
    fn default() -> Position {
        Position { line: Cell::new(1), only_blanks: Cell::new(true) }
    }
}

/// Hands out one byte a call, which is how `serde_json` asks, so that `position` is never ahead.
struct OneByteReader<'a, R> {
    input: R,
    position: &'a Position,
    after_newline: bool,
}

impl<R: BufRead> Read for OneByteReader<'_, R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let Some(slot) = target.first_mut() else { return Ok(0) };
        let Some(&byte) = self.input.fill_buf()?.first() else { return Ok(0) };
        self.input.consume(1);
        *slot = byte;
        if self.after_newline {
            self.position.line.set(self.position.line.get() + 1);
        }
        self.after_newline = byte == b'\n';
        if !byte.is_ascii_whitespace() {
            self.position.only_blanks.set(false);
        }
        Ok(1)
    }
}
