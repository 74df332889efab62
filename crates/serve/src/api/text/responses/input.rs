//! Members of a response as those of a chat.

use palmette_document::{Fault, Faults};
use palmette_text::question::{CallLedger, ChatQuestion};
use serde_json::{Map, Value, json};

use super::super::blocks::{self, Broken, broken, call, fault, only, response_format};
use crate::problem::Problem;
use crate::wire::{ChatMembers, ResponseMembers, TextMembers};

/// The chat that a response asks for.
pub(super) fn chat(own: ResponseMembers, mut text: TextMembers) -> Result<ChatQuestion, Faults> {
    let mut faults = Faults::default();
    refuse_what_is_stored(&own, &mut faults);
    if text.n.is_some_and(|n| n != 1) {
        faults.push(Fault::new("/n", "a response has one answer; leave n out"));
    }
    let messages = faults.take(messages(&own)).unwrap_or_default();
    let form = own.text.unwrap_or_default();
    if let Some(format) = form.format {
        text.response_format = Some(response_format(format));
    }
    if let (Some(new), Some(old)) = (own.max_output_tokens, text.max_tokens)
        && new != old
    {
        let detail = format!("max_output_tokens is {new}, and max_tokens is {old}; leave one out");
        faults.push(Fault::new("/max_tokens", detail));
    }
    text.max_tokens = own.max_output_tokens.or(text.max_tokens);
    let includes = own.include.unwrap_or_default();
    for (place, part) in includes.iter().enumerate() {
        if !INCLUDED.contains(&part.as_str()) {
            let detail = format!("include has {part:?}; there are {}", INCLUDED.join(", "));
            faults.push(Fault::new(format!("/include/{place}"), detail));
        }
    }
    let logprobs = includes.iter().any(|part| part == "message.output_text.logprobs");
    let chat = ChatMembers {
        messages,
        tools: own.tools.map(|tools| tools.into_iter().map(tool).collect()),
        tool_choice: own.tool_choice.map(tool_choice),
        parallel_tool_calls: own.parallel_tool_calls,
        lax_tools: own.lax_tools,
        logprobs: (logprobs || own.top_logprobs.is_some_and(|top| top > 0)).then_some(true),
        top_logprobs: own.top_logprobs,
        reasoning_effort: own.reasoning.and_then(|reasoning| reasoning.effort),
        verbosity: form.verbosity,
        chat_template_kwargs: own.chat_template_kwargs,
        ..ChatMembers::default()
    };
    faults.or(ChatQuestion { own: chat, text })
}

/// Parts that OpenAI's clients ask for. Those of tools that a provider runs, and of reasoning that
/// is stored, are of items that no answer here has.
const INCLUDED: [&str; 8] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

fn refuse_what_is_stored(own: &ResponseMembers, faults: &mut Faults) {
    for (name, is_given) in [
        ("previous_response_id", own.previous_response_id.is_some()),
        ("conversation", own.conversation.is_some()),
        ("prompt", own.prompt.is_some()),
    ] {
        if is_given {
            let detail = format!(
                "{name} names something that is stored, and nothing is here; send the whole conversation as input"
            );
            faults.push(Fault::new(format!("/{name}"), detail));
        }
    }
    if own.background == Some(true) {
        let detail = "background is true; an answer is made while the client waits: leave it out";
        faults.push(Fault::new("/background", detail));
    }
}

/// Numbers of the tools whose definition stands beside their type, each with the member that chats
/// have it in.
pub(super) fn flat_tools(own: &ResponseMembers) -> Vec<(usize, String)> {
    let flat = |(number, tool): (usize, &Value)| Some((number, flat_kind(tool)?.to_owned()));
    own.tools.iter().flatten().enumerate().filter_map(flat).collect()
}

/// The type of a tool whose definition stands beside it.
fn flat_kind(tool: &Value) -> Option<&str> {
    let kind = tool["type"].as_str().filter(|kind| ["function", "custom"].contains(kind))?;
    tool.get(kind).is_none().then_some(kind)
}

/// A problem of a chat by the members of a response, some of whose tools are flat.
pub(super) fn renamed(mut problem: Problem, flat: &[(usize, String)]) -> Problem {
    // A compiler's message has the place within the tools as well.
    for (number, kind) in flat {
        let (of_chat, own) = (format!("/tools/{number}/{kind}"), format!("/tools/{number}"));
        let faults = problem.errors.iter_mut();
        let texts = faults.flat_map(|fault| [&mut fault.pointer, &mut fault.detail]);
        for text in texts.chain([&mut problem.detail]) {
            *text = text.replace(&of_chat, &own);
        }
    }
    let names = [
        ("response_format", "text.format"),
        ("max_tokens", "max_output_tokens"),
        ("reasoning_effort", "reasoning.effort"),
        ("verbosity", "text.verbosity"),
    ];
    blocks::renamed(problem, &names, |pointer| {
        // Items and messages are not the same ones.
        if pointer.starts_with("/messages") {
            return Some("/input".to_owned());
        }
        let own = |(of_chat, own): &(&str, &str)| {
            let is_it = pointer.strip_prefix('/')?.starts_with(of_chat);
            is_it.then(|| format!("/{}", own.replace('.', "/")))
        };
        names.iter().find_map(own)
    })
}

/// A tool whose definition stands beside its type, in the place that chats have for it.
fn tool(tool: Value) -> Value {
    let Some(kind) = flat_kind(&tool).map(str::to_owned) else { return tool };
    let Value::Object(object) = tool else { return tool };
    let inner: Map<String, Value> = object.into_iter().filter(|(name, _)| name != "type").collect();
    Value::Object(Map::from_iter([
        ("type".to_owned(), kind.as_str().into()),
        (kind, Value::Object(inner)),
    ]))
}

fn tool_choice(choice: Value) -> Value {
    match choice["type"].as_str() {
        Some("allowed_tools") if choice.get("allowed_tools").is_none() => {
            let tools = choice["tools"].as_array().cloned().unwrap_or_default();
            let tools: Vec<Value> = tools.into_iter().map(tool).collect();
            json!({"type": "allowed_tools", "allowed_tools": {"mode": choice["mode"], "tools": tools}})
        }
        Some("function" | "custom") => tool(choice),
        _ => choice,
    }
}

/// The conversation as messages: calls belong to the answer before them.
fn messages(own: &ResponseMembers) -> Result<Vec<Value>, Fault> {
    let mut messages = Vec::new();
    if let Some(instructions) = own.instructions.as_ref().filter(|text| !text.is_empty()) {
        messages.push(json!({"role": "system", "content": instructions}));
    }
    match &own.input {
        Value::String(text) => messages.push(json!({"role": "user", "content": text})),
        Value::Array(items) => {
            let mut calls = CallLedger::default();
            for (place, item) in items.iter().enumerate() {
                let read = add_item(&mut messages, &mut calls, item);
                read.map_err(|rule| {
                    fault(&format!("/input/{place}"), &format!("input {place}"), rule)
                })?;
            }
        }
        _ => return Err(Fault::new("/input", "the input is a text or a list of items")),
    }
    Ok(messages)
}

/// Members that items have besides those of their type, and that tell a model nothing.
const OF_ALL: [&str; 4] = ["id", "phase", "status", "type"];

fn add_item(messages: &mut Vec<Value>, calls: &mut CallLedger, item: &Value) -> Result<(), Broken> {
    let text = |name: &str| blocks::text(item, name);
    let kind = item["type"].as_str();
    match kind.or_else(|| item.get("role").map(|_| "message")) {
        Some("message") => {
            only(item, &["role", "content"], &OF_ALL)?;
            messages.push(message(item)?);
        }
        Some("function_call") => {
            only(item, &["call_id", "name", "arguments"], &OF_ALL)?;
            let (id, name, arguments) = (text("call_id")?, text("name")?, text("arguments")?);
            calls.call(Some(id)).map_err(|rule| broken("call_id", rule.to_string()))?;
            add_call(messages, call(id, name, arguments));
        }
        Some("custom_tool_call") => {
            only(item, &["call_id", "name", "input"], &OF_ALL)?;
            let custom = json!({"name": text("name")?, "input": text("input")?});
            let id = text("call_id")?;
            calls.call(Some(id)).map_err(|rule| broken("call_id", rule.to_string()))?;
            add_call(messages, json!({"id": id, "type": "custom", "custom": custom}));
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            only(item, &["call_id", "output"], &OF_ALL)?;
            let content = content(&item["output"]).ok_or_else(|| {
                broken("output", "\"output\" is neither a text nor a list of parts of text")
            })?;
            let id = text("call_id")?;
            calls.result(Some(id)).map_err(|rule| broken("call_id", rule.to_string()))?;
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
        // What was thought in earlier turns is left out, as templates do.
        Some("reasoning") => {}
        other => {
            let kind = other.map_or("no type".to_owned(), |kind| format!("type {kind:?}"));
            let rule = format!(
                "an item of {kind} is not read here; there are message, function_call, function_call_output, custom_tool_call, \
                 custom_tool_call_output and reasoning"
            );
            return Err(broken("type", rule));
        }
    }
    Ok(())
}

fn add_call(messages: &mut Vec<Value>, call: Value) {
    match messages.last_mut() {
        Some(last) if last["role"] == "assistant" => match &mut last["tool_calls"] {
            Value::Array(calls) => calls.push(call),
            none => *none = json!([call]),
        },
        _ => messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
    }
}

fn message(item: &Value) -> Result<Value, Broken> {
    let content = content(&item["content"]).ok_or_else(|| {
        let rule =
            "its content is neither a text nor a list of parts of text (input_text, output_text)";
        broken("content", rule)
    })?;
    Ok(json!({"role": item["role"], "content": content}))
}

/// A text, or the texts of parts.
fn content(content: &Value) -> Option<Value> {
    let part = |part: &Value| {
        let is_text =
            ["input_text", "output_text", "text"].iter().any(|kind| part["type"] == *kind);
        let text = part["text"].as_str().filter(|_| is_text)?;
        Some(json!({"type": "text", "text": text}))
    };
    match content {
        Value::String(_) => Some(content.clone()),
        Value::Array(parts) => parts.iter().map(part).collect::<Option<_>>().map(Value::Array),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(members: Value) -> Result<ChatQuestion, Faults> {
        chat(serde_json::from_value(members).unwrap(), TextMembers::default())
    }

    #[test]
    fn items_are_messages_and_calls_belong_to_answers() {
        let input = json!([
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
            {"type": "reasoning", "id": "rs", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": []}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "2"},
        ]);
        let chat = read(json!({"input": input, "instructions": "i"})).unwrap().own;
        let calls = json!([
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}},
        ]);
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let want = json!([
            {"role": "system", "content": "i"},
            {"role": "user", "content": text("a")},
            {"role": "assistant", "content": text("b"), "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
            {"role": "tool", "tool_call_id": "c2", "content": "2"},
        ]);
        assert_eq!(Value::Array(chat.messages), want);
    }

    #[test]
    fn tools_and_formats_stand_where_chats_have_them() {
        let ChatQuestion { own: chat, text } = read(json!({
            "input": "a",
            "tools": [{"type": "function", "name": "f", "parameters": {}}, {"type": "custom", "name": "g"}, {"type": "web_search"}],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
            "max_output_tokens": 7, "reasoning": {"effort": "low", "summary": "auto"},
        }))
        .unwrap();
        let function = json!({"type": "function", "function": {"name": "f", "parameters": {}}});
        let tools =
            json!([function, {"type": "custom", "custom": {"name": "g"}}, {"type": "web_search"}]);
        assert_eq!(json!(chat.tools), tools);
        let allowed =
            json!({"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]});
        assert_eq!(
            json!(chat.tool_choice),
            json!({"type": "allowed_tools", "allowed_tools": allowed})
        );
        let schema = json!({"name": "n", "schema": {"type": "object"}});
        assert_eq!(
            json!(text.response_format),
            json!({"type": "json_schema", "json_schema": schema})
        );
        assert_eq!((text.max_tokens, chat.reasoning_effort.as_deref()), (Some(7), Some("low")));
    }

    #[test]
    fn what_is_not_here_is_refused_by_name() {
        for (members, pointer) in [
            (json!({"input": "a", "previous_response_id": "resp_1"}), "/previous_response_id"),
            (json!({"input": "a", "background": true}), "/background"),
            (json!({"input": "a", "include": ["reasoning.encrypted_content", "x"]}), "/include/1"),
            (json!({"input": 7}), "/input"),
            (json!({"input": [{"type": "image"}]}), "/input/0/type"),
            (json!({"input": [7]}), "/input/0/type"),
            (json!({"input": [{"role": "user", "content": "a", "na/me": "b"}]}), "/input/0/na~1me"),
            (
                json!({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
                "/input/0/content",
            ),
            (
                json!({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}),
                "/input/0/call_id",
            ),
            (
                json!({"input": [
                    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c2", "output": "1"},
                ]}),
                "/input/1/call_id",
            ),
            (
                json!({"input": [
                    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                    {"type": "custom_tool_call", "call_id": "c1", "name": "g", "input": ""},
                ]}),
                "/input/1/call_id",
            ),
            (
                json!({"input": [
                    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "1"},
                    {"type": "function_call_output", "call_id": "c1", "output": "2"},
                ]}),
                "/input/2/call_id",
            ),
        ] {
            let faults = read(members.clone()).unwrap_err();
            assert_eq!(faults.iter().next().unwrap().pointer, pointer, "{members}");
        }
    }
}
