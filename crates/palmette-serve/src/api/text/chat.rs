//! `POST /v1/chat/completions`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use palmette_core::TokenId;
use palmette_text::engine::Update;
use palmette_text::{
    Constrained, Conversation, PromptEnd, SpecialText, TextPiece, TextRequest, ToolCallReader,
};

use serde_json::{Map, Value};

use super::answer::{self, Reader, Written, call_id, chat_logprobs, missed, usage, whole};
use super::body::read;
use super::constraint::{Calling, Tools, asked, tools_of};
use super::request::{
    Going, OfRoute, Part, Prompt, answers_wanted, compiled, deadline, requests, submit,
};
use super::stream::{EventLines, Events, response};
use crate::api::documented::Texts;
use crate::api::recommend::{blocking, seconds_since_1970};
use crate::problem::Problem;
use crate::request_id;
use crate::server::{App, Received};
use crate::texts::{self, ServedText};
use crate::wire::{
    ChatBody, ChatChoice, ChatChunk, ChatCompletion, ChatMembers, ChatMessage, ChunkChoice, Delta,
    DeltaCall, DeltaFunction, FinishName, StreamOptions, TextMembers, TextUsage,
};

/// Answers a chat by a text model.
///
/// As OpenAI and vLLM spell it. Where a form of the answer is asked for (`response_format`, `structured_outputs`, tools), every token is
/// one that the form allows. With `stream` the answer comes in parts, server-sent events of `ChatChunk`, and `[DONE]`.
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
    let (chat, both): (ChatMembers, TextMembers) = read(&app, &headers, body).await?;
    let served = texts::named(&app.registry.table(), both.model.as_deref())?;
    let until = deadline(&app, &both, received.0)?;
    let n = answers_wanted(&both, 1)?;
    let (streams, options) = (both.stream == Some(true), both.stream_options.unwrap_or_default());
    let (request, calling) = ready(&served, chat, both, until).await?;
    let prompt_tokens = request.prompt.len();
    let answers = submit(&app, &served, &[request], n)?;
    let head = Head {
        id: request_id::current(),
        created: seconds_since_1970() as u64,
        served,
        prompt_tokens,
    };
    if streams {
        let readers = (0..n).map(|_| Some((Reader::new(calling.as_ref()), 0))).collect();
        let events = ChatEvents { head, options, readers, left: n, completion_tokens: 0 };
        return Ok(response(answers, events, until));
    }
    let written = whole(answers, n, until, calling.as_ref(), &head.id).await?;
    Ok(Json(head.answer(written)).into_response())
}

/// Makes prompt and grammar on a thread where nobody waits; a client that goes away, or the deadline, calls the work off.
pub(super) async fn ready(
    served: &Arc<ServedText>,
    chat: ChatMembers,
    both: TextMembers,
    until: Instant,
) -> Result<(TextRequest, Option<Calling>), Problem> {
    let served = Arc::clone(served);
    let is_gone = Arc::new(AtomicBool::new(false));
    let _going = Going(Arc::clone(&is_gone));
    let work = blocking(move || prepare(&served, &chat, &both, &is_gone));
    tokio::time::timeout_at(until.into(), work).await.map_err(|_| missed())??
}

fn prepare(
    served: &ServedText,
    chat: &ChatMembers,
    both: &TextMembers,
    is_gone: &AtomicBool,
) -> Result<(TextRequest, Option<Calling>), Problem> {
    let tools = tools_of(chat, served.tool_format, &served.name)?;
    let tokens = prompt_tokens(served, chat, tools.as_ref())?;
    let found = asked(both, served.json, tools.as_ref().map(|tools| (chat, tools)))?;
    let constraint = match &found {
        Some(found) => compiled(served, found, is_gone)?,
        None => Constrained::Nothing,
    };
    let calling = tools.map(|tools| tools.calling());
    let logprobs = match (chat.logprobs, chat.top_logprobs) {
        (Some(true), top) => Some(top.unwrap_or(0)),
        (_, Some(top)) if top > 0 => {
            let detail = "top_logprobs needs logprobs to be true";
            return Err(Problem::invalid("/top_logprobs", detail));
        }
        _ => None,
    };
    let special = calling
        .as_ref()
        .map_or(SpecialText::Hidden, |calling| ToolCallReader::special_text(&calling.format));
    let max_tokens = chat.max_completion_tokens.or(both.max_tokens);
    let of_route = OfRoute { max_tokens, logprobs, prompt_logprobs: None, special };
    let prompts = vec![Prompt { tokens, pointer: "/messages".to_owned() }];
    let mut requests = requests(served, both, &of_route, prompts, &constraint)?;
    let request = requests.pop().expect("one prompt, one request");
    Ok((request, calling))
}

/// The tokens of a chat's prompt.
pub(super) fn chat_tokens(
    served: &ServedText,
    chat: &ChatMembers,
) -> Result<Vec<TokenId>, Problem> {
    let tools = tools_of(chat, served.tool_format, &served.name)?;
    prompt_tokens(served, chat, tools.as_ref())
}

fn prompt_tokens(
    served: &ServedText,
    chat: &ChatMembers,
    tools: Option<&Tools>,
) -> Result<Vec<TokenId>, Problem> {
    let text = prompt(served, chat, tools)?;
    let tokens = served.model().encode_prompt(&text);
    tokens.map_err(|error| Problem::invalid("/messages", error.to_string()))
}

/// Efforts of reasoning that clients ask for.
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];

/// Variables of the chat template: those of the request, and the effort of reasoning by the names that templates have for it.
fn template_variables(
    served: &ServedText,
    chat: &ChatMembers,
) -> Result<Map<String, Value>, Problem> {
    let mut variables = chat.chat_template_kwargs.clone().unwrap_or_default();
    let Some(effort) = &chat.reasoning_effort else { return Ok(variables) };
    if !EFFORTS.contains(&effort.as_str()) {
        let detail = format!("reasoning_effort is {effort:?}; there are {}", EFFORTS.join(", "));
        return Err(Problem::invalid("/reasoning_effort", detail));
    }
    variables.entry("reasoning_effort").or_insert_with(|| effort.as_str().into());
    let reads_switch = || {
        let template = served.model().chat_template();
        template.is_ok_and(|template| template.mentions("enable_thinking"))
    };
    if effort == "none" && reads_switch() {
        variables.entry("enable_thinking").or_insert(Value::Bool(false));
    }
    Ok(variables)
}

/// The text of a chat, by the model's template.
fn prompt(
    served: &ServedText,
    chat: &ChatMembers,
    tools: Option<&Tools>,
) -> Result<String, Problem> {
    let end = match (chat.add_generation_prompt, chat.continue_final_message == Some(true)) {
        (Some(true), true) => {
            let detail = "an answer goes on with the last message or begins a new one; leave one of add_generation_prompt and \
                          continue_final_message out";
            return Err(Problem::invalid("/continue_final_message", detail));
        }
        (_, true) => PromptEnd::LastText,
        (Some(false), false) => PromptEnd::Messages,
        (_, false) => PromptEnd::Answer,
    };
    let conversation = Conversation {
        messages: chat.messages.clone(),
        tools: tools.map_or_else(Vec::new, |tools| tools.list.clone()),
        extra: template_variables(served, chat)?,
        calls: served.tool_format,
        end,
    };
    let text = served.model().chat_prompt(&conversation, Some(seconds_since_1970() as i64));
    text.map_err(|error| match error.is_of_model() {
        true => Problem::invalid(
            error.pointer(),
            format!(
                "model {:?} has no chat template; use /v1/completions, or put a chat_template.jinja into its directory",
                served.name
            ),
        ),
        false => Problem::invalid(error.pointer(), error.to_string()),
    })
}

/// Members that all parts of an answer have.
struct Head {
    /// The request's.
    id: String,
    created: u64,
    served: Arc<ServedText>,
    prompt_tokens: usize,
}

impl Head {
    fn id(&self) -> String {
        format!("chatcmpl-{}", self.id)
    }

    fn answer(&self, written: Vec<Written>) -> ChatCompletion {
        let mut completion_tokens = 0;
        let choice = |(index, written): (usize, Written)| {
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
            ChatChoice { index, message, logprobs, finish_reason }
        };
        let choices = written.into_iter().enumerate().map(choice).collect();
        ChatCompletion {
            id: self.id(),
            object: "chat.completion",
            created: self.created,
            model: self.served.name.clone(),
            choices,
            usage: usage(self.prompt_tokens, completion_tokens),
        }
    }
}

/// The events of a chat's stream.
struct ChatEvents {
    head: Head,
    options: StreamOptions,
    /// By answer, with the tokens that were told of it; `None` after its end.
    readers: Vec<Option<(Reader, usize)>>,
    left: usize,
    completion_tokens: usize,
}

impl ChatEvents {
    fn chunk(&self, choices: Vec<ChunkChoice>, usage: Option<TextUsage>) -> ChatChunk {
        ChatChunk {
            id: self.head.id(),
            object: "chat.completion.chunk",
            created: self.head.created,
            model: self.head.served.name.clone(),
            choices,
            usage,
        }
    }

    fn usage(&self) -> TextUsage {
        usage(self.head.prompt_tokens, self.completion_tokens)
    }

    fn push(&self, choice: ChunkChoice, out: &mut EventLines) {
        let usage = self.options.continuous_usage_stats.then(|| self.usage());
        out.push(&self.chunk(vec![choice], usage));
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
            answer::Part::Custom(custom) => of_call(DeltaCall {
                index: call,
                kind: Some("custom"),
                id: id(),
                function: None,
                custom: Some(custom),
            }),
            answer::Part::CallEnd => return None,
        })
    }
}

impl Events for ChatEvents {
    fn begin(&mut self, out: &mut EventLines) {
        for index in 0..self.readers.len() {
            let delta =
                Delta { role: Some("assistant"), content: Some(String::new()), ..Delta::default() };
            self.push(ChunkChoice { index, delta, logprobs: None, finish_reason: None }, out);
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
                    self.push(ChunkChoice { index, delta, logprobs, finish_reason: None }, out);
                }
                if logprobs.is_some() {
                    let delta = Delta::default();
                    self.push(ChunkChoice { index, delta, logprobs, finish_reason: None }, out);
                }
                self.readers[index] = Some((reader, told));
            }
            Update::End(ended, _) => {
                // Tokens that ended the text were not told.
                self.completion_tokens += ended.usage.completion_tokens - told;
                let (pieces, finish) = reader.finish(&ended.reason);
                for (call, piece) in pieces {
                    let Some(delta) = self.delta(index, call, piece) else { continue };
                    let choice = ChunkChoice { index, delta, logprobs: None, finish_reason: None };
                    self.push(choice, out);
                }
                let finish_reason = Some(finish);
                let delta = Delta::default();
                self.push(ChunkChoice { index, delta, logprobs: None, finish_reason }, out);
                self.left -= 1;
            }
            Update::Prompt(_) | Update::Failed(_) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }

    fn end(&mut self, out: &mut EventLines) {
        if self.options.include_usage {
            out.push(&self.chunk(Vec::new(), Some(self.usage())));
        }
        out.push_done();
    }
}
