//! Members of a message as those of a chat.

use palmette_document::{Fault, Faults};
use palmette_text::question::{CallLedger, ChatQuestion, OneOrMany, Thinking, ThinkingKind};
use serde_json::{Map, Value, json};

use super::super::blocks::{self, Broken, broken, call, fault, only, response_format, within};
use crate::problem::Problem;
use crate::wire::{
    ChatMembers, MessageMembers, MessageThinkingKind, OutputConfig, TextMembers, ToolChoiceKind,
};

/// The chat that a message continues.
pub(super) struct Conversation {
    pub(super) chat: ChatQuestion,
    /// The message that each of the chat's came from; `None` for the system's words.
    pub(super) places: Vec<Option<usize>>,
    /// Parts without effect.
    pub(super) warnings: Vec<String>,
}

/// Members that blocks have besides those of their type, and that tell a model nothing.
const SILENT: [&str; 3] = ["type", "cache_control", "citations"];

impl Conversation {
    /// The chat of a message that is to be written, which has a limit on its tokens as Anthropic's
    /// interface wants it: without one an answer could take the whole context.
    pub(super) fn to_answer(own: MessageMembers, text: TextMembers) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        if text.max_tokens.is_none() {
            let detail = "max_tokens is missing; a message says how many tokens it may take: give it, such as 1024";
            faults.push(Fault::new("/max_tokens", detail));
        }
        match Self::new(own, text) {
            Ok(conversation) => faults.or(conversation),
            Err(more) => {
                more.into_iter().for_each(|fault| faults.push(fault));
                Err(faults)
            }
        }
    }

    pub(super) fn new(own: MessageMembers, mut text: TextMembers) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        refuse_what_is_not_run(&own, &mut faults);
        if text.n.is_some_and(|n| n != 1) {
            faults.push(Fault::new("/n", "a message is one answer; leave n out"));
        }
        if let Some(texts) = own.stop_sequences {
            if text.stop.is_some() {
                let detail = "stop_sequences and stop are one member; leave one out";
                faults.push(Fault::new("/stop", detail));
            }
            text.stop = Some(OneOrMany::Many(texts));
        }
        let OutputConfig { format, effort } = own.output_config.unwrap_or_default();
        if format.is_some() && own.output_format.is_some() {
            let detail = "output_config.format and output_format are one member; leave one out";
            faults.push(Fault::new("/output_format", detail));
        }
        let is_given = format.is_some() || own.output_format.is_some();
        if is_given && text.response_format.is_some() {
            let detail = "output_config.format and response_format are one member; leave one out";
            faults.push(Fault::new("/response_format", detail));
        }
        if let Some(format) = format.or(own.output_format) {
            text.response_format = Some(response_format(format));
        }
        let mut warnings = Vec::new();
        let thinking = own.thinking.as_ref();
        if let Some(tokens) = thinking.and_then(|thinking| thinking.budget_tokens) {
            warnings.push(format!(
                "thinking.budget_tokens is {tokens}: reasoning counts to max_tokens, and has no limit of its own"
            ));
        }
        let thinking = thinking.and_then(|thinking| {
            let kind = match thinking.kind {
                MessageThinkingKind::Enabled => ThinkingKind::Enabled,
                MessageThinkingKind::Disabled => ThinkingKind::Disabled,
                MessageThinkingKind::Adaptive => return None,
            };
            Some(Thinking { kind })
        });
        let (messages, places) =
            faults.take(messages(own.system.as_ref(), &own.messages)).unwrap_or_default();
        // Words of the assistant at the end are the beginning of the answer.
        let goes_on = messages.last().is_some_and(|last| {
            last["role"] == "assistant" && last.get("tool_calls").is_none() && last["content"] != ""
        });
        let choice = own.tool_choice.as_ref();
        let single = choice.and_then(|choice| choice.disable_parallel_tool_use);
        let chosen = choice.map(|choice| match (choice.kind, &choice.name) {
            (ToolChoiceKind::Tool, Some(name)) => {
                Ok(json!({"type": "function", "function": {"name": name}}))
            }
            (ToolChoiceKind::Tool, None) => {
                Err(Fault::new("/tool_choice/name", "tool_choice of type tool names the tool"))
            }
            (_, Some(name)) => {
                let detail = format!("tool_choice names {name:?}; that is for the type tool");
                Err(Fault::new("/tool_choice/name", detail))
            }
            (ToolChoiceKind::Auto, None) => Ok("auto".into()),
            (ToolChoiceKind::Any, None) => Ok("required".into()),
            (ToolChoiceKind::None, None) => Ok("none".into()),
        });
        let chat = ChatMembers {
            messages,
            tools: own.tools.map(|tools| tools.into_iter().map(tool).collect()),
            tool_choice: faults.take(chosen.transpose()).flatten(),
            parallel_tool_calls: single.map(|single| !single),
            lax_tools: own.lax_tools,
            reasoning_effort: effort,
            thinking,
            continue_final_message: goes_on.then_some(true),
            ..ChatMembers::default()
        };
        faults.or(Self { chat: ChatQuestion { own: chat, text }, places, warnings })
    }
}

fn refuse_what_is_not_run(own: &MessageMembers, faults: &mut Faults) {
    let has_edits =
        |value: &Value| !matches!(&value["edits"], Value::Array(edits) if edits.is_empty());
    for (name, is_given) in [
        ("container", own.container.is_some()),
        ("context_management", own.context_management.as_ref().is_some_and(has_edits)),
        ("mcp_servers", own.mcp_servers.as_ref().is_some_and(|servers| !servers.is_empty())),
    ] {
        if is_given {
            let detail = format!(
                "{name} is something that a provider runs or stores, and nothing is here; leave it out"
            );
            faults.push(Fault::new(format!("/{name}"), detail));
        }
    }
}

/// A problem of a chat by the members of a message.
pub(super) fn renamed(mut problem: Problem, places: &[Option<usize>]) -> Problem {
    // A compiler's message has the place within the tools as well.
    if problem.errors.iter().any(|fault| fault.pointer.starts_with("/tools")) {
        let details = problem.errors.iter_mut().map(|fault| &mut fault.detail);
        for detail in details.chain([&mut problem.detail]) {
            *detail = detail.replace("/function/parameters", "/input_schema");
        }
    }
    let names =
        [("response_format", "output_config.format"), ("reasoning_effort", "output_config.effort")];
    blocks::renamed(problem, &names, |pointer| {
        let (mut parts, last) = (pointer.split('/').skip(1), pointer);
        match (parts.next()?, parts.next()) {
            ("messages", Some(number)) => {
                let place = number.parse().ok().and_then(|number: usize| places.get(number));
                Some(match place {
                    Some(Some(place)) => format!("/messages/{place}"),
                    Some(None) => "/system".to_owned(),
                    None => "/messages".to_owned(),
                })
            }
            ("response_format", _) => Some("/output_config/format".to_owned()),
            ("reasoning_effort", _) => Some("/output_config/effort".to_owned()),
            ("stop", _) => Some(last.replacen("/stop", "/stop_sequences", 1)),
            ("tools", Some(_)) => {
                let own = last.replacen("/function/parameters", "/input_schema", 1);
                Some(own.replacen("/function", "", 1))
            }
            _ => None,
        }
    })
}

/// A tool whose schema stands in it, in the place that chats have for it; one of another type as
/// it is.
fn tool(tool: Value) -> Value {
    let is_own = tool.get("input_schema").is_some()
        && tool.get("type").is_none_or(|kind| kind.is_null() || kind == "custom");
    let Value::Object(object) = tool else { return tool };
    if !is_own {
        return Value::Object(object);
    }
    let renamed = |(name, value): (String, Value)| match name.as_str() {
        "type" => None,
        "input_schema" => Some(("parameters".to_owned(), value)),
        _ => Some((name, value)),
    };
    let function: Map<String, Value> = object.into_iter().filter_map(renamed).collect();
    json!({"type": "function", "function": function})
}

/// Messages of a chat, and the place of each in the conversation.
type PlacedMessages = (Vec<Value>, Vec<Option<usize>>);

/// The conversation as a chat's messages, and the place of each.
fn messages(system: Option<&Value>, given: &[Value]) -> Result<PlacedMessages, Fault> {
    let (mut messages, mut places) = (Vec::new(), Vec::new());
    if let Some(system) = system.filter(|system| !system.is_null()) {
        let words = words(system).map_err(|rule| fault("/system", "system", rule))?;
        if !words.is_empty() {
            messages.push(json!({"role": "system", "content": words}));
            places.push(None);
        }
    }
    let mut calls = CallLedger::default();
    for (place, message) in given.iter().enumerate() {
        let read = read_message(message, &mut calls).map_err(|rule| {
            fault(&format!("/messages/{place}"), &format!("message {place}"), rule)
        })?;
        places.resize(places.len() + read.len(), Some(place));
        messages.extend(read);
    }
    Ok((messages, places))
}

/// A message, or several: what tools gave is a message each. `calls` are those so far.
fn read_message(message: &Value, calls: &mut CallLedger) -> Result<Vec<Value>, Broken> {
    only(message, &["role", "content"], &["cache_control"])?;
    let role = blocks::text(message, "role")?;
    if !["user", "assistant"].contains(&role) {
        let rule = format!(
            "its role is {role:?}; it must be user or assistant, and words of the system are the member system"
        );
        return Err(broken("role", rule));
    }
    let blocks = match &message["content"] {
        Value::String(text) => return Ok(vec![json!({"role": role, "content": text})]),
        Value::Array(blocks) => blocks,
        _ => return Err(broken("content", "its content is neither a text nor a list of blocks")),
    };
    let mut parts = Parts::default();
    for (place, block) in blocks.iter().enumerate() {
        let read = parts.add(role, block, calls);
        read.map_err(|rule| within(&format!("content/{place}"), rule))?;
    }
    Ok(parts.into_messages(role))
}

/// Blocks of one message, by what becomes of them.
#[derive(Default)]
struct Parts {
    texts: Vec<Value>,
    thoughts: String,
    calls: Vec<Value>,
    /// Messages of what tools gave.
    given: Vec<Value>,
}

impl Parts {
    fn add(&mut self, role: &str, block: &Value, calls: &mut CallLedger) -> Result<(), Broken> {
        match (block["type"].as_str().unwrap_or_default(), role) {
            ("text", _) => {
                only(block, &["text"], &SILENT)?;
                let text = blocks::text(block, "text")?;
                self.texts.push(json!({"type": "text", "text": text}));
            }
            ("tool_use", "assistant") => {
                only(block, &["id", "name", "input"], &[&SILENT[..], &["caller"]].concat())?;
                let (id, name) = (blocks::text(block, "id")?, blocks::text(block, "name")?);
                let input = Some(&block["input"]).filter(|input| input.is_object());
                let input = input.ok_or_else(|| broken("input", "\"input\" is no object"))?;
                calls.call(Some(id)).map_err(|rule| broken("id", rule.to_string()))?;
                self.calls.push(call(id, name, &input.to_string()));
            }
            ("thinking", "assistant") => {
                only(block, &["thinking", "signature"], &SILENT)?;
                self.thoughts += blocks::text(block, "thinking")?;
            }
            // Nothing of it can be read here.
            ("redacted_thinking", "assistant") => {}
            ("tool_result", "user") => {
                only(block, &["tool_use_id", "content", "is_error"], &SILENT)?;
                let id = blocks::text(block, "tool_use_id")?;
                calls.result(Some(id)).map_err(|rule| broken("tool_use_id", rule.to_string()))?;
                let content = match &block["content"] {
                    Value::Null => String::new(),
                    content => words(content).map_err(|rule| within("content", rule))?,
                };
                // Templates have no place for it; a tool's own words say mostly what went wrong.
                let content = match block["is_error"] == true {
                    true => format!("error: {content}"),
                    false => content,
                };
                self.given.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
            }
            (kind, _) => {
                let known = match role {
                    "assistant" => "text, tool_use, thinking and redacted_thinking",
                    _ => "text and tool_result",
                };
                let rule = format!(
                    "a block of type {kind:?} is not read in a message of role {role:?}; there are {known}"
                );
                return Err(broken("type", rule));
            }
        }
        Ok(())
    }

    /// Results of tools come before the words beside them, as the order of blocks must be.
    fn into_messages(self, role: &str) -> Vec<Value> {
        let Self { texts, thoughts, calls, given } = self;
        let mut messages = given;
        if messages.is_empty() || !texts.is_empty() {
            let mut message = json!({"role": role, "content": texts});
            if texts.is_empty() {
                message["content"] = "".into();
            }
            if !thoughts.is_empty() {
                message["reasoning_content"] = thoughts.into();
            }
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            messages.push(message);
        }
        messages
    }
}

/// A text, or the texts of blocks in one.
fn words(content: &Value) -> Result<String, Broken> {
    let blocks = match content {
        Value::String(text) => return Ok(text.clone()),
        Value::Array(blocks) => blocks,
        _ => return Err((String::new(), "it is neither a text nor a list of blocks".to_owned())),
    };
    let mut all = Vec::with_capacity(blocks.len());
    for (place, block) in blocks.iter().enumerate() {
        let text = match block["type"].as_str() {
            Some("text") => {
                only(block, &["text"], &SILENT).and_then(|()| blocks::text(block, "text"))
            }
            kind => {
                let kind = kind.unwrap_or_default();
                let rule = format!("a block of type {kind:?} is not read here; there is text");
                Err(broken("type", rule))
            }
        };
        all.push(text.map_err(|rule| within(&place.to_string(), rule))?);
    }
    Ok(all.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(members: Value) -> Result<Conversation, Faults> {
        let own = serde_json::from_value(members).unwrap();
        Conversation::new(own, TextMembers::default())
    }

    #[test]
    fn blocks_are_messages_of_a_chat() {
        let conversation = read(json!({
            "system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}],
            "messages": [
                {"role": "user", "content": "c"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": ""},
                    {"type": "text", "text": "d"},
                    {"type": "tool_use", "id": "t1", "name": "f", "input": {"x": 1}},
                    {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "1"},
                    {"type": "tool_result", "tool_use_id": "t2", "is_error": true, "content": [{"type": "text", "text": "no"}]},
                    {"type": "text", "text": "e"},
                ]},
            ],
        }))
        .unwrap();
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        let want = json!([
            {"role": "system", "content": "a\nb"},
            {"role": "user", "content": "c"},
            {"role": "assistant", "content": text("d"), "reasoning_content": "hm",
                "tool_calls": [call("t1", "f", "{\"x\":1}"), call("t2", "g", "{}")]},
            {"role": "tool", "tool_call_id": "t1", "content": "1"},
            {"role": "tool", "tool_call_id": "t2", "content": "error: no"},
            {"role": "user", "content": text("e")},
        ]);
        assert_eq!(json!(conversation.chat.own.messages), want);
        let places = [None, Some(0), Some(1), Some(2), Some(2), Some(2)];
        assert_eq!(conversation.places, places);
        let problem = Problem::invalid("/messages/4/content", "x");
        assert_eq!(renamed(problem, &places).errors[0].pointer, "/messages/2");
        let problem = Problem::invalid("/tools/1/function/parameters/type", "x");
        assert_eq!(renamed(problem, &places).errors[0].pointer, "/tools/1/input_schema/type");
    }

    #[test]
    fn members_stand_where_chats_have_them() {
        let Conversation { chat: ChatQuestion { own, text }, warnings, .. } = read(json!({
            "messages": [], "stop_sequences": ["x"],
            "tools": [{"name": "f", "input_schema": {}, "strict": true}, {"type": "web_search_20250305", "name": "web_search"}],
            "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": true},
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "low"},
        }))
        .unwrap();
        let function = json!({"name": "f", "parameters": {}, "strict": true});
        let tools = json!([{"type": "function", "function": function}, {"type": "web_search_20250305", "name": "web_search"}]);
        assert_eq!(json!(own.tools), tools);
        assert_eq!(own.tool_choice, Some(json!({"type": "function", "function": {"name": "f"}})));
        assert_eq!(own.parallel_tool_calls, Some(false));
        assert_eq!(own.thinking, Some(Thinking { kind: ThinkingKind::Enabled }));
        assert_eq!(own.reasoning_effort.as_deref(), Some("low"));
        assert_eq!(text.stop, Some(OneOrMany::Many(vec!["x".to_owned()])));
        let format = json!({"type": "json_schema", "json_schema": {"schema": {"type": "object"}}});
        assert_eq!(text.response_format, Some(format));
        assert!(warnings[0].contains("budget_tokens is 1024"), "{warnings:?}");
    }

    #[test]
    fn what_is_not_here_is_refused_by_name() {
        let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
        let result =
            json!({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]});
        for (members, pointer) in [
            (user(json!(7)), "/messages/0/content"),
            (user(json!([{"type": "image", "source": {}}])), "/messages/0/content/0/type"),
            (user(json!([{"type": "text"}])), "/messages/0/content/0/text"),
            (user(json!([{"type": "text", "text": "a", "x/y": 1}])), "/messages/0/content/0/x~1y"),
            (user(json!([result.clone()])), "/messages/0/content/0/tool_use_id"),
            (
                json!({"messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
                    {"role": "user", "content": [result]},
                ]}),
                "/messages/1/content/0/content/0/type",
            ),
            (
                json!({"messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                        {"type": "tool_result", "tool_use_id": "a", "content": "2"},
                    ]},
                ]}),
                "/messages/1/content/1/tool_use_id",
            ),
            (
                user(json!([{"type": "tool_use", "id": "a", "name": "f", "input": {}}])),
                "/messages/0/content/0/type",
            ),
            (json!({"messages": [{"content": "a"}]}), "/messages/0/role"),
            (json!({"messages": [{"role": "system", "content": "a"}]}), "/messages/0/role"),
            (json!({"messages": [], "system": [7]}), "/system/0/type"),
            (json!({"messages": [], "mcp_servers": [{}]}), "/mcp_servers"),
            (json!({"messages": [], "tool_choice": {"type": "tool"}}), "/tool_choice/name"),
            (
                json!({"messages": [], "tool_choice": {"type": "any", "name": "f"}}),
                "/tool_choice/name",
            ),
            (
                json!({"messages": [], "output_format": {}, "output_config": {"format": {}}}),
                "/output_format",
            ),
        ] {
            let faults = read(members.clone()).map(|_| ()).unwrap_err();
            let places: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
            assert_eq!(places, [pointer], "{members}");
        }
    }
}
