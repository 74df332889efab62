//! JSON schemas of numbers: whatever the digits and exponents, reading ends within its budget, with
//! a grammar that reads numbers, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, parse_with_budget};
use palmette_grammar::{Budget, Recognizer, RecognizerLimits, RecognizerScratch};

const KEYWORDS: [&str; 4] = ["const", "minimum", "exclusiveMaximum", "multipleOf"];

/// Keyword, sign, digits before the point, digits after it, exponent.
type Member = (u8, bool, u32, Option<u32>, Option<i32>);

fuzz_target!(|members: Vec<Member>| {
    let members = members.iter().map(|&(keyword, negative, whole, fraction, exponent)| {
        let name = KEYWORDS[usize::from(keyword) % KEYWORDS.len()];
        let sign = if negative { "-" } else { "" };
        let fraction = fraction.map_or(String::new(), |digits| format!(".{digits}"));
        let exponent = exponent.map_or(String::new(), |exponent| format!("e{exponent}"));
        format!("\"{name}\": {sign}{whole}{fraction}{exponent}")
    });
    let schema = format!("{{{}}}", members.collect::<Vec<_>>().join(", "));
    let mut budget = Budget::new(10_000_000);
    let grammar = match parse_with_budget(&schema, &JsonSchemaOptions::default(), &mut budget) {
        Ok((grammar, _)) => grammar,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let limits = RecognizerLimits::default();
    let Ok(recognizer) = Recognizer::new(grammar.into(), &limits, &mut budget) else { return };
    let mut scratch = RecognizerScratch::default();
    for text in ["0.000", "-12345678901234567890", "1e400", "7.25E-3"] {
        let mut at = recognizer.start().cloned();
        for byte in text.bytes() {
            let next = at.map(|at| recognizer.advance(&at, byte, &mut scratch));
            at = next.transpose().ok().flatten().flatten();
        }
    }
});
