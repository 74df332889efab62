//! The frozen parts of a recommender.

use std::ops::Range;
use std::sync::Arc;

use palmette_catalog::{Catalog, CatalogConstraint};
use palmette_model::Model;

use crate::error::RecommendError;
use crate::prompt_format::PromptFormat;
use crate::worker::{MAX_BEAM_WIDTH, Worker, WorkerOptions, checked};

/// What a code's probability is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normaliser {
    /// All tokens of the model's vocabulary, as Hugging Face `generate` has it with `prefix_allowed_tokens_fn`.
    #[default]
    Vocabulary,
    /// The tokens of the code's level. The model computes no other logits, and what it gives to tokens that cannot come
    /// next lowers no score. A model trained over its whole vocabulary has learnt the other.
    Level,
}

/// A model, the catalog it may recommend from, and the tokens that join them. Shared by reference.
#[derive(Debug)]
pub struct Recommender {
    model: Model,
    constraint: CatalogConstraint,
    format: PromptFormat,
    normaliser: Normaliser,
    widths: Option<Vec<usize>>,
}

impl Recommender {
    /// Joins the parts.
    ///
    /// # Errors
    /// When the model has no token for a code of the catalog or for the prompt's beginning, the
    /// catalog spells its levels by other letters, or the model's positions do not hold the longest
    /// prompt and a recommendation.
    pub fn new(
        model: Model,
        catalog: Arc<Catalog>,
        format: PromptFormat,
    ) -> Result<Self, RecommendError> {
        let (needed, vocab_size) = (format.vocab_size(), model.config().vocab_size);
        if needed > vocab_size {
            return Err(RecommendError::SmallVocabulary { needed, vocab_size });
        }
        let spelled = catalog.level_prefixes().unwrap_or_default().iter().zip(&format.levels);
        for (level, (catalog, model)) in spelled.enumerate() {
            if *catalog != model.prefix {
                let (catalog, model) = (catalog.clone(), model.prefix.clone());
                return Err(RecommendError::OtherLevels { level, catalog, model });
            }
        }
        let needed = format.max_prompt_tokens().saturating_add(format.levels.len());
        let max = model.config().max_position_embeddings;
        if needed > max {
            let max_history_items = format.max_history_items;
            return Err(RecommendError::HistoryTooLong { max_history_items, needed, max });
        }
        let tokens = format.code_tokens(model.config().vocab_size)?;
        let constraint = CatalogConstraint::new(catalog, tokens)?;
        let normaliser = Normaliser::default();
        Ok(Self { model, constraint, format, normaliser, widths: None })
    }

    /// The same with scores over another whole.
    #[must_use]
    pub fn with_normaliser(self, normaliser: Normaliser) -> Self {
        Self { normaliser, ..self }
    }

    /// The same with a beam width for each level, which takes the place of
    /// [`beam_width`](WorkerOptions::beam_width): after level `l` a search keeps `widths[l]` hypotheses, and it finds as
    /// many semantic IDs as the last says.
    ///
    /// # Errors
    /// When there is not one width a level of the model's, or one is 0 or too large.
    pub fn with_widths(self, widths: Vec<usize>) -> Result<Self, RecommendError> {
        let (given, levels) = (widths.len(), self.format.levels.len());
        if given != levels || given == 0 {
            return Err(RecommendError::OtherWidths { given, levels });
        }
        for &width in &widths {
            checked("a beam width", width, MAX_BEAM_WIDTH)?;
        }
        Ok(Self { widths: Some(widths), ..self })
    }

    /// The hypotheses kept after each level by a worker of this beam width, where no request needs more.
    pub fn level_widths(&self, beam_width: usize) -> Vec<usize> {
        let levels = self.format.levels.len().max(1);
        self.widths.clone().unwrap_or_else(|| vec![beam_width; levels])
    }

    /// What scores are shares of.
    pub fn normaliser(&self) -> Normaliser {
        self.normaliser
    }

    /// The tokens among which the next of `level` earlier ones is chosen.
    pub(crate) fn columns(&self, level: usize) -> Range<usize> {
        match (self.normaliser, self.format.levels.get(level)) {
            (Normaliser::Level, Some(at)) => {
                let first = at.first_token as usize;
                first..first + at.num_codes as usize
            }
            _ => 0..self.model.config().vocab_size,
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        self.constraint.catalog()
    }

    /// The catalog as a constraint over the model's tokens.
    pub fn constraint(&self) -> &CatalogConstraint {
        &self.constraint
    }

    /// How the model spells histories.
    pub fn format(&self) -> &PromptFormat {
        &self.format
    }

    /// Buffers for one request at a time.
    ///
    /// # Errors
    /// When the beam width is 0 or too large.
    pub fn worker(&self, options: WorkerOptions) -> Result<Worker<'_>, RecommendError> {
        Worker::new(self, options)
    }
}
