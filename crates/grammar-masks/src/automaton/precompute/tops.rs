//! Topmost states after a terminal, on all stacks with some state on top.
//!
//! Known is of a stack what was pushed since; below that may be whatever [any
//! stack](Predecessors) has there.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use palmette_grammar_parser::lexer::LexerState;
use palmette_grammar_parser::lr::{RuleId, StateId, Tables};
use palmette_grammar_parser::recognizer::Recognizer;

use crate::predecessors::Predecessors;
use crate::{TerminalId, TerminalSet};

/// Memo of topmost states after terminals.
#[derive(Debug)]
pub(super) struct SuccessorTops {
    below: Predecessors,
    known: HashMap<(StateId, TerminalId), Arc<[StateId]>>,
    num_known: usize,
    /// Terminals for which a state does something, by state, where lexers do not know of parsers.
    expected: Vec<TerminalSet>,
}

/// States of a stack that are known, the topmost last.
type KnownStates = Vec<StateId>;

/// More known states are forgotten from the bottom, or rules without symbols could push for ever.
const MAX_STATES: usize = 8;

impl SuccessorTops {
    pub(super) fn new(recognizer: &Recognizer) -> Self {
        let tables = recognizer.parser().tables();
        let expected = match &recognizer.layer().indentation {
            None => Vec::new(),
            Some(marks) => {
                let mut dropped = recognizer.ignored().clone();
                dropped.insert(marks.newline);
                tables.states().map(|state| tables.expected(state, &dropped)).collect()
            }
        };
        let below = Predecessors::new(tables);
        Self { below, known: HashMap::new(), num_known: 0, expected }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<((StateId, TerminalId), Arc<[StateId]>)>();
        let expected = self.expected.iter().map(|set| set.num_terminals() / 8).sum::<usize>();
        expected
            + self.below.bytes()
            + self.known.capacity() * entry
            + self.num_known * size_of::<StateId>()
    }

    /// True when a lexeme in progress may become something that a parser with this state on top
    /// takes.
    pub(super) fn is_live(&self, recognizer: &Recognizer, lexer: LexerState, top: StateId) -> bool {
        let expected = self.expected.get(top.index());
        expected
            .is_none_or(|expected| recognizer.lexer().viable_terminals(lexer).intersects(expected))
    }

    /// The states that may be on top after a terminal and the marks that follow it, once all
    /// reductions that need no lookahead are done.
    pub(super) fn after(
        &mut self,
        recognizer: &Recognizer,
        top: StateId,
        terminal: TerminalId,
    ) -> Arc<[StateId]> {
        if let Some(known) = self.known.get(&(top, terminal)) {
            return Arc::clone(known);
        }
        let tables = recognizer.parser().tables();
        let marks = recognizer.layer().indentation.as_ref();
        let mut found = match recognizer.ignored().contains(terminal) {
            true => vec![top],
            false => self.after_shift(tables, top, terminal),
        };
        // Inside brackets it is dropped; elsewhere blocks begin, or some end.
        if let Some(marks) = marks.filter(|marks| marks.newline == terminal) {
            for at in found.clone() {
                found.extend(self.after_shift(tables, at, marks.indent));
            }
            let mut done = 0;
            while let Some(&at) = found.get(done) {
                done += 1;
                for ended in self.after_shift(tables, at, marks.dedent) {
                    if !found.contains(&ended) {
                        found.push(ended);
                    }
                }
            }
            found.push(top);
            found.sort_unstable();
            found.dedup();
        }
        let found: Arc<[StateId]> = found.into();
        self.num_known += found.len();
        self.known.insert((top, terminal), Arc::clone(&found));
        found
    }

    fn after_shift(&mut self, tables: &Tables, top: StateId, terminal: TerminalId) -> Vec<StateId> {
        let (mut before, mut after) = (Closure::from(vec![top]), Closure::default());
        while let Some(stack) = before.work.pop() {
            let state = stack[stack.len() - 1];
            if let Some(target) = tables.shift(state, terminal) {
                after.add(pushed(&stack, target));
            }
            for (rule, lookahead) in tables.reductions(state) {
                if lookahead.is_none_or(|set| set.contains(terminal)) {
                    self.reduce(tables, &stack, rule, &mut before);
                }
            }
        }
        let mut found = Vec::new();
        while let Some(stack) = after.work.pop() {
            let state = stack[stack.len() - 1];
            match tables.sole_reduction(state) {
                Some(rule) => self.reduce(tables, &stack, rule, &mut after),
                None => found.push(state),
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Adds the stacks after a reduction.
    fn reduce(&mut self, tables: &Tables, stack: &[StateId], rule: RuleId, to: &mut Closure) {
        let (length, head) = (tables.rules().length(rule), tables.rules().head(rule));
        let mut push = |below: &[StateId]| {
            if let Some(target) = below.last().and_then(|&base| tables.goto(base, head)) {
                to.add(pushed(below, target));
            }
        };
        match stack.len().checked_sub(length).filter(|&left| left > 0) {
            Some(left) => push(&stack[..left]),
            None => {
                let depth = (length + 1 - stack.len()) as u32;
                self.below.of(stack[0], depth).iter().for_each(|&base| push(&[base]));
            }
        }
    }
}

/// Stacks, each of which is worked on once.
#[derive(Debug, Default)]
struct Closure {
    work: Vec<KnownStates>,
    seen: HashSet<KnownStates>,
}

impl From<KnownStates> for Closure {
    fn from(stack: KnownStates) -> Self {
        let mut closure = Self::default();
        closure.add(stack);
        closure
    }
}

impl Closure {
    fn add(&mut self, stack: KnownStates) {
        if self.seen.insert(stack.clone()) {
            self.work.push(stack);
        }
    }
}

/// A stack with one state more.
fn pushed(stack: &[StateId], target: StateId) -> KnownStates {
    let kept = &stack[stack.len().saturating_sub(MAX_STATES - 1)..];
    kept.iter().copied().chain([target]).collect()
}
