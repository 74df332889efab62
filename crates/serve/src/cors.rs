//! Pages of other origins that may ask: what browsers want to be told before they show them an
//! answer (CORS).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;

/// The origin that stands for all.
pub const ANY_ORIGIN: &str = "*";
/// Methods of the routes.
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
/// Headers that requests may have.
const SENT: &str = "anthropic-beta, anthropic-dangerous-direct-browser-access, anthropic-version, authorization, content-type, content-encoding, idempotency-key, if-match, if-none-match, if-range, prefer, range, \
    traceparent, tracestate, x-api-key, x-request-id";
/// Headers of answers that a page may read.
const SHOWN: &str = "content-range, etag, idempotency-replayed, location, palmette-generation, preference-applied, retry-after, \
    x-request-id";
/// Seconds for which a browser need not ask again.
const MAX_AGE: &str = "600";

/// Answers what a browser asks beforehand, and tells it with each answer that the page may have it.
pub(crate) async fn around(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let origins = &app.config.origins;
    if origins.is_empty() {
        return next.run(request).await;
    }
    let allowed = allowed(origins, request.headers().get(ORIGIN));
    let asks_before = request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (&allowed, asks_before) {
        (Some(_), true) => StatusCode::NO_CONTENT.into_response(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    // A cache must not give one origin the answer to another.
    headers.append(VARY, HeaderValue::from_static("origin"));
    let Some(origin) = allowed else { return response };
    let mut add = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    match asks_before {
        true => {
            add(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
            add(ACCESS_CONTROL_ALLOW_HEADERS, SENT);
            add(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        }
        false => add(ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN),
    }
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response
}

/// Origin for the browser, where the page's is allowed.
fn allowed(origins: &[String], given: Option<&HeaderValue>) -> Option<HeaderValue> {
    let text = given?.to_str().ok()?;
    if origins.iter().any(|origin| origin == ANY_ORIGIN) {
        return Some(HeaderValue::from_static(ANY_ORIGIN));
    }
    origins.iter().any(|origin| origin.eq_ignore_ascii_case(text)).then(|| given.cloned())?
}
