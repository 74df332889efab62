//! `POST /v1/messages`: a chat in the words of Anthropic's interface. Nothing is stored.

mod events;
mod input;
mod output;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use palmette_text::question::{CheckedText, TextQuestion};

use super::answer::{Reader, whole};
use super::request::{deadline, named, prepared, submit};
use super::stream::response;
use crate::api::body;
use crate::api::documented::Messages;
use crate::app::{App, Received};
use crate::problem::Problem;
use crate::request_id;
use crate::wire::{BoundCatalog, MessageBody, MessageTokens};
use events::MessageEvents;
use input::Conversation;
use output::Head;

/// Writes the next message of a conversation.
///
/// Members are Anthropic's. The whole conversation is sent each time, since nothing is stored, and
/// `max_tokens` with it. With `stream` the answer comes in parts, server-sent events, of which
/// `message_stop` is the last.
#[utoipa::path(
    post, path = "/v1/messages", operation_id = "create_message", tag = "text", request_body = MessageBody,
    responses(
        (status = 200, description = "The message, or its events", content(
            (serde_json::Value = "application/json"),
            (serde_json::Value = "text/event-stream"),
        )),
        Messages,
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let MessageBody { envelope, question: TextQuestion { own, text } } =
        body::text(&app, &headers, body).await?;
    let table = app.registry.table();
    let served = table.text(envelope.model.as_deref())?;
    let until = deadline(&app, &envelope, received.0)?;
    let Conversation { chat, places, warnings: mut all } =
        Conversation::to_answer(own, text).map_err(Problem::of_faults)?;
    let question = prepared((&table, &served), until, move |served, settings, is_gone| {
        chat.check(served.model(), settings, is_gone)
    });
    let question = question.await.map_err(|problem| input::renamed(problem, &places))?;
    let answers = submit(&app, &served, &question)?;
    let CheckedText { requests, calling, warnings, sources, .. } = question;
    all.extend(warnings);
    let head = Head {
        id: request_id::current(),
        prompt_tokens: requests.iter().map(|request| request.prompt.len()).sum(),
        served,
        warnings: named(all),
        catalogs: BoundCatalog::by_name(&sources),
    };
    if envelope.stream == Some(true) {
        let events = MessageEvents::new(head, Reader::new(calling.as_ref()));
        return Ok(response(answers, events, until));
    }
    let mut written = whole(answers, 1, until, calling.as_ref(), &head.id).await?;
    let written = written.pop().expect("one answer was asked for");
    Ok(Json(head.answer(written)).into_response())
}

/// Counts the tokens of a conversation's prompt.
#[utoipa::path(
    post, path = "/v1/messages/count_tokens", operation_id = "count_message_tokens", tag = "text", request_body = MessageBody,
    responses((status = 200, body = MessageTokens), Messages)
)]
pub(crate) async fn count(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<MessageTokens>, Problem> {
    let MessageBody { envelope, question: TextQuestion { own, text } } =
        body::text(&app, &headers, body).await?;
    let table = app.registry.table();
    let served = table.text(envelope.model.as_deref())?;
    let until = deadline(&app, &envelope, received.0)?;
    let Conversation { chat, places, .. } =
        Conversation::new(own, text).map_err(Problem::of_faults)?;
    let counted = prepared((&table, &served), until, move |served, settings, _| {
        chat.own.prompt_tokens(served.model(), settings)
    });
    let tokens = counted.await.map_err(|problem| input::renamed(problem, &places))?;
    Ok(Json(MessageTokens { input_tokens: tokens.len() }))
}
