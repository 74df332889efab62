//! JSON text as Python's `json.dumps` writes it.

use std::fmt::Write;

use serde_json::Value;

/// The text of a value as `json.dumps` writes it by default: `", "` and `": "`, ASCII only.
pub fn dumps(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Array(values) => {
            let write = |value: &Value, text: &mut String| write_value(value, text);
            write_list('[', values, ']', text, write);
        }
        Value::Object(members) => write_list('{', members, '}', text, |(key, value), text| {
            write_string(key, text);
            text.push_str(": ");
            write_value(value, text);
        }),
        Value::String(string) => write_string(string, text),
        other => text.push_str(&other.to_string()),
    }
}

fn write_list<I: IntoIterator>(
    open: char,
    members: I,
    close: char,
    text: &mut String,
    write: impl Fn(I::Item, &mut String),
) {
    text.push(open);
    for (at, member) in members.into_iter().enumerate() {
        text.push_str(if at > 0 { ", " } else { "" });
        write(member, text);
    }
    text.push(close);
}

fn write_string(string: &str, text: &mut String) {
    let quoted = Value::String(string.to_owned()).to_string();
    for c in quoted.chars() {
        if c.is_ascii() {
            text.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(text, "\\u{unit:04x}").expect("a string takes everything");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::dumps;

    #[test]
    fn text_is_that_of_python() {
        let value = serde_json::json!({"a": [1, 2.5, true, null], "é\"\n": {}, "😀": []});
        // python3 -c 'import json; print(json.dumps({"a": [1, 2.5, True, None], "é\"\n": {}, "😀":
        // []}))'
        let expected = r#"{"a": [1, 2.5, true, null], "\u00e9\"\n": {}, "\ud83d\ude00": []}"#;
        assert_eq!(dumps(&value), expected);
    }
}
