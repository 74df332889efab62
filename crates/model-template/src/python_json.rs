//! JSON as Python's `json.dumps` writes it: a blank after commas and colons, and characters as they
//! are.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Options of `json.dumps`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Blanks a level; one line without.
    pub(crate) indent: Option<usize>,
    /// `\uXXXX` for what is not ASCII.
    pub(crate) ascii: bool,
    /// Keys in order.
    pub(crate) sorted: bool,
    /// Texts between entries and after keys; two of them.
    pub(crate) separators: Option<Vec<String>>,
}

/// Limit on blanks a level.
const MAX_INDENT: usize = 16;

/// The text of a value.
///
/// # Errors
/// When it has no JSON, or the layout is none.
pub(crate) fn write(value: &impl Serialize, layout: &Layout) -> Result<String, String> {
    let mut value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    if layout.sorted {
        value.sort_all_objects();
    }
    let default = match layout.indent {
        None => (", ", ": "),
        Some(_) => (",", ": "),
    };
    let (entry, key) = match layout.separators.as_deref() {
        None => default,
        Some([entry, key]) => (entry.as_str(), key.as_str()),
        Some(others) => return Err(format!("separators are two texts, not {}", others.len())),
    };
    if layout.indent.is_some_and(|blanks| blanks > MAX_INDENT) {
        return Err(format!("an indent is at most {MAX_INDENT} blanks"));
    }
    let blanks = " ".repeat(layout.indent.unwrap_or(0));
    let text = match layout.indent {
        None => written(&value, Separated { inner: CompactFormatter, entry, key }),
        Some(_) if (entry, key) == default => {
            written(&value, PrettyFormatter::with_indent(blanks.as_bytes()))
        }
        Some(_) => Err("an indent and separators together are not supported".into()),
    }?;
    Ok(if layout.ascii { escaped(&text) } else { text })
}

fn written(value: &Value, formatter: impl Formatter) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
    value.serialize(&mut serializer).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Characters beyond ASCII as `\uXXXX`; they only stand within strings.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_ascii() {
            true => out.push(char),
            false => {
                let mut units = [0; 2];
                for unit in char.encode_utf16(&mut units) {
                    out += &format!("\\u{unit:04x}");
                }
            }
        }
    }
    out
}

/// One line with the given texts between entries and after keys.
struct Separated<'a> {
    inner: CompactFormatter,
    entry: &'a str,
    key: &'a str,
}

impl Formatter for Separated<'_> {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(self.entry.as_bytes()) }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(self.entry.as_bytes()) }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(self.key.as_bytes())
    }

    fn write_bool<W: ?Sized + io::Write>(&mut self, out: &mut W, value: bool) -> io::Result<()> {
        self.inner.write_bool(out, value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // As CPython 3.11 writes them.
    #[test]
    fn texts_are_pythons() {
        let value = json!({"b": [1, 2.5, null, true], "a": {"é": "x\n\"y\""}, "c": [], "d": {}});
        let of = |layout: &Layout| write(&value, layout).unwrap();
        let plain = r#"{"b": [1, 2.5, null, true], "a": {"é": "x\n\"y\""}, "c": [], "d": {}}"#;
        assert_eq!(of(&Layout::default()), plain);
        let ascii = of(&Layout { ascii: true, sorted: true, ..Layout::default() });
        assert_eq!(
            ascii,
            r#"{"a": {"\u00e9": "x\n\"y\""}, "b": [1, 2.5, null, true], "c": [], "d": {}}"#
        );
        let separators = Some(vec![",".to_owned(), ":".to_owned()]);
        let close = of(&Layout { separators, ..Layout::default() });
        assert_eq!(close, r#"{"b":[1,2.5,null,true],"a":{"é":"x\n\"y\""},"c":[],"d":{}}"#);
        let indented = write(
            &json!({"a": [1, {}], "b": []}),
            &Layout { indent: Some(2), ..Layout::default() },
        );
        assert_eq!(indented.unwrap(), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
        assert_eq!(escaped("\u{1f334}"), "\\ud83c\\udf34");
        assert!(write(&value, &Layout { indent: Some(17), ..Layout::default() }).is_err());
    }
}
