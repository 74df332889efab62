//! A decoder on a device, as the engine of searches.
//!
//! The device computes passes and logits and chooses the best extensions; the host moves
//! constraints and makes masks meanwhile. Where results gain besides their scores, or a level's
//! columns are no whole words of a mask, the logits come back and the host chooses. A call that
//! begins a pass returns when its work is on the device's streams; [`Reading::select`] waits.
//!
//! A prompt is read in parts of at most 2,048 rows. Neither parts nor what else is on the device
//! change a bit.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::{Extension, LogitsSource, Step, TopK};
use palmette_model::{Engine, ModelConfig, ModelTensors, Reading, ReadingShape, SessionError};

use crate::error::CudaError;
use crate::forward::Forward;
use crate::pass::{Ancestors, Pass, PassRows};
use crate::plan::{Memory, PAGE, PROMPT_ROWS, Plan};
use crate::selection::{self, Selection};
use crate::sizes::Sizes;
use crate::weights::{Weights, planned};
use crate::{DeviceError, Driver, Event, Stream};

/// A model on a device.
#[derive(Debug)]
pub struct CudaEngine {
    driver: Arc<dyn Driver>,
    multiprocessors: u32,
    config: ModelConfig,
    sizes: Sizes,
    weights: Weights,
}

impl CudaEngine {
    /// Uploads the model of a Hugging Face directory.
    ///
    /// # Errors
    /// When the files are not those of a model that the kernels compute, or the device fails or has
    /// not the memory.
    pub fn load(driver: Arc<dyn Driver>, dir: &Path) -> Result<Self, CudaError> {
        let config = ModelConfig::read(&dir.join("config.json"))?;
        let tensors = ModelTensors::open(dir, &config)?;
        Self::new(driver, config, tensors)
    }

    /// Uploads a model's tensors.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn new(
        driver: Arc<dyn Driver>,
        config: ModelConfig,
        tensors: ModelTensors,
    ) -> Result<Self, CudaError> {
        let sizes = Sizes::of(&config)?;
        let mut regions = driver.regions(&[planned(&config, &sizes)])?;
        let region = regions.pop().ok_or(DeviceError::Foreign("no region"))?;
        let weights = Weights::upload(&*driver, &config, &sizes, tensors, region)?;
        let multiprocessors = driver.describe().multiprocessors;
        Ok(Self { driver, multiprocessors, config, sizes, weights })
    }

    fn plan(&self, shape: &ReadingShape<'_>) -> Result<Plan, SessionError> {
        let (prompt, passes) = (shape.max_prompt_tokens, shape.beams.len());
        let max = self.config.max_position_embeddings;
        if prompt.saturating_add(passes) > max {
            return Err(SessionError::TooManyPositions { prompt, passes, max });
        }
        let (beams, width) = (shape.beams.to_vec(), shape.width);
        Ok(Plan { sizes: self.sizes, prompt, beams, width })
    }
}

impl Engine for CudaEngine {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn num_parameters(&self) -> usize {
        let s = &self.sizes;
        let (d, has) = (s.hidden, &self.config.architecture);
        let norms = 2 * d + if has.query_key_norms { 2 * s.head_width } else { 0 };
        let biases = if has.query_key_value_biases { s.qkv_width() } else { 0 };
        let matrices = d * (s.qkv_width() + s.query_width() + 3 * s.inner);
        let embeddings = if self.config.tie_word_embeddings { 1 } else { 2 } * s.vocab * d;
        embeddings + d + s.layers * (norms + biases + matrices)
    }

    fn weight_bytes(&self) -> usize {
        self.weights.bytes()
    }

    fn planned_bytes(&self, shape: &ReadingShape<'_>, _: usize) -> Result<usize, SessionError> {
        let plan = self.plan(shape)?;
        let too_large = || SessionError::PlanTooLarge {
            prompt: plan.prompt,
            beams: plan.most_beams(),
            bytes: None,
        };
        let regions = plan.regions().ok_or_else(too_large)?;
        let bytes = regions.iter().map(|region| region.bytes);
        bytes.clone().try_fold(0_usize, usize::checked_add).ok_or_else(too_large)
    }

    fn open(
        self: Arc<Self>,
        shape: &ReadingShape<'_>,
        threads: usize,
    ) -> Result<Box<dyn Reading>, SessionError> {
        self.planned_bytes(shape, threads)?;
        let plan = self.plan(shape)?;
        let regions = plan.regions().unwrap_or_default();
        let memory = Memory::new(self.driver.regions(&regions)?);
        let memory = memory.ok_or(DeviceError::Foreign("other regions"))?;
        let mut reading = CudaReading {
            top_k: TopK::with_capacity(shape.width),
            prompt: Vec::with_capacity(plan.prompt),
            read: 0,
            ancestors: Ancestors::default(),
            rows: 0,
            num_logits: 0,
            columns: 0..0,
            computed: None,
            logits: Vec::new(),
            last_pass: None,
            engine: Arc::clone(&self),
            plan,
            memory,
        };
        reading.clear_values()?;
        Ok(Box::new(reading))
    }
}

/// A request at a time on a device.
#[derive(Debug)]
struct CudaReading {
    engine: Arc<CudaEngine>,
    plan: Plan,
    memory: Memory,
    top_k: TopK,
    prompt: Vec<TokenId>,
    /// Tokens of the prompt whose keys and values are in its pages.
    read: usize,
    ancestors: Ancestors,
    /// Rows of the latest pass; 0 before the first.
    rows: usize,
    num_logits: usize,
    columns: Range<usize>,
    /// End of the pass whose logits the host has not seen.
    computed: Option<Event>,
    /// The latest that the host has seen.
    logits: Vec<f32>,
    /// End of the latest pass: its description may be written over after it.
    last_pass: Option<Event>,
}

impl CudaReading {
    fn forward(&self) -> Forward<'_> {
        Forward {
            driver: &*self.engine.driver,
            multiprocessors: self.engine.multiprocessors,
            config: &self.engine.config,
            weights: &self.engine.weights,
            plan: &self.plan,
            memory: &self.memory,
        }
    }

    /// Zeroes the pages of values: what memory held at first may be no number, and 0 times that is
    /// none either. What an earlier prompt left is finite, and has weight 0.
    fn clear_values(&mut self) -> Result<(), DeviceError> {
        const STAGED: usize = 16 << 20;
        let driver = &*self.engine.driver;
        let all = self.memory.values.bytes();
        let mut zeros = driver.pinned(STAGED.min(all))?;
        for at in (0..all).step_by(STAGED) {
            let bytes = STAGED.min(all - at);
            driver.write(Stream::Upload, &self.memory.values, at, &mut zeros, bytes)?;
            driver.finish(&driver.record(Stream::Upload)?)?;
        }
        Ok(())
    }

    /// Puts a pass's description on the device, behind the pass before, and lets the kernels that
    /// follow wait for it.
    fn describe(&mut self, pass: &Pass) -> Result<(), DeviceError> {
        let driver = &*self.engine.driver;
        let mut staged = driver.pinned(pass.bytes.len())?;
        staged.bytes()?.copy_from_slice(&pass.bytes);
        if let Some(before) = &self.last_pass {
            driver.wait(Stream::Upload, before)?;
        }
        driver.write(Stream::Upload, &self.memory.pass, 0, &mut staged, pass.bytes.len())?;
        driver.wait(Stream::Compute, &driver.record(Stream::Upload)?)
    }

    /// Begins to compute logits of the rows of a pass.
    fn begin_logits(&mut self, of_beams: bool, columns: Range<usize>) -> Result<(), DeviceError> {
        self.forward().logits(of_beams, &columns)?;
        let end = self.engine.driver.record(Stream::Compute)?;
        self.num_logits = self.rows * columns.len();
        self.computed = Some(end.clone());
        self.last_pass = Some(end);
        self.columns = columns;
        Ok(())
    }

    /// Copies the logits of the latest pass to the host, and waits for them.
    fn fetch(&mut self) -> Result<(), SessionError> {
        let Some(end) = self.computed.take() else { return Ok(()) };
        let driver = &*self.engine.driver;
        let mut pinned = driver.pinned(self.num_logits * 4)?;
        driver.wait(Stream::Download, &end)?;
        driver.read(Stream::Download, &self.memory.logits, 0, &mut pinned, self.num_logits * 4)?;
        driver.finish(&driver.record(Stream::Download)?)?;
        let bytes = pinned.bytes()?.chunks_exact(4);
        self.logits.clear();
        self.logits.extend(bytes.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        Ok(())
    }

    /// Reads the prompt's tokens that have not been; false where all have. The last pass is
    /// described for logits from `first_column` on.
    fn read_prompt(&mut self, first_column: usize) -> Result<bool, SessionError> {
        if self.has_read_prompt() {
            return Ok(false);
        }
        while self.read < self.prompt.len() {
            let first = self.read;
            let end = self.prompt.len().min(first + PROMPT_ROWS.min(self.plan.rows()));
            // Parts end with pages, so that a page's values are written in whole columns.
            let end = match end < self.prompt.len() {
                true if end / PAGE * PAGE > first => end / PAGE * PAGE,
                _ => end,
            };
            let rows = PassRows::Prompt { tokens: &self.prompt[first..end], first };
            let pass = Pass::new(&self.plan, rows, &self.ancestors, first_column);
            self.describe(&pass)?;
            self.forward().layers(&pass)?;
            self.last_pass = Some(self.engine.driver.record(Stream::Compute)?);
            self.read = end;
        }
        Ok(true)
    }

    fn check_columns(&self, columns: &Range<usize>) -> Result<(), SessionError> {
        let (start, end, vocab_size) = (columns.start, columns.end, self.plan.sizes.vocab);
        match start < end && end <= vocab_size {
            true => Ok(()),
            false => Err(SessionError::UnknownColumns { start, end, vocab_size }),
        }
    }

    fn check_tokens(&self, tokens: &[TokenId]) -> Result<(), SessionError> {
        let vocab_size = self.plan.sizes.vocab;
        match tokens.iter().find(|token| token.index() >= vocab_size) {
            Some(&token) => Err(SessionError::UnknownToken { token, vocab_size }),
            None => Ok(()),
        }
    }

    fn all_columns(&self) -> Range<usize> {
        0..self.plan.sizes.vocab
    }
}

impl LogitsSource for CudaReading {
    type Error = SessionError;

    fn num_tokens(&self) -> usize {
        self.plan.sizes.vocab
    }

    fn prompt_logits(&mut self) -> Result<&[f32], SessionError> {
        self.begin_prompt(self.all_columns())?;
        self.logits()
    }

    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        self.begin_next(parents, tokens, self.all_columns())?;
        self.logits()
    }

    fn logits(&mut self) -> Result<&[f32], SessionError> {
        self.fetch()?;
        Ok(&self.logits[..self.num_logits.min(self.logits.len())])
    }

    /// Tokens after a prompt become part of it, in one pass, as long as there was none of beams.
    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        if self.rows == 0 {
            return Err(SessionError::NoPass);
        }
        if self.ancestors.passes() > 0 {
            return palmette_decode::append_one_by_one(self, tokens);
        }
        self.check_tokens(tokens)?;
        let (length, max) = (self.prompt.len() + tokens.len(), self.plan.prompt);
        if length > max {
            return Err(SessionError::PromptTooLong { tokens: length, max });
        }
        self.prompt.extend_from_slice(tokens);
        self.prompt_logits()
    }
}

impl Reading for CudaReading {
    fn use_threads(&mut self, _: usize) {}

    fn set_prompt(&mut self, tokens: &[TokenId]) -> Result<(), SessionError> {
        let max = self.plan.prompt;
        if tokens.is_empty() {
            return Err(SessionError::EmptyPrompt);
        }
        if tokens.len() > max {
            return Err(SessionError::PromptTooLong { tokens: tokens.len(), max });
        }
        self.check_tokens(tokens)?;
        self.prompt.clear();
        self.prompt.extend_from_slice(tokens);
        (self.read, self.rows) = (0, 0);
        self.ancestors.clear();
        Ok(())
    }

    fn has_read_prompt(&self) -> bool {
        !self.prompt.is_empty() && self.read == self.prompt.len()
    }

    fn begin_prompt(&mut self, columns: Range<usize>) -> Result<(), SessionError> {
        if self.prompt.is_empty() {
            return Err(SessionError::NoPrompt);
        }
        self.check_columns(&columns)?;
        self.ancestors.clear();
        if !self.read_prompt(columns.start)? {
            // Sizes and window of the logits alone; no layer reads it.
            let first = self.prompt.len() - 1;
            let rows = PassRows::Prompt { tokens: &self.prompt[first..], first };
            let pass = Pass::new(&self.plan, rows, &self.ancestors, columns.start);
            self.describe(&pass)?;
        }
        self.rows = 1;
        Ok(self.begin_logits(false, columns)?)
    }

    fn begin_next(
        &mut self,
        parents: &[u32],
        tokens: &[TokenId],
        columns: Range<usize>,
    ) -> Result<(), SessionError> {
        let beams = tokens.len();
        assert_eq!(parents.len(), beams, "one parent a beam");
        self.check_columns(&columns)?;
        let (pass, max) = (self.ancestors.passes() + 1, self.plan.beams.len());
        if pass > max {
            return Err(SessionError::TooManyPasses { pass, max });
        }
        let max = self.plan.beams[pass - 1];
        if beams > max {
            return Err(SessionError::TooManyBeams { beams, max });
        }
        self.check_tokens(tokens)?;
        let rows = self.rows;
        if let Some(&parent) = parents.iter().find(|&&parent| parent as usize >= rows) {
            return Err(SessionError::UnknownParent { parent, rows });
        }
        self.ancestors.fork(parents);
        self.rows = beams;
        if beams == 0 {
            (self.num_logits, self.columns, self.computed) = (0, columns, None);
            return Ok(());
        }
        let rows = PassRows::Beams { tokens, prompt: self.prompt.len() };
        let pass = Pass::new(&self.plan, rows, &self.ancestors, columns.start);
        debug_assert_eq!(pass.head_rows, beams);
        self.describe(&pass)?;
        self.forward().layers(&pass)?;
        Ok(self.begin_logits(true, columns)?)
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), SessionError> {
        let columns = self.columns.clone();
        if selection::is_computed(step, &columns) {
            let selection = Selection {
                driver: &*self.engine.driver,
                blocks: self.engine.multiprocessors,
                region: &self.memory.selection,
                logits: self.memory.logits.address(),
            };
            if selection.select(step, &columns, best)? {
                return Ok(());
            }
        }
        self.fetch()?;
        let logits = &self.logits[..self.num_logits];
        Ok(self.top_k.select(step, logits, columns, |_, _| true, best)?)
    }

    fn cache_bytes(&self) -> (usize, usize) {
        (self.memory.keys.bytes() + self.memory.values.bytes(), self.memory.own.bytes())
    }
}
