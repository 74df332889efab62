//! Token terminals of a grammar: their names resolved by a vocabulary.

use palmette_core::Vocabulary;

use super::{Grammar, Terminal, TerminalKind};
use crate::{Regex, TokenError, TokenPattern};

impl Grammar {
    /// The terminals that ask for tokens by name or number, with their tokens.
    pub fn token_terminals(&self) -> impl Iterator<Item = (&Terminal, &TokenPattern)> {
        self.terminals().iter().filter_map(|terminal| match &terminal.regex {
            Regex::Tokens(tokens) => Some((terminal, tokens)),
            _ => None,
        })
    }

    /// This grammar with all tokens by number, as a vocabulary has them. A name is that of a
    /// special token, or else the whole text of a token.
    ///
    /// # Errors
    /// When the vocabulary does not have a token.
    pub fn with_tokens_of(mut self, vocabulary: &Vocabulary) -> Result<Self, TokenError> {
        for terminal in &mut self.terminals {
            if let Regex::Tokens(tokens) = &terminal.regex {
                terminal.regex = Regex::Tokens(tokens.resolved(vocabulary)?);
            }
        }
        Ok(self)
    }

    /// This grammar without the tokens that it asks for by name or number, which no text spells:
    /// for questions about texts before there is a vocabulary.
    #[must_use]
    pub fn without_tokens(mut self) -> Self {
        for terminal in &mut self.terminals {
            if matches!(terminal.regex, Regex::Tokens(_)) {
                terminal.regex = Regex::Never;
            }
        }
        self
    }
}

impl Terminal {
    /// The terminal of some tokens, named as Lark grammars write them.
    pub fn tokens(tokens: TokenPattern, span: Option<crate::Span>) -> Self {
        let (name, regex) = (tokens.to_string(), Regex::Tokens(tokens));
        Self { name, regex, priority: 0, kind: TerminalKind::Pattern, span }
    }
}
