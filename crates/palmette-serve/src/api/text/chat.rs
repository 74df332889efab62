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
    Going, OfRoute, Part, Prompt, Warnings, answers_wanted, compiled, deadline, requests, submit,
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
    DeltaCall, DeltaFunction, FinishName, StreamOptions, TextMembers, TextUsage, Thinking,
    ThinkingKind,
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
    let Ready { request, calling, warnings } = ready(&served, chat, both, until).await?;
    let prompt_tokens = request.prompt.len();
    let answers = submit(&app, &served, &[request], n)?;
    let head = Head {
        id: request_id::current(),
        created: seconds_since_1970() as u64,
        served,
        prompt_tokens,
        warnings,
    };
    if streams {
        let readers = (0..n).map(|_| Some((Reader::new(calling.as_ref()), 0))).collect();
        let events = ChatEvents { head, options, readers, left: n, completion_tokens: 0 };
        return Ok(response(answers, events, until));
    }
    let written = whole(answers, n, until, calling.as_ref(), &head.id).await?;
    Ok(Json(head.answer(written)).into_response())
}

/// A chat that is ready to be answered.
pub(super) struct Ready {
    pub(super) request: TextRequest,
    pub(super) calling: Option<Calling>,
    pub(super) warnings: Vec<String>,
}

/// Makes prompt and grammar on a thread where nobody waits; a client that goes away, or the deadline, calls the work off.
pub(super) async fn ready(
    served: &Arc<ServedText>,
    chat: ChatMembers,
    both: TextMembers,
    until: Instant,
) -> Result<Ready, Problem> {
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
) -> Result<Ready, Problem> {
    let mut warnings = Warnings::default();
    let mut tools = tools_of(chat, served.tool_format, &served.name)?;
    let prompt = prompt(served, chat, tools.as_ref(), &mut warnings)?;
    let tokens = encoded(served, &prompt)?;
    if let Some(tools) = &mut tools {
        tools.format = tools.format.after_prompt(&prompt);
    }
    let found = asked(both, served.json, tools.as_ref().map(|tools| (chat, tools)))?;
    let constraint = match &found {
        Some(found) => compiled(served, found, is_gone, &mut warnings)?,
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
    let (max_tokens, max_tokens_at) = match (chat.max_completion_tokens, both.max_tokens) {
        (Some(new), Some(old)) if new != old => {
            let detail =
                format!("max_completion_tokens is {new}, and max_tokens is {old}; leave one out");
            return Err(Problem::invalid("/max_tokens", detail));
        }
        (Some(new), _) => (Some(new), "/max_completion_tokens"),
        (None, old) => (old, "/max_tokens"),
    };
    let logprobs_at = "/top_logprobs";
    let of_route = OfRoute {
        max_tokens,
        max_tokens_at,
        logprobs,
        logprobs_at,
        prompt_logprobs: None,
        special,
    };
    let prompts = vec![Prompt { tokens, pointer: "/messages".to_owned() }];
    let mut requests = requests(served, both, &of_route, prompts, &constraint)?;
    let request = requests.pop().expect("one prompt, one request");
    Ok(Ready { request, calling, warnings: warnings.into_vec() })
}

/// The tokens of a chat's prompt.
pub(super) fn chat_tokens(
    served: &ServedText,
    chat: &ChatMembers,
) -> Result<Vec<TokenId>, Problem> {
    let tools = tools_of(chat, served.tool_format, &served.name)?;
    encoded(served, &prompt(served, chat, tools.as_ref(), &mut Warnings::default())?)
}

fn encoded(served: &ServedText, prompt: &str) -> Result<Vec<TokenId>, Problem> {
    let tokens = served.model().encode_prompt(prompt);
    tokens.map_err(|error| Problem::invalid("/messages", error.to_string()))
}

/// Efforts of reasoning that clients ask for.
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];
/// Lengths of answers that clients ask for.
const VERBOSITIES: [&str; 3] = ["low", "medium", "high"];
/// The variable by which templates switch reasoning on and off.
const SWITCH: &str = "enable_thinking";

/// Variables of the chat template: those of the request, and what it says of reasoning and length by the names that templates have for it.
///
/// One that the template does not read has no effect, which the answer says.
fn template_variables(
    served: &ServedText,
    chat: &ChatMembers,
    warnings: &mut Warnings,
) -> Result<Map<String, Value>, Problem> {
    let template = served.model().chat_template();
    let reads = |name: &str| template.as_ref().is_ok_and(|template| template.mentions(name));
    let mut unread = |member: &str, value: &str| {
        warnings.add(format!(
            "{member} is {value}, and the model's chat template does not read it: it has no effect"
        ));
    };
    let mut variables = chat.chat_template_kwargs.clone().unwrap_or_default();
    for (name, value) in variables.iter().filter(|(name, _)| !reads(name)) {
        unread(&format!("chat_template_kwargs.{name}"), &value.to_string());
    }
    for (name, given, known) in [
        ("reasoning_effort", &chat.reasoning_effort, &EFFORTS[..]),
        ("verbosity", &chat.verbosity, &VERBOSITIES),
    ] {
        let Some(given) = given.as_deref() else { continue };
        if !known.contains(&given) {
            let detail = format!("{name} is {given:?}; there are {}", known.join(", "));
            return Err(Problem::invalid(format!("/{name}"), detail));
        }
        variables.entry(name).or_insert_with(|| given.into());
        let is_switch = (name, given) == ("reasoning_effort", "none") && reads(SWITCH);
        if is_switch {
            variables.entry(SWITCH).or_insert(Value::Bool(false));
        }
        // What is usual asks for nothing.
        if !is_switch && given != "medium" && !reads(name) {
            unread(name, given);
        }
    }
    if let Some(Thinking { kind }) = chat.thinking {
        let is_enabled = kind == ThinkingKind::Enabled;
        variables.entry(SWITCH).or_insert(Value::Bool(is_enabled));
        if !reads(SWITCH) {
            unread("thinking.type", if is_enabled { "enabled" } else { "disabled" });
        }
    }
    Ok(variables)
}

/// The text of a chat, by the model's template.
fn prompt(
    served: &ServedText,
    chat: &ChatMembers,
    tools: Option<&Tools>,
    warnings: &mut Warnings,
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
        extra: template_variables(served, chat, warnings)?,
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
    warnings: Vec<String>,
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
            warnings: self.warnings.clone(),
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
        }
    }

    fn usage(&self) -> TextUsage {
        usage(self.head.prompt_tokens, self.completion_tokens)
    }

    fn push(&mut self, choice: ChunkChoice, out: &mut EventLines) {
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
            let usage = self.usage();
            out.push(&self.chunk(Vec::new(), Some(usage)));
        }
        out.push_done();
    }
}
