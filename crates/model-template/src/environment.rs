//! The Jinja environment of all templates: what transformers adds to Jinja, and limits.

use std::fmt::Write as _;

use chrono::NaiveDateTime;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::error::Raised;
use crate::python_json::{self, Layout};
use crate::text::Printed;

/// Steps of one rendering; a conversation of ten thousand messages takes some hundred thousand.
const MAX_STEPS: u64 = 5_000_000;

/// The name by which a template finds the time that its caller gave, in seconds since 1970.
pub(crate) const NOW: &str = "_palmette_now";

/// Treatment of white space around blocks, and of variables that there are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// The manner of transformers: a block's line leaves nothing, and a missing value prints
    /// nothing.
    Chat,
    /// The manner of prompts: every character counts, and printing a missing value is an error.
    Exact,
}

pub(crate) fn environment(manner: Manner) -> Environment<'static> {
    let mut env = Environment::new();
    let is_chat = manner == Manner::Chat;
    env.set_trim_blocks(is_chat);
    env.set_lstrip_blocks(is_chat);
    env.set_keep_trailing_newline(!is_chat);
    env.set_undefined_behavior(match manner {
        Manner::Chat => UndefinedBehavior::Lenient,
        Manner::Exact => UndefinedBehavior::SemiStrict,
    });
    env.set_fuel(Some(MAX_STEPS));
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_formatter(print_as_python);
    env.set_unknown_method_callback(unknown_method_callback);
    env.add_function("raise_exception", raise_exception);
    env.add_function("strftime_now", strftime_now);
    env.add_filter("tojson", tojson);
    env
}

/// Prints a value: Python's spelling of what it spells otherwise.
fn print_as_python(
    out: &mut Output<'_>,
    state: &State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Bool => Ok(out.write_str(if value.is_true() { "True" } else { "False" })?),
        ValueKind::None => Ok(out.write_str("None")?),
        ValueKind::Seq | ValueKind::Map if value.downcast_object_ref::<Printed>().is_none() => {
            let mut text = String::new();
            write_repr(value, MAX_DEPTH, &mut text)?;
            Ok(out.write_str(&text)?)
        }
        _ => minijinja::escape_formatter(out, state, value),
    }
}

/// Levels of lists within lists that are printed.
const MAX_DEPTH: usize = 64;

/// Writes a value as Python's `repr` does.
fn write_repr(value: &Value, depth: usize, text: &mut String) -> Result<(), Error> {
    if depth == 0 {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "a value to be printed is nested too deeply",
        ));
    }
    match value.kind() {
        ValueKind::Bool => *text += if value.is_true() { "True" } else { "False" },
        ValueKind::None | ValueKind::Undefined => *text += "None",
        ValueKind::String => write_string_repr(value.as_str().unwrap_or_default(), text),
        ValueKind::Seq => {
            text.push('[');
            for (place, one) in value.try_iter()?.enumerate() {
                *text += if place > 0 { ", " } else { "" };
                write_repr(&one, depth - 1, text)?;
            }
            text.push(']');
        }
        ValueKind::Map => {
            text.push('{');
            for (place, key) in value.try_iter()?.enumerate() {
                *text += if place > 0 { ", " } else { "" };
                write_repr(&key, depth - 1, text)?;
                *text += ": ";
                write_repr(&value.get_item(&key)?, depth - 1, text)?;
            }
            text.push('}');
        }
        _ => *text += &value.to_string(),
    }
    Ok(())
}

/// A string in the quotes that Python takes: single ones, unless it holds these and no double ones.
fn write_string_repr(string: &str, text: &mut String) {
    let quote = if string.contains('\'') && !string.contains('"') { '"' } else { '\'' };
    text.push(quote);
    for char in string.chars() {
        match char {
            '\n' => *text += "\\n",
            '\r' => *text += "\\r",
            '\t' => *text += "\\t",
            '\\' => *text += "\\\\",
            char if char == quote => text.extend(['\\', char]),
            char if (char as u32) < 0x20 || char as u32 == 0x7f => {
                *text += &format!("\\x{:02x}", char as u32);
            }
            char => text.push(char),
        }
    }
    text.push(quote);
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, "raise_exception").with_source(Raised(message)))
}

fn strftime_now(state: &State<'_, '_>, format: &str) -> Result<String, Error> {
    let bad = |reason: String| Error::new(ErrorKind::InvalidOperation, reason);
    let now = state.lookup(NOW).and_then(|value| value.as_i64());
    let now = now.and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    let now: NaiveDateTime = now
        .ok_or_else(|| bad("the template asks for today's date, and no time was given".into()))?
        .naive_utc();
    let mut text = String::new();
    write!(text, "{}", now.format(format))
        .map_err(|_| bad(format!("strftime_now({format:?}) has a code that is not known")))?;
    Ok(text)
}

fn tojson(value: Value, options: Kwargs) -> Result<String, Error> {
    let layout = Layout {
        indent: options.get::<Option<usize>>("indent")?,
        ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sorted: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        separators: options.get::<Option<Vec<String>>>("separators")?,
    };
    options.assert_all_used()?;
    python_json::write(&value, &layout)
        .map_err(|reason| Error::new(ErrorKind::BadSerialization, reason))
}
