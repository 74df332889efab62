//! The libraries that `%import common.NAME` and `%import unicode.NAME` read from.

use palmette_grammar_regex::parse::{self, Dialect, Flags};

use crate::Regex;

/// The names of library `common` and what they match. Comments and strings are written such that
/// they end where they first can, without reluctant quantifiers.
const COMMON: [(&str, &str); 26] = [
    ("DIGIT", r"[0-9]"),
    ("HEXDIGIT", r"[0-9A-Fa-f]"),
    ("INT", r"[0-9]+"),
    ("SIGNED_INT", r"[+-]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("FLOAT", r"[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SIGNED_FLOAT", r"[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)"),
    ("NUMBER", r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("ESCAPED_STRING", r#""([^"\\\n]|\\[^\n])*""#),
    ("LCASE_LETTER", r"[a-z]"),
    ("UCASE_LETTER", r"[A-Z]"),
    ("LETTER", r"[A-Za-z]"),
    ("WORD", r"[A-Za-z]+"),
    ("CNAME", r"[A-Za-z_][A-Za-z_0-9]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(\r?\n)+"),
    ("SH_COMMENT", r"#[^\n]*"),
    ("CPP_COMMENT", r"//[^\n]*"),
    ("C_COMMENT", r"/\*[^*]*\*+([^*/][^*]*\*+)*/"),
    ("SQL_COMMENT", r"--[^\n]*"),
    ("_EXP", r"[eE][+-]?[0-9]+"),
    ("_STRING_INNER", r"[^\n]*?"),
];

/// Terminals of library `unicode`.
const UNICODE: [(&str, &str); 2] = [("WS_INLINE", r"[ \t\xa0]+"), ("WS", r"[ \t\xa0\f\r\n]+")];

/// The names of a library with their patterns.
pub(super) fn library(name: &str) -> Option<&'static [(&'static str, &'static str)]> {
    match name {
        "common" => Some(&COMMON),
        "unicode" => Some(&UNICODE),
        _ => None,
    }
}

/// The definition of a name of a library.
pub(super) fn definition(library: &[(&str, &str)], name: &str) -> Option<Regex> {
    let (_, pattern) = library.iter().find(|(known, _)| *known == name)?;
    parse::parse(pattern, Dialect::Python, Flags::default()).ok()
}

/// The names of a library, for messages.
pub(super) fn names(library: &[(&str, &str)]) -> String {
    let public = library.iter().map(|(name, _)| *name).filter(|name| !name.starts_with('_'));
    public.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_read() {
        for library in ["common", "unicode"].map(|name| library(name).expect("it is one")) {
            for (name, _) in library {
                assert!(definition(library, name).is_some(), "{name}");
            }
        }
        assert!(library("python").is_none());
    }
}
