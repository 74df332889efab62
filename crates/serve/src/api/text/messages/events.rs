//! The events of a message's stream.

use palmette_text::engine::Update;
use palmette_text::question::FinishReport;
use palmette_text::{FinishReason, TextPiece};
use serde_json::{Value, json};

use super::super::answer::{Part, Reader};
use super::super::errors::{message_error, status_of};
use super::super::request;
use super::super::stream::{EventLines, Events};
use super::output::{Head, call_block, stop_reason, text_block, thinking_block};
use crate::problem::Problem;

/// State of a message between its parts.
pub(super) struct MessageEvents {
    head: Head,
    reader: Reader,
    /// Blocks that have begun.
    begun: usize,
    /// The block that has begun last and has not ended.
    open: Option<Block>,
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
    Call,
}

fn tell(mut event: Value, out: &mut EventLines) {
    let name = event["type"].take();
    let name = name.as_str().unwrap_or_default();
    event["type"] = name.into();
    out.push_named(name, &event);
}

impl MessageEvents {
    pub(super) fn new(head: Head, reader: Reader) -> Self {
        Self { head, reader, begun: 0, open: None, is_over: false }
    }

    fn begin_block(&mut self, block: Block, begun: Value, out: &mut EventLines) {
        self.end_block(out);
        let index = self.begun;
        tell(json!({"type": "content_block_start", "index": index, "content_block": begun}), out);
        self.open = Some(block);
        self.begun += 1;
    }

    fn end_block(&mut self, out: &mut EventLines) {
        if self.open.take().is_some() {
            tell(json!({"type": "content_block_stop", "index": self.begun - 1}), out);
        }
    }

    fn delta(&self, delta: Value, out: &mut EventLines) {
        let index = self.begun - 1;
        tell(json!({"type": "content_block_delta", "index": index, "delta": delta}), out);
    }

    fn part(&mut self, call: usize, part: Part, out: &mut EventLines) {
        match part {
            Part::Words(text) => {
                if self.open != Some(Block::Text) {
                    self.begin_block(Block::Text, text_block(""), out);
                }
                self.delta(json!({"type": "text_delta", "text": text}), out);
            }
            Part::Reasoning(text) => {
                if self.open != Some(Block::Thinking) {
                    self.begin_block(Block::Thinking, thinking_block(""), out);
                }
                self.delta(json!({"type": "thinking_delta", "thinking": text}), out);
            }
            Part::Call { name } => {
                let begun = call_block(&self.head.call_id(call), &name, json!({}));
                self.begin_block(Block::Call, begun, out);
            }
            Part::Arguments(text) => {
                self.delta(json!({"type": "input_json_delta", "partial_json": text}), out);
            }
            Part::CallEnd { .. } => self.end_block(out),
            Part::Custom { call: custom, .. } => {
                let begun = call_block(&self.head.call_id(call), &custom.name, json!({}));
                self.begin_block(Block::Call, begun, out);
                let input = json!({"input": custom.input}).to_string();
                self.delta(json!({"type": "input_json_delta", "partial_json": input}), out);
                self.end_block(out);
            }
        }
    }
}

impl Events for MessageEvents {
    fn begin(&mut self, out: &mut EventLines) {
        let message = self.head.document(&[], (None, None), 0);
        tell(json!({"type": "message_start", "message": message}), out);
    }

    fn part(&mut self, (_, update): request::Part, out: &mut EventLines) {
        match update {
            Update::Text(TextPiece { text, .. }) => {
                for (call, part) in self.reader.push(&text) {
                    self.part(call, part, out);
                }
            }
            Update::End(ended, _) => {
                let (parts, finish) = self.reader.finish(&ended);
                for (call, part) in parts {
                    self.part(call, part, out);
                }
                if self.begun == 0 {
                    self.begin_block(Block::Text, text_block(""), out);
                }
                self.end_block(out);
                let stop = match &ended.reason {
                    FinishReason::StopString(text) => Some(text.as_str()),
                    _ => None,
                };
                let (reason, stop) = stop_reason(finish, stop);
                let usage = self.head.usage(ended.usage.completion_tokens);
                let event = json!({
                    "type": "message_delta",
                    "delta": {"stop_reason": reason, "stop_sequence": stop},
                    "usage": usage,
                });
                let finish = FinishReport::of(&ended);
                tell(self.head.with_report(event, (finish, ended.score), ended.members), out);
                self.is_over = true;
            }
            Update::Prompt(_) | Update::Missing | Update::Failed(_) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn end(&mut self, out: &mut EventLines) {
        tell(json!({"type": "message_stop"}), out);
    }

    fn broken_off(&mut self, problem: &Problem, out: &mut EventLines) {
        out.push_named("error", &message_error(problem, status_of(problem)));
    }
}
