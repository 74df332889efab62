//! Characters within JSON strings.

use std::fmt::Write;

/// Adds a text as it stands within the quotes of a JSON string.
pub(super) fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => {
                // A text takes whatever is written to it.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            _ => out.push(character),
        }
    }
}

/// Adds a text as a JSON string.
pub(super) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}
