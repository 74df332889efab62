//! Calls as a family of models writes them.

use palmette_grammar::frontends::structural_tag::{
    ArgumentStyle, ITEM, ParameterStyle, ToolFormat, ValueNotation,
};
use serde_json::Value;

/// The text of calls, each a tool's name and its arguments, as a model would have written it.
///
/// This is the plain definition of a format; readers and grammars are compared with it.
pub fn written_calls(format: &ToolFormat, calls: &[(String, Value)]) -> String {
    let one = |(number, (name, arguments)): (usize, &(String, Value))| {
        let arguments = written_arguments(format, arguments);
        format!("{}{arguments}{}", format.call_begin(name, number), format.end)
    };
    let all = calls.iter().enumerate().map(one).collect::<Vec<_>>().join(format.separator);
    match format.group {
        Some((begin, end)) => format!("{begin}{all}{end}"),
        None => all,
    }
}

/// The text of the arguments of a call.
fn written_arguments(format: &ToolFormat, arguments: &Value) -> String {
    let notation = format.arguments.notation();
    let Value::Object(members) = arguments else {
        return arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    };
    match format.arguments {
        ArgumentStyle::Json => arguments.to_string(),
        ArgumentStyle::Notated(_) => notated(arguments, notation),
        ArgumentStyle::Keywords => {
            let one = |(name, value)| format!("{name}={}", notated(value, notation));
            members.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        ArgumentStyle::Parameters(style) => {
            let one = |(name, value): (&String, &Value)| parameter(style, Some(name), value);
            let all: String = members.iter().map(one).collect();
            let line = if format.end.starts_with('\n') { "" } else { style.before };
            all + line
        }
    }
}

/// A parameter between marks, or an item of a list, which has no name.
fn parameter(style: &ParameterStyle, name: Option<&str>, value: &Value) -> String {
    let within = |(name, value): (&String, &Value)| parameter(style, Some(name), value);
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if style.is_nested() => {
            items.iter().map(|item| parameter(style, None, item)).collect()
        }
        Value::Object(members) if style.is_nested() => members.iter().map(within).collect(),
        _ => value.to_string(),
    };
    let after_name = match value {
        Value::String(_) => style.before_text.to_owned(),
        _ => style.before_type(type_name(value)),
    };
    let begin = match name {
        Some(name) => {
            format!("{}{}{}{after_name}", style.before, style.begin, style.written_name(name))
        }
        None => style.before_item(&after_name),
    };
    let (pad, before_value, end) =
        (style.padding, style.before_value, style.end_of(name.unwrap_or(ITEM)));
    format!("{begin}{before_value}{pad}{text}{pad}{end}")
}

/// A value in a notation.
fn notated(value: &Value, notation: &ValueNotation) -> String {
    let ValueNotation { quote, bare_names, words: [null, truth, falsity], .. } = *notation;
    let comma = if bare_names { "," } else { ", " };
    match value {
        Value::Null => null.to_owned(),
        Value::Bool(true) => truth.to_owned(),
        Value::Bool(false) => falsity.to_owned(),
        Value::String(text) if !quote.is_empty() => format!("{quote}{text}{quote}"),
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items = items.iter().map(|item| notated(item, notation));
            format!("[{}]", items.collect::<Vec<_>>().join(comma))
        }
        Value::Object(members) => {
            let one = |(name, value): (&String, &Value)| {
                let value = notated(value, notation);
                match bare_names {
                    true => format!("{name}:{value}"),
                    false => format!("{}: {value}", Value::from(name.as_str())),
                }
            };
            format!("{{{}}}", members.iter().map(one).collect::<Vec<_>>().join(comma))
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
