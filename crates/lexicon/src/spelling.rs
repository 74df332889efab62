//! Spellings: how a string is written where a grammar has it.

use std::ops::Range;

/// Form in which a string is written.
///
/// Each string has one spelling, so that a set of strings is a set of spellings: JSON would allow
/// others, such as `\u0041` for `A`, which no model needs and masks would pay for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// Bytes of the string as they are.
    #[default]
    Raw,
    /// Rest of a JSON string after its opening quote, the closing quote included. What JSON
    /// demands is escaped, as `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, and otherwise `\u00xx` in
    /// lower case; nothing else is.
    JsonString,
}

/// Bytes below this are escaped in JSON, besides quote and backslash.
const NUM_CONTROLS: u8 = 0x20;

/// Escapes in progress: all beginnings of escapes that are none, and before them the empty one. A
/// place here is what a cursor knows of an escape.
const BEGUN: [&[u8]; 7] = [b"", b"\\", b"\\u", b"\\u0", b"\\u00", b"\\u000", b"\\u001"];

/// Escapes of control characters by number.
const CONTROLS: [[u8; 6]; NUM_CONTROLS as usize] = {
    let digits = *b"0123456789abcdef";
    let mut all = [*b"\\u0000"; NUM_CONTROLS as usize];
    let mut control = 0;
    while control < all.len() {
        all[control][4] = digits[control >> 4];
        all[control][5] = digits[control & 15];
        control += 1;
    }
    all
};

impl Spelling {
    /// Adds the spelling of a string.
    pub fn append(self, text: &[u8], spelled: &mut Vec<u8>) {
        for &byte in text {
            self.append_byte(byte, spelled);
        }
        spelled.extend(self.close());
    }

    pub(crate) fn append_byte(self, byte: u8, spelled: &mut Vec<u8>) {
        match self.escape(byte) {
            Some(escape) => spelled.extend_from_slice(escape),
            None => spelled.push(byte),
        }
    }

    /// The byte after the last of a string.
    #[inline]
    pub(crate) fn close(self) -> Option<u8> {
        match self {
            Self::Raw => None,
            Self::JsonString => Some(b'"'),
        }
    }

    /// Returns what is written for a byte that is not written as itself.
    #[inline]
    pub(crate) fn escape(self, byte: u8) -> Option<&'static [u8]> {
        let is_escaped = byte < NUM_CONTROLS || byte == b'"' || byte == b'\\';
        if self == Self::Raw || !is_escaped { None } else { Some(json_escape(byte)) }
    }

    /// Ranges of the bytes that are not written as themselves, ascending.
    pub(crate) fn escaped(self) -> impl Iterator<Item = u8> {
        let ranges: &[Range<u8>] = match self {
            Self::Raw => &[],
            Self::JsonString => &[0..NUM_CONTROLS, b'"'..b'"' + 1, b'\\'..b'\\' + 1],
        };
        ranges.iter().cloned().flatten()
    }

    /// The bytes whose escapes begin with an escape in progress and then `byte`.
    pub(crate) fn escaped_after(self, begun: usize, byte: u8) -> impl Iterator<Item = u8> {
        let so_far = BEGUN.get(begun).copied().unwrap_or_default();
        self.escaped().filter(move |&escaped| {
            let rest = json_escape(escaped).strip_prefix(so_far);
            rest.and_then(<[u8]>::first) == Some(&byte)
        })
    }

    /// The bytes whose escapes begin with an escape in progress, each with the remainder of its
    /// escape.
    pub(crate) fn escapes_begun(self, begun: usize) -> impl Iterator<Item = (u8, &'static [u8])> {
        let so_far = BEGUN.get(begun).copied().unwrap_or_default();
        self.escaped().filter_map(move |escaped| {
            let rest = json_escape(escaped).strip_prefix(so_far)?;
            Some((escaped, rest))
        })
    }
}

/// The escape in progress after one more byte; `None` where that is none: it is whole, or begins
/// none.
pub(crate) fn begun_after(begun: usize, byte: u8) -> Option<usize> {
    let so_far = BEGUN.get(begun)?;
    BEGUN.iter().position(|next| next.split_last() == Some((&byte, so_far)))
}

#[cold]
fn json_escape(byte: u8) -> &'static [u8] {
    match byte {
        b'"' => b"\\\"",
        b'\\' => b"\\\\",
        b'\n' => b"\\n",
        b'\t' => b"\\t",
        b'\r' => b"\\r",
        0x08 => b"\\b",
        0x0C => b"\\f",
        _ => &CONTROLS[usize::from(byte % NUM_CONTROLS)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_spelled_as_serde_json_does() {
        let all: String = (0..0x250).filter_map(char::from_u32).collect();
        let mut spelled = b"\"".to_vec();
        Spelling::JsonString.append(all.as_bytes(), &mut spelled);
        assert_eq!(String::from_utf8(spelled).unwrap(), serde_json::to_string(&all).unwrap());
    }

    #[test]
    fn every_beginning_of_an_escape_has_a_place() {
        for byte in Spelling::JsonString.escaped() {
            let escape = json_escape(byte);
            let (mut begun, last) = (0, escape.len() - 1);
            for (at, &next) in escape.iter().enumerate() {
                assert!(Spelling::JsonString.escaped_after(begun, next).any(|b| b == byte));
                match begun_after(begun, next) {
                    Some(place) => begun = place,
                    None => assert_eq!(at, last),
                }
            }
        }
        assert_eq!(begun_after(1, b'n'), None);
    }
}
