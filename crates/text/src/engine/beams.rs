//! Beam searches for whole texts: one at a time, on a thread of its own beside the texts that are
//! written.
//!
//! Masks, selection and ranks are the thread's; the rows of each step are the runner's, which reads
//! them in the passes of all texts.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Instant;

use palmette_core::TokenId;
use palmette_model::SequencesError;

use super::desk::Desk;
use super::searching::{BeamAsk, BeamReply};
use super::spent::Spent;
use super::updates::{EngineError, SubmitError, Update};
use crate::beam_reader::{BeamRows, RowLogits};
use crate::error::TextError;
use crate::model::TextModel;
use crate::request::TextRequest;
use crate::sequence::{TextEnd, TextEvent};
use crate::text_beams::TextBeams;

/// Hears of the texts that a search finds, by their places, once all are found, on the engine's
/// thread: it must not take long. A failure is told of the first.
pub type BeamSink = Box<dyn FnMut(usize, Update) + Send>;

/// A search that is asked for.
pub(super) struct BeamJob {
    pub(super) request: TextRequest,
    pub(super) beams: TextBeams,
    pub(super) sink: BeamSink,
    /// True when nobody wants it any more.
    pub(super) is_dropped: Arc<AtomicBool>,
    pub(super) since: Instant,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<BeamJob>,
    is_closed: bool,
}

/// The searches that wait, for the thread that makes them.
pub(super) struct BeamQueue {
    jobs: Mutex<Jobs>,
    /// A search came, or the end.
    signal: Condvar,
    is_stopping: AtomicBool,
    max_waiting: usize,
}

impl BeamQueue {
    pub(super) fn new(max_waiting: usize) -> Self {
        let (jobs, signal, is_stopping) = Default::default();
        Self { jobs, signal, is_stopping, max_waiting: max_waiting.max(1) }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        // Nothing here panics halfway.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn submit(&self, job: BeamJob) -> Result<(), SubmitError> {
        let mut jobs = self.jobs();
        if jobs.is_closed {
            return Err(SubmitError::Closed);
        }
        // Those that nobody waits for any more hold no place.
        jobs.waiting.retain(|job| !job.is_dropped.load(Ordering::Relaxed));
        let waiting = jobs.waiting.len();
        if waiting >= self.max_waiting {
            return Err(SubmitError::Full { waiting });
        }
        jobs.waiting.push_back(job);
        self.signal.notify_one();
        Ok(())
    }

    pub(super) fn close(&self) {
        self.jobs().is_closed = true;
    }

    /// Ends the search that is being made, and those that wait.
    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.jobs().is_closed = true;
        self.signal.notify_all();
    }

    /// Work of the thread: searches until the end.
    pub(super) fn search_texts(&self, model: &TextModel, desk: &Desk) {
        loop {
            let mut jobs = self.jobs();
            let job = loop {
                match jobs.waiting.pop_front() {
                    Some(job) => break job,
                    None if self.is_stopping.load(Ordering::Relaxed) => return,
                    None => {
                        let waited = self.signal.wait(jobs);
                        jobs = waited.unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(jobs);
            self.search(job, model, desk);
        }
    }

    /// Makes a search and tells what it found.
    fn search(&self, mut job: BeamJob, model: &TextModel, desk: &Desk) {
        let began = Instant::now();
        let is_stopping = || self.is_stopping.load(Ordering::Relaxed);
        let BeamJob { request, beams, sink, is_dropped, since } = &mut job;
        let (waited, is_dropped) = (began - *since, &*is_dropped);
        let is_unwanted = || is_dropped.load(Ordering::Relaxed) || is_stopping();
        let ends_told = Cell::new(0);
        let told = &mut |place: usize, event| {
            if is_unwanted() {
                return ControlFlow::Break(());
            }
            match event {
                TextEvent::Text(piece) => sink(place, Update::Text(piece)),
                TextEvent::End(ended) => {
                    // The work was on all of them.
                    let spent = match place {
                        0 => Spent { waited, passes: began.elapsed(), ..Spent::default() },
                        _ => Spent::default(),
                    };
                    sink(place, Update::End(ended, spent));
                    ends_told.set(ends_told.get() + 1);
                }
                TextEvent::Stage(_) => {}
            }
            ControlFlow::Continue(())
        };
        let searched = match is_unwanted() {
            true => Ok(Ok(Vec::new())),
            false => catch_unwind(AssertUnwindSafe(|| {
                let rows = || {
                    Ok(DeskRows {
                        desk,
                        prompt: &request.prompt,
                        width: beams.width,
                        is_dropped,
                        replies: None,
                    })
                };
                beams.search_by(model, request, rows, told)
            })),
        };
        // Whoever was told of all may let go of the ticket before this is counted.
        let is_told = matches!(&searched, Ok(Ok(ended)) if !ended.is_empty() && ended.len() == ends_told.get());
        let error = match searched {
            _ if !is_told && is_dropped.load(Ordering::Relaxed) => {
                return desk.count(|counts| counts.cancelled += 1);
            }
            _ if !is_told && is_stopping() => EngineError::Closed,
            Ok(Ok(ended)) => {
                desk.count(|counts| {
                    let tokens = |of: &TextEnd| of.usage.completion_tokens as u64;
                    counts.ended += ended.len() as u64;
                    counts.text_tokens += ended.iter().map(tokens).sum::<u64>();
                });
                return (ended.len()..beams.texts).for_each(|place| sink(place, Update::Missing));
            }
            Ok(Err(error)) => error.into(),
            Err(_) => EngineError::Panicked,
        };
        desk.count(|counts| counts.failed += 1);
        sink(0, Update::Failed(error));
    }
}

/// Rows of a search in the passes of all texts; dropping it ends the search there.
struct DeskRows<'a> {
    desk: &'a Desk,
    prompt: &'a [TokenId],
    width: usize,
    is_dropped: &'a Arc<AtomicBool>,
    replies: Option<mpsc::Receiver<BeamReply>>,
}

impl DeskRows<'_> {
    /// Waits for the rows that were asked for. They do not come where the runner has ended.
    fn take(&self, logits: &mut RowLogits) -> Result<(), TextError> {
        let ended = || SequencesError::Engine("the engine ended before the search did".to_owned());
        let reply = self.replies.as_ref().and_then(|replies| replies.recv().ok());
        *logits = reply.unwrap_or_else(|| Err(ended()))?;
        Ok(())
    }
}

impl BeamRows for DeskRows<'_> {
    fn read_prompt(&mut self, logits: &mut RowLogits) -> Result<(), TextError> {
        let (reply, replies) = mpsc::channel();
        self.replies = Some(replies);
        let (prompt, width) = (self.prompt.to_vec(), self.width);
        let buffer = std::mem::take(logits);
        let is_dropped = Arc::clone(self.is_dropped);
        self.desk.ask(BeamAsk::Begin { prompt, width, is_dropped, logits: buffer, reply });
        self.take(logits)
    }

    fn read(
        &mut self,
        parents: &[u32],
        tokens: &[TokenId],
        logits: &mut RowLogits,
    ) -> Result<(), TextError> {
        let (parents, tokens) = (parents.to_vec(), tokens.to_vec());
        self.desk.ask(BeamAsk::Step { parents, tokens, logits: std::mem::take(logits) });
        self.take(logits)
    }
}

impl Drop for DeskRows<'_> {
    fn drop(&mut self) {
        self.desk.ask(BeamAsk::End);
    }
}
