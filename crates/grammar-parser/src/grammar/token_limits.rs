//! Limits on the tokens of a terminal's lexemes: how far a model may go on with a text.

use std::num::NonZeroU32;

use super::{Grammar, GrammarBuilder, TerminalId};

/// Limit on the tokens in which bytes of one lexeme stand.
///
/// Texts that cut a lexeme by its tokens are known to their author alone, so its terminal is a
/// [free](super::TerminalKind::Free) one: what the limit ends may be less than would match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimit {
    /// The terminal.
    pub terminal: TerminalId,
    /// The most tokens of one of its lexemes.
    pub tokens: NonZeroU32,
}

impl Grammar {
    /// The limits on tokens, in the order in which they were added; one for each terminal at most.
    pub fn token_limits(&self) -> &[TokenLimit] {
        &self.token_limits
    }
}

impl GrammarBuilder {
    /// Limits the tokens of a terminal's lexemes; the terminal does not compete from now on.
    pub fn token_limit(&mut self, limit: TokenLimit) {
        self.terminals[limit.terminal.index()].kind = super::TerminalKind::Free;
        self.token_limits.push(limit);
    }

    /// Adds the limits of a grammar whose terminals are these here.
    pub fn token_limits_of(
        &mut self,
        limits: &[TokenLimit],
        terminal: impl Fn(TerminalId) -> TerminalId,
    ) {
        for limit in limits {
            self.token_limit(TokenLimit { terminal: terminal(limit.terminal), ..*limit });
        }
    }
}
