//! Probes, version, metrics and the OpenAPI document.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::documented::{Lists, Probes};
use crate::app::App;
use crate::own_paths;
use crate::problem::{Kind, Problem};

/// Readiness, with the reasons for none.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// True where requests are answered.
    pub ready: bool,
    /// Reasons for not being ready.
    pub reasons: Vec<String>,
    /// Warnings of what cannot be written now, such as by a full disk. Requests are answered all
    /// the same.
    pub warnings: Vec<String>,
    /// Seconds since the process began to serve.
    pub uptime_seconds: f64,
}

/// Name and version.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Version {
    /// `palmette`.
    pub name: &'static str,
    /// Version of the program.
    pub version: &'static str,
}

/// 200 while the process runs.
#[utoipa::path(get, path = "/livez", tag = "probes", security(()), responses((status = 200, body = String), Probes))]
pub(crate) async fn livez() -> &'static str {
    "ok"
}

/// 200 while requests are answered; 503 before a target is loaded, and from the beginning of a
/// drain on.
///
/// `ok`, and what cannot be written now, if anything: a server that answers is not taken out for
/// that.
#[utoipa::path(get, path = "/readyz", tag = "probes", security(()), responses((status = 200, body = String), (status = 503, body = Problem, content_type = "application/problem+json"), Probes))]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Result<String, Problem> {
    match app.reasons_not_ready().as_slice() {
        [] => {
            let warnings = without_paths(&app.warnings());
            let ok = std::iter::once("ok").chain(warnings.iter().map(String::as_str));
            Ok(ok.collect::<Vec<_>>().join("; "))
        }
        reasons => Err(Problem::new(Kind::Unavailable, reasons.join("; ")).retry_after(1000)),
    }
}

fn without_paths(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| own_paths::without(text).into_owned()).collect()
}

/// Readiness with its reasons.
#[utoipa::path(get, path = "/healthz", tag = "probes", security(()), responses((status = 200, body = Health), (status = 503, body = Health), Probes))]
pub(crate) async fn healthz(State(app): State<Arc<App>>) -> Response {
    let reasons = app.reasons_not_ready();
    let status = match reasons.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let uptime_seconds = app.began.elapsed().as_secs_f64();
    let warnings = without_paths(&app.warnings());
    let ready = reasons.is_empty();
    let reasons = without_paths(&reasons);
    (status, Json(Health { ready, reasons, warnings, uptime_seconds })).into_response()
}

/// Name and version of the server.
#[utoipa::path(get, path = "/v1/version", operation_id = "get_version", tag = "probes", responses((status = 200, body = Version), Lists))]
pub(crate) async fn version() -> Json<Version> {
    Json(Version { name: "palmette", version: env!("CARGO_PKG_VERSION") })
}

/// Metrics as Prometheus reads them.
#[utoipa::path(get, path = "/metrics", tag = "probes", security(()), responses((status = 200, body = String, content_type = "text/plain"), Probes))]
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    app.publish();
    let text = app.metrics.render();
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// OpenAPI document of the server.
#[utoipa::path(get, path = "/openapi.json", tag = "probes", security(()), responses((status = 200, body = Object), Probes))]
pub(crate) async fn openapi(State(app): State<Arc<App>>) -> Json<utoipa::openapi::OpenApi> {
    Json((app.openapi)())
}
