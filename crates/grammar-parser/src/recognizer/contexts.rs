//! Lexing contexts: the terminals for which a parser state has an action, with their guards, equal
//! ones once.
//!
//! With [`Lexing::Contextual`](crate::Lexing::Contextual) a lexeme begins with the terminals of its
//! stack's topmost state, as in lark's contextual lexer. The tables' lookaheads are LALR(1), so a
//! set may hold terminals that cannot follow on the stack at hand; reductions that need no
//! lookahead are done before, so that this is rare.
//!
//! Cost: a byte for eight terminals and distinct set.

use hashbrown::HashMap;

use crate::LexerError;
use crate::TerminalSet;
use crate::lexer::{Guards, Lexer, LexerState};
use crate::lr::{StateId, Tables};

/// A set of terminals with guards in [`Contexts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(u32);

/// Contexts by parser state.
#[derive(Debug)]
pub struct Contexts {
    of_state: Vec<ContextId>,
    sets: Vec<(TerminalSet, Guards)>,
}

impl Contexts {
    /// The contexts of all states; every set holds `always`. `guards` are those of each state, or
    /// none at all.
    pub(super) fn new(tables: &Tables, always: &TerminalSet, guards: &[Guards]) -> Self {
        let mut numbers = HashMap::new();
        let mut made = Self { of_state: Vec::with_capacity(tables.num_states()), sets: Vec::new() };
        for state in tables.states() {
            let guards = guards.get(state.index()).cloned().unwrap_or_default();
            let set = (tables.expected(state, always), guards);
            let next = ContextId(made.sets.len() as u32);
            let id = *numbers.entry(set).or_insert_with_key(|set: &(TerminalSet, Guards)| {
                made.sets.push(set.clone());
                next
            });
            made.of_state.push(id);
        }
        made
    }

    /// The context of a topmost state.
    pub fn of(&self, state: StateId) -> ContextId {
        self.of_state[state.index()]
    }

    /// All contexts, once each.
    pub(super) fn all(&self) -> impl Iterator<Item = ContextId> + use<> {
        (0..self.sets.len() as u32).map(ContextId)
    }

    /// Terminals of the context.
    pub fn terminals(&self, context: ContextId) -> &TerminalSet {
        &self.sets[context.0 as usize].0
    }

    /// The state `next`, in which no byte of a lexeme was read, for the terminals of a context less
    /// some.
    pub fn begin(
        &self,
        lexer: &Lexer,
        next: LexerState,
        context: ContextId,
        leave_out: impl FnOnce(&mut TerminalSet),
    ) -> Result<LexerState, LexerError> {
        let (terminals, guards) = &self.sets[context.0 as usize];
        let mut terminals = terminals.clone();
        leave_out(&mut terminals);
        lexer.restricted_to_guarded(next, &terminals, guards)
    }

    /// The contexts with guards, each with its number.
    pub fn guarded(&self) -> impl Iterator<Item = (u32, &TerminalSet, &Guards)> + '_ {
        let sets = (0..).zip(&self.sets).map(|(number, (set, guards))| (number, set, guards));
        sets.filter(|(.., guards)| !guards.is_empty())
    }

    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let set = |(set, guards): &(TerminalSet, Guards)| {
            size_of::<(TerminalSet, Guards)>() + set.num_terminals() / 8 + guards.bytes()
        };
        size_of_val(&*self.of_state) + self.sets.iter().map(set).sum::<usize>()
    }
}

/// Lexer states in which lexemes begin, by context: a thread's memory, so that known ones take no
/// lock.
#[derive(Debug, Default)]
pub struct ContextualStates {
    known: HashMap<(LexerState, ContextId), LexerState>,
}

impl ContextualStates {
    /// Forgets all, which is of another lexer.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    /// The state `next`, in which no byte of a lexeme was read, for the terminals of a context.
    pub fn begin(
        &mut self,
        lexer: &Lexer,
        contexts: &Contexts,
        next: LexerState,
        context: ContextId,
    ) -> Result<LexerState, LexerError> {
        if let Some(&known) = self.known.get(&(next, context)) {
            return Ok(known);
        }
        let found = contexts.begin(lexer, next, context, |_| {})?;
        self.known.insert((next, context), found);
        Ok(found)
    }
}
