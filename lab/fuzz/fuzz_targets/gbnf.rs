//! Grammars in GBNF: what is read is a sound grammar of non-empty terminals; errors lie within the
//! source.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_fuzz::matches_empty;
use palmette_grammar::frontends::gbnf::{GbnfOptions, parse};

fuzz_target!(|source: &str| {
    match parse(source, &GbnfOptions::default()) {
        Ok(grammar) => {
            for terminal in grammar.terminals() {
                assert!(!matches_empty(&terminal.regex), "{terminal:?}");
            }
            for nonterminal in grammar.nonterminals() {
                let span = nonterminal.span;
                assert!(span.is_none_or(|span| source.get(span.start..span.end).is_some()));
            }
        }
        Err(error) => {
            assert!(source.get(error.span.start..error.span.end).is_some(), "{error:?}");
            assert!(!error.message.is_empty());
        }
    }
});
