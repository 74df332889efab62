//! The fast way, for one stack and as long as there is one thing to do.

use std::sync::Arc;

use super::node::Node;
use crate::TerminalId;
use crate::lr::{Action, RuleId, StateId, Tables};

/// The outcome of going the fast way.
pub(super) enum Outcome {
    /// The terminal cannot follow.
    Dead,
    /// A shift to this state.
    Shift(StateId),
    /// The text may end.
    Accept,
    /// Several actions: only the general parser tells.
    Fork,
}

/// Limit on reductions on end that leave what is below alone; then the general way decides.
const MAX_ROUNDS: usize = 256;

/// One stack: what is left of a given one, and what was pushed since.
///
/// Nothing is allocated for it but in `pushed`, whose memory is kept.
pub(super) struct Cursor<'a> {
    base: &'a Arc<Node>,
    pushed: &'a mut Vec<StateId>,
    /// Number of reductions that were done since `base` was reached.
    rounds: usize,
}

impl<'a> Cursor<'a> {
    /// The stack `base`.
    pub(super) fn new(base: &'a Arc<Node>, pushed: &'a mut Vec<StateId>) -> Self {
        pushed.clear();
        Self { base, pushed, rounds: 0 }
    }

    /// Does the reductions before `terminal`, and tells what comes then.
    ///
    /// Terminates: reductions either reach ever lower states of the stack, or there are few of
    /// them. A cycle of rules (`B → C`, `C → S`, `S → B`) may be gone round without a choice:
    /// before a terminal that cannot follow on this stack but on another one with the same states
    /// on top, where the choice would be.
    pub(super) fn reduce_before(&mut self, tables: &Tables, terminal: TerminalId) -> Outcome {
        loop {
            match tables.action(self.top(), terminal) {
                Action::None => return Outcome::Dead,
                Action::Shift(target) => return Outcome::Shift(target),
                Action::Accept => return Outcome::Accept,
                Action::Several => return Outcome::Fork,
                Action::Reduce(rule) => {
                    if !self.reduce(tables, rule) {
                        return Outcome::Fork;
                    }
                }
            }
        }
    }

    /// Does the reductions that are to be done whatever follows; `false` when the stack splits
    /// below.
    pub(super) fn reduce_sole(&mut self, tables: &Tables) -> bool {
        while let Some(rule) = tables.sole_reduction(self.top()) {
            if !self.reduce(tables, rule) {
                return false;
            }
        }
        true
    }

    /// The state on top.
    pub(super) fn top(&self) -> StateId {
        self.pushed.last().copied().unwrap_or(self.base.state)
    }

    /// Pushes a state.
    pub(super) fn push(&mut self, state: StateId) {
        self.pushed.push(state);
    }

    /// The stack as nodes.
    pub(super) fn into_node(self) -> Arc<Node> {
        let mut node = Arc::clone(self.base);
        for &state in &*self.pushed {
            node = Arc::new(Node::above(state, node));
        }
        node
    }

    /// Replaces a rule's body by its head; `false` when the stack splits below.
    fn reduce(&mut self, tables: &Tables, rule: RuleId) -> bool {
        let mut length = tables.rules().length(rule);
        let popped = length.min(self.pushed.len());
        self.pushed.truncate(self.pushed.len() - popped);
        length -= popped;
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            return false;
        }
        for _ in 0..length {
            match self.base.only_link() {
                Some(below) => (self.base, self.rounds) = (below, 0),
                None => return false,
            }
        }
        match tables.goto(self.top(), tables.rules().head(rule)) {
            Some(target) => {
                self.push(target);
                true
            }
            None => false,
        }
    }
}
