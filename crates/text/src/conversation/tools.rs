//! Tools in a prompt: as templates take them, or as a text where a template shows none.

use palmette_grammar::frontends::structural_tag::{ARGUMENT_SCHEMAS, ArgumentStyle, ToolFormat};
use palmette_model_template::ChatTemplate;
use serde_json::{Map, Value, json};

use super::template_probe::takes_role;
use crate::tool_calls::written_calls;

/// A tool of any interface as OpenAI's, which templates are written for; `None` for one that its
/// provider runs, which no text calls.
pub(super) fn tool_for_template(tool: &Value) -> Result<Option<Value>, &'static str> {
    if tool["function"].is_object() {
        return Ok(Some(tool.clone()));
    }
    let has_schema = ARGUMENT_SCHEMAS.iter().any(|key| tool.get(key).is_some());
    let is_called = tool["type"].as_str().is_none_or(|kind| ["function", "custom"].contains(&kind));
    if !is_called && !has_schema {
        return Ok(None);
    }
    let inner = if tool["custom"].is_object() { &tool["custom"] } else { tool };
    if !inner["name"].is_string() {
        return Err("a tool has a \"name\" and a schema of its arguments");
    }
    let schema =
        ARGUMENT_SCHEMAS.iter().find_map(|key| inner.get(key).filter(|schema| !schema.is_null()));
    let none = match tool["type"] == "custom" {
        true => {
            json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]})
        }
        false => json!({"type": "object", "properties": {}}),
    };
    let mut function = Map::new();
    for key in ["name", "description"] {
        function.extend(inner.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    function.insert("parameters".to_owned(), schema.unwrap_or(&none).clone());
    Ok(Some(json!({"type": "function", "function": function})))
}

/// Puts tools and the way of calling them into the words before the conversation, for a template
/// that shows none.
pub(super) fn add_to_messages(
    messages: &mut Vec<Value>,
    tools: &[Value],
    format: &ToolFormat,
    template: &ChatTemplate,
) {
    let instructions = instructions(tools, format);
    let takes_system = takes_role(template, "system");
    let beginning = if takes_system { "system" } else { "user" };
    let first = messages.iter().position(|message| message["role"] == beginning);
    let place = first.filter(|&place| !takes_system || place == 0);
    match place.and_then(|place| messages[place].get_mut("content")) {
        Some(Value::String(content)) if takes_system => *content += &format!("\n\n{instructions}"),
        Some(Value::String(content)) => *content = format!("{instructions}\n\n{content}"),
        _ => messages.insert(0, json!({"role": beginning, "content": instructions})),
    }
}

fn instructions(tools: &[Value], format: &ToolFormat) -> String {
    let tools: Vec<String> = tools.iter().map(Value::to_string).collect();
    let (call, arguments) = match format.arguments {
        ArgumentStyle::Json => {
            let call = format!("{}ARGUMENTS{}", format.call_begin("NAME", 0), format.end);
            let (begin, end) = format.group.unwrap_or_default();
            (format!("{begin}{call}{end}"), "a JSON object for ARGUMENTS")
        }
        _ => {
            let call = ("NAME".to_owned(), json!({"ARGUMENT": "VALUE"}));
            (written_calls(format, &[call]), "each argument as ARGUMENT is here")
        }
    };
    format!(
        "You can call these tools, each a line with a JSON Schema of its arguments:\n<tools>\n{}\n</tools>\n\
         A call is written like this, with the name of the tool for NAME and {arguments}:\n{call}",
        tools.join("\n")
    )
}
