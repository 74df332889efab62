//! Lexing contexts: the terminals for which a parser state has an action, equal sets once.
//!
//! With [`Lexing::Contextual`](crate::Lexing::Contextual) a lexeme begins with the terminals of its stack's topmost state, as in lark's
//! contextual lexer. The tables' lookaheads are LALR(1), so a set may hold terminals that cannot follow on the stack at
//! hand; reductions that need no lookahead are done before, so that this is rare.
//!
//! Cost: a byte for eight terminals and distinct set.

use hashbrown::HashMap;

use crate::LexerError;
use crate::TerminalSet;
use crate::lexer::{Lexer, LexerState};
use crate::lr::{StateId, Tables};

/// A set of terminals in [`Contexts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ContextId(u32);

/// By parser state, its context.
#[derive(Debug)]
pub(crate) struct Contexts {
    of_state: Vec<ContextId>,
    sets: Vec<TerminalSet>,
}

impl Contexts {
    /// The contexts of all states; every set holds `always`.
    pub(super) fn new(tables: &Tables, always: &TerminalSet) -> Self {
        let mut numbers = HashMap::new();
        let mut made = Self { of_state: Vec::with_capacity(tables.num_states()), sets: Vec::new() };
        for state in tables.states() {
            let set = actions(tables, state, always);
            let next = ContextId(made.sets.len() as u32);
            let id = *numbers.entry(set).or_insert_with_key(|set: &TerminalSet| {
                made.sets.push(set.clone());
                next
            });
            made.of_state.push(id);
        }
        made
    }

    /// The context of a topmost state.
    pub(crate) fn of(&self, state: StateId) -> ContextId {
        self.of_state[state.index()]
    }

    /// All contexts, once each.
    pub(super) fn all(&self) -> impl Iterator<Item = ContextId> + use<> {
        (0..self.sets.len() as u32).map(ContextId)
    }

    /// Its terminals.
    pub(crate) fn terminals(&self, context: ContextId) -> &TerminalSet {
        &self.sets[context.0 as usize]
    }

    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let set = |set: &TerminalSet| size_of::<TerminalSet>() + set.num_terminals() / 8;
        size_of_val(&*self.of_state) + self.sets.iter().map(set).sum::<usize>()
    }
}

/// Lexer states in which lexemes begin, by context: a thread's memory, so that known ones take no lock.
#[derive(Debug, Default)]
pub(crate) struct ContextualStates {
    known: HashMap<(LexerState, ContextId), LexerState>,
}

impl ContextualStates {
    /// Forgets all, which is of another lexer.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }

    /// The state `next`, in which no byte of a lexeme was read, for the terminals of a context.
    pub(crate) fn begin(
        &mut self,
        lexer: &Lexer,
        contexts: &Contexts,
        next: LexerState,
        context: ContextId,
    ) -> Result<LexerState, LexerError> {
        if let Some(&known) = self.known.get(&(next, context)) {
            return Ok(known);
        }
        let found = lexer.among(next, contexts.terminals(context))?;
        self.known.insert((next, context), found);
        Ok(found)
    }
}

/// The terminals for which a state has an action, and `always`.
fn actions(tables: &Tables, state: StateId, always: &TerminalSet) -> TerminalSet {
    let mut set = always.clone();
    let shifted = tables.shifts(state).iter().map(|&(terminal, _)| terminal);
    let reduced = tables.reductions(state).filter_map(|(_, after)| after);
    let reduced = reduced.flat_map(|after| after.iter());
    for terminal in shifted.chain(reduced).filter(|&terminal| terminal != tables.end()) {
        set.insert(terminal);
    }
    set
}
