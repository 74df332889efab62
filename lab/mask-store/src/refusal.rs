//! Grammars that the store cannot read exactly.

use palmette_grammar_parser::recognizer::Recognizer;

/// Refusal of a grammar: rows say what tokens spell after a state of the lexer, and here that
/// depends on more than this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreRefusal {
    /// Lexemes depend on the parser's state.
    #[error(
        "the mask store does not read contextual lexing: a row holds in every context of the parser; \
         read the grammar with another lexing, or take another engine"
    )]
    ContextualLexing,
    /// Names that were seen are denied.
    #[error(
        "the mask store does not read scopes of distinct names: a row knows no names that were seen; \
         take another engine"
    )]
    DistinctNames,
    /// Members of sets are spelled by the sets.
    #[error(
        "the mask store does not read sets that a grammar names: their members are no lexemes of its \
         terminals; take another engine"
    )]
    Sets,
    /// Tokens of lexemes are counted.
    #[error(
        "the mask store does not read limits on the tokens of lexemes: a row does not count tokens; \
         take another engine"
    )]
    TokenLimits,
}

impl StoreRefusal {
    /// The reason why the store cannot read a grammar, if there is one.
    pub(super) fn of(recognizer: &Recognizer) -> Option<Self> {
        let grammar = recognizer.grammar();
        let is_bound = !grammar.slots().is_empty() || recognizer.scopes().is_active();
        let reasons = [
            (recognizer.contexts().is_some(), Self::ContextualLexing),
            (grammar.distinct_names().is_some(), Self::DistinctNames),
            (is_bound, Self::Sets),
            (!grammar.token_limits().is_empty(), Self::TokenLimits),
        ];
        reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
    }
}
