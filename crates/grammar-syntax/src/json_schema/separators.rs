//! Separators of JSON texts: comma and colon, each with fixed blanks around it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Comma between members and colon after a name, each with the blanks that stand around it.
///
/// Written down they are a list of two texts, as `json.dumps` of Python takes them: `[", ", ": "]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "[String; 2]", into = "[String; 2]")]
pub struct Separators {
    comma: Separator,
    colon: Separator,
}

/// A mark's text, inline, so that options of grammars can be copied.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Separator {
    text: [u8; Separators::MAX_BYTES],
    len: u8,
}

/// A text that is no separator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} does not separate JSON: it is a {name}, {mark:?}, between blanks (space, tab, line break), {} bytes at most",
    Separators::MAX_BYTES
)]
pub struct SeparatorError {
    /// The text.
    pub text: String,
    name: &'static str,
    mark: char,
}

impl Separators {
    /// Bytes of a separator, at most.
    pub const MAX_BYTES: usize = 7;

    /// Separators of these texts.
    ///
    /// # Errors
    /// When the first is no comma between blanks or the second no colon.
    pub fn new(comma: &str, colon: &str) -> Result<Self, SeparatorError> {
        Ok(Self {
            comma: Separator::new(comma, "comma", ',')?,
            colon: Separator::new(colon, "colon", ':')?,
        })
    }

    /// Text between members and between items.
    pub fn comma(&self) -> &str {
        self.comma.text()
    }

    /// Text between a name and its value.
    pub fn colon(&self) -> &str {
        self.colon.text()
    }
}

impl Separator {
    fn new(text: &str, name: &'static str, mark: char) -> Result<Self, SeparatorError> {
        let is_mark = text.trim_matches([' ', '\t', '\n', '\r']).chars().eq([mark]);
        let mut bytes = [0; Separators::MAX_BYTES];
        match (is_mark, bytes.get_mut(..text.len())) {
            (true, Some(first)) => first.copy_from_slice(text.as_bytes()),
            _ => return Err(SeparatorError { text: text.to_owned(), name, mark }),
        }
        Ok(Self { text: bytes, len: text.len() as u8 })
    }

    fn text(&self) -> &str {
        // Made of a text of ASCII characters.
        std::str::from_utf8(&self.text[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for Separators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Separators").field(&self.comma()).field(&self.colon()).finish()
    }
}

impl TryFrom<[String; 2]> for Separators {
    type Error = SeparatorError;

    fn try_from([comma, colon]: [String; 2]) -> Result<Self, SeparatorError> {
        Self::new(&comma, &colon)
    }
}

impl From<Separators> for [String; 2] {
    fn from(separators: Separators) -> Self {
        [separators.comma().to_owned(), separators.colon().to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_marks_between_blanks() {
        for (comma, colon) in [(",", ":"), (", ", ": "), (" ,\n\t", "\r:")] {
            let separators = Separators::new(comma, colon).unwrap();
            assert_eq!((separators.comma(), separators.colon()), (comma, colon));
            let json = serde_json::to_string(&separators).unwrap();
            assert_eq!(json, serde_json::json!([comma, colon]).to_string());
            assert_eq!(serde_json::from_str::<Separators>(&json).unwrap(), separators);
        }
        for (comma, colon, wrong) in [
            (";", ":", ";"),
            ("", ":", ""),
            (",,", ":", ",,"),
            (", x", ":", ", x"),
            (",", ",", ","),
            (",\u{a0}", ":", ",\u{a0}"),
            (",               ", ":", ",               "),
        ] {
            let error = Separators::new(comma, colon).unwrap_err();
            assert_eq!(error.text, wrong);
            assert!(error.to_string().contains("does not separate JSON"), "{error}");
        }
    }
}
