//! Finding masks out before they are asked for.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::frontier::{Alike, Frontier, Open, Worth};
use super::{Engine, GrammarConstraint};
use crate::masks::{Ahead, StacksAhead};
use crate::recognizer::{RecognizerError, RecognizerScratch};
use crate::{Budget, Interrupted};

/// How far a [completion](GrammarConstraint::complete) goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionLimits {
    /// Work: a unit for each node of the vocabulary's trie that is walked, each of its branches, and each byte read; some tens
    /// of nanoseconds each.
    pub steps: u64,
    /// Stops when the constraint takes [this much memory](GrammarConstraint::bytes), within what a mask more adds, or what is to be
    /// visited takes as much again, until it ends; and before what is known of masks takes more than [it
    /// may](GrammarConstraint::with_mask_bytes), since it would push out what was found.
    pub bytes: usize,
    /// Positions that agree in the lexeme in progress and in this many states of each stack from its top are taken for one.
    /// More finds more of what differs deep in the stack, and takes longer.
    pub stack_depth: usize,
}

impl Default for CompletionLimits {
    /// Tens of seconds, 64 MiB.
    fn default() -> Self {
        Self { steps: 1_000_000_000, bytes: 64 << 20, stack_depth: 4 }
    }
}

/// What a [completion](GrammarConstraint::complete) came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Positions that were visited. Their masks are known now, but for those that are found by walking and those that were begun in vain
    /// again and again while others asked.
    pub visited: usize,
    /// Positions that were found and not visited; none where it got to its end.
    pub open: usize,
    /// Why it stopped before its end.
    pub stopped: Option<CompletionStop>,
}

/// Why a completion stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionStop {
    /// It took all its steps.
    Steps,
    /// It took all its memory, or all that masks may take.
    Bytes,
    /// It was told to.
    Cancelled,
}

impl From<Interrupted> for CompletionStop {
    fn from(why: Interrupted) -> Self {
        match why {
            Interrupted::OutOfBudget { .. } | Interrupted::TooManyWays { .. } => Self::Steps,
            Interrupted::OutOfBytes { .. } => Self::Bytes,
            Interrupted::Cancelled => Self::Cancelled,
        }
    }
}

/// A completion on a thread of its own. Dropping it stops the thread without waiting for it.
#[derive(Debug)]
pub struct BackgroundCompletion {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Completion, RecognizerError>>>,
    ended: mpsc::Receiver<()>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    visited: AtomicUsize,
    open: AtomicUsize,
}

impl GrammarConstraint {
    /// Finds out what masks need before they are asked for. Answers do not change by it, only how long they take; asking at the same
    /// time is allowed.
    ///
    /// Where another thread asks for a mask that it has to find out, or waits for what is held here, this gives way to it and goes
    /// on afterwards.
    ///
    /// First what tokens do to all that may be left of the grammar's terminals, whatever the text before them, until that takes as much
    /// memory as [the limit](CompletionLimits::bytes) allows the constraint; grammars over a vocabulary share it. Then positions that
    /// texts come by are visited, the likeliest first, so that masks there are known.
    ///
    /// From each position one byte of each kind that its lexemes tell apart is read. Positions that are reached by names which the
    /// grammar spells and by common bytes go before others, and those where tokens are likely to be cut before those within
    /// tokens. Positions that [look alike](CompletionLimits::stack_depth) are visited once, so recursion and counts come to an end; in
    /// between, what was met in progress on one stack is followed down the others that may be there. A text may still come by a lexeme and a
    /// state that never were on top of it.
    ///
    /// Constraints that [walk](Self::by_walking) know nothing ahead: they are complete at once.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded, as a text may that comes there.
    pub fn complete(
        &self,
        limits: &CompletionLimits,
        cancelled: &AtomicBool,
    ) -> Result<Completion, RecognizerError> {
        self.run(limits, cancelled, drop, |_| {})
    }

    /// [`complete`](Self::complete) on a thread of its own.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn complete_in_background(
        &self,
        limits: CompletionLimits,
    ) -> io::Result<BackgroundCompletion> {
        let (constraint, shared) = (self.clone(), Arc::new(Shared::default()));
        let (end, ended) = mpsc::channel();
        let seen = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("masks-ahead".to_owned()).spawn(move || {
                // Dropped at the end, and when unwinding: that is what `wait` waits for.
                let _end = end;
                let drop_frontier = |frontier: Frontier| frontier.drop_slowly(&seen.cancelled);
                constraint.run(&limits, &seen.cancelled, drop_frontier, |so_far| {
                    seen.visited.store(so_far.visited, Ordering::Relaxed);
                    seen.open.store(so_far.open, Ordering::Relaxed);
                })
            })?;
        Ok(BackgroundCompletion { shared, thread: Some(thread), ended })
    }

    fn run(
        &self,
        limits: &CompletionLimits,
        cancelled: &AtomicBool,
        drop_frontier: impl FnOnce(Frontier),
        report: impl FnMut(&Completion),
    ) -> Result<Completion, RecognizerError> {
        let mut frontier = Frontier::default();
        let completion = self.run_along(&mut frontier, limits, cancelled, report);
        drop_frontier(frontier);
        completion
    }

    fn run_along(
        &self,
        frontier: &mut Frontier,
        limits: &CompletionLimits,
        cancelled: &AtomicBool,
        mut report: impl FnMut(&Completion),
    ) -> Result<Completion, RecognizerError> {
        let scratch = &mut RecognizerScratch::default();
        let bytes = self.vocabulary.trie().max_depth() as u32;
        let alike = Alike { bytes, stack_depth: limits.stack_depth };
        let mut completion = Completion { visited: 0, open: 0, stopped: None };
        let budget = &mut Budget::cancellable(limits.steps, cancelled)
            .giving_way_to(self.vocabulary.asking());
        if !matches!(self.engine, Engine::Walk)
            && let Some(start) = self.recognizer.start()
        {
            let start = Open::start(start.clone());
            frontier.add(&self.recognizer, &alike, start, scratch)?;
        }
        completion.open = frontier.len();
        let mut stacks = match self.prepare_parts(limits, budget) {
            Ok(stacks) => stacks,
            Err(RecognizerError::Interrupted(why)) => {
                completion.stopped = Some(why.into());
                return Ok(completion);
            }
            Err(error) => return Err(error),
        };
        let mut visits: usize = 0;
        while let Some(open) = frontier.next() {
            let is_full = || self.bytes() > limits.bytes || frontier.bytes() > limits.bytes;
            if visits.is_multiple_of(BETWEEN_LOOKS) && is_full() {
                completion.stopped = Some(CompletionStop::Bytes);
                break;
            }
            visits += 1;
            let visited = self.visit(open, &alike, frontier, &mut stacks, scratch, budget);
            let visited = visited.and_then(|prepared| {
                for (which, number) in AFTER_A_VISIT {
                    self.prepare_stacks(&mut stacks, which, number, u32::MAX, limits, budget)?;
                }
                Ok(prepared)
            });
            match visited {
                Ok(prepared) => completion.visited += usize::from(prepared),
                Err(RecognizerError::Interrupted(why)) => {
                    completion.stopped = Some(why.into());
                    break;
                }
                Err(error) => return Err(error),
            }
            completion.open = frontier.len();
            report(&completion);
        }
        for which in [Ahead::Masks, Ahead::Tails] {
            if completion.stopped.is_none() {
                let all = (usize::MAX, u32::MAX);
                let ended = self.prepare_stacks(&mut stacks, which, all.0, all.1, limits, budget);
                completion.stopped = ended.err().map(CompletionStop::from);
            }
        }
        Ok(completion)
    }

    /// Finds out what masks are put together from: what tokens do to terminals, and how they go on where these end as far as that depends
    /// on few states. Gives what stacks say otherwise, which is left.
    fn prepare_parts(
        &self,
        limits: &CompletionLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Option<StacksAhead>, RecognizerError> {
        let Engine::Automaton(automaton) = &self.engine else { return Ok(None) };
        let recognizer = &*self.recognizer;
        automaton.prepare_pieces(recognizer, limits.bytes, budget)?;
        let mut stacks = automaton.stacks_ahead(recognizer);
        self.prepare_stacks(&mut stacks, Ahead::Tails, usize::MAX, FIRST_STEPS, limits, budget)?;
        Ok(stacks)
    }

    /// Finds out so much of what stacks say, as far as at most `most` steps lead there.
    fn prepare_stacks(
        &self,
        stacks: &mut Option<StacksAhead>,
        which: Ahead,
        number: usize,
        most: u32,
        limits: &CompletionLimits,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        let (Engine::Automaton(automaton), Some(stacks)) = (&self.engine, stacks) else {
            return Ok(());
        };
        let recognizer = &*self.recognizer;
        for _ in 0..number {
            if !automaton.prepare_stack(recognizer, stacks, which, most, limits.bytes, budget)? {
                break;
            }
        }
        Ok(())
    }

    /// Finds out the mask of a position unless that is put off, and where it leads; tells whether its mask is known now.
    fn visit(
        &self,
        mut open: Open,
        alike: &Alike,
        frontier: &mut Frontier,
        stacks: &mut Option<StacksAhead>,
        scratch: &mut RecognizerScratch,
        budget: &mut Budget<'_>,
    ) -> Result<bool, RecognizerError> {
        let recognizer = &*self.recognizer;
        let (is_due, ways) = open.look(recognizer, self.vocabulary.trie(), frontier, scratch)?;
        let prepares = is_due && !open.is_prepared;
        let mut worth = Worth::Unknown;
        if prepares {
            let before = budget.left();
            let mut tries = 0;
            let is_new = loop {
                let prepared = match &self.engine {
                    Engine::Automaton(automaton) => {
                        automaton.prepare(recognizer, &open.position, budget)
                    }
                    Engine::Store(store) => store.prepare(&open.position, budget),
                    Engine::Walk => Ok(false),
                };
                match prepared {
                    // Its mask is found by walking whenever it is asked for.
                    Err(RecognizerError::Interrupted(Interrupted::TooManyWays { .. })) => {
                        break false;
                    }
                    Err(RecognizerError::Interrupted(why)) => {
                        if budget.gives_up(why, &mut tries)? {
                            break false;
                        }
                    }
                    prepared => break prepared?,
                }
            };
            open.is_prepared = true;
            if let (Engine::Automaton(automaton), Some(stacks)) = (&self.engine, stacks) {
                automaton.add_ahead(&open.position, stacks);
            }
            worth = match before - budget.left() {
                _ if !is_new => Worth::Nothing,
                ..LITTLE_WORK => Worth::Little,
                _ => Worth::Much,
            };
        }
        for way in ways {
            if let Err(why) = budget.spend(1)
                && !(why == Interrupted::Cancelled && budget.gave_way())
            {
                return Err(why.into());
            }
            if let Some(next) = recognizer.advance(&open.position, way.byte, scratch)? {
                frontier.add(recognizer, alike, open.after(&way, next, worth), scratch)?;
            }
        }
        frontier.put_off(open);
        Ok(prepares)
    }
}

/// A mask that takes fewer steps is little work.
const LITTLE_WORK: u64 = 500;

/// What tails say that more steps lead to is found out between visits of positions: there may be much, and a visit finds out what it needs.
const FIRST_STEPS: u32 = 5;

/// How much of that is found out after a visit, of which one takes several times as long, and how much of what stacks unlike those that are
/// visited say of its lexeme.
const AFTER_A_VISIT: [(Ahead, usize); 2] = [(Ahead::Tails, 2), (Ahead::Masks, 8)];

/// How many positions are visited between two looks at the memory, which takes time in proportion to it.
const BETWEEN_LOOKS: usize = 16;

impl BackgroundCompletion {
    /// How many positions were visited, and how many were found and not visited, by now.
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
    /// Those of [`complete`](GrammarConstraint::complete).
    ///
    /// # Panics
    /// When its thread did.
    pub fn join(mut self) -> Result<Completion, RecognizerError> {
        let thread = self.thread.take().expect("only joining takes it");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for BackgroundCompletion {
    fn drop(&mut self) {
        self.stop();
    }
}
