//! Many questions at once: a batch with one generation, and a stream of lines.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use palmette_recommend::SpelledView;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::body;
use super::recommend::{answer, view_of};
use crate::keys;
use crate::problem::{Kind, Problem};
use crate::registry::Target;
use crate::request_id;
use crate::server::{App, Received};
use crate::wire::{BatchAnswer, BatchBody, BatchResult, Priority, RecommendAnswer, RecommendBody};

/// Requests of one batch, at most.
const MAX_REQUESTS: usize = 1024;
/// Lines of a stream that are answered side by side; the rest waits in the connection.
const LINES_AT_ONCE: usize = 16;

/// Answers several questions by one generation of the catalog.
///
/// Each has a status of its own; they are bulk unless they say otherwise.
#[utoipa::path(
    post, path = "/v1/recommend/batch", tag = "recommend", request_body = BatchBody,
    responses(
        (status = 200, body = BatchAnswer),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn batch(
    State(app): State<Arc<App>>,
    Extension(received): Extension<Received>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    body::check_json(&headers)?;
    let bytes = body::read(&app, body, app.config.max_upload).await?;
    let BatchBody { defaults, requests } = body::parse(&bytes)?;
    if requests.len() > MAX_REQUESTS {
        let detail = format!(
            "the batch has {} requests; at most {MAX_REQUESTS} go together: send several, or a stream",
            requests.len()
        );
        return Err(Problem::invalid("/requests", detail));
    }
    // The views that requests of this batch are answered by: one for each target.
    let mut views: Vec<(Arc<Target>, Arc<SpelledView>)> = Vec::new();
    let mut questions = Vec::with_capacity(requests.len());
    for request in requests {
        let question = match with_defaults(request, &defaults) {
            Ok(asked) => question(&app, asked, received.0, &mut views).await,
            Err(problem) => Err(problem),
        };
        questions.push(question);
    }
    let answers = questions.into_iter().map(|question| {
        let app = Arc::clone(&app);
        async move {
            match question {
                Ok((asked, given)) => {
                    answer(&app, asked, received.0, Priority::Bulk, Some(given)).await
                }
                Err(problem) => Err(problem),
            }
        }
    });
    // All are in the scheduler at once, which orders them.
    let results: Vec<BatchResult> =
        stream::iter(answers).buffered(MAX_REQUESTS).map(result).collect().await;
    let request_id = request_id::current();
    Ok(Json(BatchAnswer { request_id, results }).into_response())
}

type Question = (RecommendBody, (Arc<Target>, Arc<SpelledView>));

/// A request of a batch with its view: that which the first of its target had.
async fn question(
    app: &Arc<App>,
    asked: RecommendBody,
    arrived: Instant,
    views: &mut Vec<(Arc<Target>, Arc<SpelledView>)>,
) -> Result<Question, Problem> {
    let target = app.registry.target(asked.target.as_deref())?;
    let deadline =
        asked.deadline_ms.map_or(app.config.max_deadline, std::time::Duration::from_millis);
    let deadline = arrived + deadline.min(app.config.max_deadline);
    let pins = asked.generation.is_some() || asked.min_generation.is_some();
    let found = views.iter().find(|(of, _)| Arc::ptr_eq(of, &target) && !pins);
    if let Some(given) = found {
        return Ok((asked, given.clone()));
    }
    let view = view_of(&target, &asked, Some(deadline)).await?;
    if !pins {
        views.push((Arc::clone(&target), Arc::clone(&view)));
    }
    Ok((asked, (target, view)))
}

/// A request with the members that it lacks.
fn with_defaults(request: Value, defaults: &Map<String, Value>) -> Result<RecommendBody, Problem> {
    let Value::Object(mut request) = request else {
        return Err(Problem::invalid("", "a request is an object"));
    };
    for (name, value) in defaults {
        request.entry(name).or_insert_with(|| value.clone());
    }
    body::parse(Value::Object(request).to_string().as_bytes())
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
/// A line that cannot be answered has its problem in place of the answer, and the stream goes on. Reading waits where answers are not
/// taken.
#[utoipa::path(
    post, path = "/v1/recommend/stream", tag = "recommend",
    request_body(content = String, content_type = "application/x-ndjson", description = "A request of `/v1/recommend` a line"),
    responses(
        (status = 200, body = String, content_type = "application/x-ndjson", description = "A result of a batch a line"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
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
    let (id, grant) = (request_id::current(), keys::current());
    let most = app.config.max_body;
    let timeout = app.config.max_deadline;
    tokio::spawn(read_lines(body, sender, most, timeout));
    let received = stream::unfold(receiver, |mut receiver| async {
        let line = receiver.recv().await?;
        Some((line, receiver))
    });
    let answers = received
        .map(move |line| {
            let (app, id) = (Arc::clone(&app), id.clone());
            // Lines are answered after the handler has ended: its task's locals are not there any more.
            let line = keys::CURRENT.scope(Arc::clone(&grant), async move {
                let arrived = Instant::now();
                let answered = async {
                    let asked: RecommendBody = body::parse(&line?)?;
                    answer(&app, asked, arrived, Priority::Bulk, None).await
                };
                let mut text = serde_json::to_vec(&result(answered.await)).unwrap_or_default();
                text.push(b'\n');
                Ok::<Bytes, std::convert::Infallible>(text.into())
            });
            request_id::CURRENT.scope(id, line)
        })
        .buffered(LINES_AT_ONCE);
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(answers)).into_response())
}

/// Cuts a body into lines and hands them over; ends at the body's end, at a line that is too long, or when nobody takes them.
async fn read_lines(
    mut body: Body,
    lines: mpsc::Sender<Result<Bytes, Problem>>,
    most: usize,
    timeout: std::time::Duration,
) {
    let mut line: Vec<u8> = Vec::new();
    loop {
        let frame = match tokio::time::timeout(timeout, body.frame()).await {
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
