//! Authorisation of requests: the key that each sends, compared with the need of its route.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::audit;
use crate::domain::keys::Keys;
use crate::domain::permissions::{CURRENT, Grant, Need, ROUTES, need};
use crate::problem::{Kind, Problem};

/// Header in which Anthropic's clients send their key.
const API_KEY: &str = "x-api-key";

/// Lets a request through by its key, and gives its permissions to the task.
pub(crate) async fn enforce(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    note_path(&mut parts).await;
    match admit(&app.keys, &mut parts).await {
        Ok(grant) => CURRENT.scope(grant, next.run(Request::from_parts(parts, body))).await,
        Err(problem) => problem.into_response(),
    }
}

/// Notes what the path of a request names, for the log.
async fn note_path(parts: &mut Parts) {
    let Ok(params) = RawPathParams::from_request_parts(parts, &()).await else { return };
    for (name, value) in &params {
        match name {
            "c" => audit::note(|facts| facts.catalog = Some(value.to_owned())),
            "alias" => audit::note(|facts| facts.target = Some(value.to_owned())),
            "model" => audit::note(|facts| facts.model = Some(value.to_owned())),
            _ => {}
        }
    }
}

/// The bytes of a request's `Authorization`, or those that its key in `x-api-key` would have there.
fn given(parts: &Parts) -> Vec<u8> {
    match (parts.headers.get(AUTHORIZATION), parts.headers.get(API_KEY)) {
        (Some(value), _) => value.as_bytes().to_vec(),
        (None, Some(key)) => [b"Bearer ", key.as_bytes()].concat(),
        (None, None) => Vec::new(),
    }
}

/// The permissions of a request, or the problem that it is answered with.
async fn admit(keys: &Keys, parts: &mut Parts) -> Result<Arc<Grant>, Problem> {
    if !keys.are_needed() {
        return Ok(Arc::new(Grant::Everything));
    }
    // What is no route is answered as such.
    let route = parts.extensions.get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let Some(route) = route else { return Ok(Arc::new(Grant::Nothing)) };
    let need = need(parts.method.as_str(), &route);
    if need == Some(Need::Nothing) {
        return Ok(Arc::new(Grant::Nothing));
    }
    let (name, grant) = keys.find(&given(parts)).ok_or_else(|| {
        Problem::new(Kind::Unauthorised, "send a valid key: Authorization: Bearer <key>")
    })?;
    audit::note(|facts| facts.key = Some(name));
    match need {
        Some(Need::Nothing | Need::Key) => {}
        Some(Need::Scope(scope)) => match &*grant {
            Grant::Some { scopes, .. } if scopes.contains(&scope) => {}
            _ => {
                let detail = format!("this needs a key with the scope {scope}");
                return Err(Problem::new(Kind::Forbidden, detail));
            }
        },
        None if ROUTES.iter().any(|(_, path, _)| *path == route) => {
            return Err(Problem::new(
                Kind::MethodNotAllowed,
                format!(
                    "{} does not take {}; /openapi.json has what it takes",
                    parts.uri.path(),
                    parts.method
                ),
            ));
        }
        None => return Err(Problem::new(Kind::Forbidden, "no key permits this")),
    }
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let params = params
        .map_err(|error| Problem::new(Kind::Invalid, format!("the path: {}", error.body_text())))?;
    let catalog = params.iter().find(|(name, _)| *name == "c").map(|(_, value)| value);
    match catalog {
        Some(catalog) if !grant.permits(catalog) => Err(Problem::new(
            Kind::Forbidden,
            format!("the key does not permit catalog {catalog:?}"),
        )),
        _ => Ok(grant),
    }
}
