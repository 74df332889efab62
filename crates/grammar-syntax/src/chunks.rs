//! Parts of a text that is cut into chunks: each begins and ends where chunks do.

use crate::{Grammar, GrammarBuilder, Lexing, Regex, Symbol, Terminal, TerminalKind};

/// Chunks past this many are an error: a part may begin at each of them.
pub(crate) const MAX_CHUNKS: usize = 4_096;

/// Grammar of the chunks that stand in a row anywhere in a text, none included.
///
/// `start → ε | p₁ rest₁ | …`, where `restᵢ → ε | pᵢ₊₁ restᵢ₊₁`: as many rules as chunks.
pub(crate) fn parts_of(chunks: &[String]) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let start = builder.nonterminal("part", None);
    let mut rest = builder.nonterminal("part#end", None);
    builder.rule(start, []);
    builder.rule(rest, []);
    for chunk in chunks.iter().rev().filter(|chunk| !chunk.is_empty()) {
        let terminal = builder.terminal(Terminal {
            name: format!("{chunk:?}"),
            regex: Regex::literal(chunk),
            priority: 0,
            kind: TerminalKind::Literal,
            span: None,
        });
        let from_here = [Symbol::Terminal(terminal), Symbol::Nonterminal(rest)];
        rest = builder.nonterminal("part#rest", None);
        builder.rule(rest, []);
        builder.rule(rest, from_here);
        builder.rule(start, from_here);
    }
    builder.build(start, Lexing::Any)
}
