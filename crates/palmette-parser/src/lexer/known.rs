//! A lexer's states as built so far.

use std::sync::atomic::Ordering;

use super::{DEAD, FIRST_STATE, Guards, LexemeEnd, Lexer, LexerState, UNKNOWN};
use crate::{TerminalId, TerminalSet};

impl Lexer {
    /// The steps from a state that were taken before and led on, each with its first byte, in ascending order.
    pub fn known_steps(&self, state: LexerState) -> impl Iterator<Item = (u8, LexerState)> + '_ {
        let state = self.state(state);
        let steps = state.classes.representatives().iter().zip(&state.row);
        steps.filter_map(|(&byte, entry)| match entry.load(Ordering::Acquire) {
            UNKNOWN | DEAD => None,
            found => Some((byte, LexerState(found - FIRST_STATE))),
        })
    }

    /// States that [`restricted_to`](Self::restricted_to) made of one in which no byte was read, or could have made, without guards, with their terminals.
    pub fn known_restrictions(&self, state: LexerState) -> Vec<(LexerState, Vec<TerminalId>)> {
        self.determiniser().known_restrictions(state)
    }

    /// Memo of `restricted_to_guarded` for states in which no byte was read.
    pub fn known_guarded(
        &self,
        state: LexerState,
        terminals: &TerminalSet,
        guards: &Guards,
    ) -> Option<LexerState> {
        self.determiniser().known_guarded(state, terminals, guards)
    }

    /// [`ends`](Self::ends), if they were asked for before.
    pub fn known_ends(&self, state: LexerState) -> &[LexemeEnd] {
        self.state(state).ends.get().map_or(&[], |found| &found.ends)
    }
}
