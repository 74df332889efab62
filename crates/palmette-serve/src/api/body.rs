//! Bodies: read within a size and a time, and parsed with the place of what is wrong.

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use crate::json::{Text, Wrong};
use crate::problem::{Kind, Problem};
use crate::server::App;

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
    let text: &RawValue = serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(Kind::NotJson, error.to_string()))?;
    read_from(Text(text.get()))
}

/// Reads a typed value; the problem has the place of what is wrong.
pub(crate) fn read_from<'de, T: Deserialize<'de>>(
    json: impl Deserializer<'de, Error = Wrong>,
) -> Result<T, Problem> {
    serde_path_to_error::deserialize(json).map_err(|error| {
        let pointer = pointer(error.path());
        let detail = error.into_inner().of(&place(&pointer));
        Problem::invalid(pointer, detail)
    })
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => String::new(),
        })
        .collect()
}

/// A JSON pointer as people name places: `/messages/0/content` is `messages[0].content`.
pub(crate) fn place(pointer: &str) -> String {
    let mut named = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        match part.bytes().all(|byte| byte.is_ascii_digit()) && !part.is_empty() {
            true => named.extend(["[", &part, "]"]),
            false if named.is_empty() => named = part,
            false => named.extend([".", &part]),
        }
    }
    match named.is_empty() {
        true => "the body".to_owned(),
        false => named,
    }
}
