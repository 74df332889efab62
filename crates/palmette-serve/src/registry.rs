//! Registry of models, catalogs and targets: one immutable table, replaced as a whole.
//!
//! A **target** is a pair of a model and a catalog under an alias: semantic IDs are a model's own, so that a new model needs its
//! catalog at the same moment. A request takes the table once and keeps its pair to the end, whatever is switched meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use palmette_catalog::Catalog;
use palmette_live::{
    CatalogSource, KeptGeneration, LiveCatalog, LiveOptions, LiveReader, LiveStatus, ReaderOptions,
    Snapshot,
};
use palmette_model::Model;
use palmette_model::draft::DraftHead;
use palmette_recommend::{PromptFormat, RecommendError, Recommender, SpelledView};

use crate::api::catalogs::Exported;
use crate::engine::{self, Engine, Lease, Leases};
use crate::keys::{self, KeysError};
use crate::problem::{Kind, Problem};
use crate::texts::ServedText;
use crate::writes::Writes;

/// A model, and the format of its prompts.
#[derive(Debug)]
pub(crate) struct ServedModel {
    pub(crate) name: String,
    /// Number of its costs in the scheduler.
    pub(crate) index: u32,
    pub(crate) model: Arc<Model>,
    pub(crate) format: PromptFormat,
    pub(crate) draft_head: Option<Arc<DraftHead>>,
    /// True once its costs are known.
    calibrated: AtomicBool,
}

/// A catalog.
#[derive(Debug)]
pub(crate) struct ServedCatalog {
    pub(crate) name: String,
    pub(crate) source: CatalogSource,
    /// File or directory of it; `None` where it is in memory alone.
    pub(crate) path: Option<PathBuf>,
    /// Number of this loading in the process: answers of a catalog that was replaced are not those of the new one.
    pub(crate) loading: u64,
    pub(crate) writes: Writes,
    /// The file of the last export.
    pub(crate) exported: Arc<tokio::sync::Mutex<Option<Arc<Exported>>>>,
    /// Kept generations that were asked for, the latest last.
    kept: Mutex<Vec<(u64, Arc<Snapshot>)>>,
}

/// A pair that requests are answered by.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) model: Arc<ServedModel>,
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
    /// By alias.
    pub(crate) targets: BTreeMap<String, Arc<Target>>,
    /// Text models.
    pub(crate) texts: BTreeMap<String, Arc<ServedText>>,
}

/// The table, and the lock of those that change it.
#[derive(Debug)]
pub(crate) struct Registry {
    leases: Leases,
    table: ArcSwap<Table>,
    change: Mutex<Changes>,
    /// Pairs that were asked for as `model:catalog` and have no alias.
    pairs: Mutex<HashMap<(String, String), Arc<Target>>>,
}

#[derive(Debug, Default)]
pub(crate) struct Changes {
    num_models: u32,
    num_loadings: u64,
}

/// A server that cannot start, or cannot load what it was told to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The model's files.
    #[error(transparent)]
    Model(#[from] palmette_model::LoadError),
    /// The model's `semantic_ids.json`.
    #[error(transparent)]
    Format(#[from] palmette_recommend::FormatError),
    /// A catalog file.
    #[error(transparent)]
    Catalog(#[from] palmette_catalog::FileError),
    /// The directory of a live catalog.
    #[error(transparent)]
    Live(#[from] palmette_live::LiveError),
    /// A model and a catalog that do not fit together.
    #[error("model {model} with catalog {catalog}: {error}")]
    Pair {
        /// Name of it.
        model: String,
        /// Name of it.
        catalog: String,
        /// The reason.
        error: Box<RecommendError>,
    },
    /// The file of keys.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// A name that is taken, unknown, or no name.
    #[error("{0}")]
    Name(String),
    /// A text model.
    #[error("{0}")]
    Text(String),
    /// The system.
    #[error("{0}")]
    System(String),
}

/// The longest name.
const MAX_NAME: usize = 64;

/// Refuses what is no name: it stands in paths, logs, metrics and files.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), LoadError> {
    let is_sound = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !name.starts_with('.');
    match is_sound {
        true => Ok(()),
        false => Err(LoadError::Name(format!(
            "{name:?} is no name of a {what}: 1 to {MAX_NAME} of A-Z a-z 0-9 . _ -, not beginning with a dot"
        ))),
    }
}

impl Registry {
    /// An empty table, whose targets have workers kept in the streams that these leases are of.
    pub(crate) fn new(leases: Leases) -> Self {
        let (table, change, pairs) = (ArcSwap::default(), Mutex::default(), Mutex::default());
        Self { leases, table, change, pairs }
    }

    /// The table as it is now.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the table by a function over a copy of it; nothing is changed where that fails. Waits for other changes.
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
        Ok(done)
    }

    /// Adds a model in place of one of its name.
    pub(crate) fn add_model(
        &self,
        name: &str,
        model: Arc<Model>,
        format: PromptFormat,
        draft_head: Option<Arc<DraftHead>>,
    ) -> Result<Arc<ServedModel>, LoadError> {
        check_name("model", name)?;
        self.change(|table, changes| {
            let index = changes.num_models;
            changes.num_models += 1;
            let name = name.to_owned();
            let served = ServedModel {
                name: name.clone(),
                index,
                model,
                format,
                draft_head,
                calibrated: AtomicBool::new(false),
            };
            let served = Arc::new(served);
            table.models.insert(name, Arc::clone(&served));
            Ok(served)
        })
    }

    /// Adds a catalog in place of one of its name; targets of the latter keep it.
    pub(crate) fn add_catalog(
        &self,
        name: &str,
        source: CatalogSource,
        path: Option<PathBuf>,
    ) -> Result<Arc<ServedCatalog>, LoadError> {
        check_name("catalog", name)?;
        self.change(|table, changes| {
            changes.num_loadings += 1;
            let (name, loading) = (name.to_owned(), changes.num_loadings);
            let served = Arc::new(ServedCatalog {
                name: name.clone(),
                source,
                path,
                loading,
                writes: Writes::default(),
                exported: Default::default(),
                kept: Mutex::default(),
            });
            table.catalogs.insert(name, Arc::clone(&served));
            Ok(served)
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

    /// The pair that a request names: an alias, `model:catalog`, or nothing where there is one target. The request's key must permit
    /// the catalog.
    pub(crate) fn target(&self, name: Option<&str>) -> Result<Arc<Target>, Problem> {
        let target = self.find_target(name)?;
        keys::check_catalog(&target.catalog.name)?;
        Ok(target)
    }

    /// Joins a model and a catalog, which need not have an alias.
    pub(crate) fn join(
        &self,
        model: &Arc<ServedModel>,
        catalog: &Arc<ServedCatalog>,
    ) -> Result<Target, LoadError> {
        Target::new(model, catalog, self.leases.lease())
    }

    fn find_target(&self, name: Option<&str>) -> Result<Arc<Target>, Problem> {
        let table = self.table();
        let Some(name) = name else {
            let mut all = table.targets.values();
            return match (all.next(), all.next()) {
                (Some(only), None) => Ok(Arc::clone(only)),
                (None, _) => {
                    Err(Problem::new(Kind::Unavailable, "no target is set").retry_after(1000))
                }
                _ => Err(Problem::invalid(
                    "/target",
                    format!("there are several targets, {}; name one", names(&table.targets)),
                )),
            };
        };
        if let Some(target) = table.targets.get(name) {
            return Ok(Arc::clone(target));
        }
        let unknown = || {
            Problem::not_found(format!(
                "there is no target {name:?}; there are {}",
                names(&table.targets)
            ))
        };
        let (model, catalog) = name.split_once(':').ok_or_else(unknown)?;
        let key = (model.to_owned(), catalog.to_owned());
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: a change that comes after clears the pair that is made here.
        let table = self.table();
        if let Some(pair) = pairs.get(&key) {
            return Ok(Arc::clone(pair));
        }
        let (Some(model), Some(catalog)) = (table.models.get(model), table.catalogs.get(catalog))
        else {
            return Err(unknown());
        };
        let target = self
            .join(model, catalog)
            .map_err(|error| Problem::invalid("/target", error.to_string()))?;
        let target = Arc::new(target);
        pairs.insert(key, Arc::clone(&target));
        Ok(target)
    }
}

/// Names for a message.
pub(crate) fn names<T>(of: &BTreeMap<String, T>) -> String {
    match of.len() {
        0 => "none".to_owned(),
        _ => of.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
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
        let recommender = model.recommender(catalog.source.clone()).map_err(pair)?;
        let (model, catalog) = (Arc::clone(model), Arc::clone(catalog));
        let (recommender, kept) = (Arc::new(recommender), Mutex::default());
        Ok(Self { model, catalog, recommender, lease, kept })
    }

    /// Fits the model's costs and tells the scheduler, once a model.
    pub(crate) fn calibrate(
        &self,
        engine: &Engine,
        beam_width: usize,
    ) -> Result<(), RecommendError> {
        if self.model.calibrated.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let costs = engine::calibrate(&self.recommender, self.model.index, beam_width)?;
        tracing::info!(model = self.model.name, ?costs, "calibrated");
        engine.set_costs(self.model.index, costs);
        Ok(())
    }

    /// A kept generation, spelled; held for the requests that follow.
    ///
    /// The caller has found that it is kept. Opening it maps files: not for a thread that others wait for.
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
        let recommender = self.model.recommender(snapshot.into()).map_err(pair)?;
        let view = recommender.view().map_err(pair)?;
        if kept.len() == MAX_KEPT_VIEWS {
            kept.remove(0);
        }
        kept.push((generation, Arc::clone(&view)));
        Ok(view)
    }
}

impl ServedModel {
    fn recommender(&self, source: CatalogSource) -> Result<Recommender, RecommendError> {
        let recommender = Recommender::new(Arc::clone(&self.model), source, self.format.clone())?;
        match &self.draft_head {
            Some(head) => recommender.with_draft_head(Arc::clone(head)),
            None => Ok(recommender),
        }
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
    /// The caller has found that it is kept. Opening it maps files: not for a thread that others wait for.
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
                LiveReader::open(path, options)?.generation(&generation.to_string())?
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

/// Opens a catalog file, or the directory of a live one: to write it, or to follow another process that does.
pub(crate) fn open_source(path: &Path, reads_only: bool) -> Result<CatalogSource, LoadError> {
    match (path.is_dir(), reads_only) {
        (false, _) => Ok(Catalog::open(path)?.into()),
        (true, true) => Ok(LiveReader::open(path, ReaderOptions::default())?.into()),
        (true, false) => Ok(LiveCatalog::open(path, LiveOptions::default())?.into()),
    }
}
