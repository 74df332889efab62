//! Tokens of lexemes in progress, where their terminals have a [limit](crate::TokenLimit).
//!
//! Bytes do not tell where tokens end, so whoever reads tokens says so after each
//! ([`Recognizer::end_token`]). A branch counts the tokens in which bytes of its lexeme stand, if
//! the lexeme may become a terminal with a limit. Once there are more than a terminal may have, the
//! lexeme no longer becomes that terminal: the lexer's state still knows it, the branch does not.
//! Terminals with limits do not compete, so no other lexeme is the longer for it.

use super::lexeme_tokens::{LexemeTokens, TokenLimits};
use super::{Branch, Position, Recognizer, RecognizerError, RecognizerScratch};
use crate::{TerminalId, TerminalSet};

impl Recognizer {
    /// Limits on the tokens of lexemes.
    #[inline]
    pub fn token_limits(&self) -> &TokenLimits {
        &self.token_limits
    }

    /// The position in which the next byte is another token's: the same one where no lexeme in
    /// progress has a limit.
    pub fn end_token(&self, position: &Position, scratch: &mut RecognizerScratch) -> Position {
        let is_counted = |branch: &Branch| branch.tokens.count() > 0 && !branch.tokens.at_end();
        if !self.token_limits.is_active() || !position.branches().iter().any(is_counted) {
            return position.clone();
        }
        scratch.bind(position.binding());
        scratch.now.clear();
        // Counted branches stay apart, and in their order unless one of them had ended before.
        scratch.now.extend(position.branches().iter().cloned().map(|mut branch| {
            if is_counted(&branch) {
                branch.tokens = branch.tokens.after_token();
            }
            branch
        }));
        scratch.now.sort_by(|a, b| a.key().cmp(&b.key()));
        scratch.position(self)
    }

    /// True where the parser takes `terminal` for a branch's lexeme in progress.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn takes(
        &self,
        branch: &Branch,
        terminal: TerminalId,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        let mut only = TerminalSet::new(self.grammar.terminals().len());
        only.insert(terminal);
        let parsed = (&branch.stacks, &branch.blocks);
        Ok(self.layer.accepts_any(&self.parser, parsed, &only, &mut scratch.parser)?)
    }

    /// Moves the count of a branch over a byte of its lexeme, the first of it where `is_first`;
    /// false where the lexeme has more tokens than each terminal that it may become.
    pub(super) fn count_byte(&self, branch: &mut Branch, is_first: bool) -> bool {
        if !self.token_limits.is_active() {
            return true;
        }
        let tokens = match is_first {
            true => LexemeTokens::FIRST,
            false => branch.tokens.after_byte(),
        };
        let possible = self.lexer.viable_terminals(branch.lexer);
        branch.tokens = self.token_limits.counted(possible, tokens);
        branch.tokens.count() == 0
            || possible.iter().any(|terminal| !self.token_limits.is_over(terminal, branch.tokens))
    }
}
