//! A response as a document: what was asked for, and the items of the answer.

use std::sync::Arc;

use palmette_text::question::FinishReport;
use palmette_text::{Member, Usage};
use serde_json::{Map, Value, json};

use super::super::answer::{PartialAnswer, add_report, call_id, chat_logprobs};
use crate::domain::texts::ServedText;
use crate::wire::{FinishName, ResponseMembers, TextMember, TextMembers};

/// Members that all documents of a response have.
pub(super) struct Head {
    /// The request's.
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) served: Arc<ServedText>,
    pub(super) prompt_tokens: usize,
    /// Settings of the request, as they are told back.
    pub(super) said: Map<String, Value>,
}

/// Settings of a request that its response tells back.
pub(super) fn said(own: &ResponseMembers, text: &TextMembers) -> Map<String, Value> {
    let form = own.text.clone().unwrap_or_default();
    let mut shown = json!({"format": form.format.unwrap_or_else(|| json!({"type": "text"}))});
    if let Some(verbosity) = form.verbosity {
        shown["verbosity"] = verbosity.into();
    }
    let reasoning = own.reasoning.as_ref().and_then(|reasoning| reasoning.effort.clone());
    let said = json!({
        "background": false,
        "instructions": own.instructions,
        "max_output_tokens": own.max_output_tokens.or(text.max_tokens),
        "metadata": own.metadata.clone().unwrap_or_default(),
        "parallel_tool_calls": own.parallel_tool_calls.unwrap_or(true),
        "previous_response_id": null,
        "reasoning": {"effort": reasoning, "summary": null},
        "store": false,
        "temperature": text.temperature.unwrap_or(1.0),
        "text": shown,
        "tool_choice": own.tool_choice.clone().unwrap_or_else(|| "auto".into()),
        "tools": own.tools.clone().unwrap_or_default(),
        "top_logprobs": own.top_logprobs.unwrap_or(0),
        "top_p": text.top_p.unwrap_or(1.0),
        "truncation": "disabled",
    });
    said.as_object().cloned().unwrap_or_default()
}

impl Head {
    /// The name of an item of the answer.
    pub(super) fn item_id(&self, kind: &str, place: usize) -> String {
        let request: String = self.id.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("{kind}_{request}{place:02}")
    }

    /// The response in a state; `usage` with the tokens of the reasoning.
    pub(super) fn document(
        &self,
        status: &str,
        output: &[Value],
        usage: Option<(Usage, usize)>,
    ) -> Value {
        let incomplete = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
        let usage = usage.map(|(usage, reasoning)| {
            let (input, output) = (self.prompt_tokens, usage.completion_tokens);
            json!({
                "input_tokens": input,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": output,
                "output_tokens_details": {"reasoning_tokens": reasoning},
                "total_tokens": input + output,
            })
        });
        let mut document = json!({
            "id": format!("resp_{}", self.id),
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": null,
            "incomplete_details": incomplete,
            "model": self.served.name,
            "output": output,
            "usage": usage,
        });
        if let Some(object) = document.as_object_mut() {
            object.extend(self.said.clone());
        }
        document
    }

    /// The whole response.
    pub(super) fn answer(&self, written: PartialAnswer) -> Value {
        let (finish, usage) = written.end.unwrap_or((FinishName::Length, Usage::default()));
        let status = status_of(finish);
        let mut output = Vec::new();
        let has_calls = !written.calls.is_empty();
        if !written.reasoning.is_empty() {
            let id = self.item_id("rs", output.len());
            let is_over = !written.text.is_empty() || has_calls;
            let status = if is_over { "completed" } else { status };
            output.push(reasoning_item(&id, &written.reasoning, status));
        }
        if !written.text.is_empty() || !has_calls && written.reasoning.is_empty() {
            let logprobs = chat_logprobs(&self.served, &written.tokens);
            let logprobs = logprobs.map_or_else(Vec::new, |found| found.content);
            let id = self.item_id("msg", output.len());
            let status = if has_calls { "completed" } else { status };
            output.push(message_item(&id, &written.text, &json!(logprobs), status));
        }
        let last = written.calls.len().saturating_sub(1);
        for (number, call) in written.calls.into_iter().enumerate() {
            let place = output.len();
            let status = status_of_call(number < last || !written.is_call_cut);
            output.push(match (call.function, call.custom) {
                (Some(function), _) => {
                    let id = self.item_id("fc", place);
                    call_item(&id, &call.id, &function.name, &function.arguments, status)
                }
                (None, custom) => {
                    let custom = custom.unwrap_or_default();
                    let id = self.item_id("ctc", place);
                    custom_item(&id, &call.id, &custom.name, &custom.input, status)
                }
            });
        }
        let document = self.document(status, &output, Some((usage, written.reasoning_tokens)));
        self.with_report(document, (written.finish, written.score), written.members)
    }

    /// A document with what is told of a text beside OpenAI's members: the way in which the rule
    /// for its length held, the score of one that was searched, and members, where its grammar
    /// names catalogs.
    pub(super) fn with_report(
        &self,
        mut document: Value,
        (finish, score): (Option<FinishReport>, Option<f32>),
        members: Vec<Member>,
    ) -> Value {
        add_report(&mut document, finish, score);
        if self.said.contains_key("catalogs") {
            let members = members.into_iter().map(|member| TextMember::after(0, member));
            document["members"] = json!(members.collect::<Vec<_>>());
        }
        document
    }

    pub(super) fn call_id(&self, call: usize) -> String {
        call_id(&self.id, 0, call)
    }
}

/// The state of a call that has ended.
pub(super) fn status_of_call(is_whole: bool) -> &'static str {
    if is_whole { "completed" } else { "incomplete" }
}

/// The state of a response that has ended.
pub(super) fn status_of(finish: FinishName) -> &'static str {
    match finish {
        FinishName::Length => "incomplete",
        FinishName::Stop | FinishName::ToolCalls => "completed",
    }
}

pub(super) fn text_part(text: &str, logprobs: &Value) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs})
}

pub(super) fn message_item(id: &str, text: &str, logprobs: &Value, status: &str) -> Value {
    let content = [text_part(text, logprobs)];
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

pub(super) fn reasoning_item(id: &str, text: &str, status: &str) -> Value {
    let content = [json!({"type": "reasoning_text", "text": text})];
    json!({"id": id, "type": "reasoning", "status": status, "summary": [], "content": content})
}

pub(super) fn call_item(id: &str, call: &str, name: &str, arguments: &str, status: &str) -> Value {
    json!({"id": id, "type": "function_call", "status": status, "call_id": call, "name": name, "arguments": arguments})
}

pub(super) fn custom_item(id: &str, call: &str, name: &str, input: &str, status: &str) -> Value {
    json!({"id": id, "type": "custom_tool_call", "status": status, "call_id": call, "name": name, "input": input})
}
