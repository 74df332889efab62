//! Answers in parts, as server-sent events: `data: {…}` for each, and a last one as the route has
//! it.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use futures_util::stream;
use hyper::body::Bytes;
use serde::Serialize;

use super::answer::{missed, next};
use super::errors;
use super::request::{Answers, Part};
use crate::problem::Problem;

/// Pause after which a comment is sent, so that nobody between takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Writes the events of a route's stream.
pub(super) trait Events: Send + 'static {
    /// The events before the first part.
    fn begin(&mut self, out: &mut EventLines);
    /// The events of a part.
    fn part(&mut self, part: Part, out: &mut EventLines);
    /// True when all answers have ended.
    fn is_over(&self) -> bool;
    /// The events after the last part.
    fn end(&mut self, out: &mut EventLines) {
        out.push_done();
    }
    /// The event of a problem, the last one.
    fn broken_off(&mut self, problem: &Problem, out: &mut EventLines) {
        out.push(&errors::body_of(problem, errors::status_of(problem)));
    }
}

/// Lines of events on their way.
#[derive(Default)]
pub(super) struct EventLines(Vec<u8>);

impl EventLines {
    /// The end of a stream of chats and completions.
    pub(super) fn push_done(&mut self) {
        self.0.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// An event with its name before it.
    pub(super) fn push_named(&mut self, name: &str, event: &impl Serialize) {
        self.0.extend_from_slice(format!("event: {name}\n").as_bytes());
        self.push(event);
    }

    pub(super) fn push(&mut self, event: &impl Serialize) {
        self.0.extend_from_slice(b"data: ");
        // Into memory, of types without maps whose keys are no text: it does not fail.
        if serde_json::to_writer(&mut self.0, event).is_err() {
            self.0.extend_from_slice(b"{}");
        }
        self.0.extend_from_slice(b"\n\n");
    }
}

struct Streaming<E> {
    answers: Answers,
    events: E,
    until: Instant,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Begins,
    Goes,
    Over,
}

/// The response that streams answers. Dropping it, which a client does that goes away, ends them.
pub(super) fn response(answers: Answers, events: impl Events, until: Instant) -> Response {
    let streaming = Streaming { answers, events, until, state: State::Begins };
    let parts = stream::unfold(streaming, async |mut streaming| {
        let lines = streaming.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(lines.0)), streaming))
    });
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

impl<E: Events> Streaming<E> {
    /// The next events; `None` after the last.
    async fn next(&mut self) -> Option<EventLines> {
        let mut out = EventLines::default();
        match self.state {
            State::Over => return None,
            State::Begins => {
                self.state = State::Goes;
                self.events.begin(&mut out);
                return Some(out);
            }
            State::Goes => {}
        }
        let wake = self.until.min(Instant::now() + KEEP_ALIVE);
        match next(&mut self.answers, wake).await {
            Ok(Some(part)) => self.events.part(part, &mut out),
            Ok(None) if Instant::now() < self.until => {
                out.0.extend_from_slice(b": more comes\n\n");
                return Some(out);
            }
            Ok(None) => return Some(self.broken_off(&missed())),
            Err(problem) => return Some(self.broken_off(&problem)),
        }
        if self.events.is_over() {
            self.state = State::Over;
            self.events.end(&mut out);
        }
        Some(out)
    }

    /// The event of a problem, which is the last one.
    fn broken_off(&mut self, problem: &Problem) -> EventLines {
        self.state = State::Over;
        let mut out = EventLines::default();
        self.events.broken_off(problem, &mut out);
        out
    }
}
