//! `POST /v1/chat/completions`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use palmette_text::engine::Update;
use palmette_text::question::{CheckedText, FinishReport};
use palmette_text::{Member, TextPiece};

use super::answer::{self, PartialAnswer, Reader, call_id, chat_logprobs, usage, whole};
use super::request::{Part, deadline, named, prepared, submit};
use super::stream::{EventLines, Events, response};
use crate::api::body;
use crate::api::documented::Texts;
use crate::app::{App, Received};
use crate::domain::texts::ServedText;
use crate::problem::Problem;
use crate::request_id;
use crate::wall_clock::seconds_since_1970;
use crate::wire::{
    BoundCatalog, ChatBody, ChatChoice, ChatChunk, ChatCompletion, ChatLogprobs, ChatMessage,
    ChunkChoice, Delta, DeltaCall, DeltaFunction, FinishName, StreamOptions, TextMember, TextUsage,
};

/// Answers a chat by a text model.
///
/// As OpenAI and vLLM spell it. Where a form of the answer is asked for (`response_format`,
/// `structured_outputs`, tools), every token is one that the form allows. With `stream` the answer
/// comes in parts, server-sent events of `ChatChunk`, and `[DONE]`.
#[utoipa::path(
    post, path = "/v1/chat/completions", operation_id = "create_chat_completion", tag = "text", request_body = ChatBody,
    responses(
        (status = 200, content(
            (ChatCompletion = "application/json"),
            (ChatChunk = "text/event-stream"),
        )),
        Texts,
    )
)]
pub(crate) async fn chat(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let ChatBody { envelope, question } = body::text(&app, &headers, body).await?;
    let table = app.registry.table();
    let served = table.text(envelope.model.as_deref())?;
    let until = deadline(&app, &envelope, received.0)?;
    let question = prepared((&table, &served), until, move |served, settings, is_gone| {
        question.check(served.model(), settings, is_gone)
    });
    let question = question.await?;
    let answers = submit(&app, &served, &question)?;
    let CheckedText { requests, n, calling, warnings, sources, .. } = question;
    let head = Head {
        id: request_id::current(),
        created: seconds_since_1970() as u64,
        served,
        prompt_tokens: requests.iter().map(|request| request.prompt.len()).sum(),
        warnings: named(warnings),
        catalogs: BoundCatalog::by_name(&sources),
    };
    if envelope.stream == Some(true) {
        let options = envelope.stream_options.unwrap_or_default();
        let readers = (0..n).map(|_| Some((Reader::new(calling.as_ref()), 0))).collect();
        let events = ChatEvents { head, options, readers, left: n, completion_tokens: 0 };
        return Ok(response(answers, events, until));
    }
    let written = whole(answers, n, until, calling.as_ref(), &head.id).await?;
    Ok(Json(head.answer(written)).into_response())
}

/// Members that all parts of an answer have.
struct Head {
    /// The request's.
    id: String,
    created: u64,
    served: Arc<ServedText>,
    prompt_tokens: usize,
    warnings: Vec<String>,
    /// Catalogs that the grammar names.
    catalogs: BTreeMap<String, BoundCatalog>,
}

impl Head {
    /// Members of an answer; `None` where the grammar names no catalog.
    fn members(&self, members: Vec<Member>) -> Option<Vec<TextMember>> {
        let members = || members.into_iter().map(|member| TextMember::after(0, member)).collect();
        (!self.catalogs.is_empty()).then(members)
    }

    fn id(&self) -> String {
        format!("chatcmpl-{}", self.id)
    }

    fn answer(&self, written: Vec<PartialAnswer>) -> ChatCompletion {
        let mut completion_tokens = 0;
        let choice = |(index, written): (usize, PartialAnswer)| {
            let (finish_reason, took) =
                written.end.unwrap_or((FinishName::Length, Default::default()));
            completion_tokens += took.completion_tokens;
            let has_text = !written.text.is_empty() || written.calls.is_empty();
            let message = ChatMessage {
                role: "assistant",
                content: has_text.then_some(written.text),
                refusal: None,
                reasoning_content: Some(written.reasoning).filter(|text| !text.is_empty()),
                tool_calls: written.calls,
            };
            let logprobs = match written.tokens.is_empty() {
                true => None,
                false => chat_logprobs(&self.served, &written.tokens),
            };
            let (finish, score) = (written.finish, written.score);
            let members = self.members(written.members);
            ChatChoice { index, message, logprobs, finish_reason, finish, score, members }
        };
        let written = written.into_iter().enumerate().filter(|(_, written)| !written.is_missing);
        let choices = written.map(choice).collect();
        ChatCompletion {
            id: self.id(),
            object: "chat.completion",
            created: self.created,
            model: self.served.name.clone(),
            choices,
            usage: usage(self.prompt_tokens, completion_tokens),
            warnings: self.warnings.clone(),
            catalogs: self.catalogs.clone(),
        }
    }
}

/// The events of a chat's stream.
struct ChatEvents {
    head: Head,
    options: StreamOptions,
    /// Readers by answer, with the tokens that were told of it; `None` after its end.
    readers: Vec<Option<(Reader, usize)>>,
    left: usize,
    completion_tokens: usize,
}

impl ChatEvents {
    fn chunk(&mut self, choices: Vec<ChunkChoice>, usage: Option<TextUsage>) -> ChatChunk {
        ChatChunk {
            id: self.head.id(),
            object: "chat.completion.chunk",
            created: self.head.created,
            model: self.head.served.name.clone(),
            choices,
            usage,
            // Once: the first event has them.
            warnings: std::mem::take(&mut self.head.warnings),
            catalogs: BTreeMap::new(),
        }
    }

    fn usage(&self) -> TextUsage {
        usage(self.head.prompt_tokens, self.completion_tokens)
    }

    fn push(&mut self, choice: ChunkChoice, out: &mut EventLines) {
        let usage = self.options.continuous_usage_stats.then(|| self.usage());
        let is_last = choice.finish_reason.is_some();
        let catalogs = if is_last { self.head.catalogs.clone() } else { BTreeMap::new() };
        out.push(&ChatChunk { catalogs, ..self.chunk(vec![choice], usage) });
    }

    /// Tells more of an answer that has not ended.
    fn push_delta(
        &mut self,
        index: usize,
        delta: Delta,
        logprobs: Option<ChatLogprobs>,
        out: &mut EventLines,
    ) {
        let (finish_reason, finish, score, members) = Default::default();
        let choice = ChunkChoice { index, delta, logprobs, finish_reason, finish, score, members };
        self.push(choice, out);
    }

    fn delta(&self, answer: usize, call: usize, part: answer::Part) -> Option<Delta> {
        let function = |id: Option<String>, name: Option<String>, arguments| DeltaCall {
            index: call,
            kind: id.is_some().then_some("function"),
            id,
            function: Some(DeltaFunction { name, arguments }),
            custom: None,
        };
        let id = || Some(call_id(&self.head.id, answer, call));
        let of_call = |call| Delta { tool_calls: vec![call], ..Delta::default() };
        Some(match part {
            answer::Part::Words(text) => Delta { content: Some(text), ..Delta::default() },
            answer::Part::Reasoning(text) => {
                Delta { reasoning_content: Some(text), ..Delta::default() }
            }
            answer::Part::Call { name } => of_call(function(id(), Some(name), String::new())),
            answer::Part::Arguments(text) => of_call(function(None, None, text)),
            answer::Part::Custom { call: custom, .. } => of_call(DeltaCall {
                index: call,
                kind: Some("custom"),
                id: id(),
                function: None,
                custom: Some(custom),
            }),
            answer::Part::CallEnd { .. } => return None,
        })
    }
}

impl Events for ChatEvents {
    fn begin(&mut self, out: &mut EventLines) {
        for index in 0..self.readers.len() {
            let delta =
                Delta { role: Some("assistant"), content: Some(String::new()), ..Delta::default() };
            self.push_delta(index, delta, None, out);
        }
    }

    fn part(&mut self, (index, update): Part, out: &mut EventLines) {
        let Some((mut reader, told)) = self.readers[index].take() else { return };
        match update {
            Update::Text(TextPiece { text, tokens }) => {
                self.completion_tokens += tokens.len();
                let told = told + tokens.len();
                let pieces = reader.push(&text);
                let mut logprobs = match tokens.is_empty() {
                    true => None,
                    false => chat_logprobs(&self.head.served, &tokens),
                };
                for (call, piece) in pieces {
                    let Some(delta) = self.delta(index, call, piece) else { continue };
                    let logprobs = logprobs.take();
                    self.push_delta(index, delta, logprobs, out);
                }
                if logprobs.is_some() {
                    self.push_delta(index, Delta::default(), logprobs, out);
                }
                self.readers[index] = Some((reader, told));
            }
            Update::End(ended, _) => {
                // Tokens that ended the text were not told.
                self.completion_tokens += ended.usage.completion_tokens - told;
                let (pieces, finish) = reader.finish(&ended);
                for (call, piece) in pieces {
                    let Some(delta) = self.delta(index, call, piece) else { continue };
                    self.push_delta(index, delta, None, out);
                }
                let (delta, logprobs, finish_reason) = (Delta::default(), None, Some(finish));
                let (finish, score) = (FinishReport::of(&ended), ended.score);
                let members = self.head.members(ended.members);
                let choice =
                    ChunkChoice { index, delta, logprobs, finish_reason, finish, score, members };
                self.push(choice, out);
                self.left -= 1;
            }
            Update::Missing => self.left -= 1,
            Update::Prompt(_) | Update::Failed(_) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }

    fn end(&mut self, out: &mut EventLines) {
        if self.options.include_usage {
            let usage = self.usage();
            out.push(&self.chunk(Vec::new(), Some(usage)));
        }
        out.push_done();
    }
}
