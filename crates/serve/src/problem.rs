//! Problem documents (RFC 9457): every answer that is an error.

use std::borrow::Cow;

use axum::Json;
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use palmette_document::DocumentError;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::own_paths;
use crate::request_id;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// A request that was not answered: the value, the rule it breaks and the way out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Kind of the problem, stable between versions.
    #[serde(rename = "type")]
    #[schema(example = "/problems/overloaded")]
    pub kind: &'static str,
    /// The kind in words.
    pub title: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Explanation of this occurrence.
    #[serde(serialize_with = "shortened")]
    pub detail: String,
    /// The request's id, as in `X-Request-Id`.
    #[schema(value_type = String)]
    pub request_id: Box<str>,
    /// Milliseconds after which a repetition may succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub retry_after_ms: Option<u32>,
    /// Places in the body that break a rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
    /// Items that may be written, and how many the grammar needs, where no text is left for want of
    /// them.
    #[serde(flatten)]
    pub shortage: Option<Box<MemberShortage>>,
    /// Name that OpenAI's interface has for it, where that is not the end of the kind.
    #[serde(skip)]
    #[schema(ignore)]
    pub code: Option<OpenAiCode>,
}

/// Members that a grammar needs of a set, and those that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MemberShortage {
    /// Items, or quotes of documents, that may be written.
    pub eligible: u64,
    /// Items that every text of the grammar has at least.
    pub needed: u64,
}

/// Name of a problem in OpenAI's interface, where its kind has another one here.
#[derive(Clone, Copy, Debug)]
pub enum OpenAiCode {
    /// Prompt and answer are longer than the model's context.
    ContextLengthExceeded,
    /// No model has the name.
    ModelNotFound,
}

impl OpenAiCode {
    /// The name as clients compare it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ContextLengthExceeded => "context_length_exceeded",
            Self::ModelNotFound => "model_not_found",
        }
    }
}

/// A place in a body that breaks a rule.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Fault {
    /// JSON pointer (RFC 6901) into the body.
    #[schema(example = "/filter/must/0/range/prise")]
    #[serde(serialize_with = "shortened")]
    pub pointer: String,
    /// The value, the rule and the way out.
    #[serde(serialize_with = "shortened")]
    pub detail: String,
}

/// Bytes of a text, at most, and those of its end that are kept where it is longer.
const MOST: usize = 2000;
const END: usize = 500;

/// Writes a text without its middle where it is long: values that clients send stand in it, and the
/// rule comes last.
fn shortened<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&short(text))
}

/// A text as clients get it: without paths of this machine, and not too long.
fn short(text: &str) -> Cow<'_, str> {
    let text = own_paths::without(text);
    if text.len() <= MOST {
        return text;
    }
    // A character has four bytes at most, and 0 is the boundary of any.
    let boundary = |at: usize| (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let begin = &text[..boundary(MOST - END)];
    let end = &text[boundary(text.len() - END)..];
    Cow::Owned(format!("{begin} … {end}"))
}

/// Kinds of problems: type, title and status of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    NotJson,
    BadRequest,
    Unauthorised,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    SlowRequest,
    Conflict,
    Gone,
    PreconditionFailed,
    TooLarge,
    UnsupportedMedia,
    OutOfRange,
    Invalid,
    NoText,
    Overloaded,
    Internal,
    Unavailable,
    DeadlineMissed,
}

impl Kind {
    fn parts(self) -> (&'static str, &'static str, StatusCode) {
        match self {
            Self::NotJson => ("/problems/not-json", "The body is no JSON", StatusCode::BAD_REQUEST),
            Self::BadRequest => {
                ("/problems/bad-request", "The request is not sound", StatusCode::BAD_REQUEST)
            }
            Self::Unauthorised => {
                ("/problems/unauthorised", "A valid key is needed", StatusCode::UNAUTHORIZED)
            }
            Self::Forbidden => {
                ("/problems/forbidden", "This is not permitted", StatusCode::FORBIDDEN)
            }
            Self::NotFound => {
                ("/problems/not-found", "There is no such thing", StatusCode::NOT_FOUND)
            }
            Self::MethodNotAllowed => (
                "/problems/method-not-allowed",
                "The path has no such method",
                StatusCode::METHOD_NOT_ALLOWED,
            ),
            Self::SlowRequest => (
                "/problems/slow-request",
                "The body did not arrive in time",
                StatusCode::REQUEST_TIMEOUT,
            ),
            Self::Conflict => {
                ("/problems/conflict", "The state does not permit this", StatusCode::CONFLICT)
            }
            Self::Gone => ("/problems/gone", "It was there once", StatusCode::GONE),
            Self::PreconditionFailed => (
                "/problems/precondition-failed",
                "The catalog is at another generation",
                StatusCode::PRECONDITION_FAILED,
            ),
            Self::TooLarge => {
                ("/problems/too-large", "The body is too large", StatusCode::PAYLOAD_TOO_LARGE)
            }
            Self::UnsupportedMedia => (
                "/problems/unsupported-media-type",
                "The body is of another type",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ),
            Self::OutOfRange => (
                "/problems/out-of-range",
                "The file has no such bytes",
                StatusCode::RANGE_NOT_SATISFIABLE,
            ),
            Self::Invalid => {
                ("/problems/invalid", "The request breaks a rule", StatusCode::UNPROCESSABLE_ENTITY)
            }
            Self::NoText => (
                "/problems/no-text",
                "No text is left of the grammar",
                StatusCode::UNPROCESSABLE_ENTITY,
            ),
            Self::Overloaded => {
                ("/problems/overloaded", "Too many requests", StatusCode::TOO_MANY_REQUESTS)
            }
            Self::Internal => {
                ("/problems/internal", "A defect of the server", StatusCode::INTERNAL_SERVER_ERROR)
            }
            Self::Unavailable => {
                ("/problems/unavailable", "Not serving now", StatusCode::SERVICE_UNAVAILABLE)
            }
            Self::DeadlineMissed => (
                "/problems/deadline-missed",
                "The deadline has passed",
                StatusCode::GATEWAY_TIMEOUT,
            ),
        }
    }
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let (kind, title, status) = kind.parts();
        Self {
            kind,
            title,
            status: status.as_u16(),
            detail: detail.into(),
            request_id: request_id::current().into(),
            retry_after_ms: None,
            errors: Vec::new(),
            shortage: None,
            code: None,
        }
    }

    /// A body whose meaning is refused at one place.
    pub(crate) fn invalid(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let fault = Fault { pointer: pointer.into(), detail: detail.clone() };
        Self { errors: vec![fault], ..Self::new(Kind::Invalid, detail) }
    }

    /// A document with these faults; the detail has those of all.
    pub(crate) fn of_faults(faults: palmette_document::Faults) -> Self {
        Self::of_faults_as(Kind::Invalid, faults)
    }

    /// A document with these faults, of a kind.
    pub(crate) fn of_faults_as(kind: Kind, faults: palmette_document::Faults) -> Self {
        let detail = faults.to_string();
        let fault = |of: palmette_document::Fault| Fault { pointer: of.pointer, detail: of.detail };
        Self { errors: faults.into_iter().map(fault).collect(), ..Self::new(kind, detail) }
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, detail)
    }

    pub(crate) fn retry_after(self, ms: u64) -> Self {
        Self { retry_after_ms: Some(u32::try_from(ms).unwrap_or(u32::MAX)), ..self }
    }

    /// The detail, without its middle where it is long.
    pub(crate) fn shortened_detail(&self) -> String {
        short(&self.detail).into_owned()
    }

    /// Adds the name that OpenAI's clients know.
    pub(crate) fn with_code(self, code: OpenAiCode) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(crate) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }
}

impl From<palmette_document::Fault> for Problem {
    fn from(fault: palmette_document::Fault) -> Self {
        Self::invalid(fault.pointer, fault.detail)
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::NoJson(reason) => Self::new(Kind::NotJson, reason),
            DocumentError::Fault(fault) => fault.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        if let Cow::Owned(_) = own_paths::without(&self.detail) {
            // Who runs the server may know the path.
            tracing::warn!(detail = self.detail, request_id = %self.request_id, "refused");
        }
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry = self.retry_after_ms.map(|ms| ms.div_ceil(1000).max(1));
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        let mut add = |name: HeaderName, value: HeaderValue| headers.insert(name, value);
        if let Some(seconds) = retry {
            add(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            add(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // Routes that speak another interface make their own form of it.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_lose_their_middle() {
        // Three bytes a character: no cut falls on a boundary by chance.
        let problem = Problem::invalid(
            "/history/0",
            format!("{} is unknown; leave it out", "€".repeat(10_000)),
        );
        let written = serde_json::to_value(&problem).unwrap();
        for detail in [&written["detail"], &written["errors"][0]["detail"]] {
            let detail = detail.as_str().unwrap();
            assert!(detail.len() < MOST + 20 && detail.starts_with("€€"), "{}", detail.len());
            assert!(detail.contains("€ … €") && detail.ends_with("€ is unknown; leave it out"));
        }
        let short = serde_json::to_value(Problem::not_found("é".repeat(1000))).unwrap();
        assert_eq!(short["detail"].as_str().map(str::len), Some(2000));
    }
}
