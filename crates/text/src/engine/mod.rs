//! Several texts at once: one thread that runs the model over rows of all of them, and threads that
//! make their masks meanwhile.
//!
//! An [`Engine`] admits requests, as many as it has places for, and writes their texts side by side
//! (`run`): a pass of the model has the next token of each, and some of the prompts that are still
//! being read, so that neither waits for the other (`shares`). While the model reads a token, the
//! mask of the place after it is made on another thread (`desk`): a mask depends on tokens alone. A
//! text whose mask is not there after the pass stays out of the next one; nobody else waits for it.
//!
//! # Laws
//! - A text is to the token the one that [`generate`](crate::generate()) writes, whatever is
//!   written beside it: logits are the same to the bit ([`SequenceStore`](palmette_model::SequenceStore)), and every text has its own
//!   sampler.
//! - Each request that was admitted is told exactly one end or failure, unless its [`Ticket`] was
//!   dropped; then nothing more.
//! - Texts begin in the order of their arrival, and so do searches.
//!
//! # Drafts
//! Behind a text's tokens a pass may read a guess at what follows, and tells the logits after each
//! token of it. What stood before is looked up (`drafts`); where that has no guess, a smaller model
//! may have one ([`Engine::start_with_draft_model`], `draft_model`). Tokens are drawn as ever, each
//! from the logits after those before it; where they are the guessed ones, no pass is needed for
//! them. What did not come true is taken from the sequence again.
//!
//! # Items
//! Where a text is to have an item that is [searched](crate::ItemSearch), its beams are forks of
//! it (`item_beams.rs`). The search runs between two passes: other texts wait for it, as for a
//! prompt that is read.
//!
//! # Best texts
//! A [search](crate::TextBeams) for whole texts is made on a thread of its own (`beams`), one at a
//! time, and asks the runner for the rows of each step (`searching`): they stand in the passes of
//! the texts. Its beams take as many places as texts would, once these are free; none that is asked
//! for later takes them before. It keeps its pages to its end, and texts give theirs up for it.
//!
//! # Memory
//! Keys and values are kept in pages that all texts share. Texts with the same beginning (a system
//! prompt, the answers to one request, the next turn of a chat) share its pages. When none is free,
//! first texts that have ended are forgotten, then the youngest text gives its pages up and is read
//! again later: since logits are the same to the bit, so is what it becomes.

mod beams;
mod desk;
mod draft_model;
mod drafts;
mod run;
mod scores;
mod searching;
mod shares;
mod spent;
mod updates;
mod vocabulary_mismatch;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use palmette_model::{SequencesError, SequencesOptions};

use crate::error::RequestError;
use crate::item_beams::{BEAM_PAGES, MAX_FORKS};
use crate::model::TextModel;
use crate::request::TextRequest;
use crate::sequence::TextSequence;
use crate::text_beams::TextBeams;
use beams::{BeamJob, BeamQueue};
use desk::{Desk, Waiting, Writing};
use draft_model::DraftModel;
use run::Runner;

pub use beams::BeamSink;
pub use spent::Spent;
pub use updates::{EngineError, EngineStatistics, Sink, SubmitError, Update};
pub use vocabulary_mismatch::VocabularyMismatch;

/// Room of an [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// Texts that are written at once.
    pub max_texts: usize,
    /// Tokens, prompts included, whose keys and values are kept.
    pub max_tokens: usize,
    /// Rows of prompts in a pass while texts are written: more, and a prompt is read faster and
    /// texts stall longer.
    pub prompt_rows: usize,
    /// Requests that wait for a place.
    pub max_waiting: usize,
    /// Threads that make masks.
    pub mask_threads: usize,
    /// Tokens that a pass reads of a text as a guess at what comes next, at most: where its latest
    /// tokens stood before, or by a [draft model](Engine::start_with_draft_model); 0 for none. Texts
    /// are the same, and take fewer passes where guesses come true.
    pub draft_tokens: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            max_texts: 8,
            max_tokens: 16_384,
            prompt_rows: 32,
            max_waiting: 64,
            mask_threads: 1,
            draft_tokens: 8,
        }
    }
}

impl EngineOptions {
    /// Rows of prompts where a device computes the model: so many take little more time than one.
    pub const DEVICE_PROMPT_ROWS: usize = 512;

    /// Sequences that a model is to have room for where so many texts are written at once, or one
    /// that searches items.
    pub fn most_sequences(texts: usize) -> usize {
        texts.saturating_mul(2).max(1 + MAX_FORKS)
    }

    /// The plan of the model's part, with places for texts that have ended and whose pages may be
    /// of use.
    fn sequences(&self, model: &TextModel) -> SequencesOptions {
        let writing = self.max_texts + self.prompt_rows;
        SequencesOptions {
            max_sequences: 2 * self.max_texts,
            max_tokens: self.max_tokens,
            max_rows: writing.max(model.engine().sequence_rows()),
            threads: model.threads(),
        }
    }
}

/// An engine that cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The options.
    #[error("{name} is 0; it must be at least 1")]
    Zero {
        /// Name of the option.
        name: &'static str,
    },
    /// The memory.
    #[error(transparent)]
    Memory(#[from] SequencesError),
    /// The memory of the draft model, or its kind.
    #[error("the draft model {name}: {error}")]
    DraftModel {
        /// Name of the draft model.
        name: String,
        /// The reason.
        error: SequencesError,
    },
    /// A draft model of other tokens.
    #[error(transparent)]
    VocabularyMismatch(#[from] VocabularyMismatch),
    /// A draft model that would have nothing to guess.
    #[error(
        "draft_tokens is 0, so that the draft model {name} would guess nothing: make it 1 or more, or leave the draft model out"
    )]
    NoDraftTokens {
        /// Name of the draft model.
        name: String,
    },
    /// The system has no thread to give.
    #[error("no thread for the engine: {0}")]
    Thread(#[from] std::io::Error),
}

/// Writes the texts of several requests at once; see the [module](self).
pub struct Engine {
    model: TextModel,
    draft_model: Option<TextModel>,
    desk: Arc<Desk>,
    beams: Arc<BeamQueue>,
    max_texts: usize,
    max_positions: usize,
    /// Tokens of all pages.
    max_tokens: usize,
    planned: usize,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("model", &self.model)
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Takes the memory and starts the threads.
    ///
    /// # Errors
    /// When an option is 0, there is not the memory, or the system has no threads to give.
    pub fn start(model: TextModel, options: EngineOptions) -> Result<Self, StartError> {
        Self::start_with_draft_model(model, None, options)
    }

    /// [`start`](Self::start) with a draft model, where there is one: a smaller model of the same
    /// tokens, which guesses what comes next where look-up has no guess. Texts are the same, and
    /// take fewer passes of the model where it guesses as the model writes.
    ///
    /// The draft model has as many sequences and pages as the model, and its passes are made
    /// between those of the model, with as many threads as it was opened for.
    ///
    /// # Errors
    /// As [`start`](Self::start), and when the draft model has other tokens, there is not the
    /// memory for it too, or no tokens are to be guessed.
    pub fn start_with_draft_model(
        model: TextModel,
        draft_model: Option<TextModel>,
        options: EngineOptions,
    ) -> Result<Self, StartError> {
        for (name, value) in [
            ("max_texts", options.max_texts),
            ("max_tokens", options.max_tokens),
            ("prompt_rows", options.prompt_rows),
            ("mask_threads", options.mask_threads),
        ] {
            if value == 0 {
                return Err(StartError::Zero { name });
            }
        }
        if let Some(draft_model) = &draft_model {
            if options.draft_tokens == 0 {
                return Err(StartError::NoDraftTokens { name: draft_model.name().to_owned() });
            }
            VocabularyMismatch::check(&model, draft_model)?;
        }
        let open = |model: &TextModel| {
            let plan = options.sequences(model);
            let planned = model.engine().planned_sequence_bytes(&plan)?;
            Ok((planned, model.engine().open_sequences(plan)?))
        };
        let (mut planned, sequences) = open(&model)?;
        let guesses = match &draft_model {
            None => None,
            Some(draft_model) => {
                let name = draft_model.name().to_owned();
                let opened = open(draft_model);
                let (more, sequences) =
                    opened.map_err(|error| StartError::DraftModel { name, error })?;
                planned += more;
                Some(DraftModel::new(draft_model, sequences))
            }
        };
        let max_positions = sequences.max_positions();
        let max_tokens = sequences.free_pages() * SequencesOptions::PAGE_TOKENS;
        let desk = Arc::new(Desk::new(options.max_waiting, sequences.free_pages()));
        let beams = Arc::new(BeamQueue::new(options.max_waiting));
        let (max_texts, threads) = (options.max_texts, Vec::new());
        let mut engine = Self {
            model,
            draft_model,
            desk,
            beams,
            max_texts,
            max_positions,
            max_tokens,
            planned,
            threads,
        };
        let (model, desk, beams) =
            (engine.model.clone(), Arc::clone(&engine.desk), Arc::clone(&engine.beams));
        let named = thread::Builder::new().name("text-beams".to_owned());
        engine.threads.push(named.spawn(move || beams.search_texts(&model, &desk))?);
        for number in 0..options.mask_threads {
            let desk = Arc::clone(&engine.desk);
            let named = thread::Builder::new().name(format!("text-masks-{number}"));
            engine.threads.push(named.spawn(move || desk.settle_texts())?);
        }
        let runner = Runner::new(
            Arc::clone(&engine.desk),
            (sequences, guesses),
            options,
            engine.model.vocabulary().vocabulary().num_tokens(),
        );
        let named = thread::Builder::new().name("text-engine".to_owned());
        engine.threads.push(named.spawn(move || runner.run())?);
        Ok(engine)
    }

    /// The model.
    pub fn model(&self) -> &TextModel {
        &self.model
    }

    /// The draft model.
    pub fn draft_model(&self) -> Option<&TextModel> {
        self.draft_model.as_ref()
    }

    /// Bytes of memory that it took, those of a draft model too, besides the models' weights.
    pub fn planned_bytes(&self) -> usize {
        self.planned
    }

    /// Tokens that one text can have, its prompt included.
    pub fn max_positions(&self) -> usize {
        self.max_positions
    }

    /// Asks for a text, whose parts the stream gives as they come.
    ///
    /// # Errors
    /// When the request breaks a rule, does not fit, or too many wait.
    pub fn submit(&self, request: &TextRequest) -> Result<TextStream, SubmitError> {
        let (sender, updates) = mpsc::channel();
        // Whoever dropped the stream hears no more.
        let ticket = self.submit_to(request, Box::new(move |update| drop(sender.send(update))))?;
        Ok(TextStream { updates, _ticket: ticket, is_over: false })
    }

    /// Asks for a text and hears of it by a function, which an asynchronous channel can stand
    /// behind. Dropping the ticket ends the text.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_to(&self, request: &TextRequest, sink: Sink) -> Result<Ticket, SubmitError> {
        let text = TextSequence::new(&self.model, request)?;
        let (tokens, max) = (request.prompt.len() + request.max_tokens, self.max_positions);
        // A beam has its own copy of the last page, and may need another.
        let beams = match request.max_item_tokens() {
            0 => 0,
            _ => BEAM_PAGES * SequencesOptions::PAGE_TOKENS,
        };
        if tokens > max
            || tokens.next_multiple_of(SequencesOptions::PAGE_TOKENS) + beams > self.max_tokens
        {
            let max = max.min(self.max_tokens.saturating_sub(beams));
            return Err(SubmitError::TooLong { tokens, max });
        }
        let is_dropped = Arc::clone(text.is_called_off());
        let ticket = Ticket { is_dropped: Arc::clone(&is_dropped) };
        let writing = Writing { text, sink, is_dropped, spent: Spent::default() };
        self.desk.submit(Waiting { writing: Box::new(writing), since: Instant::now() })?;
        Ok(ticket)
    }

    /// Asks for the best texts that a search finds, which are told once all are found. Dropping the
    /// ticket ends the search.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), of a search too.
    pub fn search_to(
        &self,
        request: &TextRequest,
        beams: &TextBeams,
        sink: BeamSink,
    ) -> Result<Ticket, SubmitError> {
        request.check(&self.model)?;
        if let Some(broken) = beams.broken_rules(request).into_iter().next() {
            return Err(RequestError::from(broken).into());
        }
        let (tokens, max) = (request.prompt.len() + request.max_tokens, self.max_positions);
        if tokens > max {
            return Err(SubmitError::TooLong { tokens, max });
        }
        let (width, max) = (beams.width, self.max_texts);
        if width > max {
            return Err(SubmitError::TooManyBeams { beams: width, max });
        }
        let (tokens, max) = (beams.planned_tokens(request), self.max_tokens);
        if tokens > max {
            return Err(SubmitError::BeamsTooLong { beams: width, tokens, max });
        }
        let is_dropped = Arc::<AtomicBool>::default();
        let ticket = Ticket { is_dropped: Arc::clone(&is_dropped) };
        let (request, beams, since) = (request.clone(), *beams, Instant::now());
        let taken = self.beams.submit(BeamJob { request, beams, sink, is_dropped, since });
        if let Err(SubmitError::Full { .. }) = &taken {
            self.desk.count(|counts| counts.refused += 1);
        }
        taken.map(|()| ticket)
    }

    /// Work so far.
    pub fn statistics(&self) -> EngineStatistics {
        self.desk.statistics()
    }

    /// Refuses requests from now on; what was taken is written to its end.
    pub fn close(&self) {
        self.desk.close();
        self.beams.close();
    }
}

impl Drop for Engine {
    /// Ends all texts and waits for the threads.
    fn drop(&mut self) {
        // Searches first: they say why no rows come any more.
        self.beams.stop();
        self.desk.stop();
        for thread in self.threads.drain(..) {
            // A panic was told to those whose texts it was about.
            let _ = thread.join();
        }
    }
}

/// A request that was taken; dropping it ends the text, in the middle of a mask of a grammar too.
#[derive(Debug)]
#[must_use = "dropping the ticket ends the text"]
pub struct Ticket {
    is_dropped: Arc<AtomicBool>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

/// The parts of a text as they come; dropping it ends the text. The last part is its end or its
/// failure.
#[derive(Debug)]
pub struct TextStream {
    updates: mpsc::Receiver<Update>,
    _ticket: Ticket,
    is_over: bool,
}

impl TextStream {
    /// The next part, where it is there; `None` where it is not, or the text is over.
    pub fn try_next(&mut self) -> Option<Update> {
        let update = self.updates.try_recv().ok()?;
        self.is_over |= !matches!(update, Update::Text(_) | Update::Prompt(_));
        Some(update)
    }
}

impl Iterator for TextStream {
    type Item = Update;

    /// Waits for the next part.
    fn next(&mut self) -> Option<Update> {
        if self.is_over {
            return None;
        }
        let update = self.updates.recv().unwrap_or(Update::Failed(EngineError::Closed));
        self.is_over |= !matches!(update, Update::Text(_) | Update::Prompt(_));
        Some(update)
    }
}
