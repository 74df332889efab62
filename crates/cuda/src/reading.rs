//! A reading on a device: one request at a time, which meets others in the passes.
//!
//! The device computes passes and logits and chooses the best extensions; the host moves
//! constraints and makes masks meanwhile. Where results gain besides their scores the logits come
//! back and the host chooses. A call that
//! begins a pass posts the request and returns; [`Reading::select`] waits. A search of a catalog
//! that the device takes is run there as a whole (`reading/search.rs`).

mod draft;
mod search;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};

use palmette_core::TokenId;
use palmette_decode::{Extension, LogitsSource, Step, TopK};
use palmette_model::{CatalogSearch, Reading, ReadingShape, SessionError};

use crate::engine::CudaEngine;
use crate::pages::PageChain;
use crate::plan::{PAGE, ReadingMemory, ReadingPlan};
use crate::request::{Ancestors, DeviceRequest, RowKind};
use crate::selection::{self, Computed, Selection};
use crate::{DeviceError, Event, Pinned, Stream};
use draft::DraftRun;
use search::CatalogRun;

/// A request at a time on a device.
#[derive(Debug)]
pub(crate) struct CudaReading {
    engine: Arc<CudaEngine>,
    /// None while it is posted.
    request: Option<Box<DeviceRequest>>,
    returned: Receiver<Box<DeviceRequest>>,
    max_prompt: usize,
    beams: Vec<usize>,
    has_prompt: bool,
    has_read_prompt: bool,
    /// Rows of the latest pass; 0 before the first.
    rows: usize,
    /// Columns of its logits.
    columns: Range<usize>,
    /// End of the pass whose logits the host has not seen.
    computed: Option<Event>,
    selection: Selection,
    /// Memory of whole searches, since the first.
    run: Option<CatalogRun>,
    draft: Option<DraftRun>,
    /// Bytes of its own that the engine counts.
    own_bytes: u64,
    top_k: TopK,
    fetched: Pinned,
    /// The latest logits that the host has seen.
    logits: Vec<f32>,
}

impl CudaReading {
    pub(crate) fn open(
        engine: Arc<CudaEngine>,
        plan: ReadingPlan,
        shape: &ReadingShape<'_>,
    ) -> Result<Self, SessionError> {
        let shared = &engine.shared;
        let driver = &*shared.driver;
        let (prompt, beams) = (shape.max_prompt_tokens, shape.beams.iter().sum::<usize>());
        let reserved = shared.pages.reserve(prompt.div_ceil(PAGE)).map_err(|left| {
            DeviceError::PagesTaken { needed: prompt.div_ceil(PAGE), left, all: shared.plan.pages }
        })?;
        let slots = shared.slots.take(beams);
        let slots =
            slots.ok_or(DeviceError::SlotsTaken { needed: beams, all: shared.plan.slots })?;
        let too_large = SessionError::PlanTooLarge { prompt, beams, bytes: None };
        let regions = plan.regions().ok_or(too_large)?;
        let own_bytes = regions.iter().map(|region| region.bytes as u64).sum();
        let memory = ReadingMemory::new(driver.regions(&regions)?);
        let memory = memory.ok_or(DeviceError::Foreign("other regions"))?;
        let draft = DraftRun::new(shared, &plan, &memory)?;
        let (back, returned) = sync_channel(1);
        let request = DeviceRequest {
            kind: RowKind::Prompt,
            prompt: Vec::with_capacity(prompt),
            read: 0,
            chain: PageChain::new(&reserved),
            beams: Vec::with_capacity(beams),
            found: None,
            ancestors: Ancestors::new(slots),
            columns: 0..0,
            memory,
            logits_row: 0,
            logits_rows: 0,
            outcome: Err(DeviceError::Busy),
            back,
            _reserved: Arc::new(reserved),
        };
        let selection = Selection::new(driver, &plan.selection(), shape.width)?;
        let fetched = driver.pinned(0)?;
        shared.reading_bytes.fetch_add(own_bytes, Ordering::Relaxed);
        Ok(Self {
            selection,
            fetched,
            own_bytes,
            request: Some(Box::new(request)),
            returned,
            max_prompt: prompt,
            beams: shape.beams.to_vec(),
            has_prompt: false,
            has_read_prompt: false,
            rows: 0,
            columns: 0..0,
            computed: None,
            run: None,
            draft,
            top_k: TopK::with_capacity(shape.width),
            logits: Vec::new(),
            engine,
        })
    }

    /// The request, once the pass that it waits for is on its stream.
    fn request(&mut self) -> Result<&mut Box<DeviceRequest>, DeviceError> {
        let ended = || DeviceError::Foreign("a meeting that ended");
        if self.request.is_none() {
            let mut request = self.returned.recv().map_err(|_| ended())?;
            let outcome = std::mem::replace(&mut request.outcome, Err(DeviceError::Busy));
            self.request = Some(request);
            let launched = outcome.and_then(|pass| self.end_of_post(pass));
            if let Err(error) = launched {
                (self.rows, self.computed) = (0, None);
                (self.has_prompt, self.has_read_prompt) = (false, false);
                self.draft.iter_mut().for_each(|draft| draft.is_begun = false);
                return Err(error);
            }
        }
        self.request.as_mut().ok_or_else(ended)
    }

    /// Notes the end of what was posted: of the pass, or of a draft's first level behind it.
    fn end_of_post(&mut self, pass: Event) -> Result<(), DeviceError> {
        let shared = &self.engine.shared;
        self.computed = Some(match (&mut self.draft, &self.request) {
            (Some(draft), Some(request)) if draft.is_begun => {
                let end = draft.launch_first(shared, &request.memory, &pass);
                end.inspect_err(|error| shared.note(error))?
            }
            _ => pass,
        });
        Ok(())
    }

    /// Posts the request for logits of `rows` rows.
    fn post(&mut self, rows: usize, columns: Range<usize>) -> Result<(), DeviceError> {
        (self.rows, self.columns, self.computed) = (rows, columns.clone(), None);
        let Some(mut request) = self.request.take() else { return Err(DeviceError::Busy) };
        request.columns = columns;
        self.engine.meeting.post(request)
    }

    /// Copies the logits of the latest pass to the host, and waits for them.
    fn fetch(&mut self) -> Result<(), SessionError> {
        self.request()?;
        let Some(end) = self.computed.take() else { return Ok(()) };
        self.copy_logits(&end).inspect_err(|error| self.engine.shared.note(error))?;
        Ok(())
    }

    fn copy_logits(&mut self, end: &Event) -> Result<(), DeviceError> {
        let driver = &*self.engine.shared.driver;
        let bytes = self.rows * self.columns.len() * 4;
        if self.fetched.len() < bytes {
            self.fetched = driver.pinned(bytes)?;
        }
        let Some(request) = &self.request else { return Ok(()) };
        driver.wait(Stream::Download, end)?;
        driver.read(Stream::Download, &request.memory.logits, 0, &mut self.fetched, bytes)?;
        driver.finish(&driver.record(Stream::Download)?)?;
        let bytes = self.fetched.bytes()?[..bytes].chunks_exact(4);
        self.logits.clear();
        self.logits.extend(bytes.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        Ok(())
    }

    fn check_columns(&self, columns: &Range<usize>) -> Result<(), SessionError> {
        let (start, end, vocab_size) = (columns.start, columns.end, self.num_tokens());
        match start < end && end <= vocab_size {
            true => Ok(()),
            false => Err(SessionError::UnknownColumns { start, end, vocab_size }),
        }
    }

    fn check_tokens(&self, tokens: &[TokenId]) -> Result<(), SessionError> {
        let vocab_size = self.num_tokens();
        match tokens.iter().find(|token| token.index() >= vocab_size) {
            Some(&token) => Err(SessionError::UnknownToken { token, vocab_size }),
            None => Ok(()),
        }
    }

    fn check_prompt(&self, tokens: usize) -> Result<(), SessionError> {
        match tokens {
            0 => Err(SessionError::EmptyPrompt),
            _ if tokens > self.max_prompt => {
                Err(SessionError::PromptTooLong { tokens, max: self.max_prompt })
            }
            _ => Ok(()),
        }
    }
}

impl LogitsSource for CudaReading {
    type Error = SessionError;

    fn num_tokens(&self) -> usize {
        self.engine.shared.plan.sizes.vocab
    }

    fn prompt_logits(&mut self) -> Result<&[f32], SessionError> {
        self.begin_prompt(0..self.num_tokens())?;
        self.logits()
    }

    fn next_logits(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        self.begin_next(parents, tokens, 0..self.num_tokens())?;
        self.logits()
    }

    fn logits(&mut self) -> Result<&[f32], SessionError> {
        self.fetch()?;
        Ok(&self.logits[..(self.rows * self.columns.len()).min(self.logits.len())])
    }

    /// Tokens after a prompt become part of it, in one pass, as long as there was none of beams.
    fn append(&mut self, tokens: &[TokenId]) -> Result<&[f32], SessionError> {
        if self.rows == 0 {
            return Err(SessionError::NoPass);
        }
        let request = self.request()?;
        if matches!(request.kind, RowKind::Draft(_)) {
            return Err(SessionError::NoPass);
        }
        if request.ancestors.passes() > 0 {
            return palmette_decode::append_one_by_one(self, tokens);
        }
        let length = request.prompt.len() + tokens.len();
        self.check_tokens(tokens)?;
        self.check_prompt(length)?;
        self.request()?.prompt.extend_from_slice(tokens);
        self.prompt_logits()
    }
}

impl Reading for CudaReading {
    fn use_threads(&mut self, _: usize) {}

    fn keep_prompts(&mut self, keeps: bool) {
        if let Ok(request) = self.request() {
            request.chain.keep(keeps);
        }
    }

    fn set_prompt(&mut self, tokens: &[TokenId]) -> Result<(), SessionError> {
        self.check_prompt(tokens.len())?;
        self.check_tokens(tokens)?;
        self.request()?.set_prompt(tokens);
        (self.has_prompt, self.has_read_prompt, self.rows) = (true, false, 0);
        Ok(())
    }

    fn has_read_prompt(&self) -> bool {
        self.has_read_prompt
    }

    fn begin_prompt(&mut self, columns: Range<usize>) -> Result<(), SessionError> {
        if !self.has_prompt {
            return Err(SessionError::NoPrompt);
        }
        self.check_columns(&columns)?;
        let request = self.request()?;
        request.end_draft();
        request.kind = RowKind::Prompt;
        request.ancestors.clear();
        self.has_read_prompt = true;
        Ok(self.post(1, columns)?)
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
        let (pass, max) = (self.request()?.ancestors.passes() + 1, self.beams.len());
        if pass > max {
            return Err(SessionError::TooManyPasses { pass, max });
        }
        let max = self.beams[pass - 1];
        if beams > max {
            return Err(SessionError::TooManyBeams { beams, max });
        }
        self.check_tokens(tokens)?;
        let rows = self.rows;
        if let Some(&parent) = parents.iter().find(|&&parent| parent as usize >= rows) {
            return Err(SessionError::UnknownParent { parent, rows });
        }
        let request = self.request()?;
        request.ancestors.fork(parents);
        if beams == 0 {
            (self.rows, self.columns, self.computed) = (0, columns, None);
            return Ok(());
        }
        request.kind = RowKind::Beams;
        request.beams.clear();
        request.beams.extend_from_slice(tokens);
        Ok(self.post(beams, columns)?)
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), SessionError> {
        self.request()?;
        let shared = &self.engine.shared;
        if selection::is_computed(step)
            && let (Some(request), Some(end)) = (&self.request, &self.computed)
        {
            let of = &request.memory;
            let logits = of.logits.address();
            let computed = Computed { logits, columns: &self.columns, end };
            let device = (&*shared.driver, shared.multiprocessors, &of.selection);
            let chosen = self.selection.select(device, computed, step, best);
            if chosen.inspect_err(|error| shared.note(error))? {
                return Ok(());
            }
        }
        self.fetch()?;
        let logits = &self.logits[..self.rows * self.columns.len()];
        Ok(self.top_k.select(step, logits, self.columns.clone(), |_, _| true, best)?)
    }

    fn search(
        &mut self,
        search: &CatalogSearch<'_>,
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<bool, SessionError> {
        self.search_catalog(search, steps)
    }

    fn begin_draft(&mut self) -> Result<(), SessionError> {
        let Some(draft) = &self.draft else { return Err(SessionError::NoDraftHere) };
        if !self.has_prompt {
            return Err(SessionError::NoPrompt);
        }
        let (hidden, placeholders) = (draft.head().num_hidden(), draft.head().num_placeholders());
        let columns = draft.tokens_of(0)?;
        let (vocab, max) = (self.num_tokens(), self.max_prompt);
        let request = self.request()?;
        if request.kind != RowKind::Draft(hidden) {
            let tokens = request.prompt.len() + placeholders;
            if tokens > max {
                return Err(SessionError::PromptTooLong { tokens, max });
            }
            // More of its last rows are kept.
            request.forget_pages();
            let placeholders = (vocab..vocab + placeholders).map(|token| TokenId(token as u32));
            request.prompt.extend(placeholders);
            request.kind = RowKind::Draft(hidden);
        }
        request.ancestors.clear();
        self.has_read_prompt = true;
        self.post(1, columns)?;
        self.draft.iter_mut().for_each(DraftRun::begin);
        Ok(())
    }

    fn next_draft(&mut self, parents: &[u32], tokens: &[TokenId]) -> Result<(), SessionError> {
        assert_eq!(parents.len(), tokens.len(), "one parent a row");
        self.request()?;
        let (Some(draft), Some(request)) = (&mut self.draft, &self.request) else {
            return Err(SessionError::NoDraftHere);
        };
        let columns = draft.advance(self.rows, parents, tokens)?;
        (self.rows, self.columns, self.computed) = (tokens.len(), columns, None);
        let shared = &self.engine.shared;
        let launched = draft.launch_next(shared, &request.memory, parents, tokens);
        self.computed = launched.inspect_err(|error| shared.note(error))?;
        Ok(())
    }

    fn cache_bytes(&self) -> (usize, usize) {
        let plan = &self.engine.shared.plan;
        let pages = self.max_prompt.div_ceil(PAGE) * plan.page_bytes();
        (pages, self.beams.iter().sum::<usize>() * plan.slot_bytes())
    }
}

impl Drop for CudaReading {
    /// Waits, so that memory is given back when no kernel uses it.
    fn drop(&mut self) {
        let _ = self.request();
        if let Some(end) = &self.computed {
            let _ = self.engine.shared.driver.finish(end);
        }
        self.engine.shared.reading_bytes.fetch_sub(self.own_bytes, Ordering::Relaxed);
    }
}
