//! Models of recommendations: what is known of each, and its weights while a target needs them.
//!
//! A model that is read from a directory is in memory while a target, or a request that names the
//! pair, holds it; the next that needs it reads it again. So models that nobody asks cost nothing,
//! however many there are.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use palmette_catalog_live::CatalogSource;
use palmette_model::SharedEngine;
use palmette_model::draft::DraftHead;
use palmette_recommend::{Prompts, RecommendError, Recommender};

use super::load_error::LoadError;
use crate::model_loader::ModelLoader;

/// A model, and its prompts.
#[derive(Debug)]
pub(crate) struct ServedModel {
    pub(crate) name: String,
    /// Number of its costs in the scheduler.
    pub(crate) index: u32,
    pub(crate) parts: ModelParts,
    /// True once its costs are known.
    pub(crate) calibrated: AtomicBool,
}

/// Facts of a model, in memory or not.
#[derive(Debug)]
pub(crate) struct ModelParts {
    pub(crate) prompts: Prompts,
    pub(crate) num_parameters: usize,
    pub(crate) vocab_size: usize,
    pub(crate) has_draft_head: bool,
    /// Name of the device that computes it.
    pub(crate) device: String,
    source: Source,
}

/// Weights of a model.
#[derive(Debug)]
pub(crate) struct LoadedModel {
    engine: SharedEngine,
    draft_head: Option<Arc<DraftHead>>,
}

#[derive(Debug)]
enum Source {
    Memory(Arc<LoadedModel>),
    Directory { dir: PathBuf, loader: ModelLoader, stamp: Stamp, loaded: Mutex<Weak<LoadedModel>> },
}

/// Names, lengths and times of the files of a directory: a model whose files were replaced is
/// another.
#[derive(Debug, PartialEq, Eq)]
struct Stamp(Vec<(std::ffi::OsString, u64, Option<SystemTime>)>);

impl Stamp {
    fn of(dir: &Path) -> std::io::Result<Self> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            // Where a link leads.
            let about = std::fs::metadata(entry.path())?;
            files.push((entry.file_name(), about.len(), about.modified().ok()));
        }
        files.sort_unstable();
        Ok(Self(files))
    }
}

impl LoadedModel {
    /// Place where it is computed.
    pub(crate) fn engine(&self) -> &SharedEngine {
        &self.engine
    }

    /// Writes what it warns of to the log, under the model's name.
    pub(crate) fn log_warnings(&self, model: &str) {
        let model = model.to_owned();
        self.engine.on_warning(Box::new(move |warning| tracing::warn!(model, "{warning}")));
    }
}

/// Name of the device that computes a model.
pub(crate) fn device_name(engine: &SharedEngine) -> String {
    engine.device_use().map_or_else(|| "cpu".to_owned(), |of| of.device)
}

impl ModelParts {
    /// A model that is in memory, and stays.
    pub(crate) fn in_memory(engine: SharedEngine, prompts: Prompts) -> Self {
        let loaded = Arc::new(LoadedModel { engine, draft_head: None });
        Self::new(prompts, &loaded, Source::Memory(Arc::clone(&loaded)))
    }

    /// The model of a directory, and its weights, which were read to see that they can be.
    pub(crate) fn read(
        dir: &Path,
        loader: &ModelLoader,
    ) -> Result<(Self, Arc<LoadedModel>), LoadError> {
        let stamp = stamp(dir)?;
        let (prompts, loaded) = read(dir, loader)?;
        let (dir, loader) = (dir.to_owned(), loader.clone());
        let kept = Mutex::new(Arc::downgrade(&loaded));
        let source = Source::Directory { dir, loader, stamp, loaded: kept };
        Ok((Self::new(prompts, &loaded, source), loaded))
    }

    fn new(prompts: Prompts, loaded: &LoadedModel, source: Source) -> Self {
        Self {
            prompts,
            num_parameters: loaded.engine.num_parameters(),
            vocab_size: loaded.engine.config().vocab_size,
            has_draft_head: loaded.draft_head.is_some() || loaded.engine.draft_head().is_some(),
            device: device_name(&loaded.engine),
            source,
        }
    }

    /// Directory that it is read from.
    pub(crate) fn dir(&self) -> Option<&Path> {
        match &self.source {
            Source::Memory(_) => None,
            Source::Directory { dir, .. } => Some(dir),
        }
    }

    /// The weights, where they are in memory.
    pub(crate) fn loaded(&self) -> Option<Arc<LoadedModel>> {
        match &self.source {
            Source::Memory(loaded) => Some(Arc::clone(loaded)),
            Source::Directory { loaded, .. } => {
                loaded.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
            }
        }
    }
}

impl ServedModel {
    /// The weights, read where they are not in memory: not for a thread that others wait for.
    pub(crate) fn load(&self) -> Result<Arc<LoadedModel>, LoadError> {
        let Source::Directory { dir, loader, stamp: known, loaded } = &self.parts.source else {
            return self
                .parts
                .loaded()
                .ok_or_else(|| LoadError::System("it is in memory".to_owned()));
        };
        // Whoever comes meanwhile waits, and shares them.
        let mut kept = loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = kept.upgrade() {
            return Ok(loaded);
        }
        if stamp(dir)? != *known {
            return Err(LoadError::Name(format!(
                "the files of model {:?} were replaced since it was named; load them as a model (POST /v1/models), under another name",
                self.name
            )));
        }
        let (_, loaded) = read(dir, loader)?;
        loaded.log_warnings(&self.name);
        tracing::info!(model = self.name, "the model is in memory");
        *kept = Arc::downgrade(&loaded);
        Ok(loaded)
    }

    /// A recommender by these weights.
    pub(crate) fn recommender(
        &self,
        loaded: &LoadedModel,
        source: CatalogSource,
    ) -> Result<Recommender, RecommendError> {
        let recommender =
            Recommender::new(loaded.engine.clone(), source, self.parts.prompts.clone())?;
        match &loaded.draft_head {
            Some(head) => recommender.with_draft_head(Arc::clone(head)),
            None => Ok(recommender),
        }
    }
}

fn stamp(dir: &Path) -> Result<Stamp, LoadError> {
    Stamp::of(dir).map_err(|error| LoadError::System(format!("{}: {error}", dir.display())))
}

/// The prompts and weights of a model's directory.
fn read(dir: &Path, loader: &ModelLoader) -> Result<(Prompts, Arc<LoadedModel>), LoadError> {
    let prompts = Prompts::read(dir, None)?;
    let engine = loader.load(dir, &prompts)?;
    let draft_head = match (dir.join(DraftHead::FILE_NAME).is_file(), engine.model()) {
        (true, Some(model)) => {
            let shape = prompts.format().draft_shape()?;
            Some(Arc::new(DraftHead::load(dir, &model, shape)?))
        }
        (true, None) if engine.draft_head().is_none() => {
            tracing::warn!(
                model = %dir.display(),
                "the draft head is not computed where the model is: requests of mode draft are refused"
            );
            None
        }
        _ => None,
    };
    Ok((prompts, Arc::new(LoadedModel { engine, draft_head })))
}
