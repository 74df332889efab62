//! Bodies: read within a size and a time, and parsed with the place of what is wrong.

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use palmette_document::Members;
use palmette_recommend::RecommendBody;
use palmette_text::question::{OwnMembers, TextBody};
use serde::de::{Deserialize, DeserializeOwned};

use super::upload::Upload;
use crate::app::App;
use crate::domain::background::blocking;
use crate::problem::{Kind, Problem};

/// Reads a body that is a JSON object, of the size of a request.
pub(crate) async fn object<T: DeserializeOwned>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Problem> {
    check_json(headers)?;
    parse(&read(app, body, app.config.max_body).await?)
}

/// Reads a whole body.
async fn read(app: &App, body: Body, most: usize) -> Result<Bytes, Problem> {
    let timeout = app.config.read_timeout;
    let collected = tokio::time::timeout(timeout, Limited::new(body, most).collect()).await;
    match collected {
        Err(_) => Err(Problem::new(
            Kind::SlowRequest,
            format!("the body took more than {} s to arrive", timeout.as_secs_f32()),
        )),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(Problem::new(
            Kind::TooLarge,
            format!("the body has more than {most} bytes; send less, or in parts"),
        )),
        Ok(Err(error)) => Err(Problem::new(Kind::NotJson, format!("the body broke off: {error}"))),
    }
}

/// Refuses a body that says it is something other than JSON.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(given) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = given.to_str().unwrap_or("").split(';').next().unwrap_or("").trim();
    let is_json = essence.eq_ignore_ascii_case("application/json")
        || (essence.len() > 5 && essence[essence.len() - 5..].eq_ignore_ascii_case("+json"));
    match is_json {
        true => Ok(()),
        false => Err(Problem::new(
            Kind::UnsupportedMedia,
            format!("the body is {essence:?}; application/json is read here"),
        )),
    }
}

/// Parses a body that is a JSON object.
pub(crate) fn parse<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, Problem> {
    palmette_document::read(bytes).map_err(Problem::from)
}

/// Reads a question in its envelope.
pub(crate) async fn question(
    app: &App,
    headers: &HeaderMap,
    body: Body,
) -> Result<RecommendBody, Problem> {
    check_json(headers)?;
    parse_question(&read(app, body, app.config.max_body).await?)
}

/// Parses a question in its envelope.
pub(crate) fn parse_question(bytes: &[u8]) -> Result<RecommendBody, Problem> {
    RecommendBody::from_json(bytes).map_err(Problem::from)
}

/// Bytes of a body with values and documents of its own, where uploads may have so many.
const TEXT_BYTES: usize = 16 << 20;
/// Bytes that are parsed on the thread of the socket.
const PARSED_AT_ONCE: usize = 256 << 10;

/// Reads a question for text in its envelope, which may bring values and documents: a large one
/// takes of the room of uploads.
pub(crate) async fn text<Own: OwnMembers + Send + 'static>(
    app: &Arc<App>,
    headers: &HeaderMap,
    body: Body,
) -> Result<TextBody<Own>, Problem> {
    check_json(headers)?;
    let most = app.config.max_body.max(TEXT_BYTES.min(app.config.max_upload));
    let body = Upload::up_to(most, app, headers, body)?.into_memory().await?;
    let is_small = body.bytes.len() <= PARSED_AT_ONCE;
    let read = move || {
        let members: Members = parse(&body.bytes)?;
        TextBody::from_members(members).map_err(Problem::of_faults)
    };
    match is_small {
        true => read(),
        false => blocking(read).await?,
    }
}
