//! Catalogs: their state, deleting and exporting them.
//!
//! A catalog that is deleted is moved to a hidden directory first, and [new
//! ones](super::make_catalog) come from one. A process that ends in between leaves hidden
//! directories, which the next start removes ([`clean`]).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hyper::body::Bytes;
use palmette_catalog_live::{CatalogSource, CatalogView, Schema};
use palmette_catalog_replica::Registry;

use super::documented::{Deletes, Lists, Looks};
use super::extract::{GENERATION, Path, Query, at_generation, header};
use crate::app::App;
use crate::domain::background::blocking;
use crate::domain::catalog_files::{CATALOGS, DELETED};
use crate::domain::cluster::ChangeProblem;
use crate::domain::exported::Exported;
use crate::domain::generations::view_at;
use crate::domain::permissions;
use crate::domain::registry::{ServedCatalog, Table};
use crate::problem::{Kind, Problem};
use crate::wire::{
    AttributeEntry, CatalogEntry, CatalogKind, Catalogs, GenerationParam, LiveNumbers,
};

/// Time that a delete waits for the catalog's work in the background to end.
const LEAVE: Duration = Duration::from_secs(10);
/// Pause between looks at who holds a deleted catalog.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes of an export that are read at once.
const PIECE: u64 = 256 << 10;

/// The catalog of a name.
pub(crate) fn served(app: &App, name: &str) -> Result<Arc<ServedCatalog>, Problem> {
    let table = app.registry.table();
    table.catalogs.get(name).cloned().ok_or_else(|| {
        let there: Vec<&str> = table
            .catalogs
            .keys()
            .map(String::as_str)
            .filter(|name| permissions::permits(name))
            .collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        Problem::not_found(format!("there is no catalog {name:?}; there are {there}"))
    })
}

/// Lists the catalogs.
#[utoipa::path(get, path = "/v1/catalogs", operation_id = "list_catalogs", tag = "catalogs", responses((status = 200, body = Catalogs), Lists))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<Catalogs> {
    let table = app.registry.table();
    let mine = table.catalogs.values().filter(|catalog| permissions::permits(&catalog.name));
    Json(Catalogs { catalogs: mine.map(|catalog| entry(catalog, &table)).collect() })
}

/// State of a catalog.
#[utoipa::path(
    get, path = "/v1/catalogs/{c}", operation_id = "get_catalog", tag = "catalogs",
    params(("c" = String, Path, description = "Name of the catalog")),
    responses((status = 200, body = CatalogEntry), Looks)
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let catalog = served(&app, &name)?;
    let entry = entry(&catalog, &app.registry.table());
    Ok(at_generation(entry.generation, Json(entry)))
}

/// State of a catalog, as of the last change that was finished: a batch that is being applied is
/// not waited for.
pub(crate) fn entry(catalog: &ServedCatalog, table: &Table) -> CatalogEntry {
    let status = catalog.status();
    let view = catalog.source.view();
    let (schema, kind) = match (&view, &catalog.source) {
        (CatalogView::Frozen(filters), _) => {
            (Schema::of_catalog(filters.catalog()), CatalogKind::Frozen)
        }
        (CatalogView::Snapshot(snapshot), source) => {
            let kind = match source {
                CatalogSource::Live(_) => CatalogKind::Live,
                CatalogSource::Reader(_) => CatalogKind::Reader,
                CatalogSource::Frozen(_) | CatalogSource::Snapshot(_) => CatalogKind::Frozen,
            };
            (snapshot.schema().clone(), kind)
        }
    };
    let attributes = schema.columns.into_iter();
    let attributes = attributes.map(|(name, kind)| AttributeEntry { name, kind: kind.to_string() });
    let targets = table.targets.iter().filter(|(_, target)| target.catalog.name == catalog.name);
    CatalogEntry {
        name: catalog.name.clone(),
        kind,
        generation: status.as_ref().map(|status| status.generation).or(view.generation()),
        num_items: status.as_ref().map_or(view.num_items(), |status| status.num_items),
        num_levels: view.num_levels(),
        codes_per_level: schema.codes_per_level,
        attributes: attributes.collect(),
        targets: targets.map(|(alias, _)| alias.clone()).collect(),
        live: status.map(LiveNumbers::from),
        log: catalog.replica.as_ref().map(|replica| replica.status().into()),
    }
}

/// Deletes a catalog, with its files where they lie in the data directory.
///
/// Requests that were admitted before end on it.
#[utoipa::path(
    delete, path = "/v1/catalogs/{c}", operation_id = "delete_catalog", tag = "catalogs",
    params(("c" = String, Path, description = "Name of the catalog")),
    responses((status = 204, description = "It is gone"), Deletes)
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let claim = app.claims.claim(&name)?;
    let catalog = served(&app, &name)?;
    if let Some(cluster) = app.cluster().map(Arc::clone) {
        let gone = move || {
            let _claim = claim;
            cluster.change_and_apply(&app.registry, |registry| remove_from(registry, &name))
        };
        blocking(gone).await??;
        return Ok(StatusCode::NO_CONTENT);
    }
    // No batch is half applied when the files move.
    let turn = catalog.writes.turn().await?;
    let root = app.config.data_dir.as_ref().map(|data| data.join(CATALOGS));
    let path = root.filter(|root| catalog.path.as_ref() == Some(&root.join(&name)));
    blocking(move || {
        let moved = remove(&app, &catalog, path.as_deref())?;
        drop(turn);
        let (sender, left) = mpsc::channel();
        let leaving = move || {
            if let Some(moved) = moved {
                leave(&catalog, &moved);
            }
            // A new catalog may have the name now: nothing of the old one writes below it any more.
            drop(claim);
            _ = sender.send(());
            let_go(&catalog);
        };
        let thread = std::thread::Builder::new().name("catalog delete".into()).spawn(leaving);
        thread.map_err(|error| Problem::new(Kind::Unavailable, error.to_string()))?;
        // After that time it goes on by itself.
        _ = left.recv_timeout(LEAVE);
        Ok(StatusCode::NO_CONTENT)
    })
    .await?
}

/// Takes a catalog out of the table that servers share.
fn remove_from(registry: &mut Registry, name: &str) -> Result<(), ChangeProblem> {
    let pointing = registry.targets.iter().filter(|(_, (_, catalog))| catalog == name);
    let pointing: Vec<&str> = pointing.map(|(alias, _)| alias.as_str()).collect();
    if !pointing.is_empty() {
        return Err(ChangeProblem(pointed_at(name, &pointing)));
    }
    match registry.catalogs.remove(name) {
        Some(_) => Ok(()),
        None => Err(ChangeProblem(Problem::not_found(format!("there is no catalog {name:?}")))),
    }
}

fn pointed_at(name: &str, targets: &[&str]) -> Problem {
    let detail = format!(
        "catalog {name:?} is recommended from by the targets {}; point them elsewhere first",
        targets.join(", ")
    );
    Problem::new(Kind::Conflict, detail)
}

/// Takes a catalog out of the registry, and moves its directory out of the way; returns where it is
/// then.
fn remove(
    app: &App,
    catalog: &Arc<ServedCatalog>,
    root: Option<&FilePath>,
) -> Result<Option<PathBuf>, Problem> {
    app.registry.change(|table, _| {
        let is_same =
            table.catalogs.get(&catalog.name).is_some_and(|now| Arc::ptr_eq(now, catalog));
        if !is_same {
            return Err(Problem::not_found(format!(
                "catalog {:?} was replaced meanwhile",
                catalog.name
            )));
        }
        let pointing =
            table.targets.iter().filter(|(_, target)| target.catalog.name == catalog.name);
        let pointing: Vec<&str> = pointing.map(|(alias, _)| alias.as_str()).collect();
        if !pointing.is_empty() {
            return Err(pointed_at(&catalog.name, &pointing));
        }
        let moved = root.map(|root| {
            let place = tempfile::Builder::new().prefix(DELETED).tempdir_in(root)?.keep();
            // Onto an empty directory, which it replaces.
            std::fs::rename(root.join(&catalog.name), &place)?;
            File::open(root)?.sync_all()?;
            Ok(place)
        });
        let moved = moved.transpose().map_err(|error: std::io::Error| {
            tracing::error!(%error, "a catalog was not deleted");
            Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000)
        })?;
        table.catalogs.remove(&catalog.name);
        Ok(moved)
    })
}

/// Ends the writing of a catalog, whoever still reads it, and removes its files.
fn leave(catalog: &ServedCatalog, path: &FilePath) {
    if let Some(live) = catalog.live() {
        live.close();
    }
    if let Err(error) = std::fs::remove_dir_all(path) {
        tracing::warn!(%error, path = %path.display(), "files of a deleted catalog are left");
    }
}

/// Waits for a time until nobody else holds a live catalog: the last to let go of it waits for its
/// work in the background, which no stream should.
fn let_go(catalog: &ServedCatalog) {
    let began = Instant::now();
    if let Some(live) = catalog.live() {
        while Arc::strong_count(live) > 1 && began.elapsed() < LEAVE {
            std::thread::sleep(LOOK);
        }
    }
}

/// Downloads a catalog as a file that any of the programs open.
///
/// Equal items give equal bytes, whatever the segments. One range of bytes may be asked for, to go
/// on with a download. The file of the last export is held until another generation is exported.
#[utoipa::path(
    get, path = "/v1/catalogs/{c}/export", operation_id = "export_catalog", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the catalog"),
        GenerationParam,
        ("Range" = Option<String>, Header, description = "A range of bytes, as bytes=1000-"),
        ("If-Range" = Option<String>, Header, description = "ETag of the file that the range is of"),
        ("If-None-Match" = Option<String>, Header, description = "ETag of a file that is there already"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 206, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "The file has this ETag"),
        (status = 416, body = Problem, content_type = "application/problem+json"),
        (status = 503, body = Problem, content_type = "application/problem+json"),
        Looks,
    )
)]
pub(crate) async fn export(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(at): Query<GenerationParam>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let catalog = served(&app, &name)?;
    let at = at.name();
    let dir = app.config.data_dir.as_ref().map(|data| data.join(CATALOGS));
    let dir = dir.unwrap_or_else(std::env::temp_dir);
    // One is made at a time, and goes on where its client leaves.
    let mut held = Arc::clone(&catalog.exported).lock_owned().await;
    let exported = blocking(move || {
        let view = view_at(&catalog, at.as_ref())?;
        match &*held {
            Some(of) if of.generation == view.generation() => Ok(Arc::clone(of)),
            _ => {
                let made = Arc::new(Exported::make(&view, &dir)?);
                *held = Some(Arc::clone(&made));
                Ok::<_, Problem>(made)
            }
        }
    });
    let exported = exported.await??;
    let tags = header(&headers, IF_NONE_MATCH.as_str())?.unwrap_or("");
    if tags
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.trim_start_matches("W/") == exported.tag)
    {
        return Ok(with_tag(&exported, StatusCode::NOT_MODIFIED.into_response()));
    }
    let is_of_this = header(&headers, IF_RANGE.as_str())?.is_none_or(|tag| tag == exported.tag);
    let range = header(&headers, RANGE.as_str())?.filter(|_| is_of_this);
    let (range, is_part) = match range
        .map_or(ByteRange::Whole, |text| ByteRange::parse(text, exported.len))
    {
        ByteRange::Whole => (0..exported.len, false),
        ByteRange::Part(range) => (range, true),
        ByteRange::Beyond => {
            let detail = format!("the file has {} bytes, none of them in the range", exported.len);
            let mut response = Problem::new(Kind::OutOfRange, detail).into_response();
            if let Ok(value) = HeaderValue::from_str(&format!("bytes */{}", exported.len)) {
                response.headers_mut().insert(CONTENT_RANGE, value);
            }
            return Ok(response);
        }
    };
    let content_range = format!("bytes {}-{}/{}", range.start, range.end.max(1) - 1, exported.len);
    let length = range.end - range.start;
    let body = Body::from_stream(pieces(Arc::clone(&exported), range).await?);
    let status = if is_part { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut response = with_tag(&exported, (status, body).into_response());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}.palm\"")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    if is_part && let Ok(value) = HeaderValue::from_str(&content_range) {
        headers.insert(CONTENT_RANGE, value);
    }
    Ok(response)
}

fn with_tag(exported: &Exported, mut response: Response) -> Response {
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&exported.tag) {
        headers.insert(ETAG, tag);
    }
    if let Some(generation) = exported.generation {
        headers.insert(GENERATION, HeaderValue::from(generation));
    }
    response
}

/// Bytes that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ByteRange {
    Whole,
    Part(Range<u64>),
    Beyond,
}

impl ByteRange {
    /// Reads `Range`; several ranges, and what is none, ask for the whole.
    fn parse(text: &str, len: u64) -> Self {
        let Some((first, last)) =
            text.strip_prefix("bytes=").and_then(|range| range.split_once('-'))
        else {
            return Self::Whole;
        };
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let range = match (first.trim(), last.trim(), number(first), number(last)) {
            ("", _, _, Some(last)) => len.saturating_sub(last)..len,
            (_, "", Some(first), _) => first..len,
            (_, _, Some(first), Some(last)) if first <= last => {
                first..len.min(last.saturating_add(1))
            }
            _ => return Self::Whole,
        };
        if range.start >= range.end { Self::Beyond } else { Self::Part(range) }
    }
}

/// A range of a file, piece by piece as the client takes them.
async fn pieces(
    exported: Arc<Exported>,
    range: Range<u64>,
) -> Result<impl stream::Stream<Item = std::io::Result<Bytes>>, Problem> {
    let opened = blocking(move || {
        let mut file = File::open(&exported.path)?;
        file.seek(SeekFrom::Start(range.start))?;
        Ok::<_, std::io::Error>((file, range, exported))
    });
    let opened =
        opened.await?.map_err(|error| Problem::new(Kind::Unavailable, error.to_string()))?;
    Ok(stream::unfold(opened, |(mut file, mut range, exported)| async move {
        let len = PIECE.min(range.end - range.start);
        if len == 0 {
            return None;
        }
        let read = blocking(move || {
            let mut piece = vec![0; len as usize];
            let read = file.read_exact(&mut piece);
            (file, read.map(|()| Bytes::from(piece)))
        });
        let (file, piece) = read.await.ok()?;
        range.start += len;
        Some((piece, (file, range, exported)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let part = ByteRange::Part;
        for (text, wanted) in [
            ("bytes=0-", part(0..10)),
            ("bytes=3-5", part(3..6)),
            ("bytes=9-99", part(9..10)),
            ("bytes=-4", part(6..10)),
            ("bytes=-40", part(0..10)),
            ("bytes=0-18446744073709551615", part(0..10)),
            ("bytes=10-", ByteRange::Beyond),
            ("bytes=-0", ByteRange::Beyond),
            ("bytes=5-3", ByteRange::Whole),
            ("bytes=0-1,3-4", ByteRange::Whole),
            ("bytes=-", ByteRange::Whole),
            ("bytes=x-", ByteRange::Whole),
            ("items=0-1", ByteRange::Whole),
        ] {
            assert_eq!(ByteRange::parse(text, 10), wanted, "{text}");
        }
    }
}
