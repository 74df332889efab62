//! Problems as OpenAI's clients read them, `{"error": {"message", "type", "param", "code"}}`, and
//! as Anthropic's do, `{"type": "error", "error": {"type", "message"}}`.
//!
//! Handlers and middleware make [`Problem`]s as everywhere; what leaves these routes is put into
//! the other form at the very end, so that a missing key or a body that is too large reads like
//! every other error there.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;
use crate::request_id;
use crate::wire::{MessageError, MessageErrorBody, OpenAiError, OpenAiErrorBody};
use palmette_document::place;

/// Form of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    OpenAi,
    Anthropic,
}

impl ErrorForm {
    /// The form of a path; `None` for problems as they are everywhere else. Clients ask below these
    /// routes for what is not there, such as `/v1/messages/batches`, and read the answer alike.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let is_at = |route: &&str| {
            path.strip_prefix(*route).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match OPENAI.iter().any(is_at) {
            true => Some(Self::OpenAi),
            false => is_at(&ANTHROPIC).then_some(Self::Anthropic),
        }
    }
}

const ANTHROPIC: &str = "/v1/messages";

const OPENAI: [&str; 7] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/masks",
    "/v1/places",
    "/v1/responses",
    "/tokenize",
    "/detokenize",
];

/// A problem in a form; any other answer as it is.
pub(crate) fn reshaped(mut response: Response, form: ErrorForm) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let status = status_of(&problem);
    let mut answer = match form {
        ErrorForm::OpenAi => (status, Json(body_of(&problem, status))).into_response(),
        ErrorForm::Anthropic => (status, Json(message_error(&problem, status))).into_response(),
    };
    for name in [RETRY_AFTER, axum::http::header::WWW_AUTHENTICATE] {
        if let Some(value) = response.headers_mut().remove(&name) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

/// The status: 400 for a request that breaks a rule, for which clients have a class of their own;
/// the problem's else. A sound request of which the catalogs leave no text keeps its 422.
pub(crate) fn status_of(problem: &Problem) -> StatusCode {
    match problem.status {
        422 if problem.shortage.is_none() => StatusCode::BAD_REQUEST,
        other => StatusCode::from_u16(other).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

/// The error of a problem, for an answer or for an event of a stream.
pub(crate) fn body_of(problem: &Problem, status: StatusCode) -> OpenAiError {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    let pointer = problem.errors.first().map(|fault| fault.pointer.as_str());
    OpenAiError {
        error: OpenAiErrorBody {
            message: problem.shortened_detail(),
            kind,
            param: pointer.filter(|pointer| !pointer.is_empty()).map(place),
            code: match problem.code {
                Some(code) => code.name(),
                None => problem.kind.rsplit('/').next().unwrap_or_default(),
            },
            shortage: problem.shortage.as_deref().copied(),
        },
    }
}

/// The error of a problem as Anthropic's clients read it.
pub(crate) fn message_error(problem: &Problem, status: StatusCode) -> MessageError {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 | 410 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let param = body_of(problem, status).error.param;
    let error = MessageErrorBody { kind, message: problem.shortened_detail(), param };
    MessageError { kind: "error", error, request_id: request_id::current() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Kind;

    #[test]
    fn problems_have_openais_form() {
        let problem = Problem::invalid("/messages/0/content", "it is 3; it must be a text");
        let response = reshaped(problem.into_response(), ErrorForm::OpenAi);
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(response.headers()["content-type"], "application/json");
        let problem = Problem::invalid("/messages/0/a~1b", "x");
        let body = serde_json::to_value(body_of(&problem, status_of(&problem))).unwrap();
        let want = serde_json::json!({"error": {
            "message": "x", "type": "invalid_request_error", "param": "messages[0].a/b", "code": "invalid"}});
        assert_eq!(body, want);
        let problem = Problem::new(Kind::Overloaded, "later").retry_after(1500);
        let response = reshaped(problem.into_response(), ErrorForm::OpenAi);
        assert_eq!(
            (response.status().as_u16(), &response.headers()["retry-after"]),
            (429, &"2".parse().unwrap())
        );
        let problem = Problem::new(Kind::Overloaded, "later").retry_after(1500);
        let response = reshaped(problem.into_response(), ErrorForm::Anthropic);
        assert_eq!(response.headers()["retry-after"], "2");
        let problem = Problem::invalid("/messages/0", "x");
        let body = serde_json::to_value(message_error(&problem, status_of(&problem))).unwrap();
        let want = serde_json::json!({"type": "error", "request_id": "", "error": {
            "type": "invalid_request_error", "message": "x", "param": "messages[0]"}});
        assert_eq!(body, want);
        let other = reshaped("fine".into_response(), ErrorForm::Anthropic);
        assert_eq!(other.status(), StatusCode::OK);
    }
}
