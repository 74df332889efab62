//! Entries of the log, in bytes.
//!
//! One byte for the kind: 1 a batch, 2 a rollback, 3 wider codebooks, 4 a batch with a key, 5 a
//! generation that is kept, 6 one that is forgotten; the last two are in shared logs alone (see
//! [`crate::replica`]). A batch: the number of updates, then each: 1 and an item, 2 and an id, or
//! 3, an id and attributes. A key, which stands before its batch: text and 32 bytes of fingerprint.
//! A rollback: the generation it goes back to. What is kept: text, empty for no name; what is
//! forgotten: its generation. Codebooks: the number of levels and the size of each. Whole numbers
//! are LEB128, text is its length and its bytes. Attribute values are a byte for their type and
//! then, for numbers, 8 bytes: floats come back to the bit, which JSON would not promise.

use palmette_catalog::Item;
use palmette_catalog::index::MAX_LEVELS;
use serde_json::{Map, Number, Value};

use crate::batch_keys::BatchKey;
use crate::update::Update;

/// Cause of a generation, as the log tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LogEntry {
    /// Updates were applied.
    Batch { updates: Vec<Update>, key: Option<BatchKey> },
    /// The contents of a kept generation were published again.
    Rollback { to: u64 },
    /// Codebooks have these sizes from then on.
    Widen { codes_per_level: Vec<u32> },
    /// The generation that this entry makes, which has the items of the one before, is kept.
    Keep { name: Option<String> },
    /// A kept generation is let go of.
    Forget { generation: u64 },
}

/// Far deeper than any attribute that is taken.
const MAX_NESTING: usize = 256;

pub(crate) fn write_batch(updates: &[Update], key: Option<&BatchKey>, out: &mut Vec<u8>) {
    match key {
        None => out.push(1),
        Some(BatchKey { name, fingerprint }) => {
            out.push(4);
            write_text(name, out);
            out.extend_from_slice(fingerprint);
        }
    }
    write_number(updates.len() as u64, out);
    for update in updates {
        match update {
            Update::Upsert(item) => {
                out.push(1);
                write_text(&item.id, out);
                write_codes(&item.codes, out);
                write_object(&item.attributes, out);
            }
            Update::Delete(id) => {
                out.push(2);
                write_text(id, out);
            }
            Update::Patch { id, attributes } => {
                out.push(3);
                write_text(id, out);
                write_object(attributes, out);
            }
        }
    }
}

pub(crate) fn write_rollback(to: u64, out: &mut Vec<u8>) {
    out.push(2);
    write_number(to, out);
}

pub(crate) fn write_widen(codes_per_level: &[u32], out: &mut Vec<u8>) {
    out.push(3);
    write_codes(codes_per_level, out);
}

pub(crate) fn write_keep(name: Option<&str>, out: &mut Vec<u8>) {
    out.push(5);
    write_text(name.unwrap_or(""), out);
}

pub(crate) fn write_forget(generation: u64, out: &mut Vec<u8>) {
    out.push(6);
    write_number(generation, out);
}

/// Reads an entry that fills `bytes`; `None` where they are none.
pub(crate) fn read(bytes: &[u8]) -> Option<LogEntry> {
    let mut input = Input(bytes);
    let entry = match input.byte()? {
        kind @ (1 | 4) => {
            let key = if kind == 4 { Some(input.batch_key()?) } else { None };
            let num_updates = input.number()?;
            let mut updates = Vec::with_capacity((num_updates as usize).min(bytes.len()));
            for _ in 0..num_updates {
                updates.push(match input.byte()? {
                    1 => Update::Upsert(input.item()?),
                    2 => Update::Delete(input.text()?),
                    3 => Update::Patch { id: input.text()?, attributes: input.object(0)? },
                    _ => return None,
                });
            }
            LogEntry::Batch { updates, key }
        }
        2 => LogEntry::Rollback { to: input.number()? },
        3 => LogEntry::Widen { codes_per_level: input.codes()? },
        5 => LogEntry::Keep { name: Some(input.text()?).filter(|name| !name.is_empty()) },
        6 => LogEntry::Forget { generation: input.number()? },
        _ => return None,
    };
    input.0.is_empty().then_some(entry)
}

pub(crate) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn write_codes(codes: &[u32], out: &mut Vec<u8>) {
    write_number(codes.len() as u64, out);
    codes.iter().for_each(|&code| write_number(u64::from(code), out));
}

pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    write_number(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn write_object(object: &Map<String, Value>, out: &mut Vec<u8>) {
    write_number(object.len() as u64, out);
    for (name, value) in object {
        write_text(name, out);
        write_value(value, out);
    }
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(value) => out.push(1 + u8::from(*value)),
        Value::Number(number) => {
            let (tag, bytes) = match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => (3, number.to_le_bytes()),
                (None, Some(number)) => (4, number.to_le_bytes()),
                (None, None) => (5, number.as_f64().unwrap_or_default().to_le_bytes()),
            };
            out.push(tag);
            out.extend_from_slice(&bytes);
        }
        Value::String(text) => {
            out.push(6);
            write_text(text, out);
        }
        Value::Array(values) => {
            out.push(7);
            write_number(values.len() as u64, out);
            values.iter().for_each(|value| write_value(value, out));
        }
        Value::Object(object) => {
            out.push(8);
            write_object(object, out);
        }
    }
}

/// Bytes still to be read.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn eight(&mut self) -> Option<[u8; 8]> {
        self.take(8)?.try_into().ok()
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<String> {
        let len = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.take(len)?).ok().map(str::to_owned)
    }

    pub(crate) fn batch_key(&mut self) -> Option<BatchKey> {
        Some(BatchKey { name: self.text()?, fingerprint: self.take(32)?.try_into().ok()? })
    }

    fn item(&mut self) -> Option<Item> {
        let id = self.text()?;
        let codes = self.codes()?;
        Some(Item { id, codes, attributes: self.object(0)? })
    }

    fn codes(&mut self) -> Option<Vec<u32>> {
        let num_codes = self.number().filter(|&len| len <= MAX_LEVELS as u64)?;
        (0..num_codes).map(|_| u32::try_from(self.number()?).ok()).collect()
    }

    fn object(&mut self, nesting: usize) -> Option<Map<String, Value>> {
        let len = self.number()?;
        let mut object = Map::new();
        for _ in 0..len {
            let name = self.text()?;
            object.insert(name, self.value(nesting)?);
        }
        Some(object)
    }

    fn value(&mut self, nesting: usize) -> Option<Value> {
        if nesting > MAX_NESTING {
            return None;
        }
        Some(match self.byte()? {
            0 => Value::Null,
            1 => Value::Bool(false),
            2 => Value::Bool(true),
            3 => u64::from_le_bytes(self.eight()?).into(),
            4 => i64::from_le_bytes(self.eight()?).into(),
            5 => Value::Number(Number::from_f64(f64::from_le_bytes(self.eight()?))?),
            6 => Value::String(self.text()?),
            7 => {
                let len = self.number()?;
                let values = (0..len).map(|_| self.value(nesting + 1));
                Value::Array(values.collect::<Option<_>>()?)
            }
            8 => Value::Object(self.object(nesting + 1)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<u64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::String),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::btree_map(".{0,3}", inner, 0..4)
                    .prop_map(|object| Value::Object(object.into_iter().collect())),
            ]
        })
    }

    fn updates() -> impl Strategy<Value = Vec<Update>> {
        let codes = prop::collection::vec(any::<u32>(), 0..5);
        let attributes = prop::collection::btree_map(".{0,3}", values(), 0..4);
        let item = (".{0,8}", codes, attributes).prop_map(|(id, codes, attributes)| {
            Update::Upsert(Item { id, codes, attributes: attributes.into_iter().collect() })
        });
        let patch = (".{0,8}", prop::collection::btree_map(".{0,3}", values(), 0..4));
        let patch = patch.prop_map(|(id, attributes)| Update::Patch {
            id,
            attributes: attributes.into_iter().collect(),
        });
        let delete = ".{0,8}".prop_map(Update::Delete);
        prop::collection::vec(prop_oneof![item, patch, delete], 0..6)
    }

    fn keys() -> impl Strategy<Value = Option<BatchKey>> {
        let key = (".{1,8}", any::<[u8; 32]>());
        prop::option::of(key.prop_map(|(name, fingerprint)| BatchKey { name, fingerprint }))
    }

    proptest! {
        #[test]
        fn gives_back_what_went_in(
            updates in updates(),
            key in keys(),
            to: u64,
            codes_per_level in prop::collection::vec(any::<u32>(), 0..5),
        ) {
            let mut bytes = Vec::new();
            write_batch(&updates, key.as_ref(), &mut bytes);
            prop_assert_eq!(read(&bytes), Some(LogEntry::Batch { updates, key }));
            bytes.clear();
            write_rollback(to, &mut bytes);
            prop_assert_eq!(read(&bytes), Some(LogEntry::Rollback { to }));
            bytes.clear();
            write_widen(&codes_per_level, &mut bytes);
            prop_assert_eq!(read(&bytes), Some(LogEntry::Widen { codes_per_level }));
            for name in [None, Some("opening".to_owned())] {
                bytes.clear();
                write_keep(name.as_deref(), &mut bytes);
                prop_assert_eq!(read(&bytes), Some(LogEntry::Keep { name }));
            }
            bytes.clear();
            write_forget(to, &mut bytes);
            prop_assert_eq!(read(&bytes), Some(LogEntry::Forget { generation: to }));
        }

        #[test]
        fn a_cut_entry_is_none(updates in updates(), key in keys(), at: prop::sample::Index) {
            let mut bytes = Vec::new();
            write_batch(&updates, key.as_ref(), &mut bytes);
            bytes.truncate(at.index(bytes.len()));
            prop_assert_eq!(read(&bytes), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            _ = read(&bytes);
        }
    }
}
