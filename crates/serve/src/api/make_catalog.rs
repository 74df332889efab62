//! Catalogs made of bodies: from an upload in a file to a live catalog that is served.
//!
//! A new catalog is made in a hidden directory and moved to its name when it is whole. The request
//! waits for that, or, where it asks for it, an operation goes on after it was answered.

use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use palmette_catalog::readers::{Format, ItemSink, ReadSummary, SourceOptions, parse_into};
use palmette_catalog::{
    BuildError, BuildOptions, Catalog, CatalogBuilder, ColumnKind, UnknownKind,
};
use palmette_catalog_live::{LiveCatalog, LiveOptions, Schema};
use serde_json::{Map, Value};

use super::catalogs::{entry, served};
use super::documented::Writes;
use super::extract::{Path, Query, at_generation, media_type};
use super::items::failed;
use super::upload::{HeldFile, Upload};
use crate::app::App;
use crate::domain::background::{blocking, start_blocking};
use crate::domain::catalog_files::{CATALOGS, NEW};
use crate::domain::claims::Claim;
use crate::domain::cluster::{self, ChangeProblem, Cluster};
use crate::domain::load_error::LoadError;
use crate::domain::name::{check_name, names};
use crate::domain::operations::Progress;
use crate::domain::registry::Table;
use crate::problem::{Fault, Kind, Problem};
use crate::wire::{CatalogEntry, NewCatalogParams, Operation};

/// Name of a body in messages.
const BODY: &str = "the body";
const PARQUET: &str = "application/vnd.apache.parquet";
const ARROW_FILE: &str = "application/vnd.apache.arrow.file";
const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";
/// Preferences of a client (RFC 7240), and those that were followed.
const PREFER: &str = "prefer";
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Format of an uploaded catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Palm,
    Items(Format),
    #[cfg(feature = "tables")]
    Table(palmette_catalog_arrow::TableFormat),
}

impl Source {
    fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let given = media_type(headers);
        match given.as_str() {
            "application/octet-stream" => Ok(Self::Palm),
            "application/x-ndjson" | "application/jsonl" => Ok(Self::Items(Format::JsonLines)),
            "text/csv" => Ok(Self::Items(Format::Csv)),
            PARQUET | ARROW_FILE | ARROW_STREAM => table(&given),
            other => Err(unsupported(format!(
                "the body is {other:?}; a catalog is made of {}",
                Self::taken()
            ))),
        }
    }

    /// Media types that this build takes.
    fn taken() -> &'static str {
        match cfg!(feature = "tables") {
            true => {
                "application/octet-stream (a catalog file), application/x-ndjson, text/csv, application/vnd.apache.parquet, \
                 application/vnd.apache.arrow.file or application/vnd.apache.arrow.stream"
            }
            false => "application/octet-stream (a catalog file), application/x-ndjson or text/csv",
        }
    }
}

/// The source of a table of this media type.
#[cfg(feature = "tables")]
fn table(given: &str) -> Result<Source, Problem> {
    use palmette_catalog_arrow::TableFormat::{Arrow, Parquet};
    Ok(Source::Table(if given == PARQUET { Parquet } else { Arrow }))
}

/// The refusal of a table by a build that reads none.
#[cfg(not(feature = "tables"))]
fn table(given: &str) -> Result<Source, Problem> {
    Err(unsupported(format!(
        "the body is {given}, which this build of the server does not read; build it with `--features tables`, or send {}",
        Source::taken()
    )))
}

fn unsupported(detail: String) -> Problem {
    Problem::new(Kind::UnsupportedMedia, detail)
}

/// Rules for the items of a new catalog.
#[derive(Debug, Default)]
struct Rules {
    codes_per_level: Option<Vec<u32>>,
    lengths: Lengths,
    columns: Vec<(String, ColumnKind)>,
}

/// Number of codes of an ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lengths {
    /// Lengths of the items.
    #[default]
    OfItems,
    /// One for each level.
    Whole,
    /// Any up to one for each level.
    Any,
}

impl Rules {
    /// The rules of a catalog with these items; `None` where only the items bind.
    fn schema(self, catalog: &Catalog) -> Result<Option<Schema>, Problem> {
        if self.codes_per_level.is_none() && self.columns.is_empty() {
            return Ok(None);
        }
        let mut schema = Schema::of_catalog(catalog);
        schema.num_levels = match self.lengths {
            Lengths::OfItems => schema.num_levels,
            Lengths::Whole | Lengths::Any => self.num_levels(),
        };
        schema.codes_per_level = self.codes_per_level.or(schema.codes_per_level);
        schema
            .declare_columns(&self.columns)
            .map_err(|error| Problem::new(Kind::Invalid, error.to_string()))?;
        Ok(Some(schema))
    }

    /// Codes that every ID has; `None` where they may differ, or the items say it.
    fn num_levels(&self) -> Option<usize> {
        let sizes = self.codes_per_level.as_ref().filter(|_| self.lengths == Lengths::Whole);
        sizes.map(Vec::len)
    }

    fn of(params: &NewCatalogParams, table: &Table) -> Result<Self, Problem> {
        let wrong = |detail: String| Err(Problem::new(Kind::Invalid, detail));
        let (codes_per_level, lengths) = match (&params.model, &params.codes_per_level) {
            (None, None) => (None, Lengths::OfItems),
            (Some(_), Some(_)) => {
                return wrong("model and codes_per_level exclude each other; give one".to_owned());
            }
            (Some(name), None) => match table.models.get(name) {
                Some(model) => {
                    let format = model.parts.prompts.format();
                    let sizes = format.levels.iter().map(|level| level.num_codes()).collect();
                    // Without a token that ends IDs it spells whole ones alone.
                    let spells_whole = format.end_tokens.is_empty();
                    let lengths = if spells_whole { Lengths::Whole } else { Lengths::Any };
                    (Some(sizes), lengths)
                }
                None => {
                    let there = names(&table.models);
                    return wrong(format!("there is no model {name:?}; there are {there}"));
                }
            },
            (None, Some(text)) => match text.split(',').map(|size| size.trim().parse()).collect() {
                Ok(sizes) => (Some(sizes), Lengths::OfItems),
                Err(_) => {
                    return wrong(format!(
                        "codes_per_level is {text:?}; it must be whole numbers with commas, as 256,256,256"
                    ));
                }
            },
        };
        let columns = params.columns.as_deref().map_or(Ok(Vec::new()), columns)?;
        Ok(Self { codes_per_level, lengths, columns })
    }
}

/// Declared attributes, `NAME=KIND` with commas.
fn columns(text: &str) -> Result<Vec<(String, ColumnKind)>, Problem> {
    let one = |declared: &str| {
        let wrong = |rule: String| {
            let detail = format!("columns has {declared:?}; {rule}");
            Problem::new(Kind::Invalid, detail)
        };
        let example = || wrong("it must be NAME=KIND with commas, as price=number".to_owned());
        let (name, kind) = declared.rsplit_once('=').ok_or_else(example)?;
        if name.trim().is_empty() {
            return Err(example());
        }
        let kind = kind.trim().parse().map_err(|error: UnknownKind| wrong(error.to_string()))?;
        Ok((name.trim().to_owned(), kind))
    };
    text.split(',').map(one).collect()
}

/// Makes a live catalog of the items of a body.
///
/// The body is a catalog file (`application/octet-stream`), a JSON object an item and line
/// (`application/x-ndjson`), or a table (`text/csv`; where the server was built for them, Parquet
/// and Arrow files and streams). The answer comes when the catalog can be read; a target may then
/// be pointed at it. With `Prefer: respond-async` it comes as soon as the body is there, with the
/// path of an operation that goes on.
#[utoipa::path(
    put, path = "/v1/catalogs/{c}", operation_id = "make_catalog", tag = "catalogs",
    params(
        ("c" = String, Path, description = "Name of the new catalog"),
        ("Prefer" = Option<String>, Header, description = "respond-async, for an operation instead of an answer that is waited for"),
        NewCatalogParams,
    ),
    request_body(content(
        (Vec<u8> = "application/octet-stream"), (String = "application/x-ndjson"), (String = "text/csv"),
        (Vec<u8> = "application/vnd.apache.parquet"), (Vec<u8> = "application/vnd.apache.arrow.file"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"),
    )),
    responses((status = 201, body = CatalogEntry), (status = 202, body = Operation), Writes)
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(params): Query<NewCatalogParams>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    check_name("catalog", &name).map_err(|error| Problem::new(Kind::Invalid, error.to_string()))?;
    let Some(data) = app.config.data_dir.as_ref() else {
        return Err(Problem::new(
            Kind::Conflict,
            "this server has no data directory to keep catalogs in; start it with one (--data-dir)",
        ));
    };
    let root = data.join(CATALOGS);
    let source = Source::of(&headers)?;
    let claim = app.claims.claim(&name)?;
    let table = app.registry.table();
    let rules = Rules::of(&params, &table)?;
    let exists = || {
        let detail =
            format!("there is a catalog {name:?} already; delete it first, or choose another name");
        Problem::new(Kind::Conflict, detail)
    };
    if table.catalogs.contains_key(&name) || root.join(&name).exists() {
        return Err(exists());
    }
    let upload = Upload::new(&app, &headers, body)?.into_file(&root).await?;
    let new = NewCatalog { app: Arc::clone(&app), root, claim, source, rules, upload };
    if wants_operation(&headers) {
        let running = app.operations.begin(&name)?;
        let shown = running.making().shown();
        // It goes on whether or not somebody asks for it.
        drop(start_blocking(move || {
            let made = new.make(&running.making().progress);
            running.end(made);
        }));
        let location = shown.operation.clone();
        let response =
            with_location((StatusCode::ACCEPTED, Json(shown)).into_response(), &location);
        return Ok(([(PREFERENCE_APPLIED, "respond-async")], response).into_response());
    }
    let made = blocking(move || new.make(&Progress::default())).await??;
    let location = format!("/v1/catalogs/{}", made.name);
    let response = at_generation(made.generation, (StatusCode::CREATED, Json(made)));
    Ok(with_location(response, &location))
}

fn with_location(mut response: Response, path: &str) -> Response {
    if let Ok(path) = HeaderValue::from_str(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

/// True where the client would rather have an operation than wait.
fn wants_operation(headers: &HeaderMap) -> bool {
    let values = headers.get_all(PREFER).into_iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .map(|preference| preference.split(';').next().unwrap_or("").trim())
        .any(|preference| preference.eq_ignore_ascii_case("respond-async"))
}

/// A catalog to be made of an upload.
struct NewCatalog {
    app: Arc<App>,
    /// Directory of the catalogs.
    root: PathBuf,
    claim: Claim,
    source: Source,
    rules: Rules,
    upload: HeldFile,
}

impl NewCatalog {
    /// Makes it, and adds it to those that are served.
    fn make(self, progress: &Progress) -> Result<CatalogEntry, Problem> {
        let Self { app, root, claim, source, rules, upload } = self;
        let catalog = build(upload.file.path(), source, &rules, progress)?;
        progress.check()?;
        if let Some(cluster) = app.cluster() {
            share(&app, cluster, claim.name(), catalog, rules)?;
            let added = served(&app, claim.name())?;
            return Ok(entry(&added, &app.registry.table()));
        }
        let live = create(&root, claim.name(), catalog, rules, progress)?;
        let path = root.join(claim.name());
        let added = app.registry.add_catalog(claim.name(), live.into(), Some(path));
        let added = added.map_err(|error| Problem::new(Kind::Conflict, error.to_string()))?;
        Ok(entry(&added, &app.registry.table()))
    }
}

/// The catalog of an uploaded file.
fn build(
    path: &FilePath,
    source: Source,
    rules: &Rules,
    progress: &Progress,
) -> Result<Catalog, Problem> {
    let system = |error: std::io::Error| Problem::new(Kind::Unavailable, error.to_string());
    let file = File::open(path).map_err(system)?;
    progress.begin(file.metadata().map_err(system)?.len());
    if source == Source::Palm {
        let opened = Catalog::open(path);
        return opened.map_err(|error| at_line(None, format!("{BODY} {}", error.problem())));
    }
    let options = BuildOptions {
        codes_per_level: rules.codes_per_level.clone(),
        num_levels: rules.num_levels(),
        columns: rules.columns.clone(),
        ..BuildOptions::default()
    };
    let of_build = |error: BuildError| at_line(error.line(), error.to_string());
    let mut builder = CatalogBuilder::new(options).map_err(of_build)?;
    let read = read_items(file, source, progress, &mut Watched { sink: &mut builder, progress })?;
    // Items were passed over if it was cancelled.
    progress.check()?;
    builder.finish(read.level_prefixes, |_| {}).map_err(of_build)
}

/// Hands the items of a file to a sink.
fn read_items(
    file: File,
    source: Source,
    progress: &Progress,
    sink: &mut impl ItemSink,
) -> Result<ReadSummary, Problem> {
    let options = SourceOptions::default();
    match source {
        Source::Palm => Ok(ReadSummary::default()),
        Source::Items(format) => {
            let reader = BufReader::new(WatchedFile { file, progress });
            let read = parse_into(BODY, reader, format, &options, sink);
            read.map_err(|error| at_line(error.line(), error.to_string()))
        }
        #[cfg(feature = "tables")]
        Source::Table(format) => {
            let share = &mut |rows, of| progress.set_share(rows, of);
            let name = FilePath::new(BODY);
            let read =
                palmette_catalog_arrow::read_file_into(name, file, format, &options, sink, share);
            read.map_err(|error| at_line(error.row(), error.to_string()))
        }
    }
}

/// A problem of a line or row of the body.
fn at_line(line: Option<u64>, detail: String) -> Problem {
    let pointer = line.map_or_else(String::new, |line| format!("/{line}"));
    let fault = Fault { pointer, detail: detail.clone() };
    Problem { errors: vec![fault], ..Problem::new(Kind::Invalid, detail) }
}

/// A file whose bytes are counted, and which ends with an error where the work is to stop.
struct WatchedFile<'a> {
    file: File,
    progress: &'a Progress,
}

impl Read for WatchedFile<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.progress.is_cancelled() {
            return Err(std::io::Error::other("the operation was cancelled"));
        }
        let read = self.file.read(out)?;
        self.progress.add_bytes(read);
        Ok(read)
    }
}

/// A sink whose items are counted, and which passes over them where the work is to stop.
struct Watched<'a, S> {
    sink: &'a mut S,
    progress: &'a Progress,
}

impl<S: ItemSink> ItemSink for Watched<'_, S> {
    fn push(
        &mut self,
        line: u64,
        id: String,
        codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        if self.progress.is_cancelled() {
            return Ok(());
        }
        self.progress.add_item();
        self.sink.push(line, id, codes, attributes)
    }

    fn timestamps(&mut self, names: &[String]) {
        self.sink.timestamps(names);
    }
}

/// Begins a log of the catalog in the store that servers share, and has all of them open it.
fn share(
    app: &App,
    cluster: &Cluster,
    name: &str,
    catalog: Catalog,
    rules: Rules,
) -> Result<(), Problem> {
    let unavailable = |error: LoadError| match error {
        LoadError::Live(error) if error.is_refusal() => {
            Problem::new(Kind::Invalid, error.to_string())
        }
        error => Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000),
    };
    let schema = rules.schema(&catalog)?;
    let base = cluster::base_of(catalog, schema).map_err(unavailable)?;
    let identity = cluster.begin(name, &base).map_err(unavailable)?;
    cluster.change_and_apply(&app.registry, |registry| {
        match registry.catalogs.entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(identity.clone());
                Ok(())
            }
            Entry::Occupied(_) => {
                let detail = format!("there is a catalog {name:?} already; choose another name");
                Err(ChangeProblem(Problem::new(Kind::Conflict, detail)))
            }
        }
    })
}

/// Makes the live catalog's directory beside its place, moves it there whole, and opens it.
fn create(
    root: &FilePath,
    name: &str,
    catalog: Catalog,
    rules: Rules,
    progress: &Progress,
) -> Result<LiveCatalog, Problem> {
    let system = |error: std::io::Error| {
        tracing::error!(%error, "a catalog was not made");
        Problem::new(Kind::Unavailable, format!("the catalog cannot be kept: {error}"))
            .retry_after(1000)
    };
    let schema = rules.schema(&catalog)?;
    let making = tempfile::Builder::new().prefix(NEW).tempdir_in(root).map_err(system)?;
    let made =
        LiveCatalog::create_with(making.path(), Some(catalog), schema, LiveOptions::default());
    drop(made.map_err(|error| match error.is_refusal() {
        true => Problem::new(Kind::Invalid, error.to_string()),
        false => failed(&error),
    })?);
    progress.check()?;
    let path = root.join(name);
    std::fs::rename(making.keep(), &path).map_err(system)?;
    File::open(root).and_then(|root| root.sync_all()).map_err(system)?;
    LiveCatalog::open_with(&path, LiveOptions::default()).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn preferences_are_read() {
        for (values, wanted) in [
            (&[][..], false),
            (&["respond-async"], true),
            (&["return=minimal, Respond-Async; x=y"], true),
            (&["return=minimal", "respond-async,wait=5"], true),
            (&["respond-sync", "x=respond-async"], false),
        ] {
            assert_eq!(wants_operation(&headers(PREFER, values)), wanted, "{values:?}");
        }
    }

    #[test]
    fn a_table_is_taken_or_the_way_to_that_is_told() {
        for media_type in [PARQUET, ARROW_FILE, "application/vnd.apache.arrow.stream; x=y"] {
            let source = Source::of(&headers("content-type", &[media_type]));
            if cfg!(feature = "tables") {
                assert!(source.is_ok(), "{media_type}");
                continue;
            }
            let problem = source.expect_err("no tables");
            assert_eq!(problem.status, 415);
            for word in ["apache", "--features tables", "text/csv"] {
                assert!(problem.detail.contains(word), "{}", problem.detail);
            }
        }
        let problem = Source::of(&headers("content-type", &["text/plain"])).expect_err("no items");
        assert_eq!(problem.detail.contains("parquet"), cfg!(feature = "tables"));
    }

    #[test]
    fn a_cancelled_build_stops_at_the_next_item() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: String =
            (0..10_000).map(|n| format!("{{\"item_id\": \"i{n}\", \"codes\": [1]}}\n")).collect();
        std::fs::write(file.path(), &lines).unwrap();
        let operations = crate::domain::operations::Operations::default();
        let running = operations.begin("x").unwrap();
        let progress = &running.making().progress;
        let source = Source::Items(Format::JsonLines);
        let catalog = build(file.path(), source, &Rules::default(), progress).unwrap();
        let shown = running.making().shown().progress;
        assert_eq!((catalog.num_items(), shown.items), (10_000, 10_000));
        assert_eq!((shown.bytes, shown.of_bytes), (lines.len() as u64, lines.len() as u64));
        operations.cancel_all();
        assert!(build(file.path(), source, &Rules::default(), progress).is_err());
        assert_eq!(running.making().shown().progress.items, 10_000, "none was read");
    }
}
