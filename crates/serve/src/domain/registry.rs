//! Registry of models, catalogs and targets: one immutable table, replaced as a whole.
//!
//! A **target** is a pair of a model and a catalog under an alias: semantic IDs are a model's own,
//! so that a new model needs its catalog at the same moment. A request takes the table once and
//! keeps its pair to the end, whatever is switched meanwhile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use palmette_catalog::Catalog;
use palmette_catalog_live::{
    CatalogSource, KeptGeneration, LiveCatalog, LiveOptions, LiveReader, LiveStatus, ReaderOptions,
    Snapshot,
};
use palmette_catalog_replica::Replica;
use palmette_lexicon::Lexicon;
use palmette_recommend::{RecommendError, Recommender, SpelledView};

use super::background::blocking;
use super::exported::Exported;
use super::load_error::LoadError;
use super::models::{LoadedModel, ModelParts, ServedModel};
use super::name::{check_name, names};
use super::permissions;
use super::texts::ServedText;
use super::writes::Writes;
use crate::audit;
use crate::engine::{self, Lease, Registrar};
use crate::model_loader::ModelLoader;
use crate::problem::{Kind, OpenAiCode, Problem};

/// A catalog.
#[derive(Debug)]
pub(crate) struct ServedCatalog {
    pub(crate) name: String,
    pub(crate) source: CatalogSource,
    /// File or directory of it; `None` where it is in memory alone.
    pub(crate) path: Option<PathBuf>,
    /// Number of this loading in the process: answers of a catalog that was replaced are not those
    /// of the new one.
    pub(crate) loading: u64,
    pub(crate) writes: Writes,
    /// Present where it follows a shared log.
    pub(crate) replica: Option<Replica>,
    /// The file of the last export.
    pub(crate) exported: Arc<tokio::sync::Mutex<Option<Arc<Exported>>>>,
    /// Kept generations that were asked for, the latest last.
    kept: Mutex<Vec<(u64, Arc<Snapshot>)>>,
}

/// A pair that requests are answered by.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) model: Arc<ServedModel>,
    /// Weights of the model, which are in memory while there is the target.
    loaded: Arc<LoadedModel>,
    pub(crate) catalog: Arc<ServedCatalog>,
    pub(crate) recommender: Arc<Recommender>,
    /// Streams keep workers of the recommender for as long as there is the target.
    pub(crate) lease: Lease,
    /// Views of kept generations that were asked for, the latest last.
    kept: Mutex<Vec<(u64, Arc<SpelledView>)>>,
}

/// Kept generations that a target, or a catalog, holds open.
const MAX_KEPT_VIEWS: usize = 4;

/// Table of models, catalogs and targets at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) models: BTreeMap<String, Arc<ServedModel>>,
    pub(crate) catalogs: BTreeMap<String, Arc<ServedCatalog>>,
    /// Lexicons, which texts alone name.
    pub(crate) lexicons: BTreeMap<String, Arc<Lexicon>>,
    /// Targets by alias.
    pub(crate) targets: BTreeMap<String, Arc<Target>>,
    /// Alias of the target that requests ask for which name none.
    pub(crate) default_target: Option<String>,
    /// Text models.
    pub(crate) texts: BTreeMap<String, Arc<ServedText>>,
}

/// The table, and the lock of those that change it.
#[derive(Debug)]
pub(crate) struct Registry {
    registrar: Registrar,
    /// Width at which the costs of a model are measured.
    beam_width: usize,
    /// Requests of the largest batch.
    batch_jobs: usize,
    loader: ModelLoader,
    table: ArcSwap<Table>,
    change: Mutex<Changes>,
    /// Pairs that were asked for as `model:catalog` and have no alias, the latest last.
    pairs: Mutex<Vec<Pair>>,
    /// The weights that were read last, for the target that comes next.
    spare: Mutex<Option<Arc<LoadedModel>>>,
}

/// A pair that has no alias, by the names of model and catalog.
type Pair = ((String, String), Arc<Target>);

/// Pairs that are held; each holds its model in memory.
const MAX_PAIRS: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Changes {
    num_models: u32,
    num_loadings: u64,
}

impl Registry {
    /// Makes an empty table, whose targets are registered with the scheduler of `registrar`.
    pub(crate) fn new(
        registrar: Registrar,
        beam_width: usize,
        batch_jobs: u32,
        loader: ModelLoader,
    ) -> Self {
        Self {
            registrar,
            beam_width,
            batch_jobs: batch_jobs as usize,
            loader,
            table: ArcSwap::default(),
            change: Mutex::default(),
            pairs: Mutex::default(),
            spare: Mutex::default(),
        }
    }

    /// The table as it is now.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the table by a function over a copy of it; nothing is changed where that fails.
    /// Waits for other changes.
    pub(crate) fn change<T, E>(
        &self,
        change: impl FnOnce(&mut Table, &mut Changes) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut changes = self.lock();
        let mut table = Table::clone(&self.table.load());
        let done = change(&mut table, &mut changes)?;
        self.table.store(Arc::new(table));
        // Pairs may be of parts that are gone.
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(done)
    }

    /// Adds a model in place of one of its name, which targets keep.
    pub(crate) fn add_model(&self, name: &str, parts: ModelParts) -> Result<(), LoadError> {
        check_name("model", name)?;
        if let Some(loaded) = parts.loaded() {
            loaded.log_warnings(name);
        }
        self.change(|table, changes| {
            let index = changes.num_models;
            changes.num_models += 1;
            let (name, calibrated) = (name.to_owned(), AtomicBool::new(false));
            let served = ServedModel { name: name.clone(), index, parts, calibrated };
            table.models.insert(name, Arc::new(served));
            Ok(())
        })
    }

    /// Reads the model of a directory and adds it.
    pub(crate) fn load_model(&self, name: &str, dir: &Path) -> Result<(), LoadError> {
        check_name("model", name)?;
        let (parts, loaded) = ModelParts::read(dir, &self.loader)?;
        self.add_model(name, parts)?;
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(loaded);
        Ok(())
    }

    /// Adds a catalog in place of one of its name; targets of the latter keep it.
    pub(crate) fn add_catalog(
        &self,
        name: &str,
        source: CatalogSource,
        path: Option<PathBuf>,
    ) -> Result<Arc<ServedCatalog>, LoadError> {
        self.add(name, source, path, None)
    }

    /// Adds a catalog that follows a shared log, in place of one of its name; targets of the latter
    /// keep it.
    pub(crate) fn add_replica(
        &self,
        name: &str,
        replica: Replica,
        path: PathBuf,
    ) -> Result<Arc<ServedCatalog>, LoadError> {
        self.add(name, CatalogSource::Live(Arc::clone(replica.live())), Some(path), Some(replica))
    }

    fn add(
        &self,
        name: &str,
        source: CatalogSource,
        path: Option<PathBuf>,
        replica: Option<Replica>,
    ) -> Result<Arc<ServedCatalog>, LoadError> {
        check_name("catalog", name)?;
        self.change(|table, changes| {
            changes.num_loadings += 1;
            let name = name.to_owned();
            // Cursors of one replica are those of all.
            let shared = replica.as_ref().map(|replica| replica.status().identity.as_number());
            let loading = shared.unwrap_or(changes.num_loadings);
            let served = Arc::new(ServedCatalog {
                name: name.clone(),
                source,
                path,
                loading,
                writes: Writes::default(),
                replica,
                exported: Default::default(),
                kept: Mutex::default(),
            });
            table.catalogs.insert(name, Arc::clone(&served));
            Ok(served)
        })
    }

    /// Adds a lexicon in place of one of its name.
    pub(crate) fn add_lexicon(&self, name: &str, lexicon: Arc<Lexicon>) -> Result<(), LoadError> {
        check_name("lexicon", name)?;
        self.change(|table, _| {
            table.lexicons.insert(name.to_owned(), lexicon);
            Ok(())
        })
    }

    /// Adds a text model in place of one of its name, whose texts are written to their end.
    pub(crate) fn add_text(&self, served: ServedText) -> Result<(), LoadError> {
        check_name("text model", &served.name)?;
        self.change(|table, _| {
            table.texts.insert(served.name.clone(), Arc::new(served));
            Ok(())
        })
    }

    /// The pair that a request names: an alias, `model:catalog`, or nothing for the default. The
    /// request's key must permit the catalog.
    pub(crate) async fn target(
        self: &Arc<Self>,
        name: Option<&str>,
    ) -> Result<Arc<Target>, Problem> {
        let target = match self.find_target(name)? {
            Lookup::Target(target) => target,
            Lookup::Pair(model, catalog) => {
                permissions::check_catalog(&catalog)?;
                let this = Arc::clone(self);
                // The model may be read first.
                blocking(move || this.pair(model, catalog)).await??
            }
        };
        permissions::check_catalog(&target.catalog.name)?;
        Ok(target)
    }

    /// Joins a model and a catalog, which need not have an alias.
    pub(crate) fn join(
        &self,
        model: &Arc<ServedModel>,
        catalog: &Arc<ServedCatalog>,
    ) -> Result<Target, LoadError> {
        Target::new(model, catalog, self.registrar.lease())
    }

    /// A target of parts that are loaded, with its costs measured.
    pub(crate) fn make_target(
        &self,
        alias: &str,
        model: &str,
        catalog: &str,
    ) -> Result<Arc<Target>, LoadError> {
        check_name("target", alias)?;
        let table = self.table();
        let model = table.models.get(model).ok_or_else(|| {
            LoadError::Name(format!(
                "there is no model {model:?}; there are {}",
                names(&table.models)
            ))
        })?;
        let catalog = table.catalogs.get(catalog).ok_or_else(|| {
            LoadError::Name(format!(
                "there is no catalog {catalog:?}; there are {}",
                names(&table.catalogs)
            ))
        })?;
        let target = self.join(model, catalog)?;
        target.calibrate(&self.registrar, self.beam_width, self.batch_jobs).map_err(|error| {
            let (model, catalog) = (model.name.clone(), catalog.name.clone());
            LoadError::Pair { model, catalog, error: Box::new(error) }
        })?;
        Ok(Arc::new(target))
    }

    fn find_target(&self, name: Option<&str>) -> Result<Lookup, Problem> {
        let table = self.table();
        let Some(name) = name else {
            return match (table.default_target(), table.targets.is_empty()) {
                (Some(target), _) => Ok(Lookup::Target(Arc::clone(target))),
                (None, true) => {
                    Err(Problem::new(Kind::Unavailable, "no target is set").retry_after(1000))
                }
                (None, false) => Err(Problem::invalid(
                    "/target",
                    format!(
                        "there are several targets, {}, and none is the default; name one, or make it the default (POST /v1/targets)",
                        names(&table.targets)
                    ),
                )),
            };
        };
        if let Some(target) = table.targets.get(name) {
            return Ok(Lookup::Target(Arc::clone(target)));
        }
        let unknown = || {
            Problem::not_found(format!(
                "there is no target {name:?}; there are {}",
                names(&table.targets)
            ))
        };
        let (model, catalog) = name.split_once(':').ok_or_else(unknown)?;
        if !table.models.contains_key(model) || !table.catalogs.contains_key(catalog) {
            return Err(unknown());
        }
        let key = (model.to_owned(), catalog.to_owned());
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match touch(&mut pairs, &key) {
            Some(target) => Lookup::Target(target),
            None => Lookup::Pair(key.0, key.1),
        })
    }

    /// The pair of these names, made where it was not asked for of late.
    fn pair(&self, model: String, catalog: String) -> Result<Arc<Target>, Problem> {
        let invalid = |error: LoadError| Problem::invalid("/target", error.to_string());
        let gone = || Problem::not_found(format!("there is no pair {model}:{catalog} any more"));
        let of_table = || {
            let table = self.table();
            Some((table.models.get(&model)?.clone(), table.catalogs.get(&catalog)?.clone()))
        };
        let (served, _) = of_table().ok_or_else(gone)?;
        // Before the lock, which requests wait for.
        let loaded = served.load().map_err(invalid)?;
        let key = (model.clone(), catalog.clone());
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = touch(&mut pairs, &key) {
            return Ok(target);
        }
        // Read under the lock: a change that comes after clears the pair that is made here.
        let (served, catalog) = of_table().ok_or_else(gone)?;
        let target = Arc::new(self.join(&served, &catalog).map_err(invalid)?);
        drop(loaded);
        if pairs.len() == MAX_PAIRS {
            pairs.remove(0);
        }
        pairs.push((key, Arc::clone(&target)));
        Ok(target)
    }
}

/// Meaning of a target's name.
enum Lookup {
    Target(Arc<Target>),
    /// Model and catalog of a pair that is not held.
    Pair(String, String),
}

/// A pair that is held, which was asked for last then.
fn touch(pairs: &mut Vec<Pair>, key: &(String, String)) -> Option<Arc<Target>> {
    let place = pairs.iter().position(|(of, _)| of == key)?;
    let found = pairs.remove(place);
    let target = Arc::clone(&found.1);
    pairs.push(found);
    Some(target)
}

impl Table {
    /// The target of requests that name none.
    pub(crate) fn default_target(&self) -> Option<&Arc<Target>> {
        self.default_alias().and_then(|alias| self.targets.get(alias))
    }

    /// Alias of that target: the one that was made the default, or the only one.
    pub(crate) fn default_alias(&self) -> Option<&String> {
        let is_only = self.targets.len() == 1;
        self.default_target.as_ref().or_else(|| self.targets.keys().next().filter(|_| is_only))
    }

    /// The text model that a request names, or the only one. The request's key must permit it.
    pub(crate) fn text(&self, name: Option<&str>) -> Result<Arc<ServedText>, Problem> {
        let texts = &self.texts;
        let found = match name {
            Some(name) => texts.get(name).ok_or_else(|| {
                let there = names(texts);
                let detail = format!("there is no text model {name:?}; there are {there}");
                let problem = Problem::not_found(detail).with_code(OpenAiCode::ModelNotFound);
                Problem { errors: Problem::invalid("/model", "").errors, ..problem }
            })?,
            None => match (texts.values().next(), texts.len()) {
                (Some(only), 1) => only,
                (None, _) => {
                    return Err(Problem::not_found(
                        "there are no text models; start the server with one (--text)",
                    ));
                }
                _ => {
                    return Err(Problem::invalid(
                        "/model",
                        format!("there are several text models, {}; name one", names(texts)),
                    ));
                }
            },
        };
        audit::note(|facts| facts.model = Some(found.name.clone()));
        match permissions::permits(&found.name) {
            true => Ok(Arc::clone(found)),
            false => Err(Problem::new(
                Kind::Forbidden,
                format!("the key does not permit model {:?}", found.name),
            )),
        }
    }

    /// Points an alias at a target. The first alias becomes the default and stays it.
    pub(crate) fn set_target(&mut self, alias: &str, target: Arc<Target>) {
        keep_default(&mut self.default_target, &self.targets, alias);
        self.targets.insert(alias.to_owned(), target);
    }
}

/// Keeps the default before an alias is set: adding a target changes nothing for those who name
/// none.
pub(crate) fn keep_default<T>(
    default: &mut Option<String>,
    targets: &BTreeMap<String, T>,
    alias: &str,
) {
    if default.is_none() && targets.len() <= 1 {
        let first = targets.keys().next().map_or(alias, String::as_str);
        *default = Some(first.to_owned());
    }
}

impl Target {
    fn new(
        model: &Arc<ServedModel>,
        catalog: &Arc<ServedCatalog>,
        lease: Lease,
    ) -> Result<Self, LoadError> {
        let pair = |error| LoadError::Pair {
            model: model.name.clone(),
            catalog: catalog.name.clone(),
            error: Box::new(error),
        };
        let loaded = model.load()?;
        let recommender = model.recommender(&loaded, catalog.source.clone()).map_err(pair)?;
        let (model, catalog) = (Arc::clone(model), Arc::clone(catalog));
        let (recommender, kept) = (Arc::new(recommender), Mutex::default());
        Ok(Self { model, loaded, catalog, recommender, lease, kept })
    }

    /// Fits the model's costs and tells the scheduler, once a model.
    pub(crate) fn calibrate(
        &self,
        registrar: &Registrar,
        beam_width: usize,
        batch_jobs: usize,
    ) -> Result<(), RecommendError> {
        if self.model.calibrated.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let costs = engine::calibrate(&self.recommender, self.model.index, beam_width, batch_jobs)?;
        tracing::info!(model = self.model.name, ?costs, "calibrated");
        registrar.set_costs(self.model.index, costs);
        Ok(())
    }

    /// A kept generation, spelled; held for the requests that follow.
    ///
    /// The caller has found that it is kept. Opening it maps files: not for a thread that others
    /// wait for.
    pub(crate) fn kept_view(&self, generation: u64) -> Result<Arc<SpelledView>, LoadError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|(of, _)| *of == generation) {
            let found = kept.remove(place);
            kept.push(found.clone());
            return Ok(found.1);
        }
        let snapshot = self.catalog.kept_snapshot(generation)?;
        let pair = |error| LoadError::Pair {
            model: self.model.name.clone(),
            catalog: self.catalog.name.clone(),
            error: Box::new(error),
        };
        let recommender = self.model.recommender(&self.loaded, snapshot.into()).map_err(pair)?;
        let view = recommender.view().map_err(pair)?;
        if kept.len() == MAX_KEPT_VIEWS {
            kept.remove(0);
        }
        kept.push((generation, Arc::clone(&view)));
        Ok(view)
    }
}

impl ServedCatalog {
    /// Numbers of a live catalog; `None` for a frozen one.
    pub(crate) fn status(&self) -> Option<LiveStatus> {
        match &self.source {
            CatalogSource::Live(live) => Some(live.status()),
            CatalogSource::Reader(reader) => Some(reader.status()),
            CatalogSource::Frozen(_) | CatalogSource::Snapshot(_) => None,
        }
    }

    /// Generations that are kept, in the order in which they were.
    pub(crate) fn generations(&self) -> Vec<KeptGeneration> {
        match &self.source {
            CatalogSource::Live(live) => live.generations(),
            CatalogSource::Reader(reader) => reader.generations(),
            CatalogSource::Frozen(_) | CatalogSource::Snapshot(_) => Vec::new(),
        }
    }

    /// A kept generation; held for the requests that follow.
    ///
    /// The caller has found that it is kept. Opening it maps files: not for a thread that others
    /// wait for.
    pub(crate) fn kept_snapshot(&self, generation: u64) -> Result<Arc<Snapshot>, LoadError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = kept.iter().position(|(of, _)| *of == generation) {
            let found = kept.remove(place);
            kept.push(found.clone());
            return Ok(found.1);
        }
        let snapshot = match (&self.source, &self.path) {
            (CatalogSource::Reader(reader), _) => reader.generation(&generation.to_string())?,
            (CatalogSource::Live(_), Some(path)) => {
                let options = ReaderOptions { poll: None, ..ReaderOptions::default() };
                LiveReader::open_with(path, options)?.generation(&generation.to_string())?
            }
            _ => {
                return Err(LoadError::Name(format!("catalog {} has no generations", self.name)));
            }
        };
        if kept.len() == MAX_KEPT_VIEWS {
            kept.remove(0);
        }
        kept.push((generation, Arc::clone(&snapshot)));
        Ok(snapshot)
    }

    /// The live catalog that this process writes.
    pub(crate) fn live(&self) -> Option<&Arc<LiveCatalog>> {
        match &self.source {
            CatalogSource::Live(live) => Some(live),
            _ => None,
        }
    }
}

/// Opens a catalog file, or the directory of a live one: to write it, or to follow another process
/// that does.
pub(crate) fn open_source(path: &Path, reads_only: bool) -> Result<CatalogSource, LoadError> {
    match (path.is_dir(), reads_only) {
        (false, _) => Ok(Catalog::open(path)?.into()),
        (true, true) => Ok(LiveReader::open_with(path, ReaderOptions::default())?.into()),
        (true, false) => Ok(LiveCatalog::open_with(path, LiveOptions::default())?.into()),
    }
}
