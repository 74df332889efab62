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
use palmette_text::question::{CheckedText, TextQuestion};
use serde_json::json;

use super::answer::{Reader, whole};
use super::request::{deadline, named, prepared, submit};
use super::stream::response;
use crate::api::body;
use crate::api::documented::Texts;
use crate::app::{App, Received};
use crate::problem::Problem;
use crate::request_id;
use crate::wall_clock::seconds_since_1970;
use crate::wire::{BoundCatalog, ResponseBody};
use events::ResponseEvents;
use output::Head;

/// Continues a conversation by a text model.
///
/// As OpenAI spells it: the whole conversation is sent each time, since nothing is stored. With
/// `stream` the answer comes in parts, server-sent events, of which `response.completed` or
/// `response.incomplete` is the last.
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
    let ResponseBody { envelope, question: TextQuestion { own, text } } =
        body::text(&app, &headers, body).await?;
    let table = app.registry.table();
    let served = table.text(envelope.model.as_deref())?;
    let until = deadline(&app, &envelope, received.0)?;
    let mut said = output::said(&own, &text);
    let flat = input::flat_tools(&own);
    let chat = input::chat(own, text).map_err(Problem::of_faults)?;
    let question = prepared((&table, &served), until, move |served, settings, is_gone| {
        chat.check(served.model(), settings, is_gone)
    });
    let question = question.await.map_err(|problem| input::renamed(problem, &flat))?;
    let answers = submit(&app, &served, &question)?;
    let CheckedText { requests, calling, warnings, sources, .. } = question;
    let prompt_tokens = requests.iter().map(|request| request.prompt.len()).sum();
    if !warnings.is_empty() {
        said.insert("warnings".to_owned(), named(warnings).into());
    }
    if !sources.is_empty() {
        said.insert("catalogs".to_owned(), json!(BoundCatalog::by_name(&sources)));
    }
    let created = seconds_since_1970() as u64;
    let head = Head { id: request_id::current(), created, served, prompt_tokens, said };
    if envelope.stream == Some(true) {
        let events = ResponseEvents::new(head, Reader::new(calling.as_ref()));
        return Ok(response(answers, events, until));
    }
    let mut written = whole(answers, 1, until, calling.as_ref(), &head.id).await?;
    let written = written.pop().expect("one answer was asked for");
    Ok(Json(head.answer(written)).into_response())
}
