//! Parts of a conversation that a chat template shows, found by trying it.

use palmette_model_template::{Chat, ChatTemplate};
use serde_json::{Value, json};

/// A word that stands in no template.
const PROBE: &str = "palmette_probe";

/// A time at which templates that print the date are tried.
const SOME_TIME: i64 = 1_700_000_000;

/// True when the template tells the model of the tools that it is handed.
pub(crate) fn shows_tools(template: &ChatTemplate) -> bool {
    let messages = json!([{"role": "user", "content": "x"}]);
    let parameters = json!({"type": "object", "properties": {}, "required": []});
    let tools = json!([{"type": "function", "function": {"name": PROBE, "description": "x", "parameters": parameters}}]);
    shows(template, &messages, Some(&tools)).unwrap_or_else(|| template.mentions("tools"))
}

/// True when a role stands in the template by its name.
pub(super) fn is_named(template: &ChatTemplate, role: &str) -> bool {
    let source = template.source();
    ["'", "\""].iter().any(|quote| source.contains(&format!("{quote}{role}{quote}")))
}

/// True when the template shows messages of this role.
pub(super) fn shows_role(template: &ChatTemplate, role: &str) -> bool {
    is_named(template, role) || takes_role(template, role)
}

/// True when the template shows a message of this role when it is tried: one that refuses the role
/// by its name does not.
pub(super) fn takes_role(template: &ChatTemplate, role: &str) -> bool {
    let said = json!({"role": role, "content": PROBE});
    shows(template, &with_others(role, said), None) == Some(true)
}

/// True when the template shows a member of messages of this role; it may, where it refuses to be
/// tried.
pub(super) fn shows_member(template: &ChatTemplate, role: &str, member: &str) -> bool {
    let said = json!({"role": role, "content": "x", member: PROBE});
    template.mentions(member) && shows(template, &with_others(role, said), None) != Some(false)
}

/// A conversation in which a message of this role may stand.
fn with_others(role: &str, said: Value) -> Value {
    let says = |role: &str| json!({"role": role, "content": "x"});
    match role {
        "system" | "developer" => json!([said, says("user")]),
        "user" => json!([said]),
        "assistant" => json!([says("user"), said]),
        _ => json!([says("user"), says("assistant"), said]),
    }
}

/// True when the probe stands in the text; `None` where the template refuses the conversation.
fn shows(template: &ChatTemplate, messages: &Value, tools: Option<&Value>) -> Option<bool> {
    let chat =
        Chat { tools, add_generation_prompt: true, now: Some(SOME_TIME), ..Chat::new(messages) };
    template.render(&chat).ok().map(|text| text.contains(PROBE))
}
