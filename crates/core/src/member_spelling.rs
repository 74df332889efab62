//! Spellings: how a member of a set is written where a grammar has it.

/// Form in which a member is written.
///
/// Each member has one spelling, so that a set of texts is a set of spellings: JSON would allow
/// others, such as `\u0041` for `A`, which no model needs and masks would pay for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemberSpelling {
    /// Bytes of the member as they are.
    #[default]
    Raw,
    /// Rest of a JSON string after its opening quote, the closing quote included. What JSON
    /// demands is escaped, as `\"`, `\\`, `\b`, `\f`, `\n`, `\r`, `\t`, and otherwise `\u00xx` in
    /// lower case; nothing else is.
    JsonString,
}

/// Bytes below this are escaped in JSON, besides quote and backslash.
const NUM_CONTROLS: u8 = 0x20;

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

impl MemberSpelling {
    /// Adds the spelling of a text.
    pub fn append(self, text: &[u8], spelled: &mut Vec<u8>) {
        for &byte in text {
            self.append_byte(byte, spelled);
        }
        spelled.extend(self.close());
    }

    /// Adds what is written for a byte.
    #[inline]
    pub fn append_byte(self, byte: u8, spelled: &mut Vec<u8>) {
        match self.escape(byte) {
            Some(escape) => spelled.extend_from_slice(escape),
            None => spelled.push(byte),
        }
    }

    /// The byte after the last of a text.
    #[inline]
    pub fn close(self) -> Option<u8> {
        match self {
            Self::Raw => None,
            Self::JsonString => Some(b'"'),
        }
    }

    /// Returns what is written for a byte that is not written as itself.
    #[inline]
    pub fn escape(self, byte: u8) -> Option<&'static [u8]> {
        let is_escaped = byte < NUM_CONTROLS || byte == b'"' || byte == b'\\';
        if self == Self::Raw || !is_escaped { None } else { Some(json_escape(byte)) }
    }

    /// The bytes that are not written as themselves, each with what is written, ascending.
    pub fn escapes(self) -> impl Iterator<Item = (u8, &'static [u8])> {
        let escaped: &[u8] = match self {
            Self::Raw => &[],
            Self::JsonString => &JSON_ESCAPED,
        };
        escaped.iter().map(|&byte| (byte, json_escape(byte)))
    }
}

/// The bytes that JSON escapes, ascending.
const JSON_ESCAPED: [u8; NUM_CONTROLS as usize + 2] = {
    let mut escaped = [0; NUM_CONTROLS as usize + 2];
    let mut control = 0;
    while control < NUM_CONTROLS {
        escaped[control as usize] = control;
        control += 1;
    }
    escaped[NUM_CONTROLS as usize] = b'"';
    escaped[NUM_CONTROLS as usize + 1] = b'\\';
    escaped
};

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
    fn escapes_are_those_of_single_bytes() {
        for spelling in [MemberSpelling::Raw, MemberSpelling::JsonString] {
            let escapes = (0..=u8::MAX).filter_map(|byte| Some((byte, spelling.escape(byte)?)));
            assert!(spelling.escapes().eq(escapes));
        }
    }
}
