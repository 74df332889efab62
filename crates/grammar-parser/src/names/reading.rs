//! A name in progress: the beginning of a JSON string, decoded as far as it goes.

/// A lexeme of blanks, a JSON string and whatever follows it, read so far.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The opening quote was read.
    pub(super) begun: bool,
    /// The closing quote was read.
    pub(super) ended: bool,
    /// An escape is in progress.
    pub(super) escapes: bool,
    /// The characters so far in UTF-8. An escape in progress is left out, bytes of a character in
    /// progress are not.
    pub(super) text: Vec<u8>,
}

impl Reading {
    /// Reads the beginning of a well-formed lexeme.
    pub(super) fn of(lexeme: &[u8]) -> Self {
        let mut rest = lexeme.trim_ascii_start();
        let mut reading = Self::default();
        let Some((b'"', inside)) = rest.split_first() else { return reading };
        reading.begun = true;
        rest = inside;
        while let Some((&byte, after)) = rest.split_first() {
            match byte {
                b'"' => {
                    reading.ended = true;
                    break;
                }
                b'\\' => {
                    let Some((character, length)) = escape(after) else {
                        reading.escapes = true;
                        break;
                    };
                    let bytes = &mut [0; 4];
                    reading.text.extend_from_slice(character.encode_utf8(bytes).as_bytes());
                    rest = &after[length..];
                }
                byte => {
                    reading.text.push(byte);
                    rest = after;
                }
            }
        }
        reading
    }

    /// Tells if the name and another may become the same.
    pub(super) fn may_be_same(&self, other: &Self) -> bool {
        match (self.ended, other.ended) {
            (_, true) => self.may_be(&other.text),
            (true, _) => other.may_be(&self.text),
            _ => self.text.starts_with(&other.text) || other.text.starts_with(&self.text),
        }
    }

    /// Tells if the name is this, or may become this.
    pub(super) fn may_be(&self, name: &[u8]) -> bool {
        if self.ended { *name == *self.text } else { name.starts_with(&self.text) }
    }
}

/// The character of an escape, the backslash before it, and the length; `None` when it is not
/// complete.
fn escape(text: &[u8]) -> Option<(char, usize)> {
    let simple = |character| Some((character, 1));
    match text.first()? {
        b'n' => simple('\n'),
        b't' => simple('\t'),
        b'r' => simple('\r'),
        b'b' => simple('\u{8}'),
        b'f' => simple('\u{c}'),
        b'u' => {
            let high = code_unit(text.get(1..5)?);
            if let Some(character) = char::from_u32(high) {
                return Some((character, 5));
            }
            let low = code_unit(text.get(7..11)?);
            let high = high.wrapping_sub(0xD800) << 10;
            let pair = high.wrapping_add(low.wrapping_sub(0xDC00)).wrapping_add(0x10000);
            Some((char::from_u32(pair).unwrap_or(char::REPLACEMENT_CHARACTER), 11))
        }
        &other => simple(char::from(other)),
    }
}

/// The number that four hexadecimal digits spell.
fn code_unit(digits: &[u8]) -> u32 {
    let digits = std::str::from_utf8(digits).ok();
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    number.unwrap_or(char::REPLACEMENT_CHARACTER.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lexeme: &str, text: &str, begun: bool, ended: bool) {
        let reading = Reading::of(lexeme.as_bytes());
        assert_eq!((&*reading.text, reading.begun, reading.ended), (text.as_bytes(), begun, ended));
    }

    #[test]
    fn names_are_decoded_as_far_as_they_go() {
        check(" \n", "", false, false);
        check(" \"", "", true, false);
        check("\"ab", "ab", true, false);
        check("\"ab\" :", "ab", true, true);
        check(r#""\u0061\"\\\/\n"#, "a\"\\/\n", true, false);
        check(r#""\ud83d\ude00é""#, "😀é", true, true);
    }

    #[test]
    fn escapes_that_are_none_are_some_character() {
        for escape in [r"\uzzzz", r"\ud800\u0000", r"\udfff\uzzzz", r"\ud800\ud800"] {
            let reading = Reading::of(format!("\"a{escape}\"").as_bytes());
            assert!(reading.ended && reading.text.len() > 1, "{escape}: {reading:?}");
        }
    }

    #[test]
    fn an_escape_in_progress_is_left_out() {
        for cut in ["\\", "\\u", "\\u00e", r"\ud83d", r"\ud83d\", r"\ud83d\ude0"] {
            check(&format!("\"a{cut}"), "a", true, false);
        }
    }
}
