//! The frozen parts of a recommender.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use palmette_catalog::CodeTokens;
use palmette_catalog_live::CatalogSource;
use palmette_core::{MaskWindow, TokenId, mask};
use palmette_model::draft::{DraftHead, DraftOutline};
use palmette_model::{SessionError, SharedEngine};

use crate::bounds::{MAX_BEAM_WIDTH, checked};
use crate::buffers::Buffers;
use crate::error::RecommendError;
use crate::fields::PromptFields;
use crate::free_text::{Explain, Think};
use crate::mode::Mode;
use crate::pages::Pages;
use crate::prompt_format::{LevelFormat, PromptFormat};
use crate::prompts::Prompts;
use crate::read_history::read_history;
use crate::request::{Planned, Request};
use crate::shape::Shape;
use crate::template::PromptAsked;
use crate::view::SpelledView;

/// Set of tokens over which a code's probability is normalised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normaliser {
    /// All tokens of the model's vocabulary, as Hugging Face `generate` has it with
    /// `prefix_allowed_tokens_fn`.
    #[default]
    Vocabulary,
    /// The tokens of the code's level. The model computes no other logits, and what it gives to
    /// tokens that cannot come next lowers no score. A model trained over its whole vocabulary has
    /// learnt the other.
    Level,
}

/// Tokens of a prompt before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPrompt {
    /// Tokens in all.
    pub tokens: usize,
    /// The first of them, whose keys and values are there from earlier prompts.
    pub known: usize,
}

/// A model, the catalog it may recommend from, and the tokens that join them. Shared in an `Arc` by
/// its [workers](crate::Worker).
///
/// The catalog is a frozen file, or a live one, of which each request sees the newest generation or
/// the one it holds.
#[derive(Debug)]
pub struct Recommender {
    engine: SharedEngine,
    source: CatalogSource,
    prompts: Prompts,
    tokens: Arc<CodeTokens>,
    end_tokens: Box<[TokenId]>,
    max_prompt_tokens: usize,
    normaliser: Normaliser,
    widths: Option<Vec<usize>>,
    draft_head: Option<Arc<DraftHead>>,
    /// The view of the latest request.
    latest: Mutex<Arc<SpelledView>>,
    pages: Pages,
}

impl Recommender {
    /// Joins the parts.
    ///
    /// # Errors
    /// When the model has no token for a code of the catalog or for the prompt's beginning, the
    /// catalog spells its levels by other letters, the model's positions do not hold the longest
    /// prompt and a recommendation, or the engine has a draft head of other codes.
    pub fn new(
        engine: impl Into<SharedEngine>,
        source: impl Into<CatalogSource>,
        prompts: impl Into<Prompts>,
    ) -> Result<Self, RecommendError> {
        let (engine, source, prompts) = (engine.into(), source.into(), prompts.into());
        let format = prompts.format();
        let (needed, vocab_size) = (format.vocab_size(), engine.config().vocab_size);
        if needed > vocab_size {
            return Err(RecommendError::SmallVocabulary { needed, vocab_size });
        }
        let max_prompt_tokens = prompts.max_tokens(engine.config().max_position_embeddings)?;
        if let Some(head) = engine.draft_head() {
            check_draft(head, format)?;
        }
        let tokens = Arc::new(format.code_tokens(vocab_size)?);
        let end_tokens = format.end_tokens.iter().copied().map(TokenId).collect();
        let latest = Mutex::new(Arc::new(SpelledView::new(source.view(), &tokens, format)?));
        let (normaliser, widths, draft_head) = (Normaliser::default(), None, None);
        Ok(Self {
            engine,
            source,
            prompts,
            tokens,
            end_tokens,
            max_prompt_tokens,
            normaliser,
            widths,
            draft_head,
            latest,
            pages: Pages::default(),
        })
    }

    /// Adds a draft head of its model, for [`Mode::Draft`](crate::Mode::Draft).
    ///
    /// # Errors
    /// When the head spells other codes, the tokens of a level are scattered, the model's positions
    /// do not hold its placeholders after the longest prompt, or an encoder reads the prompt.
    pub fn with_draft_head(self, head: impl Into<Arc<DraftHead>>) -> Result<Self, RecommendError> {
        let head = head.into();
        if self.engine.config().architecture.encoder.is_some() {
            return Err(SessionError::NoDraft.into());
        }
        if self.engine.model().is_none() {
            return Err(SessionError::NoDraftHere.into());
        }
        check_draft(&head, self.format())?;
        Ok(Self { draft_head: Some(head), ..self })
    }

    /// The draft head of this processor, where there is one.
    pub fn draft_head(&self) -> Option<&Arc<DraftHead>> {
        self.draft_head.as_ref()
    }

    /// Outline of the draft head, where there is one: of this processor, or of the engine.
    pub fn draft_outline(&self) -> Option<&DraftOutline> {
        let here = self.draft_head.as_deref().map(|head| &**head);
        here.or_else(|| self.engine.draft_head())
    }

    /// The catalog as it is now, spelled in the model's tokens: what a request sees that holds no
    /// other.
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
            *latest = Arc::new(SpelledView::new(now, &self.tokens, self.format())?);
        }
        Ok(Arc::clone(&latest))
    }

    /// Pages that are kept ahead of who asks for them.
    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Bytes of the pages that are kept, about; 16 MiB at most.
    pub fn page_bytes(&self) -> u64 {
        self.pages.bytes()
    }

    /// Source of its views.
    pub fn source(&self) -> &CatalogSource {
        &self.source
    }

    /// Sets the scope over which scores are normalised.
    ///
    /// # Errors
    /// When it is the level's, and the tokens of a level are not all those of a range, or tokens
    /// follow the codes.
    pub fn with_normaliser(self, normaliser: Normaliser) -> Result<Self, RecommendError> {
        if normaliser == Normaliser::Level {
            if !self.end_tokens.is_empty() {
                return Err(RecommendError::NoEnd);
            }
            let mut levels = self.format().levels.iter();
            if let Some(level) = levels.position(|level| level.token_run().is_none()) {
                return Err(RecommendError::NoRun { level });
            }
        }
        Ok(Self { normaliser, ..self })
    }

    /// Sets a beam width for each level, which takes the place of
    /// [`beam_width`](crate::Request::beam_width): after level `l` a search keeps `widths[l]`
    /// hypotheses, and it finds as many semantic IDs as the last says.
    ///
    /// # Errors
    /// When there is not one width a level of the model's, or one is 0 or too large.
    pub fn with_widths(self, widths: Vec<usize>) -> Result<Self, RecommendError> {
        self.check_widths(&widths)?;
        Ok(Self { widths: Some(widths), ..self })
    }

    /// Refuses widths that are not one a level, 0 or too large.
    pub(crate) fn check_widths(&self, widths: &[usize]) -> Result<(), RecommendError> {
        let (given, levels) = (widths.len(), self.format().levels.len());
        if given != levels || given == 0 {
            return Err(RecommendError::OtherWidths { given, levels });
        }
        for &width in widths {
            checked("a beam width", width, MAX_BEAM_WIDTH)?;
        }
        Ok(())
    }

    /// Plan of a request: the memory of a worker for this shape, before any work.
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

    /// Items that a request's search looks for: those wanted, and where it is paged as many again,
    /// as long as no beam is widened for them.
    pub(crate) fn sought(&self, request: &Request<'_>) -> usize {
        let wanted = request.wanted();
        let narrowest = self.widths_of(request).into_iter().min().unwrap_or(0);
        match request.page {
            Some(_) => wanted.max(narrowest.min(wanted.saturating_mul(2))),
            None => wanted,
        }
    }

    pub(crate) fn shape_of(&self, request: &Request<'_>) -> Shape {
        let (draft, k) = (request.mode.verification(), request.least_width());
        let widths = self.widths_of(request);
        // As wide a search at every level never finds fewer while there are as many.
        let least = if widths.iter().all(|&width| width >= k) { 0 } else { k };
        let widest = request.mode.second_width();
        Shape { draft, widths, least, widest, free_tokens: self.free_tokens(request) }
    }

    /// The mode of a request's search, [`Mode::Auto`] decided.
    pub fn mode_of(&self, request: &Request<'_>) -> Mode {
        let least = request.least_width();
        let mut widths = self.widths_of(request);
        widths.iter_mut().for_each(|width| *width = (*width).max(least));
        let items = (request.wanted(), self.sought(request));
        request.mode.resolved(&widths, items, request.trace)
    }

    /// The mode of a request's first search.
    pub(crate) fn first_mode_of(&self, request: &Request<'_>) -> Mode {
        self.mode_of(&Request { mode: request.mode.first_search(), ..*request })
    }

    fn widths_of(&self, request: &Request<'_>) -> Vec<usize> {
        match request.widths {
            Some(widths) => widths.to_vec(),
            None => self.level_widths(request.beam_width),
        }
    }

    /// Tokens that a prompt may grow by: those of reasoning before the item, or of the item and an
    /// explanation.
    fn free_tokens(&self, request: &Request<'_>) -> usize {
        let template = self.prompts.template();
        let think = request.think.zip(template.and_then(|template| template.think_end()));
        let think =
            think.map_or(0, |(Think { max_tokens, .. }, (_, then))| max_tokens + 1 + then.len());
        let explain = request.explain_items.zip(template);
        let explain = explain.map_or(0, |(Explain { max_tokens, .. }, template)| {
            self.format().levels.len() + template.explain_begin_tokens() + max_tokens
        });
        think.saturating_add(explain)
    }

    /// The hypotheses kept after each level by a worker of this beam width, where no request needs
    /// more.
    pub fn level_widths(&self, beam_width: usize) -> Vec<usize> {
        let levels = self.format().levels.len().max(1);
        self.widths.clone().unwrap_or_else(|| vec![beam_width; levels])
    }

    /// Set of tokens over which scores are normalised.
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
            Normaliser::Level if level < self.format().levels.len() => self.level_columns(level),
            _ => 0..self.engine.config().vocab_size,
        }
    }

    /// The tokens from the first of a level's codes to the last: a draft head's rows, and what
    /// scores as shares of a level are over.
    pub(crate) fn level_columns(&self, level: usize) -> Range<usize> {
        self.format().levels[level].tokens.token_range()
    }

    /// Words of the widest mask row of a search: a level's, or the vocabulary's where an item may
    /// end at one level and go on at the next.
    pub(crate) fn mask_words(&self) -> usize {
        if !self.end_tokens.is_empty() {
            return mask::num_words(self.engine.config().vocab_size);
        }
        let words = |level: &LevelFormat| MaskWindow::columns_of(level.tokens.token_range()).len();
        self.format().levels.iter().map(words).max().unwrap_or(0)
    }

    /// The tokens after the codes of an item that a search looks for: none by a draft head, which
    /// says the codes alone.
    pub(crate) fn sought_ends(&self, drafts: bool) -> &[TokenId] {
        if drafts { &[] } else { &self.end_tokens }
    }

    /// Refuses a view whose items a draft head cannot compare. Where a token ends an item some may
    /// have fewer codes; a head says all levels and nothing that ends them.
    pub(crate) fn check_drafted(&self, view: &SpelledView) -> Result<(), RecommendError> {
        let levels = self.format().levels.len();
        match view.shorter_item() {
            None => Ok(()),
            Some(number) => {
                let view = view.view();
                let (id, codes) = (view.id(number).to_owned(), view.codes(number).len());
                Err(RecommendError::ShorterDraft { id, codes, levels })
            }
        }
    }

    /// Limit on the tokens of a prompt.
    pub fn max_prompt_tokens(&self) -> usize {
        self.max_prompt_tokens
    }

    /// The model, where it is computed.
    pub fn engine(&self) -> &SharedEngine {
        &self.engine
    }

    /// Spelling of semantic IDs.
    pub fn format(&self) -> &PromptFormat {
        self.prompts.format()
    }

    /// Writes the prompt of a history, given as numbers of the view, over `prompt`; returns how
    /// many of the newest items it holds.
    ///
    /// # Errors
    /// When the template cannot be rendered with these fields.
    ///
    /// # Panics
    /// When the view has no such number.
    pub fn write_prompt(
        &self,
        history: &[u64],
        view: &SpelledView,
        fields: &PromptFields,
        prompt: &mut Vec<TokenId>,
    ) -> Result<usize, RecommendError> {
        self.prompts.write_prompt(history, view.view(), fields, self.max_prompt_tokens, prompt)
    }

    /// Tokens of a request's prompt, and how many of the first are known from earlier ones: to plan
    /// by. `None` where its engine keeps none, or the request is not to be remembered.
    ///
    /// Cost: that of writing the prompt.
    ///
    /// # Errors
    /// When the template cannot be rendered with its fields.
    pub fn known_prompt(
        &self,
        request: &Request<'_>,
    ) -> Result<Option<KnownPrompt>, RecommendError> {
        if !request.remember || self.engine.prompt_use().is_none() {
            return Ok(None);
        }
        let view = match request.view {
            Some(view) => Arc::clone(view),
            None => self.view()?,
        };
        let (mut items, mut prompt) = (Vec::new(), Vec::new());
        read_history(request.history, &view, &mut Vec::new(), &mut items);
        let (view, thinks) = (view.view(), request.think.is_some());
        let none = PromptFields::default();
        let fields = request.fields.unwrap_or(&none);
        let asked = PromptAsked { items: &items, view, fields, thinks };
        self.prompts.write(&asked, self.max_prompt_tokens, &mut prompt)?;
        let known = self.engine.known_prompt_tokens(&prompt);
        Ok(Some(KnownPrompt { tokens: prompt.len(), known }))
    }

    /// Approximate number of tokens in the prompt of a history of `items` items, to plan by.
    pub fn about_prompt_tokens(&self, items: usize) -> usize {
        self.prompts.about_tokens(items).min(self.max_prompt_tokens)
    }

    /// Prompts of histories.
    pub fn prompts(&self) -> &Prompts {
        &self.prompts
    }
}

/// Refuses a draft head that does not spell the items of prompts.
fn check_draft(head: &DraftOutline, prompts: &PromptFormat) -> Result<(), RecommendError> {
    let format = prompts.draft_shape()?;
    if head.shape != format {
        let (head, format) = (head.shape.levels.clone(), format.levels);
        return Err(RecommendError::OtherDraftHead { head, format });
    }
    Ok(())
}
