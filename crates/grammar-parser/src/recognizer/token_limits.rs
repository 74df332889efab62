//! Tokens of lexemes in progress, where their terminals have a [limit](TokenLimit).
//!
//! Bytes do not tell where tokens end, so whoever reads tokens says so after each
//! ([`Recognizer::end_token`]). A branch counts the tokens in which bytes of its lexeme stand, where
//! the lexeme may become a terminal with a limit. Once there are more than a terminal may have, the
//! lexeme no longer becomes that terminal: the lexer's state still knows it, the branch does not.
//! Terminals with limits do not compete, so no other lexeme is the longer for it.

use super::{Branch, Position, Recognizer, RecognizerError, RecognizerScratch};
use crate::{Grammar, TerminalId, TerminalSet};

/// Tokens with bytes of a lexeme in progress, and whether the latest has ended; ordered by number.
///
/// None where the lexeme becomes no terminal with a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LexemeTokens(u32);

impl LexemeTokens {
    /// A lexeme of which bytes of one token were read.
    pub(super) const FIRST: Self = Self(2);

    /// Number of tokens.
    pub fn count(self) -> u32 {
        self.0 >> 1
    }

    /// True where the next byte is another token's.
    pub fn at_end(self) -> bool {
        self.0 & 1 == 1
    }

    fn after_byte(self) -> Self {
        // The number is even and one more: the next number's.
        if self.at_end() { Self(self.0 + 1) } else { self }
    }

    fn after_token(self) -> Self {
        Self(self.0 | 1)
    }
}

/// Limits on the tokens of a grammar's terminals, by terminal.
#[derive(Debug, Default)]
pub struct TokenLimits {
    /// The terminals that have one; no set where there are none.
    limited: Option<TerminalSet>,
    /// The most tokens of a lexeme; `u32::MAX` for any number.
    most: Box<[u32]>,
    /// The largest of the limits.
    largest: u32,
}

impl TokenLimits {
    pub(super) fn new(grammar: &Grammar) -> Self {
        let limits = grammar.token_limits();
        if limits.is_empty() {
            return Self::default();
        }
        let mut limited = TerminalSet::new(grammar.terminals().len());
        let mut most = vec![u32::MAX; grammar.terminals().len()];
        for limit in limits {
            limited.insert(limit.terminal);
            // A count takes 31 bits, and one more is told from it.
            most[limit.terminal.index()] = limit.tokens.get().min((u32::MAX >> 1) - 1);
        }
        let largest = limited.iter().map(|terminal| most[terminal.index()]).max().unwrap_or(0);
        Self { limited: Some(limited), most: most.into(), largest }
    }

    /// True where a terminal has a limit.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.limited.is_some()
    }

    /// The most tokens of a terminal's lexeme; `None` for any number.
    pub fn most(&self, terminal: TerminalId) -> Option<u32> {
        self.most.get(terminal.index()).copied().filter(|&most| most < u32::MAX)
    }

    /// True where a lexeme has more tokens than the terminal may have.
    #[inline]
    pub fn is_over(&self, terminal: TerminalId, tokens: LexemeTokens) -> bool {
        self.is_active() && tokens.count() > self.most[terminal.index()]
    }

    /// Tokens that a lexeme in progress may still have as a terminal, that in progress included;
    /// `None` for any number.
    pub fn left(&self, terminal: TerminalId, tokens: LexemeTokens) -> Option<u32> {
        let open = u32::from(!tokens.at_end() && tokens.count() > 0);
        self.most(terminal).map(|most| (most + open).saturating_sub(tokens.count()))
    }

    /// The tokens as branches have them: none where they do not count, and none told apart beyond
    /// the largest limit.
    fn counted(&self, possible: &TerminalSet, tokens: LexemeTokens) -> LexemeTokens {
        let Some(limited) = &self.limited else { return LexemeTokens::default() };
        if !possible.intersects(limited) {
            return LexemeTokens::default();
        }
        match tokens.count() > self.largest {
            true => LexemeTokens((self.largest + 1) << 1 | u32::from(tokens.at_end())),
            false => tokens,
        }
    }
}

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
