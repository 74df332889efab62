//! The library that `%import common.NAME` reads from.

use crate::{
    Regex,
    regex::parse::{self, Dialect, Flags},
};

/// The names of library `common` and what they match. Comments and strings are written such that they end where they
/// first can, without reluctant quantifiers.
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

/// The definition of a name of library `common`.
pub(super) fn common(name: &str) -> Option<Regex> {
    let (_, pattern) = COMMON.iter().find(|(known, _)| *known == name)?;
    parse::parse(pattern, Dialect::Python, Flags::default()).ok()
}

/// The names of library `common`, for messages.
pub(super) fn common_names() -> String {
    let public = COMMON.iter().map(|(name, _)| *name).filter(|name| !name.starts_with('_'));
    public.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_read() {
        for (name, _) in COMMON {
            assert!(common(name).is_some(), "{name}");
        }
    }
}
