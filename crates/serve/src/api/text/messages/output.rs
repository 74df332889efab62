//! A message as a document: the blocks of the answer, and why it ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use palmette_text::question::FinishReport;
use palmette_text::{Member, Usage};
use serde_json::{Value, json};

use super::super::answer::{PartialAnswer, add_report, call_id};
use crate::domain::texts::ServedText;
use crate::wire::{BoundCatalog, FinishName, TextMember};

/// Members that all documents of a message have.
pub(super) struct Head {
    /// The request's.
    pub(super) id: String,
    pub(super) served: Arc<ServedText>,
    pub(super) prompt_tokens: usize,
    pub(super) warnings: Vec<String>,
    /// Catalogs that the grammar names.
    pub(super) catalogs: BTreeMap<String, BoundCatalog>,
}

impl Head {
    /// The message with these blocks; `stop` is the reason of its end, once it has ended, with the
    /// text that did.
    pub(super) fn document(
        &self,
        content: &[Value],
        stop: (Option<&str>, Option<&str>),
        output_tokens: usize,
    ) -> Value {
        let mut document = json!({
            "id": format!("msg_{}", self.id),
            "type": "message",
            "role": "assistant",
            "model": self.served.name,
            "content": content,
            "stop_reason": stop.0,
            "stop_sequence": stop.1,
            "usage": self.usage(output_tokens),
        });
        if !self.warnings.is_empty() {
            document["warnings"] = json!(self.warnings);
        }
        document
    }

    pub(super) fn usage(&self, output_tokens: usize) -> Value {
        json!({
            "input_tokens": self.prompt_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output_tokens,
        })
    }

    /// The whole message.
    pub(super) fn answer(&self, written: PartialAnswer) -> Value {
        let (finish, usage) = written.end.unwrap_or((FinishName::Length, Usage::default()));
        let mut content = Vec::new();
        if !written.reasoning.is_empty() {
            content.push(thinking_block(&written.reasoning));
        }
        if !written.text.is_empty() || written.calls.is_empty() && written.reasoning.is_empty() {
            content.push(text_block(&written.text));
        }
        for call in written.calls {
            let (name, arguments) = match (call.function, call.custom) {
                (Some(function), _) => (function.name, function.arguments),
                (None, custom) => {
                    let custom = custom.unwrap_or_default();
                    (custom.name, json!({"input": custom.input}).to_string())
                }
            };
            content.push(called_block(&call.id, &name, &arguments));
        }
        let stop = stop_reason(finish, written.stop.as_deref());
        let document = self.document(&content, stop, usage.completion_tokens);
        self.with_report(document, (written.finish, written.score), written.members)
    }

    /// A document with what is told of a text beside Anthropic's members: the way in which the rule
    /// for its length held, the score of one that was searched, and members, where its grammar
    /// names catalogs.
    pub(super) fn with_report(
        &self,
        mut document: Value,
        (finish, score): (Option<FinishReport>, Option<f32>),
        members: Vec<Member>,
    ) -> Value {
        add_report(&mut document, finish, score);
        if !self.catalogs.is_empty() {
            document["catalogs"] = json!(self.catalogs);
            let members = members.into_iter().map(|member| TextMember::after(0, member));
            document["members"] = json!(members.collect::<Vec<_>>());
        }
        document
    }

    pub(super) fn call_id(&self, call: usize) -> String {
        call_id(&self.id, 0, call)
    }
}

/// The reason of an end in Anthropic's words, and the text that did, where one was asked for.
pub(super) fn stop_reason(
    finish: FinishName,
    stop: Option<&str>,
) -> (Option<&'static str>, Option<&str>) {
    match (finish, stop) {
        (FinishName::Length, _) => (Some("max_tokens"), None),
        (FinishName::ToolCalls, _) => (Some("tool_use"), None),
        (FinishName::Stop, Some(text)) => (Some("stop_sequence"), Some(text)),
        (FinishName::Stop, None) => (Some("end_turn"), None),
    }
}

pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn thinking_block(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": ""})
}

pub(super) fn call_block(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

/// A call with its input; one that broke off has the text so far as `partial_json`.
fn called_block(id: &str, name: &str, arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(input) => call_block(id, name, input),
        Err(_) => {
            let mut block = call_block(id, name, json!({}));
            block["partial_json"] = arguments.into();
            block
        }
    }
}
