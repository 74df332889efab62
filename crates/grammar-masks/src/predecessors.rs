//! States that may be below others on the stacks of an LR automaton.
//!
//! Any way back through the automaton is a stack, so what may come is bounded from above without a
//! text: whoever asks meets more stacks than there are, and misses none.

use std::sync::Arc;

use hashbrown::HashMap;
use palmette_grammar_parser::lr::{StateId, Tables};

/// States so many below one on some stack.
#[derive(Debug)]
pub(crate) struct Predecessors {
    /// States one below, by state.
    next: Vec<Vec<StateId>>,
    /// Memo, as far as memory allows; they are found again otherwise.
    known: HashMap<(StateId, u32), Arc<[StateId]>>,
    num_known: usize,
}

/// Number of states that are kept, in some megabytes.
const MAX_KNOWN: usize = 1 << 20;

impl Predecessors {
    pub(crate) fn new(tables: &Tables) -> Self {
        let mut next = vec![Vec::new(); tables.num_states()];
        for state in tables.states() {
            let shifts = tables.shifts(state).iter().map(|&(_, target)| target);
            let gotos = tables.gotos(state).iter().map(|&(_, target)| target);
            shifts.chain(gotos).for_each(|target| next[target.index()].push(state));
        }
        for states in &mut next {
            states.sort_unstable();
            states.dedup();
        }
        Self { next, known: HashMap::new(), num_known: 0 }
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        self.num_known * size_of::<StateId>()
    }

    /// The states that may be so many states below one.
    pub(crate) fn of(&mut self, state: StateId, depth: u32) -> Arc<[StateId]> {
        if let Some(known) = self.known.get(&(state, depth)) {
            return Arc::clone(known);
        }
        let mut found = vec![state];
        for _ in 0..depth {
            found = found.iter().flat_map(|state| &self.next[state.index()]).copied().collect();
            found.sort_unstable();
            found.dedup();
        }
        let found: Arc<[StateId]> = found.into();
        if self.num_known + found.len() > MAX_KNOWN {
            (self.known, self.num_known) = (HashMap::new(), 0);
        }
        self.num_known += found.len();
        self.known.insert((state, depth), Arc::clone(&found));
        found
    }
}
