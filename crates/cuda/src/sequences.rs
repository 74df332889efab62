//! Sequences on a device: prompts that grow, whose rows meet in the passes.
//!
//! A sequence is a request whose prompt gets longer. What it has read lies in pages, found by
//! their tokens as those of prompts are; what it lacks (the open page of a fork, all of it after a
//! failure) is read again before the tokens of the next pass, to the same bits. Rows whose logits
//! are wanted share one product and one copy to the host.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use palmette_model::{
    PassLimits, SequenceId, SequenceSlots, SequenceStore, SequencesError, SequencesOptions,
    StoredSequence, Stretch,
};

use crate::meeting::{Meeting, Shared};
use crate::pages::{PageChain, Reservation};
use crate::plan::{CHUNK_ROWS, PAGE, ReadingMemory, ReadingPlan};
use crate::request::{Ancestors, DeviceRequest, RowKind};
use crate::{DeviceError, Pinned, Stream};

const _: () = assert!(PAGE == SequencesOptions::PAGE_TOKENS, "pages of one size everywhere");

/// Sequences of a model on a device.
#[derive(Debug)]
pub(crate) struct CudaSequences {
    shared: Arc<Shared>,
    meeting: Arc<Meeting>,
    options: SequencesOptions,
    max_positions: usize,
    slots: SequenceSlots<GrowingPrompt>,
    pages: HeldPages,
    /// Stretches of the latest pass.
    runs: Vec<Run>,
    memory: ReadingMemory,
    fetched: Pinned,
    /// Logits of the latest pass, `[rows, V]`.
    logits: Vec<f32>,
}

/// A sequence's request, and its way back from the meeting.
#[derive(Debug)]
struct GrowingPrompt {
    /// The request; `None` while it is posted.
    request: Option<Box<DeviceRequest>>,
    returned: Receiver<Box<DeviceRequest>>,
}

impl StoredSequence for GrowingPrompt {
    fn num_tokens(&self) -> usize {
        self.request.as_ref().map_or(0, |request| request.prompt.len())
    }

    fn num_pages(&self) -> usize {
        self.request.as_ref().map_or(0, |request| request.chain.pages().len())
    }
}

/// Rows of a pass that are one sequence's.
#[derive(Clone, Copy, Debug)]
struct Run {
    place: usize,
    /// Tokens of the sequence before them.
    first: usize,
    rows: usize,
    /// Row of its logits, where they are wanted.
    logits: Option<usize>,
}

/// Pages that sequences have, each counted once.
#[derive(Debug)]
struct HeldPages {
    reserved: Arc<Reservation>,
    /// Number of the sequences that have each page of the device.
    holders: Vec<u32>,
    used: usize,
}

impl HeldPages {
    fn free(&self) -> usize {
        self.reserved.len() - self.used
    }

    fn hold(&mut self, pages: &[u32]) {
        for &page in pages {
            let holders = &mut self.holders[page as usize];
            *holders += 1;
            self.used += usize::from(*holders == 1);
        }
    }

    fn release(&mut self, pages: &[u32]) {
        for &page in pages {
            let holders = &mut self.holders[page as usize];
            *holders -= 1;
            self.used -= usize::from(*holders == 0);
        }
    }

    /// Takes the pages that a request's prompt lacks, those of its beginning where they are found.
    fn cover(&mut self, request: &mut DeviceRequest) {
        let had = request.chain.pages().len();
        request.take_pages();
        self.hold(&request.chain.pages()[had..]);
    }

    /// Gives a request's pages back.
    fn clear(&mut self, request: &mut DeviceRequest) {
        self.release(request.chain.pages());
        request.chain.clear();
        request.read = 0;
    }
}

impl CudaSequences {
    pub(crate) fn open(
        shared: Arc<Shared>,
        meeting: Arc<Meeting>,
        options: SequencesOptions,
    ) -> Result<Self, SequencesError> {
        let options = options.at_least_one();
        let (driver, plan) = (&*shared.driver, &shared.plan);
        let (rows, pages) = (options.max_sequences, options.max_tokens.div_ceil(PAGE));
        let reserved = shared.pages.reserve(pages).map_err(|left| DeviceError::TextPagesTaken {
            tokens: options.max_tokens,
            needed: pages,
            left,
            all: plan.pages,
        })?;
        let reserved = Arc::new(reserved);
        let too_large =
            || SequencesError::PlanTooLarge { sequences: rows, tokens: options.max_tokens };
        let regions = ReadingPlan::new(&plan.sizes, rows, 0, 0).regions().ok_or_else(too_large)?;
        let memory = ReadingMemory::new(driver.regions(&regions)?);
        let memory = memory.ok_or(DeviceError::Foreign("other regions"))?;
        let fetched = driver.pinned(rows * plan.sizes.vocab * 4)?;
        let slot = |_| {
            let (back, returned) = sync_channel(1);
            let no_slots = shared.slots.take(0);
            let no_slots =
                no_slots.ok_or(DeviceError::SlotsTaken { needed: 0, all: plan.slots })?;
            let request = DeviceRequest {
                kind: RowKind::Sequence,
                prompt: Vec::new(),
                read: 0,
                chain: PageChain::new(&reserved),
                beams: Vec::new(),
                found: None,
                ancestors: Ancestors::new(no_slots),
                columns: 0..0,
                memory: memory.clone(),
                logits_row: 0,
                logits_rows: 0,
                outcome: Err(DeviceError::Busy),
                back,
                _reserved: Arc::clone(&reserved),
            };
            Ok(GrowingPrompt { request: Some(Box::new(request)), returned })
        };
        let slots = (0..rows).map(slot).collect::<Result<Vec<_>, DeviceError>>()?;
        let positions = plan.prompt.min(shared.config.max_position_embeddings);
        Ok(Self {
            options,
            max_positions: positions.min(pages.saturating_mul(PAGE)),
            slots: SequenceSlots::new(slots),
            pages: HeldPages { reserved, holders: vec![0; plan.pages], used: 0 },
            runs: Vec::with_capacity(rows),
            memory,
            fetched,
            logits: Vec::new(),
            shared,
            meeting,
        })
    }

    fn vocab(&self) -> usize {
        self.shared.plan.sizes.vocab
    }

    /// Posts the requests of some places, waits for what they ask for, and copies the first `rows`
    /// rows of logits to the host, after those that are there.
    fn compute(&mut self, places: &[usize], rows: usize) -> Result<(), DeviceError> {
        let computed = self.meet(places).and_then(|()| self.fetch(rows));
        computed.map_err(|error| self.shared.cause(error))
    }

    /// Posts the requests of some places and takes all of them back; what is downloaded later waits
    /// for their passes.
    fn meet(&mut self, places: &[usize]) -> Result<(), DeviceError> {
        let requests = places.iter().filter_map(|&place| self.slots[place].request.take());
        self.meeting.post_several(requests.collect())?;
        let driver = &*self.shared.driver;
        let mut met = Ok(());
        for &place in places {
            let slot = &mut self.slots[place];
            let mut request = slot.returned.recv().map_err(|_| ended())?;
            let outcome = std::mem::replace(&mut request.outcome, Err(DeviceError::Busy));
            slot.request = Some(request);
            // The first failure is that of all.
            met = met.and(outcome.and_then(|end| driver.wait(Stream::Download, &end)));
        }
        met
    }

    fn fetch(&mut self, rows: usize) -> Result<(), DeviceError> {
        let driver = &*self.shared.driver;
        let bytes = rows * self.shared.plan.sizes.vocab * 4;
        if rows > 0 {
            let logits = &self.memory.logits;
            driver.read(Stream::Download, logits, 0, &mut self.fetched, bytes)?;
        }
        driver.finish(&driver.record(Stream::Download)?)?;
        let bytes = self.fetched.bytes()?[..bytes].chunks_exact(4);
        self.logits.extend(bytes.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
        Ok(())
    }

    /// Gives the pages of the latest pass's sequences back after a failure: they are read again
    /// when they grow. Of each the tokens stay that `tokens` says.
    fn forget(&mut self, tokens: impl Fn(&Run) -> usize) {
        for run in self.runs.drain(..) {
            let Some(request) = &mut self.slots[run.place].request else { continue };
            request.prompt.truncate(tokens(&run));
            request.chain.clear();
            request.read = 0;
        }
        // Those of requests that failed were given back where the passes are made.
        self.pages.holders.fill(0);
        self.pages.used = 0;
        for request in self.slots.iter().filter_map(|slot| slot.request.as_ref()) {
            self.pages.hold(request.chain.pages());
        }
    }
}

impl Drop for CudaSequences {
    /// Waits, so that memory is given back when no kernel uses it: a pass that failed may have
    /// others before it that run.
    fn drop(&mut self) {
        let driver = &*self.shared.driver;
        let _ = driver.record(Stream::Compute).and_then(|end| driver.finish(&end));
    }
}

impl SequenceStore for CudaSequences {
    fn options(&self) -> &SequencesOptions {
        &self.options
    }

    fn max_positions(&self) -> usize {
        self.max_positions
    }

    fn free_pages(&self) -> usize {
        self.pages.free()
    }

    fn add(&mut self) -> Result<SequenceId, SequencesError> {
        self.slots.add()
    }

    /// The fork shares the pages that are full and read, and reads the rest when it grows.
    fn fork(&mut self, sequence: SequenceId, tokens: usize) -> Result<SequenceId, SequencesError> {
        let of = self.slots.find(sequence)?;
        let has = self.slots[of].num_tokens();
        if tokens > has {
            return Err(SequencesError::FewerTokens { tokens, has });
        }
        let id = self.slots.add()?;
        let fork = self.slots.find(id)?;
        let Some(mut request) = self.slots[fork].request.take() else { return Err(ended().into()) };
        if let Some(of) = &self.slots[of].request {
            request.prompt.extend_from_slice(&of.prompt[..tokens]);
            let pages = tokens.min(of.read) / PAGE;
            request.chain.fork(&of.chain, &of.prompt[..pages * PAGE]);
            request.read = pages * PAGE;
            self.pages.hold(request.chain.pages());
        }
        self.slots[fork].request = Some(request);
        Ok(id)
    }

    fn remove(&mut self, sequence: SequenceId) -> Result<(), SequencesError> {
        let place = self.slots.remove(sequence)?;
        if let Some(request) = &mut self.slots[place].request {
            self.pages.clear(request);
            request.prompt.clear();
        }
        Ok(())
    }

    fn num_tokens(&self, sequence: SequenceId) -> Result<usize, SequencesError> {
        Ok(self.slots[self.slots.find(sequence)?].num_tokens())
    }

    fn pass(&mut self, stretches: &[Stretch<'_>]) -> Result<(), SequencesError> {
        let vocab = self.vocab();
        let limits = PassLimits {
            vocab_size: vocab,
            max_rows: self.options.max_rows,
            max_positions: self.max_positions,
            free_pages: self.pages.free(),
        };
        self.slots.check(stretches, &limits)?;
        self.runs.clear();
        self.logits.clear();
        let mut rows = 0;
        for Stretch { sequence, tokens, wants_logits } in stretches {
            let place = self.slots.find(*sequence)?;
            let Some(request) = &mut self.slots[place].request else { return Err(ended().into()) };
            let first = request.prompt.len();
            request.prompt.extend_from_slice(tokens);
            self.pages.cover(request);
            let logits = wants_logits.then_some(rows);
            (request.logits_row, request.logits_rows) = (rows, usize::from(*wants_logits));
            request.columns = 0..if *wants_logits { vocab } else { 0 };
            rows += request.logits_rows;
            self.runs.push(Run { place, first, rows: tokens.len(), logits });
        }
        if self.runs.is_empty() {
            return Ok(());
        }
        let places: Vec<usize> = self.runs.iter().map(|run| run.place).collect();
        Ok(self.compute(&places, rows).inspect_err(|_| self.forget(|run| run.first))?)
    }

    fn logits(&self, place: usize) -> Option<&[f32]> {
        let (row, vocab) = (self.runs.get(place)?.logits?, self.vocab());
        self.logits.get(row * vocab..(row + 1) * vocab)
    }

    /// The rows are computed again, over the keys and values that are there.
    fn logits_of_rows(
        &mut self,
        place: usize,
        rows: Range<usize>,
    ) -> Result<Option<&[f32]>, SequencesError> {
        let Some(&run) = self.runs.get(place) else { return Ok(None) };
        if rows.end > run.rows || rows.len() > self.options.max_sequences {
            return Ok(None);
        }
        self.runs.iter_mut().for_each(|run| run.logits = None);
        self.logits.clear();
        let (vocab, most) = (self.vocab(), CHUNK_ROWS.min(self.shared.plan.merged));
        let mut first = rows.start;
        while first < rows.end {
            let count = most.min(rows.end - first);
            let Some(request) = &mut self.slots[run.place].request else {
                return Err(ended().into());
            };
            let later = request.prompt.split_off(run.first + first + count);
            request.read = run.first + first;
            (request.logits_row, request.logits_rows, request.columns) = (0, count, 0..vocab);
            let computed = self.compute(&[run.place], count);
            if let Some(request) = &mut self.slots[run.place].request {
                request.prompt.extend_from_slice(&later);
                request.read = request.prompt.len();
            }
            if let Err(error) = computed {
                self.forget(|run| run.first + run.rows);
                return Err(error.into());
            }
            first += count;
        }
        Ok(Some(&self.logits))
    }
}

fn ended() -> DeviceError {
    DeviceError::Foreign("a meeting that ended")
}
