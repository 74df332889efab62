//! Random grammars.

use palmette_grammar::{
    Grammar, GrammarBuilder, Lexing, NonterminalId, Regex, Symbol, Terminal, TerminalId,
    TerminalKind,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Grammars of one to four nonterminals and two to four terminals, `a`, `b`, `c`, `d`.
///
/// Rules are short and random, so most grammars are ambiguous, many have empty rules, cycles, every kind of left
/// recursion, and nonterminals that derive nothing or are not used.
pub fn abstract_grammar() -> impl Strategy<Value = Grammar> {
    (1..5_u32, 2..5_u32).prop_flat_map(|(num_nonterminals, num_terminals)| {
        let symbol = prop_oneof![
            (0..num_terminals).prop_map(|id| Symbol::Terminal(TerminalId(id))),
            (0..num_nonterminals).prop_map(|id| Symbol::Nonterminal(NonterminalId(id))),
        ];
        let rule = (0..num_nonterminals, vec(symbol, 0..4));
        vec(rule, 1..10).prop_map(move |rules| {
            let mut builder = GrammarBuilder::new();
            for id in 0..num_terminals {
                builder.terminal(letter((b'a' + id as u8) as char));
            }
            for id in 0..num_nonterminals {
                builder.nonterminal(format!("N{id}"), None);
            }
            for (head, body) in rules {
                builder.rule(NonterminalId(head), body);
            }
            builder.build(NonterminalId(0), Lexing::Any)
        })
    })
}

/// A grammar in a line: rules `A -> x A y | z ;` separated by `;`, the first head being the start. Words that are
/// nowhere a head are terminals, numbered in the order of their first mention, each matching itself.
///
/// # Panics
/// When a rule has no `->`.
pub fn grammar_of(rules: &str) -> Grammar {
    let rules = rules.split(';').map(str::trim).filter(|rule| !rule.is_empty());
    let rules: Vec<(&str, &str)> = rules
        .map(|rule| rule.split_once("->").unwrap_or_else(|| panic!("{rule:?} has no `->`")))
        .map(|(head, bodies)| (head.trim(), bodies))
        .collect();
    let mut builder = GrammarBuilder::new();
    let mut heads: Vec<&str> = Vec::new();
    for &(head, _) in &rules {
        if !heads.contains(&head) {
            heads.push(head);
            builder.nonterminal(head, None);
        }
    }
    let mut terminals: Vec<&str> = Vec::new();
    for (head, bodies) in &rules {
        let head = NonterminalId(heads.iter().position(|known| known == head).unwrap_or(0) as u32);
        for body in bodies.split('|') {
            let mut symbols = Vec::new();
            for word in body.split_whitespace() {
                if let Some(at) = heads.iter().position(|known| *known == word) {
                    symbols.push(Symbol::Nonterminal(NonterminalId(at as u32)));
                    continue;
                }
                let at = terminals.iter().position(|known| *known == word).unwrap_or_else(|| {
                    terminals.push(word);
                    builder.terminal(literal(word));
                    terminals.len() - 1
                });
                symbols.push(Symbol::Terminal(TerminalId(at as u32)));
            }
            builder.rule(head, symbols);
        }
    }
    builder.build(NonterminalId(0), Lexing::Any)
}

fn letter(letter: char) -> Terminal {
    literal(letter.encode_utf8(&mut [0; 4]))
}

fn literal(text: &str) -> Terminal {
    Terminal {
        name: format!("{text:?}"),
        regex: Regex::literal(text),
        priority: 0,
        kind: TerminalKind::Literal,
        span: None,
    }
}
