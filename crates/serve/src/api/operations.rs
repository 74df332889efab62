//! Operations that go on after their request was answered.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::documented::{Lists, Looks};
use super::extract::Path;
use crate::app::App;
use crate::domain::operations::Making;
use crate::domain::permissions;
use crate::problem::Problem;
use crate::wire::{Operation, Operations};

/// Lists the latest operations.
#[utoipa::path(get, path = "/v1/operations", operation_id = "list_operations", tag = "operations", responses((status = 200, body = Operations), Lists))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<Operations> {
    let all = app.operations.all().into_iter();
    let mine = all.filter(|of| permissions::permits(of.catalog()));
    Json(Operations { operations: mine.map(|of| of.shown()).collect() })
}

/// State of an operation.
///
/// The latest 64 are remembered while the process runs.
#[utoipa::path(
    get, path = "/v1/operations/{id}", operation_id = "get_operation", tag = "operations",
    params(("id" = String, Path, description = "Id of the operation")),
    responses((status = 200, body = Operation), Looks)
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Json<Operation>, Problem> {
    Ok(Json(find(&app, &id)?.shown()))
}

/// Cancels a running operation, or forgets one that has ended.
///
/// One that is cancelled ends between two items or two stages: it is still running for a moment,
/// then cancelled, or succeeded where it was about to be.
#[utoipa::path(
    delete, path = "/v1/operations/{id}", operation_id = "cancel_operation", tag = "operations",
    params(("id" = String, Path, description = "Id of the operation")),
    responses((status = 204, description = "It was told to stop, or is forgotten"), Looks)
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    app.operations.end(&find(&app, &id)?);
    Ok(StatusCode::NO_CONTENT)
}

/// The operation of an id, if the request's key permits its catalog.
fn find(app: &App, id: &str) -> Result<Arc<Making>, Problem> {
    let found = app.operations.find(id).filter(|of| permissions::permits(of.catalog()));
    found.ok_or_else(|| {
        Problem::not_found(format!(
            "there is no operation {id:?}; the latest 64 are remembered, while the process runs: look whether its catalog is there"
        ))
    })
}
