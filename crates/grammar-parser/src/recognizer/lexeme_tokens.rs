//! Tokens of lexemes in progress, and the limits that terminals have on them.

use crate::{Grammar, TerminalId, TerminalSet};

/// Count of the tokens with bytes of a lexeme in progress, and whether the latest has ended.
///
/// Ordered by number. The count is 0 where the lexeme becomes no terminal with a limit.
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

    pub(super) fn after_byte(self) -> Self {
        // The number is even and one more: the next number's.
        if self.at_end() { Self(self.0 + 1) } else { self }
    }

    pub(super) fn after_token(self) -> Self {
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
    pub(super) fn counted(&self, possible: &TerminalSet, tokens: LexemeTokens) -> LexemeTokens {
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
