//! Targets and models: pairs under aliases, switched together.

use std::collections::BTreeMap;
use std::path::{Component, Path as FilePath};
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use palmette_catalog_replica::Registry;

use super::body;
use super::documented::{Deletes, Lists, Switches};
use super::extract::Path;
use crate::app::App;
use crate::audit;
use crate::domain::background::blocking;
use crate::domain::cluster::{ChangeProblem, Cluster, check_pair};
use crate::domain::load_error::LoadError;
use crate::domain::models::{ModelParts, ServedModel};
use crate::domain::name::{check_name, names};
use crate::domain::permissions;
use crate::domain::registry::{Table, keep_default};
use crate::domain::targets_file;
use crate::domain::texts::ServedText;
use crate::problem::{Kind, Problem};
use crate::wire::{
    DefaultTarget, DeleteTarget, LoadModel, ModelEntry, Models, Pair, SetTarget, TargetAction,
    TargetChanges, TargetEntry, Targets, TextModelEntry,
};

/// Lists the targets.
#[utoipa::path(get, path = "/v1/targets", operation_id = "list_targets", tag = "targets", responses((status = 200, body = Targets), Lists))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<Targets> {
    Json(targets(&app.registry.table()))
}

fn targets(table: &Table) -> Targets {
    let entry = |(alias, target): (&String, &Arc<crate::domain::registry::Target>)| TargetEntry {
        alias: alias.clone(),
        model: target.model.name.clone(),
        catalog: target.catalog.name.clone(),
    };
    let default = table.default_alias().cloned();
    Targets { default, targets: table.targets.iter().map(entry).collect() }
}

/// Points an alias at a pair.
#[utoipa::path(
    put, path = "/v1/targets/{alias}", operation_id = "set_target", tag = "targets", params(("alias" = String, Path, description = "Name of the target")),
    request_body = Pair,
    responses(
        (status = 200, body = Targets),
        Switches,
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Path(alias): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Targets>, Problem> {
    let Pair { model, catalog } = body::object(&app, &headers, body).await?;
    change(&app, vec![TargetAction::Set(SetTarget { alias, model, catalog })], |_| String::new())
        .await
}

/// Changes several targets in one step: all of the actions are done, or none.
///
/// One target is the default, for requests that name none: the first that was set, until another is
/// made it. Requests that were admitted before end on the pair that they began with.
#[utoipa::path(
    post, path = "/v1/targets", operation_id = "change_targets", tag = "targets", request_body = TargetChanges,
    responses(
        (status = 200, body = Targets),
        Switches,
    )
)]
pub(crate) async fn post(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Targets>, Problem> {
    let changes: TargetChanges = body::object(&app, &headers, body).await?;
    change(&app, changes.actions, |action| format!("/actions/{action}")).await
}

async fn change(
    app: &Arc<App>,
    actions: Vec<TargetAction>,
    pointer: impl Fn(usize) -> String + Send + 'static,
) -> Result<Json<Targets>, Problem> {
    audit::note(|facts| facts.target = Some(said(&actions)));
    let app = Arc::clone(app);
    blocking(move || {
        // Opening and measuring a pair takes seconds: before anybody waits for the table.
        let mut made = Vec::with_capacity(actions.len());
        for (place, action) in actions.iter().enumerate() {
            made.push(match action {
                TargetAction::Delete(_) | TargetAction::Default(_) => None,
                TargetAction::Set(SetTarget { alias, model, catalog }) => {
                    let target = app.registry.make_target(alias, model, catalog);
                    Some(
                        target
                            .map_err(|error| Problem::invalid(pointer(place), error.to_string()))?,
                    )
                }
            });
        }
        if let Some(cluster) = app.cluster() {
            // The pairs were tried out here; every server makes its own.
            drop(made);
            cluster
                .change_and_apply(&app.registry, |registry| share(registry, &actions, &pointer))?;
            return Ok(Json(targets(&app.registry.table())));
        }
        app.registry.change(|table, _| {
            let mut made = made.into_iter();
            let set = |_: usize, _: &SetTarget| {
                made.by_ref().flatten().next().ok_or_else(|| {
                    // One is made for each.
                    Problem::new(Kind::Internal, "a target was not made")
                })
            };
            act(&mut table.targets, &mut table.default_target, &actions, set, &pointer)?;
            let Some(data) = &app.config.data_dir else { return Ok(()) };
            targets_file::write(data, table).map_err(|error| {
                Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000)
            })
        })?;
        Ok(Json(targets(&app.registry.table())))
    })
    .await?
}

/// Changes as one line of a log.
fn said(actions: &[TargetAction]) -> String {
    let one = |action: &TargetAction| match action {
        TargetAction::Set(SetTarget { alias, model, catalog }) => {
            format!("{alias}={model}:{catalog}")
        }
        TargetAction::Delete(gone) => format!("-{}", gone.alias),
        TargetAction::Default(of) => format!("default={}", of.alias),
    };
    actions.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Changes the targets of the table that servers share.
fn share(
    registry: &mut Registry,
    actions: &[TargetAction],
    pointer: &impl Fn(usize) -> String,
) -> Result<(), ChangeProblem> {
    let (mut targets, mut default) = (registry.targets.clone(), registry.default_target.clone());
    let set = |place: usize, SetTarget { model, catalog, .. }: &SetTarget| {
        check_pair(registry, model, catalog)
            .map_err(|error| Problem::invalid(pointer(place), error.to_string()))?;
        Ok((model.clone(), catalog.clone()))
    };
    act(&mut targets, &mut default, actions, set, pointer).map_err(ChangeProblem)?;
    (registry.targets, registry.default_target) = (targets, default);
    Ok(())
}

/// Does actions in their order, of which `make` makes what is set. One target stays the default.
fn act<T>(
    targets: &mut BTreeMap<String, T>,
    default: &mut Option<String>,
    actions: &[TargetAction],
    mut make: impl FnMut(usize, &SetTarget) -> Result<T, Problem>,
    pointer: &impl Fn(usize) -> String,
) -> Result<(), Problem> {
    let missing = |place: usize, alias: &str| {
        Problem::invalid(pointer(place), format!("there is no target {alias:?}"))
    };
    let mut default_gone = None;
    for (place, action) in actions.iter().enumerate() {
        match action {
            TargetAction::Set(set) => {
                keep_default(default, targets, &set.alias);
                targets.insert(set.alias.clone(), make(place, set)?);
            }
            TargetAction::Delete(DeleteTarget { alias }) => {
                targets.remove(alias).ok_or_else(|| missing(place, alias))?;
                if default.as_ref() == Some(alias) {
                    default_gone = Some(place);
                }
            }
            TargetAction::Default(DefaultTarget { alias }) => {
                if !targets.contains_key(alias) {
                    return Err(missing(place, alias));
                }
                *default = Some(alias.clone());
            }
        }
    }
    if default.as_ref().is_none_or(|alias| targets.contains_key(alias)) {
        return Ok(());
    }
    // The last that is left is what everybody means.
    match (targets.len(), default.take(), default_gone) {
        (2.., Some(gone), Some(place)) => Err(Problem::invalid(
            pointer(place),
            format!(
                "{gone:?} is the default target, and {} are left; make one of them the default in the same actions",
                names(targets)
            ),
        )),
        _ => {
            *default = targets.keys().next().cloned();
            Ok(())
        }
    }
}

/// Lists the models.
#[utoipa::path(get, path = "/v1/models", operation_id = "list_models", tag = "targets", responses((status = 200, body = Models), Lists))]
pub(crate) async fn models(State(app): State<Arc<App>>) -> Json<Models> {
    let table = app.registry.table();
    let models = table.models.values().map(|served| entry(served)).collect();
    let permitted = table.texts.values().filter(|served| permissions::permits(&served.name));
    let data = permitted.map(|served| text_entry(served)).collect();
    Json(Models { object: "list", data, models })
}

pub(crate) fn text_entry(served: &ServedText) -> TextModelEntry {
    TextModelEntry {
        id: served.name.clone(),
        object: "model",
        created: served.loaded,
        owned_by: "palmette",
        max_model_len: served.engine.max_positions(),
        parameters: served.model().engine().num_parameters() as u64,
        device: served.device(),
        has_chat_template: served.model().chat_template().is_ok(),
        tool_format: served.tool_format.map(|format| format.name),
    }
}

fn entry(served: &ServedModel) -> ModelEntry {
    let parts = &served.parts;
    let format = parts.prompts.format();
    ModelEntry {
        name: served.name.clone(),
        parameters: parts.num_parameters as u64,
        vocab_size: parts.vocab_size,
        codes_per_level: format.levels.iter().map(|level| level.num_codes()).collect(),
        max_history_items: format.max_history_items,
        has_draft_head: parts.has_draft_head,
        device: parts.device.clone(),
        in_memory: parts.loaded().is_some(),
    }
}

/// Loads a model from the server's data directory.
///
/// Targets go on with the models they have; point an alias at the new one to use it. It is in
/// memory while a target needs it.
#[utoipa::path(
    post, path = "/v1/models", tag = "targets", request_body = LoadModel,
    responses(
        (status = 201, body = ModelEntry),
        Switches,
    )
)]
pub(crate) async fn load_model(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<ModelEntry>), Problem> {
    let LoadModel { name, path } = body::object(&app, &headers, body).await?;
    audit::note(|facts| facts.model = Some(name.clone()));
    let Some(data) = &app.config.data_dir else {
        return Err(Problem::new(
            Kind::Conflict,
            "this server has no data directory to load models from; start it with one (--data-dir)",
        ));
    };
    let is_below =
        FilePath::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !is_below {
        let detail = format!(
            "{path:?} is not a path below the data directory's models: no .., no leading /"
        );
        return Err(Problem::invalid("/path", detail));
    }
    let dir = data.join("models").join(&path);
    let loading = Arc::clone(&app);
    let loaded = blocking(move || {
        // A link could lead elsewhere.
        let root = data_models(&loading)?;
        let found = dir
            .canonicalize()
            .map_err(|error| LoadError::System(format!("models/{path}: {error}")))?;
        if !found.starts_with(root) {
            return Err(LoadError::System(format!(
                "models/{path} leads out of the data directory"
            )));
        }
        match loading.cluster() {
            None => loading.registry.load_model(&name, &found)?,
            Some(cluster) => share_model(&loading, cluster, &name, &found)?,
        }
        Ok(name)
    });
    let name = loaded.await?.map_err(|error| Problem::invalid("/path", error.to_string()))?;
    let table = app.registry.table();
    let served = table
        .models
        .get(&name)
        .ok_or_else(|| Problem::not_found(format!("model {name:?} was replaced meanwhile")))?;
    Ok((StatusCode::CREATED, Json(entry(served))))
}

/// Takes a model away.
///
/// Its files stay: a model below `models` in the data directory is known again after the next
/// start, and takes no memory until a target needs it.
#[utoipa::path(
    delete, path = "/v1/models/{model}", tag = "targets", params(("model" = String, Path, description = "Name of the model")),
    responses((status = 204, description = "It is gone"), Deletes)
)]
pub(crate) async fn delete_model(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    blocking(move || {
        let table = app.registry.table();
        if table.texts.contains_key(&name) && !table.models.contains_key(&name) {
            let detail =
                format!("{name:?} is a text model, which is there as long as the server (--text)");
            return Err(Problem::new(Kind::Conflict, detail));
        }
        match app.cluster() {
            None => app.registry.change(|table, _| {
                let users = table.targets.iter().filter(|(_, target)| target.model.name == name);
                check_unused(&name, users.map(|(alias, _)| alias))?;
                table.models.remove(&name).map(drop).ok_or_else(|| no_model(&name, &table.models))
            }),
            Some(cluster) => cluster.change_and_apply(&app.registry, |registry| {
                let users = registry.targets.iter().filter(|(_, (model, _))| *model == name);
                check_unused(&name, users.map(|(alias, _)| alias)).map_err(ChangeProblem)?;
                let removed = registry.models.remove(&name);
                removed.map(drop).ok_or_else(|| ChangeProblem(no_model(&name, &registry.models)))
            }),
        }?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await?
}

fn no_model<T>(name: &str, models: &BTreeMap<String, T>) -> Problem {
    Problem::not_found(format!("there is no model {name:?}; there are {}", names(models)))
}

/// Refuses to take away a model that targets have.
fn check_unused<'a>(name: &str, users: impl Iterator<Item = &'a String>) -> Result<(), Problem> {
    let users: Vec<&str> = users.map(String::as_str).collect();
    match users.is_empty() {
        true => Ok(()),
        false => Err(Problem::new(
            Kind::Conflict,
            format!(
                "model {name:?} is that of the targets {}; switch them first",
                users.join(", ")
            ),
        )),
    }
}

/// Puts a model where all servers load it from.
fn share_model(app: &App, cluster: &Cluster, name: &str, dir: &FilePath) -> Result<(), LoadError> {
    check_name("model", name)?;
    // What cannot be loaded here would stop every server.
    ModelParts::read(dir, &app.config.models)?;
    let files = cluster.put_model(name, dir)?;
    let changed =
        cluster.change_and_apply(&app.registry, |registry| match registry.models.get(name) {
            Some(there) if there.hash != files.hash => {
                let detail =
                    format!("there is a model {name:?} with other files; choose another name");
                Err(ChangeProblem(Problem::new(Kind::Conflict, detail)))
            }
            _ => {
                registry.models.insert(name.to_owned(), files.clone());
                Ok(())
            }
        });
    changed.map_err(|problem| LoadError::System(problem.detail))
}

fn data_models(app: &App) -> Result<std::path::PathBuf, LoadError> {
    let data = app.config.data_dir.as_ref().map(|data| data.join("models")).unwrap_or_default();
    data.canonicalize().map_err(|error| LoadError::System(format!("{}: {error}", data.display())))
}
