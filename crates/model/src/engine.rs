//! The seam between a search and what computes a model: this processor, or an accelerator.
//!
//! A search opens a [`Reading`] of an [`Engine`] for one request at a time, has it begin a pass
//! (over the prompt, over more tokens, or over one more token of every beam) and then takes the
//! best extensions of its rows, or their logits. A pass may go on after the call that begins it
//! returns, so that masks are made meanwhile: an engine waits where what it computed is asked for.
//!
//! [`Model`] is the engine of this processor; its readings are [`Session`]s.

use std::fmt::{self, Debug};
use std::ops::{Deref, Range};
use std::str::FromStr;
use std::sync::Arc;

use palmette_catalog_live::{CatalogView, ViewItems};
use palmette_core::TokenId;
use palmette_decode::{Extension, LogitsSource, Step, TopK};

use crate::blocks::MAX_BLOCK_ROWS;
use crate::config::ModelConfig;
use crate::draft::DraftOutline;
use crate::model::Model;
use crate::prompt_store::PromptUse;
use crate::sequence_store::{SequenceStore, SequencesError, SequencesOptions};
use crate::sequences::Sequences;
use crate::session::{Session, SessionError};

/// A device that computes a model, by name: `cpu`, or `cuda:0` and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceName {
    /// This processor.
    #[default]
    Cpu,
    /// An NVIDIA device by its number.
    Cuda(usize),
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let number = name.strip_prefix("cuda:").and_then(|number| number.parse().ok());
        match (name, number) {
            ("cpu", _) => Ok(Self::Cpu),
            (_, Some(index)) => Ok(Self::Cuda(index)),
            _ => Err(format!("{name:?} is no device: it is cpu, or cuda:0, cuda:1 and so on")),
        }
    }
}

/// Sizes that a [`Reading`] is planned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadingShape<'a> {
    /// Tokens of the longest prompt.
    pub max_prompt_tokens: usize,
    /// Limit on the beams of each pass after the prompt.
    pub beams: &'a [usize],
    /// Extensions that the widest step keeps.
    pub width: usize,
    /// Limit on the rows of a draft head's levels; 0 where nothing is drafted.
    pub draft_rows: usize,
}

impl<'a> ReadingShape<'a> {
    /// Sizes of searches by the decoder.
    pub fn new(max_prompt_tokens: usize, beams: &'a [usize], width: usize) -> Self {
        Self { max_prompt_tokens, beams, width, draft_rows: 0 }
    }

    /// Sizes of searches by a draft head, of this many rows a level at most; the prompt's tokens
    /// include its placeholders.
    pub fn of_draft(max_prompt_tokens: usize, rows: usize) -> Self {
        Self { max_prompt_tokens, beams: &[], width: rows, draft_rows: rows }
    }
}

/// Use of a device by a model, as metrics show it. Counts are from its load on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// The device's name.
    pub device: String,
    /// Passes.
    pub passes: u64,
    /// Requests in them, each counted once a pass.
    pub requests: u64,
    /// Rows of prompts in them.
    pub prompt_rows: u64,
    /// Rows of beams in them.
    pub beam_rows: u64,
    /// Tokens of prompts whose keys and values were there from earlier prompts.
    pub found_tokens: u64,
    /// Pages of keys and values that prompts use now.
    pub used_pages: u64,
    /// Pages that hold earlier prompts, and that none uses.
    pub kept_pages: u64,
    /// Pages in all.
    pub pages: u64,
    /// Catalogs that are searched on the device.
    pub catalogs: u64,
    /// Catalogs that it does not take, which are searched level by level.
    pub refused_catalogs: u64,
    /// Bytes by what they are for.
    pub bytes: Vec<(&'static str, u64)>,
}

/// Listener to what an engine warns of.
pub type WarningListener = Box<dyn Fn(&str) + Send + Sync>;

/// Search of a catalog, for a [`Reading`] that has the catalog where its model is.
#[derive(Clone, Copy, Debug)]
pub struct CatalogSearch<'a> {
    /// The catalog at the moment of the request.
    pub view: &'a CatalogView,
    /// Items that may be found; none for all.
    pub items: Option<&'a ViewItems>,
    /// Numbers of items that may not, even so.
    pub excluded: &'a [u64],
    /// Levels of the catalog's semantic IDs.
    pub levels: &'a [SearchLevel],
    /// Extensions of a smaller score are not kept.
    pub floor: f32,
    /// True where the [draft head](Engine::draft_head) predicts the levels, and no decode passes.
    pub drafts: bool,
}

/// Level of a [`CatalogSearch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchLevel {
    /// Tokens of the codes, from code 0 on.
    pub tokens: Range<usize>,
    /// Columns whose logits are computed, the tokens among them: probabilities are over these.
    pub columns: Range<usize>,
    /// Extensions to keep at most.
    pub width: usize,
}

/// A model where it is computed, shared by all that read with it.
pub trait Engine: Debug + Send + Sync {
    /// The model's shape.
    fn config(&self) -> &ModelConfig;

    /// Number of parameters, tied ones counted once.
    fn num_parameters(&self) -> usize;

    /// Bytes of all weights where it is computed.
    fn weight_bytes(&self) -> usize;

    /// The model of this processor that this is, if it is one. Its readings are [`Session`]s, whose
    /// hidden states a draft head reads; texts are read by it too.
    fn into_model(self: Arc<Self>) -> Option<Arc<Model>> {
        None
    }

    /// The draft head that is computed with the model, by the [draft
    /// calls](Reading::begin_draft) of its readings; none where there is none, or hidden states
    /// are read by [`DraftRun`](crate::draft::DraftRun).
    fn draft_head(&self) -> Option<&DraftOutline> {
        None
    }

    /// True where passes of several readings are computed together, so that requests side by side
    /// take less than one after another.
    fn shares_passes(&self) -> bool {
        false
    }

    /// Failure after which nothing is computed any more, once there was one.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Use of the device that computes it; none where that is this processor.
    fn device_use(&self) -> Option<DeviceUse> {
        None
    }

    /// Use of what it keeps of earlier prompts; none where it keeps nothing.
    fn prompt_use(&self) -> Option<PromptUse> {
        None
    }

    /// Number of a prompt's first tokens whose keys and values are there now, so that a reading
    /// would not compute them: to plan by, for they may be gone when it does.
    fn known_prompt_tokens(&self, prompt: &[TokenId]) -> usize {
        let _ = prompt;
        0
    }

    /// Has a listener, in place of the one before, hear of what works and costs more than was
    /// meant, such as a catalog that a device does not take: once a catalog and cause. Where
    /// nothing can be so, nothing is ever told.
    fn on_warning(&self, listener: WarningListener) {
        drop(listener);
    }

    /// Memory that [`open`](Self::open) would take for itself, in bytes.
    ///
    /// # Errors
    /// When the plan exceeds the model's positions or an address's range.
    fn planned_bytes(
        &self,
        shape: &ReadingShape<'_>,
        threads: usize,
    ) -> Result<usize, SessionError>;

    /// Makes the buffers of one request at a time, which takes this many threads of this processor
    /// at most.
    ///
    /// # Errors
    /// As [`planned_bytes`](Self::planned_bytes), and when there is not the memory.
    fn open(
        self: Arc<Self>,
        shape: &ReadingShape<'_>,
        threads: usize,
    ) -> Result<Box<dyn Reading>, SessionError>;

    /// Rows of a pass of sequences that leave none of what computes it idle.
    fn sequence_rows(&self) -> usize;

    /// Memory that [`open_sequences`](Self::open_sequences) would take, in bytes.
    ///
    /// # Errors
    /// When the bytes cannot be counted, or exceed what the model was given.
    fn planned_sequence_bytes(&self, options: &SequencesOptions) -> Result<usize, SequencesError>;

    /// Makes the places of sequences that grow side by side.
    ///
    /// # Errors
    /// As [`planned_sequence_bytes`](Self::planned_sequence_bytes), when there is not the memory,
    /// or the model is an encoder–decoder.
    fn open_sequences(
        self: Arc<Self>,
        options: SequencesOptions,
    ) -> Result<Box<dyn SequenceStore>, SequencesError>;
}

/// One request at a time through an [`Engine`]: its prompt and its beams.
///
/// As a [`LogitsSource`] it computes the whole vocabulary's logits; its own calls, those of some
/// columns, with the best extensions chosen where the logits are.
pub trait Reading: LogitsSource<Error = SessionError> + Debug + Send {
    /// Limits the threads of the requests that follow, up to the number it was opened with; bits do
    /// not depend on it.
    fn use_threads(&mut self, threads: usize);

    /// Has the prompts that follow be looked for among what the engine [keeps of earlier
    /// ones](Engine::prompt_use), and be kept themselves, or neither; bits do not depend on it.
    /// Until it is called they are.
    fn keep_prompts(&mut self, keeps: bool) {
        let _ = keeps;
    }

    /// Begins another request with this prompt.
    ///
    /// # Errors
    /// When it is empty, longer than planned, or has an unknown token.
    fn set_prompt(&mut self, tokens: &[TokenId]) -> Result<(), SessionError>;

    /// True once the prompt has been read: a pass over it [again](Self::begin_prompt) costs its
    /// logits alone.
    fn has_read_prompt(&self) -> bool;

    /// Begins the pass over the prompt, for the logits of `columns` after it. Beams begin anew.
    ///
    /// # Errors
    /// When no prompt has been set, or the columns are none or past the vocabulary.
    fn begin_prompt(&mut self, columns: Range<usize>) -> Result<(), SessionError>;

    /// Begins the pass over one more token per beam: row `b` continues row `parents[b]` of the pass
    /// before with `tokens[b]`.
    ///
    /// # Errors
    /// When there are more beams or passes than planned, a parent or token is unknown, or the
    /// columns are none or past the vocabulary.
    ///
    /// # Panics
    /// When there is not one parent a token.
    fn begin_next(
        &mut self,
        parents: &[u32],
        tokens: &[TokenId],
        columns: Range<usize>,
    ) -> Result<(), SessionError>;

    /// Writes the best allowed extensions of the rows of the pass over `best`, as
    /// [`StepBackend::select`](palmette_decode::StepBackend::select) has it; probabilities are over
    /// the pass's columns.
    ///
    /// # Errors
    /// When a row has no distribution, a mask allows a token that is not among the columns, or the
    /// pass failed.
    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), SessionError>;

    /// Bound on the totals of the allowed extensions that the latest selection did not write, as
    /// [`StepBackend::dropped_at_most`](palmette_decode::StepBackend::dropped_at_most) has it.
    fn dropped_at_most(&self, step: &Step<'_>, best: &[Extension]) -> Option<f32> {
        step.dropped_at_most(best)
    }

    /// Runs a whole search after the prompt, where the reading has the catalog beside the model:
    /// writes the extensions of each level over `steps`, as [`select`](Self::select) would. False
    /// where it has not, or does not search so; then nothing is computed, or it can be computed
    /// again.
    ///
    /// # Errors
    /// As those of the passes and of [`select`](Self::select).
    fn search(
        &mut self,
        search: &CatalogSearch<'_>,
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<bool, SessionError> {
        let _ = (search, steps);
        Ok(false)
    }

    /// Begins the pass over the prompt and the placeholders of the [draft
    /// head](Engine::draft_head), for the logits of the first level's codes: columns are its tokens.
    ///
    /// # Errors
    /// When no prompt has been set, prompt and placeholders are longer than planned, or no draft
    /// was planned or is computed here.
    fn begin_draft(&mut self) -> Result<(), SessionError> {
        Err(SessionError::NoDraftHere)
    }

    /// Begins the next level of a draft: row `b` continues row `parents[b]` of the level before by
    /// `tokens[b]`, one of that level's. Columns are the tokens of the level's codes.
    ///
    /// # Errors
    /// When there are more rows than planned, no further level, a parent or token that there is
    /// not, or no draft is computed here.
    ///
    /// # Panics
    /// When there is not one parent a token.
    fn next_draft(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<(), SessionError> {
        let _ = (parents, tokens);
        Err(SessionError::NoDraftHere)
    }

    /// Bytes of the keys and values as they were taken: the prompt's and the beams' part.
    fn cache_bytes(&self) -> (usize, usize);

    /// The session that this is, where the engine is a [`Model`].
    fn as_session(&mut self) -> Option<&mut Session> {
        None
    }
}

/// An [`Engine`] of any kind, as a model is handed around.
#[derive(Clone, Debug)]
pub struct SharedEngine(Arc<dyn Engine>);

impl SharedEngine {
    /// The model of this processor that this is, if it is one.
    pub fn model(&self) -> Option<Arc<Model>> {
        Arc::clone(&self.0).into_model()
    }

    /// [`Engine::open`].
    ///
    /// # Errors
    /// As there.
    pub fn open(
        &self,
        shape: &ReadingShape<'_>,
        threads: usize,
    ) -> Result<Box<dyn Reading>, SessionError> {
        Arc::clone(&self.0).open(shape, threads)
    }

    /// [`Engine::open_sequences`].
    ///
    /// # Errors
    /// As there.
    pub fn open_sequences(
        &self,
        options: SequencesOptions,
    ) -> Result<Box<dyn SequenceStore>, SequencesError> {
        Arc::clone(&self.0).open_sequences(options)
    }
}

impl Deref for SharedEngine {
    type Target = dyn Engine;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl<E: Engine + 'static> From<Arc<E>> for SharedEngine {
    fn from(engine: Arc<E>) -> Self {
        Self(engine)
    }
}

impl From<Model> for SharedEngine {
    fn from(model: Model) -> Self {
        Self(Arc::new(model))
    }
}

impl Engine for Model {
    fn config(&self) -> &ModelConfig {
        self.config()
    }

    fn num_parameters(&self) -> usize {
        self.num_parameters()
    }

    fn weight_bytes(&self) -> usize {
        self.weight_bytes()
    }

    fn into_model(self: Arc<Self>) -> Option<Arc<Model>> {
        Some(self)
    }

    fn prompt_use(&self) -> Option<PromptUse> {
        self.prompt_store.as_ref().map(|store| store.usage())
    }

    fn known_prompt_tokens(&self, prompt: &[TokenId]) -> usize {
        self.prompt_store.as_ref().map_or(0, |store| store.known_tokens(prompt))
    }

    fn planned_bytes(
        &self,
        shape: &ReadingShape<'_>,
        threads: usize,
    ) -> Result<usize, SessionError> {
        let (prompt, beams) = (shape.max_prompt_tokens, shape.beams);
        Ok(Session::planned_bytes_of_passes(self.config(), prompt, beams, threads)?.total())
    }

    fn open(
        self: Arc<Self>,
        shape: &ReadingShape<'_>,
        threads: usize,
    ) -> Result<Box<dyn Reading>, SessionError> {
        let (prompt, beams) = (shape.max_prompt_tokens, shape.beams);
        let session = Session::of_passes(&self, prompt, beams, threads)?;
        let top_k = TopK::with_capacity(shape.width);
        Ok(Box::new(SessionReading { session, top_k, columns: 0..0 }))
    }

    fn sequence_rows(&self) -> usize {
        MAX_BLOCK_ROWS
    }

    fn planned_sequence_bytes(&self, options: &SequencesOptions) -> Result<usize, SequencesError> {
        Ok(Sequences::planned_bytes(self.config(), options)?.total())
    }

    fn open_sequences(
        self: Arc<Self>,
        options: SequencesOptions,
    ) -> Result<Box<dyn SequenceStore>, SequencesError> {
        Ok(Box::new(Sequences::new(&self, options)?))
    }
}

/// A session, and the selection over its logits.
#[derive(Debug)]
struct SessionReading {
    session: Session,
    top_k: TopK,
    /// Columns of the latest pass.
    columns: Range<usize>,
}

impl LogitsSource for SessionReading {
    type Error = SessionError;

    fn num_tokens(&self) -> usize {
        self.session.num_tokens()
    }

    fn prompt_logits(&mut self) -> Result<&[f32], SessionError> {
        self.session.prompt_logits()
    }

    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        self.session.next_logits(parents, tokens)
    }

    fn logits(&mut self) -> Result<&[f32], SessionError> {
        Ok(self.session.logits())
    }

    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        self.session.append(tokens)
    }
}

impl Reading for SessionReading {
    fn use_threads(&mut self, threads: usize) {
        self.session.use_threads(threads);
    }

    fn keep_prompts(&mut self, keeps: bool) {
        self.session.keep_prompts(keeps);
    }

    fn set_prompt(&mut self, tokens: &[TokenId]) -> Result<(), SessionError> {
        self.session.set_prompt(tokens)
    }

    fn has_read_prompt(&self) -> bool {
        self.session.has_read_prompt()
    }

    fn begin_prompt(&mut self, columns: Range<usize>) -> Result<(), SessionError> {
        self.columns = columns.clone();
        match self.session.has_read_prompt() {
            true => self.session.prompt_logits_again(columns)?,
            false => self.session.prompt_logits_of(columns)?,
        };
        Ok(())
    }

    fn begin_next(
        &mut self,
        parents: &[u32],
        tokens: &[TokenId],
        columns: Range<usize>,
    ) -> Result<(), SessionError> {
        self.columns = columns.clone();
        self.session.next_logits_of(parents, tokens, columns)?;
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), SessionError> {
        let (logits, columns) = (self.session.logits(), self.columns.clone());
        Ok(self.top_k.select(step, logits, columns, |_, _| true, best)?)
    }

    fn dropped_at_most(&self, _: &Step<'_>, _: &[Extension]) -> Option<f32> {
        self.top_k.largest_dropped()
    }

    fn cache_bytes(&self) -> (usize, usize) {
        self.session.cache_bytes()
    }

    fn as_session(&mut self) -> Option<&mut Session> {
        Some(&mut self.session)
    }
}
