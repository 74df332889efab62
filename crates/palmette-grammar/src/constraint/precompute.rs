//! Precomputing: masks found before they are asked for, the likeliest first.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use palmette_masks::{LexemeAhead, MaskAutomaton};
use palmette_parser::recognizer::{RecognizerError, RecognizerScratch};

use super::frontier::{Alike, Frontier, Open, Worth};
use super::lexeme_frontier::LexemeFrontier;
use super::{Engine, GrammarConstraint};
use crate::{Budget, Interrupted};

/// Limits of [precomputing](GrammarConstraint::precompute).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrecomputeLimits {
    /// Work: a unit for each node of the vocabulary's trie that is walked, each of its branches, and each byte read; some tens
    /// of nanoseconds each.
    pub steps: u64,
    /// Stops when the constraint takes [this much memory](GrammarConstraint::bytes), within what a mask more adds, or what is to be
    /// visited takes as much again, until it ends; and before what is known of masks takes more than [it
    /// may](GrammarConstraint::with_mask_bytes), since it would push out what was found.
    pub bytes: usize,
    /// Positions with the same lexeme in progress, and stacks before lexemes, are taken for one where they agree in this many states of each
    /// stack from its top. More finds more of what differs deep in the stack, and takes longer.
    pub stack_depth: usize,
    /// Threads that take part. A second one computes token effects, with half of the steps; more have nothing to do. With
    /// one, precomputing that takes all its steps comes as far each time.
    pub threads: usize,
}

impl Default for PrecomputeLimits {
    /// Tens of seconds, 64 MiB, one thread.
    fn default() -> Self {
        Self { steps: 1_000_000_000, bytes: 64 << 20, stack_depth: 3, threads: 1 }
    }
}

/// Result of [precomputing](GrammarConstraint::precompute).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precomputed {
    /// Lexemes in progress and positions that were visited. Their masks are known now, but for those that are found by walking and those that
    /// were begun in vain again and again while others asked.
    pub visited: usize,
    /// Those that were found and not visited; none where it got to its end.
    pub open: usize,
    /// The reason for which it stopped before its end.
    pub stopped: Option<PrecomputeStop>,
}

/// The reason for which precomputing stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecomputeStop {
    /// It took all its steps.
    Steps,
    /// It took all its memory, or all that masks may take.
    Bytes,
    /// It was told to.
    Cancelled,
}

impl From<Interrupted> for PrecomputeStop {
    fn from(why: Interrupted) -> Self {
        match why {
            Interrupted::OutOfBudget { .. } | Interrupted::TooManyWays { .. } => Self::Steps,
            Interrupted::OutOfBytes { .. } => Self::Bytes,
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
    /// Computes what masks need before they are asked for. Answers do not change by it, only how long they take; asking at the same
    /// time is allowed.
    ///
    /// Where another thread asks for a mask that is not known, or waits for what is held here, this gives way to it and goes
    /// on afterwards.
    ///
    /// Where lexemes do not depend on each other, lexemes in progress are visited, the likeliest first, once for each state that may be on
    /// top of the stack there, and in between what was met on one stack is followed down all others that may be below. So counts
    /// come to an end where they look alike for the longest token, and recursion does. Token effects are shared by
    /// grammars over a vocabulary.
    ///
    /// Otherwise, and after that where a text can be read in several ways, positions that texts come by are visited. From each
    /// one byte of each kind that its lexemes tell apart is read. Positions that [look alike](PrecomputeLimits::stack_depth) are visited
    /// once; a text may still come by a lexeme and a state that never were on top of it.
    ///
    /// What is reached by names which the grammar spells and by common bytes goes before others, and places where tokens are likely to be
    /// cut before those within tokens.
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
        self.run(limits, cancelled, drop, |_| {})
    }

    /// [`precompute`](Self::precompute) on a thread of its own.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn precompute_in_background(
        &self,
        limits: PrecomputeLimits,
    ) -> io::Result<BackgroundPrecompute> {
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
        Ok(BackgroundPrecompute { shared, thread: Some(thread), ended })
    }

    fn run(
        &self,
        limits: &PrecomputeLimits,
        cancelled: &AtomicBool,
        drop_frontier: impl FnOnce(Frontier),
        report: impl FnMut(&Precomputed),
    ) -> Result<Precomputed, RecognizerError> {
        let bytes = self.vocabulary.trie().max_depth() as u32;
        let mut running = Running {
            constraint: self,
            limits,
            alike: Alike { bytes, stack_depth: limits.stack_depth },
            budget: Budget::cancellable(limits.steps, cancelled)
                .giving_way_to(self.vocabulary.asking()),
            frontier: Frontier::default(),
            some_are_walked: false,
            scratch: RecognizerScratch::default(),
            visits: 0,
            precomputed: Precomputed { visited: 0, open: 0, stopped: None },
            report,
        };
        let ended = running.run();
        let Running { frontier, mut precomputed, .. } = running;
        drop_frontier(frontier);
        match ended {
            Ok(()) => {}
            Err(RecognizerError::Interrupted(why)) => precomputed.stopped = Some(why.into()),
            Err(error) => return Err(error),
        }
        Ok(precomputed)
    }
}

/// Precomputing in progress.
struct Running<'a, F> {
    constraint: &'a GrammarConstraint,
    limits: &'a PrecomputeLimits,
    alike: Alike,
    budget: Budget<'a>,
    frontier: Frontier,
    /// True when the masks of some lexemes are found by walking.
    some_are_walked: bool,
    scratch: RecognizerScratch,
    visits: usize,
    precomputed: Precomputed,
    report: F,
}

impl<F: FnMut(&Precomputed)> Running<'_, F> {
    fn run(&mut self) -> Result<(), RecognizerError> {
        let constraint = self.constraint;
        let recognizer = &*constraint.recognizer;
        match &constraint.engine {
            Engine::Walk => return Ok(()),
            Engine::Automaton(automaton) if recognizer.is_independent() => {
                if self.follow_lexemes(automaton)? {
                    return Ok(());
                }
            }
            Engine::Automaton(_) | Engine::Store(_) => {}
        }
        self.visit_positions()
    }

    /// Finds out what stacks say of lexemes in progress; tells whether positions need not be visited: they do where a text can be read in
    /// several ways, or masks are found by walking.
    fn follow_lexemes(&mut self, automaton: &MaskAutomaton) -> Result<bool, RecognizerError> {
        let recognizer = &*self.constraint.recognizer;
        let Alike { bytes, stack_depth } = self.alike;
        let mut frontier = LexemeFrontier::new(recognizer, bytes, stack_depth);
        self.precomputed.open = frontier.len();
        match self.limits.threads {
            ..=1 => self.visit_lexemes(automaton, &mut frontier)?,
            _ => self.visit_beside_residuals(automaton, &mut frontier)?,
        }
        Ok(!frontier.is_ambiguous() && !self.some_are_walked)
    }

    /// Visits lexemes while another thread computes the token effects that they need, or alone where the system has no thread to give.
    fn visit_beside_residuals(
        &mut self,
        automaton: &MaskAutomaton,
        frontier: &mut LexemeFrontier,
    ) -> Result<(), RecognizerError> {
        let (recognizer, asking) =
            (&*self.constraint.recognizer, self.constraint.vocabulary.asking());
        let mut residuals = automaton.residuals_ahead(recognizer, self.limits.bytes);
        let mut budget = self.budget.split().giving_way_to(asking);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let find = || {
                let mut more = Ok(true);
                while more == Ok(true) && !is_over.load(Ordering::Relaxed) {
                    more = automaton.prepare_residual(recognizer, &mut residuals, &mut budget);
                }
            };
            // Without it the visits compute the same.
            let _ = std::thread::Builder::new().spawn_scoped(scope, find);
            let visited = self.visit_lexemes(automaton, frontier);
            is_over.store(true, Ordering::Relaxed);
            visited
        })
    }

    /// Visits all lexemes, and then what more of stacks they depend on.
    fn visit_lexemes(
        &mut self,
        automaton: &MaskAutomaton,
        frontier: &mut LexemeFrontier,
    ) -> Result<(), RecognizerError> {
        let constraint = self.constraint;
        let (recognizer, trie) = (&*constraint.recognizer, constraint.vocabulary.trie());
        let stacks = &mut automaton.stacks_ahead(recognizer);
        while let Some(found) =
            frontier.next(recognizer, trie, &mut self.scratch, &mut self.budget)?
        {
            self.precomputed.open = frontier.len();
            self.look_at_memory(frontier.bytes() + stacks.bytes())?;
            let Some(lexeme) = found else { continue };
            match automaton.prepare_lexeme(recognizer, stacks, lexeme, &mut self.budget)? {
                LexemeAhead::Known => self.precomputed.visited += 1,
                LexemeAhead::Left => {}
                LexemeAhead::Walked => self.some_are_walked = true,
            }
            automaton.prepare_stacks(recognizer, stacks, AFTER_A_VISIT, &mut self.budget)?;
            (self.report)(&self.precomputed);
        }
        self.precomputed.open = frontier.len();
        (self.report)(&self.precomputed);
        while !stacks.is_empty() {
            self.look_at_memory(frontier.bytes() + stacks.bytes())?;
            automaton.prepare_stacks(recognizer, stacks, AT_THE_END, &mut self.budget)?;
        }
        Ok(())
    }

    /// Ends where there is no more memory, of which what is to be visited takes so much.
    fn look_at_memory(&mut self, open_bytes: usize) -> Result<(), Interrupted> {
        let limit = self.limits.bytes;
        let is_due = self.visits.is_multiple_of(BETWEEN_LOOKS);
        self.visits += 1;
        if is_due && (self.constraint.bytes() > limit || open_bytes > limit) {
            return Err(Interrupted::OutOfBytes { limit });
        }
        Ok(())
    }

    /// Visits all positions.
    fn visit_positions(&mut self) -> Result<(), RecognizerError> {
        let recognizer = &*self.constraint.recognizer;
        if let Some(start) = recognizer.start() {
            let start = Open::start(start.clone());
            self.frontier.add(recognizer, &self.alike, start, &mut self.scratch)?;
        }
        while let Some(open) = self.frontier.next() {
            self.look_at_memory(self.frontier.bytes())?;
            let is_known = self.visit_position(open)?;
            self.precomputed.visited += usize::from(is_known);
            self.precomputed.open = self.frontier.len();
            (self.report)(&self.precomputed);
        }
        Ok(())
    }

    /// Finds out the mask of a position unless that is put off, and where it leads; tells whether its mask is known now.
    fn visit_position(&mut self, mut open: Open) -> Result<bool, RecognizerError> {
        let constraint = self.constraint;
        let (recognizer, trie) = (&*constraint.recognizer, constraint.vocabulary.trie());
        let (is_due, ways) = open.look(recognizer, trie, &mut self.frontier, &mut self.scratch)?;
        let prepares = is_due && !open.is_prepared;
        let mut worth = Worth::Unknown;
        if prepares {
            let before = self.budget.left();
            let is_new = self.prepare(&open)?;
            open.is_prepared = true;
            worth = match before - self.budget.left() {
                _ if !is_new => Worth::Nothing,
                ..LITTLE_WORK => Worth::Little,
                _ => Worth::Much,
            };
        }
        for way in ways {
            self.budget.spend_holding_nothing(1)?;
            if let Some(next) = recognizer.advance(&open.position, way.byte, &mut self.scratch)? {
                let next = open.after(&way, next, worth);
                self.frontier.add(recognizer, &self.alike, next, &mut self.scratch)?;
            }
        }
        self.frontier.put_off(open);
        Ok(prepares)
    }

    /// Finds out the mask of a position; tells whether that was not known.
    fn prepare(&mut self, open: &Open) -> Result<bool, RecognizerError> {
        let (constraint, budget) = (self.constraint, &mut self.budget);
        let mut tries = 0;
        loop {
            let prepared = match &constraint.engine {
                Engine::Automaton(automaton) => {
                    automaton.prepare(&constraint.recognizer, &open.position, budget)
                }
                Engine::Store(store) => store.prepare(&open.position, budget),
                Engine::Walk => Ok(false),
            };
            match prepared {
                // Its mask is found by walking whenever it is asked for.
                Err(RecognizerError::Interrupted(Interrupted::TooManyWays { .. })) => {
                    return Ok(false);
                }
                Err(RecognizerError::Interrupted(why)) => {
                    if budget.gives_up(why, &mut tries)? {
                        return Ok(false);
                    }
                }
                prepared => return prepared,
            }
        }
    }
}

/// A mask that takes fewer steps is little work.
const LITTLE_WORK: u64 = 500;

/// Nodes of stacks that are made after a visit: each takes little where it is asked for.
const AFTER_A_VISIT: usize = 4;
const AT_THE_END: usize = 16;

/// Number of positions that are visited between two looks at the memory, which takes time in proportion to it.
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
