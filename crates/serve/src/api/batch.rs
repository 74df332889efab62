//! Many questions at once: a batch with one generation, and a stream of lines.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use palmette_recommend::SpelledView;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};

use super::body;
use super::documented::{Batches, Streams};
use super::recommend::{answer, view_of};
use super::upload::Upload;
use crate::app::{App, Drain, Received};
use crate::domain::background::blocking;
use crate::domain::permissions;
use crate::domain::registry::Target;
use crate::problem::{Fault, Kind, Problem};
use crate::request_id;
use crate::wire::{BatchAnswer, BatchBody, BatchResult, Priority, RecommendAnswer, RecommendBody};

/// Lines of a stream, or requests of a batch, that are answered side by side; the rest of a stream
/// waits in the connection.
const LINES_AT_ONCE: usize = 16;

/// Answers several questions by one generation of the catalog.
///
/// Each has a status of its own; they are bulk unless they say otherwise.
#[utoipa::path(
    post, path = "/v1/recommend/batch", operation_id = "recommend_batch", tag = "recommend", request_body = BatchBody,
    responses(
        (status = 200, body = BatchAnswer),
        Batches,
    )
)]
pub(crate) async fn batch(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    body::check_json(&headers)?;
    let body = Upload::new(&app, &headers, body)?.into_memory().await?;
    let (most, most_in_all) = (app.config.max_body, app.config.max_upload);
    // Megabytes to parse: not on a thread of the sockets.
    let requests = blocking(move || requests(&body.bytes, most, most_in_all)).await??;
    let window = LINES_AT_ONCE.max(2 * app.config.schedule.streams as usize);
    // The views that requests of this batch are answered by: one for each target.
    let mut views: Vec<(Arc<Target>, Arc<SpelledView>)> = Vec::new();
    let mut questions = Vec::with_capacity(requests.len());
    for request in requests {
        let question = match request {
            Ok(asked) => question(&app, asked, received.0, &mut views).await,
            Err(problem) => Err(problem),
        };
        questions.push(question);
    }
    let (id, grant) = (request_id::current(), permissions::current());
    let begin = format!("{{\"request_id\":\"{id}\",\"results\":[");
    let last = questions.len().saturating_sub(1);
    let answers = questions.into_iter().enumerate().map(move |(place, question)| {
        let app = Arc::clone(&app);
        // It is answered after the handler has ended: its task's locals are not there any more.
        let answered = permissions::CURRENT.scope(Arc::clone(&grant), async move {
            let answered = match question {
                Ok((asked, given)) => {
                    answer(&app, asked, received.0, Priority::Bulk, Some(given)).await
                }
                Err(problem) => Err(problem),
            };
            let mut text = written(answered);
            if place < last {
                text.push(b',');
            }
            text
        });
        request_id::CURRENT.scope(id.clone(), answered)
    });
    // Answers of many items take megabytes: no more are made than are taken. The window is wide
    // enough for every stream.
    let answers = stream::iter(answers).buffered(window);
    let parts = stream::once(async { begin.into_bytes() }).chain(answers);
    let parts = parts.chain(stream::once(async { b"]}".to_vec() }));
    let parts = parts.map(|part| Ok::<Bytes, std::convert::Infallible>(part.into()));
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(parts)).into_response())
}

/// A result as it is sent.
fn written(answer: Result<RecommendAnswer, Problem>) -> Vec<u8> {
    // Into memory, of types without maps whose keys are no text: it does not fail.
    serde_json::to_vec(&result(answer)).unwrap_or_default()
}

/// A question with the view that answers it.
type QuestionAndView = (RecommendBody, (Arc<Target>, Arc<SpelledView>));

/// A request of a batch with its view: that which the first of its target had.
async fn question(
    app: &Arc<App>,
    asked: RecommendBody,
    arrived: Instant,
    views: &mut Vec<(Arc<Target>, Arc<SpelledView>)>,
) -> Result<QuestionAndView, Problem> {
    let envelope = &asked.envelope;
    let target = app.registry.target(envelope.target.as_deref()).await?;
    let deadline =
        envelope.deadline_ms.map_or(app.config.max_deadline, std::time::Duration::from_millis);
    let deadline = arrived + deadline.min(app.config.max_deadline);
    let pins = envelope.generation.is_some() || envelope.min_generation.is_some();
    let found = views.iter().find(|(of, _)| Arc::ptr_eq(of, &target) && !pins);
    if let Some(given) = found {
        return Ok((asked, given.clone()));
    }
    let view = view_of(&target, envelope, Some(deadline)).await?;
    if !pins {
        views.push((Arc::clone(&target), Arc::clone(&view)));
    }
    Ok((asked, (target, view)))
}

/// The requests of a body; each on its own may be refused.
fn requests(
    body: &[u8],
    most: usize,
    most_in_all: usize,
) -> Result<Vec<Result<RecommendBody, Problem>>, Problem> {
    let BatchBody { defaults, requests } = body::parse(body)?;
    // Each request has them all.
    let len = defaults.as_ref().map_or(0, |defaults| defaults.get().len());
    if len.saturating_mul(requests.len()) > most_in_all {
        let detail = format!(
            "defaults of {len} bytes for {} requests are more than {most_in_all} bytes; send fewer requests together",
            requests.len()
        );
        return Err(Problem::new(Kind::TooLarge, detail));
    }
    let defaults: Map<String, Value> = match defaults {
        None => Map::new(),
        Some(defaults) => object(&defaults, most).map_err(|problem| Problem {
            errors: vec![Fault { pointer: "/defaults".into(), detail: problem.detail.clone() }],
            ..problem
        })?,
    };
    Ok(requests.iter().map(|request| with_defaults(request, &defaults, most)).collect())
}

/// A request with the members that it lacks.
fn with_defaults(
    request: &RawValue,
    defaults: &Map<String, Value>,
    most: usize,
) -> Result<RecommendBody, Problem> {
    if defaults.is_empty() {
        check_object(request, most)?;
        return body::parse_question(request.get().as_bytes());
    }
    let mut request: Map<String, Value> = object(request, most)?;
    for (name, value) in defaults {
        let given = request.entry(name).or_insert(Value::Null);
        if given.is_null() {
            given.clone_from(value);
        }
    }
    body::parse_question(Value::Object(request).to_string().as_bytes())
}

/// Reads an object of no more bytes than a request alone may have.
fn object<T: DeserializeOwned>(text: &RawValue, most: usize) -> Result<T, Problem> {
    check_object(text, most)?;
    body::parse(text.get().as_bytes())
}

/// Refuses what is no object, or has more bytes than a request alone may have.
fn check_object(text: &RawValue, most: usize) -> Result<(), Problem> {
    let text = text.get();
    if !text.starts_with('{') {
        return Err(Problem::invalid("", "it must be an object"));
    }
    if text.len() > most {
        let detail = format!("it has {} bytes; at most {most} are read", text.len());
        return Err(Problem::new(Kind::TooLarge, detail));
    }
    Ok(())
}

fn result(answer: Result<RecommendAnswer, Problem>) -> BatchResult {
    match answer {
        Ok(answer) => BatchResult { status: 200, answer: Some(answer), problem: None },
        Err(problem) => {
            BatchResult { status: problem.status, answer: None, problem: Some(problem) }
        }
    }
}

/// Answers lines as they come, in their order.
///
/// A line that cannot be answered has its problem in place of the answer, and the stream goes on.
/// Reading waits where answers are not taken.
#[utoipa::path(
    post, path = "/v1/recommend/stream", operation_id = "recommend_stream", tag = "recommend",
    request_body(content = String, content_type = "application/x-ndjson", description = "A request of `/v1/recommend` a line"),
    responses(
        (status = 200, body = String, content_type = "application/x-ndjson", description = "A result of a batch a line"),
        Streams,
    )
)]
pub(crate) async fn lines(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let given = headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if !matches!(essence, "application/x-ndjson" | "application/jsonl" | "application/json" | "") {
        let detail = format!("the body is {essence:?}; application/x-ndjson is read here");
        return Err(Problem::new(Kind::UnsupportedMedia, detail));
    }
    let (sender, receiver) = mpsc::channel(LINES_AT_ONCE);
    let (id, grant) = (request_id::current(), permissions::current());
    let most = app.config.max_body;
    let timeout = app.config.max_deadline;
    tokio::spawn(read_lines(body, sender, most, timeout, app.drain()));
    let received = stream::unfold(receiver, |mut receiver| async {
        let line = receiver.recv().await?;
        Some((line, receiver))
    });
    let answers = received
        .map(move |line| {
            let (app, id) = (Arc::clone(&app), id.clone());
            // Lines are answered after the handler has ended: its task's locals are not there any
            // more.
            let line = permissions::CURRENT.scope(Arc::clone(&grant), async move {
                let arrived = Instant::now();
                let answered = async {
                    let asked = body::parse_question(&line?)?;
                    answer(&app, asked, arrived, Priority::Bulk, None).await
                };
                let mut text = written(answered.await);
                text.push(b'\n');
                Ok::<Bytes, std::convert::Infallible>(text.into())
            });
            request_id::CURRENT.scope(id, line)
        })
        .buffered(LINES_AT_ONCE);
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(answers)).into_response())
}

/// Cuts a body into lines and hands them over; ends at the body's end, at a line that is too long,
/// when nothing more is taken, or when nobody takes them.
async fn read_lines(
    mut body: Body,
    lines: mpsc::Sender<Result<Bytes, Problem>>,
    most: usize,
    timeout: std::time::Duration,
    mut drain: watch::Receiver<Drain>,
) {
    let mut line: Vec<u8> = Vec::new();
    loop {
        let frame = tokio::select! {
            biased;
            () = Drain::Closed.reached(&mut drain) => {
                let detail = "the server is draining, and the stream ends here; send the lines without an answer to another";
                let problem = Problem::new(Kind::Unavailable, detail).retry_after(1000);
                _ = lines.send(Err(problem)).await;
                return;
            }
            frame = tokio::time::timeout(timeout, body.frame()) => frame,
        };
        let frame = match frame {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(_))) => return,
            Err(_) => {
                let detail = format!("no line came for {} s", timeout.as_secs_f32());
                _ = lines.send(Err(Problem::new(Kind::SlowRequest, detail))).await;
                return;
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        for part in data.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(part);
            if line.len() > most {
                let detail = format!("a line has more than {most} bytes; the stream ends here");
                _ = lines.send(Err(Problem::new(Kind::TooLarge, detail))).await;
                return;
            }
            if line.last() == Some(&b'\n') && !send(&lines, &mut line).await {
                return;
            }
        }
    }
    send(&lines, &mut line).await;
}

/// Hands over a line that is not blank; false where nobody takes it.
async fn send(lines: &mpsc::Sender<Result<Bytes, Problem>>, line: &mut Vec<u8>) -> bool {
    let text = line.trim_ascii();
    if text.is_empty() {
        line.clear();
        return true;
    }
    let text = Bytes::copy_from_slice(text);
    line.clear();
    lines.send(Ok(text)).await.is_ok()
}
