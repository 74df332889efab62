//! Topmost states after a terminal, on all stacks with some state on top.
//!
//! Of a stack as much is known as was pushed since; below that may be whatever [any
//! stack](StatesBelow) has there.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use palmette_grammar_parser::lr::{RuleId, StateId, Tables};

use crate::TerminalId;
use crate::states_below::StatesBelow;

/// Memo of topmost states after terminals.
#[derive(Debug)]
pub(super) struct TopsAfter {
    below: StatesBelow,
    known: HashMap<(StateId, TerminalId), Arc<[StateId]>>,
    num_known: usize,
}

/// States of a stack that are known, the topmost last.
type KnownStates = Vec<StateId>;

/// More known states are forgotten from the bottom, or rules without symbols could push for ever.
const MAX_STATES: usize = 8;

impl TopsAfter {
    pub(super) fn new(tables: &Tables) -> Self {
        Self { below: StatesBelow::new(tables), known: HashMap::new(), num_known: 0 }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<((StateId, TerminalId), Arc<[StateId]>)>();
        self.below.bytes() + self.known.capacity() * entry + self.num_known * size_of::<StateId>()
    }

    /// The states that may be on top after a terminal, once all reductions that need no lookahead
    /// are done.
    pub(super) fn after(
        &mut self,
        tables: &Tables,
        top: StateId,
        terminal: TerminalId,
    ) -> Arc<[StateId]> {
        if let Some(known) = self.known.get(&(top, terminal)) {
            return Arc::clone(known);
        }
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
        let found: Arc<[StateId]> = found.into();
        self.num_known += found.len();
        self.known.insert((top, terminal), Arc::clone(&found));
        found
    }

    /// Adds the stacks after a reduction.
    fn reduce(&mut self, tables: &Tables, stack: &[StateId], rule: RuleId, to: &mut Closure) {
        let (length, head) = (tables.rules().length(rule), tables.rules().head(rule));
        let mut push = |below: &[StateId]| {
            let target = below.last().and_then(|&base| tables.goto(base, head));
            to.work_on(target.map(|target| pushed(below, target)));
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

    fn work_on(&mut self, stack: Option<KnownStates>) {
        if let Some(stack) = stack {
            self.add(stack);
        }
    }
}

/// A stack with one state more.
fn pushed(stack: &[StateId], target: StateId) -> KnownStates {
    let kept = &stack[stack.len().saturating_sub(MAX_STATES - 1)..];
    kept.iter().copied().chain([target]).collect()
}
