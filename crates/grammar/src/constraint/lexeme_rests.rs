//! Tokens that rests of lexemes take, remembered.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::HashMap;
use palmette_grammar_parser::TerminalId;
use palmette_grammar_parser::lexer::LexerState;

/// Tokens that rests of lexemes take, shared by all constraints on a grammar's texts;
/// [`NONE`](super::token_groups::NONE) where there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct LexemeRests(Arc<Rests>);

#[derive(Debug, Default)]
struct Rests {
    tokens: Mutex<HashMap<(LexerState, TerminalId), u32>>,
    longest: OnceLock<Box<[(TerminalId, u32)]>>,
}

/// Rests that are remembered, at most; then the memory begins anew.
const MAX_RESTS: usize = 1 << 14;

impl LexemeRests {
    fn tokens(&self) -> MutexGuard<'_, HashMap<(LexerState, TerminalId), u32>> {
        self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tokens of a rest that was asked for before.
    pub(super) fn get(&self, of: (LexerState, TerminalId)) -> Option<u32> {
        self.tokens().get(&of).copied()
    }

    /// Remembers the tokens of a rest.
    pub(super) fn insert(&self, of: (LexerState, TerminalId), tokens: u32) {
        let mut known = self.tokens();
        if known.len() >= MAX_RESTS {
            known.clear();
        }
        known.insert(of, tokens);
    }

    /// The most that rests of lexemes take, by terminal with a limit; found at the first question.
    pub(super) fn longest(
        &self,
        find: impl FnOnce() -> Box<[(TerminalId, u32)]>,
    ) -> &[(TerminalId, u32)] {
        self.0.longest.get_or_init(find)
    }
}
