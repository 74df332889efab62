//! The events of a response's stream.

use axum::http::StatusCode;
use palmette_text::engine::Update;
use palmette_text::question::FinishReport;
use palmette_text::{Member, TextPiece, Usage};
use serde_json::{Value, json};

use super::super::answer::{Part, Reader, chat_logprobs};
use super::super::errors::status_of as status_of_problem;
use super::super::request;
use super::super::stream::{EventLines, Events};
use super::output::{
    Head, call_item, custom_item, message_item, reasoning_item, status_of, status_of_call,
    text_part,
};
use crate::problem::Problem;

/// State of a response between its parts.
pub(super) struct ResponseEvents {
    head: Head,
    reader: Reader,
    /// Events so far.
    number: u64,
    /// Items that have ended.
    output: Vec<Value>,
    /// The item that has begun.
    open: Option<Item>,
    /// Log-probabilities that came with words of the item.
    logprobs: Vec<Value>,
    /// Tokens of the reasoning.
    reasoning_tokens: usize,
    end: Option<(&'static str, Usage)>,
    /// The way in which the rule for its length held, and the score of one that was searched.
    report: (Option<FinishReport>, Option<f32>),
    /// Members of the catalogs that the grammar names.
    members: Vec<Member>,
}

/// An item that has begun, so far.
enum Item {
    Message(String),
    Reasoning(String),
    Call { call: String, name: String, arguments: String },
}

impl ResponseEvents {
    pub(super) fn new(head: Head, reader: Reader) -> Self {
        let (output, logprobs, members) = (Vec::new(), Vec::new(), Vec::new());
        let (number, reasoning_tokens) = (0, 0);
        let (open, end, report) = (None, None, (None, None));
        Self {
            head,
            reader,
            number,
            output,
            open,
            logprobs,
            reasoning_tokens,
            end,
            report,
            members,
        }
    }

    fn tell(&mut self, name: &str, mut event: Value, out: &mut EventLines) {
        event["type"] = name.into();
        event["sequence_number"] = self.number.into();
        self.number += 1;
        out.push_named(name, &event);
    }

    /// An event of the item that is open.
    fn tell_of_item(&mut self, name: &str, mut event: Value, out: &mut EventLines) {
        event["output_index"] = self.output.len().into();
        event["item_id"] = self.item_id().into();
        self.tell(name, event, out);
    }

    fn item_id(&self) -> String {
        let kind = match self.open {
            Some(Item::Reasoning(_)) => "rs",
            Some(Item::Call { .. }) => "fc",
            Some(Item::Message(_)) | None => "msg",
        };
        self.head.item_id(kind, self.output.len())
    }

    /// Begins an item and ends the one before it.
    fn begin_item(&mut self, item: Item, out: &mut EventLines) {
        self.end_item("completed", out);
        self.open = Some(item);
        let id = self.item_id();
        let begun = match &self.open {
            Some(Item::Call { call, name, .. }) => call_item(&id, call, name, "", "in_progress"),
            open => {
                let (kind, of) = match open {
                    Some(Item::Reasoning(_)) => ("reasoning", json!({"summary": []})),
                    _ => ("message", json!({"role": "assistant"})),
                };
                let mut item = of;
                item["type"] = kind.into();
                item["id"] = id.into();
                item["status"] = "in_progress".into();
                item["content"] = json!([]);
                item
            }
        };
        let event = json!({"output_index": self.output.len(), "item": begun});
        self.tell("response.output_item.added", event, out);
        if matches!(self.open, Some(Item::Message(_))) {
            let event = json!({"content_index": 0, "part": text_part("", &json!([]))});
            self.tell_of_item("response.content_part.added", event, out);
        }
    }

    fn end_item(&mut self, status: &str, out: &mut EventLines) {
        let id = self.item_id();
        let item = match &self.open {
            None => return,
            Some(Item::Message(text)) => {
                let (text, logprobs) = (text.clone(), json!(std::mem::take(&mut self.logprobs)));
                let event = json!({"content_index": 0, "text": text, "logprobs": logprobs});
                self.tell_of_item("response.output_text.done", event, out);
                let event = json!({"content_index": 0, "part": text_part(&text, &logprobs)});
                self.tell_of_item("response.content_part.done", event, out);
                message_item(&id, &text, &logprobs, status)
            }
            Some(Item::Reasoning(text)) => {
                let text = text.clone();
                let event = json!({"content_index": 0, "text": text});
                self.tell_of_item("response.reasoning_text.done", event, out);
                reasoning_item(&id, &text, status)
            }
            Some(Item::Call { call, name, arguments }) => {
                let item = call_item(&id, call, name, arguments, status);
                let event = json!({"name": name, "arguments": arguments});
                self.tell_of_item("response.function_call_arguments.done", event, out);
                item
            }
        };
        self.open = None;
        self.done(item, out);
    }

    fn done(&mut self, item: Value, out: &mut EventLines) {
        let event = json!({"output_index": self.output.len(), "item": item});
        self.tell("response.output_item.done", event, out);
        self.output.push(item);
    }

    fn part(&mut self, call: usize, part: Part, logprobs: &mut Vec<Value>, out: &mut EventLines) {
        match part {
            Part::Words(text) => {
                if !matches!(self.open, Some(Item::Message(_))) {
                    self.begin_item(Item::Message(String::new()), out);
                }
                if let Some(Item::Message(all)) = &mut self.open {
                    all.push_str(&text);
                }
                let logprobs = std::mem::take(logprobs);
                let event = json!({"content_index": 0, "delta": text, "logprobs": logprobs});
                self.logprobs.extend(logprobs);
                self.tell_of_item("response.output_text.delta", event, out);
            }
            Part::Reasoning(text) => {
                if !matches!(self.open, Some(Item::Reasoning(_))) {
                    self.begin_item(Item::Reasoning(String::new()), out);
                }
                if let Some(Item::Reasoning(all)) = &mut self.open {
                    all.push_str(&text);
                }
                let event = json!({"content_index": 0, "delta": text});
                self.tell_of_item("response.reasoning_text.delta", event, out);
            }
            Part::Call { name } => {
                let (call, arguments) = (self.head.call_id(call), String::new());
                self.begin_item(Item::Call { call, name, arguments }, out);
            }
            Part::Arguments(text) => {
                if let Some(Item::Call { arguments, .. }) = &mut self.open {
                    arguments.push_str(&text);
                    let event = json!({"delta": text});
                    self.tell_of_item("response.function_call_arguments.delta", event, out);
                }
            }
            Part::CallEnd { is_whole } => self.end_item(status_of_call(is_whole), out),
            Part::Custom { call: custom, is_whole } => {
                self.end_item("completed", out);
                let (place, call) = (self.output.len(), self.head.call_id(call));
                let id = self.head.item_id("ctc", place);
                let begun = custom_item(&id, &call, &custom.name, "", "in_progress");
                let event = json!({"output_index": place, "item": begun});
                self.tell("response.output_item.added", event, out);
                let event = json!({"output_index": place, "item_id": id, "delta": custom.input});
                self.tell("response.custom_tool_call_input.delta", event, out);
                let event = json!({"output_index": place, "item_id": id, "input": custom.input});
                self.tell("response.custom_tool_call_input.done", event, out);
                let status = status_of_call(is_whole);
                self.done(custom_item(&id, &call, &custom.name, &custom.input, status), out);
            }
        }
    }
}

impl Events for ResponseEvents {
    fn begin(&mut self, out: &mut EventLines) {
        for name in ["response.created", "response.in_progress"] {
            let event = json!({"response": self.head.document("in_progress", &[], None)});
            self.tell(name, event, out);
        }
    }

    fn part(&mut self, (_, update): request::Part, out: &mut EventLines) {
        match update {
            Update::Text(TextPiece { text, tokens }) => {
                self.reasoning_tokens += self.reader.reasoning_tokens(&tokens);
                let found = chat_logprobs(&self.head.served, &tokens);
                let mut logprobs: Vec<Value> = found
                    .map_or_else(Vec::new, |found| found.content)
                    .iter()
                    .map(|token| json!(token))
                    .collect();
                for (call, part) in self.reader.push(&text) {
                    self.part(call, part, &mut logprobs, out);
                }
            }
            Update::End(ended, _) => {
                let (parts, finish) = self.reader.finish(&ended);
                for (call, part) in parts {
                    self.part(call, part, &mut Vec::new(), out);
                }
                let status = status_of(finish);
                if self.output.is_empty() && self.open.is_none() {
                    self.begin_item(Item::Message(String::new()), out);
                }
                self.end_item(status, out);
                self.report = (FinishReport::of(&ended), ended.score);
                self.members = ended.members;
                self.end = Some((status, ended.usage));
            }
            Update::Prompt(_) | Update::Missing | Update::Failed(_) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn end(&mut self, out: &mut EventLines) {
        let Some((status, usage)) = self.end else { return };
        let usage = Some((usage, self.reasoning_tokens));
        let document = self.head.document(status, &self.output, usage);
        let members = std::mem::take(&mut self.members);
        let document = self.head.with_report(document, self.report, members);
        self.tell(&format!("response.{status}"), json!({"response": document}), out);
    }

    fn broken_off(&mut self, problem: &Problem, out: &mut EventLines) {
        let is_ours = status_of_problem(problem) >= StatusCode::INTERNAL_SERVER_ERROR;
        let code = if is_ours { "server_error" } else { "invalid_prompt" };
        let mut document = self.head.document("failed", &self.output, None);
        document["error"] = json!({"code": code, "message": problem.shortened_detail()});
        self.tell("response.failed", json!({"response": document}), out);
    }
}
