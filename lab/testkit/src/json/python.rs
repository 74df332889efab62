//! JSON texts as Python writes them.

use std::fmt::Write;

use serde_json::Value;

/// The text of a value as Python's `json.dumps` writes it.
pub fn dumps(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => float_repr(float),
            None => number.to_string(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(dumps).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members: Vec<_> = members
                .map(|(name, value)| format!("{}: {}", quoted(name), dumps(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

fn float_repr(float: f64) -> String {
    let exponential = format!("{float:e}");
    let (mantissa, exponent) = exponential.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    if (-4..16).contains(&exponent) {
        let plain = format!("{float}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            '\u{8}' => quoted += "\\b",
            '\u{c}' => quoted += "\\f",
            ' '..='~' => quoted.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
        }
    }
    quoted + "\""
}
