//! Answers of the server, read as far as a load test needs them.

use hyper::StatusCode;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// The most of an answer that is read; a longer one is an error.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Characters of a server's text that a message shows.
const SHOWN_CHARS: usize = 200;

/// Outcome of a request, as answers are saved and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request's number; its body is that of history `index mod n`.
    pub index: u64,
    /// The status; `None` where no answer came.
    pub status: Option<u16>,
    /// The member `items` as the server wrote it, where there is one.
    pub items: Option<String>,
}

/// The end of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// 200 with items; how many, and their text where it is kept.
    Items { count: usize, text: Option<String> },
    /// 429, with the reason.
    TooMany(String),
    /// 503, with the reason.
    Unavailable(String),
    /// 504, with the reason.
    TooLate(String),
    /// Any other status, with the reason, which names it.
    Other { status: u16, reason: String },
    /// 200 that is not an answer of this API.
    Malformed(String),
    /// No answer before the timeout.
    TimedOut,
    /// The connection could not be made, or broke.
    Broken(String),
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    items: &'a RawValue,
}

#[derive(Deserialize)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
}

impl Outcome {
    pub(crate) fn of(status: StatusCode, media_type: &str, body: &[u8], keep_items: bool) -> Self {
        let reason = || reason(media_type, body);
        match status.as_u16() {
            200 => Self::of_ok(media_type, body, keep_items),
            429 => Self::TooMany(reason()),
            503 => Self::Unavailable(reason()),
            504 => Self::TooLate(reason()),
            other => Self::Other { status: other, reason: reason() },
        }
    }

    fn of_ok(media_type: &str, body: &[u8], keep_items: bool) -> Self {
        let Ok(Body { items }) = serde_json::from_slice::<Body<'_>>(body) else {
            return Self::Malformed(format!(
                "no object with \"items\": {}",
                reason(media_type, body)
            ));
        };
        match serde_json::from_str::<Vec<IgnoredAny>>(items.get()) {
            Ok(each) => {
                Self::Items { count: each.len(), text: keep_items.then(|| items.get().to_owned()) }
            }
            Err(_) => Self::Malformed("\"items\" is no list".to_owned()),
        }
    }

    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Items { .. } | Self::Malformed(_) => Some(200),
            Self::TooMany(_) => Some(429),
            Self::Unavailable(_) => Some(503),
            Self::TooLate(_) => Some(504),
            Self::Other { status, .. } => Some(*status),
            Self::TimedOut | Self::Broken(_) => None,
        }
    }

    /// The sentence of an outcome that has no count of its own.
    pub(crate) fn error(&self) -> Option<String> {
        match self {
            Self::Other { status, reason } => Some(format!("status {status}: {reason}")),
            Self::Malformed(reason) => Some(format!("status 200, {reason}")),
            Self::TimedOut => Some("no answer before the timeout".to_owned()),
            Self::Broken(reason) => Some(reason.clone()),
            Self::Items { .. } | Self::TooMany(_) | Self::Unavailable(_) | Self::TooLate(_) => None,
        }
    }
}

/// The detail of a problem document; else the first characters of the body, else its type.
fn reason(media_type: &str, body: &[u8]) -> String {
    let problem = serde_json::from_slice::<Problem>(body).ok();
    let said = problem.and_then(|problem| problem.detail.or(problem.title));
    let text = said.unwrap_or_else(|| match (body.is_empty(), media_type) {
        (true, _) => "an empty body".to_owned(),
        (false, "") => format!("{:?}", String::from_utf8_lossy(first(body))),
        (false, media_type) => format!("{media_type} {:?}", String::from_utf8_lossy(first(body))),
    });
    shortened(&text)
}

fn first(body: &[u8]) -> &[u8] {
    &body[..body.len().min(80)]
}

/// A text of which a message shows no more than [`SHOWN_CHARS`].
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, expected: &Outcome) {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(&Outcome::of(status, "a/b", body.as_bytes(), true), expected, "{body}");
    }

    #[test]
    fn bodies() {
        let items = |count, text: &str| Outcome::Items { count, text: Some(text.to_owned()) };
        check(
            200,
            r#"{"a": 1, "items": [ {"id": "x", "score": 1e0}], "b": []}"#,
            &items(1, r#"[ {"id": "x", "score": 1e0}]"#),
        );
        check(200, r#"{"items":[]}"#, &items(0, "[]"));
        check(200, r#"{"items": 5}"#, &Outcome::Malformed("\"items\" is no list".into()));
        let malformed =
            |body: &str| Outcome::Malformed(format!("no object with \"items\": a/b {body:?}"));
        for body in ["hello", "[]", r#"{"item": []}"#, r#"{"items": [}"#] {
            check(200, body, &malformed(body));
        }
        check(200, "", &Outcome::Malformed("no object with \"items\": an empty body".into()));
        let problem = r#"{"title": "Too many requests", "detail": "would finish in 312 ms"}"#;
        check(429, problem, &Outcome::TooMany("would finish in 312 ms".into()));
        check(503, r#"{"title": "Starting"}"#, &Outcome::Unavailable("Starting".into()));
        check(504, "", &Outcome::TooLate("an empty body".into()));
        check(418, "tea", &Outcome::Other { status: 418, reason: "a/b \"tea\"".into() });
    }

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let body = format!(r#"{{"detail": "{}"}}"#, "ü".repeat(5_000));
        let Outcome::TooMany(reason) =
            Outcome::of(StatusCode::TOO_MANY_REQUESTS, "", body.as_bytes(), false)
        else {
            panic!("429")
        };
        assert_eq!(reason, "ü".repeat(SHOWN_CHARS) + "…");
    }
}
