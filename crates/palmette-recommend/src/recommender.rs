//! The frozen parts of a recommender.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use palmette_catalog::{Catalog, CatalogConstraint, CatalogKeys, KeysError};
use palmette_model::Model;
use palmette_model::draft::DraftHead;

use crate::error::RecommendError;
use crate::mode::Mode;
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
    draft_head: Option<DraftHead>,
    /// Made when first asked for.
    keys: OnceLock<Result<CatalogKeys, KeysError>>,
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
        let (normaliser, draft_head, keys) = (Normaliser::default(), None, OnceLock::new());
        let widths = None;
        Ok(Self { model, constraint, format, normaliser, widths, draft_head, keys })
    }

    /// The same with a draft head of its model, for [`Mode::Draft`].
    ///
    /// # Errors
    /// When the head spells other codes, or the model's positions do not hold its placeholders after the longest prompt.
    pub fn with_draft_head(self, head: DraftHead) -> Result<Self, RecommendError> {
        let format = self.format.draft_shape();
        if *head.shape() != format {
            let (head, format) = (head.shape().levels.clone(), format.levels);
            return Err(RecommendError::OtherDraftHead { head, format });
        }
        Ok(Self { draft_head: Some(head), ..self })
    }

    /// The draft head, where there is one.
    pub fn draft_head(&self) -> Option<&DraftHead> {
        self.draft_head.as_ref()
    }

    /// The catalog's semantic IDs, to be verified whole. The first call makes them.
    pub(crate) fn keys(&self) -> Result<&CatalogKeys, RecommendError> {
        let keys = self.keys.get_or_init(|| CatalogKeys::new(self.catalog()));
        keys.as_ref().map_err(|error| error.clone().into())
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
        match self.normaliser {
            Normaliser::Level if level < self.format.levels.len() => self.level_columns(level),
            _ => 0..self.model.config().vocab_size,
        }
    }

    /// The tokens of a level's codes.
    pub(crate) fn level_columns(&self, level: usize) -> Range<usize> {
        let at = &self.format.levels[level];
        let first = at.first_token as usize;
        first..first + at.num_codes as usize
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
        self.worker_in(Mode::Beam, options)
    }

    /// As [`worker`](Self::worker), for requests that are answered in this way.
    ///
    /// # Errors
    /// As [`worker`](Self::worker), and when there is no draft head for the mode, or the catalog has no keys.
    pub fn worker_in(
        &self,
        mode: Mode,
        options: WorkerOptions,
    ) -> Result<Worker<'_>, RecommendError> {
        Worker::new(self, mode, options)
    }
}
