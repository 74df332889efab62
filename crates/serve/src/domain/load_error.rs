//! Errors of loading: model, catalog, text model, keys, log, or the system.

use palmette_catalog_replica::LogError;
use palmette_recommend::RecommendError;

use super::keys::KeysError;
use super::name::InvalidName;
use crate::model_loader::ModelLoadError;

/// Error of a start or of a load, by the part that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The model's files.
    #[error(transparent)]
    Model(#[from] palmette_model::LoadError),
    /// The model's `semantic_ids.json` or `prompt_template.json`.
    #[error(transparent)]
    Format(#[from] palmette_recommend::FormatError),
    /// A draft head of a model whose levels it cannot draft.
    #[error(transparent)]
    Recommend(#[from] RecommendError),
    /// A catalog file.
    #[error(transparent)]
    Catalog(#[from] palmette_catalog::FileError),
    /// A lexicon's file.
    #[error(transparent)]
    Lexicon(#[from] palmette_lexicon::FileError),
    /// The directory of a live catalog.
    #[error(transparent)]
    Live(#[from] palmette_catalog_live::LiveError),
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
    /// A shared log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Memory for keys and values of prompts.
    #[error(transparent)]
    Prompts(#[from] palmette_model::PromptStoreError),
    /// A device that is to compute a model.
    #[error("{0}")]
    Device(String),
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

impl From<ModelLoadError> for LoadError {
    fn from(error: ModelLoadError) -> Self {
        match error {
            ModelLoadError::Model(error) => Self::Model(error),
            ModelLoadError::Prompts(error) => Self::Prompts(error),
            ModelLoadError::Device(error) => Self::Device(error),
        }
    }
}

impl From<InvalidName> for LoadError {
    fn from(error: InvalidName) -> Self {
        Self::Name(error.0)
    }
}
