//! A regular expression as a grammar: its texts are those that it matches from beginning to end.

pub use crate::regex::parse::{Dialect, Flags, RegexError};

use crate::regex::parse::{
    Reading, parse_with_budget as text_with_budget,
    restrict::{is_nullable, non_empty},
};
use crate::{Budget, Grammar, GrammarBuilder, Lexing, Span, Symbol, Terminal, TerminalKind};

/// Options of [`parse`]; the default is the crate `regex`'s dialect without flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegexOptions {
    /// Notation of the expression.
    pub dialect: Dialect,
    /// Switches for all of it.
    pub flags: Flags,
}

impl Default for RegexOptions {
    fn default() -> Self {
        Self { dialect: Dialect::Rust, flags: Flags::default() }
    }
}

/// The grammar of the texts that `source` matches from beginning to end: one terminal, and the empty text if it
/// is matched.
///
/// # Errors
/// When the expression cannot be read in its dialect.
///
/// ```
/// use palmette_grammar::frontends::regex::{RegexOptions, parse};
///
/// let grammar = parse("[0-9]{4}-[0-9]{2}", &RegexOptions::default())?;
/// assert_eq!(grammar.terminals().len(), 1);
/// # Ok::<_, palmette_grammar::frontends::regex::RegexError>(())
/// ```
pub fn parse(source: &str, options: &RegexOptions) -> Result<Grammar, RegexError> {
    parse_with_budget(source, options, &mut Budget::unlimited())
}

/// As [`parse`], as long as the budget lasts and nobody calls it off.
///
/// # Errors
/// As [`parse`], and when the work is [`interrupted`](RegexError::interrupted).
pub fn parse_with_budget(
    source: &str,
    options: &RegexOptions,
    budget: &mut Budget<'_>,
) -> Result<Grammar, RegexError> {
    let regex = text_with_budget(source, options.dialect, options.flags, Reading::Text, budget)?;
    let mut builder = GrammarBuilder::new();
    let span = Some(Span::locate(source, 0, source.len()));
    let root = builder.nonterminal("root", span);
    if is_nullable(&regex) {
        builder.rule(root, []);
    }
    let terminal = builder.terminal(Terminal {
        name: source.to_owned(),
        regex: non_empty(&regex),
        priority: 0,
        kind: TerminalKind::Pattern,
        span,
    });
    builder.rule(root, [Symbol::Terminal(terminal)]);
    Ok(builder.build(root, Lexing::Any))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_empty_text_is_a_rule_of_its_own() {
        let grammar = parse("a*", &RegexOptions::default()).expect("sound");
        assert_eq!(grammar.rules().len(), 2);
        assert!(grammar.rules()[0].body.is_empty());
        assert!(!is_nullable(&grammar.terminals()[0].regex));
        let grammar = parse("a+", &RegexOptions::default()).expect("sound");
        assert_eq!(grammar.rules().len(), 1);
    }
}
