//! Whether a grammar accepts a text; and JSON texts as Python writes them.
#![allow(dead_code)]

use std::{fmt::Write, sync::Arc};

use palmette_grammar::{
    Budget, Grammar, Recognizer, RecognizerLimits, recognizer::RecognizerScratch,
};
use serde_json::Value;

/// Reads whole texts.
pub struct Machine(Recognizer);

impl Machine {
    /// The recognizer of a grammar; the error in words.
    pub fn new(grammar: &Grammar) -> Result<Self, String> {
        let grammar = Arc::new(grammar.clone());
        Recognizer::new(grammar, &RecognizerLimits::default(), &mut Budget::unlimited())
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Whether `text` is in the language.
    pub fn accepts(&self, text: &str) -> bool {
        let mut scratch = RecognizerScratch::default();
        let Some(start) = self.0.start() else { return false };
        let end = self.0.advance_all(start, text.as_bytes(), &mut scratch).expect("the limits");
        end.is_some_and(|end| self.0.is_accepting(&end, &mut scratch).expect("the limits"))
    }
}

/// As Python's `json.dumps` writes it.
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
