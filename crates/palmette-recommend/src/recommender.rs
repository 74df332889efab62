//! The frozen parts of a recommender.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use palmette_catalog::CodeTokens;
use palmette_live::CatalogSource;
use palmette_model::draft::DraftHead;
use palmette_model::{Model, SessionError};

use crate::buffers::{Buffers, Shape};
use crate::error::RecommendError;
use crate::prompt_format::PromptFormat;
use crate::request::{MAX_BEAM_WIDTH, Planned, Request};
use crate::view::SpelledView;
use crate::worker::{checked, wanted};

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

/// A model, the catalog it may recommend from, and the tokens that join them. Shared in an `Arc` by its
/// [workers](crate::Worker).
///
/// The catalog is a frozen file, or a live one, of which each request sees the newest generation or the one it holds.
#[derive(Debug)]
pub struct Recommender {
    model: Arc<Model>,
    source: CatalogSource,
    format: PromptFormat,
    tokens: Arc<CodeTokens>,
    normaliser: Normaliser,
    widths: Option<Vec<usize>>,
    draft_head: Option<Arc<DraftHead>>,
    /// The view of the latest request.
    latest: Mutex<Arc<SpelledView>>,
}

impl Recommender {
    /// Joins the parts.
    ///
    /// # Errors
    /// When the model has no token for a code of the catalog or for the prompt's beginning, the
    /// catalog spells its levels by other letters, or the model's positions do not hold the longest
    /// prompt and a recommendation.
    pub fn new(
        model: impl Into<Arc<Model>>,
        source: impl Into<CatalogSource>,
        format: PromptFormat,
    ) -> Result<Self, RecommendError> {
        let (model, source) = (model.into(), source.into());
        let (needed, vocab_size) = (format.vocab_size(), model.config().vocab_size);
        if needed > vocab_size {
            return Err(RecommendError::SmallVocabulary { needed, vocab_size });
        }
        let needed = format.max_prompt_tokens().saturating_add(format.levels.len());
        let max = model.config().max_position_embeddings;
        if needed > max {
            let max_history_items = format.max_history_items;
            return Err(RecommendError::HistoryTooLong { max_history_items, needed, max });
        }
        let tokens = Arc::new(format.code_tokens(model.config().vocab_size)?);
        let latest = Mutex::new(Arc::new(SpelledView::new(source.view(), &tokens, &format)?));
        let (normaliser, widths, draft_head) = (Normaliser::default(), None, None);
        Ok(Self { model, source, format, tokens, normaliser, widths, draft_head, latest })
    }

    /// Adds a draft head of its model, for [`Mode::Draft`](crate::Mode::Draft).
    ///
    /// # Errors
    /// When the head spells other codes, the model's positions do not hold its placeholders after the longest prompt, or an
    /// encoder reads the prompt.
    pub fn with_draft_head(self, head: impl Into<Arc<DraftHead>>) -> Result<Self, RecommendError> {
        let head = head.into();
        if self.model.config().architecture.encoder.is_some() {
            return Err(SessionError::NoDraft.into());
        }
        let format = self.format.draft_shape();
        if *head.shape() != format {
            let (head, format) = (head.shape().levels.clone(), format.levels);
            return Err(RecommendError::OtherDraftHead { head, format });
        }
        Ok(Self { draft_head: Some(head), ..self })
    }

    /// The draft head, where there is one.
    pub fn draft_head(&self) -> Option<&Arc<DraftHead>> {
        self.draft_head.as_ref()
    }

    /// The catalog as it is now, spelled in the model's tokens: what a request sees that holds no other.
    ///
    /// Cost: a reference count; for a live catalog that has changed, some look-ups a segment.
    ///
    /// # Errors
    /// When an item has come whose codes have no token.
    pub fn view(&self) -> Result<Arc<SpelledView>, RecommendError> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that no older view takes the place of a newer one.
        let now = self.source.view();
        if latest.view().generation() != now.generation() {
            *latest = Arc::new(SpelledView::new(now, &self.tokens, &self.format)?);
        }
        Ok(Arc::clone(&latest))
    }

    /// Source of its views.
    pub fn source(&self) -> &CatalogSource {
        &self.source
    }

    /// Sets the scope over which scores are normalised.
    #[must_use]
    pub fn with_normaliser(self, normaliser: Normaliser) -> Self {
        Self { normaliser, ..self }
    }

    /// Sets a beam width for each level, which takes the place of
    /// [`beam_width`](crate::Request::beam_width): after level `l` a search keeps `widths[l]` hypotheses, and it finds as
    /// many semantic IDs as the last says.
    ///
    /// # Errors
    /// When there is not one width a level of the model's, or one is 0 or too large.
    pub fn with_widths(self, widths: Vec<usize>) -> Result<Self, RecommendError> {
        self.check_widths(&widths)?;
        Ok(Self { widths: Some(widths), ..self })
    }

    /// Refuses widths that are not one a level, 0 or too large.
    pub(crate) fn check_widths(&self, widths: &[usize]) -> Result<(), RecommendError> {
        let (given, levels) = (widths.len(), self.format.levels.len());
        if given != levels || given == 0 {
            return Err(RecommendError::OtherWidths { given, levels });
        }
        for &width in widths {
            checked("a beam width", width, MAX_BEAM_WIDTH)?;
        }
        Ok(())
    }

    /// Plan of a request: what a worker of so many threads takes for requests of this shape, before any work is done.
    ///
    /// # Errors
    /// As [`Worker::prepare`](crate::Worker::prepare), but for the memory itself.
    pub fn planned(
        &self,
        request: &Request<'_>,
        threads: usize,
    ) -> Result<Planned, RecommendError> {
        if let Some(widths) = request.widths {
            self.check_widths(widths)?;
        }
        Buffers::planned(self, &self.shape_of(request), threads)
    }

    pub(crate) fn shape_of(&self, request: &Request<'_>) -> Shape {
        let (mode, k) = (request.mode, wanted(request));
        let widths = match request.widths {
            Some(widths) => widths.to_vec(),
            None => self.level_widths(request.beam_width),
        };
        // As wide a search at every level never finds fewer while there are as many.
        let least = if widths.iter().all(|&width| width >= k) { 0 } else { k };
        Shape { mode, widths, least }
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

    /// The tokens that spell codes.
    pub(crate) fn tokens(&self) -> &CodeTokens {
        &self.tokens
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
    pub fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// How the model spells histories.
    pub fn format(&self) -> &PromptFormat {
        &self.format
    }
}
