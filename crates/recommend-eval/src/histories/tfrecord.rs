//! TensorFlow's files of records, of which each is a `tf.train.Example`.
//!
//! A record is its length (u64), a masked CRC-32C of the length (u32), its bytes and a masked
//! CRC-32C of these, little-endian. The checksums are not verified: a damaged length or message is
//! an error all the same. An example is a protobuf: a map from names to lists of bytes, floats or
//! whole numbers.

use std::io::{self, BufRead, Read};

use serde_json::{Map, Number, Value};

/// Limit on the bytes of a record.
const MAX_RECORD_BYTES: u64 = 64 << 20;

/// Reads the bytes of the next record; `None` at the end of the file.
///
/// # Errors
/// A sentence when the file ends within a record, or cannot be read.
pub(crate) fn next_record(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file ends within a record".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    if input.fill_buf().map_err(cannot)?.is_empty() {
        return Ok(None);
    }
    let mut head = [0; 12];
    input.read_exact(&mut head).map_err(cannot)?;
    let length = u64::from_le_bytes(head[..8].try_into().expect("eight bytes"));
    if length > MAX_RECORD_BYTES {
        return Err(format!(
            "a record of {length} bytes: it is no file of TensorFlow's records, or one of more than {MAX_RECORD_BYTES} bytes a record"
        ));
    }
    let mut record = Vec::new();
    input.take(length).read_to_end(&mut record).map_err(cannot)?;
    let mut checksum = [0; 4];
    input.read_exact(&mut checksum).map_err(cannot)?;
    Ok(Some(record))
}

/// Reads an example: the list of each feature's values, by its name.
///
/// # Errors
/// A sentence when the bytes are none.
pub(crate) fn example(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let broken = || "it is no tf.train.Example".to_owned();
    let mut row = Map::new();
    for features in fields(bytes, 1).ok_or_else(broken)? {
        for entry in fields(features, 1).ok_or_else(broken)? {
            let name = fields(entry, 1).ok_or_else(broken)?;
            let name = name.last().copied().unwrap_or_default();
            let name = std::str::from_utf8(name).map_err(|_| broken())?;
            let feature = fields(entry, 2).ok_or_else(broken)?.last().copied().unwrap_or_default();
            row.insert(name.to_owned(), feature_values(feature).ok_or_else(broken)?.into());
        }
    }
    Ok(row)
}

fn feature_values(feature: &[u8]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for field in Fields(feature) {
        let Field { number, content } = field?;
        let Content::Bytes(list) = content else { return None };
        for value in Fields(list) {
            let Field { number: 1, content } = value? else { continue };
            match (number, content) {
                (1, Content::Bytes(bytes)) => {
                    values.push(String::from_utf8_lossy(bytes).into_owned().into());
                }
                (2, Content::Fixed32(float)) => values.push(float_value(float)),
                (2, Content::Bytes(packed)) => {
                    let floats = packed.chunks_exact(4);
                    let float = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four"));
                    values.extend(floats.map(|bytes| float_value(float(bytes))));
                }
                (3, Content::Varint(number)) => values.push((number as i64).into()),
                (3, Content::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        values.push((varint(&mut packed)? as i64).into());
                    }
                }
                _ => return None,
            }
        }
    }
    Some(values)
}

fn float_value(bits: u32) -> Value {
    Number::from_f64(f64::from(f32::from_bits(bits))).map_or(Value::Null, Value::Number)
}

/// The messages in the fields of one number.
fn fields(message: &[u8], wanted: u64) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    for field in Fields(message) {
        match field? {
            Field { number, content: Content::Bytes(bytes) } if number == wanted => {
                found.push(bytes);
            }
            Field { .. } => {}
        }
    }
    Some(found)
}

struct Field<'m> {
    number: u64,
    content: Content<'m>,
}

enum Content<'m> {
    Varint(u64),
    Fixed64,
    Bytes(&'m [u8]),
    Fixed32(u32),
}

/// The fields of a message, one after another; a `None` ends a message that is broken.
struct Fields<'m>(&'m [u8]);

impl<'m> Iterator for Fields<'m> {
    type Item = Option<Field<'m>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = next_field(&mut self.0);
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn next_field<'m>(message: &mut &'m [u8]) -> Option<Field<'m>> {
    let tag = varint(message)?;
    let content = match tag & 7 {
        0 => Content::Varint(varint(message)?),
        1 => {
            message.split_off(..8)?;
            Content::Fixed64
        }
        2 => {
            let length = usize::try_from(varint(message)?).ok()?;
            Content::Bytes(message.split_off(..length)?)
        }
        5 => Content::Fixed32(u32::from_le_bytes(message.split_off(..4)?.try_into().ok()?)),
        _ => return None,
    };
    Some(Field { number: tag >> 3, content })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(number: u8, content: &[u8]) -> Vec<u8> {
        assert!(content.len() < 0x80);
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    fn feature(name: &str, kind: u8, list: &[u8]) -> Vec<u8> {
        message(1, &[message(1, name.as_bytes()), message(2, &message(kind, list))].concat())
    }

    #[test]
    fn examples_and_their_lists() {
        let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let numbers = message(1, &[&[3, 0xac, 0x02][..], &minus_one].concat());
        let texts = [message(1, b"a"), message(1, "é".as_bytes())].concat();
        let features = [
            feature("ids", 3, &numbers),
            // One by one, as old writers put them.
            feature("user", 3, &[8, 7]),
            feature("texts", 1, &texts),
            feature("floats", 2, &message(1, &1.5_f32.to_le_bytes())),
            feature("none", 3, &[]),
        ]
        .concat();
        let row = example(
            &[0x0a, features.len() as u8].iter().chain(&features).copied().collect::<Vec<_>>(),
        );
        let row = match features.len() < 0x80 {
            true => row.unwrap(),
            false => example(
                &[
                    &[0x0a, (features.len() & 0x7f) as u8 | 0x80, (features.len() >> 7) as u8][..],
                    &features,
                ]
                .concat(),
            )
            .unwrap(),
        };
        let expected = json!({"ids": [3, 300, -1], "user": [7], "texts": ["a", "é"], "floats": [1.5], "none": []});
        assert_eq!(Value::Object(row), expected);
        assert_eq!(example(b"").unwrap(), Map::new());
    }

    #[test]
    fn what_is_broken_is_told() {
        for bytes in [&b"\x0a\x05ab"[..], b"\xff", b"\x0b", &[0xff; 20], b"\x0a\x02\x0a\x05"] {
            assert!(example(bytes).is_err(), "{bytes:?}");
        }
        let record =
            |length: u64, bytes: &[u8]| [&length.to_le_bytes()[..], &[0; 4], bytes].concat();
        let mut whole = &record(2, b"ab\0\0\0\0")[..];
        assert_eq!(next_record(&mut whole).unwrap().unwrap(), b"ab");
        assert_eq!(next_record(&mut whole).unwrap(), None);
        for (bytes, word) in [
            (record(2, b"ab"), "within"),
            (record(9, b"ab"), "within"),
            (b"abc".to_vec(), "within"),
            (record(u64::MAX, b""), "no file"),
        ] {
            let error = next_record(&mut &bytes[..]).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
