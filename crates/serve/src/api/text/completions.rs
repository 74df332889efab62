//! `POST /v1/completions`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use palmette_core::TokenId;
use palmette_text::engine::Update;
use palmette_text::question::{CheckedText, FinishReport};
use palmette_text::{LogProbabilities, Member, TextPiece, TextRequest};

use super::answer::{
    PartialAnswer, completion_logprobs, finish_name, prompt_logprobs, usage, whole,
};
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
    BoundCatalog, Completion, CompletionBody, CompletionChoice, CompletionLogprobs, FinishName,
    StreamOptions, TextMember,
};

/// Continues a text by a text model.
///
/// As OpenAI and vLLM spell it; without a chat template. With `stream` the answer comes in parts,
/// server-sent events, and `[DONE]`.
#[utoipa::path(
    post, path = "/v1/completions", operation_id = "create_completion", tag = "text", request_body = CompletionBody,
    responses(
        (status = 200, content(
            (Completion = "application/json"),
            (Completion = "text/event-stream"),
        )),
        Texts,
    )
)]
pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let CompletionBody { envelope, question } = body::text(&app, &headers, body).await?;
    let table = app.registry.table();
    let served = table.text(envelope.model.as_deref())?;
    let until = deadline(&app, &envelope, received.0)?;
    let question = prepared((&table, &served), until, move |served, settings, is_gone| {
        question.check(served.model(), settings, is_gone)
    });
    let question = question.await?;
    let answers = submit(&app, &served, &question)?;
    let count = question.num_answers();
    let CheckedText { requests, n, echoes, warnings, sources, .. } = question;
    let of_request = |request: &TextRequest| {
        let wanted = request.logprobs.and(request.prompt_logprobs);
        wanted.map(|_| request.prompt.clone())
    };
    let head = Head {
        id: request_id::current(),
        created: seconds_since_1970() as u64,
        served,
        prompt_tokens: requests.iter().map(|request| request.prompt.len()).sum(),
        echoes,
        scored: requests.iter().map(of_request).collect(),
        n,
        warnings: named(warnings),
        catalogs: BoundCatalog::by_name(&sources),
    };
    if envelope.stream == Some(true) {
        let options = envelope.stream_options.unwrap_or_default();
        let texts = (0..count).map(|index| Some(EchoState::new(&head, index))).collect();
        let events = CompletionEvents { head, options, texts, left: count, completion_tokens: 0 };
        return Ok(response(answers, events, until));
    }
    let written = whole(answers, count, until, None, &head.id).await?;
    Ok(Json(head.answer(written)).into_response())
}

/// Members that all parts of an answer have.
struct Head {
    /// The request's.
    id: String,
    created: u64,
    served: Arc<ServedText>,
    prompt_tokens: usize,
    /// Echoes by prompt; empty texts where nothing is echoed.
    echoes: Vec<String>,
    /// Tokens by prompt, where their likelihoods are echoed.
    scored: Vec<Option<Vec<TokenId>>>,
    /// Answers of each prompt.
    n: usize,
    warnings: Vec<String>,
    /// Catalogs that the grammar names.
    catalogs: BTreeMap<String, BoundCatalog>,
}

impl Head {
    /// Members of an answer, whose text stands after its echo; `None` where the grammar names no
    /// catalog.
    fn members(&self, index: usize, members: Vec<Member>) -> Option<Vec<TextMember>> {
        let echo = self.echo(index).len();
        let members =
            || members.into_iter().map(|member| TextMember::after(echo, member)).collect();
        (!self.catalogs.is_empty()).then(members)
    }

    fn echo(&self, index: usize) -> &str {
        &self.echoes[index / self.n]
    }

    fn completion(&self, choices: Vec<CompletionChoice>) -> Completion {
        Completion {
            id: format!("cmpl-{}", self.id),
            object: "text_completion",
            created: self.created,
            model: self.served.name.clone(),
            choices,
            usage: None,
            warnings: Vec::new(),
            catalogs: BTreeMap::new(),
        }
    }

    fn logprobs(&self, index: usize, written: &PartialAnswer) -> Option<CompletionLogprobs> {
        let mut offset = 0;
        let echoed = self.echoed(index, &written.prompt, &mut offset);
        let own = match written.tokens.is_empty() {
            true => None,
            false => completion_logprobs(&self.served, &written.tokens, &mut offset),
        };
        match (echoed, own) {
            (Some(mut all), Some(own)) => {
                all.tokens.extend(own.tokens);
                all.token_logprobs.extend(own.token_logprobs);
                all.top_logprobs.extend(own.top_logprobs);
                all.text_offset.extend(own.text_offset);
                Some(all)
            }
            (echoed, own) => echoed.or(own),
        }
    }

    /// Likelihoods of an answer's prompt, where they are echoed.
    fn echoed(
        &self,
        index: usize,
        found: &[LogProbabilities],
        offset: &mut usize,
    ) -> Option<CompletionLogprobs> {
        let tokens = self.scored[index / self.n].as_ref()?;
        Some(prompt_logprobs(&self.served, tokens, found, offset))
    }

    fn answer(&self, written: Vec<PartialAnswer>) -> Completion {
        let mut completion_tokens = 0;
        let choice = |(index, written): (usize, PartialAnswer)| {
            let (finish_reason, took) =
                written.end.unwrap_or((FinishName::Length, Default::default()));
            completion_tokens += took.completion_tokens;
            let logprobs = self.logprobs(index, &written);
            let text = self.echo(index).to_owned() + &written.text;
            let members = self.members(index, written.members);
            let (finish_reason, finish, score) =
                (Some(finish_reason), written.finish, written.score);
            CompletionChoice { index, text, logprobs, finish_reason, finish, score, members }
        };
        let written = written.into_iter().enumerate().filter(|(_, written)| !written.is_missing);
        let choices = written.map(choice).collect();
        let usage = Some(usage(self.prompt_tokens, completion_tokens));
        let (warnings, catalogs) = (self.warnings.clone(), self.catalogs.clone());
        Completion { usage, warnings, catalogs, ..self.completion(choices) }
    }
}

/// State of an answer between its parts.
struct EchoState {
    /// The prompt, until it was told.
    echo: String,
    /// Characters.
    offset: usize,
    tokens: usize,
}

impl EchoState {
    fn new(head: &Head, index: usize) -> Self {
        Self { echo: head.echo(index).to_owned(), offset: 0, tokens: 0 }
    }
}

/// The events of a completion's stream.
struct CompletionEvents {
    head: Head,
    options: StreamOptions,
    /// Texts by answer; `None` after its end.
    texts: Vec<Option<EchoState>>,
    left: usize,
    completion_tokens: usize,
}

impl CompletionEvents {
    fn push(&mut self, choices: Vec<CompletionChoice>, with_usage: bool, out: &mut EventLines) {
        let usage = with_usage.then(|| usage(self.head.prompt_tokens, self.completion_tokens));
        // Once: the first event has them.
        let warnings = std::mem::take(&mut self.head.warnings);
        let is_last = choices.iter().any(|choice| choice.finish_reason.is_some());
        let catalogs = if is_last { self.head.catalogs.clone() } else { BTreeMap::new() };
        out.push(&Completion { usage, warnings, catalogs, ..self.head.completion(choices) });
    }
}

/// More of an answer that has not ended.
fn more(index: usize, text: String, logprobs: Option<CompletionLogprobs>) -> CompletionChoice {
    let (finish_reason, finish, score, members) = Default::default();
    CompletionChoice { index, text, logprobs, finish_reason, finish, score, members }
}

impl Events for CompletionEvents {
    fn begin(&mut self, out: &mut EventLines) {
        for index in 0..self.texts.len() {
            // With likelihoods it comes when the prompt is read.
            if self.head.scored[index / self.head.n].is_some() {
                continue;
            }
            let told = self.texts[index].as_mut();
            let text = told.map_or(String::new(), |told| std::mem::take(&mut told.echo));
            if !text.is_empty() {
                let choice = more(index, text, None);
                self.push(vec![choice], self.options.continuous_usage_stats, out);
            }
        }
    }

    fn part(&mut self, (index, update): Part, out: &mut EventLines) {
        let Some(mut told) = self.texts[index].take() else { return };
        let choice = match update {
            Update::Text(TextPiece { text, tokens }) => {
                told.tokens += tokens.len();
                self.completion_tokens += tokens.len();
                let logprobs = match tokens.is_empty() {
                    true => None,
                    false => completion_logprobs(&self.head.served, &tokens, &mut told.offset),
                };
                self.texts[index] = Some(told);
                more(index, text, logprobs)
            }
            Update::End(ended, _) => {
                // Tokens that ended the text were not told.
                self.completion_tokens += ended.usage.completion_tokens - told.tokens;
                self.left -= 1;
                let finish_reason = Some(finish_name(&ended.reason, false));
                let (finish, score) = (FinishReport::of(&ended), ended.score);
                let members = self.head.members(index, ended.members);
                let (text, logprobs) = Default::default();
                CompletionChoice { index, text, logprobs, finish_reason, finish, score, members }
            }
            Update::Prompt(found) => {
                let logprobs = self.head.echoed(index, &found, &mut told.offset);
                let text = std::mem::take(&mut told.echo);
                self.texts[index] = Some(told);
                if logprobs.is_none() {
                    return;
                }
                more(index, text, logprobs)
            }
            Update::Missing => {
                self.left -= 1;
                return;
            }
            Update::Failed(_) => return,
        };
        self.push(vec![choice], self.options.continuous_usage_stats, out);
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }

    fn end(&mut self, out: &mut EventLines) {
        if self.options.include_usage {
            self.push(Vec::new(), true, out);
        }
        out.push_done();
    }
}
