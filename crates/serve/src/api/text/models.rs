//! `GET /v1/models/{model}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};

use super::errors::{ErrorForm, reshaped};
use crate::api::documented::Texts;
use crate::api::targets::text_entry;
use crate::app::App;
use crate::wire::TextModelEntry;

/// Tells of a text model.
#[utoipa::path(
    get, path = "/v1/models/{model}", operation_id = "get_text_model", tag = "text",
    params(("model" = String, Path, description = "Name of the text model")),
    responses((status = 200, body = TextModelEntry), Texts)
)]
pub(crate) async fn model(State(app): State<Arc<App>>, Path(name): Path<String>) -> Response {
    match app.registry.table().text(Some(&name)) {
        Ok(served) => Json(text_entry(&served)).into_response(),
        Err(problem) => reshaped(problem.into_response(), ErrorForm::OpenAi),
    }
}
