//! Precomputing: masks found before they are asked for, the likeliest first.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use palmette_grammar_masks::Precompute;
use palmette_grammar_parser::recognizer::RecognizerError;

use super::GrammarConstraint;
use crate::{Budget, Interrupted};

/// Limits of [precomputing](GrammarConstraint::precompute).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrecomputeLimits {
    /// Work: a unit for each node of the vocabulary's trie that is walked, each of its branches,
    /// and each byte read; some tens of nanoseconds each.
    pub steps: u64,
    /// Stops when the constraint takes [this much memory](GrammarConstraint::bytes), within what a
    /// mask more adds, or what is to be visited takes as much again, until it ends; and before what
    /// is known of masks takes more than [it may](GrammarConstraint::with_mask_bytes), since it
    /// would push out what was found.
    pub bytes: usize,
    /// Positions with the same lexeme in progress, and stacks before lexemes, are taken for one
    /// where they agree in this many states of each stack from its top. More finds more of what
    /// differs deep in the stack, and takes longer.
    pub stack_depth: usize,
}

impl Default for PrecomputeLimits {
    /// Tens of seconds, 64 MiB.
    fn default() -> Self {
        Self { steps: 1_000_000_000, bytes: 64 << 20, stack_depth: 3 }
    }
}

/// Result of [precomputing](GrammarConstraint::precompute).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precomputed {
    /// Lexemes in progress and positions that were visited. Their masks are known now, but for
    /// those that are found by walking and those that were begun in vain again and again while
    /// others asked.
    pub visited: usize,
    /// Lexemes and positions that were found and not visited; none where it got to its end.
    pub open: usize,
    /// The reason for which it stopped before its end.
    pub stopped: Option<PrecomputeStop>,
    /// True when it is certain that no mask of any text is left to be found: it got to its end, and
    /// lexemes begin by the parser's contexts, whose stacks are bounded without texts.
    pub is_complete: bool,
}

/// The reason for which precomputing stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecomputeStop {
    /// The steps, used up.
    Steps,
    /// The memory, or that of masks, used up.
    Bytes,
    /// Cancellation.
    Cancelled,
}

impl From<Interrupted> for PrecomputeStop {
    fn from(why: Interrupted) -> Self {
        match why {
            Interrupted::OutOfBudget { .. } | Interrupted::TooManyWays { .. } => Self::Steps,
            Interrupted::OutOfBytes { .. } | Interrupted::TooManyResiduals => Self::Bytes,
            Interrupted::Cancelled => Self::Cancelled,
        }
    }
}

/// Precomputing on a thread of its own. Dropping it stops the thread without waiting for it.
#[derive(Debug)]
pub struct BackgroundPrecompute {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Precomputed, RecognizerError>>>,
    ended: mpsc::Receiver<()>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    visited: AtomicUsize,
    open: AtomicUsize,
}

impl GrammarConstraint {
    /// Computes what masks need before they are asked for. Answers do not change by it, only how
    /// long they take; asking at the same time is allowed.
    ///
    /// Where another thread asks for a mask that is not known, or waits for what is held here, this
    /// gives way to it and goes on afterwards. Precomputing that takes all its steps and gives way
    /// to nobody comes as far each time.
    ///
    /// Lexemes in progress are visited, the likeliest first, once for each state that may be on top
    /// of the stack there, and in between what was met on one stack is followed down all others
    /// that may be below. So counts come to an end where they look alike for the longest token, and
    /// recursion does. Token effects are shared by grammars over a vocabulary. After that, where a
    /// text can be read in several ways or there are blocks, positions that texts come by are
    /// visited, each with one byte of each kind that its lexemes tell apart.
    ///
    /// No lexeme and no stack is missed where lexemes depend on the parser's contexts: at its end
    /// it [is complete](Precomputed::is_complete).
    ///
    /// What is reached by names which the grammar spells and by common bytes goes before others,
    /// and places where tokens are likely to be cut before those within tokens.
    ///
    /// Constraints that [walk](Self::by_walking) know nothing ahead: they are complete at once.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, as a text may that comes there.
    pub fn precompute(
        &self,
        limits: &PrecomputeLimits,
        cancelled: &AtomicBool,
    ) -> Result<Precomputed, RecognizerError> {
        self.precompute_reporting(limits, cancelled, |_, _| {})
    }

    /// [`precompute`](Self::precompute) on a thread of its own.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn precompute_in_background(
        &self,
        limits: PrecomputeLimits,
    ) -> io::Result<BackgroundPrecompute> {
        self.precompute_in_background_pausing(limits, || {})
    }

    /// [`precompute_in_background`](Self::precompute_in_background) that calls `pause` before each
    /// step, on its thread, while it holds no lock: a program that forks keeps it there meanwhile.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn precompute_in_background_pausing(
        &self,
        limits: PrecomputeLimits,
        mut pause: impl FnMut() + Send + 'static,
    ) -> io::Result<BackgroundPrecompute> {
        let (constraint, shared) = (self.clone(), Arc::new(Shared::default()));
        let (end, ended) = mpsc::channel();
        let seen = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("masks-ahead".to_owned()).spawn(move || {
                // Dropped at the end, and when unwinding: that is what `wait` waits for.
                let _end = end;
                pause();
                constraint.precompute_reporting(&limits, &seen.cancelled, |visited, open| {
                    seen.visited.store(visited, Ordering::Relaxed);
                    seen.open.store(open, Ordering::Relaxed);
                    pause();
                })
            })?;
        Ok(BackgroundPrecompute { shared, thread: Some(thread), ended })
    }

    /// [`precompute`](Self::precompute) that tells how many were visited and are open after each
    /// step, while it holds no lock.
    pub(crate) fn precompute_reporting(
        &self,
        limits: &PrecomputeLimits,
        cancelled: &AtomicBool,
        mut report: impl FnMut(usize, usize),
    ) -> Result<Precomputed, RecognizerError> {
        let Some(automaton) = self.mask_automaton() else {
            return Ok(Precomputed { visited: 0, open: 0, stopped: None, is_complete: false });
        };
        let mut precompute = Precompute::new(automaton, &self.recognizer, limits.stack_depth);
        let mut budget =
            Budget::cancellable(limits.steps, cancelled).giving_way_to(self.vocabulary.asking());
        let mut run = || {
            for visit in 0_usize.. {
                let too_much = |bytes| bytes > limits.bytes;
                if visit.is_multiple_of(BETWEEN_LOOKS)
                    && (too_much(self.bytes()) || too_much(precompute.bytes()))
                {
                    return Err(Interrupted::OutOfBytes { limit: limits.bytes }.into());
                }
                if !precompute.step(&mut budget)? {
                    break;
                }
                report(precompute.visited(), precompute.open());
            }
            Ok(())
        };
        let stopped = match run() {
            Ok(()) => None,
            Err(RecognizerError::Interrupted(why)) => Some(why.into()),
            Err(error) => return Err(error),
        };
        let (visited, open) = (precompute.visited(), precompute.open());
        report(visited, open);
        let is_complete = stopped.is_none() && precompute.is_complete();
        Ok(Precomputed { visited, open, stopped, is_complete })
    }
}

/// Number of visits between two looks at the memory, which takes time in proportion to it.
const BETWEEN_LOOKS: usize = 16;

impl BackgroundPrecompute {
    /// Numbers of lexemes and positions visited, and found but not visited, by now.
    pub fn progress(&self) -> (usize, usize) {
        let [visited, open] = [&self.shared.visited, &self.shared.open];
        (visited.load(Ordering::Relaxed), open.load(Ordering::Relaxed))
    }

    /// Tells it to stop, which it soon does.
    pub fn stop(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// Waits at most this long for its end; tells whether it came.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.ended.recv_timeout(at_most) == Err(mpsc::RecvTimeoutError::Disconnected)
    }

    /// Waits for its end and gives what it came to.
    ///
    /// # Errors
    /// Those of [`precompute`](GrammarConstraint::precompute).
    ///
    /// # Panics
    /// When its thread did.
    pub fn join(mut self) -> Result<Precomputed, RecognizerError> {
        let thread = self.thread.take().expect("only joining takes it");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for BackgroundPrecompute {
    fn drop(&mut self) {
        self.stop();
    }
}
