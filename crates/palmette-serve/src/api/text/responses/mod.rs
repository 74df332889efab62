//! `POST /v1/responses`: a chat in the words of OpenAI's newer interface. Nothing is stored.

mod events;
mod input;
mod output;

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use super::answer::{Reader, whole};
use super::body::read;
use super::chat::{Ready, ready};
use super::request::{deadline, submit};
use super::stream::response;
use crate::api::documented::Texts;
use crate::api::recommend::seconds_since_1970;
use crate::problem::Problem;
use crate::request_id;
use crate::server::{App, Received};
use crate::texts;
use crate::wire::{ResponseBody, ResponseMembers, TextMembers};
use events::ResponseEvents;
use output::Head;

/// Goes on with a conversation by a text model.
///
/// As OpenAI spells it: the whole conversation is sent each time, since nothing is stored. With `stream` the answer comes in parts,
/// server-sent events, of which `response.completed` or `response.incomplete` is the last.
#[utoipa::path(
    post, path = "/v1/responses", operation_id = "create_response", tag = "text", request_body = ResponseBody,
    responses(
        (status = 200, description = "The response, or its events", content(
            (serde_json::Value = "application/json"),
            (serde_json::Value = "text/event-stream"),
        )),
        Texts,
    )
)]
pub(crate) async fn respond(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (own, both): (ResponseMembers, TextMembers) = read(&app, &headers, body).await?;
    let served = texts::named(&app.registry.table(), both.model.as_deref())?;
    let until = deadline(&app, &both, received.0)?;
    let streams = both.stream == Some(true);
    let mut said = output::said(&own, &both);
    let (chat, both) = input::chat(own, both)?;
    let ready = ready(&served, chat, both, until).await.map_err(input::renamed)?;
    let Ready { request, calling, warnings } = ready;
    let prompt_tokens = request.prompt.len();
    let answers = submit(&app, &served, &[request], 1)?;
    if !warnings.is_empty() {
        said.insert("warnings".to_owned(), warnings.into());
    }
    let created = seconds_since_1970() as u64;
    let head = Head { id: request_id::current(), created, served, prompt_tokens, said };
    if streams {
        let events = ResponseEvents::new(head, Reader::new(calling.as_ref()));
        return Ok(response(answers, events, until));
    }
    let mut written = whole(answers, 1, until, calling.as_ref(), &head.id).await?;
    let written = written.pop().expect("one answer was asked for");
    Ok(Json(head.answer(written)).into_response())
}
