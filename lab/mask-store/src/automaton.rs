//! The interface of a lexer that the store spells tokens with.

use std::hash::Hash;

use palmette_grammar_parser::lexer::{Lexer, LexerError, LexerState};
use palmette_grammar_parser::{TerminalId, TerminalSet};

/// An automaton over bytes that cuts texts into lexemes, in all the ways that are still open.
///
/// The [`Lexer`] is one. The store needs no more of it than this, so that it can also be built for
/// automata that are not deterministic, such as one that has the states of each terminal's own
/// automaton side by side.
pub trait LexemeAutomaton {
    /// A position.
    type State: Copy + Ord + Hash + std::fmt::Debug;

    /// The positions in which the lexeme in progress has gone on with `byte`.
    ///
    /// # Errors
    /// When a limit is exceeded.
    fn advance(
        &self,
        state: Self::State,
        byte: u8,
        visit: impl FnMut(Self::State),
    ) -> Result<(), LexerError>;

    /// Ends of the lexeme in progress here: as which terminal, and where the next one then begins.
    ///
    /// # Errors
    /// When a limit is exceeded.
    fn ends(
        &self,
        state: Self::State,
        visit: impl FnMut(TerminalId, Self::State),
    ) -> Result<(), LexerError>;

    /// Terminals that the lexeme in progress can still become.
    fn viable_terminals(&self, state: Self::State) -> &TerminalSet;
}

impl LexemeAutomaton for Lexer {
    type State = LexerState;

    fn advance(
        &self,
        state: LexerState,
        byte: u8,
        visit: impl FnMut(LexerState),
    ) -> Result<(), LexerError> {
        self.advance(state, byte)?.into_iter().for_each(visit);
        Ok(())
    }

    fn ends(
        &self,
        state: LexerState,
        mut visit: impl FnMut(TerminalId, LexerState),
    ) -> Result<(), LexerError> {
        for end in self.ends(state)? {
            end.terminals.iter().for_each(|terminal| visit(terminal, end.next));
        }
        Ok(())
    }

    fn viable_terminals(&self, state: LexerState) -> &TerminalSet {
        self.viable_terminals(state)
    }
}
