//! A log that several servers share: catalogs that follow theirs, and the table of models, catalogs
//! and targets.
//!
//! What the log has is the truth, and the data directory a cache of it: `replicas/` has a directory
//! for each catalog by name and identity, and one for each model by name and hash. A thread applies
//! each new version of the table: it loads what is new, measures new pairs, and switches all
//! targets in one step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use palmette_catalog::Catalog;
use palmette_catalog_live::replica::Base;
use palmette_catalog_live::{
    LiveCatalog, LiveOptions, LiveReader, ReaderOptions, Schema, SyncPolicy,
};
use palmette_catalog_replica::{
    CatalogLog, Identity, LogError, Registry, RegistryLog, Replica, ReplicaOptions,
};
use palmette_recommend::{LevelFormat, Prompts};
use tokio::runtime::{Handle, Runtime};

use super::catalog_files::CATALOGS;
use super::load_error::LoadError;
use super::models::ServedModel;
use super::name::{check_name, names};
use super::registry::{Registry as ServedRegistry, ServedCatalog, Target, keep_default};
use crate::problem::{Kind, Problem};

/// Directory of the copies below the data directory.
const REPLICAS: &str = "replicas";
/// File in it that names the log.
const LOG: &str = "log";
/// Times that the store's own pause between looks goes by between looks at the table.
const POLLS: u32 = 3;

/// A shared log to be followed, and what it begins with.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Address of the store: `file://…`, `s3://…`, `gs://…`, `az://…`, `postgres://…`.
    pub address: String,
    /// Models by name and directory, which the log gets where it has none of the name.
    pub models: Vec<(String, PathBuf)>,
    /// Catalogs by name, and the file or live directory with which the log begins one of the name.
    pub catalogs: Vec<(String, PathBuf)>,
    /// Alias, model and catalog of targets, which the log gets where it has none of the alias.
    pub targets: Vec<(String, String, String)>,
    /// Choices of the catalogs' replicas.
    pub replicas: ReplicaOptions,
}

/// A log that this server follows.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// `None` once it is being ended.
    runtime: Option<Runtime>,
    registry: RegistryLog,
    root: PathBuf,
    options: ReplicaOptions,
    /// Number of the version that was applied; the lock is held by whoever applies one.
    applied: Mutex<u64>,
    shown: Mutex<TableProgress>,
    is_closing: AtomicBool,
}

/// Progress with the table, for readiness.
#[derive(Debug, Default)]
struct TableProgress {
    /// The last time that the newest version was known here.
    looked: Option<Instant>,
    /// True while one is being applied, which takes the time of loading a model.
    is_applying: bool,
    /// The problem, and whether it stops this server at its version.
    problem: Option<(String, bool)>,
}

impl Cluster {
    /// Opens a log and gives it what it does not have; copies lie below a data directory, which the
    /// caller has locked.
    pub(crate) fn open(data: &Path, config: LogConfig) -> Result<Arc<Self>, LoadError> {
        let system = |path: &Path, error: &dyn std::fmt::Display| {
            LoadError::System(format!("{}: {error}", path.display()))
        };
        let root = data.join(REPLICAS);
        // Uploads lie in these on their way to the log.
        for dir in [root.clone(), data.join("models"), data.join(CATALOGS)] {
            std::fs::create_dir_all(&dir).map_err(|error| system(&dir, &error))?;
        }
        // What was being fetched when the process before ended.
        for entry in std::fs::read_dir(&root).map_err(|error| system(&root, &error))? {
            let entry = entry.map_err(|error| system(&root, &error))?;
            if !entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let removed = match entry.path().is_dir() {
                true => std::fs::remove_dir_all(entry.path()),
                false => std::fs::remove_file(entry.path()),
            };
            removed.map_err(|error| system(&root, &error))?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("log")
            .enable_all()
            .build()
            .map_err(|error| LoadError::System(error.to_string()))?;
        let store = runtime.block_on(palmette_catalog_replica::open(&config.address))?;
        let registry = RegistryLog::new(store);
        let identity = runtime.block_on(registry.cluster())?;
        check_same_log(&root.join(LOG), &identity, &config.address)?;
        let this = Self {
            runtime: Some(runtime),
            registry,
            root,
            options: config.replicas.clone(),
            applied: Mutex::default(),
            shown: Mutex::default(),
            is_closing: AtomicBool::new(false),
        };
        this.give(&config)?;
        Ok(Arc::new(this))
    }

    fn runtime(&self) -> &Handle {
        // It is taken by `drop` alone.
        self.runtime.as_ref().expect("until it is dropped").handle()
    }

    /// Gives the log the models, catalogs and targets that it does not have.
    fn give(&self, config: &LogConfig) -> Result<(), LoadError> {
        let there = self.newest()?;
        let mut models = BTreeMap::new();
        for (name, dir) in &config.models {
            check_name("model", name)?;
            let put = self.runtime().block_on(self.registry.put_model(name, dir))?;
            models.insert(name.clone(), put);
        }
        let mut catalogs = BTreeMap::new();
        for (name, path) in &config.catalogs {
            check_name("catalog", name)?;
            if there.catalogs.contains_key(name) {
                tracing::info!(catalog = name, "the log has this catalog; its file is not read");
                continue;
            }
            let of_target = config.targets.iter().find(|(_, _, catalog)| catalog == name);
            let model = of_target.and_then(|(_, model, _)| {
                config.models.iter().find(|(name, _)| name == model).map(|(_, dir)| dir)
            });
            let base = initial(path, model.map(PathBuf::as_path))?;
            catalogs.insert(name.clone(), self.begin(name, &base)?);
        }
        let changed = self.change(|registry| {
            for (name, files) in &models {
                match registry.models.get(name) {
                    Some(there) if there.hash != files.hash => {
                        return Err(LoadError::Name(format!(
                            "the log has a model {name:?} with other files ({}, these are {}); give this one another name",
                            there.hash, files.hash
                        )));
                    }
                    Some(_) => {}
                    None => _ = registry.models.insert(name.clone(), files.clone()),
                }
            }
            for (name, identity) in &catalogs {
                // Another process may have begun it meanwhile: that one counts.
                registry.catalogs.entry(name.clone()).or_insert_with(|| identity.clone());
            }
            for (alias, model, catalog) in &config.targets {
                check_pair(registry, model, catalog)?;
                if !registry.targets.contains_key(alias) {
                    keep_default(&mut registry.default_target, &registry.targets, alias);
                    registry.targets.insert(alias.clone(), (model.clone(), catalog.clone()));
                }
            }
            Ok(())
        });
        changed.map(|_| ())
    }

    /// The newest table.
    fn newest(&self) -> Result<Registry, LoadError> {
        let newest = self.runtime().block_on(self.registry.newest())?;
        Ok(newest.map(|(_, registry)| registry).unwrap_or_default())
    }

    /// Begins the log of a catalog; returns its identity.
    pub(crate) fn begin(&self, name: &str, base: &Base) -> Result<String, LoadError> {
        let store = Arc::clone(self.registry.store());
        let log = self.runtime().block_on(CatalogLog::begin(store, name, base))?;
        Ok(log.identity().to_string())
    }

    /// Puts the files of a model into the log.
    pub(crate) fn put_model(
        &self,
        name: &str,
        dir: &Path,
    ) -> Result<palmette_catalog_replica::ModelFiles, LoadError> {
        Ok(self.runtime().block_on(self.registry.put_model(name, dir))?)
    }

    /// Makes a version of the table.
    pub(crate) fn change<E: From<LogError>>(
        &self,
        change: impl FnMut(&mut Registry) -> Result<(), E>,
    ) -> Result<(u64, Registry), E> {
        self.runtime().block_on(self.registry.change(change))
    }

    /// Makes a version of the table, and applies it here.
    pub(crate) fn change_and_apply(
        &self,
        served: &ServedRegistry,
        change: impl FnMut(&mut Registry) -> Result<(), ChangeProblem>,
    ) -> Result<(), Problem> {
        self.change(change).map_err(|ChangeProblem(problem)| problem)?;
        self.apply(served).map_err(|error| {
            let detail = format!("the table was changed, and cannot be applied here: {error}");
            Problem::new(Kind::Unavailable, detail).retry_after(1000)
        })
    }

    /// Applies the newest version of the table, where it was not applied.
    pub(crate) fn apply(&self, served: &ServedRegistry) -> Result<(), LoadError> {
        let mut number = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        let applied = self.try_apply(served, &mut number);
        let mut shown = self.shown();
        shown.is_applying = false;
        match &applied {
            Ok(()) => {
                if shown.problem.take().is_some() {
                    tracing::info!(version = *number, "the table of targets is followed again");
                }
                shown.looked = Some(Instant::now());
            }
            Err(error) => {
                let is_passing = match error {
                    LoadError::Log(error) => error.is_passing(),
                    LoadError::Live(error) => error.is_passing(),
                    _ => false,
                };
                let problem = (error.to_string(), !is_passing);
                if shown.problem.as_ref() != Some(&problem) {
                    tracing::error!(%error, "the table of targets is not followed");
                    shown.problem = Some(problem);
                }
            }
        }
        applied
    }

    fn try_apply(&self, served: &ServedRegistry, applied: &mut u64) -> Result<(), LoadError> {
        let newest = self.runtime().block_on(self.registry.newest())?;
        let Some((number, registry)) = newest.filter(|(number, _)| *number != *applied) else {
            return Ok(());
        };
        self.shown().is_applying = true;
        let table = served.table();
        for (name, files) in &registry.models {
            if table.models.contains_key(name) {
                continue;
            }
            let dir = self.root.join(format!("model-{name}-{}", files.hash));
            if !dir.is_dir() {
                self.runtime().block_on(self.registry.fetch_model(files, &dir))?;
            }
            served.load_model(name, &dir)?;
        }
        let identity_of = |catalog: &ServedCatalog| {
            catalog.replica.as_ref().map(|replica| replica.status().identity.to_string())
        };
        for (name, identity) in &registry.catalogs {
            let there = table.catalogs.get(name);
            if there.and_then(|catalog| identity_of(catalog)).as_ref() == Some(identity) {
                continue;
            }
            let replica = self.open_replica(name, identity)?;
            let path = self.root.join(format!("{name}-{identity}"));
            served.add_replica(name, replica, path)?;
        }
        let now = served.table();
        let mut made: Vec<(String, Arc<Target>)> = Vec::new();
        for (alias, (model, catalog)) in &registry.targets {
            let is_same = now.targets.get(alias).is_some_and(|target| {
                let of = |name: &String| now.catalogs.get(name);
                target.model.name == *model
                    && target.catalog.name == *catalog
                    && of(catalog).is_some_and(|of| Arc::ptr_eq(of, &target.catalog))
            });
            if !is_same {
                made.push((alias.clone(), served.make_target(alias, model, catalog)?));
            }
        }
        let gone = served.change(|table, _| {
            table.targets.extend(made);
            table.targets.retain(|alias, _| registry.targets.contains_key(alias));
            table.default_target.clone_from(&registry.default_target);
            table.models.retain(|name, _| registry.models.contains_key(name));
            let is_gone = |name: &String| !registry.catalogs.contains_key(name);
            let gone: Vec<_> =
                table.catalogs.keys().filter(|name| is_gone(name)).cloned().collect();
            let gone = gone.into_iter().filter_map(|name| table.catalogs.remove(&name));
            Ok::<_, LoadError>(gone.collect::<Vec<_>>())
        })?;
        for (_, model) in
            table.models.iter().filter(|(name, _)| !registry.models.contains_key(*name))
        {
            self.remove_model(model);
        }
        for catalog in gone.iter().chain(table.catalogs.values()) {
            let now = served.table();
            if !now.catalogs.values().any(|served| Arc::ptr_eq(served, catalog)) {
                self.leave(catalog);
            }
        }
        tracing::info!(version = number, "the table of targets was applied");
        *applied = number;
        Ok(())
    }

    fn shown(&self) -> MutexGuard<'_, TableProgress> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_replica(&self, name: &str, identity: &str) -> Result<Replica, LoadError> {
        let identity: Identity = identity.parse().map_err(LoadError::System)?;
        let log = CatalogLog::new(Arc::clone(self.registry.store()), name, identity);
        let (runtime, options) = (self.runtime().clone(), self.options.clone());
        Ok(Replica::open(runtime, log, name, &self.root, options)?)
    }

    /// Ends the replica of a catalog that is gone, and removes its copy.
    fn leave(&self, catalog: &ServedCatalog) {
        let Some(replica) = &catalog.replica else { return };
        replica.close();
        replica.live().close();
        let dir = self.root.join(format!("{}-{}", catalog.name, replica.status().identity));
        if let Err(error) = std::fs::remove_dir_all(&dir) {
            tracing::warn!(%error, dir = %dir.display(), "the copy of a catalog that is gone is left");
        }
    }

    /// Removes the copy of a model that is gone; whoever has it in memory keeps it.
    fn remove_model(&self, model: &ServedModel) {
        let Some(dir) = model.parts.dir().filter(|dir| dir.starts_with(&self.root)) else { return };
        if let Err(error) = std::fs::remove_dir_all(dir) {
            tracing::warn!(%error, dir = %dir.display(), "the copy of a model that is gone is left");
        }
    }

    /// Begins to follow the table.
    pub(crate) fn follow(self: &Arc<Self>, served: &Arc<ServedRegistry>) -> Result<(), LoadError> {
        let (this, served) = (Arc::downgrade(self), Arc::downgrade(served));
        let follow = move || while follow_once(&this, &served) {};
        let thread = std::thread::Builder::new().name("targets".into()).spawn(follow);
        thread.map(drop).map_err(|error| LoadError::System(error.to_string()))
    }

    /// Reasons for not being ready.
    pub(crate) fn reasons(&self, served: &ServedRegistry, max_lag: Duration) -> Vec<String> {
        let mut reasons = Vec::new();
        {
            let shown = self.shown();
            let lag = shown.looked.map(|at| at.elapsed()).filter(|_| !shown.is_applying);
            let lag = lag.or(shown.is_applying.then_some(Duration::ZERO));
            let problem = shown.problem.as_ref().map(|(problem, stops)| (problem.as_str(), *stops));
            reasons.extend(reason("the table of targets", lag, problem, max_lag));
        }
        for (name, catalog) in &served.table().catalogs {
            let Some(replica) = &catalog.replica else { continue };
            let status = replica.status();
            let problem = status.problem.as_deref().map(|problem| (problem, status.is_stopped));
            reasons.extend(reason(&format!("catalog {name}"), status.lag, problem, max_lag));
        }
        reasons
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::Relaxed);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Looks at the table once; false when nobody serves any more.
fn follow_once(cluster: &Weak<Cluster>, served: &Weak<ServedRegistry>) -> bool {
    let Some(this) = cluster.upgrade() else { return false };
    let Some(serving) = served.upgrade() else { return false };
    if this.is_closing.load(Ordering::Relaxed) {
        return false;
    }
    let pause = match this.apply(&serving) {
        Ok(()) => this.registry.store().poll() * POLLS,
        Err(_) => Duration::from_secs(1),
    };
    drop(serving);
    this.runtime().block_on(this.registry.wait(pause));
    true
}

/// The reason for not being ready of something that follows a log.
fn reason(
    what: &str,
    lag: Option<Duration>,
    problem: Option<(&str, bool)>,
    max_lag: Duration,
) -> Option<String> {
    let because = problem.map_or_else(String::new, |(problem, _)| format!(": {problem}"));
    match (lag, problem) {
        (_, Some((problem, true))) => Some(format!("{what}: {problem}")),
        (None, _) => Some(format!("{what} has not caught up with its log yet{because}")),
        (Some(lag), _) if lag > max_lag => Some(format!(
            "{what} is {:.1} s behind its log, more than --max-lag-seconds {}{because}",
            lag.as_secs_f64(),
            max_lag.as_secs_f64()
        )),
        _ => None,
    }
}

/// Refuses a directory that has copies of another log.
fn check_same_log(file: &Path, identity: &str, address: &str) -> Result<(), LoadError> {
    let system = |error: std::io::Error| LoadError::System(format!("{}: {error}", file.display()));
    match std::fs::read_to_string(file) {
        Ok(found) if found.trim() == identity => Ok(()),
        Ok(found) => Err(LoadError::System(format!(
            "{}: the data directory has copies of the log {}, and {address} is the log {identity}: were two logs swapped? Give the log \
             that it follows, or another directory",
            file.display(),
            found.trim()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::write(file, format!("{identity}\n")).map_err(system)
        }
        Err(error) => Err(system(error)),
    }
}

/// Refuses a pair of which the table does not have both.
pub(crate) fn check_pair(registry: &Registry, model: &str, catalog: &str) -> Result<(), LoadError> {
    if !registry.models.contains_key(model) {
        let there = names(&registry.models);
        return Err(LoadError::Name(format!("there is no model {model:?}; there are {there}")));
    }
    if !registry.catalogs.contains_key(catalog) {
        let there = names(&registry.catalogs);
        return Err(LoadError::Name(format!("there is no catalog {catalog:?}; there are {there}")));
    }
    Ok(())
}

/// The base with which the log of a catalog begins: of a file, or of the directory of a live
/// catalog.
fn initial(path: &Path, model: Option<&Path>) -> Result<Base, LoadError> {
    if path.is_dir() {
        let reader =
            LiveReader::open_with(path, ReaderOptions { poll: None, ..Default::default() })?;
        return Ok(Base::initial(reader.snapshot()));
    }
    let catalog = Catalog::open(path)?;
    let schema = match model {
        None => None,
        Some(dir) => {
            let prompts = Prompts::read(dir, None)?;
            let levels = &prompts.format().levels;
            let sizes: Vec<u32> = levels.iter().map(LevelFormat::num_codes).collect();
            let of_items = Schema::of_catalog(&catalog);
            Some(Schema { num_levels: Some(sizes.len()), codes_per_level: Some(sizes), ..of_items })
        }
    };
    base_of(catalog, schema)
}

/// The base of a catalog's items.
pub(crate) fn base_of(catalog: Catalog, schema: Option<Schema>) -> Result<Base, LoadError> {
    let dir = tempfile::tempdir().map_err(|error| LoadError::System(error.to_string()))?;
    let options = LiveOptions { sync: SyncPolicy::Never, ..LiveOptions::default() };
    let live = LiveCatalog::create_with(dir.path(), Some(catalog), schema, options)?;
    // Its files stay mapped after the directory is gone.
    Ok(Base::initial(live.snapshot()))
}

/// A change of the table that was refused.
pub(crate) struct ChangeProblem(pub(crate) Problem);

impl From<LogError> for ChangeProblem {
    fn from(error: LogError) -> Self {
        Self(Problem::new(Kind::Unavailable, error.to_string()).retry_after(1000))
    }
}
