//! The part of a grammar that sentences use.

use super::rule_list::RuleList;
use crate::{Grammar, GrammarBuilder, NonterminalId, Symbol, TerminalSet};

/// Reduced grammar: the language without what no sentence uses: rules with a nonterminal that
/// derives nothing or that cannot be reached, rules said twice, and `A → A`.
///
/// Terminals keep their ids, used or not; nonterminals are numbered anew, in the same order. The
/// start stays, without rules if the language is empty.
pub fn reduce(grammar: &Grammar) -> Grammar {
    let mut list = RuleList::new(grammar);
    list.reduce();
    let mut is_used = vec![false; list.num_nonterminals];
    is_used[list.start.index()] = true;
    list.rules.iter().for_each(|rule| is_used[rule.head.index()] = true);
    let mut builder = GrammarBuilder::new();
    builder.slots_of(grammar.slots());
    for terminal in grammar.terminals() {
        builder.terminal(terminal.clone());
    }
    let mut new_ids = vec![NonterminalId(0); list.num_nonterminals];
    for (at, nonterminal) in grammar.nonterminals().iter().enumerate() {
        if is_used[at] {
            new_ids[at] = builder.nonterminal(nonterminal.name.clone(), nonterminal.span);
        }
    }
    for rule in &list.rules {
        let body = rule.body.iter().map(|&symbol| match symbol {
            Symbol::Nonterminal(id) => Symbol::Nonterminal(new_ids[id.index()]),
            terminal @ Symbol::Terminal(_) => terminal,
        });
        builder.rule(new_ids[rule.head.index()], body.collect::<Vec<_>>());
    }
    grammar.ignored().iter().for_each(|&terminal| builder.ignore(terminal));
    if let Some(indentation) = grammar.indentation() {
        builder.indentation(indentation.clone());
    }
    builder.scopes_of(grammar.scopes(), |terminal| terminal);
    builder.token_limits_of(grammar.token_limits(), |terminal| terminal);
    builder.build(new_ids[grammar.start().index()], grammar.lexing())
}

/// The terminals in rules that sentences use. Linear.
pub fn used_terminals(grammar: &Grammar) -> TerminalSet {
    let mut list = RuleList::new(grammar);
    list.reduce();
    let mut used = TerminalSet::new(list.num_terminals);
    for &symbol in list.rules.iter().flat_map(|rule| &*rule.body) {
        if let Symbol::Terminal(id) = symbol {
            used.insert(id);
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lexing, Regex, Terminal, TerminalKind};

    #[test]
    fn keeps_what_sentences_use() {
        let mut builder = GrammarBuilder::new();
        let [a, b, c] = ["a", "b", "c"].map(|text| {
            let (name, regex) = (text.to_owned(), Regex::literal(text));
            let kind = TerminalKind::Literal;
            Symbol::Terminal(builder.terminal(Terminal {
                name,
                regex,
                priority: 0,
                kind,
                span: None,
            }))
        });
        let [unreachable, start, endless, used] =
            ["unreachable", "start", "endless", "used"].map(|name| builder.nonterminal(name, None));
        let of = Symbol::Nonterminal;
        builder.rule(start, [a, of(used)]);
        builder.rule(start, [of(start)]);
        builder.rule(start, [a, of(used)]);
        builder.rule(start, [b, of(endless)]);
        builder.rule(endless, [b, of(endless)]);
        builder.rule(unreachable, [c]);
        builder.rule(used, [a]);
        let grammar = builder.build(start, Lexing::Any);
        let reduced = reduce(&grammar);
        let names: Vec<_> = reduced.nonterminals().iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["start", "used"]);
        let bodies: Vec<_> = reduced.rules().iter().map(|rule| rule.body.clone()).collect();
        assert_eq!(bodies, [vec![a, of(NonterminalId(1))], vec![a]]);
        assert_eq!(reduced.terminals().len(), 3);
        assert_eq!(format!("{:?}", used_terminals(&grammar)), "{0}");
    }
}
