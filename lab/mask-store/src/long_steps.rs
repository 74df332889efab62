//! Steps 3 to 5 of streamlining: rows whose acceptance the grammar alone decides.
//!
//! Of the rows of Python's grammar that the first two steps leave, steps 3 and 4 take away 37 of
//! 100, for fourteen times the time of those. So who makes rows while a mask is waited for takes
//! the first two only.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use palmette_grammar_parser::{Grammar, TerminalId};

use super::legality::Legality;
use super::steps::{Step, Steps};

/// Judge of rows by themselves, remembering its answers.
///
/// - Step 3: rows with two neighbours that are never legal go; a last terminal that is always legal
///   after the one before it is dropped.
/// - Step 4: rows that are never legal as a whole go; an end that is always legal after what is
///   before it is dropped.
/// - Step 5: what is before it are the two terminals before it, where step 4 looks at one.
///
/// Sound: a dropped row is accepted by no position of the parser, and a row that loses its end is
/// accepted wherever its beginning is, which holds the tokens from then on.
#[derive(Debug)]
pub(super) struct LongSteps {
    legality: Legality,
    steps: Steps,
    memory: Mutex<Memory>,
}

/// Answers that were found; they come up again and again.
#[derive(Debug, Default)]
struct Memory {
    /// Length that is kept of a sequence with the terminal before it, if any.
    fates: HashMap<Fate, Option<usize>>,
    /// Two terminals and the question.
    answers: HashMap<(TerminalId, TerminalId, Question), bool>,
}

type Fate = (Option<TerminalId>, Box<[TerminalId]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Question {
    Never,
    Always,
}

impl LongSteps {
    /// Judge of a grammar's rows; `None` where `steps` has none of these.
    pub(super) fn new(grammar: &Grammar, steps: Steps) -> Option<Self> {
        let own = [Step::Pairs, Step::Sequences, Step::Context];
        let is_wanted = own.into_iter().any(|step| steps.has(step));
        is_wanted.then(|| Self {
            legality: Legality::new(grammar),
            steps,
            memory: Mutex::default(),
        })
    }

    /// Length of the part of a sequence that its row keeps, where `before` is the terminal before
    /// it if that is known; `None` when the row goes.
    pub(super) fn kept(
        &self,
        before: Option<TerminalId>,
        terminals: &[TerminalId],
    ) -> Option<usize> {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        self.look_up(before, terminals, &mut memory)
    }

    fn look_up(
        &self,
        before: Option<TerminalId>,
        terminals: &[TerminalId],
        memory: &mut Memory,
    ) -> Option<usize> {
        if terminals.is_empty() {
            return Some(0);
        }
        let key: Fate = (before, terminals.into());
        if let Some(&known) = memory.fates.get(&key) {
            return known;
        }
        let fate = self.decide(before, terminals, memory);
        memory.fates.insert(key, fate);
        fate
    }

    fn decide(
        &self,
        before: Option<TerminalId>,
        terminals: &[TerminalId],
        memory: &mut Memory,
    ) -> Option<usize> {
        let mut kept = terminals.len();
        if self.steps.has(Step::Pairs) {
            let mut pairs = terminals.windows(2);
            if pairs.any(|pair| self.pair(pair, Question::Never, memory)) {
                return None;
            }
            while kept >= 2 && self.pair(&terminals[kept - 2..kept], Question::Always, memory) {
                kept -= 1;
            }
        }
        let context = match (self.steps.has(Step::Sequences), self.steps.has(Step::Context)) {
            (_, true) => 2,
            (true, false) => 1,
            (false, false) => return Some(kept),
        };
        // A shorter row is judged by the same rule, so its fate may be known.
        if kept < terminals.len() {
            return self.look_up(before, &terminals[..kept], memory);
        }
        let known: Vec<TerminalId> = before.into_iter().chain(terminals.iter().copied()).collect();
        if self.legality.is_never_legal(&known) {
            return None;
        }
        let first = known.len() - kept;
        let end = (1..kept).find(|&begin| {
            let begin = first + begin;
            let (before, next) = known.split_at(begin);
            let before = &before[begin.saturating_sub(context)..];
            match (before, next) {
                ([_], [_]) => self.pair(&known[begin - 1..], Question::Always, memory),
                _ => self.legality.is_always_legal(before, next),
            }
        });
        match end {
            Some(begin) => self.look_up(before, &terminals[..begin], memory),
            None => Some(kept),
        }
    }

    fn pair(&self, pair: &[TerminalId], question: Question, memory: &mut Memory) -> bool {
        let answer = || match question {
            Question::Never => self.legality.is_never_legal(pair),
            Question::Always => self.legality.is_always_legal(&pair[..1], &pair[1..]),
        };
        *memory.answers.entry((pair[0], pair[1], question)).or_insert_with(answer)
    }
}
