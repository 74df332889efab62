//! The shop and the model that was trained on it.

use std::sync::Arc;

use palmette_model::{LoadError, Model, ModelConfig};
use palmette_recommend::{PromptFormat, RecommendError, Recommender, SpelledView};

use crate::shop::Shop;

const CONFIG: &[u8] = include_bytes!("../checkpoint/config.json");
const WEIGHTS: &[u8] = include_bytes!("../checkpoint/model.safetensors");
const FORMAT: &[u8] = include_bytes!("../checkpoint/semantic_ids.json");
const GENERATION: &[u8] = include_bytes!("../checkpoint/generation_config.json");

/// A recommender over the demonstration's shop.
#[derive(Debug)]
pub struct Demo {
    shop: Shop,
    recommender: Arc<Recommender>,
    view: Arc<SpelledView>,
}

/// The built-in model does not fit the built-in shop: a defect of this program.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct DemoError(DemoErrorKind);

#[derive(Debug, thiserror::Error)]
enum DemoErrorKind {
    #[error(transparent)]
    Model(#[from] LoadError),
    #[error("semantic_ids.json {0}")]
    Format(String),
    #[error(transparent)]
    Recommender(#[from] RecommendError),
}

impl Demo {
    /// Generates the shop and loads the model. Takes tens of milliseconds.
    ///
    /// # Errors
    /// Only on a defect of this program.
    pub fn load() -> Result<Self, DemoError> {
        Self::assemble().map_err(DemoError)
    }

    fn assemble() -> Result<Self, DemoErrorKind> {
        let shop = Shop::demo();
        let config = ModelConfig::from_bytes(CONFIG)?;
        let model = Model::from_bytes(config, WEIGHTS.to_vec())?;
        let format = std::str::from_utf8(FORMAT).map_err(|e| e.to_string());
        let format = format.and_then(PromptFormat::from_json).map_err(DemoErrorKind::Format)?;
        let recommender = Arc::new(Recommender::new(model, shop.catalog(), format)?);
        let view = recommender.view()?;
        Ok(Self { shop, recommender, view })
    }

    /// The shop.
    pub fn shop(&self) -> &Shop {
        &self.shop
    }

    /// The recommender.
    pub fn recommender(&self) -> &Arc<Recommender> {
        &self.recommender
    }

    /// The shop's catalog, which never changes.
    pub fn view(&self) -> &Arc<SpelledView> {
        &self.view
    }

    /// A few coherent histories, as numbers of the view, oldest item first.
    pub fn sample_histories(&self) -> Vec<Vec<u64>> {
        let number = |item: usize| {
            let found = self.view.view().find(&self.shop.items[item].id);
            found.expect("the catalog holds the whole shop")
        };
        let histories = self.shop.sample_histories();
        histories.into_iter().map(|history| history.into_iter().map(number).collect()).collect()
    }

    /// The files of the model's directory: names and contents.
    pub fn model_files() -> [(&'static str, &'static [u8]); 4] {
        [
            ("config.json", CONFIG),
            ("generation_config.json", GENERATION),
            ("model.safetensors", WEIGHTS),
            (PromptFormat::FILE_NAME, FORMAT),
        ]
    }
}
