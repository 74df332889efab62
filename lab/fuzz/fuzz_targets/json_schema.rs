//! JSON schemas: what compiles is a grammar of non-empty terminals, twice the same; errors lie
//! within the source.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_fuzz::matches_empty;
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, parse_with_warnings};

fuzz_target!(|source: &str| {
    let mut options = JsonSchemaOptions::default();
    options.limits.max_work = 20_000;
    options.limits.max_rules = 20_000;
    options.limits.max_states = 1_000;
    match parse_with_warnings(source, &options) {
        Ok((grammar, warnings)) => {
            for terminal in grammar.terminals() {
                assert!(!matches_empty(&terminal.regex), "{terminal:?}");
            }
            for warning in &warnings {
                assert!(source.is_char_boundary(warning.span.start), "{warning:?}");
            }
            let (again, others) = parse_with_warnings(source, &options).expect("as before");
            assert_eq!(grammar.rules(), again.rules());
            assert_eq!(warnings, others);
        }
        Err(error) => {
            assert!(error.span().is_none_or(|span| source.get(span.start..span.end).is_some()));
            assert!(!error.to_string().is_empty());
        }
    }
});
