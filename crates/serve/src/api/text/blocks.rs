//! Items and blocks of conversations in other interfaces' words: their members, checked.

use palmette_document::{Fault, respelled};
use serde_json::{Map, Value, json};

use crate::problem::Problem;

/// A rule that an item breaks, and the place within it.
pub(super) type Broken = (String, String);

pub(super) fn broken(at: &str, rule: impl Into<String>) -> Broken {
    (format!("/{}", escaped(at)), rule.into())
}

/// A broken rule of what stands within a member.
pub(super) fn within(at: &str, (inner, rule): Broken) -> Broken {
    (format!("/{at}{inner}"), rule)
}

/// A broken rule as a fault of the body.
pub(super) fn fault(at: &str, name: &str, (inner, rule): Broken) -> Fault {
    Fault::new(format!("{at}{inner}"), format!("{name}: {rule}"))
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Refuses members that are not read, since a model would not know of them, except those that
/// are null or `silent`.
pub(super) fn only(item: &Value, known: &[&str], silent: &[&str]) -> Result<(), Broken> {
    let is_known = |name: &str| known.contains(&name) || silent.contains(&name);
    let mut members = item.as_object().into_iter().flatten();
    match members.find(|(name, value)| !value.is_null() && !is_known(name)) {
        None => Ok(()),
        Some((name, _)) => {
            let rule = format!("there is no member {name:?} here; there are {}", known.join(", "));
            Err(broken(name, rule))
        }
    }
}

/// A member that must be a text.
pub(super) fn text<'v>(item: &'v Value, name: &str) -> Result<&'v str, Broken> {
    let text = item[name].as_str();
    text.ok_or_else(|| broken(name, format!("{name:?} is missing, or no text")))
}

/// A call of an answer, in the words of a chat.
pub(super) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// A JSON schema as the form of an answer, which stands beside its type, where chats have it.
pub(super) fn response_format(mut format: Value) -> Value {
    if format["type"] == "json_schema" && format.get("json_schema").is_none() {
        let inner = format.as_object().cloned().unwrap_or_default();
        let inner: Map<String, Value> =
            inner.into_iter().filter(|(name, _)| name != "type").collect();
        format = json!({"type": "json_schema", "json_schema": inner});
    }
    format
}

/// A problem of a chat whose faults name members of the body that was sent: places by `renamed`,
/// members in sentences by `names`.
pub(super) fn renamed(
    mut problem: Problem,
    names: &[(&str, &str)],
    renamed: impl Fn(&str) -> Option<String>,
) -> Problem {
    for fault in &mut problem.errors {
        if let Some(own) = renamed(&fault.pointer) {
            fault.pointer = own;
        }
        fault.detail = respelled(&fault.detail, names);
    }
    problem.detail = respelled(&problem.detail, names);
    problem
}
