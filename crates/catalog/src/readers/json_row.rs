//! The short way through a line of JSON that holds an item in the plainest spelling.

use std::fmt;

use palmette_catalog_filter::UniqueValue;
use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::SourceOptions;
use super::codes::code_in_range;

/// One line's item, without its codes.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) attributes: Map<String, Value>,
}

/// The names of the fields that are no attributes.
pub(super) struct Names<'o> {
    id: Vec<&'o str>,
    codes: Vec<&'o str>,
}

impl<'o> Names<'o> {
    /// `None` where codes are not in one field, a list of them.
    pub(super) fn new(options: &'o SourceOptions) -> Option<Names<'o>> {
        let is_plain = options.level_names().is_none()
            && options.packed.is_empty()
            && options.left_out.is_empty();
        is_plain.then(|| Names { id: options.id_names(), codes: options.codes_names() })
    }
}

/// Reads an object whose codes are a list of numbers, into `codes`. `None` where the spelling is
/// another or anything is wrong. `num_attributes` is a guess.
///
/// PERF: codes and IDs go straight to their places instead of through a map of all fields: a
/// million rows with 8 codes and 3 attributes were collected in 1.8 s, before in 4.9 s.
pub(super) fn read_row(
    text: &str,
    names: &Names<'_>,
    codes: &mut Vec<u32>,
    num_attributes: usize,
) -> Option<Row> {
    codes.clear();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let row = deserializer.deserialize_map(RowVisitor { names, codes, num_attributes }).ok()?;
    deserializer.end().ok()?;
    Some(row)
}

struct RowVisitor<'c> {
    names: &'c Names<'c>,
    codes: &'c mut Vec<u32>,
    num_attributes: usize,
}

impl<'de> Visitor<'de> for RowVisitor<'_> {
    type Value = Row;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an item")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Row, A::Error> {
        let unusual = || A::Error::custom("to be read the long way");
        let (mut id, mut has_codes) = (None, false);
        let mut attributes = Map::with_capacity(self.num_attributes);
        while let Some(field) = map.next_key_seed(FieldSeed(self.names))? {
            match field {
                Field::Id if id.is_some() => return Err(unusual()),
                Field::Id => id = Some(map.next_value_seed(IdSeed)?),
                Field::Codes if has_codes => return Err(unusual()),
                Field::Codes => {
                    map.next_value_seed(CodesSeed(self.codes))?;
                    has_codes = true;
                }
                Field::Attribute(name) => match attributes.entry(name) {
                    Entry::Occupied(_) => return Err(unusual()),
                    Entry::Vacant(entry) => {
                        let UniqueValue(value) = map.next_value()?;
                        entry.insert(value);
                    }
                },
            }
        }
        match id {
            Some(id) if has_codes => Ok(Row { id, attributes }),
            _ => Err(unusual()),
        }
    }
}

enum Field {
    Id,
    Codes,
    Attribute(String),
}

struct FieldSeed<'n>(&'n Names<'n>);

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = Field;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Field, E> {
        Ok(if self.0.id.contains(&name) {
            Field::Id
        } else if self.0.codes.contains(&name) {
            Field::Codes
        } else {
            Field::Attribute(name.to_owned())
        })
    }
}

struct IdSeed;

impl<'de> DeserializeSeed<'de> for IdSeed {
    type Value = String;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for IdSeed {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a whole number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

struct CodesSeed<'c>(&'c mut Vec<u32>);

impl<'de> DeserializeSeed<'de> for CodesSeed<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for CodesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of whole numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut codes: A) -> Result<(), A::Error> {
        while let Some(code) = codes.next_element::<u64>()? {
            self.0.push(code_in_range(code).ok_or_else(|| A::Error::custom("too large"))?);
        }
        Ok(())
    }
}
