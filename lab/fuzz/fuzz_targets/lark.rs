//! Grammars in the dialect of lark: any text is read or refused with reasons at places that exist,
//! twice the same; what is read holds together.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_grammar::{
    Symbol,
    frontends::lark::{LarkLimits, LarkOptions, parse},
};

fuzz_target!(|text: &str| {
    // Small, so that what is refused is refused soon.
    let limits =
        LarkLimits { terminal_nodes: 1 << 14, rule_symbols: 1 << 16, template_instances: 256 };
    let options = LarkOptions { limits, ..LarkOptions::default() };
    let grammar = match parse(text, &options) {
        Ok(grammar) => grammar,
        Err(error) => {
            assert!(!error.problems().is_empty());
            for span in error.problems().iter().filter_map(|problem| problem.span) {
                assert!(text.get(span.start..span.end).is_some(), "{span:?}");
                assert!(span.line > 0 && span.column > 0);
            }
            assert_eq!(
                Some(error.to_string()),
                parse(text, &options).err().map(|again| again.to_string())
            );
            return;
        }
    };
    let again = parse(text, &options).expect("it was read before");
    assert_eq!(grammar.rules(), again.rules());

    // All is reached from the start.
    let mut reached = vec![false; grammar.nonterminals().len()];
    let mut waiting = vec![grammar.start()];
    while let Some(head) = waiting.pop() {
        if !std::mem::replace(&mut reached[head.index()], true) {
            let rules = grammar.rules().iter().filter(|rule| rule.head == head);
            waiting.extend(rules.flat_map(|rule| &rule.body).filter_map(|symbol| match symbol {
                Symbol::Nonterminal(id) => Some(*id),
                Symbol::Terminal(_) => None,
            }));
        }
    }
    assert!(reached.iter().all(|&reached| reached));
});
