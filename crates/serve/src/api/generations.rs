//! Generations of a catalog: those that are kept, and going back to one.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use palmette_catalog_live::LiveCatalog;
use palmette_catalog_replica::Change;

use super::body;
use super::catalogs::served;
use super::documented::{Deletes, Looks, Writes};
use super::extract::{Path, at_generation};
use super::items::{Write, failed};
use crate::app::App;
use crate::domain::generations::find_kept;
use crate::domain::name::check_name;
use crate::problem::{Kind, Problem};
use crate::wire::{
    GenerationName, GenerationParam, Generations, KeepGeneration, KeptEntry, Rollback, RolledBack,
};

/// Generations of a catalog that are kept at once, at most: each holds its files.
const MAX_KEPT: usize = 64;

/// Lists the generations that are kept.
#[utoipa::path(
    get, path = "/v1/catalogs/{c}/generations", operation_id = "list_generations", tag = "catalogs",
    params(("c" = String, Path, description = "Name of the catalog")),
    responses((status = 200, body = Generations), Looks)
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let catalog = served(&app, &name)?;
    let found = Generations {
        kept: catalog.generations().into_iter().map(KeptEntry::from).collect(),
        newest: catalog.source.view().generation(),
    };
    Ok(at_generation(found.newest, Json(found)))
}

/// Keeps the newest generation: it can be read by number or name, and gone back to, until it is
/// forgotten.
#[utoipa::path(
    post, path = "/v1/catalogs/{c}/generations", operation_id = "keep_generation", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        ("If-Match" = Option<String>, Header, description = "Generation that the catalog must be at, in quotes"),
    ),
    request_body = KeepGeneration,
    responses((status = 201, body = KeptEntry), Writes)
)]
pub(crate) async fn keep(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let write = Write::new(&app, &name, &headers)?;
    let KeepGeneration { name } = body::object(&app, &headers, body).await?;
    if let Some(name) = &name {
        check_name("generation", name)
            .map_err(|error| Problem::invalid("/name", error.to_string()))?;
        LiveCatalog::check_generation_name(name)
            .map_err(|error| Problem::invalid("/name", error.to_string()))?;
    }
    if write.is_by_log() {
        check_room(&write)?;
        let generation = write.by_log(Change::Keep { name: name.clone() }).await?;
        let kept = write.live().generations();
        let kept = kept.into_iter().find(|kept| kept.generation == generation).map(KeptEntry::from);
        // Another server may have let go of it meanwhile.
        let kept = kept.unwrap_or(KeptEntry { generation, name, num_items: 0 });
        return Ok(at_generation(Some(generation), (StatusCode::CREATED, Json(kept))));
    }
    let kept = write.run(move |write| {
        write.check_condition()?;
        check_room(write)?;
        let generation = write.live().keep(name.as_deref()).map_err(|error| failed(&error))?;
        let num_items = write.live().snapshot().num_items();
        Ok(KeptEntry { generation, name, num_items })
    });
    let kept = kept.await?;
    Ok(at_generation(Some(kept.generation), (StatusCode::CREATED, Json(kept))))
}

/// Refuses where too many generations are kept.
fn check_room(write: &Write) -> Result<(), Problem> {
    let now = write.live().snapshot().generation();
    let kept = write.live().generations();
    if kept.len() >= MAX_KEPT && !kept.iter().any(|kept| kept.generation == now) {
        let detail = format!("{MAX_KEPT} generations are kept already; forget one first");
        return Err(Problem::new(Kind::Conflict, detail));
    }
    Ok(())
}

/// Forgets a generation that is kept, by number or name.
#[utoipa::path(
    delete, path = "/v1/catalogs/{c}/generations/{generation}", operation_id = "forget_generation", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        ("generation" = String, Path, description = "Number or name"),
    ),
    responses((status = 204, description = "It is not kept any more"), Deletes)
)]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    Path((name, generation)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let write = Write::new(&app, &name, &headers)?;
    let generation = GenerationParam { generation: Some(generation) }.name();
    if write.is_by_log() {
        let number = kept_number(&write, generation.as_ref())
            .map_err(|problem| Problem::not_found(problem.detail))?;
        write.by_log(Change::Forget { generation: number }).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    write
        .run(move |write| {
            write.check_condition()?;
            let number = kept_number(write, generation.as_ref())
                .map_err(|problem| Problem::not_found(problem.detail))?;
            write.live().forget(number).map_err(|error| failed(&error))
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn kept_number(write: &Write, name: Option<&GenerationName>) -> Result<u64, Problem> {
    let now = write.live().snapshot().generation();
    match name {
        Some(name) => find_kept(&write.live().generations(), name, now),
        None => Ok(now),
    }
}

/// Makes a new generation with the items of one that is kept.
#[utoipa::path(
    post, path = "/v1/catalogs/{c}/rollback", operation_id = "roll_back", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        ("If-Match" = Option<String>, Header, description = "Generation that the catalog must be at, in quotes"),
    ),
    request_body = Rollback,
    responses((status = 200, body = RolledBack), Writes)
)]
pub(crate) async fn rollback(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let write = Write::new(&app, &name, &headers)?;
    let Rollback { to } = body::object(&app, &headers, body).await?;
    if write.is_by_log() {
        let restored = kept_number(&write, Some(&to))?;
        let generation = write.by_log(Change::Rollback { to: restored }).await?;
        let done = RolledBack { generation, restored };
        return Ok(at_generation(Some(generation), Json(done)));
    }
    let done = write.run(move |write| {
        write.check_condition()?;
        let restored = kept_number(write, Some(&to))?;
        let generation = write.live().rollback(restored).map_err(|error| failed(&error))?;
        Ok(RolledBack { generation, restored })
    });
    let done = done.await?;
    Ok(at_generation(Some(done.generation), Json(done)))
}
