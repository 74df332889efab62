//! Rules that values break, in words that say nothing of Rust.

use std::fmt::{self, Display};

use palmette_catalog_filter::nearest;
use serde::de::{Error, Expected, Unexpected};

/// Names that a message lists, at most.
const MOST_NAMES: usize = 40;

/// Rule that a value breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Said of the value: its name comes before it.
    OfValue(String),
    /// A sentence.
    Sentence(String),
}

impl Wrong {
    /// The error of a member that an object has twice, one of which would be lost.
    pub(super) fn twice(name: &str) -> Self {
        Self::Sentence(format!("the member {name:?} stands twice; give it once"))
    }

    /// This, or where it is of a free object's key that stands twice the rule of the value that the
    /// object is in, at `inner`.
    pub(super) fn or_key_twice(self, inner: &str) -> Self {
        let key = match &self {
            Self::Sentence(rule) => {
                rule.strip_prefix("the key ").and_then(|rule| rule.strip_suffix(" appears twice"))
            }
            Self::OfValue(_) => None,
        };
        match (key, inner) {
            (None, _) => self,
            (Some(key), "") => Self::OfValue(format!("has the key {key} twice; give it once")),
            (Some(key), inner) => {
                let inner = crate::fault::place(inner);
                Self::OfValue(format!("has the key {key} twice, in {inner}; give it once"))
            }
        }
    }

    /// The rule as a sentence about the value at a place.
    pub fn of(self, place: &str) -> String {
        match self {
            Self::OfValue(rule) => format!("{place} {rule}"),
            Self::Sentence(rule) => rule,
        }
    }

    /// A message of another reader of serde's, whose types have names of their own.
    pub fn reworded(message: &str) -> Self {
        let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
        let typed = ["invalid type: ", "invalid value: "];
        let parts =
            typed.iter().find_map(|begin| message.strip_prefix(begin)?.split_once(", expected "));
        if let Some(unknown) = message.strip_prefix("unknown field `") {
            let (name, known) = unknown.split_once('`').unwrap_or((unknown, ""));
            let known = known.trim_start_matches(", expected ").trim_start_matches("one of ");
            let there = match known.starts_with('`') {
                true => format!("there are {}", known.replace('`', "")),
                false => "there are none".to_owned(),
            };
            return Self::Sentence(format!("there is no member {name:?} here; {there}"));
        }
        match parts {
            Some((found, wanted)) => {
                Self::OfValue(format!("is {}; it must be {wanted}", value_of(found)))
            }
            None => Self::Sentence(message.to_owned()),
        }
    }
}

/// The value within serde's words for one: "integer `7`" is 7.
fn value_of(found: &str) -> &str {
    match found.split_once(' ') {
        Some(("integer" | "boolean", value)) => value.trim_matches('`'),
        Some(("floating", value)) => value.trim_start_matches("point ").trim_matches('`'),
        Some(("string", value)) => value,
        _ => match found {
            "sequence" => "a list",
            "map" => "an object",
            other => other,
        },
    }
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfValue(rule) => write!(f, "it {rule}"),
            Self::Sentence(rule) => f.write_str(rule),
        }
    }
}

impl std::error::Error for Wrong {}

/// Names in a message, the last left out where they are many.
pub(crate) fn listed(names: &[&str]) -> String {
    match names.len().checked_sub(MOST_NAMES) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..MOST_NAMES].join(", ")),
        _ => names.join(", "),
    }
}

impl Error for Wrong {
    fn custom<T: Display>(message: T) -> Self {
        Self::reworded(&message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::reworded(&format!("invalid type: {found}, expected {wanted}"))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::reworded(&format!("invalid value: {found}, expected {wanted}"))
    }

    fn invalid_length(len: usize, wanted: &dyn Expected) -> Self {
        Self::OfValue(format!("has {len} elements; it must be {wanted}"))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let hint = nearest(name, known.iter().copied());
        let hint = hint.map_or_else(String::new, |near| format!(" (did you mean {near:?}?)"));
        let there = match known {
            [] => "there are none".to_owned(),
            known => format!("there are {}", listed(known)),
        };
        Self::Sentence(format!("there is no member {name:?} here{hint}; {there}"))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::OfValue(format!("is {name:?}; it must be {}", one_of(known)))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::Sentence(format!("the member {name:?} is missing"))
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::twice(name)
    }
}

pub(super) fn one_of(known: &[&str]) -> String {
    match known {
        [only] => (*only).to_owned(),
        known => format!("one of {}", listed(known)),
    }
}
