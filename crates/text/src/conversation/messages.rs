//! Messages of a request as chat templates take them, and those that a template would pass over.

use std::collections::BTreeMap;

use palmette_grammar::frontends::structural_tag::ToolFormat;
use palmette_model_template::ChatTemplate;
use serde_json::{Map, Value};

use super::template_probe::{is_named, shows_member, shows_role};
use crate::tool_calls::written_calls;

/// Roles of OpenAI's interface.
const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

/// Members of messages that tell a model nothing, or that templates leave out on purpose: names of
/// calls, thoughts of earlier turns, notes of other servers.
const WITHOUT_MEANING: [&str; 9] = [
    "annotations",
    "cache_control",
    "id",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "status",
    "thinking_blocks",
    "tool_call_id",
];

/// A rule that a message breaks, and the member that does.
pub(super) type Broken = (String, String);

/// Reads messages by what the template knows.
pub(super) struct MessageReader<'t> {
    template: &'t ChatTemplate,
    /// The format in which calls are written, where the template shows none.
    calls: Option<&'t ToolFormat>,
    /// Role by which the template shows messages of each role, or why there is none.
    roles: BTreeMap<String, Result<String, String>>,
}

impl<'t> MessageReader<'t> {
    pub(super) fn new(template: &'t ChatTemplate, calls: Option<&'t ToolFormat>) -> Self {
        Self { template, calls, roles: BTreeMap::new() }
    }

    /// One message. Content that is absent becomes the empty text: templates ask what is in it.
    pub(super) fn read(&mut self, message: &Value) -> Result<Value, Broken> {
        let Some(object) = message.as_object() else {
            let rule = format!("it is an object with \"role\" and \"content\", not {message}");
            return Err((String::new(), rule));
        };
        let given = object.get("role").and_then(Value::as_str);
        let given = given.ok_or_else(|| broken("role", "its \"role\" is missing, or no text"))?;
        let role = match self.roles.get(given) {
            Some(role) => role.clone(),
            None => {
                let role = role_for_template(given, self.template);
                self.roles.insert(given.to_owned(), role.clone());
                role
            }
        };
        let role = role.map_err(|rule| broken("role", rule))?;
        self.members(object, given, role)
    }

    fn members(
        &self,
        object: &Map<String, Value>,
        given: &str,
        role: String,
    ) -> Result<Value, Broken> {
        let template = self.template;
        let mut known = Map::new();
        known.insert("role".to_owned(), Value::from(role.as_str()));
        known.insert("content".to_owned(), Value::String(content(object)?));
        for (name, value) in object {
            match name.as_str() {
                "role" | "content" => {}
                _ if is_nothing(value) => {}
                "tool_calls" => add_calls(&mut known, value, template, self.calls)?,
                name if WITHOUT_MEANING.contains(&name) || is_of_tool(given, name) => {
                    known.insert(name.to_owned(), value.clone());
                }
                name if !value.is_string() && template.mentions(name) => {
                    known.insert(name.to_owned(), value.clone());
                }
                name if value.is_string() && shows_member(template, &role, name) => {
                    known.insert(name.to_owned(), value.clone());
                }
                name => {
                    let rule = format!(
                        "it has {name:?}, which the model's template does not read, so that the model would not know of it: leave it out"
                    );
                    return Err(broken(name, rule));
                }
            }
        }
        Ok(Value::Object(known))
    }
}

/// True when a member is the name of a tool, beside what the tool gave: it is named by its call,
/// too.
fn is_of_tool(role: &str, member: &str) -> bool {
    member == "name" && ["tool", "function"].contains(&role)
}

fn broken(member: &str, rule: impl Into<String>) -> Broken {
    let member = member.replace('~', "~0").replace('/', "~1");
    (format!("/{member}"), rule.into())
}

/// True when a member says nothing: clients write out what they do not use.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// The role by which a template shows the messages of another; the reason where it shows none of
/// them.
fn role_for_template(role: &str, template: &ChatTemplate) -> Result<String, String> {
    let is_own = is_named(template, role);
    if !ROLES.contains(&role) && !is_own {
        return Err(format!("{role:?} is no role; there are {}", ROLES.join(", ")));
    }
    // OpenAI's newer word for the same.
    let role = if role == "developer" && !is_own { "system" } else { role };
    let others: &[&str] = match role {
        "function" => &["tool", "user"],
        "tool" => &["user"],
        _ => &[],
    };
    let mut candidates = [role].into_iter().chain(others.iter().copied());
    let shown = candidates.find(|role| shows_role(template, role)).map(str::to_owned);
    shown.ok_or_else(|| {
        format!("the model's template shows no messages of role {role:?}: leave it out")
    })
}

/// The text of a message's content.
fn content(message: &Map<String, Value>) -> Result<String, Broken> {
    let text_of = |part: &Value| match (part["type"].as_str(), part["text"].as_str()) {
        (Some("text"), Some(text)) => Ok(text.to_owned()),
        (kind, _) => {
            let kind = kind.unwrap_or("none");
            Err(format!("its content has a part of type {kind:?}; text is read alone"))
        }
    };
    let content = match message.get("content") {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().map(text_of).collect::<Result<Vec<_>, _>>();
            texts.map(|texts| texts.join("\n"))
        }
        Some(_) => Err("its content is neither a text nor a list of parts".to_owned()),
    };
    content.map_err(|rule| broken("content", rule))
}

/// Calls of earlier turns: as they are, arguments read, where the template shows them; else written
/// into the content, as the model writes them.
fn add_calls(
    message: &mut Map<String, Value>,
    calls: &Value,
    template: &ChatTemplate,
    format: Option<&ToolFormat>,
) -> Result<(), Broken> {
    let Some(list) = calls.as_array() else {
        return Err(broken("tool_calls", "its \"tool_calls\" is no list"));
    };
    let list: Vec<Value> = list.iter().cloned().map(with_read_arguments).collect();
    if template.mentions("tool_calls") {
        message.insert("tool_calls".to_owned(), Value::Array(list));
        return Ok(());
    }
    let Some(format) = format else {
        let rule = "it has calls, which the model's template does not show, and no format of calls is known (--tool-format): leave them out";
        return Err(broken("tool_calls", rule));
    };
    let written = written_calls(format, &list.iter().map(named_arguments).collect::<Vec<_>>());
    if let Some(Value::String(content)) = message.get_mut("content") {
        *content += if content.is_empty() { "" } else { "\n" };
        *content += &written;
    }
    Ok(())
}

/// The name and the arguments of a call.
fn named_arguments(call: &Value) -> (String, Value) {
    let inner = if call["function"].is_object() { &call["function"] } else { call };
    let name = inner["name"].as_str().unwrap_or_default().to_owned();
    let arguments = match inner.get("arguments") {
        Some(Value::String(text)) => {
            serde_json::from_str(text).unwrap_or_else(|_| text.clone().into())
        }
        Some(arguments) => arguments.clone(),
        None => Value::Object(Map::new()),
    };
    (name, arguments)
}

/// A call as templates read it: of a function, its arguments an object where they are the text of
/// one.
fn with_read_arguments(mut call: Value) -> Value {
    if let Some(custom) = call.get("custom").filter(|custom| custom.is_object()) {
        let arguments = serde_json::json!({"input": custom["input"]});
        let function = serde_json::json!({"name": custom["name"], "arguments": arguments});
        return serde_json::json!({"id": call["id"], "type": "function", "function": function});
    }
    if let Some(arguments) = call.pointer_mut("/function/arguments")
        && let Some(read @ Value::Object(_)) =
            arguments.as_str().and_then(|text| serde_json::from_str(text).ok())
    {
        *arguments = read;
    }
    call
}
