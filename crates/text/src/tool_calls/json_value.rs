//! The end of one JSON value in a text that streams.

/// Finds where a JSON value ends, from its first character on. What is within is not checked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JsonValue {
    depth: usize,
    place: Place,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Before,
    Inside,
    String,
    Escape,
    /// A number, `true`, `false` or `null` that is the whole value.
    Bare,
}

/// Reading of some text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it belongs to the value.
    All,
    /// The value ended after this many bytes.
    Ended(usize),
}

impl JsonValue {
    /// False as long as nothing but white space was read.
    pub(super) fn has_begun(&self) -> bool {
        self.place != Place::Before
    }

    /// Reads on. White space before the value belongs to it; what is no beginning of a value ends
    /// it at once.
    pub(super) fn read(&mut self, text: &str) -> Extent {
        for (place, character) in text.char_indices() {
            let after = place + character.len_utf8();
            match self.place {
                Place::String => match character {
                    '\\' => self.place = Place::Escape,
                    '"' if self.depth == 0 => return Extent::Ended(after),
                    '"' => self.place = Place::Inside,
                    _ => {}
                },
                Place::Escape => self.place = Place::String,
                Place::Bare => {
                    if !(character.is_ascii_alphanumeric() || "+-.".contains(character)) {
                        return Extent::Ended(place);
                    }
                }
                Place::Before | Place::Inside => match character {
                    '"' => self.place = Place::String,
                    '{' | '[' => {
                        self.depth += 1;
                        self.place = Place::Inside;
                    }
                    '}' | ']' if self.depth > 0 => {
                        self.depth -= 1;
                        if self.depth == 0 {
                            return Extent::Ended(after);
                        }
                    }
                    _ if self.depth > 0 || character.is_whitespace() => {}
                    _ if character == '-' || character.is_ascii_alphanumeric() => {
                        self.place = Place::Bare;
                    }
                    _ => return Extent::Ended(place),
                },
            }
        }
        Extent::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value's length, read in one piece and character by character.
    #[track_caller]
    fn check(text: &str, expected: Option<usize>) {
        let whole = match JsonValue::default().read(text) {
            Extent::All => None,
            Extent::Ended(len) => Some(len),
        };
        let (mut value, mut by_one) = (JsonValue::default(), None);
        for (place, character) in text.char_indices() {
            if let Extent::Ended(len) = value.read(character.encode_utf8(&mut [0; 4])) {
                by_one = Some(place + len);
                break;
            }
        }
        assert_eq!((whole, by_one), (expected, expected), "{text}");
    }

    #[test]
    fn a_value_ends_where_it_is_whole() {
        check(r#"{"a": "}\"{", "b": [1, {}]}}"#, Some(27));
        check(r#" "x]\\" }"#, Some(7));
        check("[[é]]x", Some(6));
        check("-1.5e+3}", Some(7));
        check("null,", Some(4));
        check("}", Some(0));
        check("12", None);
        check(r#"{"a": "#, None);
        check("", None);
    }
}
