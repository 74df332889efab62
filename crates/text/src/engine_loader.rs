//! Loader of the decoder of a folder: where it is computed, and in what form.

use std::fmt::{self, Debug};
use std::path::Path;
use std::sync::Arc;

use palmette_model::{Model, SharedEngine, WeightFormat};

use crate::error::{OpenError, OpenErrorKind};

type Load = dyn Fn(&Path) -> Result<SharedEngine, OpenError> + Send + Sync;

/// Function that loads the decoder of a folder.
///
/// The default keeps weights as they are stored, for this processor.
#[derive(Clone)]
pub struct EngineLoader(Arc<Load>);

impl EngineLoader {
    /// A loader for a device; its errors are messages.
    pub fn of_device(
        load: impl Fn(&Path) -> Result<SharedEngine, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |dir| load(dir).map_err(|error| OpenErrorKind::Device(error).into())))
    }

    /// Loads a decoder.
    pub(crate) fn load(&self, dir: &Path) -> Result<SharedEngine, OpenError> {
        (self.0)(dir)
    }
}

/// A loader for this processor.
impl From<WeightFormat> for EngineLoader {
    fn from(weights: WeightFormat) -> Self {
        Self(Arc::new(move |dir| {
            let model = Model::load(dir).map_err(OpenErrorKind::Model)?;
            Ok(model.with_weights(weights).into())
        }))
    }
}

impl Default for EngineLoader {
    fn default() -> Self {
        WeightFormat::default().into()
    }
}

impl Debug for EngineLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EngineLoader")
    }
}
