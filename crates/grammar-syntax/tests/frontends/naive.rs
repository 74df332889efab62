//! Sentences of a grammar by definition.

use std::collections::BTreeSet;

use palmette_grammar_parser::{Grammar, Symbol};
use palmette_testkit::grammar::regex::ends;

/// True when `text` is in the language of a grammar whose lexemes may be cut in any way.
pub(crate) fn is_sentence(grammar: &Grammar, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // By nonterminal and beginning: where it may end. Grown until nothing is added.
    let mut found = vec![vec![BTreeSet::new(); text.len() + 1]; grammar.nonterminals().len()];
    let lexemes: Vec<Vec<Vec<usize>>> = grammar
        .terminals()
        .iter()
        .map(|terminal| {
            let longer = |at: usize| {
                ends(&terminal.regex, &text, at).into_iter().filter(|&end| end > at).collect()
            };
            (0..=text.len()).map(longer).collect()
        })
        .collect();
    loop {
        let mut grown = false;
        for rule in grammar.rules() {
            for at in 0..=text.len() {
                let mut places = BTreeSet::from([at]);
                for symbol in &rule.body {
                    places = places
                        .iter()
                        .flat_map(|&place| match symbol {
                            Symbol::Terminal(id) => lexemes[id.index()][place].clone(),
                            Symbol::Nonterminal(id) => {
                                found[id.index()][place].iter().copied().collect()
                            }
                        })
                        .collect();
                }
                for end in places {
                    grown |= found[rule.head.index()][at].insert(end);
                }
            }
        }
        if !grown {
            return found[grammar.start().index()][0].contains(&text.len());
        }
    }
}
