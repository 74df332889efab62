//! Finding masks out before they are asked for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use hashbrown::HashSet;

use super::{Engine, GrammarConstraint};
use crate::lexer::LexerState;
use crate::lr::StateId;
use crate::recognizer::{Position, RecognizerError, RecognizerScratch};
use crate::{Budget, Interrupted, Stacks};

/// How far a [completion](GrammarConstraint::complete) goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionLimits {
    /// Work: a unit for each node of the vocabulary's trie that is walked, each of its branches, and each byte read; some tens
    /// of nanoseconds each.
    pub steps: u64,
    /// Stops when the constraint takes [this much memory](GrammarConstraint::bytes), within what a mask more adds; and before what
    /// is known of masks takes more than [it may](GrammarConstraint::with_mask_bytes), since it would push out what was found.
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
    /// Positions whose masks are known now.
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
    /// Visits positions that texts come by, nearest first, so that masks there are known when they are asked for. Answers do
    /// not change by it, only how long they take; asking at the same time is allowed.
    ///
    /// From each position one byte of each kind that its lexemes tell apart is read. Positions between lexemes
    /// go before those within, where fewer tokens begin. Positions that
    /// [look alike](CompletionLimits::stack_depth) are visited once, so recursion and counts come to an end; a text that comes
    /// by a stack unlike all visited may still have to find out its mask.
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
        self.run(limits, cancelled, |_| {})
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
                constraint.run(&limits, &seen.cancelled, |so_far| {
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
        mut report: impl FnMut(&Completion),
    ) -> Result<Completion, RecognizerError> {
        let mut frontier = Frontier::default();
        let mut completion = Completion { visited: 0, open: 0, stopped: None };
        let mut budget = Budget::cancellable(limits.steps, cancelled);
        if !matches!(self.engine, Engine::Walk)
            && let Some(start) = self.recognizer.start()
        {
            frontier.add(self, start.clone(), 0, limits.stack_depth)?;
        }
        completion.open = frontier.len();
        let scratch = &mut RecognizerScratch::default();
        while let Some((depth, position)) = frontier.next() {
            if completion.visited.is_multiple_of(BETWEEN_LOOKS) && self.bytes() > limits.bytes {
                completion.stopped = Some(CompletionStop::Bytes);
                break;
            }
            match self.visit(&position, depth, limits, &mut frontier, scratch, &mut budget) {
                Ok(()) => {}
                Err(RecognizerError::Interrupted(why)) => {
                    completion.stopped = Some(match why {
                        Interrupted::OutOfBudget { .. } => CompletionStop::Steps,
                        Interrupted::OutOfBytes { .. } => CompletionStop::Bytes,
                        Interrupted::Cancelled => CompletionStop::Cancelled,
                    });
                    break;
                }
                Err(error) => return Err(error),
            }
            completion.visited += 1;
            completion.open = frontier.len();
            report(&completion);
        }
        Ok(completion)
    }

    /// Finds out the mask of a position and where it leads.
    fn visit(
        &self,
        position: &Position,
        depth: usize,
        limits: &CompletionLimits,
        frontier: &mut Frontier,
        scratch: &mut RecognizerScratch,
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        match &self.engine {
            Engine::Automaton(automaton) => {
                automaton.prepare(&self.recognizer, position, budget)?;
            }
            Engine::Store(store) => store.prepare(position, budget)?,
            Engine::Walk => {}
        }
        for byte in self.telling_bytes(position)? {
            budget.spend(1)?;
            if let Some(next) = self.recognizer.advance(position, byte, scratch)? {
                frontier.add(self, next, depth + 1, limits.stack_depth)?;
            }
        }
        Ok(())
    }

    /// The first byte of each kind that the lexemes of a position tell apart.
    fn telling_bytes(&self, position: &Position) -> Result<Vec<u8>, RecognizerError> {
        let lexer = self.recognizer.lexer();
        let mut states = Vec::new();
        for branch in position.branches() {
            states.push(branch.lexer);
            states.extend(lexer.ends(branch.lexer)?.iter().map(|end| end.next));
        }
        states.sort_unstable();
        states.dedup();
        let mut kinds = HashSet::new();
        let mut is_new = |byte: &u8| {
            kinds.insert(states.iter().map(|&state| lexer.class(state, *byte)).collect::<Vec<_>>())
        };
        Ok((0..=u8::MAX).filter(|byte| is_new(byte)).collect())
    }
}

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

/// Positions to be visited.
#[derive(Default)]
struct Frontier {
    seen: HashSet<Vec<Key>>,
    open: BinaryHeap<Reverse<Open>>,
    num_added: usize,
}

/// Of what a branch is made, as far as it is looked at: the lexeme in progress, and the states of its stacks by their
/// distance from the top.
type Key = (LexerState, Vec<(usize, StateId)>);

struct Open {
    /// When it is to be visited: whether it is within a lexeme, how many bytes from the start, when it was found.
    order: (bool, usize, usize),
    position: Position,
}

impl Frontier {
    /// Adds a position unless one like it was added before.
    fn add(
        &mut self,
        constraint: &GrammarConstraint,
        position: Position,
        depth: usize,
        stack_depth: usize,
    ) -> Result<(), RecognizerError> {
        let lexer = constraint.recognizer.lexer();
        let longest = constraint.vocabulary.trie().max_depth() as u32;
        let (mut key, mut within) = (Vec::new(), true);
        for branch in position.branches() {
            key.push((lexer.within(branch.lexer, longest)?, tops(&branch.stacks, stack_depth)));
            within &= lexer.ends(branch.lexer)?.is_empty();
        }
        if self.seen.insert(key) {
            let order = (within, depth, self.num_added);
            self.num_added += 1;
            self.open.push(Reverse(Open { order, position }));
        }
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, Position)> {
        self.open.pop().map(|Reverse(open)| (open.order.1, open.position))
    }

    fn len(&self) -> usize {
        self.open.len()
    }
}

/// The states at each distance from the tops of the stacks, below `depth`.
fn tops(stacks: &Stacks, depth: usize) -> Vec<(usize, StateId)> {
    let mut found = Vec::new();
    let mut level: Vec<_> = stacks.tops().collect();
    for distance in 0..depth {
        let first = found.len();
        found.extend(level.iter().map(|node| (distance, node.state())));
        found[first..].sort_unstable();
        level = level.iter().flat_map(|node| node.below()).collect();
        level.truncate(MAX_NODES);
    }
    found.dedup();
    found
}

/// As many nodes of a graph of stacks are looked at on each level; further ones only tell apart what may be visited once.
const MAX_NODES: usize = 64;

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}
