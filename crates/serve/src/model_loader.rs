//! Reader of the models of directories: where they are computed, and in what form.

use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;

use palmette_model::{Model, PromptStoreError, SharedEngine, WeightFormat};
use palmette_recommend::Prompts;

type Load = dyn Fn(&Path, &Prompts) -> Result<SharedEngine, ModelLoadError> + Send + Sync;

/// Error of reading a model, by the part that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelLoadError {
    /// The model's files.
    #[error(transparent)]
    Model(#[from] palmette_model::LoadError),
    /// Memory for keys and values of prompts.
    #[error(transparent)]
    Prompts(#[from] PromptStoreError),
    /// A device that is to compute a model.
    #[error("{0}")]
    Device(String),
}

/// Function that reads the model of a directory, whose prompts are known.
///
/// A server has one for all of its models, those that clients name or upload too. The default keeps
/// weights as they are stored, for this processor.
#[derive(Clone)]
pub struct ModelLoader(Arc<Load>);

impl ModelLoader {
    /// A loader by this function.
    pub fn new(
        load: impl Fn(&Path, &Prompts) -> Result<SharedEngine, ModelLoadError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(load))
    }

    /// A loader for this processor, of models that keep earlier prompts in `prompt_memory` bytes
    /// each.
    pub fn on_processor(weights: WeightFormat, prompt_memory: usize) -> Self {
        Self::new(move |dir, _| {
            let model = Model::load(dir)?.with_weights(weights);
            Ok(model.with_prompt_memory(prompt_memory)?.into())
        })
    }

    /// Reads a model.
    pub(crate) fn load(
        &self,
        dir: &Path,
        prompts: &Prompts,
    ) -> Result<SharedEngine, ModelLoadError> {
        (self.0)(dir, prompts)
    }
}

/// A loader for this processor, of models that keep no prompts.
impl From<WeightFormat> for ModelLoader {
    fn from(weights: WeightFormat) -> Self {
        Self::on_processor(weights, 0)
    }
}

impl Default for ModelLoader {
    fn default() -> Self {
        WeightFormat::default().into()
    }
}

impl Debug for ModelLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelLoader")
    }
}
